"""What was read is written as it was; what is written can be read as one frame."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gambit_actors.openresponses.base import NO_EXTRA, Extra, JSONValue
from gambit_actors.openresponses.codec import (
    OTHER_NAMES,
    decode_event,
    decode_item,
    decode_items,
    decode_request,
    decode_response,
)
from gambit_actors.openresponses.events import (
    ContentPartDone,
    OutputItemDone,
    OutputTextDelta,
    ResponseCompleted,
    StandardEvent,
    UnknownEvent,
)
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
)
from gambit_actors.openresponses.parts import OutputText, Part
from gambit_actors.openresponses.responses import Response
from gambit_actors.openresponses.sse import DONE_FRAME, SSEDecoder, encode_event
from gambit_actors.openresponses.writing import encode, to_builtins
from tests.openresponses.strategies import (
    extras,
    items,
    json_texts,
    json_values,
    legal_responses,
    parts,
    texts,
    words,
)

Document = dict[str, JSONValue]
Documents = st.SearchStrategy[Document]

STANDARD_TYPES = {kind.__struct_config__.tag for kind in StandardEvent.__args__}
STANDARD_TYPES |= OTHER_NAMES.keys()
RESPONSE_KEYS = {
    *("id", "object", "created_at", "completed_at", "status", "incomplete_details"),
    *("model", "previous_response_id", "instructions", "output", "error", "tools"),
    *("tool_choice", "truncation", "parallel_tool_calls", "text", "top_p"),
    *("presence_penalty", "frequency_penalty", "top_logprobs", "temperature"),
    *("reasoning", "usage", "max_output_tokens", "max_tool_calls", "store"),
    *("background", "service_tier", "metadata", "safety_identifier"),
    "prompt_cache_key",
}


def canonical(value: JSONValue) -> str:
    """Write JSON so that 1, 1.0 and true all differ and the order does not matter."""
    return json.dumps(value, sort_keys=True)


# --- documents, made without the package ------------------------------------


def document(
    required: dict[str, st.SearchStrategy[JSONValue]],
    optional: dict[str, st.SearchStrategy[JSONValue]] | None = None,
    *,
    type: str | None = None,
) -> Documents:
    """Draw an object with its required keys, some optional ones and strange ones."""
    tag = {} if type is None else {"type": st.just(type)}
    known = st.fixed_dictionaries(required | tag, optional=optional or {})
    return st.tuples(extras(), known).map(lambda pair: dict(pair[0]) | pair[1])


def unknown_documents() -> Documents:
    """Draw an object of a type nobody knows."""
    return document({"type": words().map("acme:{}".format)}, {"id": json_values()})


def part_documents() -> Documents:
    """Draw a content part."""
    span = {"start_index": st.integers(0), "end_index": st.integers(0)}
    citation = document({"url": texts(), "title": texts()} | span, type="url_citation")
    notes = st.lists(st.one_of(citation, unknown_documents()), max_size=2)
    return st.one_of(
        document({"text": texts()}, type="input_text"),
        document({}, {"image_url": texts(), "detail": words()}, type="input_image"),
        document({}, {"filename": texts(), "file_data": texts()}, type="input_file"),
        document({"video_url": texts()}, type="input_video"),
        document(
            {"text": texts(), "annotations": notes},
            {"logprobs": st.lists(json_values(), max_size=2)},
            type="output_text",
        ),
        document({"refusal": texts()}, type="refusal"),
        unknown_documents(),
    )


def item_documents() -> Documents:
    """Draw an item, in the form of input or of output."""
    some_parts = st.lists(part_documents(), max_size=2)
    thoughts = st.lists(document({"text": texts()}, type="summary_text"), max_size=2)
    common = {"id": words(), "status": words()}
    call = {"call_id": words(), "name": words(), "arguments": json_texts()}
    roles = st.sampled_from(["user", "assistant", "system", "developer"])
    return st.one_of(
        document(
            {"role": roles, "content": st.one_of(texts(), some_parts)},
            common | {"phase": words()},
            type="message",
        ),
        document(call, common, type="function_call"),
        document(
            {"call_id": words(), "output": st.one_of(json_texts(), some_parts)},
            common,
            type="function_call_output",
        ),
        document(
            {"summary": thoughts},
            common | {"encrypted_content": texts(), "content": some_parts},
            type="reasoning",
        ),
        document({"encrypted_content": texts()}, {"id": words()}, type="compaction"),
        document({"id": words()}, type="item_reference"),
        unknown_documents(),
    )


def request_documents() -> Documents:
    """Draw a request."""
    tool = document(
        {"name": words()},
        {
            "description": texts(),
            "parameters": st.dictionaries(texts(), json_values(), max_size=2),
            "strict": st.booleans(),
        },
        type="function",
    )
    choice = document({"name": words()}, type="function")
    modes = st.sampled_from(["none", "auto", "required"])
    allowed = document(
        {"tools": st.lists(choice, max_size=2)}, {"mode": modes}, type="allowed_tools"
    )
    schema = document(
        {"name": words(), "schema": st.dictionaries(texts(), json_values())},
        {"strict": st.booleans()},
        type="json_schema",
    )
    shape = st.one_of(document({}, type="text"), schema, unknown_documents())
    return document(
        {},
        {
            "model": texts(),
            "input": st.one_of(texts(), st.lists(item_documents(), max_size=3)),
            "tools": st.lists(st.one_of(tool, unknown_documents()), max_size=2),
            "tool_choice": st.one_of(modes, choice, allowed, unknown_documents()),
            "text": document({}, {"format": shape, "verbosity": words()}),
            "reasoning": document({}, {"effort": words(), "summary": words()}),
            "temperature": st.floats(0, 2),
            "max_output_tokens": st.integers(16),
            "metadata": st.dictionaries(words(), texts(), max_size=3),
            "stream": st.booleans(),
            "stream_options": document({}, {"include_obfuscation": st.booleans()}),
        },
    )


# --- round trips -------------------------------------------------------------


@pytest.mark.spec("OR-1")
@given(item_documents())
def test_any_item_document_comes_back(fields: Document) -> None:
    """An item of any type, with strange keys anywhere, is written as it was read."""
    item = decode_item(json.dumps(fields).encode())
    assert canonical(json.loads(encode(item))) == canonical(fields)
    assert decode_items(encode((item,))) == (item,)


@pytest.mark.spec("OR-2")
@given(request_documents())
def test_any_request_document_comes_back(fields: Document) -> None:
    """A request, with strange keys and types anywhere, is written as it was read."""
    request = decode_request(json.dumps(fields).encode())
    assert canonical(json.loads(encode(request))) == canonical(fields)


@pytest.mark.slow
@pytest.mark.spec("OR-2")
@given(legal_responses())
def test_any_response_comes_back(response: Response) -> None:
    """A response that was written is read as the same response."""
    data = encode(response)
    assert decode_response(data) == response
    assert canonical(json.loads(encode(decode_response(data)))) == canonical(
        json.loads(data)
    )


@given(items())
def test_any_item_comes_back(item: Item) -> None:
    """An item that was written is read as the same item."""
    assert decode_item(encode(item)) == item
    assert json.loads(encode(item)) == to_builtins(item)


@pytest.mark.spec("OR-1")
@given(json_texts())
def test_argument_and_output_text_is_untouched(text: str) -> None:
    """Arguments and outputs keep every space and escape, in both directions."""
    call = {"type": "function_call", "call_id": "c", "name": "n", "arguments": text}
    output = {"type": "function_call_output", "call_id": "c", "output": text}
    for extra in ({}, {"acme:x": 1}):
        read_call = decode_item(json.dumps(call | extra).encode())
        assert isinstance(read_call, FunctionCall)
        assert read_call.arguments == text
        assert json.loads(encode(read_call))["arguments"] == text
        read_output = decode_item(json.dumps(output | extra).encode())
        assert isinstance(read_output, FunctionCallOutput)
        assert read_output.output == text
        assert json.loads(encode(read_output))["output"] == text


@given(item_documents())
def test_optional_keys_are_never_null(fields: Document) -> None:
    """A null for an optional key is read as absent and is not written."""
    nulls = dict.fromkeys(("id", "status", "phase", "encrypted_content"))
    known = {"message": nulls, "function_call": dict.fromkeys(("id", "status"))}
    added = known.get(fields["type"], {})
    item = decode_item(json.dumps(added | fields).encode())
    expected = {k: v for k, v in (added | fields).items() if k not in added or v}
    strange = {"encrypted_content": None} if fields["type"] == "message" else {}
    assert canonical(json.loads(encode(item))) == canonical(strange | expected)


# --- what is always written --------------------------------------------------


@pytest.mark.slow
@given(legal_responses())
def test_a_response_has_its_31_keys(response: Response) -> None:
    """A response writes all keys of the schema and its strange ones, no others."""
    written = json.loads(encode(response))
    assert len(RESPONSE_KEYS) == 31
    assert written.keys() == RESPONSE_KEYS | response.extra.keys()


@pytest.mark.parametrize("extra", [NO_EXTRA, Extra({"acme:x": 1})])
def test_the_barest_response_has_its_31_keys(extra: Extra) -> None:
    """A response that says nothing still writes all keys, on both ways through."""
    response = Response(id="r", status="completed", extra=extra)
    written = json.loads(encode(response))
    assert written.keys() == RESPONSE_KEYS | extra.keys()
    assert written["metadata"] == {}
    assert json.loads(encode(ResponseCompleted(response=response)))["response"] == (
        written
    )


def test_required_lists_are_written_when_empty() -> None:
    """Annotations and summary are there though nothing is in them."""
    assert json.loads(encode(OutputText(text="a"))) == {
        "type": "output_text",
        "text": "a",
        "annotations": [],
    }
    assert json.loads(encode(Reasoning())) == {"type": "reasoning", "summary": []}
    assert json.loads(encode(Message(role="user", content=()))) == {
        "type": "message",
        "role": "user",
        "content": [],
    }


# --- frames -------------------------------------------------------------------


def only_frame(data: bytes) -> tuple[str, bytes]:
    """Decode bytes that have to be exactly one frame."""
    decoder = SSEDecoder()
    (frame,) = decoder.feed(data)
    assert decoder.close() == b""
    return frame.event, frame.data


@given(parts(), items(), texts())
def test_an_event_is_one_frame(part: Part, item: Item, text: str) -> None:
    """Any event is two lines and a blank one, and reads as the event it was."""
    events: list[StandardEvent] = [
        OutputTextDelta(output_index=0, delta=text),
        ContentPartDone(output_index=0, part=part),
        OutputItemDone(output_index=1, item=item, sequence_number=3),
    ]
    for event in events:
        data = encode_event(event)
        assert data.startswith(f"event: {event.type}\ndata: {{".encode())
        assert data.endswith(b"}\n\n")
        assert data.count(b"\n") == 3
        assert b"\r" not in data
        name, payload = only_frame(data)
        assert name == event.type
        assert decode_event(payload) == event


@given(st.one_of(texts(), st.text("\r\n\0: a", max_size=8)), extras())
def test_an_unknown_type_cannot_inject_a_frame(name: str, extra: Extra) -> None:
    """Whatever a type contains, its event is one frame and keeps its type."""
    assume(name not in STANDARD_TYPES)  # Such a type is not unknown.
    event = UnknownEvent(type_name=name, extra=extra)
    written_name, payload = only_frame(encode_event(event))
    assert decode_event(payload) == event
    if name.isprintable() and name:
        assert written_name == name


@pytest.mark.parametrize(
    "name", ["x\n\ndata: [DONE]\n\n", "x\rdata: evil", "x\0", "x\u2028y", "x\x85"]
)
def test_line_breaks_in_a_type_stay_in_the_data(name: str) -> None:
    """A type with a line break has no event line, so nothing follows from it."""
    event = UnknownEvent(type_name=name, extra=Extra({"text": "a\nb"}))
    written_name, payload = only_frame(encode_event(event))
    assert written_name == "message"
    assert json.loads(payload) == {"type": name, "text": "a\nb"}


def test_the_done_frame() -> None:
    """The marker is one frame without a name."""
    assert only_frame(DONE_FRAME) == ("message", b"[DONE]")
