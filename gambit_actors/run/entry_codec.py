"""Entries as bytes and back: one JSON document on one line each.

The keys of an entry are as its struct has them; items and usage inside it are as the
protocol writes them, with every key a peer sent. Like `openresponses.codec` this reads
natively first and carefully where that refuses. It does no I/O.

What is written is read back equal, or not written at all: a run that goes on from its
log must come to the state it was in.
"""

import functools
import math
import typing
from collections.abc import Callable, Iterable
from typing import TypeAlias, cast

import msgspec

from gambit_actors.errors import WireError
from gambit_actors.openresponses.base import EXTRA_KEY, JSONValue, refuse_reserved
from gambit_actors.openresponses.describing import shown
from gambit_actors.openresponses.reading import (
    Mismatch,
    Reader,
    compile_reader,
    parse_json,
)
from gambit_actors.openresponses.writing import to_builtins
from gambit_actors.run.entries import Entry, MetaSet, TurnEnded

MAX_DEPTH = 400
"""How deep an entry may be nested. Python reads about twice that, if it is not deep in
calls itself; what is written has to be readable from anywhere."""

_KINDS: dict[str, type[Entry]] = {
    str(kind.__struct_config__.tag): kind for kind in typing.get_args(Entry)
}
# Their values may come from code and not off the wire, and so be anything.
_FREE: dict[type[Entry], Callable[[typing.Any], tuple[object, ...]]] = {
    MetaSet: lambda entry: (entry.value,),
    TurnEnded: lambda entry: (
        entry.result,
        entry.envelope or None,
        entry.failure and entry.failure.details,
    ),
}
# The most common of those values, with which nothing can be wrong.
_PLAIN = frozenset({str, bool, type(None)})
_EXTRA_MARK = f'"{EXTRA_KEY}":{{'.encode()
_Field: TypeAlias = tuple[str, str, bool, Reader]

_ENCODER = msgspec.json.Encoder()
_NATIVE = msgspec.json.Decoder(Entry, dec_hook=refuse_reserved)


def encode_entry(entry: Entry) -> bytes:
    """Write an entry as compact JSON, without a line break in it.

    Raises:
        WireError: something in it would not come back as it is: a number that is not
            finite, half a surrogate pair, an object that is not JSON, or nesting
            beyond `MAX_DEPTH`.
    """
    try:
        data = _ENCODER.encode(entry)
        if (
            _EXTRA_MARK not in data
            # How a number that is not finite is written; nearly nothing else is.
            and b"null" not in data
            # What is short cannot be deep: each level has two brackets.
            and (len(data) <= 2 * MAX_DEPTH or _brackets(data) <= MAX_DEPTH)
            and (type(entry) not in _FREE or _has_plain_values(entry))
        ):
            return data
        _check(entry)
        return _ENCODER.encode(_object(entry)) if _EXTRA_MARK in data else data
    except (RecursionError, TypeError, ValueError, OverflowError) as problem:
        raise WireError("", f"cannot be written as JSON: {problem}") from problem


def decode_entry(data: bytes | msgspec.Raw) -> Entry:
    """Read an entry. Keys that a later version added to it are passed over.

    Raises:
        WireError: with the path and what is wrong there; the kind of the entry, if
            this version does not know it.
    """
    try:
        return cast(Entry, _NATIVE.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return _read(parse_json(bytes(data)))
    except Mismatch as problem:
        raise WireError(problem.path, problem.problem) from problem


def _brackets(data: bytes) -> int:
    return data.count(b"{") + data.count(b"[")


def _has_plain_values(entry: Entry) -> bool:
    return _PLAIN.issuperset(map(type, _FREE[type(entry)](entry)))


def _check(entry: Entry) -> None:
    """Refuse what msgspec writes and would not read back as it was."""
    # Not by recursion: this has to get to the bottom of what is too deep.
    waiting: list[tuple[object, int]] = [(entry, 1)]
    while waiting:
        value, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
        waiting += [(inner, depth + 1) for inner in _inside(value)]


def _inside(value: object) -> Iterable[object]:
    match value:
        case None | str() | int():
            return ()
        case float() if math.isfinite(value):
            return ()
        case dict():
            if not all(isinstance(key, str) for key in value):
                raise TypeError("an object has a key that is not text")
            return value.values()
        case list() | tuple():
            return value
        case msgspec.Struct():
            return [getattr(value, name) for name in value.__struct_fields__]
        case float():
            raise ValueError(f"{value} is not a number of JSON")
        case _:
            raise TypeError(f"a value of type {type(value).__name__} is not JSON")


def _object(entry: Entry) -> dict[str, JSONValue]:
    fields: dict[str, JSONValue] = {"type": entry.__struct_config__.tag}
    for field in msgspec.structs.fields(entry):
        value = getattr(entry, field.name)
        if value is not field.default:
            fields[field.encode_name] = to_builtins(value)
    return fields


def _read(value: JSONValue) -> Entry:
    if not isinstance(value, dict):
        raise Mismatch("", f"expected an object, got {shown(value)}")
    tag = value.get("type")
    kind = _KINDS.get(tag) if isinstance(tag, str) else None
    if kind is None:
        raise Mismatch("type", f"this version knows no entry of the kind {shown(tag)}")
    fields = {}
    for name, key, is_required, read in _readers(kind):
        if key in value:
            fields[name] = read(value[key], key)
        elif is_required:
            raise Mismatch("", f"the key {key!r} is missing")
    return kind(**fields)


@functools.cache
def _readers(kind: type[Entry]) -> tuple[_Field, ...]:
    return tuple(
        (field.name, field.encode_name, field.required, compile_reader(field.type))
        for field in msgspec.structs.fields(kind)
    )
