"""Runs are listed, found and pruned from the ends of their logs alone."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from gambit_actors.errors import LogBroken, NoSuchRun
from gambit_actors.openresponses.responses import Usage
from gambit_actors.run.entries import (
    Entry,
    MetaSet,
    RunEnded,
    RunStarted,
    TurnEnded,
    TurnStarted,
)
from gambit_actors.store import run_index
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.store.index_cache import INDEX_NAME, load_index
from gambit_actors.store.log_ends import LogEnds, read_ends
from gambit_actors.store.log_lines import LineWriter
from gambit_actors.store.run_index import AmbiguousRun, find_run, list_runs, prune
from gambit_actors.store.writers import Writers

USAGE = Usage(input_tokens=2, output_tokens=3, total_tokens=5)
DONE = RunEnded(status="completed", turns=1, usage=USAGE, cost=0.5)
FAILED = RunEnded(status="failed", code="timeout", turns=2)
ANSWERED = TurnEnded(status="completed", text="There.")


def write(
    folder: Path,
    run_id: str,
    *entries: Entry,
    at: float = 100.0,
    root: str | None = None,
    deck: str = "desk/PROMPT.md",
) -> Path:
    """Write a log with a line for each entry, a second apart."""
    start = RunStarted(
        run_id=run_id,
        deck=deck,
        path=f"/d/{deck}",
        root_run_id=root,
        depth=int(root is not None),
    )
    lines = LineWriter("gone.1.a")
    path = folder / f"{run_id}.jsonl"
    batches: list[list[Entry]] = [[start, TurnStarted()], *([e] for e in entries)]
    data = [lines.batch(batch, at + n) for n, batch in enumerate(batches)]
    path.write_bytes(b"".join(data))
    return path


def told(folder: Path, **wanted: object) -> list[tuple[str, str]]:
    """Which runs are listed, and how they are doing."""
    listed = list_runs(folder, **wanted)  # type: ignore[arg-type]  # as the test says
    return [(run.run_id, run.status) for run in listed]


def test_a_run_is_told_from_its_first_line_and_its_last(tmp_path: Path) -> None:
    """Deck, times, turns, usage, cost and size are those of the log."""
    path = write(tmp_path, "run-a", ANSWERED, DONE)
    (run,) = list_runs(tmp_path)
    assert (run.deck, run.path) == ("desk/PROMPT.md", "/d/desk/PROMPT.md")
    assert (run.status, run.started, run.last) == ("completed", 100.0, 102.0)
    assert (run.turns, run.usage, run.cost) == (1, USAGE, 0.5)
    assert run.bytes == path.stat().st_size


@pytest.mark.parametrize("size", [0, 3000, 9000, 200_000])
def test_only_the_ends_are_read(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long a log is, nothing reads the whole of one that has ended well."""

    def read_nothing(path: Path) -> None:
        raise AssertionError(path)

    monkeypatch.setattr("gambit_actors.store.log_ends.read_file", read_nothing)
    filling = [MetaSet(key="k", value="x" * 500)] * (size // 500)
    write(tmp_path, "run-a", *filling, ANSWERED, FAILED)
    (run,) = list_runs(tmp_path)
    assert (run.status, run.code, run.turns) == ("failed", "timeout", 2)


def test_a_last_line_that_is_very_long_is_read_all_the_same(tmp_path: Path) -> None:
    """It has no end within a few KB, so the log is read as a whole."""
    write(tmp_path, "run-a", MetaSet(key="k", value="x" * 50_000))
    (run,) = list_runs(tmp_path)
    assert (run.status, run.last) == ("interrupted", 101.0)


def test_what_has_not_ended_is_interrupted_or_waits(tmp_path: Path) -> None:
    """In the middle of a turn it was interrupted, after one it can be told more."""
    write(tmp_path, "run-a", MetaSet(key="k"))
    write(tmp_path, "run-b", ANSWERED, at=200.0)
    assert told(tmp_path) == [("run-b", "waiting"), ("run-a", "interrupted")]


async def test_a_run_is_running_as_long_as_its_writer_is_there(tmp_path: Path) -> None:
    """Also one that was taken over, in a line that is far from both ends."""
    filling = [MetaSet(key="k", value="x" * 500)] * 40
    write(tmp_path, "run-b", *filling)
    async with DiskStore(tmp_path) as store:
        log = await store.open_log(RunStarted(run_id="run-a", deck="d"))
        await log.append([TurnStarted()])
        taken = await store.reopen_log("run-b")
        await taken.log.append(filling)
        listed = await trio.to_thread.run_sync(told, tmp_path)
        assert sorted(listed) == [("run-a", "running"), ("run-b", "running")]
    assert sorted(told(tmp_path)) == [
        ("run-a", "interrupted"),
        ("run-b", "interrupted"),
    ]


async def test_who_has_the_turn_does_not_keep_a_listing_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that cannot be asked counts as there; nothing is removed meanwhile."""
    monkeypatch.setattr("gambit_actors.store.turns._MOST_SECONDS", 0.01)
    async with DiskStore(tmp_path) as store:
        log = await store.open_log(RunStarted(run_id="run-a", deck="d"))
        await log.append([TurnStarted()])
        write(tmp_path, "run-b", DONE)
        writers = Writers(tmp_path)
        turn = writers.take_turn()
        assert turn is not None
        assert ("run-a", "running") in told(tmp_path)
        with pytest.raises(run_index.FolderBusy):
            prune(tmp_path, keep_seconds=0)
        writers.end_turn(turn)


@pytest.mark.parametrize(
    ("change", "line", "reason"),
    [
        (lambda data: data.replace(b"desk", b"disk"), 1, "checksum"),
        (lambda data: data[:-30] + b"!" + data[-29:], 4, "checksum"),
        (lambda data: data[:-1] + b"]", 4, "line break"),
        (lambda data: data.replace(b"run-a", b"run-b"), 1, "checksum"),
        (lambda data: data[:0], 1, "empty"),
        (lambda data: data[:40], 1, "no whole entry"),
        (lambda data: b"hello\n" + data, 1, ""),
    ],
)
def test_a_damaged_log_is_listed_with_its_place(
    tmp_path: Path, change: Callable[[bytes], bytes], line: int, reason: str
) -> None:
    """It is neither hidden nor in the way of the others."""
    path = write(tmp_path, "run-a", ANSWERED, DONE)
    path.write_bytes(change(path.read_bytes()))
    write(tmp_path, "run-b", DONE)
    (run,) = list_runs(tmp_path, status="damaged")
    assert run.damage is not None
    assert run.damage.line == line
    assert reason in run.damage.reason
    assert len(told(tmp_path)) == 2
    assert load_index(tmp_path)["run-a"].damage == run.damage


def circle(folder: Path, run_id: str) -> None:
    """A log that nobody can read, not even root: a link that leads to itself."""
    (folder / f"{run_id}.jsonl").symlink_to(f"{run_id}.jsonl")


def test_a_log_that_cannot_be_read_is_in_nobodys_way(tmp_path: Path) -> None:
    """It is listed as damaged and never removed; the others are found and pruned."""
    write(tmp_path, "run-a", DONE)
    circle(tmp_path, "run-b")
    for _ in range(2):
        assert told(tmp_path) == [("run-b", "damaged"), ("run-a", "completed")]
        assert list(load_index(tmp_path)) == ["run-a"]
    damage = find_run(tmp_path, "run-b").damage
    assert damage is not None
    assert damage.reason == "it cannot be read (Too many levels of symbolic links)"
    assert find_run(tmp_path, "last").run_id == "run-a"
    removed = prune(tmp_path, keep_seconds=-10, include_interrupted=True)
    assert [run.run_id for run in removed] == ["run-a"]
    assert told(tmp_path) == [("run-b", "damaged")]
    with pytest.raises(NoSuchRun):
        find_run(tmp_path, "last")


def test_a_log_that_is_not_ours_to_read_is_damaged_until_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What keeps us from it is not remembered, because it leaves no trace in it."""
    path = write(tmp_path, "run-a", DONE)

    def refused(_path: Path) -> LogEnds:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patch:
        patch.setattr(run_index, "read_ends", refused)
        assert told(tmp_path) == [("run-a", "damaged")]
        damage = find_run(tmp_path, "run-a").damage
        assert damage is not None
        assert damage.reason == "it cannot be read (Permission denied)"
        assert prune(tmp_path, keep_seconds=-10, include_interrupted=True) == []
    assert told(tmp_path) == [("run-a", "completed")]
    assert path.exists()


def test_a_log_under_the_name_of_another_is_damaged(tmp_path: Path) -> None:
    """The first line has to be that of the run that the file is called by."""
    write(tmp_path, "run-a", DONE).rename(tmp_path / "run-c.jsonl")
    (run,) = list_runs(tmp_path)
    assert run.damage is not None
    assert run.damage.reason == "it is the log of run run-a"


def test_a_torn_end_is_no_damage(tmp_path: Path) -> None:
    """What a crash leaves behind is an interrupted run."""
    path = write(tmp_path, "run-a", ANSWERED, DONE)
    path.write_bytes(path.read_bytes()[:-20])
    assert told(tmp_path) == [("run-a", "waiting")]


def test_runs_below_another_are_not_listed(tmp_path: Path) -> None:
    """Their bytes are their root's, and one whose root is gone stands for itself."""
    size = write(tmp_path, "run-a", DONE).stat().st_size
    below = write(tmp_path, "run-b", DONE, root="run-a").stat().st_size
    write(tmp_path, "run-c", DONE, root="run-gone", at=50.0)
    first, second = list_runs(tmp_path)
    assert (first.run_id, first.bytes) == ("run-a", size + below)
    assert (second.run_id, second.root_run_id) == ("run-c", "run-gone")


def test_runs_are_chosen(tmp_path: Path) -> None:
    """By how they are doing, when they were written to, their deck and their number."""
    write(tmp_path, "run-a", DONE)
    write(tmp_path, "run-b", FAILED, at=200.0, deck="other/PROMPT.md")
    write(tmp_path, "run-c", at=300.0)
    assert told(tmp_path, status="failed") == [("run-b", "failed")]
    assert len(told(tmp_path, status=("failed", "completed"))) == 2
    assert told(tmp_path, since=300.0) == [("run-c", "interrupted")]
    assert told(tmp_path, deck="other*") == [("run-b", "failed")]
    assert len(told(tmp_path, deck="/d/*")) == 3
    assert told(tmp_path, limit=1) == [("run-c", "interrupted")]


def test_a_run_is_found_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    """Or as the last one; what is not there or not unique is told."""
    write(tmp_path, "run-a1", DONE, at=200.0)
    write(tmp_path, "run-a2", DONE)
    write(tmp_path, "run-a1b", DONE, root="run-a1", at=300.0)
    assert find_run(tmp_path, "run-a1").run_id == "run-a1"
    assert find_run(tmp_path, "run-a1b").run_id == "run-a1b"
    assert find_run(tmp_path, "last").run_id == "run-a1"
    with pytest.raises(AmbiguousRun, match=r"several runs: run-a1, run-a2$"):
        find_run(tmp_path, "run-")
    for name in ("", "run-x", "../run-a1"):
        with pytest.raises(NoSuchRun):
            find_run(tmp_path, name)
    with pytest.raises(LogBroken):
        find_run(tmp_path / "none", "last")


def test_what_is_known_is_kept_and_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log is read again when it has changed, and all are if the index is damaged."""
    write(tmp_path, "run-a", DONE)
    write(tmp_path, "run-b", DONE)
    read: list[str] = []

    def reading(path: Path) -> LogEnds:
        read.append(path.stem)
        return read_ends(path)

    monkeypatch.setattr(run_index, "read_ends", reading)
    listed = told(tmp_path)
    assert sorted(read) == ["run-a", "run-b"]
    assert told(tmp_path) == listed
    assert len(read) == 2
    write(tmp_path, "run-b", ANSWERED, DONE)
    told(tmp_path)
    assert read[2:] == ["run-b"]
    index = tmp_path / INDEX_NAME
    for data in (b"", b"{}\n", index.read_bytes()[:-9], b"\xff", b'{"index":2}\n'):
        index.write_bytes(data)
        read.clear()
        assert len(told(tmp_path)) == 2
        assert len(read) == 2
    (tmp_path / "run-b.jsonl").unlink()
    assert len(told(tmp_path)) == 1
    assert list(load_index(tmp_path)) == ["run-a"]


def test_an_index_that_was_tampered_with_is_made_anew(tmp_path: Path) -> None:
    """Though each of its lines can be read, they are not those that were written."""
    write(tmp_path, "run-a", DONE)
    told(tmp_path)
    index = tmp_path / INDEX_NAME
    kept = index.read_bytes()
    index.write_bytes(kept.replace(b'"completed"', b'"cancelled"'))
    assert index.read_bytes() != kept
    assert load_index(tmp_path) == {}
    assert told(tmp_path) == [("run-a", "completed")]
    assert index.read_bytes() == kept


def test_an_index_that_is_no_file_is_passed_over(tmp_path: Path) -> None:
    """A pipe in its place is not waited for, and gives way to the index."""
    write(tmp_path, "run-a", DONE)
    os.mkfifo(tmp_path / INDEX_NAME)
    assert load_index(tmp_path) == {}
    assert told(tmp_path) == [("run-a", "completed")]
    assert list(load_index(tmp_path)) == ["run-a"]


def test_an_index_that_cannot_be_written_is_no_matter(tmp_path: Path) -> None:
    """The listing is the same, and nothing is left behind."""
    write(tmp_path, "run-a", DONE)
    (tmp_path / INDEX_NAME).mkdir()
    assert told(tmp_path) == [("run-a", "completed")]
    assert not list(tmp_path.glob("*.tmp"))


def test_pruning_removes_a_run_with_all_below_it(tmp_path: Path) -> None:
    """What is new or has not ended stays; a dry run removes nothing."""
    write(tmp_path, "run-a", DONE)
    write(tmp_path, "run-b", root="run-a")
    write(tmp_path, "run-c", at=100.0)
    write(tmp_path, "run-d", DONE, at=900.0)
    (tmp_path / "run-e.jsonl").write_bytes(b"{}\n")
    os.utime(tmp_path / "run-e.jsonl", (100.0, 100.0))
    would = prune(tmp_path, keep_seconds=500.0, now=1000.0, dry_run=True)
    assert len(list(tmp_path.glob("run*"))) == 5
    removed = prune(tmp_path, keep_seconds=500.0, now=1000.0)
    assert removed == would
    assert [run.run_id for run in removed] == ["run-a"]
    left = sorted(path.stem for path in tmp_path.glob("run*"))
    assert left == ["run-c", "run-d", "run-e"]
    more = prune(tmp_path, keep_seconds=500.0, now=1000.0, include_interrupted=True)
    assert sorted(run.run_id for run in more) == ["run-c", "run-e"]


@pytest.mark.parametrize("written", [900.0, 498.0])
def test_a_run_is_as_old_as_the_newest_below_it(tmp_path: Path, written: float) -> None:
    """A root that is old stays with what was written below it lately."""
    write(tmp_path, "run-a", DONE)
    write(tmp_path, "run-b", DONE, root="run-a", at=written)
    removed = prune(tmp_path, keep_seconds=500.0, now=1000.0)
    assert [run.run_id for run in removed] == ([] if written > 500.0 else ["run-a"])
    assert len(list(tmp_path.glob("run*"))) == (2 if written > 500.0 else 0)


@pytest.mark.parametrize("removals", [0, 1, 2])
def test_pruning_that_was_cut_off_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removals: int
) -> None:
    """The root goes last: without it, what it had left below would count as a run."""
    write(tmp_path, "run-a", DONE)
    for name in ("run-b", "run-c"):
        write(tmp_path, name, root="run-a")
    unlink, left = Path.unlink, iter([True] * removals)

    def wearing_out(path: Path, *, missing_ok: bool = False) -> None:
        if not next(left, False):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", wearing_out)
        with pytest.raises(LogBroken, match="Input/output error"):
            prune(tmp_path, keep_seconds=500.0, now=1000.0)

    assert told(tmp_path) == [("run-a", "completed")]
    assert len(prune(tmp_path, keep_seconds=500.0, now=1000.0)) == 1
    assert list(tmp_path.glob("run*")) == []


async def test_pruning_never_removes_what_is_being_written(tmp_path: Path) -> None:
    """Not even when it is told to remove what has not ended."""
    async with DiskStore(tmp_path) as store:
        log = await store.open_log(RunStarted(run_id="run-a", deck="d"))
        await log.append([TurnStarted()])

        def prune_all() -> list[object]:
            return [*prune(tmp_path, keep_seconds=-10, include_interrupted=True)]

        assert await trio.to_thread.run_sync(prune_all) == []
    assert len(prune_all()) == 1


def test_a_run_that_was_gone_on_with_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log is looked at again when nobody can take it over."""
    path = write(tmp_path, "run-a", DONE)
    take_turn = Writers.take_turn

    def resumed_first(self: Writers) -> int | None:
        with path.open("ab") as file:
            file.write(b"more")
        return take_turn(self)

    monkeypatch.setattr(Writers, "take_turn", resumed_first)
    assert prune(tmp_path, keep_seconds=0) == []
    assert path.exists()


@pytest.mark.slow
def test_thousands_of_runs_are_listed_at_once(tmp_path: Path) -> None:
    """A listing of 2,000 reads none of the logs again."""
    for number in range(2000):
        write(tmp_path, f"run-{number}", ANSWERED, DONE)
    assert len(told(tmp_path)) == 2000
    assert len(load_index(tmp_path)) == 2000
    assert len(told(tmp_path)) == 2000
