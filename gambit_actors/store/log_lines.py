"""The lines of a log: what is around each entry, and how damage is told from a crash.

::

    {"seq":0,"ts":1763494400.123456,"format":1,"writer":"w","more":1,
     "entry":{...},"crc":"0a1b2c3d"}       (on one line)

Lines that were appended together are a batch; all but the last say in ``more`` how many
of it follow. ``crc`` is the CRC-32 of the line up to there, begun with the CRC of the
line before, so no line can be left out, moved or put in without the next one knowing.

A process that dies leaves a tail: part of a line, zeros, or part of a batch. That is
dropped and said. A line that has its end was once reported as kept, so anything wrong
with such a one is `CorruptLog`, wherever it stands: an output that vanished would be
made again.

Functions of bytes; nothing here knows files or clocks.
"""

from collections.abc import Collection, Sequence
from zlib import crc32

import msgspec

from gambit_actors.errors import CorruptLog, WireError
from gambit_actors.run.entries import Entry, RunEnded
from gambit_actors.run.entry_codec import decode_entry, encode_entry
from gambit_actors.run.secrets import without_secrets

FORMAT = 1
"""The form that is written here, and the latest that is read."""

MAX_LINE_BYTES = 64 * 2**20
"""The longest line that is written or read."""

_CRC_KEY = b',"crc":"'
_CRC_END = b'"}'
# What a line ends with: the key, eight digits, the end.
_ENDING_BYTES = len(_CRC_KEY) + 8 + len(_CRC_END)


class LogLine(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where an entry stands.

    Attributes:
        offset: where its line begins, in bytes.
        seq: which entry of the log it is, from 0.
        ts: when it was written, in seconds since 1970.
        writer: who took the log over with this line; None if nobody did.
    """

    offset: int
    seq: int
    ts: float
    writer: str | None


class Torn(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a crash left unfinished at the end of a log.

    Attributes:
        offset: where it begins.
        bytes_dropped: how much there is from there on.
        reason: what it is.
    """

    offset: int
    bytes_dropped: int
    reason: str


class LogContents(msgspec.Struct, frozen=True, kw_only=True):
    """What there is in a log.

    Attributes:
        entries: all of them, in order.
        lines: the line of each.
        end_offset: where the last of them ends.
        torn: what was left out at the end; None if there was nothing.
        crc: the CRC that the next line begins with.
        writer: who wrote last.
        lacks_newline: whether the last line is whole but for its line break.
    """

    entries: list[Entry]
    lines: list[LogLine]
    end_offset: int
    torn: Torn | None
    crc: int
    writer: str | None
    lacks_newline: bool

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, so that nobody is at it."""
        return bool(self.entries) and isinstance(self.entries[-1], RunEnded)


class LineWriter:
    """Makes the lines of a log, batch by batch.

    Args:
        writer: who writes; said in the first line that is made.
        seq: of the next line.
        crc: of the line before that.
        ts: of the line before that. Times never go backwards.
    """

    __slots__ = ("_crc", "_seq", "_ts", "_writer")

    def __init__(
        self, writer: str, *, seq: int = 0, crc: int = 0, ts: float = 0.0
    ) -> None:
        self._writer: str | None = writer
        self._seq = seq
        self._crc = crc
        self._ts = ts

    def batch(
        self, entries: Sequence[Entry], ts: float, *, secrets: Collection[str] = ()
    ) -> bytes:
        """Give the lines of entries that are to be kept together.

        Args:
            entries: what is written down.
            ts: when, in seconds since 1970.
            secrets: texts that are struck out.

        Raises:
            WireError: one of them cannot be written. The next batch is made as if
                this had not been asked for.
        """
        seq, crc, ts = self._seq, self._crc, max(self._ts, ts)
        stamp, marks = b',"ts":%.6f' % ts, self._marks()
        more = len(entries)
        lines: list[bytes] = []
        for entry in entries:
            more -= 1
            due = b',"more":%d' % more if more else b""
            data = encode_entry(entry)
            if secrets:
                data = without_secrets(data, secrets)
            head = b"".join(
                (b'{"seq":', b"%d" % seq, stamp, marks, due, b',"entry":', data)
            )
            if len(head) > MAX_LINE_BYTES - _ENDING_BYTES:
                raise WireError("", f"it is longer than {MAX_LINE_BYTES} bytes")
            crc = crc32(head, crc)
            lines += (head, b',"crc":"%08x"}\n' % crc)
            seq += 1
            marks = b""
        self._seq, self._crc, self._ts, self._writer = seq, crc, ts, None
        return b"".join(lines)

    def _marks(self) -> bytes:
        """What the first line of a writer says besides."""
        if self._writer is None:
            return b""
        format_ = b',"format":%d' % FORMAT if self._seq == 0 else b""
        return format_ + b',"writer":' + msgspec.json.encode(self._writer)


def read_lines(data: bytes, *, path: str = "") -> LogContents:
    """Read a log from its bytes.

    Args:
        data: all of it.
        path: what an error is to call it.

    Raises:
        CorruptLog: something is wrong that no crash leaves behind.
    """
    reader = LineReader(path)
    reader.feed(data)
    return reader.finish()


class _Line(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A line as it is written, without its checksum."""

    seq: int
    ts: float
    entry: msgspec.Raw
    format: int | None = None
    writer: str | None = None
    more: int = 0


class _Formatted(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """As much of a line as can be relied on in formats to come."""

    format: int = 0


class _Mark(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The end of a batch, to come back to.

    Attributes:
        count: how many entries there are up to here.
    """

    count: int
    offset: int
    crc: int
    writer: str | None


_LINE = msgspec.json.Decoder(_Line)
_FORMATTED = msgspec.json.Decoder(_Formatted)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class LineReader:
    """Reads a log from chunks of its bytes, cut anywhere.

    Args:
        path: what an error is to call it.
    """

    def __init__(self, path: str = "") -> None:
        self._path = path
        self._buffer = bytearray()
        self._entries: list[Entry] = []
        self._lines: list[LogLine] = []
        self._offset = 0
        self._crc = 0
        self._writer: str | None = None
        self._due = 0  # How many lines of the batch are still to come.
        self._mark = _Mark(count=0, offset=0, crc=0, writer=None)

    def feed(self, chunk: bytes) -> None:
        """Take in some bytes.

        Raises:
            CorruptLog: see `read_lines`.
        """
        buffer, start, searched = self._buffer, 0, len(self._buffer)
        buffer += chunk
        while (end := buffer.find(b"\n", max(start, searched))) >= 0:
            self._take(bytes(memoryview(buffer)[start:end]))
            self._offset += 1
            self._end_line()
            start = end + 1
        del buffer[:start]
        if len(buffer) > MAX_LINE_BYTES:
            raise self._corrupt(f"it is longer than {MAX_LINE_BYTES} bytes")

    def finish(self) -> LogContents:
        """Say what there is, now that nothing more comes.

        Raises:
            CorruptLog: see `read_lines`.
        """
        size = self._offset + len(self._buffer)
        tail = bytes(self._buffer.rstrip(b"\0"))
        is_whole = _is_object(tail)
        if is_whole:
            self._take(tail)
            self._end_line()
        elif _is_object(tail[:-1]):
            # A line is written from left to right, and this one has its end.
            raise self._corrupt("it does not end in a line break")
        mark = self._mark
        del self._entries[mark.count :], self._lines[mark.count :]
        return LogContents(
            entries=self._entries,
            lines=self._lines,
            end_offset=mark.offset,
            torn=self._torn(size, has_part=bool(tail) and not is_whole),
            crc=mark.crc,
            writer=mark.writer,
            lacks_newline=is_whole and not self._due,
        )

    def _torn(self, size: int, *, has_part: bool) -> Torn | None:
        offset = self._mark.offset
        if size == offset:
            return None
        if has_part:
            reason = "part of a line"
        elif self._due:
            reason = f"{self._due} more lines of a batch were to come"
        else:
            reason = "zeros"
        return Torn(offset=offset, bytes_dropped=size - offset, reason=reason)

    def _take(self, line: bytes) -> None:
        """Take in a line, without its line break."""
        found = self._checked(line)
        if found.seq != len(self._lines):
            raise self._corrupt(f"its seq is {found.seq}, not {len(self._lines)}")
        if found.more < 0 or (self._due and found.more != self._due - 1):
            raise self._corrupt("it is not the next line of its batch")
        try:
            entry = decode_entry(found.entry)
        except WireError as problem:
            raise self._corrupt(f"its entry cannot be read: {problem}") from problem
        self._entries.append(entry)
        self._lines.append(
            LogLine(
                offset=self._offset, seq=found.seq, ts=found.ts, writer=found.writer
            )
        )
        self._due = found.more
        self._writer = found.writer or self._writer
        self._offset += len(line)

    def _checked(self, line: bytes) -> _Line:
        """Give what a line says, if its checksum is right."""
        if not self._lines:
            self._check_format(line)
        head, ending = line[:-_ENDING_BYTES], line[-_ENDING_BYTES:]
        crc = crc32(head, self._crc)
        if ending != b"%b%08x%b" % (_CRC_KEY, crc, _CRC_END):
            raise self._corrupt("its checksum is missing or wrong")
        try:
            found = _LINE.decode(line)
        except _UNREADABLE as problem:
            raise self._corrupt(f"it is not a line of a log: {problem}") from problem
        self._crc = crc
        return found

    def _check_format(self, line: bytes) -> None:
        # Asked before anything else: what is written later may have other checksums.
        try:
            format_ = _FORMATTED.decode(line).format
        except _UNREADABLE:
            return  # It is not even JSON, and will be refused for that.
        if format_ != FORMAT:
            reason = f"the log is of format {format_}; this version reads {FORMAT}"
            raise self._corrupt(reason)

    def _end_line(self) -> None:
        if not self._due:
            self._mark = _Mark(
                count=len(self._lines),
                offset=self._offset,
                crc=self._crc,
                writer=self._writer,
            )

    def _corrupt(self, reason: str) -> CorruptLog:
        return CorruptLog(
            self._path, line=len(self._lines) + 1, offset=self._offset, reason=reason
        )


def _is_object(text: bytes) -> bool:
    """Whether this is a JSON object with its end; the beginning of one never is."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except _UNREADABLE:
        return False
