"""Gambit's v1 form is read, written, and the same after both."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import BadRequest, BadResponse
from gambit_actors.openresponses import events as ev
from gambit_actors.openresponses.base import Extra, JSONValue
from gambit_actors.openresponses.builder import build_response
from gambit_actors.openresponses.items import (
    FunctionCall,
    Message,
    Reasoning,
    UnknownItem,
    assistant_message,
    user_message,
)
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import ResponseError, Usage
from gambit_actors.openresponses.seed_v1 import (
    decode_v1_event,
    event_from_v1,
    request_from_v1,
    response_from_v1,
    v1_from_event,
    v1_from_item,
    v1_from_request,
    v1_from_response,
    v1_from_usage,
)
from gambit_actors.openresponses.tools import AllowedTools, FunctionChoice, FunctionTool
from gambit_actors.openresponses.writing import to_builtins
from tests.openresponses.strategies import json_texts, json_values, texts, words

PARAMETERS = {"type": "object", "properties": {}}
# The two examples of the contract.
REQUEST: dict[str, JSONValue] = {
    "model": "openai/gpt-4.1-mini",
    "input": [
        {
            "type": "message",
            "role": "system",
            "content": [{"type": "input_text", "text": "Be helpful."}],
        },
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "Summarize this."}],
        },
    ],
    "tools": [
        {
            "type": "function",
            "function": {"name": "gambit_respond", "parameters": PARAMETERS},
        }
    ],
}
RESPONSE: dict[str, JSONValue] = {
    "id": "resp_123",
    "object": "response",
    "status": "completed",
    "output": [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Here is the summary."}],
        }
    ],
}
TOOL = FunctionTool(name="gambit_respond", parameters=PARAMETERS)
USAGE = Usage(input_tokens=3, output_tokens=4, total_tokens=7)


@pytest.mark.spec("OR-2")
def test_the_contracts_examples_both_ways() -> None:
    """The request and the response of the contract are read, and written the same."""
    request, response = request_from_v1(REQUEST), response_from_v1(RESPONSE)
    assert request.tools == (TOOL,)
    assert response.output == (assistant_message("Here is the summary."),)
    assert v1_from_request(request) == REQUEST
    assert v1_from_response(response) == RESPONSE


@pytest.mark.spec("OR-2")
@pytest.mark.parametrize(
    ("v1", "choice"),
    [
        ("auto", "auto"),
        ("required", "required"),
        ({"type": "function", "function": {"name": "f"}}, FunctionChoice(name="f")),
    ],
)
def test_tool_choice_both_ways(v1: JSONValue, choice: object) -> None:
    """A choice is nested in v1 and flat inside."""
    request = request_from_v1(REQUEST | {"tool_choice": v1})
    assert request.tool_choice == choice
    assert v1_from_request(request) == REQUEST | {"tool_choice": v1}


def test_a_choice_v1_does_not_have_is_written_as_it_is() -> None:
    """allowed_tools stays in the standard's form and reads back."""
    choice = AllowedTools(tools=(FunctionChoice(name="f"),), mode="auto")
    request = CreateResponse(model="m", input=(), tool_choice=choice)
    assert request_from_v1(v1_from_request(request)) == request


@pytest.mark.spec("OR-2")
def test_params_both_ways() -> None:
    """Params are keys of the request; on the way back v1's own keys stay outside."""
    params = {"temperature": 0.5, "stop": ["x"]}
    value = REQUEST | {"max_output_tokens": 16, "stream": True, "params": params}
    request = request_from_v1(value)
    assert (request.temperature, request.max_output_tokens) == (0.5, 16)
    assert request.extra == {"stop": ["x"]}
    assert v1_from_request(request) == value


@pytest.mark.spec("OR-2")
def test_a_key_beside_params_counts() -> None:
    """A key named twice is taken from beside params; broken params stay visible."""
    value = {"model": "m", "params": {"model": "other", "top_p": 0.5}}
    request = request_from_v1(value)
    assert (request.model, request.top_p) == ("m", 0.5)
    assert request_from_v1({"params": [1]}).extra == {"params": [1]}
    assert request_from_v1({"params": None}) == CreateResponse()


@pytest.mark.spec("OR-2")
def test_mixed_forms_are_read() -> None:
    """Flat and nested tools, both spellings of usage and time: all the same inside."""
    flat = {"type": "function", "name": "gambit_respond", "parameters": PARAMETERS}
    request = request_from_v1(REQUEST | {"tools": [flat, *REQUEST["tools"]]})
    assert request.tools == (TOOL, TOOL)
    standard = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    for usage in (standard, v1_from_usage(USAGE)):
        for stamp in ("created", "created_at"):
            response = response_from_v1(RESPONSE | {"usage": usage, stamp: 9})
            assert (response.usage, response.created_at) == (USAGE, 9)


def test_a_string_input_is_written_as_a_message() -> None:
    """v1 has only lists for input."""
    written = v1_from_request(CreateResponse(model="m", input="Hi"))
    assert written["input"] == [to_builtins(user_message("Hi"))]
    assert v1_from_request(CreateResponse(model="m"))["input"] == []


def test_metadata_that_is_no_string_becomes_its_json() -> None:
    """v1 has any JSON in metadata, the standard strings: nothing is refused or lost."""
    metadata = {"a": "x", "b": 7, "c": {"d": [None]}, "e": None}
    request = request_from_v1({"model": "m", "metadata": metadata})
    assert request.metadata == {"a": "x", "b": "7", "c": '{"d":[null]}', "e": "null"}


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, "completed"),
        ({"status": None}, "completed"),
        ({"error": {"message": "It broke."}}, "failed"),
        ({"error": {}}, "failed"),
        ({"error": None}, "completed"),
        ({"status": "in_progress"}, "in_progress"),
    ],
)
def test_a_response_without_a_status(fields: JSONValue, status: str) -> None:
    """It was returned, so it is done: failed with an error, completed without."""
    assert response_from_v1({"id": "r", "output": []} | fields).status == status


@pytest.mark.parametrize(
    ("error", "read"),
    [
        ({"code": "c", "message": "m"}, ResponseError(code="c", message="m")),
        ({"message": "m"}, ResponseError(code="unknown", message="m")),
        ({"code": "c"}, ResponseError(code="c", message="no reason was given")),
        ({}, ResponseError(code="unknown", message="no reason was given")),
    ],
)
def test_both_keys_of_an_error_are_optional(
    error: JSONValue, read: ResponseError
) -> None:
    """What v1 may leave out of an error is filled in, in responses and events."""
    assert response_from_v1({"id": "r", "error": error}).error == read
    event = event_from_v1({"type": "response.failed", "error": error})
    assert isinstance(event, ev.ResponseFailed)
    assert (event.response.status, event.response.error) == ("failed", read)


@pytest.mark.spec("OR-2")
def test_a_failed_event_both_ways() -> None:
    """response.failed has its error on top in v1 and in the response inside."""
    error = {"code": "c", "message": "m"}
    value = {"type": "response.failed", "error": error}
    assert build_response([event_from_v1(value)]).status == "failed"
    assert v1_from_event_of(value) == value
    response = {"id": "r", "status": "failed", "error": error}
    assert v1_from_event_of({"type": value["type"], "response": response}) == value


def v1_from_event_of(value: JSONValue) -> JSONValue:
    """Read an event, write it as v1."""
    event = event_from_v1(value)
    assert not isinstance(event, ev.MalformedEvent)
    return v1_from_event(event)


@pytest.mark.parametrize(
    ("kind", "status"),
    [("response.created", "in_progress"), ("response.completed", "completed")],
)
def test_a_response_in_an_event_has_the_events_status(kind: str, status: str) -> None:
    """Without a status of its own, created is in progress and completed is that."""
    event = event_from_v1({"type": kind, "response": {"id": "r", "output": []}})
    assert isinstance(event, ev.ResponseCreated | ev.ResponseCompleted)
    assert event.response.status == status


@pytest.mark.parametrize(
    "value",
    [
        7,
        {},
        {"type": "response.completed"},
        {"type": "response.completed", "response": {"id": 7}},
        {"type": "response.output_text.delta", "output_index": 0},
    ],
)
def test_what_is_no_event_is_malformed(value: JSONValue) -> None:
    """Nothing in an event raises, and what is wrong with it is said."""
    event = event_from_v1(value)
    assert isinstance(event, ev.MalformedEvent)
    assert event.problem
    assert decode_v1_event(msgspec.json.encode(value)) == event


@given(json_values())
def test_reading_an_event_never_raises(value: JSONValue) -> None:
    """Any JSON value is an event, an unknown event or a malformed one."""
    event_from_v1(value)
    event_from_v1({"type": "response.completed", "response": value})
    event_from_v1({"type": "response.failed", "error": value})


@given(st.binary(max_size=30))
def test_decoding_an_event_never_raises(data: bytes) -> None:
    """Bytes that are no JSON are a malformed event."""
    decode_v1_event(data)
    decode_v1_event(b'{"type":"response.failed","error":' + data + b"}")


def test_faults_carry_their_path() -> None:
    """What is wrong in a document is refused with its place."""
    with pytest.raises(BadRequest) as request:
        request_from_v1({"params": {"temperature": "hot"}})
    assert request.value.path == "temperature"
    with pytest.raises(BadResponse) as response:
        response_from_v1({"id": "r", "usage": {"promptTokens": "x"}})
    assert response.value.path.startswith("usage")
    with pytest.raises(BadRequest):
        request_from_v1([])
    with pytest.raises(BadResponse):
        response_from_v1([])


def test_items_v1_does_not_have_are_written_whole() -> None:
    """Reasoning and unknown items lose nothing, a status included."""
    for item in (
        Reasoning(id="rs_1", status="completed"),
        UnknownItem(type_name="acme:x", extra=Extra(status="done", n=1)),
    ):
        assert v1_from_item(item) == to_builtins(item)


def test_items_of_v1_have_no_status() -> None:
    """A message is written in parts, without status or empty annotations."""
    message = Message(role="assistant", content="Hi", status="completed", id="m")
    assert v1_from_item(message) == {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Hi"}],
        "id": "m",
    }
    call = FunctionCall(call_id="c", name="f", arguments="{}", status="completed")
    assert "status" not in v1_from_item(call)


def typed(
    kind: str, **fields: st.SearchStrategy[object]
) -> st.SearchStrategy[JSONValue]:
    """Make objects that say what they are."""
    needed: dict[str, st.SearchStrategy[object]] = {"type": st.just(kind), **fields}
    optional = {} if kind.startswith("response.") else {"id": words()}
    return st.fixed_dictionaries(needed, optional=optional)


def v1_items() -> st.SearchStrategy[JSONValue]:
    """Items of the contract's three types."""

    def message(role: str, part: str) -> st.SearchStrategy[JSONValue]:
        text = st.fixed_dictionaries({"type": st.just(part), "text": texts()})
        return typed("message", role=st.just(role), content=st.lists(text, max_size=2))

    return st.one_of(
        message("system", "input_text"),
        message("user", "input_text"),
        message("assistant", "output_text"),
        typed("function_call", call_id=words(), name=words(), arguments=json_texts()),
        typed("function_call_output", call_id=words(), output=json_texts()),
    )


def v1_requests() -> st.SearchStrategy[JSONValue]:
    """Requests of the contract, with metadata in strings."""
    parameters = st.dictionaries(texts(), json_values(), max_size=2)
    function = st.fixed_dictionaries(
        {"name": words(), "parameters": parameters}, optional={"description": texts()}
    )
    nested = st.fixed_dictionaries({"type": st.just("function"), "function": function})
    named = st.fixed_dictionaries({"name": words()})
    choice = st.sampled_from(["auto", "required"]) | st.fixed_dictionaries(
        {"type": st.just("function"), "function": named}
    )
    params = st.fixed_dictionaries(
        {"temperature": st.floats(0, 2)},
        optional={"stop": json_values(), "store": st.booleans()},
    )
    return st.fixed_dictionaries(
        {"model": texts(), "input": st.lists(v1_items(), max_size=3)},
        optional={
            "instructions": texts(),
            "tools": st.lists(nested, max_size=2),
            "tool_choice": choice,
            "stream": st.booleans(),
            "max_output_tokens": st.integers(16, 2**40),
            "metadata": st.dictionaries(words(), texts(), max_size=2),
            "params": params,
        },
    )


def v1_responses() -> st.SearchStrategy[JSONValue]:
    """Responses of the contract, with a status."""
    count = st.integers(0, 2**40)
    keys = ("promptTokens", "completionTokens", "totalTokens")
    return st.fixed_dictionaries(
        {
            "id": texts(),
            "object": st.just("response"),
            "status": st.sampled_from(["completed", "in_progress", "failed"]),
            "output": st.lists(v1_items(), max_size=3),
        },
        optional={
            "model": words(),
            "created": st.integers(1, 2**40),
            "usage": st.fixed_dictionaries(dict.fromkeys(keys, count)),
            "error": st.fixed_dictionaries({"code": texts(), "message": texts()}),
        },
    )


def v1_events() -> st.SearchStrategy[JSONValue]:
    """Events of the contract."""
    index = {"output_index": st.integers(0, 9)}

    error = st.fixed_dictionaries({"code": texts(), "message": texts()})
    return st.one_of(
        typed("response.created", response=v1_responses()),
        typed("response.completed", response=v1_responses()),
        typed("response.failed", error=error),
        typed("response.output_item.added", item=v1_items(), **index),
        typed("response.output_item.done", item=v1_items(), **index),
        typed("response.output_text.delta", delta=texts(), item_id=words(), **index),
        typed("response.output_text.done", text=texts(), **index),
    )


@pytest.mark.spec("OR-2")
@given(v1_requests())
def test_any_v1_request_comes_back(value: JSONValue) -> None:
    """A request of the contract is written again just as it was read."""
    assert v1_from_request(request_from_v1(value)) == value


@pytest.mark.spec("OR-2")
@given(v1_responses())
def test_any_v1_response_comes_back(value: JSONValue) -> None:
    """A response of the contract is written again just as it was read."""
    assert v1_from_response(response_from_v1(value)) == value


@pytest.mark.spec("OR-2")
@given(v1_events())
def test_any_v1_event_comes_back(value: JSONValue) -> None:
    """An event of the contract is written again with all it had."""
    written = v1_from_event_of(value)
    # The standard wants the part's index, which v1 left to be 0.
    assert {"content_index": 0} | written == {"content_index": 0} | value
