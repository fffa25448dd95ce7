"""What tests of models share: an environment without keys, and a plugin."""

from pathlib import Path

import pytest

from gambit_actors.settings.environment import FLAGS, PROXIES
from gambit_actors.settings.presets import PRESETS

_NAMES = {
    *FLAGS,
    *PROXIES.values(),
    *(name for server in PRESETS.values() for name in server.key_names),
    *(name for server in PRESETS.values() for name in server.url_names),
}
_PLUGIN = """
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Reply


def reply(request, context):
    if request.model == "quiet":
        return Reply(fault="error", message="overloaded")
    if request.model == "broken":
        raise RuntimeError("no licence for sk-hush-hush")
    if request.model == "slow":
        print("asked", flush=True)
        return Reply(text="yes", fault="hang")
    return Reply(text="yes")


def provider(setup):
    return ScriptedProvider(reply)
"""


def variables(given: dict[str, str]) -> dict[str, str | None]:
    """An environment for a command: these variables, and no other that it knows."""
    none = dict.fromkeys({*_NAMES, *(name.lower() for name in _NAMES)})
    return none | {"COLUMNS": "200", "NO_COLOR": "1"} | given


def install_plugin(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package that brings the provider ``pong``; quiet and broken fail."""
    (folder / "pong_plugin.py").write_text(_PLUGIN)
    info = folder / "pong-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pong\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[gambit_actors.providers]\npong = pong_plugin:provider\n"
    )
    monkeypatch.syspath_prepend(str(folder))
