"""Streaming events: the 24 of the standard, and the two for everything else.

An event whose type is not among the 24 is an `UnknownEvent`; bytes that are no event
at all are a `MalformedEvent`. Neither is an exception: a stream goes on after them.

``sequence_number`` is None where a server sent none. `ResponseWriter` numbers its own.
"""

from typing import Literal, TypeAlias

import msgspec

from gambit_actors.openresponses.base import (
    UNKNOWN_TAG,
    JSONValue,
    Open,
    Tagged,
    Unknown,
    written,
)
from gambit_actors.openresponses.items import Item
from gambit_actors.openresponses.parts import Annotation, Part
from gambit_actors.openresponses.responses import Response


class _Numbered(Tagged, frozen=True, kw_only=True):
    sequence_number: int | None = None


class _OfResponse(_Numbered, frozen=True, kw_only=True):
    response: Response


class ResponseCreated(_OfResponse, tag="response.created", frozen=True, kw_only=True):
    """A response exists; always the first event."""


class ResponseQueued(_OfResponse, tag="response.queued", frozen=True, kw_only=True):
    """The response waits for its turn."""


class ResponseInProgress(
    _OfResponse, tag="response.in_progress", frozen=True, kw_only=True
):
    """The model has begun."""


class ResponseCompleted(
    _OfResponse, tag="response.completed", frozen=True, kw_only=True
):
    """The model has said all it wanted to say. Terminal."""


class ResponseFailed(_OfResponse, tag="response.failed", frozen=True, kw_only=True):
    """Something broke; ``response.error`` says what. Terminal."""


class ResponseIncomplete(
    _OfResponse, tag="response.incomplete", frozen=True, kw_only=True
):
    """The model was stopped short: see ``incomplete_details``. Terminal."""


class OutputItemAdded(
    _Numbered, tag="response.output_item.added", frozen=True, kw_only=True
):
    """An item begins."""

    output_index: int
    item: Item | None = written(None)


class OutputItemDone(
    _Numbered, tag="response.output_item.done", frozen=True, kw_only=True
):
    """An item is finished, here it is whole."""

    output_index: int
    item: Item | None = written(None)


class _InItem(_Numbered, gc=False, frozen=True, kw_only=True):
    output_index: int
    item_id: str | None = None


class _InContent(_InItem, gc=False, frozen=True, kw_only=True):
    # Absent in the oldest form of the protocol, which knew one part per message.
    content_index: int = written(0)


class _InSummary(_InItem, gc=False, frozen=True, kw_only=True):
    summary_index: int = written(0)


class ContentPartAdded(
    _InContent, tag="response.content_part.added", frozen=True, kw_only=True
):
    """A content part begins."""

    part: Part


class ContentPartDone(
    _InContent, tag="response.content_part.done", frozen=True, kw_only=True
):
    """A content part is finished, here it is whole."""

    part: Part


class OutputTextDelta(
    _InContent, tag="response.output_text.delta", gc=False, frozen=True, kw_only=True
):
    """More text."""

    delta: str
    logprobs: tuple[JSONValue, ...] | None = None
    obfuscation: str | None = None


class OutputTextDone(
    _InContent, tag="response.output_text.done", gc=False, frozen=True, kw_only=True
):
    """The text of a part is finished, here it is whole."""

    text: str
    logprobs: tuple[JSONValue, ...] | None = None


class OutputTextAnnotationAdded(
    _InContent, tag="response.output_text.annotation.added", frozen=True, kw_only=True
):
    """A span of the text got an annotation."""

    annotation_index: int
    annotation: Annotation | None = written(None)


class RefusalDelta(
    _InContent, tag="response.refusal.delta", gc=False, frozen=True, kw_only=True
):
    """More of a refusal."""

    delta: str


class RefusalDone(
    _InContent, tag="response.refusal.done", gc=False, frozen=True, kw_only=True
):
    """A refusal is finished, here it is whole."""

    refusal: str


class FunctionCallArgumentsDelta(
    _InItem,
    tag="response.function_call_arguments.delta",
    gc=False,
    frozen=True,
    kw_only=True,
):
    """More of a call's arguments."""

    delta: str
    obfuscation: str | None = None


class FunctionCallArgumentsDone(
    _InItem,
    tag="response.function_call_arguments.done",
    gc=False,
    frozen=True,
    kw_only=True,
):
    """A call's arguments are finished, here they are whole."""

    arguments: str


class ReasoningDelta(
    _InContent, tag="response.reasoning.delta", gc=False, frozen=True, kw_only=True
):
    """More reasoning."""

    delta: str
    obfuscation: str | None = None


class ReasoningDone(
    _InContent, tag="response.reasoning.done", gc=False, frozen=True, kw_only=True
):
    """A piece of reasoning is finished, here it is whole."""

    text: str


class ReasoningSummaryPartAdded(
    _InSummary, tag="response.reasoning_summary_part.added", frozen=True, kw_only=True
):
    """A part of a reasoning summary begins."""

    part: Part


class ReasoningSummaryPartDone(
    _InSummary, tag="response.reasoning_summary_part.done", frozen=True, kw_only=True
):
    """A part of a reasoning summary is finished, here it is whole."""

    part: Part


class ReasoningSummaryTextDelta(
    _InSummary,
    tag="response.reasoning_summary_text.delta",
    gc=False,
    frozen=True,
    kw_only=True,
):
    """More of a reasoning summary."""

    delta: str
    obfuscation: str | None = None


class ReasoningSummaryTextDone(
    _InSummary,
    tag="response.reasoning_summary_text.done",
    gc=False,
    frozen=True,
    kw_only=True,
):
    """The text of a summary part is finished, here it is whole."""

    text: str


class ErrorPayload(Open, frozen=True, kw_only=True):
    """What went wrong on the server."""

    message: str
    type: str = written("server_error")
    code: str | None = written(None)
    param: str | None = written(None)
    headers: dict[str, str] | None = None


class ErrorEvent(_Numbered, tag="error", frozen=True, kw_only=True):
    """The server reports an error; response.failed should follow."""

    error: ErrorPayload

    @classmethod
    def upgrade(cls, fields: dict[str, JSONValue]) -> dict[str, JSONValue]:
        """Read OpenAI's flat form too, where the event is the payload."""
        if "error" in fields or "message" not in fields:
            return fields
        payload = {
            key: fields[key] for key in ("code", "message", "param") if key in fields
        }
        rest = {key: value for key, value in fields.items() if key not in payload}
        return rest | {"error": payload}


class UnknownEvent(Unknown, tag=UNKNOWN_TAG, frozen=True, kw_only=True):
    """An event of a type we do not know, kept whole in ``extra``."""


class MalformedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that arrived as an event and are none.

    Attributes:
        reason: ``invalid_json``, or ``invalid_shape`` for JSON that fits no event.
        problem: what is wrong, and where in the document.
        raw: the payload as text.
        type: the type it claims to be of, if it claims one.
    """

    reason: Literal["invalid_json", "invalid_shape"]
    problem: str
    raw: str
    type: str | None = None


StandardEvent: TypeAlias = (
    ResponseCreated
    | ResponseQueued
    | ResponseInProgress
    | ResponseCompleted
    | ResponseFailed
    | ResponseIncomplete
    | OutputItemAdded
    | OutputItemDone
    | ContentPartAdded
    | ContentPartDone
    | OutputTextDelta
    | OutputTextDone
    | OutputTextAnnotationAdded
    | RefusalDelta
    | RefusalDone
    | FunctionCallArgumentsDelta
    | FunctionCallArgumentsDone
    | ReasoningDelta
    | ReasoningDone
    | ReasoningSummaryPartAdded
    | ReasoningSummaryPartDone
    | ReasoningSummaryTextDelta
    | ReasoningSummaryTextDone
    | ErrorEvent
)

Event: TypeAlias = StandardEvent | UnknownEvent | MalformedEvent
