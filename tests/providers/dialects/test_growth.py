"""What a server can make long, is read in time that grows no faster than it does."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from gambit_actors.openresponses import SSEFrame
from gambit_actors.providers.dialects.anthropic import AnthropicDialect
from gambit_actors.providers.dialects.chat import ChatDialect
from gambit_actors.providers.dialects.dialect import Dialect
from tests.providers.dialects.golden import STARTED
from tests.providers.growth import growth

Frames = Sequence[dict[str, Any]]
CALL = {"name": "f", "arguments": "{}"}
PIECE = {"name": "f", "arguments": "[1, 2, 3, 4, 5, 6, 7, 8, 9, "}


def _chunk(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"delta": {"tool_calls": list(calls)}}]}


def calls_in_one_frame(count: int) -> Frames:
    """Many calls, each whole."""
    return [_chunk(*({"index": i, "function": CALL} for i in range(count)))]


def calls_without_names(count: int) -> Frames:
    """Calls that have no names, and then all get theirs."""
    nameless = [{"index": i, "id": f"c{i}"} for i in range(count)]
    return [_chunk(*nameless), *calls_in_one_frame(count)]


def pieces_with_a_name(count: int) -> Frames:
    """One call whose every piece says its name again."""
    return [_chunk({"index": 0, "function": PIECE})] * count


def _starts(kind: str, places: range) -> Frames:
    return [
        {
            "type": "content_block_start",
            "index": place,
            "content_block": {"type": kind, "text": "x"},
        }
        for place in places
    ]


def _stops(places: Sequence[int]) -> Frames:
    return [{"type": "content_block_stop", "index": place} for place in places]


def thoughts_around_a_text(count: int) -> Frames:
    """Thoughts that stay open, with a text among them that stays open too."""
    return [
        *_starts("thinking", range(count)),
        *_starts("text", range(2 * count, 2 * count + 1)),
        *_starts("thinking", range(count, 2 * count)),
    ]


def texts_stopped_backwards(count: int) -> Frames:
    """Texts of one message, of which the last is stopped first."""
    return [*_starts("text", range(count)), *_stops(range(count)[::-1])]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dialect", "frames", "size"),
    [
        (ChatDialect(), calls_in_one_frame, 1000),
        (ChatDialect(), calls_without_names, 1000),
        (ChatDialect(), pieces_with_a_name, 2000),
        (AnthropicDialect(), thoughts_around_a_text, 2000),
        (AnthropicDialect(), texts_stopped_backwards, 3000),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_streams_are_read_in_time_that_grows_with_them(
    dialect: Dialect, frames: Callable[[int], Frames], size: int
) -> None:
    """A server cannot make us go over what it said before with each new piece."""
    encoded = {
        count: [SSEFrame("message", msgspec.json.encode(f)) for f in frames(count)]
        for count in (size, 4 * size)
    }

    def read(count: int) -> None:
        reader = dialect.reader(STARTED)
        for frame in encoded[count]:
            reader.feed(frame)

    assert growth(read, size) < 10


@pytest.mark.parametrize("piece", [b"<title>", b"<title", b"<title></titl>"])
def test_pages_are_read_in_time_that_grows_with_them(piece: bytes) -> None:
    """The title of a page is not looked for anew from everything that may begin one."""
    read_error = ChatDialect().read_error

    assert growth(lambda size: read_error(b"<html>" + piece * size), 1000) < 10
