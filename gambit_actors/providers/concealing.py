"""Striking keys out of what a server sends, before anybody sees it.

Servers repeat keys in their errors, and a hostile one can repeat them anywhere. What is
struck out here reaches no event, no error, no trace, no recording and no log. A key
that a server spells out over several deltas is no text before it is put together, and
is not found there; one that it spells in the escapes of JSON is.

A server chooses the bytes, so the time it takes is linear in them: each run of
backslashes is read once, whatever stands in front of it or behind it.
"""

import re
from collections.abc import Iterable, Iterator

from gambit_actors.openresponses.sse import SSEFrame
from gambit_actors.providers.endpoints import Secret

CONCEALED = b"[key]"
MOST_CHARACTERS = 500

# A shorter key is none, and would strike letters out of answers.
_LEAST_KEY_CHARACTERS = 8

# A character that is escaped by its number, in JSON or in JSON within JSON, where each
# backslash is doubled. Of other escapes, the backslashes are all that is in the way.
# No key has characters beyond ASCII, as no header has.
_NUMBERED = re.compile(rb"(?<!\\)\\++u00([0-7][0-9a-fA-F])")
_ESCAPE = re.compile(rb"\\++(?:u00([0-7][0-9a-fA-F]))?")

_UNPRINTABLE = re.compile(r"[^\x20-\x7e\xa0-\U0010ffff]+")


class Concealer:
    """Strikes out keys.

    Args:
        keys: as they are sent.
    """

    def __init__(self, *keys: Secret | None) -> None:
        self._texts = [
            key.reveal()
            for key in keys
            if key is not None and len(key.reveal()) >= _LEAST_KEY_CHARACTERS
        ]
        self._keys = [key.encode() for key in self._texts]
        # Of a key that is little but backslashes nothing is left to look for.
        unescaped = [key.replace(b"\\", b"") for key in self._keys]
        self._unescaped = [k for k in unescaped if len(k) >= _LEAST_KEY_CHARACTERS]

    @property
    def has_keys(self) -> bool:
        """Whether there is anything to strike out."""
        return bool(self._texts)

    def found_in(self, data: bytes) -> list[str]:
        """The keys that are in the data, escaped or not."""
        return [
            text
            for text, key in zip(self._texts, self._keys, strict=True)
            if key in data or key in _plain(data)
        ]

    def bytes(self, data: bytes) -> bytes:
        """The same bytes, the same object even, if there is no key in them."""
        for key in self._keys:
            if key in data:
                data = data.replace(key, CONCEALED)
        if b"\\" in data:
            plain = _plain(data)
            for key in self._unescaped:
                if key in plain:
                    data = _struck(key, plain, data)
                    plain = _plain(data)
        return data

    def frame(self, frame: SSEFrame) -> SSEFrame:
        """The same frame, unless there is a key in it."""
        if not self._texts:
            return frame
        data, event = self.bytes(frame.data), self.text(frame.event)
        if data is frame.data and event is frame.event:
            return frame
        return SSEFrame(event, data, frame.id)

    def text(self, text: str) -> str:
        """The same text, unless there is a key in it."""
        for key in self._texts:
            if key in text:
                text = text.replace(key, CONCEALED.decode())
        return text

    def words(self, text: str) -> str:
        """A server's words as a message of ours may have them: short, on one line."""
        shown = self.text(text.encode("utf-8", "replace").decode())
        shown = _UNPRINTABLE.sub(" ", shown).strip()
        if len(shown) <= MOST_CHARACTERS:
            return shown
        return shown[: MOST_CHARACTERS - 1] + "…"


def _plain(data: bytes) -> bytes:
    """What the data says once all escapes are read, as far as a key can be in it."""
    return _NUMBERED.sub(_character, data).replace(b"\\", b"")


def _character(escape: re.Match[bytes]) -> bytes:
    return bytes((int(escape[1], 16),))


def _struck(key: bytes, plain: bytes, data: bytes) -> bytes:
    """Strike a key out of data, where the plain text of the data has it."""
    bounds: list[int] = []
    at = plain.find(key)
    while at >= 0:
        bounds += (at, at + len(key))
        at = plain.find(key, at + len(key))
    kept: list[bytes] = []
    done = 0
    places = _places(bounds, data)
    for start, end in zip(places, places, strict=True):
        kept += (data[done:start], CONCEALED)
        done = end
    return b"".join((*kept, data[done:]))


def _places(offsets: Iterable[int], data: bytes) -> Iterator[int]:
    """Where in the data offsets of its plain text are, in front of all backslashes."""
    escapes = _ESCAPE.finditer(data)
    # Up to ``here`` in the data, there are ``plain`` characters of text.
    here = plain = 0
    escape = next(escapes, None)
    for offset in offsets:
        while escape is not None and plain + escape.start() - here < offset:
            plain += escape.start() - here
            is_numbered = escape[1] is not None and escape[1].lower() != b"5c"
            plain += 1 if is_numbered else 0
            here = escape.end()
            escape = next(escapes, None)
        yield here + offset - plain
