"""A response told as events is the same response when it is built again."""

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gambit_actors.errors import StreamTruncated, WriterMisuse
from gambit_actors.openresponses.base import Extra
from gambit_actors.openresponses.builder import ResponseBuilder, build_response
from gambit_actors.openresponses.codec import decode_event
from gambit_actors.openresponses.events import (
    FunctionCallArgumentsDelta,
    OutputItemDone,
    OutputTextDelta,
    ReasoningDelta,
    ReasoningSummaryTextDelta,
    RefusalDelta,
    ResponseCompleted,
    ResponseCreated,
    ResponseFailed,
    ResponseIncomplete,
)
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
from gambit_actors.openresponses.replay import events_from_response
from gambit_actors.openresponses.responses import (
    IncompleteDetails,
    Response,
    ResponseError,
    Usage,
)
from gambit_actors.openresponses.sse import DONE_FRAME, SSEDecoder, encode_event
from tests.openresponses.strategies import legal_responses

TERMINAL = ResponseCompleted | ResponseFailed | ResponseIncomplete
CITATION = UrlCitation(url="https://a.test", title="A", start_index=0, end_index=2)
USAGE = Usage(input_tokens=3, output_tokens=4, total_tokens=7)

ITEMS: dict[str, Item] = {
    "text": Message(
        id="msg_1",
        role="assistant",
        status="completed",
        content=(OutputText(text="Hi", annotations=(CITATION,)), OutputText(text="")),
        phase="commentary",
    ),
    "refusal": Message(
        id="msg_2",
        role="assistant",
        status="completed",
        content=(OutputText(text="Sorry."), Refusal(refusal="No.")),
    ),
    "nothing said": Message(
        id="msg_3", role="assistant", status="completed", content=()
    ),
    "call": FunctionCall(
        id="fc_1", call_id="c", name="f", arguments='{ "a":1}', status="completed"
    ),
    "reasoning": Reasoning(
        id="rs_1",
        content=(ReasoningText(text="Hm."), ReasoningText(text="")),
        summary=(SummaryText(text="So."), SummaryText(text="Yes.")),
        encrypted_content="sealed",
    ),
    "extra keys": FunctionCall(
        id="fc_2",
        call_id="c",
        name="f",
        arguments="{}",
        status="completed",
        extra=Extra(acme=1),
    ),
    "unknown": UnknownItem(
        type_name="acme:x", extra=Extra(id="x_1", status="completed")
    ),
}


def response_of(status: str = "completed", *items: Item) -> Response:
    """Make a response that has ended."""
    return Response(id="resp_1", status=status, output=items, model="m", usage=USAGE)


# Unknown keys may stand anywhere, in the reasons for an end too.
FAILED_WITH_MORE = msgspec.structs.replace(
    response_of("failed"),
    error=ResponseError(code="c", message="m", extra=Extra(acme=1)),
)
INCOMPLETE_WITH_MORE = msgspec.structs.replace(
    response_of("incomplete"),
    incomplete_details=IncompleteDetails(reason="r", extra=Extra(acme=1)),
)


def test_an_item_sent_whole_is_not_completed_before_it_is_done() -> None:
    """A cut between the two events of such an item leaves it unfinished."""
    events = events_from_response(response_of("completed", ITEMS["extra keys"]))
    builder = ResponseBuilder()
    for event in events:
        if isinstance(event, OutputItemDone):
            break
        builder.feed(event)
    (item,) = builder.partial().output
    assert isinstance(item, FunctionCall)
    assert item.status == "incomplete"


@pytest.mark.parametrize("name", ITEMS)
def test_each_item_comes_back(name: str) -> None:
    """An item of each kind is the same after it was streamed."""
    response = response_of("completed", ITEMS[name])
    assert build_response(events_from_response(response)) == response


@pytest.mark.slow
@given(legal_responses())
@example(FAILED_WITH_MORE)
@example(INCOMPLETE_WITH_MORE)
def test_any_legal_response_comes_back(response: Response) -> None:
    """Building what a response was told as gives that response."""
    assert build_response(events_from_response(response)) == response


@pytest.mark.slow
@given(legal_responses(), st.lists(st.integers(1, 400), min_size=1, max_size=6))
@example(INCOMPLETE_WITH_MORE, [7])
def test_it_comes_back_over_the_wire(response: Response, sizes: list[int]) -> None:
    """The same holds through bytes, cut anywhere, and the decoder."""
    events = events_from_response(response)
    data = b"".join(encode_event(event) for event in events) + DONE_FRAME
    decoder, frames, start, turn = SSEDecoder(), [], 0, 0
    while start < len(data):
        size = sizes[turn % len(sizes)]
        frames += decoder.feed(data[start : start + size])
        start, turn = start + size, turn + 1
    assert decoder.close() == b""
    assert frames[-1].is_done
    decoded = [decode_event(frame.data) for frame in frames[:-1]]
    assert decoded == events
    assert build_response(decoded) == response


@pytest.mark.slow
@given(legal_responses())
def test_a_replayed_stream_is_by_the_book(response: Response) -> None:
    """The builder finds nothing odd in it, and its numbers rise by one from 0."""
    events = events_from_response(response)
    builder = ResponseBuilder()
    for event in events:
        builder.feed(event)
    assert builder.problems == []
    assert [e.sequence_number for e in events] == list(range(len(events)))
    assert [isinstance(e, TERMINAL) for e in events] == [False] * (len(events) - 1) + [
        True
    ]


@pytest.mark.slow
@pytest.mark.spec("PA-9")
@given(legal_responses(), st.data())
def test_no_prefix_of_a_stream_is_completed(
    response: Response, data: st.DataObject
) -> None:
    """Any beginning of a legal stream raises StreamTruncated, and is in progress."""
    events = events_from_response(response)
    seen = data.draw(st.integers(0, len(events) - 1), label="events seen")
    builder = ResponseBuilder()
    for event in events[:seen]:
        builder.feed(event)
    assert builder.partial().status == "in_progress"
    with pytest.raises(StreamTruncated) as caught:
        builder.close()
    assert caught.value.events_seen == seen


@pytest.mark.spec("PA-9")
@pytest.mark.parametrize("status", ["queued", "completed", "failed"])
def test_a_partial_response_is_in_progress_whatever_it_says(status: str) -> None:
    """A status that a server gave too early is not taken over."""
    builder = ResponseBuilder()
    builder.feed(ResponseCreated(response=response_of(status, ITEMS["call"])))
    assert builder.partial().status == "in_progress"
    with pytest.raises(StreamTruncated):
        builder.close()


@pytest.mark.slow
@pytest.mark.spec("PA-9")
@given(legal_responses(), st.data())
def test_a_partial_response_completes_only_done_items(
    response: Response, data: st.DataObject
) -> None:
    """At any point of a stream, an item is completed only after its done event."""
    events = events_from_response(response)[:-1]
    events = events[: data.draw(st.integers(0, len(events)), label="events seen")]
    builder, done = ResponseBuilder(), set[int]()
    for event in events:
        builder.feed(event)
        if isinstance(event, OutputItemDone):
            done.add(event.output_index)
    for index, item in enumerate(builder.partial().output):
        if isinstance(item, Message | FunctionCall) and index not in done:
            assert item.status == "incomplete"


def test_what_the_standard_can_stream_is_streamed() -> None:
    """Text, refusals, arguments and reasoning go out as deltas, one a part."""
    events = events_from_response(response_of("completed", *ITEMS.values()))
    counts = [
        sum(isinstance(event, kind) for event in events)
        for kind in (
            OutputTextDelta,
            RefusalDelta,
            FunctionCallArgumentsDelta,
            ReasoningDelta,
            ReasoningSummaryTextDelta,
        )
    ]
    assert counts == [2, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (response_of("completed"), ResponseCompleted),
        (
            msgspec.structs.replace(
                response_of("failed"), error=ResponseError(code="c", message="m")
            ),
            ResponseFailed,
        ),
        (
            msgspec.structs.replace(
                response_of("incomplete"),
                incomplete_details=IncompleteDetails(reason="max_output_tokens"),
            ),
            ResponseIncomplete,
        ),
    ],
)
def test_it_ends_as_the_response_did(response: Response, kind: type) -> None:
    """Each final status has its terminal event, with the usage in it."""
    events = events_from_response(response)
    last = events[-1]
    assert type(last) is kind
    assert isinstance(last, TERMINAL)
    assert last.response == response
    assert all(getattr(e, "response", last.response).usage is None for e in events[:-1])


@pytest.mark.parametrize(
    ("status", "kind"), [("failed", ResponseFailed), ("incomplete", ResponseIncomplete)]
)
def test_an_end_without_a_reason_gets_one(status: str, kind: type) -> None:
    """The standard wants a reason; a response that has none is told with unknown."""
    last = events_from_response(response_of(status))[-1]
    assert type(last) is kind
    built = build_response([last])
    assert "unknown" in (
        built.error and built.error.code,
        built.incomplete_details and built.incomplete_details.reason,
    )


@pytest.mark.parametrize("status", ["queued", "in_progress", "cancelled"])
def test_a_response_that_goes_on_is_refused(status: str) -> None:
    """Only a response that has ended can be told as a whole stream."""
    with pytest.raises(WriterMisuse, match=f"that is {status} has not ended"):
        events_from_response(response_of(status))
