"""Content blocks of one streamed message, and the items they become.

Blocks may be open side by side. A block is known by its index, which is used once: what
comes for an index that is done is told and ignored, so that a frame sent twice does not
make a call twice.
"""

from collections.abc import Callable, Hashable

import msgspec

from gambit_actors.openresponses.base import Extra, JSONValue
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.items import ItemStatus
from gambit_actors.openresponses.parts import (
    Annotation,
    UnknownAnnotation,
    UrlCitation,
)
from gambit_actors.openresponses.writer import ResponseWriter
from gambit_actors.providers.dialects.anthropic_frames import (
    ContentBlock,
    Delta,
    Frame,
)
from gambit_actors.providers.dialects.sealing import seal

NAME = "anthropic"

_MESSAGE = "message"
# What a delta must be of, if its block was announced, and makes it be if it was not.
_KINDS = {
    "text_delta": "text",
    "citations_delta": "text",
    "input_json_delta": "tool_use",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
}


class _Block:
    """A block that is open."""

    def __init__(self, index: int, begun: ContentBlock) -> None:
        self.key: Hashable = ("block", index)
        self.kind = begun.type
        self.begun = begun
        self.text: list[str] = []
        self.signature: list[str] = []
        self.citations: list[JSONValue] = []


class Blocks:
    """The blocks of one message.

    Args:
        writer: has been started.
        note: takes what the server did wrong.

    Attributes:
        has_lost_a_call: whether arguments came for a call that nobody named.
    """

    def __init__(self, writer: ResponseWriter, note: Callable[[str], None]) -> None:
        self.writer = writer
        self.has_lost_a_call = False
        self._note = note
        self._open: dict[int, _Block] = {}
        self._open_texts = 0  # Asked for each block, of which there may be many.
        self._seen: set[int] = set()
        self._call_ids: set[str] = set()
        self._has_message = False

    @property
    def has_open(self) -> bool:
        """Whether a block has not been stopped."""
        return bool(self._open)

    def take(self, fields: Frame) -> list[Event] | None:
        """Take a frame about a block; None if it is of a kind that is not known."""
        index = fields.index or 0
        if fields.type == "content_block_start":
            return self._start(index, fields.content_block or ContentBlock())
        if fields.type == "content_block_delta":
            return self._delta(index, fields.delta or Delta())
        block = self._open.pop(index, None)
        if block is None:
            self._note(f"block {index} was stopped without having been started")
            return []
        if block.kind == "text":
            self._open_texts -= 1
        return self._end(block)

    def stop_all(self) -> list[Event]:
        """Stop what the server never stopped; a call of that kind is only half."""
        events: list[Event] = []
        for index, block in self._open.items():
            self._note(f"block {index} was never stopped")
            status: ItemStatus = (
                "incomplete" if block.kind == "tool_use" else "completed"
            )
            events += self._end(block, status=status) or []
        self._open.clear()
        self._open_texts = 0
        return events

    def end_message(self) -> list[Event]:
        """End the message that texts in a row share, once all of them have stopped."""
        if not self._has_message or self._open_texts:
            return []
        self._has_message = False
        return list(self.writer.stop(_MESSAGE))

    def _start(self, index: int, begun: ContentBlock) -> list[Event] | None:
        if index in self._seen:
            self._note(f"block {index} was started again: ignored")
            return []
        if not begun.type:
            self._note(f"block {index} was started without being told what it is")
            return []
        self._seen.add(index)
        block = self._open[index] = _Block(index, begun)
        match begun.type:
            case "text":
                events = self._start_text(block)
            case "tool_use":
                events = self._start_call(index, block)
            case "thinking" | "redacted_thinking":
                events = self.end_message()
                events += self.writer.start_reasoning(block.key)
                events += self._say(block, begun.thinking)
                block.signature += [begun.signature or ""]
            case _:
                return None
        return events

    def _start_text(self, block: _Block) -> list[Event]:
        events: list[Event] = []
        self._open_texts += 1
        if not self._has_message:
            self._has_message = True
            events += self.writer.start_message(_MESSAGE)
        events += self.writer.start_text(block.key, message=_MESSAGE)
        block.citations += block.begun.citations or []
        return events + self._say(block, block.begun.text)

    def _start_call(self, index: int, block: _Block) -> list[Event]:
        name, call_id = block.begun.name or "", block.begun.id or ""
        if not name:
            self._note(f"block {index} calls a tool without a name")
        if not call_id or call_id in self._call_ids:
            self._note(f"block {index} has no id of its own: {call_id!r}")
            call_id = f"{call_id or 'toolu'}_{index}"
        self._call_ids.add(call_id)
        events = self.end_message()
        events += self.writer.start_tool_call(block.key, call_id=call_id, name=name)
        return events

    def _delta(self, index: int, delta: Delta) -> list[Event] | None:
        kind = _KINDS.get(delta.type)
        events: list[Event] = []
        if index not in self._seen and kind is not None:
            self._note(f"block {index} was never started")
            if kind == "tool_use":
                self.has_lost_a_call = True
                return []
            events += self._start(index, ContentBlock(type=kind)) or []
        block = self._open.get(index)
        if block is None:
            self._note(f"{delta.type} for block {index}, which is not open: ignored")
            return []
        if kind is None or block.kind not in _KINDS.values():
            return None
        if block.kind != kind:
            self._note(f"{delta.type} for block {index}, which is {block.kind}")
            return []
        return events + self._add(block, delta)

    def _add(self, block: _Block, delta: Delta) -> list[Event]:
        match delta.type:
            case "text_delta":
                return self._say(block, delta.text)
            case "input_json_delta":
                return self._say(block, delta.partial_json)
            case "thinking_delta":
                return self._say(block, delta.thinking)
            case "signature_delta":
                block.signature.append(delta.signature or "")
            case _:
                block.citations.append(delta.citation)
        return []

    def _say(self, block: _Block, text: str | None) -> list[Event]:
        if not text:
            return []
        block.text.append(text)
        return list(self.writer.add(block.key, text))

    def _end(
        self, block: _Block, *, status: ItemStatus = "completed"
    ) -> list[Event] | None:
        events: list[Event] = []
        match block.kind:
            case "text":
                length = len("".join(block.text))
                for citation in block.citations:
                    note = _annotation(citation, length)
                    if note is not None:
                        events += self.writer.annotate(block.key, note)
                return events + list(self.writer.stop(block.key))
            case "tool_use":
                if not block.text and status == "completed":
                    # No delta at all: the input is what the block began with.
                    events += self.writer.add(block.key, _arguments(block.begun.input))
                return events + list(self.writer.stop(block.key, status=status))
            case "thinking" | "redacted_thinking":
                sealed = _sealed(block)
                if sealed is None:
                    self._note("reasoning came without a signature")
                return list(self.writer.stop(block.key, encrypted_content=sealed))
            case _:
                return None


def _arguments(value: JSONValue) -> str:
    """The input of a call that came whole; an empty one is a call without any."""
    return msgspec.json.encode(value if value is not None else {}).decode()


def _sealed(block: _Block) -> str | None:
    """What the server wants back word for word; None if it gave no signature."""
    if block.kind == "redacted_thinking":
        return seal(NAME, {"type": block.kind, "data": block.begun.data or ""})
    signature = "".join(block.signature)
    if not signature:
        return None
    thinking = "".join(block.text)
    return seal(
        NAME, {"type": block.kind, "thinking": thinking, "signature": signature}
    )


def _annotation(citation: JSONValue, length: int) -> Annotation | None:
    """A citation, which is of the whole text that it came with."""
    if not isinstance(citation, dict):
        return None
    kind, url, title = (citation.get(key) for key in ("type", "url", "title"))
    rest = Extra((key, value) for key, value in citation.items() if key != "type")
    if isinstance(url, str):
        own = ("url", "title", "start_index", "end_index")
        return UrlCitation(
            url=url,
            title=title if isinstance(title, str) else "",
            start_index=0,
            end_index=length,
            extra=Extra((key, rest[key]) for key in rest if key not in own),
        )
    return UnknownAnnotation(type_name=f"{NAME}:{kind}", extra=rest)
