"""What servers of Open Responses send, read by the dialect."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import BadResponse
from gambit_actors.openresponses import (
    FunctionCall,
    Message,
    ResponseWriter,
    SSEFrame,
    Usage,
    encode,
    encode_event,
)
from gambit_actors.openresponses import events as ev
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.dialects.open_responses import OpenResponsesDialect
from gambit_actors.providers.dialects.open_responses_profiles import (
    OPEN_RESPONSES,
    OPENAI,
    OPENROUTER,
)
from gambit_actors.testing.dialects import DialectCheck, checks
from tests.providers.dialects.golden import (
    STARTED,
    expected,
    golden_bytes,
    golden_names,
    outcome,
    play,
    streams_of,
)
from tests.providers.dialects.mangling import (
    CHANGES,
    JSON,
    Change,
    chunked,
    golden_streams,
    mangled,
    play_frames,
)

DIALECT = OpenResponsesDialect()
GOLDEN = "open_responses"
NAMES = golden_names(GOLDEN)
TERMINAL = ev.ResponseCompleted | ev.ResponseFailed | ev.ResponseIncomplete


@pytest.mark.spec("PA-10", "OR-4", "MAP-8")
@pytest.mark.parametrize("name", NAMES)
def test_golden_stream_is_read_as_expected(name: str) -> None:
    """Whole and byte by byte, a stream comes to its events and its response."""
    data = golden_bytes(GOLDEN, name)

    assert outcome(play(DIALECT, [data])) == expected(GOLDEN, name)
    assert outcome(play(DIALECT, [bytes([b]) for b in data])) == expected(GOLDEN, name)


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.__name__)
def test_it_does_what_every_dialect_has_to(check: DialectCheck) -> None:
    """The checks that any dialect can be held to hold for this one."""
    check(DIALECT, streams_of(GOLDEN))


@given(st.sampled_from(NAMES), st.lists(st.integers(0), max_size=8))
def test_chunks_make_no_difference(name: str, cuts: list[int]) -> None:
    """However the network cuts a stream, it comes to the same."""
    data = golden_bytes(GOLDEN, name)

    assert outcome(play(DIALECT, chunked(data, cuts))) == expected(GOLDEN, name)


@pytest.mark.parametrize("profile", [OPENAI, OPENROUTER, OPEN_RESPONSES])
@pytest.mark.parametrize("name", NAMES)
def test_profiles_read_alike(name: str, profile: JSONValue) -> None:
    """What is tolerated does not depend on the profile."""
    played = play(OpenResponsesDialect(profile=profile), [golden_bytes(GOLDEN, name)])

    assert outcome(played) == expected(GOLDEN, name)


@pytest.mark.spec("PA-9")
@given(golden_streams(GOLDEN), CHANGES)
def test_damaged_streams_never_complete_half_a_call(
    frames: list[SSEFrame], changes: list[Change]
) -> None:
    """Frames lost, repeated or swapped: no crash, one ending, no invented success."""
    played = play_frames(DIALECT, mangled(frames, changes))

    endings = [event for event in played.events if isinstance(event, TERMINAL)]
    assert len(endings) <= 1
    if played.response is not None and played.response.status == "completed":
        assert isinstance(endings[0], ev.ResponseCompleted)
        calls = [i for i in played.response.output if isinstance(i, FunctionCall)]
        assert all(msgspec.json.decode(call.arguments) for call in calls)


@pytest.mark.spec("PA-9", "PA-5")
@given(st.lists(JSON | st.fixed_dictionaries({"type": st.text()}), max_size=5))
def test_any_json_is_survived(documents: list[JSONValue]) -> None:
    """Whatever JSON arrives gives one event each, and no response out of nothing."""
    frames = [SSEFrame("message", msgspec.json.encode(d)) for d in documents]

    played = play_frames(DIALECT, frames)

    assert played.response is None or played.response.status == "failed"


@given(st.binary(max_size=40).filter(lambda data: data != b"[DONE]"))
def test_any_data_is_survived(data: bytes) -> None:
    """What is not JSON is a malformed event with the text in it, and is told."""
    text = data.decode("utf-8", "replace")

    played = play_frames(DIALECT, [SSEFrame("message", text.encode())])

    assert len(played.events) <= 2
    assert played.response is None or played.response.status == "failed"


def test_event_line_and_data_that_differ_are_told() -> None:
    """The type in the data counts; the event line is a problem if it says another."""
    event = ev.OutputTextDelta(
        sequence_number=1, output_index=0, item_id="m", content_index=0, delta="Hi"
    )
    reader = DIALECT.reader(STARTED)

    assert reader.feed(SSEFrame("response.created", encode(event))) == (event,)
    assert reader.problems == [
        "the event line says response.created, the data response.output_text.delta"
    ]


def test_numbers_that_fall_are_told() -> None:
    """Events are passed on in the order in which they came, numbers or not."""
    later = ev.RefusalDelta(
        sequence_number=5, output_index=0, item_id="m", content_index=0, delta="N"
    )
    earlier = msgspec.structs.replace(later, sequence_number=4)
    reader = DIALECT.reader(STARTED)

    events = [
        *reader.feed(SSEFrame("message", encode(later))),
        *reader.feed(SSEFrame("message", encode(earlier))),
    ]

    assert events == [later, earlier]
    assert reader.problems == ["response.refusal.delta has number 4 after 5"]


def test_numbers_that_stay_the_same_are_told() -> None:
    """An event that is sent twice has the number of the first, which is odd."""
    event = ev.RefusalDelta(
        sequence_number=5, output_index=0, item_id="m", content_index=0, delta="N"
    )
    reader = DIALECT.reader(STARTED)

    reader.feed(SSEFrame("message", encode(event)))
    reader.feed(SSEFrame("message", encode(event)))

    assert reader.problems == ["response.refusal.delta has number 5 after 5"]


def test_nothing_is_read_behind_the_marker() -> None:
    """[DONE] ends the reading; what is behind it is told and not passed on."""
    reader = DIALECT.reader(STARTED)

    assert reader.feed(SSEFrame("message", b"[DONE]")) == ()
    assert reader.is_done
    assert reader.feed(SSEFrame("message", b'{"type":"error"}')) == ()
    assert reader.problems == ["message after [DONE]: ignored"]
    assert reader.close() == ()


@pytest.mark.spec("MAP-8")
def test_what_our_own_writer_makes_is_read_back() -> None:
    """The dialect reads what this library's gateway would send, without a problem."""
    w = ResponseWriter(STARTED)
    events = w.start() + w.start_text("t") + w.add("t", "Hi") + w.stop("t")
    usage = Usage(input_tokens=1, output_tokens=1, total_tokens=2)
    events += w.finish("end_turn", usage=usage)

    played = play(DIALECT, [encode_event(event) for event in events])

    assert played.events == events
    assert played.response == w.response
    assert played.problems == []


@pytest.mark.spec("OR-4")
@pytest.mark.parametrize("name", [n for n in NAMES if n != "cut_stream"])
def test_whole_answer_is_what_its_stream_comes_to(name: str) -> None:
    """A response that comes in one piece is the one that would have been streamed."""
    streamed = play(DIALECT, [golden_bytes(GOLDEN, name)]).response
    assert streamed is not None

    assert DIALECT.read_whole(encode(streamed), STARTED) == streamed


def test_whole_answer_is_not_taken_for_a_success_it_is_not() -> None:
    """Completed with an error, or with half an item, is neither."""
    cut = Message(id="m", role="assistant", content="Half", status="incomplete")
    half = msgspec.structs.replace(STARTED, status="completed", output=(cut,))

    response = DIALECT.read_whole(encode(half), STARTED)

    assert response.status == "incomplete"


def test_counts_of_a_whole_answer_are_put_right() -> None:
    """Impossible token counts become none; the answer stays."""
    body = b"""{"id": "r", "object": "response", "status": "completed", "output": [],
        "usage": {"input_tokens": "9", "output_tokens": 1, "total_tokens": 10}}"""

    assert DIALECT.read_whole(body, STARTED).usage is None
    fixed = DIALECT.read_whole(body.replace(b'"9"', b"9.0"), STARTED).usage
    assert fixed == Usage(input_tokens=9, output_tokens=1, total_tokens=10)


def test_a_cancelled_answer_is_incomplete() -> None:
    """A status that the standard does not have is read as what it means."""
    response = msgspec.structs.replace(STARTED, status="cancelled")

    read = DIALECT.read_whole(encode(response), STARTED)

    assert read.status == "incomplete"
    assert read.incomplete_details is not None
    assert read.incomplete_details.reason == "cancelled"


@pytest.mark.parametrize(
    ("body", "path", "problem"),
    [
        (b'{"error": {"message": "No such model."}}', "error", "No such model."),
        (b'{"error": "no model"}', "error", "no model"),
        (b"<html>Welcome</html>", "", "not JSON"),
        (b"", "", "not JSON"),
        (b"[]", "", "expected an object"),
        (b'{"id": "r", "status": "in_progress"}', "status", "in_progress"),
        (b'{"choices": []}', "", "the key"),
    ],
)
def test_what_is_no_response_is_refused(body: bytes, path: str, problem: str) -> None:
    """A body that is something else says what, in the server's words if it has any."""
    with pytest.raises(BadResponse) as caught:
        DIALECT.read_whole(body, STARTED)

    assert caught.value.path == path
    assert problem in caught.value.problem
