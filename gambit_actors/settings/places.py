"""Where the settings file is that holds for a deck. Quick to import: most have none."""

import os
from pathlib import Path

FILE_NAME = "gambit.toml"


def nearest_file(here: Path, deck: str | os.PathLike[str] | None = None) -> Path | None:
    """The nearest settings file from a deck's folder up, or from another without deck.

    Args:
        here: the current folder, whole.
        deck: a file or a folder; one that is built in is nowhere.
    """
    start = here
    if deck is not None and not str(deck).startswith("gambit://"):
        at = here / deck
        start = at if at.is_dir() else at.parent
    for folder in (start, *start.parents):
        path = folder / FILE_NAME
        if path.is_file():
            return path
    return None
