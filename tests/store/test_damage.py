"""Whatever happens to a log, what is read of it is the truth, as far as it goes."""

import json
import random
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import CorruptLog, NoSuchRun
from gambit_actors.run.entries import Entry, MetaSet, RunResumed
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.store.log_lines import LogContents, read_lines
from tests.store.log_writer import RESUMED_FROM, heard, numbers_in, whole, writer
from tests.store.logs import ENTRIES, batches_of, log_of, prefix_before

PIECES = log_of(batches_of())
LOG = b"".join(PIECES)
LINES = LOG.splitlines(keepends=True)
KEPT = MetaSet(key="k", value=1)

# The entries that a log may truly be said to have: those of its first batches.
PREFIXES: list[list[Entry]] = [[]]
for _batch in batches_of():
    PREFIXES.append(PREFIXES[-1] + _batch)


def outcome(log: bytes) -> str:
    """Read a log that something was done to: how it ended, if that was right."""
    try:
        contents = read_lines(log)
    except CorruptLog as problem:
        refused = problem
    else:
        assert contents.entries in PREFIXES
        assert contents.torn is None or contents.torn.offset == contents.end_offset
        return "repaired" if contents.torn or contents.lacks_newline else "read"
    lines = log.splitlines(keepends=True)
    assert 1 <= refused.line <= len(lines)
    assert refused.offset == sum(map(len, lines[: refused.line - 1]))
    return "refused"


def told(capsys: pytest.CaptureFixture[str], what: str, counts: Counter[str]) -> None:
    """Say what became of a sweep."""
    with capsys.disabled():
        words = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        print(f"\n  {sum(counts.values())} logs with {what}: {words}")  # noqa: T201


async def gone_on_with(folder: Path, log: bytes) -> list[Entry]:
    """Have a store repair a log and write to it; what it had found there."""
    path = folder / "run_1.jsonl"
    path.write_bytes(log)  # noqa: ASYNC240  # small
    async with DiskStore(folder, durability="none") as store:
        found = await store.reopen_log("run_1")
        await found.log.append([KEPT])
        contents = await store.read_log("run_1")
        path.unlink()  # noqa: ASYNC240  # small
    assert contents.torn is None
    assert contents.entries == [*found.entries, KEPT]
    assert found.entries.pop() == RunResumed()
    return found.entries


@pytest.mark.slow
@pytest.mark.spec("CARD-7")
def test_a_log_that_ends_anywhere_is_repaired_and_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cut at every byte: all whole batches are there, and a store writes on."""
    counts: Counter[str] = Counter()

    async def sweep() -> None:
        for cut in range(len(LOG) + 1):
            expected = prefix_before(cut, batches_of())
            counts[outcome(LOG[:cut])] += 1
            assert read_lines(LOG[:cut]).entries == expected
            try:
                assert await gone_on_with(tmp_path, LOG[:cut]) == expected
            except NoSuchRun:
                assert expected == []

    trio.run(sweep)
    assert counts["refused"] == 0
    told(capsys, "their end cut off", counts)


@pytest.mark.slow
@pytest.mark.spec("CARD-7")
def test_a_log_with_zeros_at_its_end_is_repaired(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Cut at every byte and filled up with zeros, as file systems do: the same."""
    counts: Counter[str] = Counter()
    for cut in range(len(LOG) + 1):
        for zeros in (1, 512):
            counts[outcome(LOG[:cut] + bytes(zeros))] += 1
            contents = read_lines(LOG[:cut] + bytes(zeros))
            assert contents.entries == prefix_before(cut, batches_of())
    assert counts.keys() == {"repaired"}
    told(capsys, "zeros for their end", counts)


@pytest.mark.slow
@pytest.mark.spec("CARD-7")
def test_a_bit_that_flips_is_always_noticed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every bit of a log, one by one: the log is refused, with the line it is in."""
    counts: Counter[str] = Counter()
    for index in range(len(LOG)):
        line = LOG.count(b"\n", 0, index) + 1
        for bit in range(8):
            log = bytearray(LOG)
            log[index] ^= 1 << bit
            with pytest.raises(CorruptLog) as caught:
                read_lines(bytes(log))
            assert caught.value.line == line
            counts["refused"] += 1
    told(capsys, "one bit flipped", counts)


def _disordered() -> Iterable[tuple[str, bytes]]:
    numbers = range(len(LINES))
    for one in numbers:
        yield "a line deleted", b"".join(LINES[:one] + LINES[one + 1 :])
        for two in range(len(LINES) + 1):
            yield "a line doubled", b"".join([*LINES[:two], LINES[one], *LINES[two:]])
        for two in range(one):
            lines = LINES.copy()
            lines[one], lines[two] = lines[two], lines[one]
            yield "two lines swapped", b"".join(lines)
    other = b"".join(log_of(batches_of(), writer="other")).splitlines(keepends=True)
    for one in numbers:
        lines = [*LINES[:one], other[one], *LINES[one + 1 :]]
        yield "a line of another log", b"".join(lines)


@pytest.mark.spec("CARD-7")
def test_lines_out_of_order_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Lines deleted, doubled, swapped, or of another log: only a shorter log is read.

    Without its last line a log is what it was before that was written.
    """
    counts: dict[str, Counter[str]] = {}
    for what, log in _disordered():
        counts.setdefault(what, Counter())[outcome(log)] += 1
        if not LOG.startswith(log):
            with pytest.raises(CorruptLog):
                read_lines(log)
    assert {what: c["read"] + c["repaired"] for what, c in counts.items()} == {
        "a line deleted": 1,
        "a line doubled": 0,
        "two lines swapped": 0,
        "a line of another log": 0,
    }
    for what, found in counts.items():
        told(capsys, what, found)


@pytest.mark.slow
@given(st.data())
def test_any_damage_gives_a_true_prefix_or_is_refused(data: st.DataObject) -> None:
    """Bytes overwritten, cut out and put in, several times: never a wrong entry."""
    log = bytearray(LOG)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(log)))
        end = data.draw(st.integers(start, min(start + 200, len(log))))
        log[start:end] = data.draw(st.binary(max_size=40) | st.sampled_from(PIECES))
    outcome(bytes(log))


@pytest.mark.slow
@pytest.mark.spec("CARD-7")
def test_what_was_told_is_there_after_a_kill(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed at 20 random moments, a writer has kept all it was told is kept.

    Each process goes on with what the one before has left.
    """
    counts: Counter[str] = Counter()
    moments = random.Random(7)  # noqa: S311  # not a secret
    path, expected = tmp_path / "run_1.jsonl", 0
    for number in range(20):
        with writer("resume" if number else "begin", tmp_path, "run_1") as process:
            first = heard(process).readline()
            time.sleep(moments.uniform(0, 0.03))
            process.kill()
            rest = heard(process).readlines()
        contents = read_lines(path.read_bytes())
        told_of = [json.loads(line) for line in [first, *rest] if line.endswith(b"\n")]
        done = [fact["done"] for fact in told_of if "done" in fact]
        expected += len(whole(done))
        _check_kept(contents, done)
        counts["torn" if contents.torn else "whole"] += 1
    assert len(numbers_in(contents)) >= expected
    assert sum(isinstance(entry, RunResumed) for entry in contents.entries) == 19
    told(capsys, f"their writer killed ({expected} entries told of)", counts)


def _check_kept(contents: LogContents, done: list[int]) -> None:
    """Compare the last process's part of a log with what it said of it."""
    since = max(
        (n for n, e in enumerate(contents.entries) if isinstance(e, RunResumed)),
        default=0,
    )
    written = [int(e.key) for e in contents.entries[since:] if isinstance(e, MetaSet)]
    start = RESUMED_FROM if since else 0
    assert done == list(range(start, start + len(done)))
    # One batch more may be there, which it had no time to tell of.
    assert written in (
        whole(done),
        whole([*done, start + len(done)]),
    )


def test_the_log_of_these_tests_is_all_read() -> None:
    """Without damage, all of it is there."""
    assert outcome(LOG) == "read"
    assert PREFIXES[-1] == ENTRIES
