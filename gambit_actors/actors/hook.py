"""The one way to tools that the program around a run carries out.

All external calls of a run go through the inbox of one `ToolHook`, which asks the
program's ``on_tool``. It limits how many are asked at once and how long each may take,
and turns whatever comes back, an error included, into an envelope.
"""

import inspect
import math
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec
import trio

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.envelopes import Envelope, envelope_from, refusal

MAX_CALLS = 100


class ExternalCall(msgspec.Struct, frozen=True, kw_only=True):
    """What ``on_tool`` is told about a call."""

    name: str
    args: dict[str, JSONValue]
    run_id: str
    action_call_id: str
    deck_path: str
    parent_action_call_id: str | None = None


OnTool: TypeAlias = Callable[[ExternalCall], Awaitable[JSONValue] | JSONValue]
"""Carries out a call; gives an envelope or just the payload. Sync ones get a thread."""


class _Asked(msgspec.Struct, eq=False):
    """A call in the inbox, and how the two who wait for each other do that."""

    call: ExternalCall
    scope: trio.CancelScope
    done: trio.Event
    is_started: bool = False
    envelope: Envelope | None = None


class ToolHook:
    """Asks the program around a run. One task, started with the first call.

    Args:
        on_tool: who is asked; None if nobody is there.
        max_calls: how many calls are out at once.
        call_seconds: how long one may take.
    """

    def __init__(
        self,
        on_tool: OnTool | None,
        *,
        max_calls: int = MAX_CALLS,
        call_seconds: float = float("inf"),
    ) -> None:
        self._on_tool = on_tool
        self._limiter = trio.CapacityLimiter(max_calls)
        self._threads = trio.CapacityLimiter(max_calls)
        self._call_seconds = call_seconds
        # Without a limit of its own: there is one call at most for each who waits.
        self._send, self._inbox = trio.open_memory_channel[_Asked](math.inf)
        self._is_async = on_tool is not None and _is_async(on_tool)

    async def run(self) -> None:
        """Take calls until the inbox is closed; they run side by side."""
        async with trio.open_nursery() as nursery:
            async for asked in self._inbox:
                nursery.start_soon(self._answer, asked)

    def close(self) -> None:
        """Take no more calls."""
        self._send.close()

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
        self._send.send_nowait(asked)
        try:
            await asked.done.wait()
        except trio.Cancelled:
            asked.scope.cancel()
            if asked.is_started:
                # Without an end of its own: Trio waits for threads and cleanup anyway.
                with trio.CancelScope(shield=True, deadline=math.inf):
                    await asked.done.wait()
            raise
        if asked.envelope is None:
            message = f"{call.name} was cancelled"
            return refusal(499, "cancelled", message)
        return asked.envelope

    async def _answer(self, asked: _Asked) -> None:
        if asked.scope.cancel_called:
            await trio.lowlevel.checkpoint()
            return  # Whoever asked has left, and nothing has begun.
        asked.is_started = True
        try:
            with asked.scope:
                async with self._limiter:
                    with trio.move_on_after(self._call_seconds) as limit:
                        asked.envelope = await self._asked(asked.call)
                    if limit.cancelled_caught:
                        name, seconds = asked.call.name, self._call_seconds
                        message = f"{name} took longer than {seconds:g} seconds"
                        asked.envelope = refusal(504, "tool_timeout", message)
        finally:
            asked.done.set()

    async def _asked(self, call: ExternalCall) -> Envelope:
        assert self._on_tool is not None  # noqa: S101  # `ask` has looked
        try:
            if self._is_async:
                result = await self._on_tool(call)
            else:
                result = await trio.to_thread.run_sync(
                    self._on_tool, call, limiter=self._threads
                )
        except Exception as problem:  # noqa: BLE001  # a named boundary: other people's code
            message = f"{call.name} raised {type(problem).__name__}: {problem}"
            # It may have raised before it ever waited.
            return refusal(500, "tool_handler_error", message)  # noqa: ASYNC910
        return envelope_from(result)


def _is_async(function: OnTool) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004  # an object may be one
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
