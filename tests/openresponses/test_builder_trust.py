"""When a builder believes a server that says completed, and when it does not."""

import pytest

from gambit_actors.openresponses import (
    Event,
    FunctionCall,
    Message,
    Response,
    ResponseBuilder,
    build_response,
    decode_response,
)
from gambit_actors.openresponses import events as ev
from gambit_actors.openresponses.parts import OutputText
from gambit_actors.openresponses.responses import IncompleteDetails


def call(arguments: str, status: str | None) -> FunctionCall:
    """A call in some state."""
    return FunctionCall(
        id="fc", call_id="c", name="find", arguments=arguments, status=status
    )


def completed(*output: FunctionCall | Message, **more: object) -> Event:
    """The event by which a server says that all went well."""
    response = Response(id="r", status="completed", output=output, **more)  # type: ignore[arg-type]  # by keyword
    return ev.ResponseCompleted(response=response)


@pytest.mark.spec("PA-9")
@pytest.mark.parametrize(
    ("arguments", "status"),
    [('{"a":', "in_progress"), ('{"a":', None), ("{}", "failed"), ("{}", "cancelled")],
)
def test_a_call_that_is_not_whole_is_not_completed(
    arguments: str, status: str | None
) -> None:
    """A cut call, or one with a status of no good, makes the response incomplete."""
    response = build_response([completed(call(arguments, status))])
    assert response.status == "incomplete"
    assert response.output == (call(arguments, "incomplete"),)


@pytest.mark.spec("PA-9")
@pytest.mark.parametrize("status", [None, "in_progress"])
def test_a_whole_call_without_a_final_status_is_believed(status: str | None) -> None:
    """Arguments that are JSON make a call whole where its server forgot to say so."""
    response = build_response([completed(call('{"a": 1}', status))])
    assert response.status == "completed"
    assert response.output == (call('{"a": 1}', "completed"),)


@pytest.mark.spec("PA-9")
@pytest.mark.parametrize(("rest", "is_whole"), [("1}", True), ("", False)])
def test_a_streamed_call_nobody_ended(rest: str, *, is_whole: bool) -> None:
    """A call known from its deltas alone is whole if they make JSON."""
    delta = ev.FunctionCallArgumentsDelta(output_index=0, delta='{"a":' + rest)
    added = ev.OutputItemAdded(output_index=0, item=call("", "in_progress"))
    response = build_response([added, delta, completed()])
    assert response.status == ("completed" if is_whole else "incomplete")


@pytest.mark.spec("PA-9")
def test_completed_with_a_reason_to_be_incomplete() -> None:
    """A response that says why it is incomplete is, whatever its event says."""
    details = IncompleteDetails(reason="max_output_tokens")
    response = build_response([completed(incomplete_details=details)])
    assert (response.status, response.incomplete_details) == ("incomplete", details)


@pytest.mark.spec("OR-1")
def test_text_parts_of_both_directions_are_read() -> None:
    """input_text and output_text are the parts they say they are."""
    data = (
        b'{"id":"r","status":"completed","output":[{"type":"message","id":"m",'
        b'"role":"assistant","status":"completed","content":[{"type":"output_text",'
        b'"text":"a","annotations":[]}]}]}'
    )
    (message,) = decode_response(data).output
    assert isinstance(message, Message)
    assert message.content == (OutputText(text="a"),)


def test_a_builder_can_be_watched() -> None:
    """Each event is shown as it is folded, and the response is given all the same."""
    seen: list[Event] = []
    events = [ev.OutputTextDelta(output_index=0, delta="a"), completed()]
    assert build_response(events, on_event=seen.append).output_text == "a"
    assert seen == events


def test_many_items_cost_no_more_each() -> None:
    """Twenty thousand items are folded, and asked for twice, in no time to speak of."""
    builder = ResponseBuilder()
    for index in range(20_000):
        builder.feed(
            ev.OutputItemDone(output_index=index, item=call("{}", "completed"))
        )
    assert len(builder.partial().output) == 20_000
    builder.feed(completed())
    assert len(builder.close().output) == 20_000
