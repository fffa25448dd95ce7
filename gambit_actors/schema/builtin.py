"""The schemas that every deck may refer to as ``gambit://schemas/...``.

They are written here as JSON Schema, not as files: a pure package reads no files, and
a table cannot go missing from a wheel. As in Zod, objects drop keys they do not know.
"""

import difflib

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.schema.keywords import UNKNOWN_KEYS, Schema

SCHEME = "gambit://schemas/"
_SUFFIX = ".zod.ts"
_GRADER_CONTEXTS = "graders/contexts/"

_ANY: Schema = {}
_STRING: Schema = {"type": "string"}
_RECORD: Schema = {"type": "object", "additionalProperties": _ANY}


def _object(required: dict[str, Schema], optional: dict[str, Schema]) -> Schema:
    schema: Schema = {
        "type": "object",
        "properties": required | optional,
        "additionalProperties": False,
        UNKNOWN_KEYS: "strip",
    }
    return schema | ({"required": list(required)} if required else {})


def _list(entry: Schema) -> Schema:
    return {"type": "array", "items": entry}


def _session(message: Schema) -> Schema:
    notes = _object({}, {"text": _STRING})
    return _object({}, {"messages": _list(message), "meta": _RECORD, "notes": notes})


_CALL = _object(
    {"function": _object({"name": _STRING}, {"arguments": _STRING})},
    {"id": _STRING, "type": _STRING},
)
_MESSAGE_EXTRAS: dict[str, Schema] = {"content": _ANY, "name": _STRING}
_MESSAGE = _object({"role": _STRING}, _MESSAGE_EXTRAS)
_TOOL_MESSAGE = _object(
    {"role": _STRING}, _MESSAGE_EXTRAS | {"tool_calls": _list(_CALL)}
)

_SCHEMAS: dict[str, Schema] = {
    "graders/respond": _object(
        {},
        {
            "payload": _ANY,
            "status": {"type": "integer"},
            "message": _STRING,
            "code": _STRING,
            "meta": _RECORD,
        },
    ),
    "graders/grader_output": _object(
        {
            "score": {"type": "integer", "minimum": -3, "maximum": 3},
            "reason": _STRING,
        },
        {"evidence": _list(_STRING)},
    ),
    "graders/contexts/turn": _object(
        {"session": _session(_MESSAGE), "messageToGrade": _MESSAGE}, {}
    ),
    "graders/contexts/turn_tools": _object(
        {"session": _session(_TOOL_MESSAGE), "messageToGrade": _TOOL_MESSAGE}, {}
    ),
    "graders/contexts/conversation": _object({"session": _session(_MESSAGE)}, {}),
    "graders/contexts/conversation_tools": _object(
        {"session": _session(_TOOL_MESSAGE)}, {}
    ),
    "scenarios/plain_chat_output": _STRING,
}

BUILTIN_URIS = tuple(f"{SCHEME}{name}{_SUFFIX}" for name in _SCHEMAS)
"""The canonical URI of every built-in schema."""


class BuiltinName(msgspec.Struct, frozen=True, kw_only=True):
    """What a built-in URI stands for.

    Attributes:
        uri: its canonical spelling, whether or not there is such a schema.
        is_deprecated: whether it was spelled in a way that is going away.
    """

    uri: str
    is_deprecated: bool


def builtin_name(uri: str) -> BuiltinName:
    """Put a built-in URI in its canonical spelling."""
    name = uri.removeprefix(SCHEME)
    if name.startswith("contexts/"):
        name = f"graders/{name}"
    if name.endswith(".ts") and not name.endswith(_SUFFIX):
        name = name.removesuffix(".ts") + _SUFFIX
    canonical = SCHEME + name
    return BuiltinName(uri=canonical, is_deprecated=canonical != uri)


def builtin_schema(uri: str) -> Schema | None:
    """The schema with a canonical URI; a fresh copy, so that nobody shares edits."""
    if not uri.startswith(SCHEME) or not uri.endswith(_SUFFIX):
        return None
    schema = _SCHEMAS.get(uri.removeprefix(SCHEME).removesuffix(_SUFFIX))
    return None if schema is None else _copied(schema)


def closest_uri(uri: str) -> str | None:
    """The built-in that a misspelt URI most likely meant."""
    return next(
        iter(difflib.get_close_matches(uri, BUILTIN_URIS, n=1, cutoff=0.8)), None
    )


def grader_contexts() -> dict[str, Schema]:
    """The contexts a grader can be written for, by their URIs."""
    return {
        f"{SCHEME}{name}{_SUFFIX}": _copied(schema)
        for name, schema in _SCHEMAS.items()
        if name.startswith(_GRADER_CONTEXTS)
    }


def _copied(value: JSONValue) -> JSONValue:
    # deepcopy would keep two uses of one table one table; JSON has no such thing.
    if isinstance(value, dict):
        return {key: _copied(entry) for key, entry in value.items()}
    return [_copied(entry) for entry in value] if isinstance(value, list) else value
