"""Lines are written in one form, and read back as far as they are whole."""

import json
import re
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import CorruptLog, WireError
from gambit_actors.run.entries import (
    CallEnded,
    Entry,
    MetaSet,
    RunStarted,
    TurnEnded,
    TurnStarted,
)
from gambit_actors.store import log_lines
from gambit_actors.store.log_lines import (
    LineReader,
    LineWriter,
    LogLine,
    Torn,
    read_lines,
)
from tests.run.entry_strategies import batches
from tests.store.logs import BATCHES, ENTRIES, batches_of, log_of, prefix_before

LOG = b"".join(log_of(batches_of()))
LINES = LOG.splitlines(keepends=True)


def sealed(line: str, crc: int = 0) -> bytes:
    """Give a line the checksum it asks for, as a writer of tomorrow might."""
    head = line.encode()
    return b'%b,"crc":"%08x"}\n' % (head, crc32(head, crc))


def test_lines_have_the_documented_form() -> None:
    """The first line, the lines of a batch, and a line alone, byte for byte."""
    lines = LineWriter("w")
    first = lines.batch([RunStarted(run_id="r", deck="d"), TurnStarted()], 1763494400)
    second = lines.batch([CallEnded(call_id="c", output="\n")], 1763494400.1234567)

    assert (first + second).decode().splitlines() == [
        (
            '{"seq":0,"ts":1763494400.000000,"format":1,"writer":"w","more":1,'
            '"entry":{"type":"run.started","run_id":"r","deck":"d"},"crc":"5054caf0"}'
        ),
        (
            '{"seq":1,"ts":1763494400.000000,'
            '"entry":{"type":"turn.started"},"crc":"180be0cc"}'
        ),
        (
            '{"seq":2,"ts":1763494400.123457,'
            '"entry":{"type":"call.ended","call_id":"c","output":"\\n"},"crc":"b2618f96"}'
        ),
    ]


def test_checksums_are_those_of_zlib_in_a_chain() -> None:
    """A tool can check a log: CRC-32 of each line up to it, from that of the last."""
    crc = 0
    for line in LINES:
        head, _, _ = line.rpartition(b',"crc":')
        crc = crc32(head, crc)
        assert json.loads(line)["crc"] == f"{crc:08x}"


def test_contents_say_where_each_entry_is() -> None:
    """Each entry has its line, its time, and who began to write there."""
    contents = read_lines(LOG)

    assert contents.entries == ENTRIES
    assert contents.end_offset == len(LOG)
    assert (contents.torn, contents.writer) == (None, "w")
    assert contents.is_over
    assert not contents.lacks_newline
    assert contents.lines[0] == LogLine(offset=0, seq=0, ts=1.5, writer="w")
    assert [LOG[at.offset :][:7] for at in contents.lines] == [
        line[:7] for line in LINES
    ]
    assert [at.writer for at in contents.lines[1:]] == [None] * (len(LINES) - 1)


@pytest.mark.slow
@pytest.mark.spec("CARD-7")
@given(batches(), st.data())
def test_any_log_is_read_back_from_any_chunks(
    run: list[list[Entry]], data: st.DataObject
) -> None:
    """What was written is read back, however the bytes come."""
    log = b"".join(log_of(run))
    reader = LineReader()
    rest = log
    while rest:
        size = data.draw(st.integers(1, 200))
        reader.feed(rest[:size])
        rest = rest[size:]
    contents = reader.finish()

    assert contents.entries == [entry for batch in run for entry in batch]
    assert contents == read_lines(log)
    assert (contents.end_offset, contents.torn) == (len(log), None)


@pytest.mark.slow
@pytest.mark.spec("CARD-7")
@given(batches(), st.data())
def test_any_cut_gives_the_whole_batches_before_it(
    run: list[list[Entry]], data: st.DataObject
) -> None:
    """A log that ends anywhere has every batch that is whole, and says what is not."""
    log = b"".join(log_of(run))
    cut = data.draw(st.integers(0, len(log)))

    contents = read_lines(log[:cut])

    assert contents.entries == prefix_before(cut, run)
    if contents.torn is not None:
        assert contents.torn.offset == contents.end_offset
        assert contents.torn.bytes_dropped == cut - contents.end_offset
    else:
        assert contents.end_offset == cut


@pytest.mark.parametrize("zeros", [0, 1, 4096])
@pytest.mark.parametrize("is_ended", [True, False])
def test_a_log_goes_on_after_a_repair(*, zeros: int, is_ended: bool) -> None:
    """With zeros cut off and a line break added, the next line fits."""
    log = LOG if is_ended else LOG[:-1]
    found = read_lines(log + bytes(zeros))
    more = LineWriter("v", seq=len(found.entries), crc=found.crc, ts=9.0)
    added = more.batch([MetaSet(key="k", value=1)], 3.0)
    contents = read_lines(LOG + added)

    assert found.entries == ENTRIES
    assert found.lacks_newline != is_ended
    assert (found.torn is not None) == bool(zeros)
    assert contents.entries == [*ENTRIES, MetaSet(key="k", value=1)]
    assert contents.lines[-1].ts == 9.0
    assert (contents.lines[-1].writer, contents.writer) == ("v", "v")


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (b'{"seq":', "part of a line"),
        (b'{"seq":' + bytes(9), "part of a line"),
        (b"garbage", "part of a line"),
        (bytes(9), "zeros"),
        (
            LineWriter("w", seq=len(LINES), crc=read_lines(LOG).crc)
            .batch([TurnStarted()] * 3, 1)
            .splitlines()[0],
            "2 more lines of a batch were to come",
        ),
    ],
)
def test_what_a_crash_leaves_is_dropped_and_said(tail: bytes, reason: str) -> None:
    """Part of a line, zeros and part of a batch: where, how much, and what it was."""
    contents = read_lines(LOG + tail)

    assert contents.entries == ENTRIES
    assert contents.torn == Torn(
        offset=len(LOG), bytes_dropped=len(tail), reason=reason
    )


def test_a_batch_is_dropped_from_its_start() -> None:
    """The lines of a batch that has no end are dropped, and what it said with them."""
    lines = LineWriter("v", seq=len(LINES), crc=read_lines(LOG).crc)
    one, two, _ = lines.batch([TurnStarted()] * 3, 1).splitlines(keepends=True)

    contents = read_lines(LOG + one + two)

    assert contents.entries == ENTRIES
    assert (contents.writer, contents.crc) == ("w", read_lines(LOG).crc)
    assert contents.torn is not None
    assert contents.torn.bytes_dropped == len(one + two)


def test_a_cut_in_an_entry_with_a_checksum_of_its_own_is_a_cut() -> None:
    """Bytes that end like a line, in the middle of one, are still part of a line."""
    entry = MetaSet(key="k", value={"a": 1, "crc": "0a1b2c3d"})
    log = LineWriter("w").batch([entry], 1)
    cut = log.index(b'"0a1b2c3d"}') + len(b'"0a1b2c3d"}')

    contents = read_lines(log[:cut])

    assert (contents.entries, contents.end_offset) == ([], 0)


def changed(number: int, **fields: Any) -> bytes:  # noqa: ANN401  (any JSON)
    """The log with other values in a line, and checksums that are right for that."""
    crc, log = 0, b""
    for index, line in enumerate(LINES):
        document = json.loads(line)
        del document["crc"]
        if index == number:
            document |= fields
        head = json.dumps(document, separators=(",", ":"), ensure_ascii=False)[:-1]
        log += sealed(head, crc)
        crc = crc32(head.encode(), crc)
    return log


LAST = len(LINES) - 1


@pytest.mark.parametrize("number", [0, 4, LAST])
@pytest.mark.parametrize("is_ended", [True, False])
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"seq": 99}, "its seq is 99"),
        ({"seq": "0"}, "not a line of a log"),
        ({"more": -1}, "not the next line of its batch"),
        ({"entry": {"type": "turn.paused"}}, r"turn\.paused"),
        ({"entry": {"type": "item"}}, "cannot be read"),
        ({"entry": None}, "cannot be read"),
    ],
)
def test_a_whole_line_that_is_wrong_is_damage(
    fields: dict[str, Any], reason: str, *, number: int, is_ended: bool
) -> None:
    """A line that has its end and makes no sense is never dropped, not even the last.

    Also if only its line break is missing.
    """
    log = changed(number, **fields)

    with pytest.raises(CorruptLog, match=reason) as caught:
        read_lines(log if is_ended else log[:-1], path="a.jsonl")

    offset = sum(map(len, log.splitlines(keepends=True)[:number]))
    assert (caught.value.line, caught.value.offset) == (number + 1, offset)
    place = f"line {number + 1} of the log a.jsonl, at byte {offset}, is damaged: "
    assert str(caught.value).startswith(place)


@pytest.mark.parametrize("more", [0, 1, 3, 7])
def test_a_batch_counts_down(more: int) -> None:
    """A line in the middle of a batch that says anything else is damage."""
    with pytest.raises(CorruptLog, match="not the next line of its batch"):
        read_lines(changed(4, more=more))


@pytest.mark.parametrize(
    ("log", "line", "reason"),
    [
        (b"\n", 1, "checksum is missing"),
        (b"hello\n", 1, "checksum is missing"),
        (LOG + b"\n", len(LINES) + 1, "checksum is missing"),
        (LOG + b"{}", len(LINES) + 1, "checksum is missing"),
        (LOG + LINES[-1], len(LINES) + 1, "checksum is missing or wrong"),
        (LOG.replace(b'"Where is it?', b'"Where is IT?'), 3, "checksum"),
        (LOG.replace(b"\n", b"\r\n"), 1, "checksum"),
        (LOG[:-1] + b"\x0b", len(LINES), "line break"),
        (LOG[:-1] + b"\x8a" + bytes(3), len(LINES), "line break"),
        (LOG.replace(b'"format":1', b'"format":2'), 1, "format 2"),
        (sealed('{"format":3,"what":"ever"'), 1, "format 3; this version reads 1"),
        (sealed('{"seq":0,"ts":1,"entry":{"type":"turn.started"}'), 1, "format 0"),
        (sealed('{"seq":'), 1, "not a line of a log"),
        (sealed('{"seq":0,"x":' + "[" * 9999), 1, "not a line of a log"),
        (LINES[0] + LINES[2], 2, "checksum"),
    ],
)
def test_damage_is_told_with_its_place(log: bytes, line: int, reason: str) -> None:
    """A line that is no line, is there twice, was edited, or is of a later format."""
    with pytest.raises(CorruptLog, match=re.escape(reason)) as caught:
        read_lines(log)

    assert caught.value.line == line


def test_keys_of_a_later_version_are_passed_over() -> None:
    """A key that lines do not have today does not make them unreadable."""
    assert read_lines(changed(4, later={"a": 1})).entries == ENTRIES


def test_an_entry_that_cannot_be_written_leaves_no_trace() -> None:
    """After a batch that could not be made, the next has the number it would have."""
    lines = LineWriter("w")
    with pytest.raises(WireError):
        lines.batch([TurnStarted(), MetaSet(key="\ud800")], 9)

    assert lines.batch(batches_of()[0], 1.5) == log_of(batches_of())[0]


def test_times_never_go_backwards() -> None:
    """A clock that is set back stands still in the log."""
    lines = LineWriter("w")
    log = b"".join(lines.batch([TurnStarted()], ts) for ts in (5.0, 3.0, 6.0))

    assert [line.ts for line in read_lines(log).lines] == [5.0, 5.0, 6.0]


@pytest.mark.slow
def test_a_line_has_a_largest_size() -> None:
    """What is longer is not written, and one that grows without end is not read."""
    most = log_lines.MAX_LINE_BYTES
    entry = TurnEnded(status="completed", text="x" * most)
    with pytest.raises(WireError, match="longer than"):
        LineWriter("w").batch([entry], 1)

    reader = LineReader()
    with pytest.raises(CorruptLog, match="longer than"):  # noqa: PT012
        for _ in range(2 * most >> 20):
            reader.feed(b"x" * 2**20)


@pytest.mark.slow
def test_a_large_line_is_read_in_linear_time() -> None:
    """A line that comes in many pieces is not searched again for each of them."""
    entry = TurnEnded(status="completed", text="x" * 2**24)
    log = LineWriter("w").batch([entry], 1)
    reader = LineReader()
    for start in range(0, len(log), 4096):
        reader.feed(log[start : start + 4096])

    assert reader.finish().entries == [entry]


def test_an_empty_log_has_nothing_in_it() -> None:
    """No bytes are no entries, and nothing that is torn."""
    contents = read_lines(b"")

    assert (contents.entries, contents.torn, contents.is_over) == ([], None, False)
    assert prefix_before(0, batches_of(BATCHES)) == []
