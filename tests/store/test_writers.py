"""Of several processes one writes a log, and the next takes over when it is gone."""

import json
import os
import re
import signal
import socket
import sys
from pathlib import Path

import pytest
import trio

from gambit_actors.errors import LogBroken, LogInUse
from gambit_actors.run.entries import MetaSet, RunEnded, RunResumed
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.store.log_lines import read_lines
from gambit_actors.store.writers import Writers
from tests.store.log_writer import RESUMED_FROM, heard, numbers_in, whole, writer
from tests.store.logs import ASKED, OVER, START

KEPT = MetaSet(key="k", value=1)


def opened(folder: Path) -> Writers:
    """One more store in a folder, as far as its lock is concerned."""
    writers = Writers(folder)
    writers.prepare()
    turn = writers.take_turn()
    assert turn is not None
    writers.open()
    writers.end_turn(turn)
    return writers


def locks(folder: Path) -> list[str]:
    """The names of all lock files."""
    return sorted(path.name for path in (folder / ".writers").glob("*.lock"))


def test_a_lock_file_says_whose_it_is(tmp_path: Path) -> None:
    """Host, process, start of the machine and time, for whoever looks; then it goes."""
    writers = opened(tmp_path)
    (path,) = (tmp_path / ".writers").glob("*.lock")
    document = json.loads(path.read_text())

    assert path.stem == writers.id
    assert (document["host"], document["pid"]) == (socket.gethostname(), os.getpid())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", document["since"])
    assert document.keys() <= {"host", "pid", "since", "boot_id"}
    assert path.stat().st_mode & 0o777 == 0o600
    writers.close()
    writers.close()
    assert locks(tmp_path) == []


def test_every_store_has_an_id_of_its_own(tmp_path: Path) -> None:
    """Two stores of one process in one folder are two writers, and see each other."""
    one, two = opened(tmp_path), opened(tmp_path)

    assert one.id != two.id
    assert two.holder(one.id) == one.owner
    one.close()
    assert two.holder(one.id) is None
    two.close()


def test_locks_of_the_dead_are_removed(tmp_path: Path) -> None:
    """Files that nobody holds are cleaned up by the next store; held ones stay."""
    living = opened(tmp_path)
    (tmp_path / ".writers" / "dead.1.2.lock").write_text("{}")
    other = opened(tmp_path)

    assert locks(tmp_path) == sorted([f"{living.id}.lock", f"{other.id}.lock"])
    living.close()
    other.close()


def test_a_lock_that_cannot_be_read_is_held_all_the_same(tmp_path: Path) -> None:
    """What is in the file is for people; the lock on it is what counts."""
    one, two = opened(tmp_path), opened(tmp_path)
    (tmp_path / ".writers" / f"{one.id}.lock").write_text("garbage")

    holder = two.holder(one.id)

    assert holder is not None
    assert holder.pid == 0
    one.close()
    two.close()


def test_a_lock_that_is_not_ours_to_open_is_held_and_left_alone(
    tmp_path: Path,
) -> None:
    """It keeps no store from opening, and nobody is told that its writer is gone."""
    (tmp_path / ".writers").mkdir()
    folder, link = (tmp_path / ".writers" / f"{name}.lock" for name in "xy")
    folder.mkdir()
    link.symlink_to(link)
    writers = opened(tmp_path)

    assert writers.holder("x") is not None
    assert writers.holder("y") is not None
    assert locks(tmp_path) == sorted([f"{writers.id}.lock", "x.lock", "y.lock"])
    writers.close()


@pytest.mark.parametrize("name", ["", "../../a", "a/b", ".a", "a\0b", "a" * 200, "é"])
def test_a_log_cannot_name_any_file_as_its_writer(tmp_path: Path, name: str) -> None:
    """What is no id of ours is nobody, and no path."""
    writers = opened(tmp_path)
    (tmp_path / "a.lock").write_text("")
    assert writers.holder(name) is None
    writers.close()


def test_there_is_one_turn_in_a_folder(tmp_path: Path) -> None:
    """Who has the turn keeps all others from it, also in the same process."""
    one, two = opened(tmp_path), opened(tmp_path)
    turn = one.take_turn()
    assert turn is not None
    assert two.take_turn() is None
    assert one.take_turn() is None
    one.end_turn(turn)
    again = two.take_turn()
    assert again is not None
    two.end_turn(again)
    one.close()
    two.close()


def test_without_fcntl_nobody_is_kept_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system has no such locks, all else works, and nobody is found."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    one, two = opened(tmp_path), opened(tmp_path)

    assert two.holder(one.id) is None
    one.close()
    two.close()


async def test_a_turn_is_waited_for_and_can_be_cancelled(tmp_path: Path) -> None:
    """A store does not open while somebody else has the turn, and does after that."""
    other = opened(tmp_path)
    turn = other.take_turn()
    assert turn is not None
    with trio.move_on_after(0.1) as scope:
        async with DiskStore(tmp_path):
            pass
    assert scope.cancelled_caught

    async def open_and_close() -> None:
        async with DiskStore(tmp_path):
            assert len(locks(tmp_path)) == 2

    async with trio.open_nursery() as nursery:
        nursery.start_soon(open_and_close)
        await trio.sleep(0.05)
        assert len(locks(tmp_path)) == 1
        other.end_turn(turn)
    other.close()
    assert locks(tmp_path) == []


async def test_a_run_is_open_once_in_a_process(tmp_path: Path) -> None:
    """Neither the same store nor another one of the process opens it again."""
    async with DiskStore(tmp_path) as store, DiskStore(tmp_path) as other:
        log = await store.open_log(START)
        with pytest.raises(LogInUse):
            await store.open_log(START)
        await log.append([ASKED])
        for one in (store, other):
            with pytest.raises(LogInUse) as caught:
                await one.reopen_log("run_1")
            assert caught.value.run_id == "run_1"
            assert caught.value.host == socket.gethostname()
            assert caught.value.pid == os.getpid()
            assert caught.value.since in str(caught.value)
        before = (tmp_path / "run_1.jsonl").read_bytes()
        await log.append([KEPT])
        assert (tmp_path / "run_1.jsonl").read_bytes().startswith(before)


async def test_two_of_one_new_run_are_refused(tmp_path: Path) -> None:
    """Whoever writes first has the file; the other cannot begin in it."""
    async with DiskStore(tmp_path) as store, DiskStore(tmp_path) as other:
        one, two = await store.open_log(START), await other.open_log(START)
        await two.append([KEPT])
        with pytest.raises(LogBroken, match="resume that run, or choose another id"):
            await one.append([ASKED])

    assert read_lines((tmp_path / "run_1.jsonl").read_bytes()).entries == [START, KEPT]


async def test_two_who_reopen_at_once_do_not_both_get_it(tmp_path: Path) -> None:
    """Of many that take over a log of the dead, in two stores, exactly one does."""
    async with DiskStore(tmp_path) as store:
        log = await store.open_log(START)
        await log.append([ASKED])
    outcomes: list[object] = []

    async def reopen(one: DiskStore) -> None:
        try:
            outcomes.append(await one.reopen_log("run_1"))
        except LogInUse as problem:
            outcomes.append(problem)

    async with DiskStore(tmp_path) as one, DiskStore(tmp_path) as two:
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(reopen, one)
                nursery.start_soon(reopen, two)
        contents = await one.read_log("run_1")

    assert sum(isinstance(outcome, LogInUse) for outcome in outcomes) == 9
    assert contents.entries == [START, ASKED, RunResumed()]


async def test_a_run_that_ended_is_nobodys(tmp_path: Path) -> None:
    """After its last entry another store may go on with it, and it was not lost."""
    async with DiskStore(tmp_path) as store, DiskStore(tmp_path) as other:
        log = await store.open_log(START)
        await log.append([ASKED])
        await log.append([OVER])
        found = await other.reopen_log("run_1")
        assert found.previous_writer is None
        await found.log.append([KEPT])
        with pytest.raises(LogInUse):
            await store.reopen_log("run_1")
        await found.log.append([RunEnded(status="completed")])
        again = await store.reopen_log("run_1")
        assert [type(entry) for entry in again.entries].count(RunResumed) == 2


async def test_a_store_goes_on_with_what_it_let_go_of(tmp_path: Path) -> None:
    """A log that was closed without its run ending can be opened by its own store."""
    async with DiskStore(tmp_path) as store, DiskStore(tmp_path) as other:
        log = await store.open_log(START)
        await log.append([ASKED])
        await log.aclose()
        with pytest.raises(LogInUse):
            await other.reopen_log("run_1")
        found = await store.reopen_log("run_1")
        await found.log.append([KEPT])

    assert found.previous_writer is None
    assert found.entries == [START, ASKED, RunResumed()]


@pytest.mark.slow
@pytest.mark.spec("CARD-7")
def test_another_process_takes_over_when_the_first_was_killed(tmp_path: Path) -> None:
    """Refused while it lives, also while it is stopped; then nothing is lost.

    No line stands among those of another process, and the checksums fit throughout.
    """
    with writer("begin", tmp_path, "run_1") as first:
        assert json.loads(heard(first).readline()) == {"done": 0}
        for stop in (False, True):
            if stop:
                first.send_signal(signal.SIGSTOP)
            with writer("resume", tmp_path, "run_1") as second:
                assert json.loads(heard(second).readline()) == {"in_use": first.pid}
        first.kill()
        done = len(heard(first).readlines()) + 1
    with writer("resume", tmp_path, "run_1") as third:
        resumed = json.loads(heard(third).readline())
        for _ in range(20):
            heard(third).readline()

    contents = read_lines((tmp_path / "run_1.jsonl").read_bytes())
    numbers = numbers_in(contents)
    own = [number for number in numbers if number < RESUMED_FROM]
    assert own == numbers[: len(own)] == whole(range(own[-1] + 1))
    assert own[-1] >= done - 1
    assert set(range(RESUMED_FROM, RESUMED_FROM + 20)) <= set(numbers)
    assert contents.entries[resumed["entries"] - 1] == RunResumed()
    writers = [line for line in contents.lines if line.writer is not None]
    assert resumed["previous"] == writers[0].writer
    assert f".{first.pid}." in resumed["previous"]
    assert [line.seq for line in writers] == [0, resumed["entries"] - 1]
    assert len(locks(tmp_path)) == 1  # That of the third, which was killed as well.


@pytest.mark.slow
def test_a_live_process_is_seen_by_this_one(tmp_path: Path) -> None:
    """The error names the process that has the log, and where it is."""

    async def reopen() -> None:
        async with DiskStore(tmp_path) as store:
            with pytest.raises(LogInUse) as caught:
                await store.reopen_log("run_1")
            assert caught.value.pid == process.pid
            process.kill()
            process.wait()
            found = await store.reopen_log("run_1")
            assert f".{process.pid}." in (found.previous_writer or "")

    with writer("begin", tmp_path, "run_1") as process:
        heard(process).readline()
        trio.run(reopen)
