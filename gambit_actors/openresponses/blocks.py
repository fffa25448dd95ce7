"""Blocks of a `ResponseWriter`: one open item each, and the events it takes.

A block knows the order of events inside its item and nothing of the response around
it. Its methods give events without a number; the writer numbers them.
"""

import abc
from collections.abc import Hashable
from typing import ClassVar, TypeAlias, cast

from gambit_actors.errors import WriterMisuse
from gambit_actors.openresponses.building import Chunks
from gambit_actors.openresponses.events import (
    ContentPartAdded,
    ContentPartDone,
    FunctionCallArgumentsDelta,
    FunctionCallArgumentsDone,
    OutputTextAnnotationAdded,
    OutputTextDelta,
    OutputTextDone,
    ReasoningDelta,
    ReasoningDone,
    ReasoningSummaryPartAdded,
    ReasoningSummaryPartDone,
    ReasoningSummaryTextDelta,
    ReasoningSummaryTextDone,
    RefusalDelta,
    RefusalDone,
    StandardEvent,
)
from gambit_actors.openresponses.items import (
    FunctionCall,
    Item,
    ItemStatus,
    Message,
    Reasoning,
)
from gambit_actors.openresponses.parts import (
    Annotation,
    OutputText,
    Part,
    ReasoningText,
    Refusal,
    SummaryText,
)
from gambit_actors.openresponses.reading import without_surrogates

Steps: TypeAlias = list[StandardEvent]

# None is a key like any other.
_NO_PART = object()


class Block(abc.ABC):
    """An item that is being written."""

    id_prefix: ClassVar[str]

    def __init__(self) -> None:
        self.index = -1
        self.id = ""
        # What the writer knows this block by, in order; a message may have very many.
        self.keys: dict[Hashable, None] = {}
        self.status: ItemStatus = "in_progress"

    def open(self, index: int, id: str) -> None:
        """Take a place in the output."""
        self.index, self.id = index, id

    @abc.abstractmethod
    def item(self, status: ItemStatus) -> Item:
        """The item as it stands."""

    @abc.abstractmethod
    def add(self, key: Hashable, delta: str) -> Steps:
        """More of the block, or of the part of it that goes by this key."""

    @abc.abstractmethod
    def close(self) -> Steps:
        """End all that is open inside the item."""


class CallBlock(Block):
    """A function call; its arguments come in pieces of JSON text."""

    id_prefix = "fc"

    def __init__(self, *, call_id: str, name: str) -> None:
        super().__init__()
        self._call_id, self._name = call_id, name
        self._arguments = Chunks()

    def item(self, status: ItemStatus) -> Item:
        """The call, with as much of its arguments as there is."""
        return FunctionCall(
            id=self.id,
            call_id=self._call_id,
            name=self._name,
            arguments=self._arguments.join(),
            status=status,
        )

    def add(self, key: Hashable, delta: str) -> Steps:
        """More arguments."""
        del key
        self._arguments.add(delta)
        return [
            FunctionCallArgumentsDelta(
                item_id=self.id, output_index=self.index, delta=delta
            )
        ]

    def close(self) -> Steps:
        """End the arguments."""
        return [
            FunctionCallArgumentsDone(
                item_id=self.id,
                output_index=self.index,
                arguments=self._arguments.join(),
            )
        ]


class _MessagePart:
    def __init__(self, index: int, kind: type[OutputText | Refusal]) -> None:
        self.index = index
        self.kind = kind
        self.text = Chunks()
        self.annotations: list[Annotation] = []
        self.is_open = True

    def build(self) -> OutputText | Refusal:
        text = self.text.join()
        if self.kind is Refusal:
            return Refusal(refusal=text)
        return OutputText(text=text, annotations=tuple(self.annotations))


class MessageBlock(Block):
    """A message; its parts go by keys of the caller's.

    Args:
        phase: commentary or final answer, where the provider tells them apart.
        own_part: the key of the part that the message was begun for and ends with.
    """

    id_prefix = "msg"

    def __init__(
        self, *, phase: str | None = None, own_part: Hashable = _NO_PART
    ) -> None:
        super().__init__()
        self._phase = phase
        self._own_part = own_part
        self._parts: dict[Hashable, _MessagePart] = {}
        # Keys may be used again once their part is closed; the parts stay.
        self._written: list[_MessagePart] = []

    def ends_with(self, key: Hashable) -> bool:
        """Whether stopping this key ends the message, not just a part of it."""
        return key not in self._parts or key == self._own_part

    def item(self, status: ItemStatus) -> Item:
        """The message, with the parts that are finished."""
        return Message(
            id=self.id,
            role="assistant",
            status=status,
            content=tuple(part.build() for part in self._written if not part.is_open),
            phase=self._phase,
        )

    def open_part(self, key: Hashable, kind: type[OutputText | Refusal]) -> Steps:
        """Begin a part."""
        part = _MessagePart(len(self._written), kind)
        self._parts[key] = part
        self._written.append(part)
        return [
            ContentPartAdded(
                item_id=self.id,
                output_index=self.index,
                content_index=part.index,
                part=part.build(),
            )
        ]

    def add(self, key: Hashable, delta: str) -> Steps:
        """More of one part."""
        part = self._part(key)
        part.text.add(delta)
        if part.kind is Refusal:
            return [
                RefusalDelta(
                    item_id=self.id,
                    output_index=self.index,
                    content_index=part.index,
                    delta=delta,
                )
            ]
        return [
            OutputTextDelta(
                item_id=self.id,
                output_index=self.index,
                content_index=part.index,
                delta=delta,
                # Clients of the standard's first version insist on it.
                logprobs=(),
            )
        ]

    def annotate(self, key: Hashable, annotation: Annotation) -> Steps:
        """Give a text part an annotation."""
        part = self._part(key)
        if part.kind is not OutputText:
            msg = f"block {key!r} is a refusal; only text has annotations"
            raise WriterMisuse(msg)
        part.annotations.append(annotation)
        return [
            OutputTextAnnotationAdded(
                item_id=self.id,
                output_index=self.index,
                content_index=part.index,
                annotation_index=len(part.annotations) - 1,
                annotation=annotation,
            )
        ]

    def close_part(self, key: Hashable) -> Steps:
        """End one part."""
        part = self._parts.pop(key)
        part.is_open = False
        whole = part.build()
        done: StandardEvent
        if isinstance(whole, Refusal):
            done = RefusalDone(
                item_id=self.id,
                output_index=self.index,
                content_index=part.index,
                refusal=whole.refusal,
            )
        else:
            done = OutputTextDone(
                item_id=self.id,
                output_index=self.index,
                content_index=part.index,
                text=whole.text,
                logprobs=(),
            )
        return [
            done,
            ContentPartDone(
                item_id=self.id,
                output_index=self.index,
                content_index=part.index,
                part=whole,
            ),
        ]

    def close(self) -> Steps:
        """End all parts."""
        return [step for key in list(self._parts) for step in self.close_part(key)]

    def _part(self, key: Hashable) -> _MessagePart:
        part = self._parts.get(key)
        if part is None:
            msg = f"block {key!r} is a message; start a text or a refusal in it"
            raise WriterMisuse(msg)
        return part


class ReasoningBlock(Block):
    """Reasoning, raw and summed up; one part is open at a time."""

    id_prefix = "rs"

    def __init__(self) -> None:
        super().__init__()
        self.encrypted_content: str | None = None
        self._done: dict[type[Part], list[Part]] = {ReasoningText: [], SummaryText: []}
        self._kind: type[ReasoningText | SummaryText] | None = None
        self._text = Chunks()

    def item(self, status: ItemStatus) -> Item:
        """The reasoning, with the parts that are finished."""
        del status  # The standard gives reasoning none.
        return Reasoning(
            id=self.id,
            summary=tuple(self._done[SummaryText]),
            content=tuple(self._done[ReasoningText]) or None,
            encrypted_content=self.encrypted_content,
        )

    def add(self, key: Hashable, delta: str) -> Steps:
        """More raw reasoning."""
        del key
        steps = self._turn_to(ReasoningText)
        self._text.add(delta)
        return [
            *steps,
            ReasoningDelta(
                item_id=self.id,
                output_index=self.index,
                content_index=self._place(),
                delta=delta,
            ),
        ]

    def add_summary(self, delta: str) -> Steps:
        """More of the summary."""
        steps = self._turn_to(SummaryText)
        self._text.add(delta)
        return [
            *steps,
            ReasoningSummaryTextDelta(
                item_id=self.id,
                output_index=self.index,
                summary_index=self._place(),
                delta=delta,
            ),
        ]

    def close(self) -> Steps:
        """End the part that is open, if one is."""
        if self._kind is None:
            return []
        kind, place, text = self._kind, self._place(), self._text.join()
        part = kind(text=text)
        self._kind = None
        self._done[kind].append(part)
        at = (self.id, self.index)
        if kind is SummaryText:
            return [
                ReasoningSummaryTextDone(
                    item_id=at[0], output_index=at[1], summary_index=place, text=text
                ),
                ReasoningSummaryPartDone(
                    item_id=at[0], output_index=at[1], summary_index=place, part=part
                ),
            ]
        return [
            ReasoningDone(
                item_id=at[0], output_index=at[1], content_index=place, text=text
            ),
            ContentPartDone(
                item_id=at[0], output_index=at[1], content_index=place, part=part
            ),
        ]

    def _place(self) -> int:
        return len(self._done[cast(type[Part], self._kind)])

    def _turn_to(self, kind: type[ReasoningText | SummaryText]) -> Steps:
        """Have a part of this kind open, closing one of the other kind."""
        if self._kind is kind:
            return []
        steps = self.close()
        self._kind, self._text = kind, Chunks()
        part = kind(text="")
        if kind is SummaryText:
            return [
                *steps,
                ReasoningSummaryPartAdded(
                    item_id=self.id,
                    output_index=self.index,
                    summary_index=self._place(),
                    part=part,
                ),
            ]
        return [
            *steps,
            ContentPartAdded(
                item_id=self.id,
                output_index=self.index,
                content_index=self._place(),
                part=part,
            ),
        ]


def checked_text(delta: object) -> str:
    """A delta that can be joined and sent; checked before anything is changed."""
    if not isinstance(delta, str):
        msg = f"a delta is text, not {type(delta).__name__}"
        raise WriterMisuse(msg)
    return delta if delta.isascii() else without_surrogates(delta)
