"""Striking keys out of what a server sends, before anybody sees it.

Servers repeat keys in their errors, and a hostile one can repeat them anywhere. What is
struck out here reaches no event, no error, no trace, no recording and no log. A key
that a server spells out over several deltas is no text before it is put together, and
is not found; one that it spells in the escapes of JSON is.
"""

import re

from gambit_actors.openresponses.sse import SSEFrame
from gambit_actors.providers.endpoints import Secret

CONCEALED = b"[key]"
MOST_CHARACTERS = 500

# A shorter key is none, and would strike letters out of answers.
_LEAST_KEY_CHARACTERS = 8

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
        self._escaped = [_escaped(key) for key in self._texts]

    def bytes(self, data: bytes) -> bytes:
        """The same bytes, the same object even, if there is no key in them."""
        for key in self._keys:
            if key in data:
                data = data.replace(key, CONCEALED)
        if b"\\" in data:
            for escaped in self._escaped:
                if escaped.search(data):
                    data = escaped.sub(CONCEALED, data)
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


def _escaped(key: str) -> re.Pattern[bytes]:
    """A key in JSON, each character as it is or escaped, also in JSON within JSON."""
    return re.compile(b"".join(map(_spellings, key)))


def _spellings(character: str) -> bytes:
    digits = "".join(f"[{digit}{digit.upper()}]" for digit in f"{ord(character):04x}")
    return rf"(?:\\*{re.escape(character)}|\\+u{digits})".encode()
