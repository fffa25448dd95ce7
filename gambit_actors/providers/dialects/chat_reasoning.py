"""Reasoning that a server of Chat Completions wants back, kept under seal.

OpenRouter sends ``reasoning_details``: texts, summaries and encrypted blocks, with
signatures. They have to come back in the assistant's message as they were. Google puts
signatures on tool calls (``extra_content``). A few servers want the bare text back. All
of it stands in one seal per answer, which only a server of the same flavour is sent.
"""

from collections.abc import Sequence

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.dialects.chat_flavours import ChatFlavour
from gambit_actors.providers.dialects.sealing import seal, unseal

_JSONObject = dict[str, JSONValue]

# The kinds of details that come in pieces, and the key under which they grow.
_GROWING = {"reasoning.text": "text", "reasoning.summary": "summary"}


class Details:
    """The details of an answer's reasoning, put together from their pieces."""

    def __init__(self) -> None:
        self._entries: list[_JSONObject] = []

    def __bool__(self) -> bool:
        return bool(self._entries)

    def take(self, entries: list[JSONValue]) -> list[tuple[bool, str]]:
        """Take more of them; give the words in it, and whether they sum up."""
        words = []
        for entry in entries:
            if not isinstance(entry, dict):
                continue
            kind = entry.get("type")
            grows = _GROWING.get(kind) if isinstance(kind, str) else None
            said = entry.get(grows) if grows else None
            if isinstance(said, str) and said:
                words.append((grows == "summary", said))
            self._add(entry, grows)
        return words

    def whole(self) -> list[JSONValue]:
        """All of them, each in one piece."""
        return list(self._entries)

    def _add(self, entry: _JSONObject, grows: str | None) -> None:
        last = self._entries[-1] if self._entries else None
        if (
            grows is None
            or last is None
            or last.get("type") != entry["type"]
            or last.get("index") != entry.get("index")
        ):
            self._entries.append(dict(entry))
            return
        before, more = last.get(grows), entry.get(grows)
        last.update((key, value) for key, value in entry.items() if value is not None)
        if isinstance(before, str) and isinstance(more, str):
            last[grows] = before + more


def sealed(
    flavour: ChatFlavour,
    *,
    details: Sequence[JSONValue],
    text: str,
    calls: Sequence[JSONValue],
) -> str | None:
    """Seal what has to go back; None if nothing has.

    Args:
        flavour: whose seal it is.
        details: of the reasoning.
        text: of the reasoning; kept only for a server that wants it back.
        calls: what goes with each call of the answer, in their order, which stays
            when ids are changed.
    """
    value: _JSONObject = {}
    if details:
        value["reasoning_details"] = list(details)
    if text and flavour.reasoning_back is not None:
        value["text"] = text
    if any(extra is not None for extra in calls):
        value["calls"] = list(calls)
    return seal(_seal_name(flavour), value) if value else None


def unsealed(flavour: ChatFlavour, text: str | None) -> _JSONObject | None:
    """Open what a server of this flavour wants back; None if it is another's."""
    value = unseal(_seal_name(flavour), text)
    return value if isinstance(value, dict) else None


def _seal_name(flavour: ChatFlavour) -> str:
    return f"chat.{flavour.name}"
