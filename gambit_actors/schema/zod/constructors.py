"""The functions of ``z``: what each makes, in Zod 3 and in Zod 4."""

import math
from collections.abc import Callable
from typing import NoReturn, TypeAlias

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.schema.zod.calls import Call
from gambit_actors.schema.zod.checks import FORMATS, format_keywords, with_keywords
from gambit_actors.schema.zod.model import (
    ANY,
    BAD,
    UNDEFINED,
    UnknownKeys,
    Value,
    ZodPath,
    ZodType,
)
from gambit_actors.schema.zod.session import Refused

Constructor: TypeAlias = Callable[[Call], ZodType]

_SAFE = 2**53 - 1
_INT32 = 2**31
_PLAIN = {
    "any": "any",
    "bigint": "integer",
    "boolean": "boolean",
    "int": "integer",
    "float32": "number",
    "float64": "number",
    "json": "any",
    "never": "never",
    "null": "null",
    "number": "number",
    "string": "string",
    "undefined": "undefined",
    "unknown": "any",
    "void": "undefined",
}
_NOT_JSON = {
    "file": "files",
    "function": "functions",
    "instanceof": "class instances",
    "map": "maps",
    "nan": "NaN",
    "promise": "promises",
    "set": "sets",
    "symbol": "symbols",
}


def construct(call: Call, callee: ZodPath) -> ZodType:
    """Make the schema that a call of a ``z`` function gives."""
    name = ".".join(callee.path)
    last = callee.path[-1] if callee.path else ""
    call.name = last if last in FORMATS else callee.name
    if name in _NOT_JSON:
        message = (
            f"{callee.name}() describes {_NOT_JSON[name]}, which JSON does not have;"
            " use an object, an array or a string."
        )
        call.session.error("GS015", message, call.spot)
        raise Refused
    constructor = CONSTRUCTORS.get(name)
    if constructor is None:
        _refuse_unknown(call, callee)
    return _described(call, constructor(call))


def _refuse_unknown(call: Call, callee: ZodPath) -> NoReturn:
    message = f"{callee.name}() is not a Zod constructor that can be read."
    hint = "z.any() accepts everything, where nothing closer fits."
    call.session.error("GS005", message, call.spot, hint=hint)
    raise Refused


def _described(call: Call, schema: ZodType) -> ZodType:
    """Zod 3 takes a description in the options, which come last."""
    options = call.nodes[-1] if call.nodes else None
    if options is None or options.type != "object":
        return schema
    if schema.kind in {"object", "enum"} and len(call.nodes) == 1:
        return schema  # The only object there is the shape, or the values.
    if not (options.text and b"description" in options.text):
        return schema
    value = call.argument(len(call.nodes) - 1)
    text = value.get("description") if isinstance(value, dict) else None
    if not isinstance(text, str):
        return schema
    return msgspec.structs.replace(schema, notes=schema.notes | {"description": text})


def _plain(kind: str) -> Constructor:
    return lambda _call: ZodType(kind=kind)


def _coerced(kind: str) -> Constructor:
    def make(call: Call) -> ZodType:
        message = (
            f"{call.name}() is read as z.{kind}(): other values are refused,"
            " not converted."
        )
        call.session.warn("GS025", message, call.spot)
        return _date(call) if kind == "date" else ZodType(kind=_PLAIN[kind])

    return make


def _format(call: Call) -> ZodType:
    return with_keywords(ZodType(kind="string"), format_keywords(call))


def _ranged(low: int, high: int) -> Constructor:
    keywords: dict[str, JSONValue] = {"minimum": low, "maximum": high}
    return lambda _call: ZodType(kind="integer", keywords=keywords)


def _date(call: Call) -> ZodType:
    message = (
        "A date has no JSON form and is read as text in the date-time format;"
        " z.string().datetime() says the same without this warning."
    )
    call.session.warn("GS022", message, call.spot)
    return ZodType(kind="date")


def _object(unknown_keys: UnknownKeys) -> Constructor:
    def make(call: Call) -> ZodType:
        shape = call.shape() if call.nodes else {}
        return ZodType(kind="object", shape=shape, unknown_keys=unknown_keys)

    return make


def _array(call: Call) -> ZodType:
    return ZodType(kind="array", items=(call.schema(),))


def _tuple(call: Call) -> ZodType:
    rest = call.argument(1)
    return ZodType(
        kind="tuple",
        items=call.schemas(),
        rest=rest if isinstance(rest, ZodType) else None,
    )


def _record(call: Call) -> ZodType:
    second = call.argument(1)
    if isinstance(second, ZodType) or second is BAD:
        return ZodType(
            kind="record", key=call.schema(0), rest=call.as_schema(second, 1)
        )
    return ZodType(kind="record", rest=call.schema(0) if call.nodes else ANY)


def _union(call: Call) -> ZodType:
    members = call.schemas()
    if not members:
        call.refuse_argument(0, "at least one schema")
    return ZodType(kind="union", items=members)


def _discriminated(call: Call) -> ZodType:
    key, members = call.string(0), call.schemas(1)
    if not members:
        call.refuse_argument(1, "at least one schema")
    for member in members:
        if member.kind == "object" and key not in member.shape:
            message = (
                f"One of the objects has no key {key!r} to be told apart by;"
                " give it one with z.literal()."
            )
            call.session.error("GS008", message, call.at(1))
            break
    return ZodType(kind="union", items=members)


def _intersection(call: Call) -> ZodType:
    return ZodType(kind="intersection", items=(call.schema(0), call.schema(1)))


def literals(call: Call, values: tuple[Value, ...]) -> ZodType:
    """A schema that takes some constants and nothing else."""
    plain = [value for value in values if value is not UNDEFINED]
    for value in plain:
        is_plain = value is None or isinstance(value, str | int | float)
        if value is BAD:
            raise Refused
        if not is_plain or (isinstance(value, float) and not math.isfinite(value)):
            call.refuse_argument(0, "constants")
    call.session.charge(len(plain), call.spot)
    if not plain:
        return ZodType(kind="undefined" if values else "never")
    return ZodType(
        kind="enum",
        keywords={"enum": _distinct(plain)},
        is_optional=len(plain) < len(values),
    )


def _distinct(values: list[Value]) -> list[JSONValue]:
    # To Python 1 is True; the type keeps them apart.
    return list({(isinstance(value, bool), value): value for value in values}.values())


def _literal(call: Call) -> ZodType:
    value = call.argument(0)
    return literals(call, value if isinstance(value, tuple) else (value,))


def _enum(call: Call) -> ZodType:
    """``z.enum`` takes a list of strings or, in Zod 4, an object; both come here."""
    value = call.argument(0)
    if isinstance(value, dict):
        return literals(call, tuple(value.values()))
    if isinstance(value, tuple) and value:
        return literals(call, value)
    if value is BAD:
        raise Refused
    return call.refuse_argument(0, "a list or an object of constants")


def _lazy(call: Call) -> ZodType:
    return call.lazy()


def ignored_code(call: Call, what: str) -> None:
    """Say that a function of the author's will not be run."""
    message = (
        f"{what} is ignored, because its code is not run;"
        " what it checks or changes has to be done by the deck."
    )
    call.session.warn("GS020", message, call.spot)


def _preprocess(call: Call) -> ZodType:
    ignored_code(call, f"{call.name}()")
    return call.schema(1)


def _custom(call: Call) -> ZodType:
    ignored_code(call, f"{call.name}()")
    return ANY


def _pipe(call: Call) -> ZodType:
    return call.schema(0)


def _wrapped(**flags: bool) -> Constructor:
    return lambda call: msgspec.structs.replace(call.schema(), **flags)


CONSTRUCTORS: dict[str, Constructor] = (
    {name: _plain(kind) for name, kind in _PLAIN.items()}
    | {
        f"coerce.{name}": _coerced(name)
        for name in ("string", "number", "boolean", "bigint", "date")
    }
    | {
        name: _format
        for name in FORMATS
        if name not in {"date", "datetime", "time", "ip"}
    }
    | {f"iso.{name}": _format for name in ("date", "datetime", "time", "duration")}
    | {
        "array": _array,
        "custom": _custom,
        "date": _date,
        "discriminatedUnion": _discriminated,
        "enum": _enum,
        "int": _ranged(-_SAFE, _SAFE),
        "int32": _ranged(-_INT32, _INT32 - 1),
        "intersection": _intersection,
        "lazy": _lazy,
        "literal": _literal,
        "looseObject": _object("allow"),
        "nativeEnum": _enum,
        "nullable": _wrapped(is_nullable=True),
        "nullish": _wrapped(is_nullable=True, is_optional=True),
        "object": _object("strip"),
        "optional": _wrapped(is_optional=True),
        "partialRecord": _record,
        "pipe": _pipe,
        "pipeline": _pipe,
        "preprocess": _preprocess,
        "record": _record,
        "strictObject": _object("refuse"),
        "tuple": _tuple,
        "uint32": _ranged(0, 2 * _INT32 - 1),
        "union": _union,
    }
)
"""Every function of ``z`` that is read, by its path under ``z``."""
