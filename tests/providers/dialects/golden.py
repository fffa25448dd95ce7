"""Golden streams: what a server sends, as bytes, and what that has to come to.

``golden/DIALECT/NAME.sse`` is the body of an answer, ``NAME.json`` beside it what is
expected of it; `gambit_actors.testing.dialects` tells the form. The streams are written
by hand from the documented wire forms; who adds one reads its expectation line by line.
"""

import json
from pathlib import Path

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.testing.dialects import (
    STARTED,
    Golden,
    Played,
    golden_streams,
    outcome,
    play,
)

__all__ = [
    "FOLDER",
    "STARTED",
    "Played",
    "expected",
    "golden_bytes",
    "golden_names",
    "outcome",
    "play",
    "streams_of",
]

FOLDER = Path(__file__).parent / "golden"


def streams_of(dialect: str) -> list[Golden]:
    """The streams there are for a dialect, for the checks of all dialects."""
    return golden_streams(FOLDER / dialect)


def golden_names(dialect: str) -> list[str]:
    """The names of the streams there are for a dialect."""
    return sorted(path.stem for path in (FOLDER / dialect).glob("*.sse"))


def golden_bytes(dialect: str, name: str) -> bytes:
    """What the server sends."""
    return (FOLDER / dialect / f"{name}.sse").read_bytes()


def expected(dialect: str, name: str) -> JSONValue:
    """What it has to come to."""
    return json.loads((FOLDER / dialect / f"{name}.json").read_text("utf-8"))
