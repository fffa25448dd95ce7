"""An author's code as an action: found, given what it needs, and run.

A coroutine runs in the task of whoever calls `run_compute`, anything else in a thread.
The code is given a `ComputeContext`, which does all it does through a `ComputeHost`:
the actor itself, or, for code that is confined, a pipe to it (`confined.worker`).
"""

import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import msgspec
import trio

from gambit_actors.deck.compute import ComputeDeck
from gambit_actors.errors import ActionFailed, DeckError
from gambit_actors.openresponses.base import JSONValue

_LEVELS = ("debug", "info", "warning", "error")
_OTHER_LEVELS = {"warn": "warning", "trace": "debug", "critical": "error"}


Speaker: TypeAlias = Literal["user", "assistant"]
"""In whose name code can add to the conversation."""


class ComputeHost(Protocol):
    """What code in an action can ask of whoever runs it. Called in the Trio thread."""

    def log(self, fields: dict[str, JSONValue]) -> None:
        """Say something in the trace."""

    async def spawn(
        self, path: str, input: JSONValue, *, message: str | None = None
    ) -> JSONValue:
        """Run the deck at a path, relative to the module, and give its result."""

    def get_meta(self, key: str) -> JSONValue:
        """What the session keeps under a key; None if nothing."""

    async def set_meta(self, key: str, value: JSONValue) -> None:
        """Keep something for the session; None or UNSET forgets it."""

    async def append_message(self, role: Speaker, content: str) -> None:
        """Put a message in the conversation, after the output of the call."""


class ComputeContext:
    """What an author's code is given.

    Attributes:
        input: what the action was called with, checked and filled in.
        label: what the deck is called where people read it.
        run_id: the run it is part of.
        action_call_id: the call that it answers.
        depth: how deep in the tree it is.
        attempt: more than 1 if an earlier one was cut off by the end of the process,
            and may have done its work or not.
        idempotency_key: the same in every attempt, and no other call's.
    """

    def __init__(  # noqa: PLR0913  # each is something that code can ask for
        self,
        host: ComputeHost,
        *,
        input: JSONValue,
        run_id: str,
        action_call_id: str,
        depth: int,
        label: str | None = None,
        attempt: int = 1,
        idempotency_key: str = "",
    ) -> None:
        self.input = input
        self.label = label
        self.run_id = run_id
        self.action_call_id = action_call_id
        self.depth = depth
        self.attempt = attempt
        self.idempotency_key = idempotency_key
        self._host = host

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
        level = _OTHER_LEVELS.get(level, level)
        fields = {
            "message": str(message),
            "title": title,
            "body": body,
            # A line with a word of its own is no reason to fail the action.
            "level": level if level in _LEVELS else "info",
            "meta": meta,
        }
        _in_trio(self._host.log, fields)

    async def spawn_and_wait(
        self, path: str, input: JSONValue = None, *, message: str | None = None
    ) -> JSONValue:
        """Run another deck and wait for its result.

        A plain function, which runs in a thread, has this and all that is async by
        ``trio.from_thread.run(ctx.spawn_and_wait, path, input)``.
        """
        return await self._host.spawn(path, input, message=message)

    async def spawn_all(
        self, calls: Sequence[tuple[str, JSONValue]]
    ) -> list[JSONValue]:
        """Run several decks side by side; results come in the order of the calls.

        Raises:
            ActionFailed: one of them failed; the others are cancelled.
        """
        results: list[JSONValue] = [None] * len(calls)
        failures: dict[int, ActionFailed] = {}

        async def one(  # noqa: ASYNC910  # it has waited until the deck failed
            index: int, path: str, given: JSONValue
        ) -> None:
            try:
                results[index] = await self._host.spawn(path, given)
            except ActionFailed as problem:
                failures[index] = problem
                nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            for index, (path, given) in enumerate(calls):
                nursery.start_soon(one, index, path, given)
        if failures:
            raise failures[min(failures)]
        return results

    def get_session_meta(self, key: str) -> JSONValue:
        """What the session keeps under a key; None if nothing."""
        return self._host.get_meta(key)

    async def set_session_meta(self, key: str, value: JSONValue) -> None:
        """Keep a JSON value for the rest of the session; None forgets the key."""
        await self._host.set_meta(key, value)

    async def append_message(self, role: str, content: str) -> None:
        """Put a message in the conversation, after the output of this call.

        Args:
            role: ``user`` or ``assistant``.
            content: its words; nothing is added if there are none.

        Raises:
            ValueError: the role is another.
        """
        if role not in ("user", "assistant"):
            msg = f"a message can be from user or assistant, not from {role!r}"
            raise ValueError(msg)
        if content.strip():
            await self._host.append_message(role, content)  # type: ignore[arg-type]  # one of the two
        else:
            await trio.lowlevel.checkpoint()

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
        deck = _imported(path, text)
        self._known[path] = (text, deck)
        return deck


def _imported(path: str, text: bytes) -> ComputeDeck:
    # A name of its own, where dataclasses and msgspec look names up.
    digest = hashlib.sha256(path.encode(errors="replace") + b"\0" + text).hexdigest()
    name = f"gambit_action_{digest[:24]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        msg = f"{path} is not a Python module"
        raise DeckError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        # From the text that was read, and not from what Python has kept of the file:
        # that is told apart by size and second, which an edit may leave as they were.
        exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102  # the author's code
    except (Exception, SystemExit) as problem:
        del sys.modules[name]
        msg = f"{path} cannot be imported: {words_of(problem)}"
        raise DeckError(msg) from problem
    deck = getattr(module, "deck", None)
    if not isinstance(deck, ComputeDeck):
        msg = f"{path} has no deck made by define_deck"
        raise DeckError(msg)
    return deck


async def run_compute(
    deck: ComputeDeck,
    context: ComputeContext,
    *,
    threads: trio.CapacityLimiter | None = None,
) -> JSONValue:
    """Run an author's code and give what it returns, as JSON has it.

    Args:
        deck: the code.
        context: what it is given.
        threads: how many threads there may be for plain functions.

    Raises:
        ActionFailed: the code said so, or raised something.
    """
    try:
        if inspect.iscoroutinefunction(deck.run):
            result: Any = await deck.run(context)
        else:
            result = await trio.to_thread.run_sync(deck.run, context, limiter=threads)
        if isinstance(result, Awaitable):
            result = await result
        return msgspec.to_builtins(result)
    except ActionFailed:
        raise
    except (Exception, SystemExit) as problem:
        raise ActionFailed(words_of(problem), code="action_error") from problem


def words_of(problem: BaseException) -> str:
    """What an error of somebody else's code says, whatever that code is like."""
    kind = type(problem).__name__
    try:
        return f"{kind}: {problem}"
    except Exception:  # noqa: BLE001  # its own words cannot be had
        return kind


def _in_trio(function: Callable[..., None], *args: object) -> None:
    """Call a function in the Trio thread, from wherever this is."""
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        trio.from_thread.run_sync(function, *args)
    else:
        function(*args)
