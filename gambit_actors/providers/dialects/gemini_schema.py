"""JSON Schemas in the older form that Gemini has for them, a piece of OpenAPI 3.0.

Newer versions take JSON Schema as it is. Servers that do not (older versions of the
API, other servers of its form) take these keywords and no others; what they have no
words for is told.
"""

from collections.abc import Callable

from gambit_actors.openresponses.base import JSONValue

_SAME = frozenset(
    {
        "default",
        "description",
        "enum",
        "example",
        "format",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "nullable",
        "pattern",
        "propertyOrdering",
        "required",
        "title",
    }
)
# Says nothing of values.
_SILENT = frozenset({"$comment", "$id", "$schema"})


def openapi_schema(
    schema: JSONValue, path: str, leave_out: Callable[[str, str], None]
) -> dict[str, JSONValue]:
    """Say a schema in the older form.

    Args:
        schema: a JSON Schema.
        path: where it stands, for what is left out.
        leave_out: is told the place and the reason for each keyword without a place.
    """
    if schema is False:
        leave_out(path, "Gemini's older form has no schema that fits nothing")
    found: dict[str, JSONValue] = {}
    keywords = schema if isinstance(schema, dict) else {}
    for key, value in keywords.items():
        if key == "type":
            found |= _types(value)
        elif key in _SAME:
            found[key] = value
        elif (inner := _inner(key, value, f"{path}.{key}", leave_out)) is not None:
            found |= inner
        elif key not in _SILENT:
            leave_out(f"{path}.{key}", f"Gemini's older form of schemas has no {key}")
    return found


def _inner(
    key: str, value: JSONValue, path: str, leave_out: Callable[[str, str], None]
) -> dict[str, JSONValue] | None:
    """Say a keyword that holds schemas; None if it is none that has a place."""
    if key == "properties" and isinstance(value, dict):
        named = {
            name: openapi_schema(inner, f"{path}.{name}", leave_out)
            for name, inner in value.items()
        }
        return {key: named}
    if key == "const" and isinstance(value, str):
        return {"enum": [value]}
    if key == "items":
        return {key: openapi_schema(value, path, leave_out)}
    if key in ("anyOf", "oneOf") and isinstance(value, list):
        some = [
            openapi_schema(inner, f"{path}[{number}]", leave_out)
            for number, inner in enumerate(value)
        ]
        return {"anyOf": some}
    return None


def _types(value: JSONValue) -> dict[str, JSONValue]:
    names = value if isinstance(value, list) else [value]
    real = [str(name).upper() for name in names if name != "null"]
    found: dict[str, JSONValue] = {}
    if len(real) == 1:
        found["type"] = real[0]
    elif real:
        found["anyOf"] = [{"type": name} for name in real]
    else:
        found["type"] = "NULL"
    if real and len(real) < len(names):
        found["nullable"] = True
    return found
