"""Ours with its log in memory, or on disk in each of the ways there are.

The runs are those of `benchmarks.our_runs`: the same decks, model and tool, with traces
on. The variant that is timed has a clock around each call that writes a log.
"""

import os
import tempfile
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from benchmarks.disk_clock import DiskClock
from benchmarks.log_cases import (
    CREATE,
    FOLDER_SYNC,
    MEMORY,
    PASS,
    SYNC,
    TIMED,
    WRITE,
)
from benchmarks.our_runs import KEPT_EVENTS, FakeModel, on_tool, write_decks
from benchmarks.run_cases import ANSWER, MESSAGE, RunOnce, Workload
from gambit_actors import DiskReader, RunOptions, open_runtime
from gambit_actors.actors.memory_log import MemoryStore
from gambit_actors.run.ports import LogStore
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.store.log_files import FileCalls
from gambit_actors.trace.events import TraceEvent

LOOP = "trio"

CLOCK = DiskClock()
"""Of the variant that is timed."""


def timed_calls() -> FileCalls:
    """The way to the disk, with the clock in it."""
    plain = FileCalls()

    def opened(path: str, flags: int, mode: int) -> int:
        if flags & os.O_CREAT:
            return CLOCK.timed(CREATE, lambda: plain.open(path, flags, mode))
        return plain.open(path, flags, mode)

    return FileCalls(
        open=opened,
        write=lambda file, data: CLOCK.timed(WRITE, lambda: plain.write(file, data)),
        fdatasync=lambda file: CLOCK.timed(SYNC, lambda: plain.fdatasync(file)),
        fsync=lambda file: CLOCK.timed(FOLDER_SYNC, lambda: plain.fsync(file)),
    )


@asynccontextmanager
async def open_store(name: str, folder: Path) -> AsyncIterator[LogStore]:
    """Open the store of a variant, by its whole name."""
    if name == MEMORY:
        yield MemoryStore()
        return
    durability = PASS if name == TIMED else name
    async with DiskStore(
        folder,
        durability=durability.rpartition(", ")[2],  # type: ignore[arg-type]  # one of the three
        calls=timed_calls() if name == TIMED else FileCalls(),
    ) as store:
        yield store


@asynccontextmanager
async def open_runs(workload: Workload, variant: str, /) -> AsyncIterator[RunOnce]:
    """Write and load the decks, open store and runtime: none of it is on the clock."""
    trace = deque[TraceEvent](maxlen=KEPT_EVENTS)
    async with AsyncExitStack() as stack:
        folder = Path(tempfile.mkdtemp())
        write_decks(folder / "decks", workload, is_execute=False)
        store = await stack.enter_async_context(
            open_store(f"ours, {variant}", folder / "logs")
        )
        runtime = await stack.enter_async_context(
            open_runtime(
                FakeModel(workload),
                reader=DiskReader(folder / "decks"),
                store=store,
                sinks=[trace.append],
                options=RunOptions(on_tool=on_tool),
            )
        )
        deck = await runtime.load("PROMPT.md")

        async def run_once() -> None:
            result = await runtime.run(deck, message=MESSAGE)
            assert result.text == ANSWER

        yield run_once
