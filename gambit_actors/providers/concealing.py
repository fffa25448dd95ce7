"""Striking keys out of what a server sends, before anybody sees it.

Servers repeat keys in their errors, and a hostile one can repeat them anywhere. What is
struck out here reaches no event, no error, no trace, no recording and no log.
"""

import re

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
        self._keys = [
            key.reveal().encode()
            for key in keys
            if key is not None and len(key.reveal()) >= _LEAST_KEY_CHARACTERS
        ]

    def bytes(self, data: bytes) -> bytes:
        """The same bytes, the same object even, if there is no key in them."""
        for key in self._keys:
            if key in data:
                data = data.replace(key, CONCEALED)
        return data

    def words(self, text: str) -> str:
        """A server's words as a message of ours may have them: short, on one line."""
        shown = self.bytes(text.encode("utf-8", "replace")).decode()
        shown = _UNPRINTABLE.sub(" ", shown).strip()
        if len(shown) <= MOST_CHARACTERS:
            return shown
        return shown[: MOST_CHARACTERS - 1] + "…"
