"""One very long line in small chunks: is the cost of a byte always the same?

An event with a big payload (an image, a file, a long completed response) is one line.
A decoder that looks at what it holds again with every chunk takes quadratic time.
Only the cutting of lines and events is measured, not the JSON in them.
"""

import codecs
import tracemalloc
from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from benchmarks.contenders import OPENAI, OURS
from benchmarks.peers import HttpxSse, OpenAI
from benchmarks.timing import Effort, race
from gambit_actors.openresponses import SSEDecoder

MEGABYTE = 1_000_000

_CHUNK_BYTES = 1024

CountData: TypeAlias = Callable[[Iterator[bytes]], int]
"""Takes chunks, gives how much data their events had."""


class LineCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a line cost one decoder.

    Attributes:
        decoder: which.
        megabytes: how long the line is.
        ms_per_megabyte: the best time, divided by the length.
        peak_factor: the most memory held at once, as a multiple of the line.
    """

    decoder: str
    megabytes: int
    ms_per_megabyte: float
    peak_factor: float


def measure_long_lines(
    httpx_sse: HttpxSse | None,
    openai: OpenAI | None,
    *,
    megabytes: tuple[int, ...],
    effort: Effort,
) -> list[LineCost]:
    """Time and memory for lines of several lengths."""
    decoders: dict[str, CountData] = {OURS: _count_ours}
    if httpx_sse is not None:
        decoders["httpx-sse"] = _httpx_sse_counter(httpx_sse)
    if openai is not None:
        decoders[OPENAI] = _openai_counter(openai)
    costs = []
    for length in megabytes:
        line = b"data: " + b"x" * (length * MEGABYTE) + b"\n\n"
        runs = {name: _run(count, line) for name, count in decoders.items()}
        for name, timing in race(runs, effort).items():
            cost = LineCost(
                decoder=name,
                megabytes=length,
                ms_per_megabyte=timing.best * 1e3 / length,
                peak_factor=_peak_bytes(runs[name]) / len(line),
            )
            costs.append(cost)
    return costs


def _run(count: CountData, line: bytes) -> Callable[[], int]:
    def run() -> int:
        got = count(_chunks(line))
        assert got == len(line) - len(b"data: \n\n"), "the line came out changed"
        return got

    return run


def _chunks(line: bytes) -> Iterator[bytes]:
    # Made one by one: what is still there later, a decoder has kept.
    return (line[at : at + _CHUNK_BYTES] for at in range(0, len(line), _CHUNK_BYTES))


def _peak_bytes(run: Callable[[], int]) -> int:
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _count_ours(chunks: Iterator[bytes]) -> int:
    decoder = SSEDecoder()
    return sum(len(frame.data) for chunk in chunks for frame in decoder.feed(chunk))


def _httpx_sse_counter(peer: HttpxSse) -> CountData:
    def count(chunks: Iterator[bytes]) -> int:
        text_decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        line_decoder, decoder = peer.new_line_decoder(), peer.new_decoder()
        total = 0
        for chunk in chunks:
            for line in line_decoder.decode(text_decoder.decode(chunk)):
                sse = decoder.decode(line.rstrip("\n"))
                total += len(sse.data) if sse is not None else 0
        return total

    return count


def _openai_counter(peer: OpenAI) -> CountData:
    def count(chunks: Iterator[bytes]) -> int:
        return sum(len(sse.data) for sse in peer.new_decoder().iter_bytes(chunks))

    return count
