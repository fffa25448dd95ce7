"""Real peers' forms are read, strange keys are kept, faults say where and what."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import (
    BadRequest,
    BadResponse,
    GambitError,
    ProviderError,
    RequestError,
    WireError,
)
from gambit_actors.openresponses.base import JSONValue, Open
from gambit_actors.openresponses.codec import (
    decode_item,
    decode_request,
    decode_response,
)
from gambit_actors.openresponses.items import (
    FunctionCall,
    ItemReference,
    Message,
    Reasoning,
    UnknownItem,
)
from gambit_actors.openresponses.parts import InputText, OutputText, UrlCitation
from gambit_actors.openresponses.reading import Mismatch, compile_reader, parse_json
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import ResponseError
from gambit_actors.openresponses.tools import (
    AllowedTools,
    FunctionChoice,
    FunctionTool,
    UnknownTool,
)
from gambit_actors.openresponses.writing import encode
from tests.openresponses.strategies import extras, json_values

CALL = {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"}
BAD_ROLE = (
    'input[0].role: expected one of user, assistant, system, developer, got "wizard"'
)
DONE = {"id": "r", "status": "completed"}


def to_bytes(value: JSONValue) -> bytes:
    """Write any JSON value."""
    return json.dumps(value).encode()


def read_request(**fields: JSONValue) -> CreateResponse:
    """Read a request with these keys."""
    return decode_request(to_bytes(fields))


# --- forms that real peers send ---------------------------------------------


def test_a_message_without_type() -> None:
    """An object with a role is a message, though its type was left out."""
    request = read_request(input=[{"role": "user", "content": "hi"}])
    assert request.input == (Message(role="user", content="hi"),)


@pytest.mark.parametrize("fields", [{"id": "x"}, {"id": "x", "type": None}])
def test_an_item_reference_without_type(fields: dict[str, JSONValue]) -> None:
    """An object with an id and no type is a reference, null type included."""
    assert decode_item(to_bytes(fields)) == ItemReference(id="x")


@pytest.mark.spec("OR-2")
@pytest.mark.parametrize("extra", [{}, {"acme:x": 1}], ids=["plain", "extra"])
def test_a_nested_function_tool(extra: dict[str, JSONValue]) -> None:
    """The Chat Completions form of a tool and the flat form give the same tool."""
    inner = {"name": "f", "description": "d", "parameters": {"a": 1}, "strict": True}
    nested = read_request(tools=[{"type": "function", "function": inner} | extra])
    flat = read_request(tools=[{"type": "function"} | inner | extra])
    assert nested == flat
    (tool,) = nested.tools or ()
    assert isinstance(tool, FunctionTool)
    assert tool.name == "f"
    assert tool.extra == extra


@pytest.mark.spec("OR-2")
def test_a_nested_tool_choice() -> None:
    """The nested forms of a tool choice give what the flat forms give."""
    named = {"type": "function", "function": {"name": "f"}}
    assert read_request(tool_choice=named).tool_choice == FunctionChoice(name="f")
    allowed = read_request(tool_choice={"type": "allowed_tools", "tools": [named]})
    assert allowed.tool_choice == AllowedTools(tools=(FunctionChoice(name="f"),))


def test_a_hosted_tool_is_kept() -> None:
    """A tool that is no function, such as Codex sends, is kept whole."""
    tool = {"type": "web_search", "filters": {"a": [1]}}
    request = read_request(tools=[tool], client_metadata={"k": 1})
    (read,) = request.tools or ()
    assert isinstance(read, UnknownTool)
    assert json.loads(encode(request)) == {
        "tools": [tool],
        "client_metadata": {"k": 1},
    }


def test_null_means_absent() -> None:
    """An optional key that is null reads as one that is not there."""
    nulls = dict.fromkeys(("tools", "temperature", "output", "text", "store"))
    assert decode_response(to_bytes(DONE | nulls)) == decode_response(to_bytes(DONE))
    part = {"type": "output_text", "text": "a", "annotations": None}
    item = decode_item(
        to_bytes({"type": "message", "role": "assistant", "content": [part]})
    )
    assert item == Message(role="assistant", content=(OutputText(text="a"),))


def test_fractions_of_a_second_are_cut() -> None:
    """A time stamp with a fraction reads as its whole seconds."""
    stamps = {"created_at": 1.9, "completed_at": 2.0}
    response = decode_response(to_bytes(DONE | stamps))
    assert (response.created_at, response.completed_at) == (1, 2)


@pytest.mark.spec("OR-2")
@pytest.mark.parametrize("code", [{}, {"code": None}])
def test_an_error_without_a_code(code: dict[str, JSONValue]) -> None:
    """A response error always has a code, if need be an unknown one."""
    response = decode_response(to_bytes(DONE | {"error": {"message": "m"} | code}))
    assert response.error == ResponseError(code="unknown", message="m")


def test_reasoning_needs_nothing() -> None:
    """Reasoning without a summary has an empty one."""
    assert decode_item(b'{"type":"reasoning"}') == Reasoning(summary=())


# --- hostile peers ----------------------------------------------------------


@pytest.mark.parametrize("key", ["$extra", "$unknown", "$type", "extra", "type_name"])
@pytest.mark.parametrize("value", [{"call_id": "evil"}, {}, None, 1, "x", [{}]])
def test_reserved_keys_are_ordinary_keys(key: str, value: JSONValue) -> None:
    """Keys that we use ourselves come back untouched and change nothing else."""
    fields = CALL | {key: value}
    item = decode_item(to_bytes(fields))
    assert isinstance(item, FunctionCall)
    assert item.call_id == "c"
    assert item.extra == {key: value}
    assert json.loads(encode(item)) == fields


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "$unknown"},
        {"type": "$unknown", "$type": "message"},
        {"type": "$unknown", "$type": "message", "$extra": {"type": "evil"}},
        {"type": "acme", "$type": "x", "$extra": {"type": "message"}, "$unknown": 1},
    ],
)
def test_reserved_types_are_ordinary_types(fields: dict[str, JSONValue]) -> None:
    """A type that we use ourselves is one we do not know, and comes back untouched."""
    item = decode_item(to_bytes(fields))
    assert isinstance(item, UnknownItem)
    assert item.type == fields["type"]
    assert json.loads(encode(item)) == fields


@given(extras(), json_values())
def test_extra_keys_never_win(extra: dict[str, JSONValue], value: JSONValue) -> None:
    """Whatever is in extra, the keys of the struct are written with their values."""
    extra = extra | {"call_id": value, "type": value}
    call = FunctionCall(call_id="c", name="n", arguments="{}")
    loaded = compile_reader(FunctionCall)(CALL | {"acme:x": 1}, "")
    loaded.extra.update(extra)
    written = json.loads(encode(loaded))
    assert written["call_id"] == call.call_id
    assert written["type"] == "function_call"


# --- what is wrong, and where -----------------------------------------------


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ([], "expected an object, got []"),
        ({"input": 5}, "input: expected a string or a list, got 5"),
        (
            {"input": [{"role": "wizard", "content": "x"}]},
            BAD_ROLE,
        ),
        (
            {"input": [{"type": "message", "role": "user"}]},
            "input[0]: the key 'content' is missing",
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
            "input[0].content[0]: the key 'text' is missing",
        ),
        ({"input": [{"content": "x"}]}, "input[0]: the key 'type' is missing"),
        (
            {"input": [{"role": "user", "content": "a"}, 7]},
            "input[1]: expected an object, got 7",
        ),
        ({"temperature": "hot"}, 'temperature: expected a number, got "hot"'),
        ({"tools": [{"type": "function"}]}, "tools[0]: the key 'name' is missing"),
        ({"tools": {}}, "tools: expected a list, got {}"),
        (
            {"max_output_tokens": 3},
            "max_output_tokens: expected a whole number of at least 16, got 3",
        ),
        (
            {"metadata": {"a": 1}},
            "metadata.a: expected a string of at most 512 characters, got 1",
        ),
        (
            {"truncation": "some"},
            'truncation: expected one of auto, disabled, got "some"',
        ),
        ({"stream": "yes"}, 'stream: expected true or false, got "yes"'),
        ({"include": [1]}, "include[0]: expected a string, got 1"),
        (
            {"model": {"a": "x" * 100}},
            f'model: expected a string, got {{"a":"{"x" * 33}…',
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_request_says_where_and_what(fields: JSONValue, sentence: str) -> None:
    """A request of the wrong form is refused in one exact sentence."""
    with pytest.raises(BadRequest) as caught:
        decode_request(to_bytes(fields))
    assert str(caught.value) == sentence
    path, colon, problem = sentence.partition(": ")
    expected = (path, problem) if colon else ("", sentence)
    assert (caught.value.path, caught.value.problem) == expected


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"status": "completed"}, "the key 'id' is missing"),
        ({"id": None, "status": "x"}, "id: expected a string, got null"),
        (DONE | {"object": "list"}, 'object: expected one of response, got "list"'),
        (DONE | {"output": [CALL | {"arguments": {}}]}, "output[0].arguments: "),
        (
            DONE | {"usage": {"input_tokens": 1, "output_tokens": 1}},
            "usage: the key 'total_tokens' is missing",
        ),
        (
            DONE | {"created_at": "now"},
            'created_at: expected a whole number, got "now"',
        ),
    ],
)
def test_a_bad_response_says_where_and_what(fields: JSONValue, sentence: str) -> None:
    """A response of the wrong form is refused with the path and the fault."""
    with pytest.raises(BadResponse) as caught:
        decode_response(to_bytes(fields))
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("kind", "first"),
    [(FunctionCall, "call_id"), (UrlCitation, "url"), (Message, "role")],
)
def test_of_several_missing_keys_the_first_is_named(
    kind: type[Open], first: str
) -> None:
    """Which missing key an error names depends on the document alone."""
    with pytest.raises(Mismatch) as caught:
        compile_reader(kind)({}, "")
    assert caught.value.problem == f"the key {first!r} is missing"


def test_errors_say_whose_fault_it_is() -> None:
    """A bad request is the caller's fault, a bad response the provider's."""
    with pytest.raises(RequestError) as request_error:
        decode_request(b"{")
    assert isinstance(request_error.value, BadRequest)
    assert not isinstance(request_error.value, ProviderError)
    with pytest.raises(ProviderError) as response_error:
        decode_response(b"{")
    assert isinstance(response_error.value, BadResponse)
    assert not isinstance(response_error.value, RequestError)
    with pytest.raises(WireError) as item_error:
        decode_item(b"{")
    assert type(item_error.value) is WireError
    assert isinstance(item_error.value, GambitError)
    assert str(item_error.value).startswith("not JSON: ")


@pytest.mark.parametrize("decode", [decode_request, decode_response, decode_item])
@given(st.one_of(st.binary(), json_values().map(to_bytes)))
def test_nothing_but_a_wire_error_is_raised(decode: object, data: bytes) -> None:
    """Documents of any kind are read or refused, and nothing else happens."""
    assert callable(decode)
    with contextlib.suppress(WireError):
        decode(data)


def test_a_deep_document_is_refused() -> None:
    """Nesting of any depth is at worst a bad request."""
    for depth in (*range(2, 1100), 100_000):
        with pytest.raises(BadRequest):
            decode_request(b'{"input":' + b"[" * depth + b"]" * depth + b"}")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_json_has_no_number_for_is_refused(text: str) -> None:
    """No way into the parser takes a number that JSON does not have."""
    for data in (text, f'["\\ud83d", {text}]'):
        with pytest.raises(Mismatch, match="not JSON: "):
            parse_json(data.encode())


def test_only_utf_8_is_json() -> None:
    """A document in UTF-16 is refused, whatever characters are in it."""
    for text in ('{"a":"x"}', '{"a":"\u755c"}'):  # The second holds the bytes "\u".
        with pytest.raises(Mismatch, match="not JSON: "):
            parse_json(text.encode("utf-16-le"))


def test_input_parts_are_typed() -> None:
    """The parts of a message are read as the structs they say they are."""
    content = [{"type": "input_text", "text": "a"}]
    request = read_request(input=[{"role": "user", "content": content}])
    assert request.input == (Message(role="user", content=(InputText(text="a"),)),)
