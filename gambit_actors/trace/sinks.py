"""Where events can go: a list, a file of lines, a log for people or collectors.

Each is a plain callable for a `Tracer`. The file has everything. The log has names,
numbers and outcomes, and no words of a conversation unless it is asked for them.
"""

import os
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from gambit_actors.errors import WireError
from gambit_actors.trace.codec import encode_event
from gambit_actors.trace.events import Lagged, Log, RunEnd, TraceEvent
from gambit_actors.trace.log_lines import StructlogSink
from gambit_actors.trace.tracer import complain

__all__ = ["JsonlSink", "MemorySink", "StructlogSink"]

_EventT = TypeVar("_EventT", bound=TraceEvent)

_FLUSH_BYTES = 64 * 1024
# What may wait for a disk that refuses, before events are left out.
_HELD_BYTES = 1024 * 1024
_OWNER_ONLY = 0o600


class MemorySink:
    """Keeps every event in a list, for tests."""

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []
        # Bound once: this is called for every event of every test run.
        self._append = self.events.append

    def __call__(self, event: TraceEvent) -> None:
        """Keep an event."""
        self._append(event)

    def of(self, kind: type[_EventT]) -> list[_EventT]:
        """The events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]


class JsonlSink:
    """Appends every event to a file, one line each.

    Lines are gathered and written together: when there are enough of them, when a run
    ends, on `flush` and on `close`. A write goes to the system's cache and is not
    waited for to reach the disk, which is why it may happen inside a run.

    A disk that refuses does not stop anybody. It is told once; up to a megabyte is
    held and written when the disk takes it again, and what is left out beyond that is
    counted by a `Lagged` in its place.

    A context manager. The file is made readable for its owner alone, because it has
    whole conversations in it.

    Raises:
        OSError: when it is made, if the file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        is_torn = _ends_in_mid_line(self._path)
        self._file = open(  # noqa: SIM115  (closed by `close`)
            self._path, "ab", buffering=0, opener=_open_private
        )
        # What a process left half written stays a line of its own, and only that one
        # is lost to readers.
        self._held = bytearray(b"\n" if is_torn else b"")
        self._missed = 0
        self._has_told = False

    def __call__(self, event: TraceEvent) -> None:
        """Add the line of an event."""
        if self._file.closed:
            raise ValueError(f"the trace file {self._path} is closed")
        if len(self._held) >= _HELD_BYTES:
            self.flush()
        if len(self._held) >= _HELD_BYTES:
            self._missed += 1
            return
        if self._missed:
            self._tell_lag(event)
        self._held += self._line(event)
        if len(self._held) >= _FLUSH_BYTES or isinstance(event, RunEnd):
            self.flush()

    def flush(self) -> None:
        """Hand what is gathered to the system. Never raises for the disk."""
        try:
            while self._held:
                written = self._file.write(self._held)
                del self._held[: written or 0]
        except OSError as problem:
            self._tell("a trace file cannot be written", problem)

    def close(self) -> None:
        """Write what is gathered and close the file. Again is harmless."""
        if self._file.closed:
            return
        self.flush()
        try:
            self._file.close()
        except OSError as problem:
            self._tell("a trace file cannot be written", problem)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _line(self, event: TraceEvent) -> bytes:
        try:
            return encode_event(event) + b"\n"
        except WireError as problem:
            self._tell("a trace event cannot be written", problem)
            # A stand-in keeps the place, so that a reader sees something was there.
            stand_in = Log(
                run_id=event.run_id,
                time=event.time,
                action_call_id=event.action_call_id,
                parent_action_call_id=event.parent_action_call_id,
                deck_path="",
                level="error",
                message=f"a {event.type} event cannot be written",
            )
            return encode_event(stand_in) + b"\n"

    def _tell_lag(self, event: TraceEvent) -> None:
        lagged = Lagged(run_id=event.run_id, time=event.time, missed=self._missed)
        self._held += encode_event(lagged) + b"\n"
        self._missed = 0

    def _tell(self, what: str, problem: Exception) -> None:
        if not self._has_told:
            self._has_told = True
            complain(what, path=str(self._path), error=str(problem))


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, _OWNER_ONLY)


def _ends_in_mid_line(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return False
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:
        return False  # Not there, or a pipe: there is no line to be in the middle of.
