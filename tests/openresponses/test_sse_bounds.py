"""What a decoder holds, and what it mends, however the bytes are cut."""

import tracemalloc
from pathlib import Path

import pytest

from gambit_actors.errors import EventTooLarge
from gambit_actors.openresponses import SSEDecoder

STREAMS = sorted(
    (Path(__file__).resolve().parent.parent / "fixtures" / "streams").glob("*.sse")
)
PLAIN = b"event: response.created\ndata: {}\n\n"
KIBIBYTES_256 = 256 * 1024


@pytest.mark.spec("PA-2")
def test_broken_text_is_mended_when_an_event_is_a_chunk() -> None:
    """A chunk that is one plain event is looked at as closely as any other."""
    decoder = SSEDecoder()
    decoder.feed(PLAIN)
    (frame,) = decoder.feed(b"event: response.created\ndata: a\xffb \xc3\xa9\n\n")
    assert frame.data.decode() == "a\ufffdb é"


@pytest.mark.spec("PA-2")
@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_cut_at_every_line(path: Path) -> None:
    """Streams cut right behind their line ends give the frames of the whole."""
    stream = path.read_bytes()
    decoder = SSEDecoder()
    frames = [
        f for line in stream.splitlines(keepends=True) for f in decoder.feed(line)
    ]
    assert frames == SSEDecoder().feed(stream)


@pytest.mark.spec("PA-2")
@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_cut_at_every_event(path: Path) -> None:
    """Streams cut between their events give the frames of the whole."""
    stream = path.read_bytes()
    pieces = stream.split(b"\n\n")
    chunks = [piece + b"\n\n" for piece in pieces[:-1]] + pieces[-1:]
    decoder = SSEDecoder()
    assert [f for c in chunks for f in decoder.feed(c)] == SSEDecoder().feed(stream)


@pytest.mark.slow
@pytest.mark.parametrize("piece", [b"xy", b"data\n", b"data:\n", b"x" * 1000])
def test_small_pieces_do_not_add_up(piece: bytes) -> None:
    """A limit bounds what is held, not just the payload, however small its pieces."""
    tracemalloc.start()
    try:
        with pytest.raises(EventTooLarge):
            feed_without_end(piece, limit=KIBIBYTES_256)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 * KIBIBYTES_256


def feed_without_end(piece: bytes, *, limit: int) -> None:
    """Feed an event that never ends, a small piece at a time."""
    decoder = SSEDecoder(max_event_bytes=limit)
    decoder.feed(b"data: ")
    for _ in range(2 * limit):
        decoder.feed(piece)
