"""The builder lives with odd streams and never takes a broken one for completed."""

import time

import msgspec
import pytest

from gambit_actors.errors import StreamTruncated
from gambit_actors.openresponses import events as ev
from gambit_actors.openresponses.base import Extra
from gambit_actors.openresponses.builder import ResponseBuilder, build_response
from gambit_actors.openresponses.codec import decode_event
from gambit_actors.openresponses.items import (
    FunctionCall,
    Item,
    Message,
    Reasoning,
    UnknownItem,
)
from gambit_actors.openresponses.parts import (
    OutputText,
    ReasoningText,
    Refusal,
    SummaryText,
    UrlCitation,
)
from gambit_actors.openresponses.responses import (
    IncompleteDetails,
    Response,
    ResponseError,
)

BEGUN = Response(id="resp_1", status="in_progress", model="m")
CREATED = ev.ResponseCreated(response=BEGUN)
CITATION = UrlCitation(url="https://a.test", title="A", start_index=0, end_index=2)


def ended(status: str = "completed", *items: Item) -> Response:
    """Make a final response."""
    return msgspec.structs.replace(BEGUN, status=status, output=items)


def completed(*items: Item) -> ev.ResponseCompleted:
    """Make the event that ends a response well."""
    return ev.ResponseCompleted(response=ended("completed", *items))


def message(text: str, *, status: str = "completed", id: str = "msg_0") -> Message:
    """Make a message of one text."""
    content = (OutputText(text=text),) if text else ()
    return Message(id=id, role="assistant", status=status, content=content)


def call(
    arguments: str, *, status: str = "completed", id: str | None = "fc_0"
) -> FunctionCall:
    """Make a function call."""
    return FunctionCall(
        id=id, call_id="call_0", name="f", arguments=arguments, status=status
    )


def text_delta(text: str, *, index: int = 0, part: int = 0) -> ev.OutputTextDelta:
    """Make a delta of text."""
    return ev.OutputTextDelta(
        item_id=f"msg_{index}", output_index=index, content_index=part, delta=text
    )


def arguments_delta(text: str, *, index: int = 0) -> ev.FunctionCallArgumentsDelta:
    """Make a delta of arguments."""
    return ev.FunctionCallArgumentsDelta(output_index=index, delta=text)


def fed(*events: ev.Event) -> ResponseBuilder:
    """Make a builder that has seen these events."""
    builder = ResponseBuilder()
    for event in events:
        builder.feed(event)
    return builder


def built(*events: ev.Event) -> Response:
    """Make the response of these events."""
    return build_response(events)


def test_items_never_announced() -> None:
    """Deltas alone make the item they belong to, and that is noted."""
    builder = fed(CREATED, text_delta("Hel"), text_delta("lo"), completed())
    assert builder.close().output == (message("Hello"),)
    assert builder.problems == ["output 0 was never announced"]


@pytest.mark.spec("MAP-7")
def test_a_delta_implies_its_kind_of_item() -> None:
    """Unannounced reasoning, summaries and refusals become the right items."""
    response = built(
        ev.ReasoningDelta(item_id="rs_0", output_index=0, delta="Hm."),
        ev.ReasoningSummaryTextDelta(item_id="rs_1", output_index=1, delta="So."),
        ev.RefusalDelta(item_id="msg_0", output_index=2, delta="No."),
        completed(),
    )
    assert response.output == (
        Reasoning(id="rs_0", content=(ReasoningText(text="Hm."),)),
        Reasoning(id="rs_1", summary=(SummaryText(text="So."),)),
        msgspec.structs.replace(message(""), content=(Refusal(refusal="No."),)),
    )


def test_arguments_of_a_call_nobody_named_make_no_call() -> None:
    """Arguments without a name are no item, and no response is complete with them."""
    builder = fed(CREATED, arguments_delta("{}"), completed())
    response = builder.close()
    assert (response.status, response.output) == ("incomplete", ())
    assert response.incomplete_details == IncompleteDetails(reason="unnamed_call")
    assert builder.problems == [
        "output 0 was never announced",
        "response.completed without a call that was streamed",
    ]


def test_final_only() -> None:
    """A lone response.completed is a whole stream."""
    assert built(completed(message("Hi"))) == ended("completed", message("Hi"))


def test_an_empty_final_output_leaves_the_streamed_items() -> None:
    """Items that were streamed outlive a final response that lists none."""
    response = built(
        CREATED,
        ev.OutputItemAdded(output_index=0, item=call("", status="in_progress")),
        arguments_delta('{"a":'),
        arguments_delta(" 1}"),
        ev.OutputItemDone(output_index=0, item=call('{"a": 1}')),
        completed(),
    )
    assert response == ended("completed", call('{"a": 1}'))


def test_a_short_final_output_is_noted() -> None:
    """When the final response drops an item, the streamed ones stand, with a note."""
    builder = fed(
        ev.OutputItemDone(output_index=0, item=message("a")),
        ev.OutputItemDone(output_index=1, item=message("b", id="msg_1")),
        completed(message("a")),
    )
    assert builder.close().output_text == "ab"
    assert builder.problems == [
        "response.completed lists 1 of the 2 items that were streamed"
    ]


def test_arguments_only_in_deltas() -> None:
    """A finished call without arguments keeps those that were streamed."""
    response = built(
        ev.OutputItemAdded(output_index=0, item=call("", status="in_progress")),
        arguments_delta('{"a":'),
        arguments_delta(" 1}"),
        ev.FunctionCallArgumentsDone(output_index=0, arguments=""),
        ev.OutputItemDone(output_index=0, item=call("")),
        completed(),
    )
    assert response.output == (call('{"a": 1}'),)


def test_content_only_in_deltas() -> None:
    """A finished message without content keeps what was streamed."""
    response = built(
        ev.OutputItemAdded(output_index=0, item=message("", status="in_progress")),
        text_delta("Hel"),
        text_delta("lo"),
        ev.OutputTextDone(output_index=0, text=""),
        ev.ContentPartDone(output_index=0, part=OutputText(text="")),
        ev.OutputItemDone(output_index=0, item=message("")),
        completed(),
    )
    assert response.output == (message("Hello"),)


def test_a_final_item_without_content_keeps_what_was_streamed() -> None:
    """A final response that lists an item but empties it does not unsay it."""
    response = built(
        ev.OutputItemAdded(output_index=0, item=message("", status="in_progress")),
        text_delta("Hello"),
        completed(message("")),
    )
    assert response.output_text == "Hello"


def test_items_without_id_or_status_get_them() -> None:
    """An item of a final response is given the id, status and parts it must have."""
    bare = Message(role="assistant", content="Hi")
    response = built(completed(bare, call("{}", id=None)))
    assert response.output == (message("Hi", id="item_0"), call("{}", id="item_1"))


def test_done_twice_is_noted() -> None:
    """A second done replaces the first and is noted."""
    done = ev.OutputItemDone(output_index=0, item=message("Hi"))
    builder = fed(CREATED, done, done, completed())
    assert builder.close().output == (message("Hi"),)
    assert builder.problems == ["output 0: response.output_item.done again"]


def test_added_after_done_is_ignored() -> None:
    """An item that is done does not begin again."""
    added = ev.OutputItemAdded(output_index=0, item=message("", status="in_progress"))
    builder = fed(ev.OutputItemDone(output_index=0, item=message("Hi")), added)
    assert builder.partial().output == (message("Hi"),)
    assert builder.problems == ["output 0: response.output_item.added again"]


def test_interleaved_items_do_not_mix() -> None:
    """Deltas go to the item and the part their indexes name, in any order."""
    response = built(
        text_delta("c", index=2, part=1),
        text_delta("x", index=0),
        text_delta("a", index=2, part=0),
        text_delta("y", index=0),
        text_delta("d", index=2, part=1),
        completed(),
    )
    assert response.output == (
        message("xy"),
        msgspec.structs.replace(
            message("", id="msg_2"),
            content=(OutputText(text="a"), OutputText(text="cd")),
        ),
    )


def test_annotations_are_ordered_by_their_index() -> None:
    """Streamed annotations stand in the part by index, and null ones do not."""
    second = msgspec.structs.replace(CITATION, url="https://b.test")

    def added(index: int, note: UrlCitation | None) -> ev.OutputTextAnnotationAdded:
        return ev.OutputTextAnnotationAdded(
            output_index=0, annotation_index=index, annotation=note
        )

    notes = [added(1, second), added(0, CITATION), added(2, None)]
    response = built(text_delta("abc"), *notes, completed())
    (item,) = response.output
    assert isinstance(item, Message)
    assert item.content == (OutputText(text="abc", annotations=(CITATION, second)),)


def test_an_item_event_without_an_item_is_noted() -> None:
    """The schema allows a null item; it adds nothing."""
    builder = fed(ev.OutputItemAdded(output_index=0), ev.OutputItemDone(output_index=0))
    assert builder.partial().output == ()
    assert builder.problems == [
        "response.output_item.added without an item",
        "response.output_item.done without an item",
    ]


def test_an_unknown_item_passes_through() -> None:
    """An item of an unknown type is in the response as it was sent."""
    item = UnknownItem(type_name="acme:x", extra=Extra(status="in_progress", n=1))
    done = ev.OutputItemDone(output_index=0, item=item)
    assert built(done, completed()).output == (item,)


# How it ended


@pytest.mark.spec("PA-9")
def test_an_error_outranks_a_later_completed() -> None:
    """After an error response.completed is taken for failed, with the first error."""
    error = ev.ErrorEvent(error=ev.ErrorPayload(message="It broke.", code="broken"))
    later = ev.ErrorEvent(error=ev.ErrorPayload(message="It fell over, too."))
    builder = fed(CREATED, error, later, completed(message("Hi")))
    response = builder.close()
    assert response.status == "failed"
    assert response.error == ResponseError(code="broken", message="It broke.")
    assert builder.problems == ["response.completed for a response that failed"]


@pytest.mark.spec("PA-9")
@pytest.mark.parametrize(
    ("status", "outcome", "reason"),
    [
        ("failed", "failed", None),
        ("incomplete", "incomplete", "incomplete"),
        ("cancelled", "incomplete", "cancelled"),
    ],
)
def test_completed_with_another_status(
    status: str, outcome: str, reason: str | None
) -> None:
    """response.completed does not make completed what says itself that it is not."""
    builder = fed(ev.ResponseCompleted(response=ended(status)))
    response = builder.close()
    assert response.status == outcome
    assert response.incomplete_details == (reason and IncompleteDetails(reason=reason))
    assert (response.error is not None) == (outcome == "failed")
    assert len(builder.problems) == 1


@pytest.mark.spec("PA-9")
@pytest.mark.parametrize(
    "item", [message("Hi", status="incomplete"), call("{", status="incomplete")]
)
def test_completed_with_an_incomplete_item(item: Item) -> None:
    """An incomplete item forces the response to incomplete."""
    builder = fed(completed(item))
    response = builder.close()
    assert response.status == "incomplete"
    assert response.incomplete_details == IncompleteDetails(reason="incomplete_item")
    assert response.output == (item,)
    assert builder.problems == ["response.completed with an incomplete item"]


@pytest.mark.spec("PA-9")
def test_completed_with_an_error_in_it() -> None:
    """A response that names an error is not completed, whatever its event says."""
    error = ResponseError(code="broken", message="It broke.")
    response = msgspec.structs.replace(ended(), error=error)
    assert built(ev.ResponseCompleted(response=response)).status == "failed"


@pytest.mark.spec("PA-9")
def test_the_event_outranks_the_status_inside() -> None:
    """response.failed and .incomplete end so, even around status completed."""
    failed = built(ev.ResponseFailed(response=ended()))
    assert failed.status == "failed"
    assert failed.error == ResponseError(code="unknown", message="no reason was given")
    incomplete = built(ev.ResponseIncomplete(response=ended()))
    assert incomplete.status == "incomplete"
    assert incomplete.incomplete_details == IncompleteDetails(reason="unknown")


def test_items_cut_by_a_failure_are_incomplete() -> None:
    """What was open when the response failed stays in it, as incomplete."""
    added = ev.OutputItemAdded(output_index=1, item=call("", status="in_progress"))
    response = built(
        ev.OutputItemDone(output_index=0, item=message("a")),
        added,
        arguments_delta('{"a', index=1),
        ev.ResponseFailed(response=ended("failed")),
    )
    assert response.output == (message("a"), call('{"a', status="incomplete"))


@pytest.mark.spec("PA-9")
def test_an_error_and_then_nothing_is_a_failure() -> None:
    """A server that reports an error and hangs up has failed, not been cut off."""
    error = ev.ErrorEvent(error=ev.ErrorPayload(message="Busy.", type="overloaded"))
    builder = fed(CREATED, text_delta("a"), error)
    response = builder.close()
    assert (response.id, response.status) == ("resp_1", "failed")
    assert response.error == ResponseError(code="overloaded", message="Busy.")
    assert response.output == (message("a", status="incomplete"),)
    assert builder.problems[-1] == "the stream ended after an error event"


@pytest.mark.spec("PA-9")
def test_the_first_terminal_event_is_the_last_word() -> None:
    """Whatever follows the end is noted and changes nothing."""
    failed = ev.ResponseFailed(response=ended("failed"))
    builder = fed(failed, completed(message("Hi")), text_delta("more"))
    assert builder.is_finished
    assert builder.close().status == "failed"
    assert builder.close().output == ()
    assert builder.partial() == builder.close()
    assert builder.problems == [
        "response.completed after the response had ended: ignored",
        "response.output_text.delta after the response had ended: ignored",
    ]


def test_what_is_no_event_is_noted() -> None:
    """A malformed event is a problem; an unknown one is not; neither stops it."""
    builder = fed(
        decode_event(b"{"),
        decode_event(b'{"type":"response.output_text.delta","delta":7}'),
        decode_event(b'{"type":"ping"}'),
        completed(message("Hi")),
    )
    assert builder.close() == ended("completed", message("Hi"))
    assert len(builder.problems) == 2
    assert all(p.startswith("an event that is none: ") for p in builder.problems)


def test_an_empty_stream_is_cut_short() -> None:
    """No events at all is a stream without an end."""
    with pytest.raises(StreamTruncated, match="0 events"):
        built()


@pytest.mark.slow
def test_deltas_are_joined_late() -> None:
    """200,000 deltas fold in seconds at most: their cost is linear."""
    delta = text_delta("word ")
    builder = ResponseBuilder()
    start = time.perf_counter()
    for _ in range(200_000):
        builder.feed(delta)
    builder.feed(completed())
    text = builder.close().output_text
    assert time.perf_counter() - start < 5
    assert text == "word " * 200_000
