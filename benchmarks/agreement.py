"""Before anything is timed: do all decoders say the same?

A faster decoder that drops a key is not faster. Every event of every decoder is
turned back into JSON and held against the document that was sent. A decoder may add
keys (defaults of its models); it may not lose or change one.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pydantic

from benchmarks.contenders import DecodeAll
from benchmarks.streams import EventStream
from gambit_actors.openresponses.writing import to_builtins

JSONValue = Any


class Disagreement(Exception):
    """Two decoders made different things of the same stream."""


def check_agreement(
    contenders: Mapping[str, DecodeAll], streams: Sequence[EventStream]
) -> int:
    """Compare all decoders on all streams, cut in three ways; count the events.

    Raises:
        Disagreement: with the first event on which one of them differs.
    """
    compared = 0
    for stream in streams:
        sent = [json.loads(payload) for payload in stream.payloads]
        for name, decode_all in contenders.items():
            for chunks in (stream.cut(), stream.frames, stream.cut(16)):
                where = f"{name} on {stream.name!r}"
                _compare(where, sent, [as_json(event) for event in decode_all(chunks)])
                compared += len(sent)
    return compared


def as_json(event: object) -> JSONValue:
    """An event of any library in the form of its JSON document."""
    if isinstance(event, pydantic.BaseModel):
        # Models the SDK built without validation would warn about themselves.
        return event.model_dump(mode="json", by_alias=True, warnings=False)
    if isinstance(event, msgspec.Struct):
        return to_builtins(event)
    return event


def restricted(value: JSONValue, sent: JSONValue) -> JSONValue:
    """A value without the keys that its original does not have."""
    if isinstance(value, dict) and isinstance(sent, dict):
        return {key: restricted(value[key], sent[key]) for key in sent if key in value}
    if isinstance(value, list) and isinstance(sent, list) and len(value) == len(sent):
        return [restricted(*pair) for pair in zip(value, sent, strict=True)]
    return value


def _compare(where: str, sent: list[JSONValue], got: list[JSONValue]) -> None:
    if len(sent) != len(got):
        msg = f"{where}: {len(got)} events, but {len(sent)} were sent"
        raise Disagreement(msg)
    for number, (document, event) in enumerate(zip(sent, got, strict=True)):
        seen = restricted(event, document)
        if seen != document:
            msg = f"{where}, event {number}:\n  sent {document}\n  got  {seen}"
            raise Disagreement(msg)
