"""A server's first response repeats the request with every setting resolved."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openresponses_types.types import ResponseResource
from pydantic import ValidationError

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.codec import decode_request, decode_response
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response, response_for
from gambit_actors.openresponses.writing import encode
from tests.openresponses.strategies import texts, words

DEFAULTS: dict[str, JSONValue] = {
    "temperature": 1.0,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "tool_choice": "auto",
    "tools": [],
    "truncation": "disabled",
    "parallel_tool_calls": True,
    "store": True,
    "background": False,
    "service_tier": "default",
    "metadata": {},
    "text": {"format": {"type": "text"}},
    "reasoning": None,
    "usage": None,
    "error": None,
    "incomplete_details": None,
    "completed_at": None,
    "instructions": None,
    "previous_response_id": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "safety_identifier": None,
    "prompt_cache_key": None,
}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def answer_to(fields: dict[str, JSONValue]) -> dict[str, JSONValue]:
    """Give the first response to a request, as written, checked by the standard."""
    request = decode_request(json.dumps(fields).encode())
    return checked(response_for(request, id="resp_1", created_at=7))


def checked(response: Response) -> dict[str, JSONValue]:
    """Write a response, and have the standard's own model confirm it strictly."""
    data = encode(response)
    ResponseResource.model_validate_json(data, strict=True)
    written: dict[str, JSONValue] = json.loads(data)
    return written


def test_the_check_is_strict() -> None:
    """The independent model takes strings for enums and no string for a number."""
    good = json.loads(encode(Response(id="r", status="completed", metadata={"a": "b"})))
    ResponseResource.model_validate_json(json.dumps(good), strict=True)
    faults: list[dict[str, JSONValue]] = [
        {"created_at": "7"},
        {"created_at": 7.5},
        {"truncation": "some"},
        {"text": {}},
        {"reasoning": {}},
        {"tool_choice": {"type": "allowed_tools", "tools": []}},
    ]
    for fault in faults:
        with pytest.raises(ValidationError):
            ResponseResource.model_validate_json(json.dumps(good | fault), strict=True)


@pytest.mark.spec("OR-2")
def test_an_empty_request_gets_every_default() -> None:
    """What a request leaves open is the protocol's default in the response."""
    written = answer_to({})
    assert written == DEFAULTS | {
        "id": "resp_1",
        "object": "response",
        "created_at": 7,
        "status": "in_progress",
        "model": "",
        "output": [],
    }


def test_nulls_are_resolved() -> None:
    """A null in a request is resolved just as an absent key is."""
    nulls = dict.fromkeys(
        key for key in DEFAULTS if key in CreateResponse.__struct_fields__
    )
    assert answer_to(nulls) == answer_to({})


@pytest.mark.spec("OR-2")
def test_settings_are_repeated() -> None:
    """What a request sets stands in the response as it was set."""
    settings: dict[str, JSONValue] = {
        "model": "m",
        "temperature": 0.5,
        "top_p": 0.25,
        "presence_penalty": -1.0,
        "frequency_penalty": 1.5,
        "top_logprobs": 3,
        "tool_choice": "required",
        "truncation": "auto",
        "parallel_tool_calls": False,
        "store": False,
        "background": True,
        "service_tier": "flex",
        "metadata": {"k": "v"},
        "instructions": "be brief",
        "previous_response_id": "resp_0",
        "max_output_tokens": 100,
        "max_tool_calls": 2,
        "safety_identifier": "s",
        "prompt_cache_key": "p",
    }
    written = answer_to(settings)
    assert {key: written[key] for key in settings} == settings


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("temperature", 0.0), ("top_p", 0.0), ("top_logprobs", 0)),
        *(("store", False), ("parallel_tool_calls", False), ("instructions", "")),
    ],
)
def test_zero_and_false_are_settings(setting: str, value: JSONValue) -> None:
    """A setting that is false, zero or empty is not taken for absent."""
    assert answer_to({setting: value})[setting] == value


def test_the_schema_is_not_repeated() -> None:
    """A JSON schema format is repeated with null for the schema, all keys there."""
    shape = {"type": "json_schema", "name": "n", "schema": SCHEMA}
    assert answer_to({"text": {"format": shape, "verbosity": "low"}})["text"] == {
        "format": {
            "type": "json_schema",
            "name": "n",
            "description": None,
            "schema": None,
            "strict": False,
        },
        "verbosity": "low",
    }
    strict = shape | {"strict": True, "description": "d"}
    written = answer_to({"text": {"format": strict}})["text"]["format"]
    assert (written["strict"], written["description"]) == (True, "d")


def test_text_without_a_format_is_text() -> None:
    """Text settings that name no format are repeated with the plain one."""
    assert answer_to({"text": {"verbosity": "high"}})["text"] == {
        "format": {"type": "text"},
        "verbosity": "high",
    }


def test_a_json_object_format_is_repeated() -> None:
    """The older JSON format, which the response schema still has, is repeated."""
    text = {"format": {"type": "json_object"}}
    assert answer_to({"text": text})["text"] == text


@pytest.mark.spec("OR-2")
def test_allowed_tools_get_a_mode() -> None:
    """Allowed tools without a mode are repeated with auto, with one as they are."""
    choice = {"type": "allowed_tools", "tools": [{"type": "function", "name": "f"}]}
    assert answer_to({"tool_choice": choice})["tool_choice"] == choice | {
        "mode": "auto"
    }
    required = choice | {"mode": "required"}
    assert answer_to({"tool_choice": required})["tool_choice"] == required


@pytest.mark.parametrize("nested", [False, True])
def test_a_tool_is_repeated_with_all_keys(nested: bool) -> None:
    """A function tool has its five keys in the response, null for absent."""
    tool = {"type": "function", "name": "f"}
    if nested:
        tool = {"type": "function", "function": {"name": "f"}}  # type: ignore[dict-item]  # JSON
    assert answer_to({"tools": [tool]})["tools"] == [
        {
            "type": "function",
            "name": "f",
            "description": None,
            "parameters": None,
            "strict": None,
        }
    ]
    full = {"description": "d", "parameters": SCHEMA, "strict": True}
    whole = {"type": "function", "name": "f"} | full
    assert answer_to({"tools": [whole]})["tools"] == [whole]


@pytest.mark.parametrize("reasoning", [{}, {"effort": "low"}, {"summary": "auto"}])
def test_reasoning_is_repeated_with_both_keys(
    reasoning: dict[str, JSONValue],
) -> None:
    """Reasoning settings have both keys in the response, null for absent."""
    assert (
        answer_to({"reasoning": reasoning})["reasoning"]
        == {
            "effort": None,
            "summary": None,
        }
        | reasoning
    )


def test_a_named_function_choice_is_repeated() -> None:
    """The choice of one function is repeated as it was made."""
    choice = {"type": "function", "name": "f"}
    assert answer_to({"tool_choice": choice})["tool_choice"] == choice


def test_the_server_may_name_the_model() -> None:
    """A model that the server resolved stands in for the one asked for."""
    request = decode_request(b'{"model":"latest"}')
    assert response_for(request, id="r", created_at=1).model == "latest"
    assert response_for(request, id="r", created_at=1, model="m-1").model == "m-1"


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "model": texts(),
            "temperature": st.floats(0, 2),
            "top_logprobs": st.integers(0, 20),
            "instructions": texts(),
            "tools": st.lists(
                st.fixed_dictionaries({"type": st.just("function"), "name": words()}),
                max_size=2,
            ),
            "tool_choice": st.sampled_from(["none", "auto", "required"]),
            "metadata": st.dictionaries(words(), texts(), max_size=3),
            "reasoning": st.just({"effort": "high", "summary": "concise"}),
            "store": st.none() | st.booleans(),
        },
    )
)
def test_any_answer_obeys_the_standard(fields: dict[str, JSONValue]) -> None:
    """The response to any request passes the standard's own model, strictly."""
    written = answer_to(fields)
    assert decode_response(json.dumps(written).encode()).status == "in_progress"
    for key in fields.keys() - {"tools"}:
        assert written[key] == (DEFAULTS[key] if fields[key] is None else fields[key])
