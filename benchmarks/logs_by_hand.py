"""The floor with a log: what somebody would write who has an afternoon.

It is kept where it counts: before a call begins and before an answer is shown. In
SQLite that is one row for each entry, and a commit; the journal is a write-ahead log.
With FULL each commit is synced; with NORMAL it is not, and may be gone when the machine
goes down. In a file it is a line for each entry, a write and an fdatasync; all runs
share the file, and nobody could find one again. That is the least there is to wait for.
"""

import itertools
import os
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

import msgspec
import trio

from benchmarks.bare_trio import PATIENCE_SECONDS, Agent, Item
from benchmarks.disk_clock import DiskClock
from benchmarks.log_cases import BY_HAND, FILE, FILE_TIMED, SYNC
from benchmarks.run_cases import ANSWER, MESSAGE, RunOnce, Workload

LOOP = "trio"

_SCHEMA = """
CREATE TABLE entries (
    run_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    entry BLOB NOT NULL,
    PRIMARY KEY (run_id, seq)
)
"""
_INSERT = "INSERT INTO entries VALUES (?, ?, ?)"
CLOCK = DiskClock()
"""Of the variant that is timed."""

_encode = msgspec.json.Encoder().encode


def connect(folder: Path, synchronous: str) -> sqlite3.Connection:
    """Make a database for logs."""
    connection = sqlite3.connect(folder / "logs.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={synchronous}")
    connection.execute(_SCHEMA)
    return connection


class Kept(Protocol):
    """The log of one run."""

    def add(self, entry: bytes) -> None:
        """Add an entry to what is kept next."""

    def commit(self) -> None:
        """Keep what was added."""


class Lines:
    """The log of one run in a file that is shared with all others."""

    def __init__(self, file: int, sync: Callable[[int], None]) -> None:
        self._file = file
        self._sync = sync
        self._waiting: list[bytes] = []

    def add(self, entry: bytes) -> None:
        """Add an entry to what is written next."""
        self._waiting.append(entry)

    def commit(self) -> None:
        """Write what was added, and wait for the disk."""
        os.write(self._file, b"\n".join([*self._waiting, b""]))
        self._sync(self._file)
        self._waiting = []


class Rows:
    """The log of one run in a database."""

    def __init__(self, connection: sqlite3.Connection, run_id: str) -> None:
        self._connection = connection
        self._run_id = run_id
        self._seqs = itertools.count()
        self._waiting: list[tuple[str, int, bytes]] = []

    def add(self, entry: bytes) -> None:
        """Add an entry to what is committed next."""
        self._waiting.append((self._run_id, next(self._seqs), entry))

    def commit(self) -> None:
        """Keep what was added, all of it or nothing."""
        self._connection.execute("BEGIN")
        self._connection.executemany(_INSERT, self._waiting)
        self._connection.execute("COMMIT")
        self._waiting = []


class KeptAgent(Agent):
    """An actor that keeps what happens.

    Args:
        new_log: gives the log of a new run.
    """

    def __init__(
        self,
        new_log: Callable[[], Kept],
        *,
        calls: tuple[str, ...],
        model_seconds: float,
        child: "KeptAgent | None" = None,
    ) -> None:
        super().__init__(calls, model_seconds, child)
        self._new_log = new_log

    async def _work(self, items: list[Item]) -> str:
        log = self._new_log()

        def keep(*entries: Item) -> None:
            for entry in entries:
                log.add(_encode(entry))

        keep({"type": "run.started"}, {"type": "turn.started"}, *items)
        while True:
            output = await self._ask_model(items)
            items += output
            keep({"type": "model.answered"}, *output)
            calls = [item for item in output if item["type"] == "function_call"]
            if not calls:
                text: str = output[-1]["text"]
                keep({"type": "turn.ended", "text": text}, {"type": "run.ended"})
                log.commit()
                return text
            keep(*({"type": "call.started", "call_id": c["call_id"]} for c in calls))
            log.commit()
            outputs = await self._carry_out(calls)
            items += outputs
            keep(*outputs)


def open_logs(folder: Path, variant: str, stack: AsyncExitStack) -> Callable[[], Kept]:
    """Make the file or the database; gives what begins a log there."""
    if f"{BY_HAND}, {variant}" in (FILE, FILE_TIMED):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        file = os.open(folder / "logs.jsonl", flags, 0o600)
        stack.callback(os.close, file)
        sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)
        if variant == FILE_TIMED.partition(", ")[2]:
            return lambda: Lines(file, lambda f: CLOCK.timed(SYNC, lambda: sync(f)))
        return lambda: Lines(file, sync)
    connection = connect(folder, variant.rpartition(" ")[2])
    stack.callback(connection.close)
    run_ids = map("run_{}".format, itertools.count())
    return lambda: Rows(connection, next(run_ids))


@asynccontextmanager
async def open_runs(workload: Workload, variant: str, /) -> AsyncIterator[RunOnce]:
    """Make the file or the database, and the agents."""
    await trio.lowlevel.checkpoint()
    async with AsyncExitStack() as stack:
        new_log = open_logs(Path(tempfile.mkdtemp()), variant, stack)
        child = KeptAgent(
            new_log,
            calls=workload.child_calls,
            model_seconds=workload.child_seconds,
        )
        root = KeptAgent(
            new_log,
            calls=workload.root_calls,
            model_seconds=workload.model_seconds,
            child=child if workload.children else None,
        )

        async def run_once() -> None:
            assert await root.run(MESSAGE, PATIENCE_SECONDS) == ANSWER

        yield run_once
