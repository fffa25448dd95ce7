"""Models that are named after a script: ``scripted/path/to/script.toml``.

The path is from the current folder. A file is read when its model is first asked, and
not again.
"""

from collections.abc import Callable
from pathlib import Path

import trio

from gambit_actors.errors import BadScript
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.providers.errors import ProviderNotReady
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import (
    Script,
    script_from_jsonl,
    script_from_toml,
)
from gambit_actors.run.ports import ModelContext
from gambit_actors.settings.model import SCRIPTED
from gambit_actors.settings.readiness import NO_SCRIPT, is_script_file


class ScriptFiles:
    """Answers for each model from the script that it is named after."""

    def __init__(self) -> None:
        self._made: dict[str, ScriptedProvider] = {}

    async def responses(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
        /,
    ) -> Response:
        """Answer from the script.

        Raises:
            ProviderNotReady: there is none.
            ProviderError: it has no answer.
        """
        name = request.model or ""
        if name not in self._made:
            made = await trio.to_thread.run_sync(_provider_of, name)
            # Whoever was first counts: it knows which replies are used up.
            self._made.setdefault(name, made)
        return await self._made[name].responses(request, context, on_event)


def script_in(path: Path) -> Script:
    """Read a script.

    Raises:
        BadScript: it is not one.
        OSError: it cannot be read.
    """
    read = script_from_jsonl if path.suffix == ".jsonl" else script_from_toml
    try:
        return read(path.read_text(encoding="utf-8"))
    except UnicodeError as problem:
        raise BadScript(f"not readable: {problem}") from problem


def fault_of_script(model: str) -> str | None:
    """What keeps a model from answering that is named after a script.

    None if nothing does, or if it is named after none.
    """
    prefix, _, name = model.partition("/")
    if prefix != SCRIPTED or not is_script_file(name):
        return None
    try:
        _provider_of(name)
    except ProviderNotReady as problem:
        return problem.reason
    return None


def _provider_of(name: str) -> ScriptedProvider:
    if not is_script_file(name):
        raise ProviderNotReady(f"{SCRIPTED}/{name}", NO_SCRIPT)
    try:
        return ScriptedProvider(script_in(Path(name)))
    except FileNotFoundError as problem:
        words = f"there is no script {name}, from the current folder"
        raise ProviderNotReady(f"{SCRIPTED}/{name}", words) from problem
    except (BadScript, OSError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else problem
        words = f"{name} is no script that can be read: {reason}"
        raise ProviderNotReady(f"{SCRIPTED}/{name}", words) from problem
