"""Provider frames: a faithful record of what arrived, one entry per streamed event.

Everything a provider sends becomes a `ProviderEvent`, in order, with the time it
came, whether it is an event, the ``[DONE]`` marker or not JSON at all. The payload
is kept, on one line. From a text delta a `TextDeltaFrame` is derived as well, for
whoever only wants the words.

`ProviderFrames` reads bytes and is told the time; it has no clock.
"""

import json
from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.codec import OTHER_NAMES, decode_event
from gambit_actors.openresponses.events import (
    Event,
    MalformedEvent,
    OutputTextDelta,
)
from gambit_actors.openresponses.reading import Mismatch, parse_json
from gambit_actors.openresponses.sse import (
    DEFAULT_MAX_EVENT_BYTES,
    SSEDecoder,
    SSEFrame,
)

# Not None: msgspec can write an optional raw document but not read it back.
_NO_DATA = msgspec.Raw(b"")
# A document may be this much deeper where it is read back than where it came in.
_SPARE_DEPTH = 200


class _Frame(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"
):
    seq: int
    time: float


class ProviderEvent(_Frame, frozen=True, kw_only=True, tag="provider_event"):
    """One server-sent event as it arrived.

    Attributes:
        provider: who sent it.
        status: ``event`` for JSON, ``done`` for the marker, else ``invalid_json``.
        event_name: what the ``event`` line said; ``message`` where there was none.
        data: the JSON document, for an event, on one line; else empty.
        raw: the payload as text, for what is not JSON.
        errors: what is wrong with it, one sentence each.
    """

    provider: str
    status: Literal["event", "done", "invalid_json"]
    event_name: str
    data: msgspec.Raw = _NO_DATA
    raw: str | None = None
    errors: tuple[str, ...] = ()

    def payload(self) -> JSONValue:
        """The JSON document, parsed; None for what is not JSON."""
        return parse_json(bytes(self.data)) if self.status == "event" else None


class TextDeltaFrame(_Frame, frozen=True, kw_only=True, tag="output_text_delta"):
    """Text, derived from the provider event just before it."""

    delta: str


ProviderFrame: TypeAlias = ProviderEvent | TextDeltaFrame


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """What one server-sent event came to: its frames, and the event to act on.

    ``event`` is None for the marker, and for anything behind it.
    """

    frames: tuple[ProviderFrame, ...]
    event: Event | None


class FrameRecords:
    """Makes records of frames, for a stream of any dialect.

    Args:
        provider: the name the records carry.
    """

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._next_seq = 0
        self._is_done = False

    @property
    def is_done(self) -> bool:
        """Whether the marker has been seen."""
        return self._is_done

    def of(
        self, frame: SSEFrame, events: Sequence[Event], time: float
    ) -> tuple[ProviderFrame, ...]:
        """Record a frame, and the text in the events that it came to."""
        errors: tuple[str, ...] = ("arrived after [DONE]",) if self._is_done else ()
        if frame.is_done:
            self._is_done = True
            return (self._record(frame, time, status="done", errors=errors),)
        told = tuple(e.problem for e in events if isinstance(e, MalformedEvent))
        # A reader has its own view of what is an event, and none behind the end. The
        # record says what came, and so is asked of the data alone.
        try:
            data = _one_line(frame.data)
        except Mismatch as problem:
            errors += told or (problem.problem,)
            record = self._record(frame, time, status="invalid_json", errors=errors)
        else:
            record = self._record(
                frame, time, status="event", data=data, errors=errors + told
            )
        if self._is_done:
            return (record,)
        texts = [
            TextDeltaFrame(seq=self._seq(), time=time, delta=event.delta)
            for event in events
            if isinstance(event, OutputTextDelta)
        ]
        return (record, *texts)

    def _record(
        self,
        frame: SSEFrame,
        time: float,
        *,
        status: Literal["event", "done", "invalid_json"],
        errors: tuple[str, ...],
        data: bytes = b"",
    ) -> ProviderEvent:
        return ProviderEvent(
            seq=self._seq(),
            time=time,
            provider=self._provider,
            status=status,
            event_name=frame.event,
            data=msgspec.Raw(data) if data else _NO_DATA,
            raw=None if data else frame.data.decode(),
            errors=errors,
        )

    def _seq(self) -> int:
        self._next_seq += 1
        return self._next_seq - 1


class ProviderFrames:
    """Reads a provider's stream into frames.

    Args:
        provider: the name the frames carry.
        max_event_bytes: see `SSEDecoder`.
    """

    def __init__(
        self, provider: str, *, max_event_bytes: int = DEFAULT_MAX_EVENT_BYTES
    ) -> None:
        self._decoder = SSEDecoder(max_event_bytes=max_event_bytes)
        self._records = FrameRecords(provider)

    @property
    def is_done(self) -> bool:
        """Whether the marker has been seen, so that reading can stop."""
        return self._records.is_done

    def feed(self, chunk: bytes, time: float) -> list[Arrival]:
        """Take bytes that came at a time, give what they finish.

        Raises:
            EventTooLarge: see `SSEDecoder.feed`.
        """
        return [self._arrival(frame, time) for frame in self._decoder.feed(chunk)]

    def close(self) -> bytes:
        """End the stream; give back what was cut off."""
        return self._decoder.close()

    def _arrival(self, frame: SSEFrame, time: float) -> Arrival:
        is_late = self._records.is_done
        if frame.is_done:
            return Arrival(frames=self._records.of(frame, (), time), event=None)
        event = decode_event(frame.data)
        record, *texts = self._records.of(frame, (event,), time)
        misnamed = _misnamed(frame, event)
        if misnamed and isinstance(record, ProviderEvent):
            errors = (*record.errors, misnamed)
            record = msgspec.structs.replace(record, errors=errors)
        return Arrival(frames=(record, *texts), event=None if is_late else event)


def _one_line(document: bytes) -> bytes:
    """A JSON document that can stand in a log of one record a line.

    A line break in JSON is white space between two tokens. Left in, what a provider
    sends behind it would pass for a record of our own. A document that only our
    careful reader can read is written again, so that every reader can.

    Raises:
        Mismatch: it is no JSON, or too deep to be read back.
    """
    value = parse_json(document)
    if document.count(b"[") + document.count(b"{") > _SPARE_DEPTH:
        parse_json(b"[" * _SPARE_DEPTH + document + b"]" * _SPARE_DEPTH)
    document = document.replace(b"\n", b" ")  # A frame's data has no other breaks.
    if b"\\u" not in document:
        return document  # Only an escape can be text to us and to nobody else.
    try:
        msgspec.json.decode(document, type=msgspec.Raw)
    except msgspec.DecodeError:
        # Not with msgspec, which writes no number of more than 64 bits.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return document


def _misnamed(frame: SSEFrame, event: Event) -> str | None:
    if isinstance(event, MalformedEvent):
        return None
    # A stream without event lines is common; a reasoning event has two names.
    if OTHER_NAMES.get(frame.event, frame.event) in (event.type, "message"):
        return None
    return f"the event line says {frame.event}, the data {event.type}"
