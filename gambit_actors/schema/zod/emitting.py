"""Schemas of the model as JSON Schema 2020-12.

One `Emitter` writes one document. Recursive parts go to ``$defs``, once each, from a
queue, so that how often a schema leads back to itself never matters for how deep the
writing goes.
"""

import copy
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeAlias, cast

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.schema.zod.model import ANY, ZodType
from gambit_actors.schema.zod.session import Session, Spot

JSONSchema: TypeAlias = dict[str, JSONValue]

UNKNOWN_KEYS = "x-gambit-unknownKeys"
"""Annotation: whether unknown keys of an object are dropped or refused."""

_NOTHING: JSONSchema = {"not": {}}
_PRIMITIVES = {"string", "number", "integer", "boolean"}
_MAX_LAZY_STEPS = 100


class Emitter:
    """Writes one schema and what it refers to."""

    def __init__(self, session: Session, spot: Spot) -> None:
        self._session = session
        self._spot = spot
        self._names: dict[ZodType, str] = {}
        self._spots: dict[str, Spot] = {}
        self._waiting: deque[ZodType] = deque()
        self._defs: dict[str, JSONSchema] = {}

    def document(self, schema: ZodType) -> JSONSchema:
        """The whole document for a schema."""
        written = self._write(schema)
        if schema.is_optional and not schema.has_default and schema.kind != "any":
            written = {"anyOf": [dict(_NOTHING), written]}
        while self._waiting:
            target = self._waiting.popleft()
            self._defs[self._names[target]] = self._write(target)
        self._refuse_endless()
        return written | {"$defs": self._defs} if self._defs else written

    def _write(self, schema: ZodType) -> JSONSchema:
        self._session.charge(schema.width, self._spot)
        written = dict(_WRITERS[schema.kind](self, schema))
        if schema.checks:
            written["allOf"] = [*written.get("allOf", []), *schema.checks]
        if schema.is_nullable:
            written = _or_null(schema, written)
        written |= schema.notes
        if schema.has_default:
            written["default"] = schema.default
        return written

    def plain(self, schema: ZodType) -> JSONSchema:
        """A type with keywords."""
        # A copy all through: the tables of formats are not the caller's to change.
        return {"type": schema.kind} | copy.deepcopy(schema.keywords)

    def enum(self, schema: ZodType) -> JSONSchema:
        """Constants; one alone is a const."""
        values = schema.keywords["enum"]
        if len(values) == 1:
            return {"type": _type_of(values[0]), "const": values[0]}
        types = list(dict.fromkeys(_type_of(value) for value in values))
        return {"type": types[0] if len(types) == 1 else types, "enum": list(values)}

    def object(self, schema: ZodType) -> JSONSchema:
        """Properties, which of them must be there, and what else may."""
        required = [k for k, v in schema.shape.items() if not self._takes_nothing(v)]
        written: JSONSchema = {
            "type": "object",
            "properties": {k: self._write(v) for k, v in schema.shape.items()},
        }
        if required:
            written["required"] = required
        if schema.rest is not None:
            return written | {"additionalProperties": self._write(schema.rest)}
        if schema.unknown_keys == "allow":
            return written | {"additionalProperties": True}
        return written | {
            "additionalProperties": False,
            UNKNOWN_KEYS: schema.unknown_keys,
        }

    def record(self, schema: ZodType) -> JSONSchema:
        """Any keys of one form, with values of one form."""
        written: JSONSchema = {
            "type": "object",
            "additionalProperties": self._write(schema.rest or ANY),
        }
        if schema.key is None:
            return written
        if schema.key.kind in {"number", "integer"}:
            # A key is text in JSON, whatever it is to the author.
            return written | {"propertyNames": {"pattern": r"^-?[0-9]+(\.[0-9]+)?$"}}
        names = self._write(schema.key)
        names.pop("type", None)
        return written | {"propertyNames": names} if names else written

    def array(self, schema: ZodType) -> JSONSchema:
        """Any number of entries of one form."""
        items = self._write(schema.items[0])
        return {"type": "array", "items": items} | schema.keywords

    def tuple(self, schema: ZodType) -> JSONSchema:
        """Entries by position."""
        needed = len(schema.items)
        while needed and self._takes_nothing(schema.items[needed - 1]):
            needed -= 1
        written: JSONSchema = {"type": "array"}
        if schema.items:
            written["prefixItems"] = [self._write(item) for item in schema.items]
        written["items"] = False if schema.rest is None else self._write(schema.rest)
        return written | ({"minItems": needed} if needed else {})

    def union(self, schema: ZodType) -> JSONSchema:
        """Any of the members, said as briefly as it can be."""
        present = [m for m in schema.items if m.kind != "undefined"]
        members = [self._write(member) for member in present]
        if not members:
            return dict(_NOTHING)
        if len(members) == 1:
            return members[0]
        if all(member.keys() == {"type"} for member in members):
            types = list(dict.fromkeys(_types(members)))
            return {"type": types[0] if len(types) == 1 else types}
        if all(member.keys() == {"type", "const"} for member in members):
            values = [member["const"] for member in members]
            types = list(dict.fromkeys(_types(members)))
            return {"type": types[0] if len(types) == 1 else types, "enum": values}
        return {"anyOf": members}

    def intersection(self, schema: ZodType) -> JSONSchema:
        """All of the members; objects see each other's keys."""
        sides = list(_flat(schema))
        members = [self._write(side) for side in sides]
        # Alone each would refuse what the other names; together they refuse what
        # neither does.
        were_stripping = [_open_up(member) for member in members]
        if True not in were_stripping:
            return {"allOf": members}
        return {
            "allOf": members,
            "unevaluatedProperties": False,
            UNKNOWN_KEYS: "strip",
        }

    def lazy(self, schema: ZodType) -> JSONSchema:
        """A reference to a definition, which is written later."""
        target = self._target(schema)
        if target not in self._names:
            # Finding a free name looks at those taken, so each costs what is there.
            self._session.charge(len(self._names), self._spot)
            name = self._free_name(schema)
            self._names[target] = name
            self._spots[name] = _spot_of(schema)
            self._waiting.append(target)
        return {"$ref": f"#/$defs/{self._names[target]}"}

    def _free_name(self, schema: ZodType) -> str:
        wanted = schema.thunk.name if schema.thunk is not None else "Lazy"
        # Names go into a JSON pointer inside a URI, so only plain letters stay.
        plain = "".join(c for c in wanted if c.isascii() and (c.isalnum() or c == "_"))
        plain = plain or "Lazy"
        name, number = plain, 1
        while name in self._spots:
            number += 1
            name = f"{plain}{number}"
        return name

    def _target(self, schema: ZodType) -> ZodType:
        """What a lazy is about, through lazies that only pass it on."""
        target = schema
        for _ in range(_MAX_LAZY_STEPS):
            if target.kind != "lazy" or target.thunk is None:
                return target
            if target is not schema and target.is_wrapped:
                return target
            target = target.thunk.resolve()
        self._report_endless(
            schema.thunk.name if schema.thunk else "", _spot_of(schema)
        )
        return ANY

    def _takes_nothing(self, schema: ZodType) -> bool:
        """Whether a missing value passes, as Zod's ``isOptional`` has it."""
        self._session.charge(1, self._spot)
        if schema.is_optional or schema.has_default:
            return True
        if schema.kind == "lazy":
            target = self._target(schema)
            return target.is_optional or target.has_default or target.kind == "any"
        if schema.kind == "union":
            return any(self._takes_nothing(member) for member in schema.items)
        if schema.kind == "intersection":
            return all(self._takes_nothing(member) for member in schema.items)
        return schema.kind in {"any", "undefined"}

    def _refuse_endless(self) -> None:
        """Find definitions that lead back to themselves without going inwards.

        Whoever validates by such a schema would never come to an end.
        """
        edges = {
            name: {ref.removeprefix("#/$defs/") for ref in _refs_in_place(definition)}
            for name, definition in self._defs.items()
        }
        while leaves := [
            name for name, refs in edges.items() if not refs & edges.keys()
        ]:
            for name in leaves:
                del edges[name]
        for name in edges:
            self._report_endless(name, self._spots[name])

    def _report_endless(self, name: str, spot: Spot) -> None:
        message = (
            f"The recursive schema {name!r} leads back to itself with nothing in"
            " between; put an object or an array around the recursive part."
        )
        self._session.error("GS014", message, spot)


def _or_null(schema: ZodType, written: JSONSchema) -> JSONSchema:
    """What a schema takes, or null."""
    kind = written.get("type")
    if schema.kind in {"any", "null"} or kind == "null":
        return written
    if schema.kind in _PRIMITIVES or written.keys() == {"type"}:
        types = kind if isinstance(kind, list) else [kind]
        return written | {"type": types if "null" in types else [*types, "null"]}
    return {"anyOf": [written, {"type": "null"}]}


def _open_up(written: JSONSchema) -> bool:
    """Let an object, or each of several, take keys that others name."""
    is_stripping = written.get(UNKNOWN_KEYS) == "strip"
    if is_stripping:
        for keyword in (UNKNOWN_KEYS, "additionalProperties", "unevaluatedProperties"):
            written.pop(keyword, None)
    inner = [*written.get("anyOf", []), *written.get("allOf", [])]
    were_stripping = [_open_up(member) for member in inner]
    return is_stripping or True in were_stripping


def _flat(schema: ZodType) -> Iterator[ZodType]:
    """The members of nested intersections as one list."""
    for item in schema.items:
        is_bare = item.kind == "intersection" and not item.is_wrapped and not item.notes
        if is_bare:
            yield from _flat(item)
        else:
            yield item


def _refs_in_place(schema: JSONSchema) -> Iterator[str]:
    """References that apply to the very value the schema applies to."""
    if "$ref" in schema:
        yield schema["$ref"]
    for keyword in ("anyOf", "allOf"):
        for member in schema.get(keyword, ()):
            yield from _refs_in_place(member)


def _spot_of(schema: ZodType) -> Spot:
    thunk = schema.thunk
    return cast(Spot, thunk.spot if thunk is not None else None)


def _types(members: list[JSONSchema]) -> Iterator[str]:
    for member in members:
        kinds = member["type"]
        yield from kinds if isinstance(kinds, list) else [kinds]


def _type_of(value: JSONValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "string" if isinstance(value, str) else "number"


_WRITERS: dict[str, Callable[[Emitter, ZodType], JSONSchema]] = {
    "any": lambda _emitter, _schema: {},
    "array": Emitter.array,
    "boolean": Emitter.plain,
    "date": lambda _emitter, _schema: {"type": "string", "format": "date-time"},
    "enum": Emitter.enum,
    "integer": Emitter.plain,
    "intersection": Emitter.intersection,
    "lazy": Emitter.lazy,
    "never": lambda _emitter, _schema: dict(_NOTHING),
    "null": Emitter.plain,
    "number": Emitter.plain,
    "object": Emitter.object,
    "record": Emitter.record,
    "string": Emitter.plain,
    "tuple": Emitter.tuple,
    "undefined": lambda _emitter, _schema: dict(_NOTHING),
    "union": Emitter.union,
}
