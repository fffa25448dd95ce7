"""Where schemas are inside schemas, and what a local ``$ref`` points at.

JSON Schema mixes schemas and plain data: under ``properties`` every value is a
schema, under ``const`` or ``default`` none is. This module owns that table, so that
nothing else mistakes data for a schema. It never looks outside the document.
"""

import re
from collections.abc import Iterator
from typing import TypeAlias

from gambit_actors.openresponses.base import JSONValue

Schema: TypeAlias = dict[str, JSONValue]
"""A JSON Schema that is an object, not ``true`` or ``false``."""

Step: TypeAlias = tuple[str | int, ...]
"""The keys from a schema to one of its parts."""

UNKNOWN_KEYS = "x-gambit-unknownKeys"
"""What an object made from Zod does with keys it did not declare."""

UNIONS = ("anyOf", "oneOf")

# Applied to the very value the schema is applied to; and how each holds its schemas.
_SAME = {
    "allOf": "list",
    "anyOf": "list",
    "dependentSchemas": "table",
    "else": "one",
    "if": "one",
    "not": "one",
    "oneOf": "list",
    "then": "one",
}
# Applied to an entry of the value.
_INNER = {
    "additionalProperties": "one",
    "contains": "one",
    "items": "one",
    "patternProperties": "table",
    "prefixItems": "list",
    "properties": "table",
    "propertyNames": "one",
    "unevaluatedItems": "one",
    "unevaluatedProperties": "one",
}
_ALL = _SAME | _INNER | {"$defs": "table", "definitions": "table"}

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list, tuple),
    "boolean": (bool,),
    "integer": (int, float),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}

_ESCAPED = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_PLAIN = frozenset("/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def same_value_parts(schema: Schema) -> Iterator[tuple[Step, JSONValue]]:
    """The schemas that judge the same value as the one they are written in."""
    return _parts(schema, _SAME)


def inner_parts(schema: Schema) -> Iterator[tuple[Step, JSONValue]]:
    """The schemas that judge an entry of the value."""
    return _parts(schema, _INNER)


def all_parts(schema: Schema) -> Iterator[tuple[Step, JSONValue]]:
    """Every schema written directly inside a schema."""
    return _parts(schema, _ALL)


def walk(schema: JSONValue, step: Step = ()) -> Iterator[tuple[Step, Schema]]:
    """A schema and all schemas in it, each with the keys that lead there."""
    waiting = [(step, schema)]
    while waiting:
        here, part = waiting.pop()
        if isinstance(part, dict):
            yield here, part
            waiting += [(here + more, inner) for more, inner in all_parts(part)]


def resolve(root: JSONValue, reference: JSONValue) -> JSONValue:
    """What a ``$ref`` within the document points at; None when it is not there."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found = root
    for key in steps_to(root, reference):
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and str(key).isdecimal():
            found = found[int(key)] if int(key) < len(found) else None
        else:
            return None
    return found


def steps_to(root: JSONValue, reference: str) -> Step:
    """The keys that a ``$ref`` within the document spells out."""
    pointer = _ESCAPED.sub(_unescaped, reference[1:])
    if pointer and not pointer.startswith("/"):
        named = (at for at, part in walk(root) if part.get("$anchor") == pointer)
        return next(named, (pointer,))
    return tuple(
        key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]
    )


def fragment(step: Step) -> str:
    """The keys to a part of a schema, as the fragment of a URI."""
    pointer = "".join(
        "/" + str(key).replace("~", "~0").replace("/", "~1") for key in step
    )
    return "#" + "".join(
        letter
        if letter in _PLAIN
        else "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "replace"))
        for letter in pointer
    )


def may_fit(schema: JSONValue, value: JSONValue) -> bool:
    """A quick no for alternatives of another type or with another tag.

    Without it a recursive union would be tried in all ways at each level.
    """
    if not isinstance(schema, dict):
        return schema is not False
    names = schema.get("type", [])
    types = [
        t
        for n in ([names] if isinstance(names, str) else names)
        for t in _PYTHON_TYPES.get(n, ())
    ]
    if types and not isinstance(value, tuple(types)):
        return False
    if not isinstance(value, dict):
        return True
    return all(
        value[key] == part["const"]
        for key, part in table(schema, "properties").items()
        if isinstance(part, dict) and "const" in part and key in value
    )


def table(schema: Schema, key: str) -> dict[str, JSONValue]:
    """What a keyword that maps names to schemas maps; empty when it is not there."""
    found = schema.get(key)
    return found if isinstance(found, dict) else {}


def _unescaped(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace")


def _parts(schema: Schema, shapes: dict[str, str]) -> Iterator[tuple[Step, JSONValue]]:
    # Schemas have few keys, and there are many keywords.
    for key, held in schema.items():
        match shapes.get(key), held:
            case "one", _:
                yield (key,), held
            case "list", list():
                yield from (((key, index), part) for index, part in enumerate(held))
            case "table", dict():
                yield from (((key, name), part) for name, part in held.items())
