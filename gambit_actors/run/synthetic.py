"""The tools that a runtime has of its own: to give context, to respond and to end.

They are ordinary calls in the conversation, so that any model understands them and any
log shows them. ``gambit_context`` is never offered: it only carries the context in.
"""

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall, FunctionCallOutput, Item
from gambit_actors.openresponses.tools import FunctionTool

CONTEXT = "gambit_context"
RESPOND = "gambit_respond"
COMPLETE = "gambit_complete"
END = "gambit_end"
OLD_CONTEXT = "gambit_init"

CONTEXT_NAMES = frozenset({CONTEXT, OLD_CONTEXT})
"""By either name, context that a log has is context."""

_encode = msgspec.json.Encoder().encode
_ANSWER: dict[str, JSONValue] = {
    "type": "object",
    "properties": {
        "status": {"type": "number"},
        "payload": {},
        "message": {"type": "string"},
        "code": {"type": "string"},
        "meta": {"type": "object"},
    },
    "additionalProperties": True,
}

END_TOOL = FunctionTool(
    name=END,
    description="End the whole conversation. Nothing can be said after it.",
    parameters=_ANSWER,
)


def respond_tool(payload: dict[str, JSONValue] | None) -> FunctionTool:
    """The tool a responding deck answers with; its payload has the deck's schema."""
    parameters = _ANSWER
    if payload is not None:
        shown = moved(payload, "/properties/payload")
        properties = _ANSWER["properties"] | {"payload": shown}
        parameters = _ANSWER | {"properties": properties, "required": ["payload"]}
    return FunctionTool(
        name=RESPOND,
        description="Give the result of this task. Call it once, as the last thing.",
        parameters=parameters,
    )


def moved(schema: JSONValue, to: str) -> JSONValue:
    """A schema that becomes a part of another: its references lead there, too."""
    if isinstance(schema, list):
        return [moved(entry, to) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: moved(entry, to) for key, entry in schema.items()}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        inner["$ref"] = f"#{to}{reference[1:]}"
    return inner


def context_items(
    call_id: str, context: JSONValue
) -> tuple[FunctionCall, FunctionCallOutput]:
    """Context as a call that has been made and answered."""
    output = _encode(context).decode()
    return (
        FunctionCall(call_id=call_id, name=CONTEXT, arguments="{}"),
        FunctionCallOutput(call_id=call_id, output=output),
    )


def completion_items(call_id: str, envelope: str) -> tuple[Item, Item]:
    """The end of an action as a call of its own, as decks were written to expect."""
    return (
        FunctionCall(call_id=call_id, name=COMPLETE, arguments=envelope),
        FunctionCallOutput(call_id=call_id, output=envelope),
    )
