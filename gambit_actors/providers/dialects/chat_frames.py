"""The documents that servers of Chat Completions send, as structs.

`read_chunk` takes one from its bytes. What is in form is decoded at once; what is not
is read key by key, and a key whose value makes no sense is left out and told. A whole
answer is a chunk as well: it says ``message`` where a piece says ``delta``.
"""

from typing import TypeVar

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.events import MalformedEvent
from gambit_actors.openresponses.reading import Mismatch, parse_json

_T = TypeVar("_T", bound=msgspec.Struct)


class Function(msgspec.Struct, frozen=True, gc=False):
    """The function of a call, or a piece of it."""

    name: str | None = None
    # A piece of JSON text; some servers send the object itself, all at once.
    arguments: JSONValue = None


class CallPiece(msgspec.Struct, frozen=True, gc=False):
    """A tool call, or a piece of one."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None
    # Google's: signatures that have to come back with the call.
    extra_content: JSONValue = None


class Delta(msgspec.Struct, frozen=True, gc=False):
    """What is added to an answer, or all of it."""

    content: str | list[JSONValue] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    # Groq, OpenRouter and newer vLLM call it this.
    reasoning: str | None = None
    reasoning_details: list[JSONValue] | None = None
    tool_calls: list[CallPiece] | None = None
    # What tool calls were before there could be two of them.
    function_call: Function | None = None


class Choice(msgspec.Struct, frozen=True, gc=False):
    """One of the answers; nobody asks for more than one."""

    index: int | None = None
    delta: Delta | None = None
    message: Delta | None = None
    text: str | None = None
    finish_reason: str | None = None
    usage: JSONValue = None
    error: JSONValue = None


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """A document of a stream, or the only one."""

    object: str | None = None
    choices: list[Choice] | None = None
    usage: JSONValue = None
    error: JSONValue = None
    # Groq's place for usage.
    x_groq: JSONValue = None
    # An error that is the document, as vLLM had it.
    message: str | None = None


class Read(msgspec.Struct, frozen=True):
    """A document that was read with care: what is in it, and what was not in form."""

    chunk: Chunk
    value: dict[str, JSONValue]
    problems: list[str]


decode_chunk = msgspec.json.Decoder(Chunk).decode
"""Decodes a document that is in form. Raises for what is not; see `NOT_IN_FORM`."""

NOT_IN_FORM = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_carefully(data: bytes) -> Read | MalformedEvent:
    """Read a document that may be anything at all."""
    try:
        value = parse_json(data)
    except Mismatch as problem:
        return MalformedEvent(
            reason="invalid_json",
            problem=problem.problem,
            raw=data.decode("utf-8", "replace"),
        )
    if not isinstance(value, dict):
        return MalformedEvent(
            reason="invalid_shape",
            problem="a chunk is an object",
            raw=data.decode("utf-8", "replace"),
        )
    problems: list[str] = []
    return Read(_struct(Chunk, value, "", problems), value, problems)


def says_something(chunk: Chunk) -> bool:
    """Whether a document without a choice is of use all the same."""
    return bool(chunk.usage or chunk.error or chunk.x_groq)


def is_empty(said: Delta) -> bool:
    """Whether nothing is said."""
    return not (
        said.content
        or said.refusal
        or said.reasoning_content
        or said.reasoning
        or said.reasoning_details
        or said.tool_calls
        or said.function_call
    )


def words_of(part: JSONValue) -> tuple[str | None, str]:
    """What a part of the content is, and its words."""
    if isinstance(part, str):
        return "text", part
    if not isinstance(part, dict):
        return None, ""
    kind = part.get("type", "text")
    if kind == "thinking":  # Mistral's, with parts of its own.
        thoughts = part.get("thinking")
        inner = thoughts if isinstance(thoughts, list) else [thoughts]
        return kind, "".join(words_of(thought)[1] for thought in inner)
    words = part.get("refusal" if kind == "refusal" else "text")
    if kind not in ("text", "output_text", "refusal") or not isinstance(words, str):
        return None, ""
    return ("refusal" if kind == "refusal" else "text"), words


# The keys that hold structs of ours, by struct: as they are, or in a list.
_NESTED: dict[type, dict[str, type]] = {
    Choice: {"delta": Delta, "message": Delta},
    Delta: {"function_call": Function},
    CallPiece: {"function": Function},
}
_LISTED: dict[type, dict[str, type]] = {
    Chunk: {"choices": Choice},
    Delta: {"tool_calls": CallPiece},
}


def _struct(
    kind: type[_T], value: dict[str, JSONValue], path: str, problems: list[str]
) -> _T:
    nested, listed = _NESTED.get(kind, {}), _LISTED.get(kind, {})
    fields: dict[str, JSONValue] = {}
    for field in msgspec.structs.fields(kind):
        entry = value.get(field.name)
        if entry is None:
            continue
        place = f"{path}.{field.name}" if path else field.name
        if field.name in nested and isinstance(entry, dict):
            fields[field.name] = _struct(nested[field.name], entry, place, problems)
        elif field.name in listed and isinstance(entry, list):
            inner = listed[field.name]
            fields[field.name] = _structs(inner, entry, place, problems)
        else:
            try:
                fields[field.name] = msgspec.convert(entry, field.type)
            except msgspec.ValidationError as problem:
                problems.append(f"{place}: {problem}")
    return kind(**fields)


def _structs(
    kind: type[_T], entries: list[JSONValue], path: str, problems: list[str]
) -> list[_T]:
    found = []
    for place, entry in enumerate(entries):
        if isinstance(entry, dict):
            found.append(_struct(kind, entry, f"{path}[{place}]", problems))
        else:
            problems.append(f"{path}[{place}]: expected an object")
    return found
