"""The standard streams of a confined process: what is printed is lines of the trace.

There is no file behind them, so they have no number (``fileno``) that a library or
another program could write to.
"""

import codecs
import io
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_MAX_PRINTED = 65_536


class Printed(io.TextIOBase):
    """A standard stream whose lines are told, up to a bound.

    Args:
        tell: takes each line, without its end.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._rest = ""
        self._left = _MAX_PRINTED
        self.buffer = _Bytes(self)

    def writable(self) -> bool:
        """It takes text, and that is all it does."""
        return True

    def write(self, text: str) -> int:
        """Take text, and tell the lines that are whole."""
        kept = text[: self._left]
        self._left -= len(kept)
        *lines, self._rest = (self._rest + kept).split("\n")
        for line in lines:
            self._tell_one(line)
        return len(text)

    def finish(self) -> None:
        """Tell what has no end of line, and begin to count anew."""
        self.buffer.finish()
        rest, self._rest = self._rest, ""
        if rest:
            self._tell_one(rest)
        self._left = _MAX_PRINTED

    def _tell_one(self, line: str) -> None:
        # Half a pair is no text that can be sent, and nothing to fail for.
        self._tell(line.encode(self.encoding, self.errors).decode(self.encoding))


class _Bytes(io.BufferedIOBase):
    """The same stream for those who write bytes."""

    def __init__(self, text: Printed) -> None:
        self._text = text
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, data: "ReadableBuffer", /) -> int:
        given = bytes(data)
        self._text.write(self._decoder.decode(given))
        return len(given)

    def finish(self) -> None:
        self._text.write(self._decoder.decode(b"", final=True))
