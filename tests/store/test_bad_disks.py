"""A disk that is full, closed or gone ends a log in a way that can be gone on from."""

import errno
import json
import os
import signal
from functools import partial
from pathlib import Path

import pytest
import trio

from gambit_actors.errors import LogBroken, LogLost
from gambit_actors.run.entries import MetaSet, RunResumed, RunStarted
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.store.log_lines import read_lines
from tests.store.disks import Disk
from tests.store.log_writer import heard, numbers_in, whole, writer
from tests.store.logs import ASKED, OVER, START, STARTED

KEPT = MetaSet(key="k", value=1)


@pytest.mark.spec("CARD-7")
async def test_a_full_disk_ends_a_log_and_no_other(tmp_path: Path) -> None:
    """The append raises, so do all later ones; what was kept is there to go on with."""
    disk = Disk()
    async with DiskStore(tmp_path, calls=disk.calls) as store:
        log = await store.open_log(START)
        await log.append([ASKED])
        disk.room = 50
        for _ in range(2):
            with pytest.raises(LogBroken) as caught:
                await log.append([STARTED, KEPT])
            assert caught.value.errno == errno.ENOSPC
        disk.room = None
        found = await store.reopen_log("run_1")
        await found.log.append([KEPT])
        with pytest.raises(LogBroken):
            await log.append([STARTED])
        await log.aclose()

        assert found.torn is None
        contents = await store.read_log("run_1")
        assert contents.entries == [START, ASKED, RunResumed(), KEPT]


def test_an_interrupt_does_not_come_in_the_middle(tmp_path: Path) -> None:
    """Ctrl+C while a batch is written waits until all is known of it."""
    disk, steps = Disk(), list[str]()
    disk.piece = 9
    disk.on_write = partial(signal.raise_signal, signal.SIGINT)

    async def run() -> None:
        async with DiskStore(tmp_path, calls=disk.calls) as store:
            log = await store.open_log(START)
            try:
                await log.append([STARTED])
                steps.append("appended")
                await trio.lowlevel.checkpoint()
            finally:
                disk.piece, disk.on_write = None, bool
                with trio.CancelScope(shield=True):
                    await log.append([OVER])

    with pytest.raises(KeyboardInterrupt):
        trio.run(run)

    assert steps == ["appended"]
    contents = read_lines((tmp_path / "run_1.jsonl").read_bytes())
    assert contents.entries == [START, STARTED, OVER]


@pytest.mark.slow
@pytest.mark.spec("CARD-7")
def test_a_limit_of_the_system_is_met_in_the_middle_of_a_batch(tmp_path: Path) -> None:
    """A real short write, then a refusal: all that was told is there, and no more."""
    for limit in (3000, 3001, 3500, 5000):
        run_id = f"run_{limit}"
        with writer("fill", tmp_path, run_id, limit) as process:
            *done, last = [json.loads(line) for line in heard(process)]
            assert process.wait() == 0
        contents = read_lines((tmp_path / f"{run_id}.jsonl").read_bytes())

        assert last == {"errno": errno.EFBIG}
        assert numbers_in(contents) == whole(fact["done"] for fact in done)
        assert contents.torn is None


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
async def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """A store in a folder that is only to be read does not open."""
    tmp_path.chmod(0o500)  # noqa: ASYNC240  # at once
    with pytest.raises(LogBroken, match="cannot be used"):
        async with DiskStore(tmp_path):
            pass


async def test_a_folder_that_is_a_file_is_said(tmp_path: Path) -> None:
    """A store does not open where no folder can be."""
    (tmp_path / "runs").write_text("")
    for folder in (tmp_path / "runs", tmp_path / "runs" / "deeper"):
        with pytest.raises(LogBroken, match="see to what is there") as caught:
            async with DiskStore(folder):
                pass
        assert caught.value.path == str(folder)


async def test_a_folder_that_is_removed_meanwhile_is_said(tmp_path: Path) -> None:
    """Logs in it are lost, new ones cannot be made, and the store can be closed."""
    folder = tmp_path / "runs"
    async with DiskStore(folder) as store:
        log = await store.open_log(START)
        await log.append([ASKED])
        new = await store.open_log(RunStarted(run_id="run_2", deck="d"))
        folder.rename(tmp_path / "moved")
        for path in sorted((tmp_path / "moved").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        with pytest.raises(LogLost, match="was removed"):
            await log.append([KEPT])
        with pytest.raises(LogBroken, match="see whether its folder was removed"):
            await new.append([KEPT])
        with pytest.raises(LogBroken, match="cannot be used"):
            await store.reopen_log("run_1")
