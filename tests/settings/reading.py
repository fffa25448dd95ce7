"""What the tests of settings share."""

from collections.abc import Mapping

import pytest

from gambit_actors.errors import InvalidSettings
from gambit_actors.settings.model import Settings
from gambit_actors.settings.reading import SettingsFile, settings_from


def read(
    text: str = "",
    environment: Mapping[str, str] | None = None,
    *,
    responses: bool | None = None,
    is_own: bool = True,
    beside: Mapping[str, str] | None = None,
    plugins: tuple[str, ...] = (),
) -> Settings:
    """Read a text as gambit.toml."""
    texts = beside or {}

    def read_beside(name: str) -> str:
        if name not in texts:
            raise FileNotFoundError(2, "No such file or directory")
        return texts[name]

    file = SettingsFile(
        name="gambit.toml", text=text, is_own=is_own, read_beside=read_beside
    )
    return settings_from(environment or {}, file, responses=responses, plugins=plugins)


def refusal(text: str = "", environment: Mapping[str, str] | None = None) -> str:
    """What is said of a text that cannot be used."""
    with pytest.raises(InvalidSettings) as raised:
        read(text, environment)
    return str(raised.value)
