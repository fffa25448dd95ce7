"""Bytes to structs: the one place that decodes documents of the protocol.

Each document is tried natively first. What that refuses goes to the careful reader,
so an unusual document costs more time and loses nothing.
"""

from collections.abc import Callable
from typing import Generic, TypeVar, cast

import msgspec

from gambit_actors.errors import BadRequest, BadResponse, WireError
from gambit_actors.openresponses.base import JSONValue, refuse_reserved
from gambit_actors.openresponses.events import (
    Event,
    MalformedEvent,
    ReasoningDelta,
    ReasoningDone,
    StandardEvent,
    UnknownEvent,
)
from gambit_actors.openresponses.items import Item
from gambit_actors.openresponses.reading import Mismatch, compile_reader, parse_json
from gambit_actors.openresponses.requests import CompactRequest, CreateResponse
from gambit_actors.openresponses.responses import CompactedResponse, Response

_T = TypeVar("_T")


class Codec(Generic[_T]):
    """Decodes one kind of document, natively or carefully."""

    def __init__(self, kind: object, error: type[WireError]) -> None:
        self._native = msgspec.json.Decoder(kind, dec_hook=refuse_reserved).decode
        self._read = compile_reader(kind)
        self._error = error

    def decode(self, data: bytes) -> _T:
        """Decode a document from its bytes."""
        try:
            return cast(_T, self._native(data))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        try:
            return cast(_T, self._read(parse_json(data), ""))
        except Mismatch as problem:
            raise self._error(problem.path, problem.problem) from problem

    def convert(self, value: JSONValue) -> _T:
        """Read a document that is parsed already."""
        try:
            return cast(_T, self._read(value, ""))
        except Mismatch as problem:
            raise self._error(problem.path, problem.problem) from problem


_REQUEST = Codec[CreateResponse](CreateResponse, BadRequest)
_COMPACT_REQUEST = Codec[CompactRequest](CompactRequest, BadRequest)
_RESPONSE = Codec[Response](Response, BadResponse)
_COMPACTED = Codec[CompactedResponse](CompactedResponse, BadResponse)
_ITEM = Codec[Item](Item, WireError)
_ITEMS = Codec[tuple[Item, ...]](tuple[Item, ...], WireError)


def decode_request(data: bytes) -> CreateResponse:
    """Decode the body of a request.

    Raises:
        BadRequest: with the path and what is wrong there.
    """
    return _REQUEST.decode(data)


def decode_compact_request(data: bytes) -> CompactRequest:
    """Decode the body of a compaction request.

    Raises:
        BadRequest: with the path and what is wrong there.
    """
    return _COMPACT_REQUEST.decode(data)


def decode_response(data: bytes) -> Response:
    """Decode a whole response, as a server answers without streaming.

    Raises:
        BadResponse: with the path and what is wrong there.
    """
    return _RESPONSE.decode(data)


def decode_compacted_response(data: bytes) -> CompactedResponse:
    """Decode the answer to a compaction request.

    Raises:
        BadResponse: with the path and what is wrong there.
    """
    return _COMPACTED.decode(data)


def decode_item(data: bytes) -> Item:
    """Decode one item.

    Raises:
        WireError: with the path and what is wrong there.
    """
    return _ITEM.decode(data)


def decode_items(data: bytes) -> tuple[Item, ...]:
    """Decode a list of items.

    Raises:
        WireError: with the path and what is wrong there.
    """
    return _ITEMS.decode(data)


def request_from_json(value: JSONValue) -> CreateResponse:
    """Read a request from JSON that is already parsed.

    Raises:
        BadRequest: with the path and what is wrong there.
    """
    return _REQUEST.convert(value)


def response_from_json(value: JSONValue) -> Response:
    """Read a response from JSON that is already parsed.

    Raises:
        BadResponse: with the path and what is wrong there.
    """
    return _RESPONSE.convert(value)


def items_from_json(value: JSONValue) -> tuple[Item, ...]:
    """Read a list of items from JSON that is already parsed.

    Raises:
        WireError: with the path and what is wrong there.
    """
    return _ITEMS.convert(value)


class _ReasoningTextDelta(
    ReasoningDelta, tag="response.reasoning_text.delta", frozen=True, kw_only=True
):
    pass


class _ReasoningTextDone(
    ReasoningDone, tag="response.reasoning_text.done", frozen=True, kw_only=True
):
    pass


# OpenAI and what copies it call two of the standard's events by other names.
OTHER_NAMES = {
    "response.reasoning_text.delta": "response.reasoning.delta",
    "response.reasoning_text.done": "response.reasoning.done",
}
_OTHER_NAME_MARK = b'"response.reasoning_text.'

_decode_standard: Callable[[bytes], StandardEvent] = msgspec.json.Decoder(
    StandardEvent, dec_hook=refuse_reserved
).decode
_decode_renamed: Callable[[bytes], ReasoningDelta | ReasoningDone] = (
    msgspec.json.Decoder(
        _ReasoningTextDelta | _ReasoningTextDone, dec_hook=refuse_reserved
    ).decode
)
_read_event = compile_reader(StandardEvent | UnknownEvent)


def decode_event(data: bytes) -> Event:
    """Decode the payload of one streamed event. Never raises for what is in it."""
    try:
        return _decode_standard(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_carefully(data)


def event_from_json(value: JSONValue) -> Event:
    """Read one event from JSON that is already parsed. Never raises for it."""
    try:
        data = msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as problem:
        return MalformedEvent(
            reason="invalid_json", problem=f"not JSON: {problem}", raw=""
        )
    return _read_carefully(value, data)


def _decode_carefully(data: bytes) -> Event:
    if _OTHER_NAME_MARK in data:
        try:
            return _renamed(_decode_renamed(data))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    try:
        value = parse_json(data)
    except Mismatch as problem:
        return MalformedEvent(
            reason="invalid_json",
            problem=problem.problem,
            raw=data.decode("utf-8", "replace"),
        )
    return _read_carefully(value, data)


def _read_carefully(value: JSONValue, data: bytes) -> Event:
    kind = value.get("type") if isinstance(value, dict) else None
    try:
        if isinstance(kind, str) and kind in OTHER_NAMES:
            value = value | {"type": OTHER_NAMES[kind]}
        return cast(Event, _read_event(value, ""))
    except Mismatch as problem:
        return MalformedEvent(
            reason="invalid_shape",
            problem=str(problem),
            raw=data.decode("utf-8", "replace"),
            type=kind if isinstance(kind, str) else None,
        )


def _renamed(event: ReasoningDelta | ReasoningDone) -> ReasoningDelta | ReasoningDone:
    kind = ReasoningDelta if isinstance(event, ReasoningDelta) else ReasoningDone
    return kind(**{name: getattr(event, name) for name in event.__struct_fields__})
