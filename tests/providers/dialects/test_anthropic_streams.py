"""What Anthropic Messages sends, read by the dialect."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import BadResponse
from gambit_actors.openresponses import (
    FunctionCall,
    Message,
    Reasoning,
    Response,
    SSEFrame,
    Usage,
)
from gambit_actors.openresponses import events as ev
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.dialects.anthropic import AnthropicDialect
from gambit_actors.providers.dialects.sealing import unseal
from gambit_actors.testing.dialects import DialectCheck, checks
from tests.openresponses.test_writer_schema import validate
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
    frames_of,
    golden_streams,
    mangled,
    play_frames,
)

DIALECT = AnthropicDialect()
GOLDEN = "anthropic"
NAMES = golden_names(GOLDEN)
TERMINAL = ev.ResponseCompleted | ev.ResponseFailed | ev.ResponseIncomplete
# Streams with things in them that the standard has no form for.
BEYOND = ("web_search", "pause_turn", "unknown_event")


def response_of(name: str) -> Response:
    """The response that a golden stream comes to."""
    response = play(DIALECT, [golden_bytes(GOLDEN, name)]).response
    assert response is not None
    return response


@pytest.mark.spec("PA-10", "OR-4", "MAP-1", "MAP-2", "MAP-3", "MAP-8")
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


@pytest.mark.spec("MAP-1")
@pytest.mark.parametrize("name", [n for n in NAMES if n not in BEYOND])
def test_events_are_valid(name: str) -> None:
    """Every event is one of the standard's, in an independent, strict reading."""
    for event in play(DIALECT, [golden_bytes(GOLDEN, name)]).events:
        if not isinstance(event, ev.MalformedEvent | ev.UnknownEvent):
            assert validate(event).model_fields_set


@pytest.mark.spec("MAP-6")
@pytest.mark.parametrize(
    ("name", "status", "reason", "last_item"),
    [
        ("text", "completed", None, "completed"),
        ("stop_sequence", "completed", None, "completed"),
        ("parallel_calls", "completed", None, "completed"),
        ("length_stop", "incomplete", "max_output_tokens", "incomplete"),
        ("length_stop_in_call", "incomplete", "max_output_tokens", "incomplete"),
        (
            "context_window_exceeded",
            "incomplete",
            "model_context_window_exceeded",
            "incomplete",
        ),
        ("refusal", "incomplete", "content_filter", "incomplete"),
        ("pause_turn", "incomplete", "pause_turn", "completed"),
        ("unknown_stop_reason", "incomplete", "quota_reached", "incomplete"),
        ("call_never_stopped", "incomplete", "incomplete_item", "incomplete"),
        ("block_never_started", "incomplete", "unnamed_call", "incomplete"),
    ],
)
def test_stop_reasons(
    name: str, status: str, reason: str | None, last_item: str
) -> None:
    """Only what the model meant to end is completed; its last item says the same."""
    response = response_of(name)

    details = response.incomplete_details
    assert response.status == status
    assert (details and details.reason) == reason
    item = response.output[-1]
    assert isinstance(item, Message | FunctionCall)
    assert item.status == last_item


@pytest.mark.spec("MAP-7")
def test_a_refusal_that_is_explained_is_a_refusal() -> None:
    """The server's words are a refusal part; what was said before them is kept."""
    said, refused = response_of("refusal_explained").output

    assert isinstance(said, Message)
    assert isinstance(refused, Message)
    assert said.text == "Step one is"
    assert refused.refusal == "This request was stopped by a safety classifier."


@pytest.mark.spec("MAP-5")
def test_thinking_is_sealed_with_its_signature() -> None:
    """What was thought can be read, and goes back word for word, redacted or not."""
    thought, redacted, _ = response_of("thinking").output

    assert isinstance(thought, Reasoning)
    assert isinstance(redacted, Reasoning)
    assert unseal("anthropic", thought.encrypted_content) == {
        "type": "thinking",
        "thinking": "The id is A-1.",
        "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h",
    }
    assert unseal("anthropic", redacted.encrypted_content) == {
        "type": "redacted_thinking",
        "data": "EmwKAhgBEgy3va3pzix/LafPsn4a",
    }


def test_usage_is_what_is_paid_for() -> None:
    """Input includes what caches gave and took; counts grow as the stream goes on."""
    usage = response_of("text").usage

    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (175, 15)
    assert usage.input_tokens_details.cached_tokens == 100
    thought = response_of("thinking").usage
    assert thought is not None
    assert thought.output_tokens_details.reasoning_tokens == 44


def test_invented_counts_spoil_nothing() -> None:
    """Counts that are none make no usage, and the answer stays."""
    stream = golden_bytes(GOLDEN, "text").replace(b'"input_tokens": 25', b'"i": 25')

    response = play(DIALECT, [stream]).response

    assert response is not None
    assert (response.status, response.usage) == ("completed", None)


@pytest.mark.spec("PA-9", "MAP-3")
@given(golden_streams(GOLDEN), CHANGES)
def test_damaged_streams_never_complete_half_a_call(
    frames: list[SSEFrame], changes: list[Change]
) -> None:
    """Frames lost, repeated or swapped: no crash, one ending, no invented success."""
    frames = mangled(frames, changes)

    played = play_frames(DIALECT, frames)

    assert sum(isinstance(event, TERMINAL) for event in played.events) <= 1
    if played.response is None or played.response.status != "completed":
        return
    sent = [msgspec.json.decode(f.data) for f in frames if f.data[-1:] == b"}"]
    assert any(f.get("delta", {}).get("stop_reason") for f in sent)
    started = {
        f["content_block"].get("id"): f["index"]
        for f in sent
        if f["type"] == "content_block_start"
    }
    stopped = [f["index"] for f in sent if f["type"] == "content_block_stop"]
    for item in played.response.output:
        if isinstance(item, FunctionCall) and item.call_id in started:
            assert started[item.call_id] in stopped


TYPES = st.sampled_from(
    [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "error",
        "ping",
        "new",
    ]
)
BLOCKS = st.sampled_from(["text", "tool_use", "thinking", "redacted_thinking", "new"])
DELTAS = st.sampled_from(
    [
        "text_delta",
        "input_json_delta",
        "thinking_delta",
        "signature_delta",
        "citations_delta",
        "new_delta",
    ]
)
WORDS = st.none() | st.text(max_size=3)
LIKELY = st.fixed_dictionaries(
    {"type": TYPES},
    optional={
        "index": st.integers(0, 2),
        "content_block": st.fixed_dictionaries(
            {"type": BLOCKS},
            optional={
                "id": WORDS,
                "name": WORDS,
                "text": WORDS,
                "input": JSON,
                "thinking": WORDS,
                "signature": WORDS,
                "data": WORDS,
                "citations": st.none() | st.lists(JSON, max_size=2),
            },
        ),
        "delta": st.fixed_dictionaries(
            {"type": DELTAS},
            optional={
                "text": WORDS,
                "partial_json": WORDS,
                "thinking": WORDS,
                "signature": WORDS,
                "citation": JSON | st.just({"type": "web", "url": "u"}),
            },
        ),
        "message": JSON,
        "usage": JSON,
        "error": JSON,
    },
)


@pytest.mark.spec("PA-9", "PA-5")
@given(st.lists(LIKELY | JSON, max_size=12))
def test_any_frames_are_survived(documents: list[JSONValue]) -> None:
    """Whatever comes, in whatever order: nothing is raised, nothing is made up."""
    frames = [SSEFrame("message", msgspec.json.encode(d)) for d in documents]

    played = play_frames(DIALECT, frames)

    assert played.response is None or played.response.status == "failed"


@given(st.lists(LIKELY, max_size=10))
def test_frames_before_an_ending_are_survived(documents: list[JSONValue]) -> None:
    """Any blocks at all, then a proper ending: one ending, and items that add up."""
    ending: list[JSONValue] = [
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    data = [msgspec.json.encode(d) for d in documents + ending]

    played = play_frames(DIALECT, [SSEFrame("message", d) for d in data])

    assert played.response is not None
    assert sum(isinstance(event, TERMINAL) for event in played.events) == 1
    calls = [i for i in played.response.output if isinstance(i, FunctionCall)]
    assert len({call.call_id for call in calls}) == len(calls)


def test_nothing_is_read_behind_the_end() -> None:
    """What comes behind message_stop is told and not passed on."""
    frames = frames_of(GOLDEN, "text")

    played = play_frames(DIALECT, [*frames, *frames[-2:]])

    assert played.problems == [
        "message_delta after the end: ignored",
        "message_stop after the end: ignored",
    ]
    assert played.response == response_of("text")


def test_an_ending_without_a_reason_is_none() -> None:
    """Without a stop reason nobody knows whether a limit cut the answer."""
    frames = [f for f in frames_of(GOLDEN, "text") if f.event != "message_delta"]

    played = play_frames(DIALECT, frames)

    assert played.response is None
    assert played.problems == ["message_stop without a stop reason"]


def frames(*documents: dict[str, JSONValue]) -> list[SSEFrame]:
    """Frames with these documents in them."""
    return [SSEFrame(d["type"], msgspec.json.encode(d)) for d in documents]


def block(begun: JSONValue, *deltas: JSONValue) -> list[SSEFrame]:
    """A block of its own, from its start to its stop."""
    return frames(
        {"type": "content_block_start", "index": 0, "content_block": begun},
        *({"type": "content_block_delta", "index": 0, "delta": d} for d in deltas),
        {"type": "content_block_stop", "index": 0},
    )


START = {"type": "message_start", "message": {"usage": {"input_tokens": 3}}}
REASON = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
STOP = {"type": "message_stop"}


def test_a_message_does_not_start_over() -> None:
    """A second start is told, and takes nothing of what has been said."""
    begun = frames_of(GOLDEN, "text")
    half = len(begun) // 2

    played = play_frames(DIALECT, [*begun[:half], *frames(START), *begun[half:]])

    assert played.response == response_of("text")
    assert played.problems == ["message_start again: ignored"]
    kinds = [type(event) for event in played.events]
    assert kinds.count(ev.ResponseCreated) == 1


def test_a_body_that_ends_in_a_block_is_no_ending() -> None:
    """Also behind a reason to stop: what the block had still to say nobody knows."""
    said = block({"type": "text", "text": ""}, {"type": "text_delta", "text": "Hi"})

    cut = play_frames(DIALECT, [*frames(START), *said[:-1], *frames(REASON)])
    whole = play_frames(DIALECT, [*frames(START), *said, *frames(REASON)])

    assert cut.response is None
    assert whole.response is not None
    assert whole.response.status == "completed"
    assert whole.problems == ["the stream ended without message_stop"]


def test_counts_never_fall() -> None:
    """They are of all so far, so a lower one is older, or left out by saying 0."""
    usage = [{"output_tokens": 9}, {"input_tokens": 0, "output_tokens": 4}]
    counts = frames(*(REASON | {"usage": one} for one in usage))

    played = play_frames(DIALECT, [*frames(START), *counts, *frames(STOP)])

    assert played.response is not None
    assert played.response.usage is not None
    found = played.response.usage
    assert (found.input_tokens, found.output_tokens) == (3, 9)


def test_a_delta_is_taken_by_a_block_of_its_kind_alone() -> None:
    """Words do not become arguments of a call, and arguments are not said."""
    call = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
    asked = {"type": "input_json_delta", "partial_json": '{"a":1}'}
    words = {"type": "text_delta", "text": "Hi"}

    called = play_frames(DIALECT, [*block(call, asked, words), *frames(REASON, STOP)])
    told = play_frames(
        DIALECT,
        [*block({"type": "text", "text": ""}, words, asked), *frames(REASON, STOP)],
    )

    assert called.response is not None
    assert told.response is not None
    (item,) = called.response.output
    assert isinstance(item, FunctionCall)
    assert item.arguments == '{"a":1}'
    assert "text_delta for block 0, which is tool_use" in called.problems
    assert told.response.output_text == "Hi"
    assert "input_json_delta for block 0, which is text" in told.problems


def test_thinking_without_a_signature_is_not_sealed() -> None:
    """The API would refuse it, so it is shown, and has nothing to go back with."""
    begun = {"type": "thinking", "thinking": "", "signature": ""}
    thought = block(begun, {"type": "thinking_delta", "thinking": "Hm."})

    played = play_frames(DIALECT, [*frames(START), *thought, *frames(REASON, STOP)])

    assert played.response is not None
    (item,) = played.response.output
    assert isinstance(item, Reasoning)
    assert item.encrypted_content is None
    assert played.problems == ["reasoning came without a signature"]


# --- answers in one piece ---------------------------------------------------

WHOLE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "Eq"},
        {"type": "text", "text": "Looking."},
        {"type": "tool_use", "id": "toolu_1", "name": "find", "input": {"a": [1]}},
        {"type": "tool_use", "id": "toolu_2", "name": "list", "input": {}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 3},
}


@pytest.mark.spec("OR-4")
def test_whole_answer_is_read() -> None:
    """An answer in one piece gives the items that its stream would have given."""
    response = DIALECT.read_whole(msgspec.json.encode(WHOLE), STARTED)

    thought, said, first, second = response.output
    assert isinstance(thought, Reasoning)
    assert isinstance(said, Message)
    assert isinstance(first, FunctionCall)
    assert isinstance(second, FunctionCall)
    assert response.status == "completed"
    assert response.model == "claude-x"
    assert said.text == "Looking."
    assert (first.call_id, first.arguments) == ("toolu_1", '{"a":[1]}')
    assert second.arguments == "{}"
    assert response.usage == Usage(
        input_tokens=8,
        output_tokens=7,
        total_tokens=15,
        input_tokens_details=msgspec.structs.replace(
            Usage(input_tokens=0, output_tokens=0, total_tokens=0).input_tokens_details,
            cached_tokens=3,
        ),
    )


@pytest.mark.parametrize(
    ("body", "path", "problem"),
    [
        (
            b'{"type":"error","error":{"type":"x","message":"No."}}',
            "error",
            "No.",
        ),
        (b"<html></html>", "", "not JSON"),
        (b"[]", "", "an object"),
        (b"{}", "content", "missing"),
        (b'{"content": []}', "stop_reason", "not ended"),
        (b'{"content": [7], "stop_reason": "end_turn"}', "content", "got `int`"),
    ],
)
def test_what_is_no_message_is_refused(body: bytes, path: str, problem: str) -> None:
    """A body that is something else says what it lacks, or what the server says."""
    with pytest.raises(BadResponse) as caught:
        DIALECT.read_whole(body, STARTED)

    assert caught.value.path == path
    assert problem in caught.value.problem


def test_errors_are_read() -> None:
    """The API's errors have a type and words."""
    body = b'{"type":"error","error":{"type":"not_found_error","message":"No model"}}'

    complaint = DIALECT.read_error(body)

    assert (complaint.code, complaint.message) == ("not_found_error", "No model")
