"""Checks on strings, numbers and lists as JSON Schema keywords.

In Zod every check of a chain holds, so a second one never replaces the first: bounds
keep the tighter value, everything else is added as a further subschema.
"""

import math
import re
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.schema.zod.calls import Call
from gambit_actors.schema.zod.model import BAD, Regex, ZodType
from gambit_actors.schema.zod.session import Refused

Method: TypeAlias = Callable[[Call, ZodType], ZodType]

_LOWER = {"minLength", "minItems", "minimum", "exclusiveMinimum"}
_UPPER = {"maxLength", "maxItems", "maximum", "exclusiveMaximum"}
_SAFE = 2**53 - 1
# JSON Schema's "time" wants an offset and Zod's has none, so a pattern says it.
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?"
_LOCAL_DATETIME = (
    rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T{_TIME}(Z|[+-][0-9]{{2}}:?[0-9]{{2}})?$"
)

FORMATS: dict[str, dict[str, JSONValue]] = {
    "email": {"format": "email"},
    "url": {"format": "uri"},
    "httpUrl": {"format": "uri", "pattern": "^https?://"},
    "uuid": {"format": "uuid"},
    "guid": {"format": "uuid"},
    "uuidv4": {"format": "uuid"},
    "uuidv6": {"format": "uuid"},
    "uuidv7": {"format": "uuid"},
    "hostname": {"format": "hostname"},
    "datetime": {"format": "date-time"},
    "date": {"format": "date"},
    "time": {"pattern": f"^{_TIME}$"},
    "duration": {"format": "duration"},
    "ip": {"anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]},
    "ipv4": {"format": "ipv4"},
    "ipv6": {"format": "ipv6"},
    "cuid": {"pattern": r"^[cC][^\s-]{8,}$"},
    "cuid2": {"pattern": "^[0-9a-z]+$"},
    "ulid": {"pattern": "^[0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{26}$"},
    "nanoid": {"pattern": "^[A-Za-z0-9_-]{21}$"},
    "base64": {
        "pattern": "^([0-9A-Za-z+/]{4})*([0-9A-Za-z+/]{2}==|[0-9A-Za-z+/]{3}=)?$"
    },
    "base64url": {"pattern": "^[A-Za-z0-9_-]*={0,2}$"},
    "hex": {"pattern": "^[0-9a-fA-F]*$"},
    "emoji": {"pattern": r"^(\p{Extended_Pictographic}|\p{Emoji_Component})+$"},
    "e164": {"pattern": r"^\+[1-9][0-9]{6,14}$"},
    "jwt": {"pattern": r"^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$"},
}
"""String formats by the name Zod gives them, as methods and as ``z.email()``."""

_CHANGES = {"trim", "toLowerCase", "toUpperCase", "normalize"}
_SIZES = {
    "min": ("min",),
    "max": ("max",),
    "length": ("min", "max"),
    "nonempty": ("min",),
}
_BOUNDS = {
    "min": "minimum",
    "gte": "minimum",
    "max": "maximum",
    "lte": "maximum",
    "gt": "exclusiveMinimum",
    "lt": "exclusiveMaximum",
}
_SIGNS = {
    "positive": "exclusiveMinimum",
    "nonnegative": "minimum",
    "negative": "exclusiveMaximum",
    "nonpositive": "maximum",
}


def with_keywords(schema: ZodType, added: dict[str, JSONValue]) -> ZodType:
    """A schema for which more must hold."""
    keywords, checks = dict(schema.keywords), list(schema.checks)
    again: dict[str, JSONValue] = {}
    for key, value in added.items():
        if key not in keywords:
            keywords[key] = value
        elif key in _LOWER:
            keywords[key] = max(keywords[key], value)
        elif key in _UPPER:
            keywords[key] = min(keywords[key], value)
        elif keywords[key] != value:
            again[key] = value
    if again and again not in checks:
        checks.append(again)
    return msgspec.structs.replace(schema, keywords=keywords, checks=tuple(checks))


def _size(unit: str) -> Method:
    """Length checks: of characters for a string, of entries for a list."""

    def check(call: Call, schema: ZodType) -> ZodType:
        size = 1 if call.name == "nonempty" else call.number()
        if size == math.inf:
            return schema
        if size < 0 or size != int(size):
            call.refuse_argument(0, "a whole number from 0 up")
        return with_keywords(
            schema, {f"{side}{unit}": int(size) for side in _SIZES[call.name]}
        )

    return check


def _format(call: Call, schema: ZodType) -> ZodType:
    return with_keywords(schema, format_keywords(call))


def format_keywords(call: Call) -> dict[str, JSONValue]:
    """The keywords of a string format, its options considered."""
    options = call.argument(0) if call.nodes else None
    keywords = FORMATS[call.name]
    if not isinstance(options, dict):
        return keywords
    if call.name == "datetime" and options.get("local") is True:
        return {"pattern": _LOCAL_DATETIME}
    version = options.get("version")
    if call.name == "ip" and version in {"v4", "v6"}:
        return {"format": f"ip{version}"}
    return keywords


def _unchanged(_call: Call, schema: ZodType) -> ZodType:
    """A change of the value says nothing about what may be given."""
    return schema


def _ignored(call: Call, schema: ZodType) -> ZodType:
    message = f".{call.name}() has no JSON Schema form and is ignored."
    call.session.warn("GS027", message, call.spot)
    return schema


def _regex(call: Call, schema: ZodType) -> ZodType:
    value = call.argument(0)
    if value is BAD:
        raise Refused
    if not isinstance(value, Regex):
        call.refuse_argument(0, "a regular expression literal")
    pattern = value.pattern
    if "i" in value.flags:
        # A pattern carries no flags, but a group can (ECMAScript 2025).
        pattern = f"(?i:{pattern})"
    ignored = sorted(set(value.flags) - {"i", "u"})
    if ignored:
        message = (
            f"The flag {''.join(ignored)!r} of the regular expression is ignored;"
            " write the pattern so that it needs no flag."
        )
        call.session.warn("GS023", message, call.at(0))
    return with_keywords(schema, {"pattern": pattern})


def _literal_text(call: Call, schema: ZodType) -> ZodType:
    text = re.sub(r"[\\^$.*+?()\[\]{}|]", r"\\\g<0>", call.string())
    before = "^" if call.name == "startsWith" else ""
    after = "$" if call.name == "endsWith" else ""
    return with_keywords(schema, {"pattern": f"{before}{text}{after}"})


def _bound(call: Call, schema: ZodType) -> ZodType:
    limit = call.number()
    if math.isinf(limit):
        return schema
    return with_keywords(schema, {_BOUNDS[call.name]: limit})


def _sign(call: Call, schema: ZodType) -> ZodType:
    return with_keywords(schema, {_SIGNS[call.name]: 0})


def _multiple(call: Call, schema: ZodType) -> ZodType:
    step = call.number()
    if not 0 < step < math.inf:
        call.refuse_argument(0, "a number above 0")
    return with_keywords(schema, {"multipleOf": step})


def _int(_call: Call, schema: ZodType) -> ZodType:
    return msgspec.structs.replace(schema, kind="integer")


def _safe(_call: Call, schema: ZodType) -> ZodType:
    return with_keywords(schema, {"minimum": -_SAFE, "maximum": _SAFE})


_NUMBER: dict[str, Method] = (
    dict.fromkeys(_BOUNDS, _bound)
    | dict.fromkeys(_SIGNS, _sign)
    | dict.fromkeys(("multipleOf", "step"), _multiple)
    | {"int": _int, "safe": _safe, "finite": _unchanged}
)

CHECKS: dict[str, dict[str, Method]] = {
    "string": (
        dict.fromkeys(_SIZES, _size("Length"))
        | dict.fromkeys(FORMATS, _format)
        | dict.fromkeys(_CHANGES, _unchanged)
        | dict.fromkeys(("startsWith", "endsWith", "includes"), _literal_text)
        | dict.fromkeys(("cidr", "cidrv4", "cidrv6"), _ignored)
        | {"regex": _regex}
    ),
    "number": _NUMBER,
    "integer": _NUMBER,
    "date": dict.fromkeys(("min", "max"), _ignored),
    "array": dict.fromkeys(_SIZES, _size("Items")),
}
"""The checks each kind of schema has."""
