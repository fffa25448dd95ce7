"""A finished response told again as the stream it could have been.

Streaming is the only mode inside; an answer that came in one piece joins in here.
"""

import msgspec

from gambit_actors.openresponses.items import (
    FunctionCall,
    Item,
    ItemStatus,
    Message,
    Reasoning,
)
from gambit_actors.openresponses.parts import (
    OutputText,
    ReasoningText,
    Refusal,
    SummaryText,
)
from gambit_actors.openresponses.responses import Response
from gambit_actors.openresponses.writer import Events, ResponseWriter


def events_from_response(response: Response) -> Events:
    """The events of a response that has ended: `build_response` gives it back.

    An item is streamed in one delta a part where the standard has events for all that
    is in it, and sent whole where it has not.

    Raises:
        WriterMisuse: the response has not ended.
    """
    writer = ResponseWriter(
        msgspec.structs.replace(
            response, usage=None, error=None, incomplete_details=None, completed_at=None
        )
    )
    events = writer.start()
    for key, item in enumerate(response.output):
        events += _item_events(writer, key, item)
    return events + writer.end_like(response)


def _item_events(writer: ResponseWriter, key: int, item: Item) -> Events:
    status: ItemStatus = "completed"
    match item:
        case Message() if _is_plain_message(item):
            events = _message_events(writer, key, item)
        case FunctionCall(id=str(), status="completed" | "incomplete", extra=extra) if (
            not extra
        ):
            events = writer.start_tool_call(
                key, call_id=item.call_id, name=item.name, id=item.id
            )
            events += writer.add(key, item.arguments) if item.arguments else []
        case Reasoning() if _is_plain_reasoning(item):
            events = _reasoning_events(writer, key, item)
        case _:
            return writer.add_item(item)
    if isinstance(item, Message | FunctionCall) and item.status == "incomplete":
        status = "incomplete"
    sealed = item.encrypted_content if isinstance(item, Reasoning) else None
    events += writer.stop(key, status=status, encrypted_content=sealed)
    return events + writer.flush()


def _message_events(writer: ResponseWriter, key: int, item: Message) -> Events:
    events = writer.start_message(key, id=item.id, phase=item.phase)
    for place, part in enumerate(item.content):
        inner = (key, place)
        if isinstance(part, OutputText):
            events += writer.start_text(inner, message=key)
            events += writer.add(inner, part.text) if part.text else []
            for annotation in part.annotations:
                events += writer.annotate(inner, annotation)
        elif isinstance(part, Refusal):
            events += writer.start_refusal(inner, message=key)
            events += writer.add(inner, part.refusal) if part.refusal else []
        events += writer.stop(inner)
    return events


def _reasoning_events(writer: ResponseWriter, key: int, item: Reasoning) -> Events:
    events = writer.start_reasoning(key, id=item.id)
    for part in item.content or ():
        if isinstance(part, ReasoningText):
            events += writer.add(key, part.text) + writer.next_part(key)
    for part in item.summary:
        if isinstance(part, SummaryText):
            events += writer.add_summary(key, part.text) + writer.next_part(key)
    return events


def _is_plain_message(item: Message) -> bool:
    return (
        item.role == "assistant"
        and item.id is not None
        and item.status in ("completed", "incomplete")
        and not item.extra
        and isinstance(item.content, tuple)
        and all(
            isinstance(part, OutputText | Refusal)
            and not part.extra
            and (isinstance(part, Refusal) or part.logprobs is None)
            for part in item.content
        )
    )


def _is_plain_reasoning(item: Reasoning) -> bool:
    # An empty list of content is not the same as none, and has no events to tell it.
    return (
        item.id is not None
        and item.status is None
        and not item.extra
        and item.content != ()
        and all(
            isinstance(part, ReasoningText) and not part.extra
            for part in item.content or ()
        )
        and all(
            isinstance(part, SummaryText) and not part.extra for part in item.summary
        )
    )
