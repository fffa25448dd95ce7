"""Every event decodes to its type, and what is no event to a value, not an error."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.codec import (
    decode_compact_request,
    decode_compacted_response,
    decode_event,
    decode_items,
    event_from_json,
    items_from_json,
    request_from_json,
    response_from_json,
)
from gambit_actors.openresponses.events import (
    ErrorEvent,
    ErrorPayload,
    Event,
    MalformedEvent,
    OutputTextDelta,
    ReasoningDelta,
    ReasoningDone,
    StandardEvent,
    UnknownEvent,
)
from gambit_actors.openresponses.items import ItemReference, Message
from gambit_actors.openresponses.writing import encode
from tests.openresponses.strategies import json_values

STREAMS = Path(__file__).parents[1] / "fixtures" / "streams"


def whole_response() -> dict[str, JSONValue]:
    """Take a response with all its keys from a golden stream."""
    lines = (STREAMS / "parallel_calls.sse").read_bytes().splitlines()
    (line,) = [x for x in lines if x.startswith(b'data: {"type":"response.completed"')]
    response: dict[str, JSONValue] = json.loads(line.removeprefix(b"data: "))[
        "response"
    ]
    return response


RESPONSE = {"response": {"id": "resp_1", "status": "in_progress"}}
ITEM = {"type": "message", "id": "m", "status": "completed", "role": "assistant"}
ITEM |= {"content": []}  # type: ignore[dict-item]  # a JSON object, of mixed values
TEXT_PART = {"type": "output_text", "text": "a", "annotations": []}
CITATION = {"type": "url_citation", "url": "u", "title": "t"}
CITATION |= {"start_index": 0, "end_index": 1}  # type: ignore[dict-item]  # as above
AT_ITEM = {"output_index": 1}
WHOLE_ITEM = {"item_id": "m", "output_index": 1}
WHOLE_CONTENT = WHOLE_ITEM | {"content_index": 2}
WHOLE_SUMMARY = WHOLE_ITEM | {"summary_index": 2}
ERROR = {"type": "t", "code": None, "message": "m", "param": None}

# For each type: the least a server may send, and all the standard has for it.
EVENTS: dict[str, tuple[JSONValue, JSONValue]] = {
    f"response.{state}": (RESPONSE, {"response": whole_response()})
    for state in (
        *("created", "queued", "in_progress"),
        *("completed", "failed", "incomplete"),
    )
}
EVENTS |= {
    f"response.output_item.{step}": (AT_ITEM, AT_ITEM | {"item": ITEM})
    for step in ("added", "done")
}
EVENTS |= {
    f"response.content_part.{step}": (
        AT_ITEM | {"part": TEXT_PART},
        WHOLE_CONTENT | {"part": TEXT_PART},
    )
    for step in ("added", "done")
}
EVENTS |= {
    f"response.reasoning_summary_part.{step}": (
        AT_ITEM | {"part": {"type": "summary_text", "text": "s"}},
        WHOLE_SUMMARY | {"part": {"type": "summary_text", "text": "s"}},
    )
    for step in ("added", "done")
}
EVENTS |= {
    "response.output_text.delta": (
        AT_ITEM | {"delta": "d"},
        WHOLE_CONTENT | {"delta": "d", "logprobs": [{"t": 1}], "obfuscation": "o"},
    ),
    "response.output_text.done": (
        AT_ITEM | {"text": "t"},
        WHOLE_CONTENT | {"text": "t", "logprobs": []},
    ),
    "response.output_text.annotation.added": (
        AT_ITEM | {"annotation_index": 0},
        WHOLE_CONTENT | {"annotation_index": 0, "annotation": CITATION},
    ),
    "response.refusal.delta": (
        AT_ITEM | {"delta": "d"},
        WHOLE_CONTENT | {"delta": "d"},
    ),
    "response.refusal.done": (
        AT_ITEM | {"refusal": "r"},
        WHOLE_CONTENT | {"refusal": "r"},
    ),
    "response.function_call_arguments.delta": (
        AT_ITEM | {"delta": "{"},
        WHOLE_ITEM | {"delta": "{", "obfuscation": "o"},
    ),
    "response.function_call_arguments.done": (
        AT_ITEM | {"arguments": "{}"},
        WHOLE_ITEM | {"arguments": "{}"},
    ),
    "response.reasoning.delta": (
        AT_ITEM | {"delta": "d"},
        WHOLE_CONTENT | {"delta": "d", "obfuscation": "o"},
    ),
    "response.reasoning.done": (AT_ITEM | {"text": "t"}, WHOLE_CONTENT | {"text": "t"}),
    "response.reasoning_summary_text.delta": (
        AT_ITEM | {"delta": "d"},
        WHOLE_SUMMARY | {"delta": "d", "obfuscation": "o"},
    ),
    "response.reasoning_summary_text.done": (
        AT_ITEM | {"text": "t"},
        WHOLE_SUMMARY | {"text": "t"},
    ),
    "error": ({"error": {"message": "m"}}, {"error": ERROR | {"headers": {"a": "b"}}}),
}
BAD_TEXT = (
    '{"type":"response.completed","response":{"id":"r","status":"completed","output":'
    '[{"type":"message","role":"assistant","content":[{"type":"output_text",'
    '"text":["x"]}]}]}}'
)
DELTA = '{"type":"response.output_text.delta","output_index":0,"delta":%s}'


def decode(text: str) -> Event:
    """Decode an event from text."""
    return decode_event(text.encode())


def written(event: Event) -> JSONValue:
    """Encode an event and parse the result."""
    assert not isinstance(event, MalformedEvent), event
    return json.loads(encode(event))


@pytest.mark.spec("OR-3")
def test_the_table_has_all_types_of_the_standard() -> None:
    """There are 24 standard event types, and these tests see each of them."""
    types = {kind.__struct_config__.tag for kind in StandardEvent.__args__}
    assert types == set(EVENTS)
    assert len(types) == 24


@pytest.mark.spec("OR-3")
@pytest.mark.parametrize("kind", EVENTS)
def test_the_least_of_an_event_is_enough(kind: str) -> None:
    """An event with nothing but what it is about decodes to its own type."""
    fields = {"type": kind} | EVENTS[kind][0]
    event = decode(json.dumps(fields))
    assert isinstance(event, StandardEvent)
    assert event.type == kind
    assert event.sequence_number is None
    assert written(event).keys() >= fields.keys()


@pytest.mark.spec("OR-3")
@pytest.mark.parametrize("extra", [{}, {"acme:x": [1]}], ids=["plain", "extra"])
@pytest.mark.parametrize("kind", EVENTS)
def test_a_whole_event_comes_back_unchanged(
    kind: str, extra: dict[str, JSONValue]
) -> None:
    """An event with every key, known or not, is the same after a round trip."""
    fields = {"type": kind, "sequence_number": 7} | EVENTS[kind][1] | extra
    event = decode(json.dumps(fields))
    assert isinstance(event, StandardEvent)
    assert event.extra == extra
    assert written(event) == fields
    assert event_from_json(fields) == event


@pytest.mark.spec("OR-3")
@given(st.dictionaries(st.text("abc$:", max_size=5), json_values(), max_size=4))
def test_an_unknown_event_keeps_everything(fields: dict[str, JSONValue]) -> None:
    """An event of another type is kept with all its keys and written the same."""
    fields |= {"type": "acme:thing", "sequence_number": 3, "$type": "x"}
    event = decode(json.dumps(fields))
    assert isinstance(event, UnknownEvent)
    assert event.type == "acme:thing"
    assert written(event) == fields


@pytest.mark.parametrize("payload", ["", " ", "{", "nul", '{"a":}', "[DONE]", "{}x"])
def test_what_is_not_json_is_a_value(payload: str) -> None:
    """Bytes that are not JSON become a malformed event with its text."""
    event = decode(payload)
    assert isinstance(event, MalformedEvent)
    assert event.reason == "invalid_json"
    assert event.raw == payload
    assert event.problem.startswith("not JSON: ")
    assert event.type is None


@pytest.mark.parametrize(
    ("payload", "problem", "kind"),
    [
        ("[]", "expected an object, got []", None),
        ("null", "expected an object, got null", None),
        ("{}", "the key 'type' is missing", None),
        ('{"type":null}', "the key 'type' is missing", None),
        (
            DELTA % 5,
            "delta: expected a string, got 5",
            "response.output_text.delta",
        ),
        (
            '{"type":"response.refusal.delta","output_index":0}',
            "the key 'delta' is missing",
            "response.refusal.delta",
        ),
        (
            BAD_TEXT,
            'response.output[0].content[0].text: expected a string, got ["x"]',
            "response.completed",
        ),
    ],
)
def test_a_wrong_shape_is_a_value(payload: str, problem: str, kind: str | None) -> None:
    """JSON that fits no event becomes a malformed event that says where and what."""
    assert decode(payload) == MalformedEvent(
        reason="invalid_shape", problem=problem, raw=payload, type=kind
    )


@pytest.mark.parametrize("tag", ["[]", "{}", "1", "true", '[["a"]]'])
def test_a_type_that_is_no_string_is_a_wrong_shape(tag: str) -> None:
    """Any JSON value may stand where the type should be, and none raises."""
    event = decode(f'{{"type":{tag}}}')
    assert isinstance(event, MalformedEvent)
    assert event.reason == "invalid_shape"
    assert event.problem.startswith("type: ")
    assert event.type is None


@pytest.mark.spec("OR-3")
@pytest.mark.parametrize("extra", ["", ',"acme:x":1'])
def test_both_names_of_reasoning_events(extra: str) -> None:
    """OpenAI's names for reasoning events give the standard's events."""
    at = f'"output_index":0,"content_index":1,"sequence_number":4{extra}'
    delta = '{"type":"response.%s.delta","delta":"d",' + at + "}"
    done = '{"type":"response.%s.done","text":"t",' + at + "}"
    for form, kind in ((delta, ReasoningDelta), (done, ReasoningDone)):
        event = decode(form % "reasoning_text")
        assert type(event) is kind
        assert event == decode(form % "reasoning")


def test_the_other_name_inside_a_text_changes_nothing() -> None:
    """A delta that merely mentions the other name is the delta it is."""
    event = decode(DELTA % '"\\"response.reasoning_text.delta\\""')
    assert isinstance(event, OutputTextDelta)
    assert event.delta == '"response.reasoning_text.delta"'


def test_flat_and_nested_errors_are_the_same() -> None:
    """OpenAI's flat error gives the event that the nested form gives."""
    flat = '{"type":"error","code":"c","message":"m","param":null,"sequence_number":2}'
    nested = '{"type":"error","error":{"code":"c","message":"m"},"sequence_number":2}'
    expected = ErrorEvent(error=ErrorPayload(code="c", message="m"), sequence_number=2)
    assert decode(flat) == decode(nested) == expected


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (r'"\ud83d"', "\ufffd"),
        (r'"\ude00"', "\ufffd"),
        (r'"a\ud83db"', "a\ufffdb"),
        (r'"\ude00\ud83d"', "\ufffd\ufffd"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\\ud83d"', r"\ud83d"),
        (r'"\ufeff\ud83d"', "\ufeff\ufffd"),
    ],
)
def test_half_a_surrogate_pair_becomes_the_replacement(text: str, read: str) -> None:
    """Half a pair reads as U+FFFD, and everything around it as it was."""
    event = decode(DELTA % text)
    assert isinstance(event, OutputTextDelta)
    assert event.delta == read


def test_huge_integers_are_kept() -> None:
    """Integers beyond 64 bits come back digit for digit."""
    number = 10**40 + 7
    text = f'{{"type":"acme:n","up":{number},"down":{-number},"max":{2**64}}}'
    assert written(decode(text)) == json.loads(text)


def test_of_a_key_sent_twice_the_last_counts() -> None:
    """Duplicate keys read as in any JSON parser, on both ways through the codec."""
    for extra in ("", ',"acme:x":1'):
        event = decode(DELTA % f'"a","delta":"b"{extra}')
        assert isinstance(event, OutputTextDelta)
        assert event.delta == "b"


NESTS = {
    "bare": "%s",
    "unknown event": '{"type":"acme:x","x":%s}',
    "free value": DELTA % '"d","logprobs":[%s]',
    "free value, extra": DELTA % '"d","acme:x":1,"logprobs":[%s]',
    "wrong place": DELTA % "%s",
    "half a pair": '{"type":"acme:x","y":"\\ud83d","x":%s}',
}


@pytest.mark.slow
@pytest.mark.parametrize("nest", NESTS)
def test_deep_nesting_never_raises(nest: str) -> None:
    """At every depth a document is an event or malformed; none overflows the stack."""
    for depth in (*range(1, 1100), 10_000, 100_000):
        decode(NESTS[nest] % ("[" * depth + "]" * depth))
    assert isinstance(decode("[" * 100_000), MalformedEvent)


@given(st.binary())
def test_any_bytes_decode_to_something(data: bytes) -> None:
    """Bytes of any kind give an event and never raise."""
    event = decode_event(data)
    if isinstance(event, MalformedEvent):
        assert event.raw == data.decode("utf-8", "replace")


KEYS = ["response", "item", "part", "delta", "output_index", "error", "id", "output"]


@given(
    st.one_of(
        json_values(), st.sampled_from([*EVENTS, "response.reasoning_text.done"])
    ),
    st.dictionaries(st.sampled_from([*KEYS, "$extra"]), json_values()),
)
def test_any_json_decodes_to_something(
    kind: JSONValue, fields: dict[str, JSONValue]
) -> None:
    """JSON of any shape gives an event, the same from bytes and from values."""
    fields |= {"type": kind}
    event = decode(json.dumps(fields))
    if isinstance(event, MalformedEvent):
        assert event.reason == "invalid_shape"
    else:
        assert event_from_json(fields) == event


@pytest.mark.spec("OR-1")
def test_documents_can_be_read_from_parsed_json() -> None:
    """Requests, responses and items read from values as from bytes."""
    assert request_from_json({"model": "m"}).model == "m"
    assert response_from_json(whole_response()).id == whole_response()["id"]
    items = [{"role": "user", "content": "a"}, {"id": "x"}]
    assert items_from_json(items) == (
        Message(role="user", content="a"),
        ItemReference(id="x"),
    )
    assert decode_items(json.dumps(items).encode()) == items_from_json(items)


def test_compaction_documents() -> None:
    """A compaction request and its answer come back unchanged."""
    request = {"model": "m", "input": "a", "prompt_cache_key": "k", "acme:x": 1}
    assert json.loads(encode(decode_compact_request(json.dumps(request).encode()))) == (
        request
    )
    answer = {"id": "c", "object": "response.compaction", "created_at": 1}
    whole = answer | {"output": [ITEM], "usage": whole_response()["usage"]}
    read = decode_compacted_response(json.dumps(whole).encode())
    assert json.loads(encode(read)) == whole
