"""An author's code as an action: found, given what it needs, and run.

Code that asks for no permissions runs in this process: a coroutine in the actor's own
task, anything else in a thread. Code whose permissions are declared needs to be kept to
them; where nothing can do that it is refused, unless the user has named the action.
"""

import importlib.util
import inspect
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import trio

from gambit_actors.deck.compute import ComputeDeck
from gambit_actors.errors import ActionFailed, DeckError
from gambit_actors.openresponses.base import JSONValue

_LEVELS = ("debug", "info", "warning", "error")


class Spawn(Protocol):
    """Runs another deck as a child of the one that asks."""

    async def __call__(
        self, path: str, input: JSONValue, *, message: str | None = None
    ) -> JSONValue:
        """Run the deck at a path, relative to the module, and give its result."""


class ComputeContext:
    """What an author's code is given.

    Attributes:
        input: what the action was called with, checked and filled in.
        run_id: the run it is part of.
        action_call_id: the call that it answers.
        depth: how deep in the tree it is.
    """

    def __init__(
        self,
        *,
        input: JSONValue,
        run_id: str,
        action_call_id: str,
        depth: int,
        on_log: Callable[[dict[str, JSONValue]], None],
        spawn: Spawn,
    ) -> None:
        self.input = input
        self.run_id = run_id
        self.action_call_id = action_call_id
        self.depth = depth
        self._on_log = on_log
        self._spawn = spawn

    def log(
        self,
        message: str,
        *,
        title: str | None = None,
        body: JSONValue = None,
        level: str = "info",
        meta: dict[str, JSONValue] | None = None,
    ) -> None:
        """Say something in the trace. From a thread, too."""
        if level not in _LEVELS:
            msg = f"{level!r} is not one of {', '.join(_LEVELS)}"
            raise ValueError(msg)
        fields = {
            "message": str(message),
            "title": title,
            "body": body,
            "level": level,
            "meta": meta,
        }
        _in_trio(self._on_log, fields)

    async def spawn_and_wait(
        self, path: str, input: JSONValue = None, *, message: str | None = None
    ) -> JSONValue:
        """Run another deck and wait for its result."""
        return await self._spawn(path, input, message=message)

    async def spawn_all(
        self, calls: Sequence[tuple[str, JSONValue]]
    ) -> list[JSONValue]:
        """Run several decks side by side; results come in the order of the calls."""
        results: list[JSONValue] = [None] * len(calls)

        async def one(index: int, path: str, given: JSONValue) -> None:
            results[index] = await self._spawn(path, given)

        async with trio.open_nursery() as nursery:
            for index, (path, given) in enumerate(calls):
                nursery.start_soon(one, index, path, given)
        return results

    def fail(
        self, message: str, *, code: str = "action_failed", details: JSONValue = None
    ) -> None:
        """Stop here; the parent is told the message, the code and the details.

        Raises:
            ActionFailed: always.
        """
        raise ActionFailed(message, code=code, details=details)


class Modules:
    """Modules that have been imported, each again when its text has changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[bytes, ComputeDeck]] = {}

    def load(self, path: str) -> ComputeDeck:
        """Import a module with ``deck = define_deck(...)``. Blocks; runs its code.

        Raises:
            DeckError: it cannot be imported, or has no such deck.
        """
        try:
            text = Path(path).read_bytes()
        except OSError as problem:
            msg = f"the module cannot be read: {problem.strerror}"
            raise DeckError(msg) from problem
        known = self._known.get(path)
        if known is not None and known[0] == text:
            return known[1]
        spec = importlib.util.spec_from_file_location("gambit_action", path)
        if spec is None or spec.loader is None:
            msg = f"{path} is not a Python module"
            raise DeckError(msg)
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as problem:
            msg = f"{path} cannot be imported: {type(problem).__name__}: {problem}"
            raise DeckError(msg) from problem
        deck = getattr(module, "deck", None)
        if not isinstance(deck, ComputeDeck):
            msg = f"{path} has no deck made by define_deck"
            raise DeckError(msg)
        self._known[path] = (text, deck)
        return deck


async def run_compute(deck: ComputeDeck, context: ComputeContext) -> JSONValue:
    """Run an author's code and give what it returns, as JSON has it.

    Raises:
        ActionFailed: the code said so, or raised something.
    """
    try:
        if inspect.iscoroutinefunction(deck.run):
            result: Any = await deck.run(context)
        else:
            result = await trio.to_thread.run_sync(deck.run, context)
        if isinstance(result, Awaitable):
            result = await result
        return msgspec.to_builtins(result)
    except ActionFailed:
        raise
    except Exception as problem:
        message = f"{type(problem).__name__}: {problem}"
        raise ActionFailed(message, code="action_error") from problem


def _in_trio(function: Callable[..., None], *args: object) -> None:
    """Call a function in the Trio thread, from wherever this is."""
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        trio.from_thread.run_sync(function, *args)
    else:
        function(*args)
