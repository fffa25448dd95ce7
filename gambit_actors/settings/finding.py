"""Finds the settings file and reads what settings are made from.

The file is the nearest ``gambit.toml`` in a deck's folder or above it; where no deck is
told, in the current folder or above that. One that is in the current folder or above it
is the user's own. One that is found elsewhere came with a deck: it may give models
other names, and may say neither where keys are sent nor what models cost.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from gambit_actors.errors import InvalidSettings
from gambit_actors.run.budgets import Price
from gambit_actors.settings.environment import environment_from_text
from gambit_actors.settings.model import Settings
from gambit_actors.settings.places import nearest_file
from gambit_actors.settings.plugins import provider_plugins
from gambit_actors.settings.reading import (
    SettingsFile,
    prices_from_text,
    settings_from,
)

_MOST_BYTES = 4_000_000


def find_settings(
    environment: Mapping[str, str],
    *,
    deck: str | os.PathLike[str] | None = None,
    file: str | os.PathLike[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    responses: bool | None = None,
) -> Settings:
    """Find and read the settings that hold for a deck.

    Args:
        environment: has keys, addresses and flags.
        deck: the file or folder of a deck; None for the current folder.
        file: the settings file, which then is not looked for, and counts as one's own.
        folder: the current folder, if it is another one.
        responses: the mode that the command line asks for, if it does.

    Raises:
        InvalidSettings: something is wrong with them.
    """
    here = Path(folder or ".").absolute()
    path = Path(file).absolute() if file is not None else nearest_file(here, deck)
    found: SettingsFile | None = None
    if path is not None:
        name = _shown(path, here)
        text = _text_of(path, name)
        # With links followed: what lies in a folder of ours may come from elsewhere.
        home, real_here = path.resolve().parent, here.resolve()
        is_own = file is not None or home in (real_here, *real_here.parents)
        found = SettingsFile(
            name=name,
            text=text,
            is_own=is_own,
            read_beside=lambda name: _read(path.parent / name),
        )
    return settings_from(
        environment, found, responses=responses, plugins=provider_plugins()
    )


def environment_from_file(
    file: str | os.PathLike[str], environment: Mapping[str, str]
) -> dict[str, str]:
    """An environment with the variables of a file, where it has none of that name.

    Raises:
        InvalidSettings: the file cannot be read, or is none of variables.
    """
    path = Path(file)
    found = environment_from_text(_text_of(path, str(path)), file=str(path))
    return found | dict(environment)


def prices_from_file(file: str | os.PathLike[str]) -> dict[str, Price]:
    """Read a file of prices.

    Raises:
        InvalidSettings: it cannot be read, or has mistakes.
    """
    path = Path(file)
    return prices_from_text(str(path), _text_of(path, str(path)))


def _shown(path: Path, here: Path) -> str:
    """A path from the current folder if it is in there."""
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _text_of(path: Path, name: str) -> str:
    try:
        return _read(path)
    except OSError as problem:
        msg = f"{name} cannot be read: {problem.strerror}"
        raise InvalidSettings(msg) from problem
    except UnicodeError as problem:
        raise InvalidSettings(f"{name} is not UTF-8 text") from problem


def _read(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise OSError(27, "it is too large")
    return data.decode("utf-8-sig")  # Some editors begin a file with a mark.
