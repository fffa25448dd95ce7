"""The careful reader: any JSON document into our structs, with nothing dropped.

The native decoder of msgspec takes what is exactly in form. This reader takes the
rest: it sorts unknown keys into ``extra``, turns unknown types into `Unknown`
structs, reads null as absent where a key may be absent, and lets a struct upgrade a
form that peers are known to send. What it cannot make sense of is a `Mismatch` that
says where and what.

A reader is compiled once per type annotation, from the same annotations msgspec
reads, so the two cannot disagree about what a struct looks like.
"""

import functools
import json
import math
import types
import typing
from collections.abc import Callable
from typing import NoReturn, TypeAlias

import msgspec

from gambit_actors.openresponses.base import (
    EXTRA_KEY,
    NO_EXTRA,
    Extra,
    JSONValue,
    Open,
    Tagged,
    Unknown,
    refuse_reserved,
)
from gambit_actors.openresponses.describing import described, explained, shown

Reader: TypeAlias = Callable[[JSONValue, str], JSONValue]
"""Takes a JSON value and its path, gives what the annotation asked for."""


class Mismatch(ValueError):
    """A value is not of the form its place asks for."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem


def parse_json(data: bytes) -> JSONValue:
    """Parse a JSON document.

    JavaScript peers cut a pair of surrogates in two when they cut text into deltas.
    Half a pair is not text; like everything else that is not text it becomes U+FFFD.

    Raises:
        Mismatch: the document is not JSON.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        if b"\\u" in data:
            try:
                return _without_surrogates(
                    json.loads(
                        data.decode(),
                        parse_constant=_refuse_number,
                        parse_float=_finite,
                    )
                )
            except (ValueError, RecursionError):
                pass
        raise Mismatch("", f"not JSON: {problem}") from problem
    except RecursionError as problem:
        raise Mismatch("", "not readable: nested too deeply") from problem


@functools.cache
def compile_reader(annotation: object) -> Reader:
    """Make the reader for a type annotation."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        return _union_reader(annotation)
    if origin is tuple:
        return _list_reader(compile_reader(typing.get_args(annotation)[0]))
    if isinstance(annotation, type) and issubclass(annotation, Open):
        return _struct_reader(annotation)
    return _leaf_reader(annotation)


def _leaf_reader(annotation: object, *, of: object | None = None) -> Reader:
    """Make the reader for what has no structs in it.

    Args:
        annotation: what msgspec is to check.
        of: the whole annotation of the place, for the words of an error.
    """
    place = annotation if of is None else of

    def read(value: JSONValue, path: str) -> JSONValue:
        try:
            return msgspec.convert(value, type=annotation)
        except msgspec.ValidationError as problem:
            raise Mismatch(*explained(place, value, path)) from problem

    return read


def _list_reader(read_entry: Reader) -> Reader:
    def read(value: JSONValue, path: str) -> JSONValue:
        if not isinstance(value, list):
            _refuse(path, "a list", value)
        return tuple(
            read_entry(entry, f"{path}[{index}]") for index, entry in enumerate(value)
        )

    return read


@functools.cache
def _struct_reader(kind: type[Open]) -> Reader:
    read_fields = _fields_reader(kind)
    tag_field = kind.__struct_config__.tag_field
    keys = {field.encode_name for field in msgspec.structs.fields(kind)}
    keys = (keys - {EXTRA_KEY}) | ({tag_field} if tag_field else set())

    def read(value: JSONValue, path: str) -> Open:
        if not isinstance(value, dict):
            _refuse(path, "an object", value)
        value = kind.upgrade(value)
        extra = NO_EXTRA
        if not value.keys() <= keys:
            extra = Extra((k, entry) for k, entry in value.items() if k not in keys)
            value = {k: entry for k, entry in value.items() if k in keys}
        try:
            # Most often the strange keys were all that was strange.
            struct = msgspec.convert(value, type=kind, dec_hook=refuse_reserved)
        except msgspec.ValidationError:
            own = {k: entry for k, entry in value.items() if k != tag_field}
            struct = kind(**read_fields(own, path))
        return msgspec.structs.replace(struct, extra=extra) if extra else struct

    return read


def _fields_reader(kind: type[Open]) -> Reader:
    """Make the reader of a struct's own keys, one by one."""
    fields = {
        field.encode_name: (
            field.name,
            compile_reader(field.type),
            # An optional key that is null says no more than one that is not there.
            field.required or _takes_null(field.type),
        )
        for field in msgspec.structs.fields(kind)
        if field.encode_name != EXTRA_KEY
    }
    required = [f.encode_name for f in msgspec.structs.fields(kind) if f.required]

    def read(value: dict[str, JSONValue], path: str) -> dict[str, JSONValue]:
        known: dict[str, JSONValue] = {}
        for key, entry in value.items():
            name, read_field, means_null = fields[key]
            if entry is not None or means_null:
                known[name] = read_field(entry, f"{path}.{key}" if path else key)
        for key in required:
            if key not in value:
                raise Mismatch(path, f"the key {key!r} is missing")
        return known

    return read


def _union_reader(annotation: object) -> Reader:
    members = typing.get_args(annotation)
    structs = [m for m in members if isinstance(m, type) and issubclass(m, Open)]
    lists = [m for m in members if typing.get_origin(m) is tuple]
    leaves = tuple(m for m in members if m not in structs and m not in lists)
    read_object = _object_reader(structs) if structs else None
    read_list = compile_reader(lists[0]) if lists else None
    # A union of the leaves alone, rebuilt for msgspec.
    leaf = typing.Union[leaves] if leaves else None  # noqa: UP007
    read_leaf = _leaf_reader(leaf, of=annotation) if leaves else None

    def read(value: JSONValue, path: str) -> JSONValue:
        if isinstance(value, dict) and read_object is not None:
            return read_object(value, path)
        if isinstance(value, list) and read_list is not None:
            return read_list(value, path)
        if read_leaf is None:
            _refuse(path, described(annotation), value)
        return read_leaf(value, path)

    return read


def _object_reader(structs: list[type[Open]]) -> Reader:
    """Make the reader that looks at ``type`` and picks one of several structs."""
    tagged = [s for s in structs if issubclass(s, Tagged)]
    if not tagged:
        (only,) = structs
        return _struct_reader(only)
    unknown = next((s for s in tagged if issubclass(s, Unknown)), None)
    by_tag = {s.__struct_config__.tag: s for s in tagged if not issubclass(s, Unknown)}

    def read(value: dict[str, JSONValue], path: str) -> JSONValue:
        tag = value.get("type")
        if tag is None:
            claimed = next((s for s in tagged if s.claims(value)), None)
            if claimed is None:
                raise Mismatch(path, "the key 'type' is missing")
            return _struct_reader(claimed)(value, path)
        if isinstance(tag, str) and tag in by_tag:
            return _struct_reader(by_tag[tag])(value, path)
        if not isinstance(tag, str) or unknown is None:
            names = ", ".join(sorted(str(name) for name in by_tag))
            raise Mismatch(
                f"{path}.type" if path else "type",
                f"expected one of {names}, got {shown(tag)}",
            )
        rest = Extra((key, entry) for key, entry in value.items() if key != "type")
        return unknown(type_name=tag, extra=rest)

    return read


def _takes_null(annotation: object) -> bool:
    return annotation is typing.Any or types.NoneType in typing.get_args(annotation)


def _refuse(path: str, expected: str, value: JSONValue) -> NoReturn:
    raise Mismatch(path, f"expected {expected}, got {shown(value)}")


def without_surrogates(text: str) -> str:
    """Text in which half a surrogate pair has become U+FFFD, and two halves one."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _without_surrogates(value: JSONValue) -> JSONValue:
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list):
        return [_without_surrogates(entry) for entry in value]
    if isinstance(value, dict):
        return {
            _without_surrogates(key): _without_surrogates(entry)
            for key, entry in value.items()
        }
    return value


def _refuse_number(name: str) -> NoReturn:
    msg = f"{name} is not a JSON number"
    raise ValueError(msg)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        _refuse_number(text)
    return number
