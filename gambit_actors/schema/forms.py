"""What a schema comes to when its references, unions and intersections are worked out.

A `Form` has the types a place can hold, and the object and list schemas among its
alternatives. Working it out is bounded: what would unfold without end, or into
more than anybody wrote, stands for anything.
"""

from collections.abc import Iterator

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.schema.keywords import UNIONS, Schema, resolve

ANYTHING: Schema = {}
"""The schema that allows every value."""

_MAX_DEPTH = 64
_MAX_STEPS = 50_000


class Form(msgspec.Struct, frozen=True):
    """What one place in a document can hold.

    Attributes:
        types: sorted; none means anything.
        objects: the alternatives that are objects.
        lists: the alternatives that are lists.
    """

    types: tuple[str, ...] = ()
    objects: tuple[Schema, ...] = ()
    lists: tuple[Schema, ...] = ()


class Unfolder:
    """Works out the forms of the places in one document."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        # A schema is kept with its form, so that an id always means the same schema.
        self._known: dict[int, tuple[JSONValue, Form]] = {}
        self._steps = 0

    def form(self, schema: JSONValue) -> Form:
        """Work out what a place with this schema can hold."""
        if id(schema) not in self._known:
            self._steps = 0
            parts = list(self._alternatives(schema, 0))
            self._known[id(schema)] = (schema, _form_from(parts))
        return self._known[id(schema)][1]

    def _is_too_much(self, depth: int) -> bool:
        self._steps += 1
        return depth > _MAX_DEPTH or self._steps > _MAX_STEPS

    def _alternatives(self, schema: JSONValue, depth: int) -> Iterator[Schema]:
        """The schemas a union can turn out to be; a schema without unions is one."""
        if not isinstance(schema, dict) or self._is_too_much(depth):
            yield ANYTHING
            return
        schema = self._merged(schema, depth)
        key = next((k for k in UNIONS if isinstance(schema.get(k), list)), None)
        if key is None:
            yield schema
            return
        rest = {k: entry for k, entry in schema.items() if k != key}
        for part in schema[key]:
            if part != {"not": {}}:  # Zod's "may be absent", which is no value.
                joined = {"allOf": [rest, part]} if _says_more(rest) else part
                yield from self._alternatives(joined, depth + 1)

    def _merged(self, schema: Schema, depth: int) -> Schema:
        """Follow a schema's reference, and join what an intersection joins."""
        if self._is_too_much(depth):
            return ANYTHING
        if "$ref" in schema:
            rest = {key: entry for key, entry in schema.items() if key != "$ref"}
            target = resolve(self._root, schema["$ref"])
            if not isinstance(target, dict):
                return self._merged(rest, depth + 1)
            merged = self._merged(target, depth + 1)
            if not _says_more(rest):
                return merged
            return _joined(merged, self._merged(rest, depth + 1))
        parts = schema.get("allOf")
        if not isinstance(parts, list):
            return schema
        joined = {key: entry for key, entry in schema.items() if key != "allOf"}
        for part in parts:
            if isinstance(part, dict):
                joined = _joined(joined, self._merged(part, depth + 1))
        return joined


def properties(schema: Schema) -> dict[str, JSONValue]:
    """The fields an object schema declares."""
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def required(schema: Schema) -> set[str]:
    """The fields an object schema insists on."""
    found = schema.get("required")
    return {str(key) for key in found} if isinstance(found, list) else set()


def _form_from(parts: list[Schema]) -> Form:
    if any(not _types(part) for part in parts):
        return Form()
    types = {name for part in parts for name in _types(part)}
    if "number" in types:
        types.discard("integer")  # Said already.
    return Form(
        types=tuple(sorted(types)),
        objects=tuple(part for part in parts if "object" in _types(part)),
        lists=tuple(part for part in parts if "array" in _types(part)),
    )


def _says_more(schema: Schema) -> bool:
    return bool(
        schema.keys()
        & {"type", "properties", "items", "required", "$ref", "allOf", *UNIONS}
    )


def _joined(first: Schema, second: Schema) -> Schema:
    """One schema for a value that must fit two; what both say, the second decides."""
    joined = first | second
    if "properties" in first and "properties" in second:
        joined["properties"] = properties(first) | properties(second)
    if "required" in first and "required" in second:
        joined["required"] = sorted(required(first) | required(second))
    return joined


def _types(schema: Schema) -> tuple[str, ...]:
    """The JSON types one schema allows; none stands for any."""
    named = schema.get("type")
    if isinstance(named, str):
        return (named,)
    if isinstance(named, list):
        return tuple(map(str, named))
    if "const" in schema:
        return (_type_of(schema["const"]),)
    if isinstance(choices := schema.get("enum"), list):
        return tuple(dict.fromkeys(map(_type_of, choices)))
    if schema.keys() & {"properties", "required"}:
        return ("object",)
    return ("array",) if schema.keys() & {"items", "prefixItems"} else ()


def _type_of(value: JSONValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
    return "object" if isinstance(value, dict) else "array"
