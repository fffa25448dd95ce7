"""Every golden stream is read as its expected file says, from bytes to response."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gambit_actors.errors import StreamTruncated
from gambit_actors.openresponses.builder import ResponseBuilder
from gambit_actors.openresponses.codec import decode_event
from gambit_actors.openresponses.events import Event, OutputItemDone
from gambit_actors.openresponses.items import FunctionCall, Message, Reasoning
from gambit_actors.openresponses.parts import Part, ReasoningText, SummaryText
from gambit_actors.openresponses.responses import Response
from gambit_actors.openresponses.seed_v1 import decode_v1_event
from gambit_actors.openresponses.sse import SSEDecoder

STREAMS = Path(__file__).resolve().parent.parent / "fixtures" / "streams"
NAMES = sorted(path.stem for path in STREAMS.glob("*.sse"))


@cache
def expected(name: str) -> dict[str, Any]:
    """Load what a reader must make of a stream."""
    text = (STREAMS / f"{name}.expected.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def with_outcome(*outcomes: str) -> list[str]:
    """Name the streams that end in one of these ways."""
    return [name for name in NAMES if expected(name)["outcome"] in outcomes]


def events_of(name: str, *, chunk_bytes: int = 1 << 20) -> list[Event]:
    """Read a stream's events, its bytes cut into chunks of one size."""
    decode = decode_v1_event if name == "v1_text" else decode_event
    data = (STREAMS / f"{name}.sse").read_bytes()
    decoder = SSEDecoder()
    frames = [
        frame
        for start in range(0, len(data), chunk_bytes)
        for frame in decoder.feed(data[start : start + chunk_bytes])
    ]
    decoder.close()
    return [decode(frame.data) for frame in frames if not frame.is_done]


def build(name: str, *, chunk_bytes: int = 1 << 20) -> ResponseBuilder:
    """Feed a whole stream to a builder."""
    builder = ResponseBuilder()
    for event in events_of(name, chunk_bytes=chunk_bytes):
        builder.feed(event)
    return builder


def response_of(builder: ResponseBuilder) -> Response:
    """Close the builder, or take what it has when the stream was cut."""
    try:
        return builder.close()
    except StreamTruncated:
        return builder.partial()


def joined(parts: tuple[Part, ...] | None, kind: type[Part]) -> str:
    """Join the texts of the parts of one kind."""
    assert kind in (ReasoningText, SummaryText)
    return "".join(
        part.text
        for part in parts or ()
        if isinstance(part, kind) and isinstance(part, ReasoningText | SummaryText)
    )


def facts(response: Response, keys: set[str]) -> dict[str, Any]:
    """Say of a response what an expected file says under these keys."""
    items = response.output
    reasoning = [item for item in items if isinstance(item, Reasoning)]
    messages = [item for item in items if isinstance(item, Message)]
    told: dict[str, Any] = {
        "text": response.output_text,
        "output_types": [item.type for item in items],
        "output_statuses": [getattr(item, "status", None) for item in items],
        "arguments": [i.arguments for i in items if isinstance(i, FunctionCall)],
        "refusal": "".join(message.refusal for message in messages),
        "reasoning_text": "".join(
            joined(item.content, ReasoningText) for item in reasoning
        ),
        "reasoning_summary": "".join(
            joined(item.summary, SummaryText) for item in reasoning
        ),
        "error": response.error
        and {"code": response.error.code, "message": response.error.message},
        "incomplete_reason": response.incomplete_details
        and response.incomplete_details.reason,
        "usage_total": response.usage and response.usage.total_tokens,
        "metadata": response.metadata,
    }
    return {key: told[key] for key in keys & told.keys()}


def test_the_streams_are_there() -> None:
    """Each stream has an expected file, and there are as many as were written."""
    assert len(NAMES) == 38
    paired = {path.name for path in STREAMS.glob("*.expected.json")}
    assert paired == {f"{name}.expected.json" for name in NAMES}


def test_every_key_of_the_expected_files_is_checked() -> None:
    """No expected file says anything that these tests would pass over."""
    said = {key for name in NAMES for key in expected(name)}
    told = facts(Response(id="", status="completed"), said)
    # event_types is about frames, and checked where frames are.
    assert said - told.keys() == {"about", "event_types", "outcome"}


@pytest.mark.parametrize("name", NAMES)
def test_outcome(name: str) -> None:
    """The stream ends as expected: with a status, or with StreamTruncated."""
    builder = build(name)
    outcome = expected(name)["outcome"]

    if outcome == "truncated":
        with pytest.raises(StreamTruncated):
            builder.close()
    else:
        assert builder.close().status == outcome


@pytest.mark.spec("OR-1")
@pytest.mark.parametrize("name", NAMES)
def test_contents(name: str) -> None:
    """Text, items, arguments, errors and usage are those expected."""
    wanted = expected(name)
    said = wanted.keys() - {"about", "event_types", "outcome"}

    told = facts(response_of(build(name)), said)

    assert told == {key: wanted[key] for key in said}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_expected_is_not_there(name: str) -> None:
    """Where the expected file has no error or call, the response has none."""
    absent: dict[str, Any] = {
        "arguments": [],
        "refusal": "",
        "reasoning_text": "",
        "reasoning_summary": "",
        "error": None,
        "incomplete_reason": None,
        "usage_total": None,
    }
    unsaid = absent.keys() - expected(name).keys()

    told = facts(response_of(build(name)), unsaid)

    assert told == {key: absent[key] for key in unsaid}


@pytest.mark.parametrize("name", NAMES)
def test_chunking_changes_nothing(name: str) -> None:
    """A stream that arrives in sevens of bytes builds the same response."""
    assert response_of(build(name, chunk_bytes=7)) == response_of(build(name))


@pytest.mark.spec("PA-9")
@pytest.mark.parametrize("name", with_outcome("failed", "incomplete", "truncated"))
def test_an_unhappy_stream_never_completes(name: str) -> None:
    """Cut, failed and incomplete streams have no completed response at any point."""
    builder = ResponseBuilder()
    for event in events_of(name):
        builder.feed(event)
        assert builder.partial().status != "completed"
    assert response_of(builder).status != "completed"


@pytest.mark.parametrize("name", with_outcome("truncated"))
def test_a_cut_stream_leaves_a_partial_response(name: str) -> None:
    """After a cut the response is in progress and only done items are completed."""
    events = events_of(name)
    builder = build(name)
    done = {e.output_index for e in events if isinstance(e, OutputItemDone)}

    with pytest.raises(StreamTruncated) as caught:
        builder.close()

    partial = builder.partial()
    assert caught.value.events_seen == len(events)
    assert not builder.is_finished
    assert partial.status == "in_progress"
    assert partial.output
    for index, item in enumerate(partial.output):
        status = getattr(item, "status", None)
        assert status == ("completed" if index in done else "incomplete")


@pytest.mark.parametrize("name", ["text", "parallel_calls", "reasoning", "queued"])
def test_a_stream_by_the_book_has_no_problems(name: str) -> None:
    """Nothing is noted about a stream that follows the standard."""
    assert build(name).problems == []


def test_an_unknown_item_is_kept_whole() -> None:
    """The vendor's item in the output still has its type and its keys."""
    response = build("unknown_events").close()
    (item,) = (i for i in response.output if i.type == "acme:search_call")
    assert item.extra
