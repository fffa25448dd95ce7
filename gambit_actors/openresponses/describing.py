"""Type annotations in plain words, for errors that a person can act on."""

import types
import typing
from collections.abc import Iterator

import msgspec

from gambit_actors.openresponses.base import JSONValue, Open

_SHOWN_CHARACTERS = 40

_WORDS: dict[object, str] = {
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    dict: "an object",
    tuple: "a list",
    types.NoneType: "null",
}


def shown(value: JSONValue) -> str:
    """A value for a person to recognise, cut short; also when it is not JSON."""
    try:
        text = msgspec.json.encode(value).decode()
    except RecursionError:
        return "something nested too deeply"
    except (TypeError, ValueError, OverflowError):
        # Half a surrogate pair, or a number beyond 64 bits.
        text = ascii(value) if isinstance(value, str) else _shown_number(value)
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return text[: _SHOWN_CHARACTERS - 1] + "…"


def described(annotation: object) -> str:
    """What a type annotation asks for."""
    # A set would lose the order; a union of ten structs is one "an object".
    words = list(dict.fromkeys(_words(annotation)))
    if len(words) > 1 and "null" in words:
        words.remove("null")  # True, and never what the author was after.
    return " or ".join(words)


def explained(annotation: object, value: JSONValue, path: str) -> tuple[str, str]:
    """Where a value fails its annotation, and how, in words."""
    for inner in _members(annotation):
        if typing.get_origin(inner) is dict and isinstance(value, dict):
            _, entry_type = typing.get_args(inner)
            for key, entry in value.items():
                if not _fits(entry, entry_type):
                    return explained(entry_type, entry, f"{path}.{key}")
    return path, f"expected {described(annotation)}, got {shown(value)}"


def _fits(value: JSONValue, annotation: object) -> bool:
    try:
        msgspec.convert(value, type=annotation)
    except msgspec.ValidationError:
        return False
    return True


def _members(annotation: object) -> Iterator[object]:
    """The types of a union, without what `Annotated` adds to them."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        for member in typing.get_args(annotation):
            yield from _members(member)
    elif origin is typing.Annotated:
        yield from _members(typing.get_args(annotation)[0])
    else:
        yield annotation


def _words(annotation: object) -> Iterator[str]:
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        for member in typing.get_args(annotation):
            yield from _words(member)
    elif origin is typing.Annotated:
        inner, *metas = typing.get_args(annotation)
        limits = [
            _limit(meta, inner) for meta in metas if isinstance(meta, msgspec.Meta)
        ]
        yield " ".join([described(inner), *limits])
    elif origin is typing.Literal:
        yield "one of " + ", ".join(str(a) for a in typing.get_args(annotation))
    elif isinstance(annotation, type) and issubclass(annotation, Open):
        yield "an object"
    else:
        yield _WORDS.get(origin or annotation, "something else")


def _limit(meta: msgspec.Meta, inner: object) -> str:
    limits = []
    if meta.ge is not None:
        limits.append(f"of at least {meta.ge}")
    if meta.le is not None:
        limits.append(f"of at most {meta.le}")
    if meta.max_length is not None:
        unit = "characters" if inner is str else "entries"
        limits.append(f"of at most {meta.max_length} {unit}")
    return " and ".join(limits)


def _shown_number(value: JSONValue) -> str:
    if isinstance(value, int):
        return f"a number of {value.bit_length()} bits"
    return f"something with {type(value).__name__} in it"
