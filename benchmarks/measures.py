"""What is measured: the cost of an event, the wait for the first, our other parts."""

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.contenders import Chunks, DecodeAll, decode_ours
from benchmarks.costs import Cost, cost_from
from benchmarks.streams import EventStream, ascii_words, new_response, pieces
from benchmarks.timing import Effort, race
from gambit_actors.openresponses import (
    Event,
    ProviderFrames,
    ResponseBuilder,
    ResponseWriter,
    encode_event,
)

SMALL_PIECE_BYTES = 16


def measure_events(
    stream: EventStream, contenders: Mapping[str, DecodeAll], effort: Effort
) -> list[Cost]:
    """The cost per event of each decoder, for both shapes of a stream."""
    shapes: dict[str, Chunks] = {
        "64 KiB chunks": stream.cut(),
        "an event a chunk": stream.frames,
    }
    costs = []
    for shape, chunks in shapes.items():
        runs = {name: _bound(decode, chunks) for name, decode in contenders.items()}
        for name, timing in race(runs, effort).items():
            cost = cost_from(timing, stream.events, (stream.name, shape, name))
            costs.append(cost)
    return costs


def measure_first_events(
    stream: EventStream, contenders: Mapping[str, DecodeAll], effort: Effort
) -> list[Cost]:
    """The time from the first byte fed to the first event, and to the first text.

    A decoder is given the bytes up to the end of the event that is waited for and
    nothing behind it, so one that has to see more before it answers would be caught
    by the assertion.
    """
    costs = []
    waits = {"response.created": 1, "first text delta": stream.text_at + 1}
    for wait, events in waits.items():
        frames = stream.frames[:events]
        small = pieces(b"".join(frames), SMALL_PIECE_BYTES)
        for shape, chunks in (("whole", frames), ("16-byte pieces", small)):
            runs = {name: _bound(decode, chunks) for name, decode in contenders.items()}
            for name, run in runs.items():
                assert len(run()) == events, f"{name} holds an event back"
            costs += [
                cost_from(timing, 1, (wait, shape, name))
                for name, timing in race(runs, effort).items()
            ]
    return costs


def measure_parts(stream: EventStream, effort: Effort) -> list[Cost]:
    """The cost per event of what else this package does with a stream."""
    events = decode_ours(stream.frames)
    words = ascii_words(stream.events)
    cut = stream.cut()
    runs: dict[tuple[str, str], Callable[[], object]] = {
        ("ProviderFrames.feed", "64 KiB chunks"): lambda: _record(cut),
        ("ProviderFrames.feed", "an event a chunk"): lambda: _record(stream.frames),
        ("ResponseBuilder.feed", "decoded events"): lambda: _build(events),
        ("ResponseWriter.add + encode_event", "text deltas"): lambda: _write(words),
    }
    by_name = {" | ".join(key): run for key, run in runs.items()}
    timings = race(by_name, effort)
    return [
        cost_from(timings[" | ".join(key)], stream.events, (*key, "ours"))
        for key in runs
    ]


def _record(chunks: Chunks) -> list[object]:
    frames = ProviderFrames("bench")
    arrivals: list[object] = []
    for chunk in chunks:
        arrivals += frames.feed(chunk, 0.0)
    return arrivals


def _build(events: list[Event]) -> object:
    builder = ResponseBuilder()
    for event in events:
        builder.feed(event)
    return builder.close()


def _write(words: list[str]) -> list[bytes]:
    writer = ResponseWriter(new_response())
    writer.start()
    writer.start_text("answer")
    return [
        encode_event(event) for word in words for event in writer.add("answer", word)
    ]


def _bound(decode: DecodeAll, chunks: Chunks) -> Callable[[], list[Any]]:
    return lambda: decode(chunks)
