"""Chained methods: those every schema has, and who has which of the others."""

from collections.abc import Callable

import msgspec

from gambit_actors.schema.zod.calls import Call
from gambit_actors.schema.zod.checks import CHECKS, Method
from gambit_actors.schema.zod.constructors import ignored_code, literals
from gambit_actors.schema.zod.model import (
    BAD,
    UNDEFINED,
    Dynamic,
    Function,
    Value,
    ZodType,
)
from gambit_actors.schema.zod.objects import OBJECT_METHODS
from gambit_actors.schema.zod.session import Refused, Session, Spot

_META = ("title", "description", "examples", "deprecated")
_ENUM_PROPERTIES: dict[str, Callable[[tuple[Value, ...]], Value]] = {
    "options": tuple,
    "values": tuple,
    "value": lambda values: values[0],
    **dict.fromkeys(("enum", "Enum", "Values"), lambda vs: {str(v): v for v in vs}),
}
_replace = msgspec.structs.replace


def apply_method(call: Call, schema: ZodType) -> ZodType:
    """The schema that a chained call gives."""
    method = COMMON_METHODS.get(call.name)
    own = OWN_METHODS.get(schema.kind, {}).get(call.name)
    if schema.is_wrapped and method is None and own is not None:
        message = (
            f".{call.name}() comes too late: after .optional(), .nullable() and"
            " .default() it is gone; put it before them."
        )
        call.session.error("GS006", message, call.spot)
        raise Refused
    method = own if own is not None and not schema.is_wrapped else method
    if method is None:
        message = (
            f"A {schema.kind} schema has no method .{call.name}() that can be read."
        )
        call.session.error("GS006", message, call.spot)
        raise Refused
    return method(call, schema)


def schema_property(session: Session, schema: ZodType, name: str, spot: Spot) -> Value:
    """What a property of a schema is worth."""
    if schema.kind == "object" and name == "shape" and not schema.is_wrapped:
        return schema.shape
    if schema.kind == "array" and name == "element":
        return schema.items[0]
    if schema.kind in {"union", "tuple"} and name in {"options", "items"}:
        return schema.items
    if schema.kind == "enum" and name in _ENUM_PROPERTIES:
        return _ENUM_PROPERTIES[name](tuple(schema.keywords["enum"]))
    message = f"A {schema.kind} schema has no property .{name} that can be read."
    session.error("GS006", message, spot)
    return BAD


def _optional(_call: Call, schema: ZodType) -> ZodType:
    return _replace(schema, is_optional=True)


def _nullable(_call: Call, schema: ZodType) -> ZodType:
    return _replace(schema, is_nullable=True)


def _nullish(_call: Call, schema: ZodType) -> ZodType:
    return _replace(schema, is_nullable=True, is_optional=True)


def _required(_call: Call, schema: ZodType) -> ZodType:
    return _replace(schema, is_optional=False)


def _constant(call: Call) -> Value:
    """The first argument, or what it gives if it is a function."""
    value = call.argument(0)
    return value.call((), call.node) if isinstance(value, Function) else value


def _default(call: Call, schema: ZodType) -> ZodType:
    value = _constant(call)
    computed = _find_dynamic(value)
    if computed is not None:
        message = (
            f"The default {computed.what} is not fixed but computed at run time,"
            " so the value may be missing and nothing is filled in."
        )
        call.session.warn("GS021", message, call.at(0))
        return _replace(schema, is_optional=True)
    default = call.json(value)
    if default is UNDEFINED:
        return _replace(schema, is_optional=True)
    return _replace(schema, default=default)


def _find_dynamic(value: Value) -> Dynamic | None:
    """The run-time value in a constant, one level in, as authors write it."""
    if isinstance(value, Dynamic):
        return value
    inner: tuple[Value, ...] = ()
    if isinstance(value, dict):
        inner = tuple(value.values())
    elif isinstance(value, tuple):
        inner = value
    return next((entry for entry in inner if isinstance(entry, Dynamic)), None)


def _catch(call: Call, schema: ZodType) -> ZodType:
    message = (
        ".catch() fills in missing values only; wrong ones are refused,"
        " so use .default() if that is what you want."
    )
    call.session.warn("GS024", message, call.spot)
    value = call.argument(0)
    if isinstance(value, Function | Dynamic) or schema.has_default:
        return _replace(schema, is_optional=True)
    return _replace(schema, default=call.json(value))


def _describe(call: Call, schema: ZodType) -> ZodType:
    value = call.argument(0)
    if isinstance(value, Dynamic):
        message = f"The description {value.what} is computed at run time and left out."
        call.session.warn("GS021", message, call.at(0))
        return schema
    if value is BAD:
        raise Refused
    if not isinstance(value, str):
        call.refuse_argument(0, "a constant string")
    return _replace(schema, notes=schema.notes | {"description": value})


def _meta(call: Call, schema: ZodType) -> ZodType:
    given = call.mapping()
    notes = {key: call.json(given[key]) for key in _META if key in given}
    return _replace(schema, notes=schema.notes | notes)


def _array(_call: Call, schema: ZodType) -> ZodType:
    return ZodType(kind="array", items=(schema,))


def _or(call: Call, schema: ZodType) -> ZodType:
    # A chain of .or() is one union; nested, a long chain would be a deep schema.
    is_bare = schema.kind == "union" and not schema.is_wrapped and not schema.notes
    members = schema.items if is_bare else (schema,)
    return ZodType(kind="union", items=(*members, call.schema()))


def _and(call: Call, schema: ZodType) -> ZodType:
    return ZodType(kind="intersection", items=(schema, call.schema()))


def _unchanged(_call: Call, schema: ZodType) -> ZodType:
    return schema


def _ignored(call: Call, schema: ZodType) -> ZodType:
    ignored_code(call, f".{call.name}()")
    return schema


def _unwrap(_call: Call, schema: ZodType) -> ZodType:
    """Take off one wrapper; which was the outer one is no longer known."""
    if schema.is_optional:
        return _replace(schema, is_optional=False)
    if schema.is_nullable:
        return _replace(schema, is_nullable=False)
    if schema.has_default:
        return _replace(schema, default=UNDEFINED)
    return schema.items[0] if schema.kind == "array" else schema


def _remove_default(_call: Call, schema: ZodType) -> ZodType:
    return _replace(schema, default=UNDEFINED)


def _rest(call: Call, schema: ZodType) -> ZodType:
    return _replace(schema, rest=call.schema())


def _select(call: Call, schema: ZodType) -> ZodType:
    """``extract`` and ``exclude``: an enum of some of the values."""
    chosen = call.sequence()
    values: tuple[Value, ...] = tuple(schema.keywords["enum"])
    call.session.charge(len(values) * len(chosen) // 50, call.spot)
    for value in chosen:
        if value not in values:
            call.refuse_argument(0, "values of the enum")
    wanted = call.name == "extract"
    return literals(call, tuple(v for v in values if (v in chosen) == wanted))


COMMON_METHODS: dict[str, Method] = {
    **dict.fromkeys(("readonly", "brand", "innerType", "sourceType"), _unchanged),
    **dict.fromkeys(
        (
            "check",
            "overwrite",
            "pipe",
            "refine",
            "refinement",
            "superRefine",
            "transform",
        ),
        _ignored,
    ),
    "and": _and,
    "array": _array,
    "catch": _catch,
    "default": _default,
    "describe": _describe,
    "exactOptional": _optional,
    "meta": _meta,
    "nonoptional": _required,
    "nullable": _nullable,
    "nullish": _nullish,
    "optional": _optional,
    "or": _or,
    "prefault": _default,
    "removeDefault": _remove_default,
    "unwrap": _unwrap,
}
"""The methods every schema has."""

OWN_METHODS: dict[str, dict[str, Method]] = {
    **CHECKS,
    "object": OBJECT_METHODS,
    "tuple": {"rest": _rest},
    "enum": {"extract": _select, "exclude": _select},
}
"""The methods only some kinds of schema have, by kind."""
