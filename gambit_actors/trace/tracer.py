"""One event in, every sink told. Telling never waits and never breaks what it tells of.

A sink is a plain function. It runs inside the step that is traced, so it must not
block and cannot await. One that raises is taken off the list: half a trace is better
than half a run.
"""

import contextlib
import sys
import time
from collections.abc import Callable
from typing import TypeAlias

import structlog

from gambit_actors.trace.events import TraceEvent

Sink: TypeAlias = Callable[[TraceEvent], None]
"""Somewhere that events go: a function that neither blocks nor keeps the caller."""

Clock: TypeAlias = Callable[[], float]
"""Tells the time, in seconds since 1970."""


class Tracer:
    """Hands each event to every sink, in the order in which they were added.

    Belongs to one thread, like the Trio run whose steps it tells of.

    Attributes:
        is_on: whether anybody listens. Look at it before making an event that is
            costly to make; `emit` itself needs no such care.
        stamp: gives the time to write on an event that happens now.
    """

    __slots__ = ("_sinks", "is_on", "stamp")

    def __init__(self, *sinks: Sink, clock: Clock = time.time) -> None:
        self.stamp = clock
        # Replaced and never changed, so that a sink may add or remove one while it
        # is being told something.
        self._sinks = sinks
        self.is_on = bool(sinks)

    def add(self, sink: Sink) -> None:
        """Tell one more sink, from the next event on."""
        self._sinks = (*self._sinks, sink)
        self.is_on = True

    def remove(self, sink: Sink) -> None:
        """Tell this sink no more. One that is not there is no mistake."""
        # By identity: two sinks that compare equal are still two.
        self._sinks = tuple(other for other in self._sinks if other is not sink)
        self.is_on = bool(self._sinks)

    def emit(self, event: TraceEvent) -> None:
        """Tell every sink. Never raises for what a sink does, and never waits."""
        for sink in self._sinks:
            try:
                sink(event)
            except Exception as problem:  # noqa: BLE001  (a named boundary)
                self.remove(sink)
                complain(
                    "a trace sink raised and is told no more",
                    sink=getattr(sink, "__qualname__", type(sink).__qualname__),
                    during=event.type,
                    error=f"{type(problem).__name__}: {problem}",
                )


def complain(event: str, **facts: object) -> None:
    """Warn whoever runs this process that a part of the trace is lost. Never raises.

    Goes where the application sends its own logs. One that has not decided gets it on
    stderr: structlog's default is stdout, where the results of a command are.
    """
    # No traceback: pretty ones print local variables, and those are conversations.
    with contextlib.suppress(Exception):
        if structlog.is_configured():
            logger = structlog.get_logger()
        else:
            logger = structlog.wrap_logger(structlog.PrintLogger(sys.stderr))
        logger.warning(event, **facts)
