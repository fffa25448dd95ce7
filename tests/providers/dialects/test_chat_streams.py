"""Answers of Chat Completions as they arrive, by the rules or not."""

import itertools
import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.openresponses import (
    Event,
    MalformedEvent,
    ResponseBuilder,
    SSEFrame,
)
from gambit_actors.openresponses.events import (
    FunctionCallArgumentsDelta,
    OutputTextDelta,
    ReasoningDelta,
    RefusalDelta,
    ResponseCompleted,
)
from gambit_actors.openresponses.items import FunctionCall
from gambit_actors.providers.dialects.chat import OPENROUTER, ChatDialect
from gambit_actors.providers.dialects.chat_calls import Openness
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

DIALECT = ChatDialect(flavour=OPENROUTER)
NAMES = golden_names("chat")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=6,
)


def _sometimes(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Objects with some of these keys, each as it should be or as anything."""
    return st.fixed_dictionaries(
        {}, optional={key: value | JSON for key, value in fields.items()}
    )


def is_open(*pieces: str) -> bool:
    """Whether JSON text in pieces is in the middle of something."""
    openness = Openness()
    for piece in pieces:
        openness.feed(piece)
    return openness.is_open


TEXTS = st.sampled_from(["", "a", "b", '{"a":', "1}", "{}", "\ud83d"]) | st.text()
FUNCTIONS = _sometimes(name=TEXTS, arguments=TEXTS)
CALLS = st.lists(
    _sometimes(
        index=st.integers(0, 2), id=st.sampled_from("ab") | TEXTS, function=FUNCTIONS
    ),
    max_size=3,
)
DETAILS = st.lists(
    _sometimes(
        type=st.sampled_from(
            ["reasoning.text", "reasoning.summary", "reasoning.encrypted"]
        ),
        text=TEXTS,
        summary=TEXTS,
        index=st.integers(0, 1),
    ),
    max_size=2,
)
DELTAS = _sometimes(
    content=TEXTS | st.lists(_sometimes(type=st.just("text"), text=TEXTS)),
    refusal=TEXTS,
    reasoning=TEXTS,
    reasoning_content=TEXTS,
    reasoning_details=DETAILS,
    tool_calls=CALLS,
    function_call=FUNCTIONS,
)
FINISHES = st.sampled_from(
    ["stop", "length", "tool_calls", "content_filter", "error", "tired", ""]
)
CHUNKS = _sometimes(
    choices=st.lists(
        _sometimes(
            index=st.integers(0, 1),
            delta=DELTAS,
            message=DELTAS,
            text=TEXTS,
            finish_reason=st.none() | FINISHES,
        ),
        max_size=2,
    ),
    usage=_sometimes(prompt_tokens=st.integers(), completion_tokens=st.integers()),
    error=st.none() | _sometimes(message=TEXTS, code=TEXTS),
    object=st.sampled_from(["chat.completion.chunk", "error"]),
)


def _frames(documents: Sequence[object]) -> list[SSEFrame]:
    return [
        SSEFrame("message", json.dumps(document).encode("utf-8", "replace"))
        for document in documents
    ]


def _chunk(delta: object, finish: str | None = None) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _read(frames: Sequence[SSEFrame]) -> tuple[list[Event], ResponseBuilder]:
    reader, builder = DIALECT.reader(STARTED), ResponseBuilder()
    events = [event for frame in frames for event in reader.feed(frame)]
    events += reader.close()
    for event in events:
        builder.feed(event)
    return events, builder


def _frames_of(name: str) -> list[SSEFrame]:
    blocks = golden_bytes("chat", name).split(b"\n\n")
    return [SSEFrame("message", b[6:]) for b in blocks if b.startswith(b"data: ")]


@pytest.mark.spec("PA-10", "MAP-1", "MAP-2", "MAP-3", "MAP-5", "MAP-6", "MAP-7")
@pytest.mark.parametrize("name", NAMES)
def test_a_golden_stream_comes_to_what_is_expected(name: str) -> None:
    """Each recorded answer gives the events, the response and the problems it must."""
    played = play(DIALECT, [golden_bytes("chat", name)])

    assert outcome(played) == expected("chat", name)


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.__name__)
def test_it_does_what_every_dialect_has_to(check: DialectCheck) -> None:
    """The checks that any dialect can be held to hold for this one."""
    check(DIALECT, streams_of("chat"))


@pytest.mark.parametrize("name", NAMES)
def test_bytes_one_by_one_come_to_the_same(name: str) -> None:
    """An answer that arrives byte by byte reads as one that arrives at once."""
    data = golden_bytes("chat", name)

    played = play(DIALECT, [data[at : at + 1] for at in range(len(data))])

    assert outcome(played) == expected("chat", name)


@given(st.sampled_from(NAMES), st.lists(st.integers(0, 4000), max_size=12))
def test_any_chunks_come_to_the_same(name: str, cuts: list[int]) -> None:
    """However the bytes are cut, the answer is the same."""
    data = golden_bytes("chat", name)
    at = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]

    played = play(DIALECT, [data[a:b] for a, b in itertools.pairwise(at)])

    assert outcome(played) == expected("chat", name)


@pytest.mark.spec("PA-9")
@pytest.mark.parametrize("name", NAMES)
def test_an_answer_cut_anywhere_is_never_completed(name: str) -> None:
    """As long as nothing has said how an answer went, no cut of it is completed."""
    frames = _frames_of(name)
    said = [
        place
        for place, frame in enumerate(frames)
        if b'"finish_reason":"' in frame.data.replace(b'"finish_reason":""', b"")
        or frame.is_done
    ]

    for end in range(min(said, default=len(frames))):
        events, _ = _read(frames[:end])
        assert not any(isinstance(event, ResponseCompleted) for event in events)


@given(
    st.sampled_from(NAMES),
    st.lists(
        st.tuples(
            st.sampled_from(["drop", "twice", "swap"]),
            st.integers(0, 12),
            st.integers(0, 12),
        ),
        max_size=4,
    ),
)
def test_a_damaged_stream_completes_no_half_call(
    name: str, damages: list[tuple[str, int, int]]
) -> None:
    """Frames lost, doubled or out of order raise nothing and end no half call."""
    frames = _frames_of(name)
    for kind, first, second in damages:
        if not frames:
            break
        one, other = first % len(frames), second % len(frames)
        if kind == "drop":
            del frames[one]
        elif kind == "twice":
            frames.insert(one, frames[one])
        else:
            frames[one], frames[other] = frames[other], frames[one]

    events, _ = _read(frames)

    for event in events:
        if isinstance(event, ResponseCompleted):
            calls = [i for i in event.response.output if isinstance(i, FunctionCall)]
            assert all(call.name for call in calls)
            assert not any(is_open(call.arguments) for call in calls)
            assert len({call.call_id for call in calls}) == len(calls)


@given(st.lists(CHUNKS | JSON, max_size=6))
def test_any_documents_are_read_and_complete_nothing_by_themselves(
    documents: list[object],
) -> None:
    """Whatever a server sends raises nothing, and completes only with a reason."""
    events, builder = _read(_frames(documents))

    assert builder.problems == [p for p in builder.problems if "none" in p]
    if any(isinstance(event, ResponseCompleted) for event in events):
        assert any("finish_reason" in json.dumps(document) for document in documents)


@given(st.lists(st.binary(max_size=60), max_size=4))
def test_any_bytes_are_read(payloads: list[bytes]) -> None:
    """Frames of any bytes raise nothing and complete nothing."""
    events, _ = _read([SSEFrame("message", payload) for payload in payloads])

    assert not any(isinstance(event, ResponseCompleted) for event in events)


def test_what_is_no_json_is_kept() -> None:
    """A frame that is not JSON becomes an event with its text, and reading goes on."""
    played = play(DIALECT, [golden_bytes("chat", "invalid_json")])

    (malformed,) = [e for e in played.events if isinstance(e, MalformedEvent)]

    assert malformed.raw == '{"choices":[{"delta":{"content":'
    assert played.response is not None
    assert played.response.output_text == "Hello"


@given(st.lists(st.tuples(st.sampled_from("tr"), st.text(min_size=1)), max_size=8))
def test_no_word_is_lost_or_doubled(said: list[tuple[str, str]]) -> None:
    """Text and reasoning come out as they went in, in whatever order they change."""
    keys = {"t": "content", "r": "reasoning_content"}
    chunks = [_chunk({keys[kind]: text}) for kind, text in said]
    events, builder = _read(_frames([*chunks, _chunk({}, "stop")]))

    found = [
        ("t" if isinstance(event, OutputTextDelta) else "r", event.delta)
        for event in events
        if isinstance(event, OutputTextDelta | ReasoningDelta)
    ]
    assert found == said
    assert builder.close().output_text == "".join(t for k, t in said if k == "t")


@given(st.lists(st.sampled_from([0, 1, 2]), min_size=1, max_size=12))
def test_interleaved_calls_keep_their_arguments(order: list[int]) -> None:
    """Pieces of several calls in any order end up with the call they are of."""
    arguments = {place: f'{{"n":{place}{"1" * order.count(place)}}}' for place in order}
    pieces = {place: iter(arguments[place][5:]) for place in arguments}
    chunks = [
        _chunk(
            {
                "tool_calls": [
                    {"index": place, "id": f"c{place}"}
                    | {"function": {"name": "f", "arguments": text[:5]}}
                ]
            }
        )
        for place, text in arguments.items()
    ]
    for place in [*order, *order, *order]:
        piece = next(pieces[place], "")
        call = {"index": place, "function": {"arguments": piece}}
        chunks.append(_chunk({"tool_calls": [call]}))
    _, builder = _read(_frames([*chunks, _chunk({}, "tool_calls")]))

    calls = [item for item in builder.close().output if isinstance(item, FunctionCall)]
    assert {int(call.call_id[1:]): call.arguments for call in calls} == arguments


def test_deltas_are_events_of_their_own() -> None:
    """Text, refusals and arguments come out piece by piece, as they come in."""
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{"}}
    more = {"index": 0, "function": {"arguments": "}"}}
    reader = DIALECT.reader(STARTED)
    given_for = [
        [type(event) for event in reader.feed(frame)]
        for frame in _frames(
            [
                _chunk({"content": "a"}),
                _chunk({"content": "b"}),
                _chunk({"refusal": "c"}),
                _chunk({"refusal": "d"}),
                _chunk({"tool_calls": [call]}),
                _chunk({"tool_calls": [more]}),
            ]
        )
    ]

    assert given_for[1] == [OutputTextDelta]
    assert given_for[3] == [RefusalDelta]
    assert given_for[5] == [FunctionCallArgumentsDelta]


def test_problems_do_not_grow_without_end() -> None:
    """A server that breaks the rules for ever fills no memory with notes of it."""
    reader = DIALECT.reader(STARTED)
    (frame,) = _frames([{"choices": [{"index": 1, "delta": {"content": "x"}}]}])
    for _ in range(500):
        reader.feed(frame)

    assert len(reader.problems) == 100
