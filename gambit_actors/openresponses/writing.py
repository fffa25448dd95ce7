"""Structs to JSON, with the keys in ``extra`` put back where they came from."""

import functools

import msgspec

from gambit_actors.errors import WireError
from gambit_actors.openresponses.base import (
    EXTRA_KEY,
    JSONValue,
    Open,
    Tagged,
    Unknown,
)

_ENCODER = msgspec.json.Encoder()

# Quotes inside a JSON string are escaped, so these bytes only ever are a key. A free
# JSON value with a key of this name costs the slow way and is written just as well.
_EXTRA_MARK = f'"{EXTRA_KEY}":{{'.encode()


def encode(value: Open | tuple[Open, ...]) -> bytes:
    """Encode a struct, or several as a list, as compact JSON.

    Raises:
        WireError: something in it is nested deeper than can be written, or is text
            that no encoding has.
    """
    try:
        data = _ENCODER.encode(value)
        if _EXTRA_MARK not in data:
            return data
        return _ENCODER.encode(to_builtins(value))
    except (RecursionError, UnicodeEncodeError) as problem:
        raise WireError("", f"cannot be written as JSON: {problem}") from problem


def to_builtins(value: JSONValue) -> JSONValue:
    """Turn structs into the dicts and lists of their JSON form."""
    if isinstance(value, Open):
        return _object(value)
    if isinstance(value, tuple):
        return [to_builtins(entry) for entry in value]
    return value


def _object(struct: Open) -> dict[str, JSONValue]:
    fields: dict[str, JSONValue] = {}
    if isinstance(struct, Tagged):
        fields["type"] = struct.type
    for name, key, omits_none in _fields_of(type(struct)):
        value = getattr(struct, name)
        if value is not None or not omits_none:
            fields[key] = to_builtins(value)
    # The struct's own keys win: what is known is never overwritten by what is not.
    return struct.extra | fields


@functools.cache
def _fields_of(kind: type[Open]) -> tuple[tuple[str, str, bool], ...]:
    if issubclass(kind, Unknown):
        return ()
    return tuple(
        (field.name, field.encode_name, field.default is None)
        for field in msgspec.structs.fields(kind)
        if field.name != "extra"
    )
