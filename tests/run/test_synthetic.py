"""The runtime's own tools are ordinary items, and carry JSON as it is written."""

import msgspec
import pytest

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.codec import decode_items
from gambit_actors.openresponses.items import FunctionCall, FunctionCallOutput
from gambit_actors.openresponses.writing import encode
from gambit_actors.run.synthetic import (
    COMPLETE,
    CONTEXT,
    CONTEXT_NAMES,
    END,
    END_TOOL,
    OLD_CONTEXT,
    RESPOND,
    completion_items,
    context_items,
    respond_tool,
)

SCHEMA: dict[str, JSONValue] = {"type": "integer"}
ENVELOPE = '{"runId":"r", "payload":1}'


@pytest.mark.spec("OR-6")
def test_the_names() -> None:
    """The tools are called what logs and decks call them."""
    assert (CONTEXT, RESPOND, COMPLETE, END) == (
        "gambit_context",
        "gambit_respond",
        "gambit_complete",
        "gambit_end",
    )
    assert OLD_CONTEXT == "gambit_init"
    assert {CONTEXT, OLD_CONTEXT} == CONTEXT_NAMES


@pytest.mark.spec("OR-6")
@pytest.mark.parametrize(
    ("context", "text"),
    [
        ({"a": [1, None]}, '{"a":[1,null]}'),
        ("hé", '"hé"'),
        ("", '""'),
        (None, "null"),
        (False, "false"),
        (1.0, "1.0"),
    ],
)
def test_context_is_the_output_of_a_call(context: JSONValue, text: str) -> None:
    """Context of any type comes as the JSON output of a call without arguments."""
    assert context_items("c", context) == (
        FunctionCall(call_id="c", name="gambit_context", arguments="{}"),
        FunctionCallOutput(call_id="c", output=text),
    )


@pytest.mark.spec("OR-6")
def test_completion_says_the_envelope_twice() -> None:
    """The end of an action is a call with the envelope, answered with the envelope."""
    assert completion_items("c", ENVELOPE) == (
        FunctionCall(call_id="c", name="gambit_complete", arguments=ENVELOPE),
        FunctionCallOutput(call_id="c", output=ENVELOPE),
    )


@pytest.mark.spec("OR-6")
def test_they_are_items_like_any_other() -> None:
    """Written and read again they are the same, with their JSON untouched."""
    items = (*context_items("a", {"b": 1}), *completion_items("c", ENVELOPE))
    assert decode_items(encode(items)) == items


def test_respond_takes_anything_without_a_schema() -> None:
    """A deck that does not say what it gives may give anything, or nothing."""
    shown = respond_tool(None).parameters or {}
    assert shown["properties"] == {
        "status": {"type": "number"},
        "payload": {},
        "message": {"type": "string"},
        "code": {"type": "string"},
        "meta": {"type": "object"},
    }
    assert shown["additionalProperties"] is True
    assert "required" not in shown


def test_respond_shows_the_schema_of_the_payload() -> None:
    """A deck that says what it gives has it as the payload, which is required."""
    shown = respond_tool(SCHEMA).parameters or {}
    assert shown["properties"]["payload"] == SCHEMA
    assert shown["required"] == ["payload"]


def test_one_respond_tool_does_not_change_another() -> None:
    """What all these tools have in common is not touched by the schema of one."""
    before = msgspec.json.encode((respond_tool(None), END_TOOL))
    respond_tool(SCHEMA)
    assert msgspec.json.encode((respond_tool(None), END_TOOL)) == before


def test_end_takes_what_respond_takes() -> None:
    """An end may say all that a result says, and has to say none of it."""
    assert END_TOOL.name == "gambit_end"
    assert END_TOOL.parameters == respond_tool(None).parameters
