"""Server-sent events: bytes to frames and back.

`SSEDecoder` follows the event stream grammar of the WHATWG HTML standard to the
letter. Any way of cutting the same bytes into chunks gives the same frames, in time
linear in the bytes, and memory stays within one event.

Nearly all traffic has one shape: an ``event`` line, a ``data`` line, a blank line.
Whole runs of that shape are recognised at once; everything else, and every doubt,
goes through `_end_line`, which is the grammar.
"""

from collections.abc import Iterable

import msgspec

from gambit_actors.errors import EventTooLarge
from gambit_actors.openresponses.base import Tagged
from gambit_actors.openresponses.events import StandardEvent, UnknownEvent
from gambit_actors.openresponses.writing import encode

DEFAULT_MAX_EVENT_BYTES = 64 * 1024 * 1024
DONE_DATA = b"[DONE]"
DONE_FRAME = b"data: [DONE]\n\n"
"""The last frame of a stream."""

_BOM = b"\xef\xbb\xbf"
_LINES_PER_EVENT = 3
_RETRY_DIGITS = 4000  # Python refuses to read numbers much longer than that.

# The first line of an event as everybody writes it, and the name it gives.
_EVENT_LINES = {
    f"event: {kind.__struct_config__.tag}".encode(): str(kind.__struct_config__.tag)
    for kind in StandardEvent.__args__
}


class SSEFrame(msgspec.Struct, frozen=True, gc=False):
    """One dispatched event: its name, its data (valid UTF-8), the last id seen."""

    event: str
    data: bytes
    id: str = ""

    @property
    def is_done(self) -> bool:
        """Whether this is the marker after which nothing follows."""
        return self.data == DONE_DATA


class SSEDecoder:
    """Cuts a byte stream into frames.

    Args:
        max_event_bytes: how large one line, or the data of one event, may get.

    Attributes:
        last_event_id: the id a client would reconnect with.
        retry_ms: how long the server asks clients to wait before they reconnect.
    """

    def __init__(self, *, max_event_bytes: int = DEFAULT_MAX_EVENT_BYTES) -> None:
        self.last_event_id = ""
        self.retry_ms: int | None = None
        self._limit = max_event_bytes
        self._has_overflowed = False
        # Nothing is pending: the next byte starts an event. Read before all else.
        self._is_between_events = False
        self._start: bytes | None = b""  # Until it is known whether a BOM leads.
        self._after_cr = False  # A CR ended the last chunk; its LF may follow.
        # Both grow in place: one object, however small the pieces are.
        self._held = bytearray()  # A line without its end.
        self._data = bytearray()  # The data so far, each line with its LF.
        self._event = ""
        self._id = ""

    def feed(self, chunk: bytes | bytearray | memoryview) -> list[SSEFrame]:
        """Take the next bytes, give the frames they finish.

        Raises:
            EventTooLarge: an event outgrew the limit. Frames before it are handed
                out first; the decoder takes nothing more.
        """
        if (
            self._is_between_events
            and isinstance(chunk, bytes)
            and len(chunk) <= self._limit
        ):
            # Bytes split at LF, CR and CRLF and nothing else; text would not.
            lines = chunk.splitlines()
            if len(lines) == _LINES_PER_EVENT and chunk.endswith(b"\n\n"):
                first, second, blank = lines
                if first in _EVENT_LINES and second.startswith(b"data: ") and not blank:
                    data = second[6:]
                    return [
                        SSEFrame(
                            _EVENT_LINES[first],
                            data if data.isascii() else _valid_utf8(data),
                            self.last_event_id,
                        )
                    ]
        return self._feed_any(bytes(chunk))

    def close(self) -> bytes:
        """End the stream; give back what was cut off, which the grammar discards.

        Raises:
            EventTooLarge: the stream has an event that outgrew the limit.
        """
        self._refuse_overflow()
        cut_off = bytes(self._data + self._held) or self._start or b""
        # What was cut off must not become the head of another stream's first event.
        self._data.clear()
        self._held.clear()
        self._event = ""
        return cut_off

    def _feed_any(self, chunk: bytes) -> list[SSEFrame]:
        self._refuse_overflow()
        chunk = self._without_prefix(chunk)
        frames = self._take(chunk) if chunk else []
        self._is_between_events = not (
            self._start is not None
            or self._after_cr
            or self._held
            or self._is_inside_event()
            or self._has_overflowed
        )
        if not frames:
            self._refuse_overflow()
        return frames

    def _without_prefix(self, chunk: bytes) -> bytes:
        """Drop a leading BOM, or the LF of a CRLF that was cut in two."""
        if self._start is not None:
            chunk = self._start + chunk
            if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
                self._start = chunk
                return b""
            self._start = None
            chunk = chunk.removeprefix(_BOM)
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        return chunk

    def _take(self, chunk: bytes) -> list[SSEFrame]:
        """Cut into lines, hold on to the last if it has no end."""
        if self._held:
            if b"\n" not in chunk and b"\r" not in chunk:
                self._hold(chunk)
                return []
            # One copy per line, however many chunks it came in.
            self._held += chunk
            chunk = bytes(self._held)
            self._held.clear()
        lines = chunk.splitlines()
        partial = b"" if chunk.endswith((b"\n", b"\r")) else lines.pop()
        self._after_cr = chunk.endswith(b"\r")
        frames = self._frames(lines, is_small=len(chunk) <= self._limit)
        if partial:
            self._hold(partial)
        return frames

    def _hold(self, piece: bytes) -> None:
        self._held += piece
        if len(self._held) > self._limit:
            self._overflow()

    def _refuse_overflow(self) -> None:
        if self._has_overflowed:
            raise EventTooLarge(self._limit)

    def _overflow(self) -> None:
        self._has_overflowed = True
        self._held.clear()
        self._data.clear()

    def _frames(self, lines: list[bytes], *, is_small: bool) -> list[SSEFrame]:
        frames: list[SSEFrame] = []
        position = 0
        if self._is_inside_event():
            # In the middle of an event: by the grammar up to its end.
            position = lines.index(b"") + 1 if b"" in lines else len(lines)
            self._end_lines(lines[:position], frames)
        if is_small:
            run = (len(lines) - position) // _LINES_PER_EVENT * _LINES_PER_EVENT
            plain = self._plain_frames(lines[position : position + run])
            if plain is not None:
                frames += plain
                position += run
        self._end_lines(lines[position:], frames)
        return frames

    def _is_inside_event(self) -> bool:
        """Whether a line has been read that the next blank line makes use of."""
        return bool(self._data or self._event) or self._id != self.last_event_id

    def _plain_frames(self, lines: list[bytes]) -> list[SSEFrame] | None:
        """The frames of lines that are event, data, blank over and over; or None."""
        if any(lines[2::3]):
            return None
        last_id = self.last_event_id
        try:
            frames = [
                SSEFrame(_EVENT_LINES[first], second[6:], last_id)
                for first, second in zip(lines[0::3], lines[1::3], strict=True)
                if second.startswith(b"data: ")
            ]
        except KeyError:
            return None
        if len(frames) * _LINES_PER_EVENT != len(lines):
            return None
        return [
            frame
            if frame.data.isascii()
            else SSEFrame(frame.event, _valid_utf8(frame.data), last_id)
            for frame in frames
        ]

    def _end_lines(self, lines: Iterable[bytes], frames: list[SSEFrame]) -> None:
        for line in lines:
            if self._has_overflowed:
                return
            frame = self._end_line(line)
            if frame is not None:
                frames.append(frame)

    def _end_line(self, line: bytes) -> SSEFrame | None:
        """Interpret one line, as the standard's section 9.2.6 has it."""
        if not line:
            return self._dispatch()
        if len(line) > self._limit:
            self._overflow()
            return None
        name, _, value = line.partition(b":")
        # "If value starts with a U+0020 SPACE character, remove it": one, not all.
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data += value
            self._data += b"\n"
            if len(self._data) > self._limit:
                self._overflow()
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) <= _RETRY_DIGITS:
            self.retry_ms = int(value)
        # Anything else is ignored, a comment (an empty name) included.
        return None

    def _dispatch(self) -> SSEFrame | None:
        self.last_event_id = self._id
        event, self._event = self._event, ""
        if not self._data:
            return None  # No data line: no event, not even an empty one.
        del self._data[-1]  # The last LF is not part of the data.
        data = _valid_utf8(bytes(self._data))
        self._data.clear()
        return SSEFrame(event or "message", data, self.last_event_id)


def encode_event(event: StandardEvent | UnknownEvent) -> bytes:
    """Write one event as the bytes of one frame."""
    line = _PREFIXES.get(type(event))
    if line is None:
        line = _prefix(event)
    return line + encode(event) + b"\n\n"


def _prefix(event: Tagged) -> bytes:
    name = event.type
    if not name.isprintable():
        # A line break in a type we do not know would end the line, and what follows
        # would be taken for a frame. The type still stands in the data.
        return b"data: "
    return f"event: {name}\ndata: ".encode()


_PREFIXES: dict[type, bytes] = {
    kind: f"event: {kind.__struct_config__.tag}\ndata: ".encode()
    for kind in StandardEvent.__args__
}


def _valid_utf8(data: bytes) -> bytes:
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace").encode()
    return data
