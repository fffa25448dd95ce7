"""Trace events as bytes and back: one JSON document on one line each.

The keys of an event are in camelCase; items, usage and streamed events inside it are
as the protocol writes them, with every key a peer sent. Like `openresponses.codec`
this reads natively first and carefully where that refuses. It does no I/O.
"""

import functools
import typing
from typing import TypeAlias, cast

import msgspec

from gambit_actors.errors import WireError
from gambit_actors.openresponses.base import EXTRA_KEY, JSONValue, refuse_reserved
from gambit_actors.openresponses.describing import shown
from gambit_actors.openresponses.events import MalformedEvent
from gambit_actors.openresponses.reading import (
    Mismatch,
    Reader,
    compile_reader,
    parse_json,
)
from gambit_actors.openresponses.writing import to_builtins
from gambit_actors.trace.events import StreamEvent, TraceEvent

# The wire has a word for each kind of streamed event but not for bytes that are none.
# Under a key of its own such a one cannot be taken for an event, nor the reverse.
MALFORMED_KEY = "malformed"

_KINDS: dict[str, type[TraceEvent]] = {
    str(kind.__struct_config__.tag): kind for kind in typing.get_args(TraceEvent)
}
_EXTRA_MARK = f'"{EXTRA_KEY}":{{'.encode()
_Field: TypeAlias = tuple[str, str, bool, Reader]


def encode_event(event: TraceEvent) -> bytes:
    """Write an event as compact JSON, without a line break in it.

    What a module put into an event and is no JSON is written as the name of its type:
    a trace is no place for a guess at what an object means.

    Raises:
        WireError: something in it is nested deeper than can be written, or is text
            that no encoding has.
    """
    try:
        if not _has_malformed(event):
            data = _ENCODER.encode(event)
            if _EXTRA_MARK not in data:
                return data
        return _ENCODER.encode(_object(event))
    except (RecursionError, UnicodeEncodeError, TypeError, OverflowError) as problem:
        raise WireError("", f"cannot be written as JSON: {problem}") from problem


def decode_event(data: bytes) -> TraceEvent:
    """Read an event. Keys that a later version added to it are passed over.

    Raises:
        WireError: with the path and what is wrong there.
    """
    try:
        return cast(TraceEvent, _NATIVE.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return _read(parse_json(data))
    except Mismatch as problem:
        raise WireError(problem.path, problem.problem) from problem


def _type_name(value: object) -> str:
    return f"<{type(value).__name__}>"


_ENCODER = msgspec.json.Encoder(enc_hook=_type_name)

# All but the one that has a `MalformedEvent` in it, which msgspec cannot tell apart.
_NATIVE = msgspec.json.Decoder(
    typing.Union[tuple(kind for kind in _KINDS.values() if kind is not StreamEvent)],  # noqa: UP007
    dec_hook=refuse_reserved,
)


def _has_malformed(event: TraceEvent) -> bool:
    return isinstance(event, StreamEvent) and isinstance(event.event, MalformedEvent)


def _object(event: TraceEvent) -> dict[str, JSONValue]:
    fields: dict[str, JSONValue] = {"type": event.type}
    for field in msgspec.structs.fields(event):
        value = getattr(event, field.name)
        if value is not field.default:
            fields[field.encode_name] = to_builtins(value)
    if _has_malformed(event):
        fields[MALFORMED_KEY] = fields.pop("event")
    return fields


def _read(value: JSONValue) -> TraceEvent:
    if not isinstance(value, dict):
        raise Mismatch("", f"expected an object, got {shown(value)}")
    tag = value.get("type")
    kind = _KINDS.get(tag) if isinstance(tag, str) else None
    if kind is None:
        raise Mismatch("type", f"expected the name of an event, got {shown(tag)}")
    fields = {}
    for name, key, is_required, read in _readers(kind, MALFORMED_KEY in value):
        if key in value:
            fields[name] = read(value[key], key)
        elif is_required:
            raise Mismatch("", f"the key {key!r} is missing")
    return kind(**fields)


@functools.cache
def _readers(kind: type[TraceEvent], has_malformed: bool) -> tuple[_Field, ...]:  # noqa: FBT001  (a key of the cache)
    fields = []
    for field in msgspec.structs.fields(kind):
        if kind is StreamEvent and field.name == "event" and has_malformed:
            entry = ("event", MALFORMED_KEY, True, compile_reader(MalformedEvent))
        else:
            read = compile_reader(field.type)
            entry = (field.name, field.encode_name, field.required, read)
        fields.append(entry)
    return tuple(fields)
