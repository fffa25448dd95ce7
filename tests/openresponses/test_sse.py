"""The SSE decoder follows the WHATWG grammar, for any chunking and within its limit."""

import contextlib
import itertools
import json
import re
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import EventTooLarge, ProviderError
from gambit_actors.openresponses.codec import OTHER_NAMES, decode_event
from gambit_actors.openresponses.seed_v1 import decode_v1_event
from gambit_actors.openresponses.sse import SSEDecoder, SSEFrame

STREAMS = sorted((Path(__file__).parents[1] / "fixtures" / "streams").glob("*.sse"))
STREAM_IDS = [path.stem for path in STREAMS]
BOM = b"\xef\xbb\xbf"
NEXT = b"event: response.created\ndata: {}\n\n"


def message(data: str, id: str = "") -> SSEFrame:
    """Make the frame of an event without a name."""
    return SSEFrame("message", data.encode(), id)


def named(event: str, data: str, id: str = "") -> SSEFrame:
    """Make the frame of an event with a name."""
    return SSEFrame(event, data.encode(), id)


# Each block is finished, so whatever follows it is an event of its own.
CASES: dict[str, tuple[bytes, list[SSEFrame]]] = {
    "lf": (b"data: a\n\n", [message("a")]),
    "cr": (b"data: a\r\r", [message("a")]),
    "crlf": (b"data: a\r\n\r\n", [message("a")]),
    "crlf then lf": (b"data: a\r\n\n", [message("a")]),
    "lf then cr": (b"data: a\n\r", [message("a")]),
    "lf cr lf": (b"data: a\n\r\ndata: b\n\n", [message("a"), message("b")]),
    "cr event then lf event": (
        b"data: a\r\rdata: b\n\n",
        [message("a"), message("b")],
    ),
    "only blank lines": (b"\n\r\r\n\n", []),
    "two events": (b"data: a\n\ndata: b\n\n", [message("a"), message("b")]),
    "blank lines between": (
        b"data: a\n\n\n\ndata: b\n\n",
        [message("a"), message("b")],
    ),
    "one bom": (BOM + b"data: a\n\n", [message("a")]),
    "two boms": (BOM * 2 + b"data: a\ndata: b\n\n", [message("b")]),
    "bom in data": (b"data: " + BOM + b"a\n\n", [message("\ufeffa")]),
    "bom after a line end": (b"\n" + BOM + b"data: a\n\n", []),
    "broken bom": (b"\xef\xbbdata: a\ndata: b\n\n", [message("b")]),
    "comment": (b": hello\ndata: a\n\n", [message("a")]),
    "comment without text": (b":\n\n", []),
    "comment inside": (b"data: a\n:x\ndata: b\n\n", [message("a\nb")]),
    "comment like data": (b":data: a\n\n", []),
    "two data lines": (b"data: a\ndata: b\n\n", [message("a\nb")]),
    "three data lines": (b"data: a\ndata:\ndata: c\n\n", [message("a\n\nc")]),
    "no space": (b"data:a\n\n", [message("a")]),
    "two spaces": (b"data:  a\n\n", [message(" a")]),
    "space at the end": (b"data: a \n\n", [message("a ")]),
    "tab is no space": (b"data:\ta\n\n", [message("\ta")]),
    "colon in value": (b"data: a:b\n\n", [message("a:b")]),
    "space before colon": (b"data : a\n\n", []),
    "space before name": (b" data: a\n\n", []),
    "no colon": (b"data\n\n", [message("")]),
    "no colon twice": (b"data\ndata\n\n", [message("\n")]),
    "empty data": (b"data:\n\n", [message("")]),
    "empty data and space": (b"data: \n\n", [message("")]),
    "event name": (b"event: x\ndata: a\n\n", [named("x", "a")]),
    "event after data": (b"data: a\nevent: x\n\n", [named("x", "a")]),
    "last event wins": (b"event: x\nevent: y\ndata: a\n\n", [named("y", "a")]),
    "empty event": (b"event: x\nevent:\ndata: a\n\n", [message("a")]),
    "event without colon": (b"event\ndata: a\n\n", [message("a")]),
    "event named message": (b"event: message\ndata: a\n\n", [message("a")]),
    "event only": (b"event: x\n\ndata: a\n\n", [message("a")]),
    "id only": (b"id: 1\n\ndata: a\n\n", [message("a", "1")]),
    "retry only": (b"event: x\nretry: 9\n\ndata: a\n\n", [message("a")]),
    "id": (b"id: 1\ndata: a\n\n", [message("a", "1")]),
    "id after data": (b"data: a\nid: 1\n\n", [message("a", "1")]),
    "id persists": (
        b"id: 1\ndata: a\n\ndata: b\n\n",
        [message("a", "1"), message("b", "1")],
    ),
    "id emptied": (
        b"id: 1\ndata: a\n\nid\ndata: b\n\n",
        [message("a", "1"), message("b")],
    ),
    "id with nul": (b"id: 1\nid: 2\x003\ndata: a\n\n", [message("a", "1")]),
    "unknown field": (b"foo: x\ndata: a\nbar\n\n", [message("a")]),
    "upper case": (b"DATA: a\nData: b\nEVENT: x\nID: 1\n\n", []),
    "longer names": (b"datas: a\ndat: b\n\n", []),
    "unicode line ends": (
        "data: a\u2028b\u2029c\u0085d\x0b\x0c\x1c\x1d\x1ee\n\n".encode(),
        [message("a\u2028b\u2029c\u0085d\x0b\x0c\x1c\x1d\x1ee")],
    ),
    "nul in data": (b"data: a\0b\n\n", [message("a\0b")]),
    "multi-byte": ("data: é漢😀\n\n".encode(), [message("é漢😀")]),
    "broken byte": (b"data: a\xffb\n\n", [message("a\ufffdb")]),
    "cut character": (b"data: a\xe6\xbc\ndata: b\n\n", [message("a\ufffd\nb")]),
    "cut long character": (b"data: \xf0\x9f\x98\r\r", [message("\ufffd")]),
    "coded surrogate": (b"data: \xed\xa0\x80\n\n", [message("\ufffd" * 3)]),
    "overlong": (b"data: \xc0\x8a\n\n", [message("\ufffd\ufffd")]),
    "broken event": (b"event: x\xff\ndata: a\n\n", [named("x\ufffd", "a")]),
    "broken id": (b"id: \xff\ndata: a\n\n", [message("a", "\ufffd")]),
    "broken name": (b"data\xff: a\n\n", []),
    "standard": (NEXT * 2, [named("response.created", "{}")] * 2),
    "standard, broken": (
        b"event: error\ndata: \xff\n\n",
        [named("error", "\ufffd")],
    ),
    "standard, id pending": (b"id: 1\n" + NEXT, [named("response.created", "{}", "1")]),
    "done": (b"data: [DONE]\n\n", [message("[DONE]")]),
}

# Never finished, so nothing fires: the blank line is missing.
CUT_OFF: dict[str, bytes] = {
    "nothing": b"",
    "no line end": b"data: a",
    "no blank line": b"data: a\n",
    "half of crlf crlf": b"data: a\r\n",
    "event and data": b"event: response.created\ndata: {}\n",
    "part of a bom": BOM[:2],
}

RETRIES: dict[bytes, int | None] = {
    b"5": 5,
    b"0": 0,
    b"007": 7,
    b"-5": None,
    b"+5": None,
    b"1_000": None,
    b" 5": None,
    b"5 ": None,
    b"5.0": None,
    b"0x5": None,
    b"": None,
    "٥".encode(): None,
    "²".encode(): None,
    b"9" * 5000: None,
}


def feed_all(decoder: SSEDecoder, chunks: Iterable[bytes]) -> list[SSEFrame]:
    """Feed every chunk and collect the frames."""
    return [frame for chunk in chunks for frame in decoder.feed(chunk)]


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    """Cut into pieces of one size, the last maybe shorter."""
    return (data[at : at + size] for at in range(0, len(data), size))


@pytest.mark.spec("PA-2")
@pytest.mark.parametrize("name", CASES)
def test_grammar(name: str) -> None:
    """Each rule of the grammar holds, in one chunk, by bytes, and before more."""
    stream, frames = CASES[name]
    assert feed_all(SSEDecoder(), [stream]) == frames
    assert feed_all(SSEDecoder(), pieces(stream, 1)) == frames
    decoder = SSEDecoder()
    *before, after = feed_all(decoder, [stream, NEXT])
    assert before == frames
    assert after == named("response.created", "{}", decoder.last_event_id)
    assert feed_all(SSEDecoder(), [stream + NEXT]) == [*frames, after]


@pytest.mark.spec("PA-2")
@pytest.mark.parametrize("name", CASES)
def test_grammar_at_every_border(name: str) -> None:
    """Each rule of the grammar holds wherever the bytes are cut in two."""
    stream, frames = CASES[name]
    for at in range(len(stream) + 1):
        assert feed_all(SSEDecoder(), [stream[:at], b"", stream[at:]]) == frames


@pytest.mark.spec("PA-2")
@pytest.mark.parametrize("name", CUT_OFF)
@pytest.mark.parametrize("size", [1, 1000])
def test_end_of_stream_discards(name: str, size: int) -> None:
    """An event without its blank line does not fire."""
    decoder = SSEDecoder()
    assert feed_all(decoder, pieces(CUT_OFF[name], size)) == []
    decoder.close()


def test_close_gives_back_what_was_cut() -> None:
    """Closing returns the data of the event that was never finished."""
    decoder = SSEDecoder()
    decoder.feed(b"data: whole\n\ndata: a\nda")
    assert decoder.close() == b"a\nda"


@pytest.mark.spec("PA-2")
@pytest.mark.parametrize("value", RETRIES)
def test_retry_takes_ascii_digits_only(value: bytes) -> None:
    """A retry counts if it is ASCII digits, of a size one could wait for."""
    for size in (1, len(value) + 20):
        decoder = SSEDecoder()
        assert feed_all(decoder, pieces(b"retry: " + value + b"\n\n", size)) == []
        assert decoder.retry_ms == RETRIES[value]


def test_the_last_id_is_kept_for_reconnecting() -> None:
    """The id counts once its block ends, also when no event fires."""
    decoder = SSEDecoder()
    decoder.feed(b"id: 7\n")
    assert decoder.last_event_id == ""
    decoder.feed(b"\n")
    assert decoder.last_event_id == "7"


@pytest.mark.spec("PA-2")
def test_done_is_recognised_by_its_data() -> None:
    """Only the bare marker ends a stream, under any event name."""
    frames = SSEDecoder().feed(
        b"event: x\ndata: [DONE]\n\ndata:  [DONE]\n\ndata: [done]\n\n"
    )
    assert [frame.is_done for frame in frames] == [True, False, False]


# --- against a reference ---------------------------------------------------


def reference_frames(stream: bytes) -> list[SSEFrame]:
    """Decode as the standard says it, with the whole stream in hand."""
    text = stream.decode("utf-8", "replace").removeprefix("\ufeff")
    frames, data, event, pending_id = [], "", "", ""
    for line in re.split("\r\n|\n|\r", text)[:-1]:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line == "":
            if data:
                frames.append(named(event or "message", data[:-1], pending_id))
            data, event = "", ""
        elif name == "data":
            data += value + "\n"
        elif name == "event":
            event = value
        elif name == "id" and "\0" not in value:
            pending_id = value
    return frames


FRAGMENTS = [b"data", b"event", b"id", b"retry: 5", b":", b" ", b"\r", b"\n", b"\n\n"]
FRAGMENTS += [b"\r\n", b"\0", b"a", BOM, BOM[:1], BOM[1:], b"\xff", b"\xe6\xbc"]
FRAGMENTS += ["😀\u2028\u0085".encode(), b"data: {}\n", b"id: 1\n", b": ping\n", NEXT]
FRAGMENTS += [b"event: error\n", b"data: x\n\n", b"event: error\r\ndata: y\r\n\r\n"]


@st.composite
def chunkings(draw: st.DrawFn, stream: bytes) -> list[bytes]:
    """Draw one way to cut a stream, empty chunks included."""
    cuts = draw(st.lists(st.integers(0, len(stream)), max_size=12).map(sorted))
    borders = [0, *cuts, len(stream)]
    return [stream[a:b] for a, b in itertools.pairwise(borders)]


@pytest.mark.spec("PA-2")
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=40), st.data())
def test_any_bytes_decode_as_the_reference_has_it(
    fragments: list[bytes], data: st.DataObject
) -> None:
    """Any bytes in any chunks give the frames of the slow, plain decoder."""
    stream = b"".join(fragments)
    expected = reference_frames(stream)
    assert feed_all(SSEDecoder(), [stream]) == expected
    assert feed_all(SSEDecoder(), fragments) == expected
    assert feed_all(SSEDecoder(), data.draw(chunkings(stream))) == expected


# --- golden streams --------------------------------------------------------


@pytest.mark.spec("PA-2")
@given(st.sampled_from(STREAMS), st.data())
def test_golden_streams_in_any_chunks(path: Path, data: st.DataObject) -> None:
    """However a golden stream is cut, the decoder yields the same frames."""
    stream = path.read_bytes()
    chunks = data.draw(chunkings(stream))
    assert feed_all(SSEDecoder(), chunks) == reference_frames(stream)


@pytest.mark.spec("PA-2")
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1 << 20])
@pytest.mark.parametrize("path", STREAMS, ids=STREAM_IDS)
def test_golden_streams_have_the_expected_events(path: Path, size: int) -> None:
    """Each golden stream has the event types its expected file lists."""
    expected = json.loads(path.with_suffix(".expected.json").read_bytes())
    decode = decode_v1_event if path.stem.startswith("v1_") else decode_event
    assert [
        "[DONE]" if frame.is_done else decode(frame.data).type
        for frame in feed_all(SSEDecoder(), pieces(path.read_bytes(), size))
    ] == [OTHER_NAMES.get(kind, kind) for kind in expected["event_types"]]


# --- limits ----------------------------------------------------------------


def outcome(chunks: Iterable[bytes], limit: int) -> tuple[list[SSEFrame], bool]:
    """Decode to the end: the frames, and whether an event was too large."""
    decoder, frames = SSEDecoder(max_event_bytes=limit), []
    try:
        for chunk in chunks:
            frames += decoder.feed(chunk)
        decoder.close()
    except EventTooLarge:
        return frames, True
    return frames, False


@pytest.mark.parametrize("line", [b"data: ", b": ", b"event: ", b"data"])
def test_a_line_may_be_as_long_as_the_limit(line: bytes) -> None:
    """A line of exactly the limit passes, and one byte more does not."""
    full = line.ljust(40, b"x")
    for size in (1, 7, 100):
        assert not outcome(pieces(full + b"\n\n", size), 40)[1]
        assert outcome(pieces(full + b"x\n\n", size), 40)[1]


def test_many_small_lines_count_together() -> None:
    """The data of one event is limited however many lines it comes in."""
    frames, is_too_large = outcome([b"data: a\n\n", b"data: b\n" * 10], 12)
    assert (frames, is_too_large) == ([message("a")], True)


@given(
    st.lists(st.sampled_from([*FRAGMENTS, b"x" * 20]), max_size=40),
    st.integers(10, 60),
    st.data(),
)
def test_too_large_means_the_same_in_any_chunks(
    fragments: list[bytes], limit: int, data: st.DataObject
) -> None:
    """All chunkings give the same frames, and then the same error or none."""
    stream = b"".join(fragments)
    expected = outcome([stream], limit)
    assert outcome(fragments, limit) == expected
    assert outcome(pieces(stream, 1), limit) == expected
    assert outcome(data.draw(chunkings(stream)), limit) == expected


def test_too_large_is_the_providers_fault_and_final() -> None:
    """The error names the limit, and the decoder takes nothing more."""
    decoder = SSEDecoder(max_event_bytes=8)
    assert decoder.feed(b"data: a\n\ndata: too long\n\n" + NEXT) == [message("a")]
    for _ in range(2):
        with pytest.raises(ProviderError) as caught:
            decoder.feed(b"data: b\n\n")
        assert isinstance(caught.value, EventTooLarge)
        assert caught.value.limit_bytes == 8


def seconds_for_a_line_of(size: int) -> float:
    """Measure how long one line of this size takes in 4 KiB chunks."""
    decoder, chunk = SSEDecoder(max_event_bytes=2 * size), b"x" * 4096
    started = time.process_time()
    frames = decoder.feed(b"data: ")
    for _ in range(size // len(chunk)):
        frames += decoder.feed(chunk)
    frames += decoder.feed(b"\n\n")
    taken = time.process_time() - started
    assert [len(frame.data) for frame in frames] == [size // len(chunk) * len(chunk)]
    return taken


@pytest.mark.slow
def test_a_long_line_takes_linear_time() -> None:
    """Ten times the line takes about ten times the time, not a hundred times."""
    # The best of three on both sides: one run alone also measures the machine. Small
    # enough that getting the memory is not most of the work.
    short = min(seconds_for_a_line_of(2_000_000) for _ in range(3))
    long = min(seconds_for_a_line_of(20_000_000) for _ in range(3))
    assert long < 30 * max(short, 0.005)


def test_memory_stays_within_the_limit() -> None:
    """An endless line is refused before it fills the memory."""
    decoder = SSEDecoder(max_event_bytes=1_000_000)
    tracemalloc.start()
    for _ in range(50_000_000 // 65536):
        with contextlib.suppress(EventTooLarge):
            decoder.feed(bytes(65536))  # A new object each time.
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 500_000 < peak < 4_000_000
