"""Where the settings file is that holds for a deck. Quick to import: most have none."""

import os
from pathlib import Path

from gambit_actors.errors import InvalidSettings

FILE_NAME = "gambit.toml"


def nearest_file(here: Path, deck: str | os.PathLike[str] | None = None) -> Path | None:
    """The nearest settings file from a deck's folder up, or from another without deck.

    Args:
        here: the current folder, whole.
        deck: a file or a folder; one that is built in is nowhere.

    Raises:
        InvalidSettings: something else has that name. Passed over in silence it would
            have keys sent elsewhere, and no limit kept.
    """
    start = here
    if deck is not None and not str(deck).startswith("gambit://"):
        at = here / deck
        start = at if at.is_dir() else at.parent
    for folder in (start, *start.parents):
        path = folder / FILE_NAME
        if path.is_file():
            return path
        if os.path.lexists(path):
            raise InvalidSettings(f"{path} {_what_it_is(path)}")
    return None


def _what_it_is(path: Path) -> str:
    if path.is_dir():
        return "is a folder, and settings are a file: give it another name"
    if path.is_symlink():
        return "is a link that leads to no file: mend it, or remove it"
    return "is no file that can be read: remove it"
