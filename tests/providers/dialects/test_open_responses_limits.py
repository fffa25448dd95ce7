"""The bounds of the standard: what is at one is sent, and what is beyond it is not.

The numbers are those of the published schema, written down once more, so that a slip in
ours is found; and a reading of the schema that is not ours has to agree with each.
"""

from typing import Any

import msgspec
import pytest
from openresponses_types.types import CreateResponseBody
from pydantic import ValidationError

from gambit_actors.errors import BadRequest
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.codec import request_from_json
from gambit_actors.providers.dialects.open_responses import OpenResponsesDialect

_ITEMS = {"input", "tool_choice", "tools"}
TOOL = {"type": "function", "name": "find"}


def _named(letters: int) -> JSONValue:
    return {"tools": [{"type": "function", "name": "n" * letters}]}


def _allowed(tools: int) -> JSONValue:
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [TOOL] * tools}
    return {"tools": [TOOL], "tool_choice": choice}


def _cited(start: int) -> JSONValue:
    note = {"type": "url_citation", "url": "u", "title": "t", "end_index": 5}
    notes = [note | {"start_index": start}]
    text = {"type": "output_text", "text": "a", "annotations": notes}
    return {"input": [{"type": "message", "role": "assistant", "content": [text]}]}


BOUNDS: dict[str, tuple[JSONValue, JSONValue]] = {
    "max_output_tokens": ({"max_output_tokens": 16}, {"max_output_tokens": 15}),
    "max_tool_calls": ({"max_tool_calls": 1}, {"max_tool_calls": 0}),
    "top_logprobs": ({"top_logprobs": 20}, {"top_logprobs": 21}),
    "top_logprobs, least": ({"top_logprobs": 0}, {"top_logprobs": -1}),
    "safety_identifier": (
        {"safety_identifier": "i" * 64},
        {"safety_identifier": "i" * 65},
    ),
    "prompt_cache_key": (
        {"prompt_cache_key": "i" * 64},
        {"prompt_cache_key": "i" * 65},
    ),
    "metadata": (
        {"metadata": {str(n): "" for n in range(16)}},
        {"metadata": {str(n): "" for n in range(17)}},
    ),
    "metadata, values": (
        {"metadata": {"a": "v" * 512}},
        {"metadata": {"a": "v" * 513}},
    ),
    "tools": (_named(64), _named(65)),
    "tools, least": (_named(1), _named(0)),
    "tool_choice": (_allowed(128), _allowed(129)),
    "tool_choice, least": (_allowed(1), _allowed(0)),
    "input, spans": (_cited(0), _cited(-1)),
    "input, text": ({"input": "a" * 10_485_760}, {"input": "a" * 10_485_761}),
}


def sent(fields: dict[str, Any]) -> JSONValue:
    """The body of a request that has these fields, and was made without reading it."""
    # Who reads one refuses some of them already, so they are put into it.
    items = {key: fields[key] for key in fields.keys() & _ITEMS}
    request = request_from_json({"model": "m", "input": "Hi"} | items)
    request = msgspec.structs.replace(
        request, **{key: fields[key] for key in fields.keys() - _ITEMS}
    )
    return OpenResponsesDialect().render(request, stream=True).body


def read(body: JSONValue) -> None:
    """Read a body as the schema has it, strictly."""
    CreateResponseBody.model_validate_json(msgspec.json.encode(body), strict=True)


@pytest.mark.parametrize("name", BOUNDS)
def test_what_is_at_a_bound_is_sent(name: str) -> None:
    """As it is, and the schema takes it."""
    at, _ = BOUNDS[name]

    body = sent(at)

    assert all(key in body for key in at)
    read(body)


@pytest.mark.parametrize("name", BOUNDS)
def test_what_is_beyond_a_bound_is_not_sent(name: str) -> None:
    """It is refused with its place, and the schema would not take it either."""
    at, beyond = BOUNDS[name]

    with pytest.raises(BadRequest) as caught:
        sent(beyond)

    assert caught.value.path.startswith(name.partition(",")[0])
    if "tool_choice" not in name:  # It has a form that takes anything; see below.
        with pytest.raises(ValidationError):
            read(sent(at) | beyond)


def test_the_schema_says_how_many_tools_may_be_allowed() -> None:
    """The numbers stand there, even if a reading takes another form of the choice."""
    kinds = CreateResponseBody.model_json_schema()["$defs"].values()
    lists = [
        k["properties"]["tools"] for k in kinds if "mode" in k.get("properties", ())
    ]

    assert lists
    assert all((one["minItems"], one["maxItems"]) == (1, 128) for one in lists)


def test_a_key_of_metadata_has_a_bound() -> None:
    """Which the schema says in words alone."""
    assert sent({"metadata": {"k" * 64: ""}})["metadata"]
    with pytest.raises(BadRequest, match="more than 64 characters"):
        sent({"metadata": {"k" * 65: ""}})
