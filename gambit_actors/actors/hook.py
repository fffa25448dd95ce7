"""The one way to tools that the program around a run carries out.

All external calls of a run go through the inbox of one `ToolHook`, which asks the
program's ``on_tool``. It limits how many are asked at once and how long each may take,
and turns whatever comes back, an error included, into an envelope.
"""

import inspect
import math
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec
import trio

from gambit_actors.actors.compute import words_of
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.envelopes import Envelope, envelope_from, refusal

MAX_CALLS = 100


class ExternalCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What ``on_tool`` is told about a call.

    Attributes:
        name: of the tool.
        args: as the model gave them, checked and filled in.
        run_id: the run, which is that of the root also for decks below it.
        action_call_id: the model's id of the call.
        deck_path: whose call it is.
        parent_action_call_id: the span in the trace that it is part of.
        attempt: more than 1 if an earlier one was cut off by the end of the process,
            and may have happened or not.
        idempotency_key: the same in every attempt, and no other call's.
    """

    name: str
    args: dict[str, JSONValue]
    run_id: str
    action_call_id: str
    deck_path: str
    parent_action_call_id: str | None = None
    attempt: int = 1
    idempotency_key: str = ""


OnTool: TypeAlias = Callable[[ExternalCall], Awaitable[JSONValue] | JSONValue]
"""Carries out a call; gives an envelope or just the payload. Sync ones get a thread."""


class _Asked(msgspec.Struct, eq=False):
    """A call in the inbox, and how the two who wait for each other do that.

    Attributes:
        is_left: whether whoever asked does not wait any more.
    """

    call: ExternalCall
    scope: trio.CancelScope
    done: trio.Event
    is_started: bool = False
    is_left: bool = False
    envelope: Envelope | None = None


class ToolHook:
    """Asks the program around a run.

    An actor with one inbox, and a task for each call that is out. A task that is done
    takes the next call from the inbox; where there is none, it goes.

    Args:
        on_tool: who is asked; None if nobody is there.
        max_calls: how many calls are out at once.
        call_seconds: how long one may take.
    """

    __slots__ = (
        "_busy",
        "_call_seconds",
        "_inbox",
        "_max_calls",
        "_nursery",
        "_on_tool",
        "_threads",
    )

    def __init__(
        self,
        on_tool: OnTool | None,
        *,
        max_calls: int = MAX_CALLS,
        call_seconds: float = math.inf,
    ) -> None:
        self._on_tool = on_tool
        self._max_calls = max_calls
        self._call_seconds = call_seconds
        self._nursery: trio.Nursery | None = None
        self._threads: trio.CapacityLimiter | None = None
        # Not a channel: nobody waits at its other end. It has one call at most for
        # each who waits here, so it needs no limit. None until one has to wait.
        self._inbox: deque[_Asked] | None = None
        self._busy = 0

    def start(self, nursery: trio.Nursery) -> None:
        """Let its tasks live in the nursery of the run, which they do not outlive."""
        self._nursery = nursery

    async def ask(self, call: ExternalCall) -> Envelope:
        """Have a call carried out.

        Whoever is cancelled here leaves when the call has stopped, not before: what it
        does in its cleanup, or in a thread, is still part of it.
        """
        if self._on_tool is None:
            message = f"nobody is there to carry out the external tool {call.name}"
            await trio.lowlevel.checkpoint()
            return refusal(500, "missing_on_tool", message)
        asked = _Asked(call, trio.CancelScope(), trio.Event())
        self._put(asked)
        try:
            await asked.done.wait()
        except trio.Cancelled:  # noqa: ASYNC103  # see below
            asked.is_left = True
            asked.scope.cancel()
            if asked.is_started:
                # Without an end of its own: Trio waits for threads and cleanup anyway.
                with trio.CancelScope(shield=True, deadline=math.inf):
                    await asked.done.wait()
            if asked.envelope is None:
                raise
            # It was done in spite of the cancel, as a thread always is: that is not
            # to be forgotten. Whoever waits next is cancelled.
        if asked.envelope is None:
            message = f"{call.name} was cancelled"
            return refusal(499, "cancelled", message)  # noqa: ASYNC910  # it has waited
        return asked.envelope  # noqa: ASYNC910

    def _put(self, asked: _Asked) -> None:
        """Give a call to a task of its own, or put it into the inbox."""
        if self._busy < self._max_calls:
            assert self._nursery is not None  # noqa: S101  # started with the run
            self._busy += 1
            self._nursery.start_soon(self._work, asked)
            return
        if self._inbox is None:
            self._inbox = deque()
        self._inbox.append(asked)

    async def _work(self, asked: _Asked) -> None:
        """Answer a call, and then others as long as there are some."""
        try:
            await self._answer(asked)
            while self._inbox:
                await self._answer(self._inbox.popleft())
        finally:
            self._busy -= 1

    async def _answer(self, asked: _Asked) -> None:
        if asked.is_left:
            await trio.lowlevel.checkpoint()
            return  # Nothing has begun.
        asked.is_started = True
        scope, seconds = asked.scope, self._call_seconds
        if seconds != math.inf:
            scope.deadline = trio.current_time() + seconds
        try:
            with scope:
                asked.envelope = await self._carried_out(asked.call)
            if scope.cancelled_caught and not asked.is_left:
                message = f"{asked.call.name} took longer than {seconds:g} seconds"
                asked.envelope = refusal(504, "tool_timeout", message)
        finally:
            asked.done.set()

    async def _carried_out(self, call: ExternalCall) -> Envelope:
        on_tool = self._on_tool
        assert on_tool is not None  # noqa: S101  # `ask` has looked
        try:
            if _is_async(on_tool):
                result = await on_tool(call)
            else:
                result = await trio.to_thread.run_sync(
                    on_tool, call, limiter=self._thread_limiter()
                )
                if isinstance(result, Awaitable):  # A plain function may give one.
                    result = await result
            return envelope_from(result)
        except (Exception, SystemExit) as problem:  # noqa: BLE001  # a named boundary: other people's code
            message = f"{call.name} raised {words_of(problem)}"
            # It may have raised before it ever waited.
            return refusal(500, "tool_handler_error", message)  # noqa: ASYNC910

    def _thread_limiter(self) -> trio.CapacityLimiter:
        if self._threads is None:
            # As many as there are hands, so that no hand waits for a thread.
            self._threads = trio.CapacityLimiter(self._max_calls)
        return self._threads


def _is_async(function: OnTool) -> bool:
    if inspect.iscoroutinefunction(function):
        return True
    # An object that can be called, or a coroutine function with arguments filled in.
    call = getattr(function, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(call)
