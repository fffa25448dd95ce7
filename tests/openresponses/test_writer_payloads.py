"""What stands in each event of a writer, to the last key, and that it is enough.

The terminal event repeats the whole response, so a builder would not miss what the
events before it left out. Here each of them is looked at, and the repetition is taken
away before the response is built.
"""

import msgspec
import pytest
from hypothesis import given

from gambit_actors.openresponses import (
    Event,
    FunctionCall,
    Message,
    Reasoning,
    Response,
    ResponseWriter,
    Usage,
    assistant_message,
    build_response,
    events_from_response,
)
from gambit_actors.openresponses import events as ev
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.parts import UrlCitation
from gambit_actors.openresponses.responses import ResponseError
from gambit_actors.openresponses.writing import to_builtins
from tests.openresponses.strategies import legal_responses

Terminal = ev.ResponseCompleted | ev.ResponseFailed | ev.ResponseIncomplete


def open_writer() -> ResponseWriter:
    """Start a writer; its next event has the number 2."""
    writer = ResponseWriter(Response(id="resp_1", status="in_progress"))
    writer.start()
    return writer


def told(events: list[ev.StandardEvent]) -> list[JSONValue]:
    """The events as JSON, without their numbers."""
    return [
        {
            key: value
            for key, value in to_builtins(e).items()
            if key != "sequence_number"
        }
        for e in events
    ]


def in_text(kind: str, **more: JSONValue) -> JSONValue:
    """An event of the first part of the first message."""
    place = {"item_id": "msg_1_0", "output_index": 0, "content_index": 0}
    return {"type": f"response.{kind}", **place, **more}


@pytest.mark.spec("MAP-2")
def test_text_events_say_it_all() -> None:
    """Each event of a text names its place and carries its share or the whole."""
    w = open_writer()
    notes = [
        UrlCitation(url=url, title="T", start_index=0, end_index=2) for url in "ab"
    ]
    events = w.start_text("t") + w.add("t", "He") + w.add("t", "y")
    events += w.annotate("t", notes[0]) + w.annotate("t", notes[1])
    events += w.stop("t") + w.flush()
    told_notes = [to_builtins(note) for note in notes]
    empty = {"type": "output_text", "text": "", "annotations": []}
    whole = {"type": "output_text", "text": "Hey", "annotations": told_notes}
    item = {"type": "message", "role": "assistant", "id": "msg_1_0"}
    assert told(events) == [
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "content": [], "status": "in_progress"},
        },
        in_text("content_part.added", part=empty),
        in_text("output_text.delta", delta="He", logprobs=[]),
        in_text("output_text.delta", delta="y", logprobs=[]),
        in_text(
            "output_text.annotation.added",
            annotation_index=0,
            annotation=told_notes[0],
        ),
        in_text(
            "output_text.annotation.added",
            annotation_index=1,
            annotation=told_notes[1],
        ),
        in_text("output_text.done", text="Hey", logprobs=[]),
        in_text("content_part.done", part=whole),
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {**item, "content": [whole], "status": "completed"},
        },
    ]


@pytest.mark.spec("MAP-7")
def test_refusal_events_say_it_all() -> None:
    """Each event of a refusal names its place and carries its share or the whole."""
    w = open_writer()
    events = w.start_refusal("r") + w.add("r", "N") + w.add("r", "o") + w.stop("r")
    assert told(events)[1:] == [
        in_text("content_part.added", part={"type": "refusal", "refusal": ""}),
        in_text("refusal.delta", delta="N"),
        in_text("refusal.delta", delta="o"),
        in_text("refusal.done", refusal="No"),
        in_text("content_part.done", part={"type": "refusal", "refusal": "No"}),
    ]


@pytest.mark.spec("MAP-3")
@pytest.mark.parametrize("status", ["completed", "incomplete"])
def test_call_events_say_it_all(status: JSONValue) -> None:
    """Each event of a call names its item; the item ends with the status it got."""
    w = open_writer()
    events = w.start_tool_call("c", call_id="call_9", name="find")
    events += w.add("c", '{"a"') + w.add("c", ": 1}")
    events += w.stop("c", status=status) + w.flush()
    place = {"item_id": "fc_1_0", "output_index": 0}
    kind = "response.function_call_arguments"
    item = {"type": "function_call", "id": "fc_1_0", "call_id": "call_9"}
    begun = {**item, "name": "find", "arguments": "", "status": "in_progress"}
    ended = {**item, "name": "find", "arguments": '{"a": 1}', "status": status}
    assert told(events) == [
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        {"type": f"{kind}.delta", **place, "delta": '{"a"'},
        {"type": f"{kind}.delta", **place, "delta": ": 1}"},
        {"type": f"{kind}.done", **place, "arguments": '{"a": 1}'},
        {"type": "response.output_item.done", "output_index": 0, "item": ended},
    ]


@pytest.mark.spec("MAP-5")
def test_reasoning_events_say_it_all() -> None:
    """Raw reasoning and each part of a summary have events with their own index."""
    w = open_writer()
    events = w.start_reasoning("r") + w.add("r", "hm")
    events += w.add_summary("r", "one") + w.next_part("r") + w.add_summary("r", "two")
    events += w.stop("r", encrypted_content="sealed") + w.flush()
    place = {"item_id": "rs_1_0", "output_index": 0}

    def summary(kind: str, index: int, **more: JSONValue) -> JSONValue:
        name = f"response.reasoning_summary_{kind}"
        return {"type": name, **place, "summary_index": index, **more}

    def summary_events(index: int, text: str) -> list[JSONValue]:
        part = {"type": "summary_text", "text": text}
        return [
            summary("part.added", index, part={"type": "summary_text", "text": ""}),
            summary("text.delta", index, delta=text),
            summary("text.done", index, text=text),
            summary("part.done", index, part=part),
        ]

    raw = {"type": "reasoning_text", "text": "hm"}
    at = {**place, "content_index": 0}
    assert told(events)[1:-1] == [
        {"type": "response.content_part.added", **at, "part": {**raw, "text": ""}},
        {"type": "response.reasoning.delta", **at, "delta": "hm"},
        {"type": "response.reasoning.done", **at, "text": "hm"},
        {"type": "response.content_part.done", **at, "part": raw},
        *summary_events(0, "one"),
        *summary_events(1, "two"),
    ]
    assert told(events)[-1]["item"]["encrypted_content"] == "sealed"


@pytest.mark.spec("MAP-1")
def test_an_error_and_its_end_say_it_all() -> None:
    """An error keeps code and param; the failed response keeps usage and error."""
    w = open_writer()
    usage = Usage(input_tokens=1, output_tokens=2, total_tokens=3)
    (error,) = w.error("Too long.", type="invalid_request", code="long", param="input")
    (failed,) = w.fail("long", "Too long.", usage=usage)
    assert to_builtins(error)["error"] == {
        "type": "invalid_request",
        "code": "long",
        "message": "Too long.",
        "param": "input",
    }
    assert isinstance(failed, ev.ResponseFailed)
    assert failed.response.usage == usage
    assert failed.response.error == ResponseError(code="long", message="Too long.")


def without_output(event: Event) -> Event:
    """Empty the output of a terminal event, as some servers do."""
    if not isinstance(event, Terminal):
        return event
    response = msgspec.structs.replace(event.response, output=())
    return msgspec.structs.replace(event, response=response)


@pytest.mark.spec("MAP-2", "MAP-3", "MAP-5", "MAP-7")
@given(legal_responses())
def test_the_events_alone_carry_the_response(response: Response) -> None:
    """With nothing in the terminal event, the items before it are all there."""
    events = [without_output(event) for event in events_from_response(response)]
    assert build_response(events) == response


SUMMARIES = (
    ev.OutputItemDone
    | ev.ContentPartDone
    | ev.ReasoningSummaryPartDone
    | ev.OutputTextDone
    | ev.RefusalDone
    | ev.FunctionCallArgumentsDone
    | ev.ReasoningDone
    | ev.ReasoningSummaryTextDone
)
DELTAS = (
    ev.OutputTextDelta
    | ev.RefusalDelta
    | ev.FunctionCallArgumentsDelta
    | ev.ReasoningDelta
    | ev.ReasoningSummaryTextDelta
)
WHOLES = ev.OutputItemDone | ev.ContentPartDone | ev.ReasoningSummaryPartDone


def one_of_each() -> list[ev.StandardEvent]:
    """A stream with text, a refusal, reasoning of both kinds and a call."""
    w = ResponseWriter(Response(id="resp_1", status="in_progress"))
    events = w.start() + w.start_reasoning("r") + w.add("r", "hm ") + w.add("r", "ok")
    events += w.add_summary("r", "one") + w.next_part("r") + w.add_summary("r", "two")
    events += w.stop("r") + w.start_message("m") + w.start_text("t", message="m")
    events += w.add("t", "He") + w.add("t", "y") + w.stop("t")
    events += w.start_refusal("f", message="m") + w.add("f", "No") + w.stop("f")
    events += w.stop("m") + w.start_tool_call("c", call_id="c1", name="find")
    events += w.add("c", '{"a"') + w.add("c", ":1}") + w.stop("c")
    return events + w.finish("tool_use")


@pytest.mark.spec("MAP-2", "MAP-3", "MAP-5", "MAP-7")
@pytest.mark.parametrize(
    "left_out", [SUMMARIES, DELTAS, DELTAS | WHOLES], ids=["done", "deltas", "both"]
)
def test_deltas_and_what_ends_them_agree(left_out: type[Event]) -> None:
    """The deltas alone, or the events that end them alone, make the same response."""
    events = one_of_each()
    some = [without_output(e) for e in events if not isinstance(e, left_out)]
    response = build_response(some)
    assert response == build_response(events)
    reasoning, message, call = response.output
    assert isinstance(reasoning, Reasoning)
    assert isinstance(message, Message)
    assert isinstance(call, FunctionCall)
    assert len(reasoning.summary) == 2
    assert (message.text, message.refusal, call.arguments) == (
        "Hey",
        "No",
        '{"a":1}',
    )


def test_an_item_added_whole_has_output_form() -> None:
    """A message without id and status gets them before it goes out."""
    w = open_writer()
    added, done = w.add_item(assistant_message("hi"))
    assert isinstance(added, ev.OutputItemAdded)
    assert isinstance(done, ev.OutputItemDone)
    assert isinstance(done.item, Message)
    assert (done.item.id, done.item.status) == ("item_0", "completed")
