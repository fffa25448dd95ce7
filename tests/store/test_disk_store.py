"""A store keeps runs in a folder, and gives them back as they were."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
import trio
from hypothesis import HealthCheck, given, settings

from gambit_actors.errors import (
    CorruptLog,
    GambitBug,
    NoSuchRun,
    NotWritable,
    RequestError,
)
from gambit_actors.run.entries import Entry, MetaSet, RunResumed, RunStarted
from gambit_actors.run.ports import ItemLog, LogStore
from gambit_actors.run.states import state_from_entries
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.store.log_lines import Torn, read_lines
from gambit_actors.store.syncing import Durability
from tests.run.entry_strategies import batches
from tests.store.disks import Disk
from tests.store.logs import (
    ASKED,
    BATCHES,
    ENDED,
    ENTRIES,
    OVER,
    START,
    STARTED,
    log_of,
)

KEPT = MetaSet(key="k", value=1)


async def kept(folder: Path, run: Iterable[list[Entry]] = BATCHES) -> Path:
    """Keep a run, and say where."""
    async with DiskStore(folder, durability="none") as store:
        log = await store.open_log(START)
        for batch in run:
            await log.append(batch)
    return folder / "run_1.jsonl"


@pytest.mark.spec("CARD-7")
async def test_a_run_is_kept_and_read_back(tmp_path: Path) -> None:
    """What a run appended is in its file, the start first, and makes the same state."""
    async with DiskStore(tmp_path / "a" / "runs") as disk:
        store: LogStore = disk
        log: ItemLog = await store.open_log(START)
        assert not disk.path_of("run_1").exists()
        for batch in BATCHES:
            await log.append(batch)
        await log.aclose()
        contents = await disk.read_log("run_1")

    assert disk.path_of("run_1") == tmp_path / "a" / "runs" / "run_1.jsonl"
    assert contents.entries == ENTRIES
    assert contents.torn is None
    assert state_from_entries(contents.entries).is_over


async def test_the_first_batch_is_one_write(tmp_path: Path) -> None:
    """The start of a run goes to the disk with the entries after it."""
    disk = Disk()
    async with DiskStore(tmp_path, durability="none", calls=disk.calls) as store:
        log = await store.open_log(START)
        await log.append([])
        assert disk.done == {}
        await log.append([ASKED, KEPT])
        assert disk.done == {"open": 1, "write": 1}


async def test_only_its_owner_can_read_what_is_kept(tmp_path: Path) -> None:
    """Logs, locks and a folder that is made are closed to others on the machine."""
    async with DiskStore(tmp_path / "runs") as store:
        await (await store.open_log(START)).append([ASKED])
        modes = {
            path.name: stat.S_IMODE(path.stat().st_mode)
            for path in [store.folder, *store.folder.rglob("*")]
        }

    assert modes.pop("runs") == modes.pop(".writers") == 0o700
    assert set(modes.values()) == {0o600}
    assert len(modes) == 3


@pytest.mark.slow
@pytest.mark.spec("CARD-7")
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(run=batches())
def test_whatever_is_appended_is_read_back(
    run: list[list[Entry]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any entries in any batches, across a restart, come back in order."""
    folder = tmp_path_factory.mktemp("runs")
    run = [[STARTED, *batch, KEPT] for batch in run]  # No end, so it goes on.

    async def keep() -> list[Entry]:
        entries: list[Entry] = []
        for batch in run:
            async with DiskStore(folder) as store:
                if entries:
                    found = await store.reopen_log("run_1")
                    assert found.entries == [*entries, RunResumed()]
                    entries, log = found.entries, found.log
                else:
                    entries, log = [START], await store.open_log(START)
                await log.append(batch)
                entries += batch
        return entries

    expected = trio.run(keep)
    path = folder / "run_1.jsonl"
    assert (read_lines(path.read_bytes()).entries if run else []) == expected


async def test_a_run_goes_on_in_another_store(tmp_path: Path) -> None:
    """Reopened, it has all its entries, one that says so, and takes more."""
    path = await kept(tmp_path, BATCHES[:2])
    async with DiskStore(tmp_path) as store:
        found = await store.reopen_log("run_1")
        for batch in BATCHES[2:]:
            await found.log.append(batch)
    contents = read_lines(path.read_bytes())

    assert found.entries == [*ENTRIES[:7], RunResumed()]
    assert found.torn is None
    assert found.previous_writer == contents.lines[0].writer
    assert contents.entries == [*found.entries, *ENTRIES[7:]]
    assert [line.seq for line in contents.lines if line.writer] == [0, 7]
    assert contents.writer != found.previous_writer


@pytest.mark.spec("CARD-7")
async def test_what_a_crash_left_is_cut_off_and_said(tmp_path: Path) -> None:
    """Half a batch is gone from the disk when the run goes on; reading changes nothing.

    What was dropped is told to both.
    """
    path = await kept(tmp_path, BATCHES[:2])
    whole_log = path.read_bytes()
    size = len(b"".join(whole_log.splitlines(keepends=True)[:3]))
    path.write_bytes(whole_log[:-9])
    torn = Torn(
        offset=size, bytes_dropped=len(whole_log) - 9 - size, reason="part of a line"
    )

    store = DiskStore(tmp_path)
    assert (await store.read_log("run_1")).torn == torn
    assert path.read_bytes() == whole_log[:-9]
    async with store:
        found = await store.reopen_log("run_1")
    assert found.torn == torn
    assert found.entries == [*ENTRIES[:3], RunResumed()]
    assert read_lines(path.read_bytes()).entries == found.entries


async def test_damage_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """A damaged log is neither read nor gone on with, and nobody holds it then."""
    path = await kept(tmp_path)
    damaged = path.read_bytes().replace(b"Where is it?", b"Where is he?")
    path.write_bytes(damaged)
    async with DiskStore(tmp_path) as store:
        for attempt in (store.reopen_log, store.read_log, store.reopen_log):
            with pytest.raises(CorruptLog) as caught:
                await attempt("run_1")
            assert (caught.value.path, caught.value.line) == (str(path), 3)

    assert path.read_bytes() == damaged


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (RunStarted(run_id="run_2", deck="d"), "it is the log of run run_2"),
        (KEPT, "it does not begin with run.started"),
    ],
)
async def test_a_file_under_another_name_is_not_that_run(
    tmp_path: Path, first: Entry, reason: str
) -> None:
    """A log that was renamed, or is of no run, is refused."""
    (tmp_path / "run_1.jsonl").write_bytes(b"".join(log_of([[first, OVER]])))
    async with DiskStore(tmp_path) as store:
        for attempt in (store.read_log, store.reopen_log):
            with pytest.raises(CorruptLog, match=reason):
                await attempt("run_1")


async def test_a_run_that_is_not_there_is_said(tmp_path: Path) -> None:
    """No file, an empty one, and one with half a first batch: there is no run."""
    async with DiskStore(tmp_path) as store:
        with pytest.raises(NoSuchRun) as caught:
            await store.read_log("run_1")
        assert (caught.value.run_id, caught.value.folder) == ("run_1", str(tmp_path))
        for data in (None, b"", b'{"seq":0,"ts'):
            if data is not None:
                store.path_of("run_1").write_bytes(data)
                assert (await store.read_log("run_1")).entries == []
            with pytest.raises(NoSuchRun):
                await store.reopen_log("run_1")

    with pytest.raises(NoSuchRun):
        await DiskStore(tmp_path / "gone").read_log("run_1")


@pytest.mark.parametrize(
    "run_id", ["", ".", "../run", "a/b", "a.b", "a b", "é", "a\0", "a" * 129, "a\n"]
)
async def test_a_run_id_is_never_a_path(tmp_path: Path, run_id: str) -> None:
    """What could be anything but the name of a file is no id."""
    async with DiskStore(tmp_path) as store:
        with pytest.raises(RequestError, match="is not the id of a run"):
            store.path_of(run_id)
        with pytest.raises(RequestError):
            await store.open_log(RunStarted(run_id=run_id, deck="d"))
        for attempt in (store.reopen_log, store.read_log):
            with pytest.raises(RequestError):
                await attempt(run_id)
        assert await store.run_ids() == []


async def test_all_runs_are_listed(tmp_path: Path) -> None:
    """Roots and children alike, by id; other files are passed over."""
    async with DiskStore(tmp_path) as store:
        for run_id in ("b", "a", "a-1_B"):
            run = RunStarted(run_id=run_id, deck="d", root_run_id="r")
            await (await store.open_log(run)).append([ASKED])
        (tmp_path / "notes.txt").touch()
        (tmp_path / "b.copy.jsonl").touch()
        assert await store.run_ids() == ["a", "a-1_B", "b"]

    assert await DiskStore(tmp_path / "gone").run_ids() == []


async def test_a_store_is_used_while_it_is_open(tmp_path: Path) -> None:
    """Before, after, and a second time at once: a mistake, said as one."""
    store = DiskStore(tmp_path)
    for _ in range(2):
        with pytest.raises(GambitBug):
            await store.open_log(START)
        with pytest.raises(GambitBug):
            await store.reopen_log("run_1")
        async with store:
            log = await store.open_log(RunStarted(run_id="r", deck="d"))
            with pytest.raises(GambitBug):
                await store.__aenter__()
        with pytest.raises(GambitBug):
            await log.append([ASKED])


async def test_nothing_comes_after_the_end(tmp_path: Path) -> None:
    """A log that ended, or was closed, takes no more."""
    async with DiskStore(tmp_path) as store:
        for number, close in enumerate((True, False)):
            run = RunStarted(run_id=f"run_{number}", deck="d")
            log = await store.open_log(run)
            await log.append([ENDED] if close else [ENDED, OVER])
            if close:
                await log.aclose()
            with pytest.raises(GambitBug, match="was let go of"):
                await log.append([ASKED])
            await log.aclose()


async def test_a_cancelled_append_leaves_nothing(tmp_path: Path) -> None:
    """Who is cancelled before writing has not written."""
    async with DiskStore(tmp_path) as store:
        log = await store.open_log(START)
        with trio.CancelScope() as scope:
            scope.cancel()
            await log.append([ASKED])
        assert scope.cancelled_caught
        assert await store.run_ids() == []
        await log.append([KEPT])
        assert (await store.read_log("run_1")).entries == [START, KEPT]


async def test_an_entry_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    """The batch is refused, and the log goes on as if it had not been asked."""
    async with DiskStore(tmp_path) as store:
        log = await store.open_log(START)
        with pytest.raises(NotWritable):
            await log.append([ASKED, MetaSet(key="k", value=float("nan"))])
        await log.append([KEPT])
        assert (await store.read_log("run_1")).entries == [START, KEPT]


async def test_times_never_go_backwards(tmp_path: Path) -> None:
    """A clock that is set back stands still, also across a restart."""
    times = iter([9.0, 5.0, 4.0, 10.0])

    def clock() -> float:
        return next(times)

    async with DiskStore(tmp_path, clock=clock) as store:
        log = await store.open_log(START)
        await log.append([ASKED])
        await log.append([KEPT])
    async with DiskStore(tmp_path, clock=clock) as store:
        found = await store.reopen_log("run_1")
        await found.log.append([KEPT])
        lines = (await store.read_log("run_1")).lines

    assert [line.ts for line in lines] == [9.0, 9.0, 9.0, 9.0, 10.0]


async def test_thousands_of_logs_are_open_with_few_files(tmp_path: Path) -> None:
    """Far more logs live at once than a process may have files open."""
    async with DiskStore(tmp_path, durability="none", max_open_files=16) as store:
        logs = [
            await store.open_log(RunStarted(run_id=f"run_{number}", deck="d"))
            for number in range(1000)
        ]
        for _ in range(2):
            for log in logs:
                await log.append([KEPT])
            assert len(os.listdir("/proc/self/fd")) < 100  # noqa: PTH208
        for log in logs:
            await log.append([OVER])
        contents = [await store.read_log(log.run_id) for log in logs[::100]]

    assert all(len(found.entries) == 4 for found in contents)


@pytest.mark.slow
async def test_a_large_log_is_read_in_pieces(tmp_path: Path) -> None:
    """A log of many megabytes with long lines comes back whole."""
    large = MetaSet(key="k", value="x" * 3_000_000)
    await kept(tmp_path, [[large, KEPT]] * 4)

    contents = await DiskStore(tmp_path).read_log("run_1")
    assert contents.entries == [START] + [large, KEPT] * 4


async def test_leaving_a_store_is_not_cancelled(tmp_path: Path) -> None:
    """What it owes the disk is synced, and its lock is gone, however it is left."""
    disk = Disk()
    with trio.CancelScope() as scope:
        async with DiskStore(tmp_path, calls=disk.calls) as store:
            for number in range(3):
                run = RunStarted(run_id=f"run_{number}", deck="d")
                await (await store.open_log(run)).append([KEPT])
            assert disk.done["fdatasync"] == 0
            scope.cancel()

    assert disk.done["fdatasync"] == 3
    assert list((tmp_path / ".writers").glob("*.lock")) == []


@pytest.mark.parametrize(
    ("durability", "synced"), [("pass", ["", "a", "a/b"]), ("none", [])]
)
async def test_the_names_of_folders_that_are_made_are_synced(
    tmp_path: Path, durability: Durability, synced: list[str]
) -> None:
    """Else a crash of the machine could take a store along with all that is in it."""
    opened: list[str] = []

    def opening(path: str, flags: int, mode: int) -> int:
        opened.append(path)
        return os.open(path, flags, mode)

    calls = msgspec.structs.replace(Disk().calls, open=opening)
    async with DiskStore(tmp_path / "a/b/c", durability=durability, calls=calls):
        pass

    assert sorted(opened) == [str(tmp_path / folder) for folder in synced]
