"""Golden streams: what a server sends, as bytes, and what that has to come to.

``golden/DIALECT/NAME.sse`` is the body of an answer. ``NAME.json`` beside it is what is
expected of it::

    {
      "events":   one line per event; those that carry the response are only named
      "response": status, output, usage, error, incomplete_details; null if it was cut
      "problems": how many oddities the reader found
    }

The streams are written by hand from the documented wire forms; who adds one reads its
expectation line by line.
"""

import json
from collections.abc import Iterable
from pathlib import Path

import msgspec

from gambit_actors.errors import StreamTruncated
from gambit_actors.openresponses import (
    Event,
    MalformedEvent,
    Response,
    ResponseBuilder,
    SSEDecoder,
)
from gambit_actors.openresponses.base import JSONValue, Open
from gambit_actors.openresponses.writing import to_builtins
from gambit_actors.providers.dialects.dialect import Dialect

FOLDER = Path(__file__).parent / "golden"
STARTED = Response(id="resp_golden", status="in_progress", model="model-1")

_OUTCOME = ("status", "output", "usage", "error", "incomplete_details")


class Played(msgspec.Struct, frozen=True):
    """What a stream came to; ``response`` is None for one that was cut."""

    events: list[Event]
    response: Response | None
    problems: list[str]


def golden_names(dialect: str) -> list[str]:
    """The streams there are for a dialect."""
    return sorted(path.stem for path in (FOLDER / dialect).glob("*.sse"))


def golden_bytes(dialect: str, name: str) -> bytes:
    """What the server sends."""
    return (FOLDER / dialect / f"{name}.sse").read_bytes()


def expected(dialect: str, name: str) -> JSONValue:
    """What it has to come to."""
    return json.loads((FOLDER / dialect / f"{name}.json").read_text("utf-8"))


def play(dialect: Dialect, chunks: Iterable[bytes]) -> Played:
    """Read a stream that comes in these pieces."""
    decoder, reader, builder = SSEDecoder(), dialect.reader(STARTED), ResponseBuilder()
    events: list[Event] = []
    for chunk in chunks:
        for frame in decoder.feed(chunk):
            if not reader.is_done:
                events += reader.feed(frame)
    decoder.close()
    events += reader.close()
    for event in events:
        builder.feed(event)
    try:
        response = builder.close()
    except StreamTruncated:
        response = None
    return Played(events, response, list(reader.problems))


def outcome(played: Played) -> JSONValue:
    """What a stream came to, in the form that expectations have."""
    response = None
    if played.response is not None:
        fields = to_builtins(played.response)
        response = {key: fields[key] for key in _OUTCOME}
    return {
        "events": [_line(event) for event in played.events],
        "response": response,
        "problems": len(played.problems),
    }


def _line(event: Event) -> JSONValue:
    if isinstance(event, MalformedEvent):
        return {"type": "malformed", "reason": event.reason, "raw": event.raw}
    assert isinstance(event, Open)
    fields: dict[str, JSONValue] = to_builtins(event)
    fields.pop("sequence_number", None)
    return fields["type"] if "response" in fields else fields
