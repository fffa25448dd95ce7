"""Syncs are done where they count, in place on a fast disk and in threads on others."""

import errno
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from gambit_actors.errors import LogBroken, RequestError
from gambit_actors.run.entries import (
    CallStarted,
    ChildStarted,
    Entry,
    MetaSet,
    RunResumed,
    RunStarted,
)
from gambit_actors.store.disk_logs import DiskLog
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.store.log_lines import read_lines
from gambit_actors.store.syncing import (
    FAST_SECONDS,
    SYNC_THREADS,
    Durability,
    Syncer,
    needs_sync,
)
from tests.store.disks import Disk
from tests.store.logs import ASKED, BATCHES, ENDED, ENTRIES, OVER, START, STARTED

KEPT = MetaSet(key="k", value=1)
CHILD = ChildStarted(run_id="run_2")
HERE = threading.get_ident()


async def synced(disk: Disk, log: DiskLog, entries: Sequence[Entry]) -> int:
    """Append, and say how many syncs that took."""
    before = disk.done["fdatasync"]
    await log.append(entries)
    return disk.done["fdatasync"] - before


async def warmed(disk: Disk, store: DiskStore) -> DiskLog:
    """A log whose next sync is the first since a very slow one."""
    log = await store.open_log(START)
    disk.sync_seconds = 1.0
    await log.append([STARTED])
    disk.sync_seconds = 0.0
    return log


@pytest.mark.spec("CARD-7")
@pytest.mark.parametrize(
    ("entries", "owes", "is_due"),
    [
        ([STARTED], False, True),
        ([ASKED, STARTED, KEPT], False, True),
        ([CallStarted(call_id="c", name="n", kind="action")], False, True),
        ([CHILD], False, True),
        ([ENDED], False, True),
        ([OVER], False, False),
        ([OVER], True, True),
        ([KEPT, OVER], False, True),
        ([ASKED], True, False),
        ([KEPT, RunResumed()], True, False),
        ([], True, False),
    ],
)
def test_what_has_to_be_on_the_disk_before_something_happens(
    entries: list[Entry], *, owes: bool, is_due: bool
) -> None:
    """By pass: before effects and results. By item: always. Or never."""
    assert needs_sync(entries, "pass", owes=owes) == is_due
    assert needs_sync(entries, "item", owes=owes)
    assert not needs_sync(entries, "none", owes=owes)


@pytest.mark.parametrize(
    ("durability", "syncs", "folders"),
    [("pass", [0, 1, 0, 1, 0], 1), ("item", [1] * 5, 1), ("none", [0] * 5, 0)],
)
async def test_a_run_is_synced_as_often_as_it_has_to_be(
    tmp_path: Path, durability: Durability, syncs: list[int], folders: int
) -> None:
    """With a call, by default two: before it begins, and before the answer is told."""
    disk = Disk()
    async with DiskStore(tmp_path, durability=durability, calls=disk.calls) as store:
        log = await store.open_log(START)
        assert [await synced(disk, log, batch) for batch in BATCHES] == syncs
        await log.aclose()

    assert disk.done["fsync"] == folders
    assert disk.done["fdatasync"] == sum(syncs)


@pytest.mark.parametrize("is_kept", [True, False])
async def test_a_store_asks_whether_files_keep_their_names(
    tmp_path: Path, *, is_kept: bool
) -> None:
    """Of new files and of those that are gone on with, folders are synced or not."""
    disk = Disk()
    disk.keeps_names = is_kept
    async with DiskStore(tmp_path, calls=disk.calls) as store:
        log = await store.open_log(START)
        await log.append([STARTED])
        await log.aclose()
        found = await store.reopen_log("run_1")
        await found.log.append([STARTED])

    assert disk.done["fsync"] == (0 if is_kept else 2)
    assert disk.done["fdatasync"] == 2


async def test_what_is_left_is_synced_at_the_end(tmp_path: Path) -> None:
    """A log that is closed, by itself or with its store, is all on the disk."""
    disk = Disk()
    async with DiskStore(tmp_path, calls=disk.calls) as store:
        log = await store.open_log(START)
        assert await synced(disk, log, [ASKED]) == 0
        await log.aclose()
        await log.aclose()
        assert disk.done["fdatasync"] == 1
        other = await store.open_log(RunStarted(run_id="run_2", deck="d"))
        await other.append([KEPT])

    assert disk.done["fdatasync"] == 2


def test_there_are_three_durabilities(tmp_path: Path) -> None:
    """A word that means nothing is not taken for none."""
    with pytest.raises(RequestError, match="'always'"):
        DiskStore(tmp_path, durability="always")  # type: ignore[arg-type]  # the test


async def test_a_fast_disk_is_synced_in_place(tmp_path: Path) -> None:
    """An append then neither gives way to other tasks nor uses a thread."""
    disk = Disk()
    disk.sync_seconds = FAST_SECONDS / 2
    async with DiskStore(tmp_path, calls=disk.calls) as store:
        log = await store.open_log(START)
        had_a_turn = trio.Event()

        async def have_a_turn() -> None:
            had_a_turn.set()
            await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(have_a_turn)
            await log.append([STARTED])
            assert not had_a_turn.is_set()

    assert disk.threads == [HERE]


async def test_runs_that_are_at_work_at_once_are_synced_in_threads(
    tmp_path: Path,
) -> None:
    """Also on a fast disk; one that goes on alone, or ends, is in nobody's way."""
    disk = Disk()
    async with DiskStore(tmp_path, calls=disk.calls) as store:
        one = await store.open_log(START)
        two = await store.open_log(RunStarted(run_id="run_2", deck="d"))
        for log in (one, two, one, two, two):
            await log.append([STARTED])
        await two.append([ENDED, OVER])
        await one.append([ENDED])

    in_place = [thread == HERE for thread in disk.threads]
    assert in_place == [True, False, False, False, True, True, True]


async def test_a_crowd_is_not_alone_because_somebody_ended(tmp_path: Path) -> None:
    """Runs that each write once and end are all synced in threads."""
    disk = Disk()
    async with DiskStore(tmp_path, calls=disk.calls) as store:
        logs = [
            await store.open_log(RunStarted(run_id=f"run_{number}", deck="d"))
            for number in range(4)
        ]
        await logs[3].append([KEPT])
        for log in logs:
            await log.append([ENDED, OVER])

    assert HERE not in disk.threads


async def test_runs_after_each_other_are_each_alone(tmp_path: Path) -> None:
    """A run that begins when the one before has ended is synced in place."""
    disk = Disk()
    async with DiskStore(tmp_path, calls=disk.calls) as store:
        for number in range(4):
            run = RunStarted(run_id=f"run_{number}", deck="d")
            log = await store.open_log(run)
            await log.append([STARTED])
            await log.append([ENDED, OVER])

    assert disk.threads == [HERE] * 8


async def test_a_run_and_the_child_it_waits_for_are_one(tmp_path: Path) -> None:
    """A child writes while its parent waits, before and after a restart: in place."""
    child = RunStarted(run_id="run_2", deck="c", parent_run_id="run_1")
    disk = Disk()
    async with DiskStore(tmp_path, calls=disk.calls) as store:
        parent = await store.open_log(START)
        await parent.append([CHILD])
        log = await store.open_log(child)
        await log.append([STARTED])
    async with DiskStore(tmp_path, calls=disk.calls) as store:
        found = await store.reopen_log("run_1")
        log = (await store.reopen_log("run_2")).log
        await log.append([ENDED, OVER])
        await found.log.append([ENDED, OVER])

    assert disk.threads == [HERE] * 4


async def test_a_slow_disk_is_synced_in_threads_until_it_is_fast_again(
    tmp_path: Path,
) -> None:
    """One slow sync is enough; eight fast ones have to follow."""
    disk = Disk()
    async with DiskStore(tmp_path, calls=disk.calls) as store:
        log = await warmed(disk, store)
        for _ in range(10):
            await log.append([STARTED])

    assert disk.threads[0] == HERE
    assert HERE not in disk.threads[1:9]
    assert disk.threads[9:] == [HERE, HERE]


async def test_other_runs_go_on_while_a_slow_disk_is_synced(tmp_path: Path) -> None:
    """Only who needs the sync waits for it; a log beside it takes entries."""
    disk = Disk()
    async with DiskStore(tmp_path, calls=disk.calls) as store:
        log = await warmed(disk, store)
        other = await store.open_log(RunStarted(run_id="run_2", deck="d"))
        disk.gate.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(log.append, [STARTED])
            await trio.testing.wait_all_tasks_blocked()
            await other.append([ASKED])
            assert disk.done["fdatasync"] == 1
            disk.gate.set()

    assert disk.done["fdatasync"] == 3


async def test_nobody_syncs_in_place_while_others_wait(tmp_path: Path) -> None:
    """A disk that somebody is waiting for is not fast, whatever it was."""
    disk = Disk()
    async with DiskStore(tmp_path, calls=disk.calls) as store:
        log = await warmed(disk, store)
        for _ in range(7):
            await log.append([STARTED])
        other = await store.open_log(RunStarted(run_id="run_2", deck="d"))
        async with trio.open_nursery() as nursery:
            disk.gate.clear()
            nursery.start_soon(log.append, [STARTED])
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(other.append, [STARTED])
            await trio.testing.wait_all_tasks_blocked()
            disk.gate.set()
        await other.append([STARTED])

    assert disk.threads.count(HERE) == 2


async def test_syncs_have_few_threads(tmp_path: Path) -> None:
    """However many logs want to be synced at once."""
    disk = Disk()
    async with DiskStore(tmp_path, calls=disk.calls, max_open_files=4) as store:
        await warmed(disk, store)
        disk.gate.clear()
        async with trio.open_nursery() as nursery:
            for number in range(40):
                run = RunStarted(run_id=f"other_{number}", deck="d")
                nursery.start_soon((await store.open_log(run)).append, [STARTED])
            while disk.waiting < SYNC_THREADS:  # noqa: ASYNC110  # threads wait
                await trio.sleep(0.001)
            await trio.testing.wait_all_tasks_blocked()
            disk.gate.set()

    assert disk.most_waiting == SYNC_THREADS
    assert disk.done["fdatasync"] == 41


async def test_appends_return_in_the_order_in_which_they_were_made(
    tmp_path: Path,
) -> None:
    """Also one that needs no sync waits for those before it that do."""
    disk, returned = Disk(), list[int]()

    async def append(number: int, entry: Entry) -> None:
        await log.append([MetaSet(key="n", value=number), entry])
        returned.append(number)

    async with DiskStore(tmp_path, calls=disk.calls) as store:
        log = await warmed(disk, store)
        disk.gate.clear()
        async with trio.open_nursery() as nursery:
            for number in range(9):
                nursery.start_soon(append, number, STARTED if number % 3 == 0 else KEPT)
                await trio.testing.wait_all_tasks_blocked()
            assert returned == []
            disk.gate.set()

    written = [
        entry.value
        for entry in read_lines((tmp_path / "run_1.jsonl").read_bytes()).entries
        if isinstance(entry, MetaSet) and entry.key == "n"
    ]
    assert returned == written == list(range(9))


@pytest.mark.spec("CARD-7")
async def test_an_append_that_began_is_not_cancelled(tmp_path: Path) -> None:
    """Cancelled in a slow sync, it goes on to its end and returns; the next raises."""
    disk = Disk()
    async with DiskStore(tmp_path, calls=disk.calls) as store:
        log = await warmed(disk, store)
        disk.gate.clear()
        returned = []

        async def append() -> None:
            await log.append([STARTED, KEPT])
            returned.append(1)
            await log.append([KEPT])
            returned.append(2)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(append)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
            disk.gate.set()

        assert returned == [1]
        assert (await store.read_log("run_1")).entries == [
            START,
            STARTED,
            STARTED,
            KEPT,
        ]


async def test_a_sync_that_waits_for_a_thread_is_not_cancelled(
    tmp_path: Path,
) -> None:
    """What is written already is synced before its append returns, in spite of it."""
    disk, returned = Disk(), list[DiskLog]()
    async with DiskStore(tmp_path, calls=disk.calls) as store:
        await warmed(disk, store)
        logs = [
            await store.open_log(RunStarted(run_id=f"other_{number}", deck="d"))
            for number in range(SYNC_THREADS + 1)
        ]
        scope = trio.CancelScope()

        async def append_last() -> None:
            with scope:
                await logs[-1].append([STARTED])
                returned.append(logs[-1])

        disk.gate.clear()
        async with trio.open_nursery() as nursery:
            for log in logs[:-1]:
                nursery.start_soon(log.append, [STARTED])
            while disk.waiting < SYNC_THREADS:  # noqa: ASYNC110  # threads wait
                await trio.sleep(0.001)
            nursery.start_soon(append_last)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
            await trio.testing.wait_all_tasks_blocked()
            assert returned == []
            disk.gate.set()

    assert returned == [logs[-1]]
    assert disk.done["fdatasync"] == SYNC_THREADS + 2


async def test_an_append_that_waits_in_line_can_be_cancelled(tmp_path: Path) -> None:
    """Of what was cancelled before it was written, nothing is in the log."""
    disk = Disk()
    async with DiskStore(tmp_path, calls=disk.calls) as store:
        log = await warmed(disk, store)
        disk.gate.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(log.append, [STARTED])
            await trio.testing.wait_all_tasks_blocked()
            with trio.move_on_after(0) as scope:
                await log.append([KEPT])
            with trio.move_on_after(0.01) as waiting:
                await log.append([KEPT])
            disk.gate.set()
        await log.append([ASKED])

        assert scope.cancelled_caught
        assert waiting.cancelled_caught
        entries = (await store.read_log("run_1")).entries
        assert entries == [START, STARTED, STARTED, ASKED]


@pytest.mark.spec("CARD-7")
@pytest.mark.parametrize("is_slow", [True, False])
async def test_a_failed_sync_breaks_the_log(tmp_path: Path, *, is_slow: bool) -> None:
    """In place and in a thread: it raises, those in line raise, and so do all later."""
    disk = Disk()
    async with DiskStore(tmp_path, calls=disk.calls) as store:
        log = await warmed(disk, store) if is_slow else await store.open_log(START)
        disk.failing = {"fdatasync": errno.EIO}
        if is_slow:
            disk.gate.clear()
        failed: list[LogBroken] = []

        async def append(entry: Entry) -> None:
            try:
                await log.append([entry])
            except LogBroken as problem:
                failed.append(problem)

        async with trio.open_nursery() as nursery:
            for entry in (STARTED, KEPT, ENDED):
                nursery.start_soon(append, entry)
                await trio.testing.wait_all_tasks_blocked()
            disk.gate.set()
        disk.failing = {}
        await append(KEPT)
        await log.aclose()

        assert [problem.errno for problem in failed] == [errno.EIO] * 4
        entries = (await store.read_log("run_1")).entries
        assert KEPT not in entries
        assert ENDED not in entries


async def test_a_sync_survives_that_its_descriptor_is_needed_elsewhere(
    tmp_path: Path,
) -> None:
    """A file that is being synced in a thread may be closed for the sake of others."""
    disk = Disk()
    async with DiskStore(tmp_path, calls=disk.calls, max_open_files=1) as store:
        log = await warmed(disk, store)
        disk.gate.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(log.append, [STARTED])
            await trio.testing.wait_all_tasks_blocked()
            for number in range(5):
                run = RunStarted(run_id=f"other_{number}", deck="d")
                await (await store.open_log(run)).append([KEPT])
            disk.gate.set()
        await log.append([STARTED])

    path = tmp_path / "run_1.jsonl"
    assert read_lines(path.read_bytes()).entries == [START] + [STARTED] * 3


def test_a_disk_is_taken_to_be_fast_at_first() -> None:
    """Until something else is known, syncs are done in place."""
    assert Syncer(Disk().calls).is_in_place
    assert len(ENTRIES) == 1 + sum(map(len, BATCHES))
