"""Items that are still being said: chunks in, items out.

Chunks are kept in lists and joined when somebody asks, because joining at every
delta costs quadratic time. The `ResponseBuilder` decides which of these an event
belongs to; nothing here knows about events.
"""

from typing import TypeAlias, TypeVar

import msgspec

from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
    UnknownItem,
)
from gambit_actors.openresponses.parts import (
    Annotation,
    InputText,
    OutputText,
    Part,
    ReasoningText,
    Refusal,
    SummaryText,
)
from gambit_actors.openresponses.reading import Mismatch, parse_json

_T = TypeVar("_T")

StreamedPart: TypeAlias = OutputText | Refusal | ReasoningText | SummaryText


_EMPTY: dict[type[StreamedPart], StreamedPart] = {
    OutputText: OutputText(text=""),
    Refusal: Refusal(refusal=""),
    ReasoningText: ReasoningText(text=""),
    SummaryText: SummaryText(text=""),
}


class Chunks:
    """A text that comes in pieces, and sometimes once more as a whole."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._whole: str | None = None

    def add(self, piece: str) -> None:
        """Take the next piece."""
        self._pieces.append(piece)

    def settle(self, whole: str) -> None:
        """Take the whole text, which outranks the pieces unless it is empty."""
        self._whole = whole

    def join(self) -> str:
        """The text as far as it is known."""
        return self._whole or "".join(self._pieces)


class PartInProgress:
    """A content part: how it began or ended by the server's word, and its text."""

    def __init__(self, kind: type[StreamedPart]) -> None:
        self.annotations: dict[int, Annotation] = {}
        self.text = Chunks()
        self._announced: Part = _EMPTY[kind]
        self._is_finished = False

    def announce(self, part: Part, *, is_finished: bool) -> None:
        """Take the server's word for the part as a whole."""
        self._announced = part
        self._is_finished = is_finished

    def build(self) -> Part:
        """The part as it stands."""
        text = self.text.join()
        match self._announced:
            case OutputText() as part:
                return msgspec.structs.replace(
                    part,
                    text=self._rank(part.text, text),
                    annotations=part.annotations or self._annotations(),
                )
            case Refusal() as part:
                return msgspec.structs.replace(
                    part, refusal=self._rank(part.refusal, text)
                )
            case SummaryText() | ReasoningText() as part:
                return msgspec.structs.replace(part, text=self._rank(part.text, text))
            case part:
                return part

    def _rank(self, said: str, streamed: str) -> str:
        return (said or streamed) if self._is_finished else (streamed or said)

    def _annotations(self) -> tuple[Annotation, ...]:
        return tuple(self.annotations[index] for index in sorted(self.annotations))


class ItemInProgress:
    """An item: how it began or ended by the server's word, its parts and arguments."""

    def __init__(self) -> None:
        self.is_finished = False
        self.item_id: str | None = None
        self.arguments = Chunks()
        self._announced: Item | None = None
        self._content: dict[int, PartInProgress] = {}
        self._summary: dict[int, PartInProgress] = {}

    @property
    def id(self) -> str | None:
        """The item's id, from wherever it was named first."""
        return getattr(self._announced, "id", None) or self.item_id

    def announce(self, item: Item, *, is_finished: bool) -> None:
        """Take the server's word for the item as a whole."""
        self._announced = item
        self.is_finished = is_finished

    def content(self, index: int, kind: type[StreamedPart]) -> PartInProgress:
        """The content part with this index; it begins when it is first asked for."""
        part = self._content.get(index)
        if part is None:
            part = self._content[index] = PartInProgress(kind)
        return part

    def summary(self, index: int) -> PartInProgress:
        """The summary part with this index; it begins when it is first asked for."""
        return self._summary.setdefault(index, PartInProgress(SummaryText))

    def build(self) -> Item | None:
        """The item as it stands; None for a call that nobody has named yet.

        A finished item outranks what was streamed of it, except where the server
        left empty what it had streamed before.
        """
        content, summary = _in_order(self._content), _in_order(self._summary)
        match self._announced or self._implied():
            case Message(content=said) as item:
                streamed: str | tuple[Part, ...] = content
                said = () if _is_blank(said) and streamed else said
                return msgspec.structs.replace(item, content=self._rank(said, streamed))
            case FunctionCall(arguments=said) as item:
                arguments = self._rank(said, self.arguments.join())
                return msgspec.structs.replace(item, arguments=arguments)
            case Reasoning() as item:
                return msgspec.structs.replace(
                    item,
                    summary=self._rank(item.summary, summary),
                    content=self._rank(item.content, content) or item.content,
                )
            case item:
                return item

    def _rank(self, said: _T, streamed: _T) -> _T:
        return (said or streamed) if self.is_finished else (streamed or said)

    def _implied(self) -> Item | None:
        """What the item must be, where its beginning was never announced."""
        if self._summary or any(
            isinstance(part.build(), ReasoningText) for part in self._content.values()
        ):
            return Reasoning(id=self.item_id)
        if self._content:
            return Message(role="assistant", content=(), id=self.item_id)
        return None


def in_output_form(item: Item, *, index: int, is_finished: bool) -> Item:
    """Give an item what a response's items must have: an id, a status, parts.

    Args:
        item: as a server sent it.
        index: its place in the output, to name it by when it has no id.
        is_finished: what to say of an item that has no final status of its own.
    """
    if isinstance(item, Message | FunctionCall | FunctionCallOutput):
        if item.status not in ("completed", "incomplete"):
            is_whole = is_finished and _is_whole(item)
            status = "completed" if is_whole else "incomplete"
            item = msgspec.structs.replace(item, status=status)
        if isinstance(item, Message) and isinstance(item.content, str):
            item = msgspec.structs.replace(item, content=_parts_of(item, item.content))
    if isinstance(item, UnknownItem) or item.id is not None:
        return item
    return msgspec.structs.replace(item, id=f"item_{index}")


def _is_whole(item: Message | FunctionCall | FunctionCallOutput) -> bool:
    """Whether an item that nobody declared finished may be taken for it.

    Text may, in a response that is. A call may if its arguments are JSON: one that was
    cut in the middle must not run. A status of a server's own invention may not.
    """
    if item.status not in (None, "in_progress"):
        return False
    return not isinstance(item, FunctionCall) or _is_json(item.arguments)


def _is_json(text: str) -> bool:
    try:
        parse_json(text.encode())
    except Mismatch:
        return False
    return True


def as_begun(item: Item) -> Item:
    """An item as it is announced: whole perhaps, and not yet said to be."""
    if isinstance(item, Message | FunctionCall | FunctionCallOutput):
        return msgspec.structs.replace(item, status="in_progress")
    return item


def is_incomplete(item: Item) -> bool:
    """Whether the model was cut off in the middle of this."""
    return getattr(item, "status", None) == "incomplete"


def _parts_of(message: Message, text: str) -> tuple[Part, ...]:
    is_model = message.role == "assistant"
    return (OutputText(text=text) if is_model else InputText(text=text),)


def _is_blank(content: str | tuple[Part, ...]) -> bool:
    return all(part in _EMPTY.values() for part in content)


def _in_order(parts: dict[int, PartInProgress]) -> tuple[Part, ...]:
    return tuple(parts[index].build() for index in sorted(parts))
