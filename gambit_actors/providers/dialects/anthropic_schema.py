"""JSON Schemas as Anthropic's structured output takes them.

It takes part of JSON Schema: objects that are closed, no recursion, no bounds. A schema
is made to fit where an answer that fits the new one fits the old one as well, except
for bounds, which become words for the model to read. Where that cannot be, there is
none.
"""

import msgspec

from gambit_actors.openresponses.base import JSONValue

_KEPT = (
    "$ref",
    "type",
    "enum",
    "const",
    "title",
    "description",
    "default",
    "required",
)
_LISTS = {"anyOf": "anyOf", "oneOf": "anyOf", "allOf": "allOf"}
_NAMED = ("properties", "$defs", "definitions")
_TAKEN: dict[str, tuple[JSONValue, ...]] = {
    "format": (
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "uri",
        "ipv4",
        "ipv6",
        "uuid",
    ),
    "minItems": (0, 1),
}
# Said about a schema, not about values.
_IGNORED = ("$schema", "$id", "$comment", "examples", "deprecated", "readOnly")
_SAYS_WHAT = frozenset(("$ref", "type", "enum", "const", "anyOf", "allOf"))
_DEEPEST = 40


class FittedSchema(msgspec.Struct, frozen=True):
    """A schema that is taken; ``loosened`` are bounds that became words."""

    schema: dict[str, JSONValue]
    loosened: tuple[str, ...]


def fitted(schema: JSONValue) -> FittedSchema | None:
    """Make a schema fit; None where that would change what it means."""
    fitter = _Fitter()
    try:
        made = fitter.fit(schema, 0)
    except _DoesNotFitError:
        return None
    if _is_recursive(made):
        return None
    return FittedSchema(made, tuple(dict.fromkeys(fitter.loosened)))


class _DoesNotFitError(Exception):
    pass


class _Fitter:
    def __init__(self) -> None:
        self.loosened: list[str] = []

    def fit(self, schema: JSONValue, depth: int) -> dict[str, JSONValue]:
        if not isinstance(schema, dict) or depth > _DEEPEST:
            raise _DoesNotFitError
        made: dict[str, JSONValue] = {}
        bounds: dict[str, JSONValue] = {}
        for key, value in schema.items():
            if key in _KEPT or value in _TAKEN.get(key, ()):
                made[key] = value
            elif key in _LISTS or key in _NAMED or key == "items":
                made[str(_LISTS.get(key, key))] = self._inside(key, value, depth + 1)
            elif key == "additionalProperties":
                # A map of any keys is not an object that can be closed.
                if isinstance(value, dict) and value:
                    raise _DoesNotFitError
            elif key not in _IGNORED:
                bounds[key] = value
        return self._closed(made, bounds)

    def _inside(self, key: str, value: JSONValue, depth: int) -> JSONValue:
        """The schemas inside a schema: in a list, under names, or one."""
        if key in _LISTS and isinstance(value, list):
            return [self.fit(entry, depth) for entry in value]
        if key in _NAMED and isinstance(value, dict):
            return {name: self.fit(entry, depth) for name, entry in value.items()}
        if key == "items":
            return self.fit(value, depth)
        raise _DoesNotFitError

    def _closed(
        self, made: dict[str, JSONValue], bounds: dict[str, JSONValue]
    ) -> dict[str, JSONValue]:
        kind = made.get("type")
        kinds = kind if isinstance(kind, list) else [kind]
        if "object" in kinds or "properties" in made:
            if "properties" not in made:
                # Any object at all; closed, it would have to be empty.
                raise _DoesNotFitError
            made["additionalProperties"] = False
        elif not made.keys() & _SAYS_WHAT:
            raise _DoesNotFitError
        if bounds:
            self.loosened += bounds
            said = f"{{{', '.join(f'{key}: {bounds[key]}' for key in bounds)}}}"
            before = made.get("description")
            made["description"] = f"{before} {said}" if before else said
        return made


def _is_recursive(schema: dict[str, JSONValue]) -> bool:
    """Whether following references can come back to where it was."""
    places: dict[str, set[str]] = {"#": _references(schema)}
    for key in ("$defs", "definitions"):
        for name, entry in schema.get(key, {}).items():
            places[f"#/{key}/{name}"] = _references(entry)
    reached = places["#"]
    for _ in places:
        reached = reached.union(*(places.get(place, set()) for place in reached))
    if "#" in reached:
        return True
    return any(_leads_back(place, places) for place in reached & places.keys())


def _leads_back(start: str, places: dict[str, set[str]]) -> bool:
    reached = set(places[start])
    for _ in places:
        reached = reached.union(*(places.get(place, set()) for place in reached))
    return start in reached


def _references(value: JSONValue) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(_references, value))
    if not isinstance(value, dict):
        return set()
    here = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
    inside = (entry for key, entry in value.items() if key not in ("enum", "const"))
    return here.union(*map(_references, inside))
