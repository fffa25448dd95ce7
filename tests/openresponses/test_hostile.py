"""What a hostile or careless peer tried, and does not get away with."""

import json
import math

import pytest

from gambit_actors.errors import BadRequest, WireError, WriterMisuse
from gambit_actors.openresponses import (
    FunctionCall,
    MalformedEvent,
    Message,
    Response,
    ResponseBuilder,
    ResponseWriter,
    SSEDecoder,
    UnknownItem,
    build_response,
    decode_item,
    encode,
)
from gambit_actors.openresponses import events as ev
from gambit_actors.openresponses.base import Extra, JSONValue
from gambit_actors.openresponses.codec import event_from_json, response_from_json
from gambit_actors.openresponses.parts import OutputText
from gambit_actors.openresponses.seed_v1 import (
    event_from_v1,
    request_from_v1,
    v1_from_item,
    v1_from_response,
)


def message(id: str, text: str | None) -> Message:
    """A finished message, with no content at all for None."""
    content = () if text is None else (OutputText(text=text),)
    return Message(id=id, role="assistant", status="completed", content=content)


def nested(depth: int) -> JSONValue:
    """A list in a list, and so on."""
    value: JSONValue = []
    for _ in range(depth):
        value = [value]
    return value


def completed(*output: Message) -> ev.ResponseCompleted:
    """The event that ends a response with these messages."""
    return ev.ResponseCompleted(
        response=Response(id="r", status="completed", output=output)
    )


def test_final_items_are_matched_by_id() -> None:
    """A blank final item is filled from the stream of that very item."""
    response = build_response(
        [
            ev.OutputTextDelta(output_index=1, item_id="m1", delta="FIRST"),
            ev.OutputTextDelta(output_index=2, item_id="m2", delta="SECOND"),
            completed(message("m1", "FIRST"), message("m2", None)),
        ]
    )
    assert [item.text for item in response.output if isinstance(item, Message)] == [
        "FIRST",
        "SECOND",
    ]


def test_counting_from_one_loses_nothing() -> None:
    """A server that counts outputs from 1 and empties the final one keeps its text."""
    delta = ev.OutputTextDelta(output_index=1, delta="FIRST")
    assert (
        build_response([delta, completed(message("m1", None))]).output_text == "FIRST"
    )


def test_another_items_text_is_never_borrowed() -> None:
    """A final item with an id of its own is not filled from one with another id."""
    delta = ev.OutputTextDelta(output_index=0, item_id="other", delta="SECRET")
    response = build_response([delta, completed(message("m1", None))])
    assert response.output_text == ""


def test_an_error_keeps_all_that_was_streamed() -> None:
    """An error and a hang-up leave what had arrived, in output form."""
    call = FunctionCall(call_id="c", name="find", arguments="")
    builder = ResponseBuilder()
    builder.feed(
        ev.ResponseInProgress(
            response=Response(id="r", status="in_progress", output=(call,))
        )
    )
    builder.feed(ev.OutputItemAdded(output_index=0, item=call))
    builder.feed(ev.FunctionCallArgumentsDelta(output_index=0, delta='{"a":1}'))
    builder.feed(ev.OutputTextDelta(output_index=1, delta="so far"))
    builder.feed(ev.ErrorEvent(error=ev.ErrorPayload(message="It broke.")))
    response = builder.close()
    assert response.status == "failed"
    assert response.output_text == "so far"
    assert response.output[0] == FunctionCall(
        id="item_0",
        call_id="c",
        name="find",
        arguments='{"a":1}',
        status="incomplete",
    )


def test_problems_are_bounded() -> None:
    """A peer cannot fill the memory with what we have to say about it."""
    builder = ResponseBuilder()
    builder.feed(completed())
    for _ in range(1000):
        builder.feed(ev.UnknownEvent(type_name="x" * 10_000, extra=Extra()))
    assert sum(len(problem) for problem in builder.problems) < 50_000


@pytest.mark.parametrize("content", [["x"], 5, [{"annotations": []}]])
def test_content_of_a_call_is_not_taken_for_parts(content: JSONValue) -> None:
    """A key of a peer's own named content survives the way to v1 untouched."""
    document = {"type": "function_call", "call_id": "c", "name": "n", "arguments": ""}
    item = decode_item(json.dumps({**document, "content": content}).encode())
    assert v1_from_item(item) == {**document, "content": content}
    assert item.extra["content"] == content


def test_stray_keys_do_not_win_in_v1() -> None:
    """What a response says itself outranks a key of the same name in extra."""
    response = Response(
        id="r", status="completed", created_at=5, extra=Extra(created="hah")
    )
    assert v1_from_response(response)["created"] == 5


@pytest.mark.parametrize("delta", [None, 5, b"x"])
def test_a_delta_that_is_no_text_changes_nothing(delta: JSONValue) -> None:
    """A careless adapter is told at once, and can still finish."""
    writer = ResponseWriter(Response(id="resp_1", status="in_progress"))
    writer.start()
    writer.start_text("t")
    with pytest.raises(WriterMisuse, match="a delta is text, not"):
        writer.add("t", delta)
    writer.add("t", "fine")
    writer.finish("end_turn")
    assert writer.response.output_text == "fine"


def test_half_a_surrogate_pair_can_be_sent() -> None:
    """A delta with half a character is sent as text that an encoder takes."""
    writer = ResponseWriter(Response(id="resp_1", status="in_progress"))
    writer.start()
    writer.start_text("t")
    (event,) = writer.add("t", "a\ud83d")
    assert json.loads(encode(event))["delta"] == "a\ufffd"


def test_none_is_a_key_like_any_other() -> None:
    """Stopping the part with the key None ends the part and not its message."""
    writer = ResponseWriter(Response(id="resp_1", status="in_progress"))
    writer.start()
    writer.start_message("m")
    writer.start_text(None, message="m")
    writer.stop(None)
    assert writer.start_text("more", message="m")


@pytest.mark.parametrize("stamp", [math.nan, math.inf])
def test_a_time_that_is_no_number_is_refused(stamp: float) -> None:
    """A stamp that JSON does not have is an error with a path, not a crash."""
    with pytest.raises(WireError, match="created_at"):
        response_from_json({"id": "r", "status": "completed", "created_at": stamp})


@pytest.mark.parametrize(
    "value",
    [
        {"type": "response.completed", "response": {"id": 5, "metadata": nested(5000)}},
        {"type": "x", "a": "\ud800"},
        {"type": "x", "a": 10**5000},
        {"type": "x", "a": {1, 2}},
    ],
    ids=["deep", "surrogate", "digits", "set"],
)
def test_reading_parsed_events_never_raises(value: JSONValue) -> None:
    """Whatever a caller calls JSON is an event, or malformed."""
    for read in (event_from_json, event_from_v1):
        assert isinstance(read(value), MalformedEvent | ev.UnknownEvent)


@pytest.mark.parametrize("value", [nested(5000), ["\ud800"]], ids=["deep", "surrogate"])
def test_metadata_that_is_no_json_is_a_bad_request(value: JSONValue) -> None:
    """Metadata that cannot be written names itself as the culprit."""
    with pytest.raises(BadRequest, match="metadata"):
        request_from_v1({"model": "m", "metadata": {"a": value}})


def test_what_nests_too_deeply_to_be_written_is_one_of_our_errors() -> None:
    """An item that could be read and not be written is an error with a name."""
    item = UnknownItem(type_name="x", extra=Extra(a=nested(5000)))
    with pytest.raises(WireError, match="cannot be written"):
        encode(item)


def test_what_was_cut_off_is_not_glued_to_what_follows() -> None:
    """A decoder that is fed again after its end does not remember half an event."""
    decoder = SSEDecoder()
    decoder.feed(b"event: x\ndata: a\ndata: b")
    assert decoder.close() == b"a\ndata: b"
    (frame,) = decoder.feed(b"data: c\n\n")
    assert (frame.event, frame.data) == ("message", b"c")


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_other_kinds_of_bytes_are_bytes(kind: type[bytearray]) -> None:
    """A buffer of another kind gives the frames that bytes would."""
    decoder, stream = SSEDecoder(), b"event: response.created\ndata: {}\n\n"
    frames = [f for _ in range(3) for f in decoder.feed(kind(stream))]
    assert frames == SSEDecoder().feed(stream * 3)
