"""A process that writes a log, for tests that kill it or run several.

``python -m tests.store.log_writer DEED FOLDER RUN [NUMBER]``. Each append that returned
is told on stdout, in a line with its number, at once.
"""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import trio

from gambit_actors.errors import LogBroken, LogInUse
from gambit_actors.run.entries import CallStarted, Entry, MetaSet, RunStarted
from gambit_actors.store.disk_logs import DiskLog
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.store.log_lines import LogContents

RESUMED_FROM = 1_000_000
"""How a process that resumes a run counts, to be told from the first."""

ROOT = Path(__file__).resolve().parents[2]


def say(**facts: object) -> None:
    """Tell who started this."""
    os.write(1, json.dumps(facts).encode() + b"\n")


def batch(number: int) -> list[Entry]:
    """What is appended, of different lengths; every third has to be synced."""
    entries: list[Entry] = [
        MetaSet(key=str(number), value="x" * (number * 37 % 500))
        for _ in range(number % 4 + 1)
    ]
    if number % 3 == 0:
        entries.append(CallStarted(call_id=str(number), name="n", kind="tool"))
    return entries


async def append_for_ever(log: DiskLog, first: int = 0) -> None:
    """Append until somebody ends it."""
    number = first
    while True:
        await log.append(batch(number))
        say(done=number)
        number += 1


async def begin(store: DiskStore, run_id: str) -> None:
    """Begin a run."""
    await append_for_ever(await store.open_log(RunStarted(run_id=run_id, deck="d")))


async def resume(store: DiskStore, run_id: str) -> None:
    """Go on with a run, or say who has it."""
    try:
        found = await store.reopen_log(run_id)
    except LogInUse as problem:
        say(in_use=problem.pid)
        return
    say(entries=len(found.entries), previous=found.previous_writer)
    await append_for_ever(found.log, RESUMED_FROM)


async def fill(store: DiskStore, run_id: str) -> None:
    """Begin a run, until the system refuses."""
    try:
        await begin(store, run_id)
    except LogBroken as problem:
        say(errno=problem.errno)


async def work(deed: str, folder: str, run_id: str) -> None:
    """Do one of these."""
    async with DiskStore(folder) as store:
        await {"begin": begin, "resume": resume, "fill": fill}[deed](store, run_id)


@contextmanager
def writer(
    deed: str, folder: Path, run_id: str, limit: int | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Have such a process; it is killed in the end."""
    command = [sys.executable, "-m", "tests.store.log_writer", deed, str(folder)]
    command += [run_id] if limit is None else [run_id, str(limit)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def numbers_in(contents: LogContents) -> list[int]:
    """The numbers of the batches in a log, each as often as it is there."""
    return [int(e.key) for e in contents.entries if isinstance(e, MetaSet)]


def whole(numbers: Iterable[int]) -> list[int]:
    """What `numbers_in` gives if all of these batches are whole."""
    return [
        number
        for number in numbers
        for entry in batch(number)
        if isinstance(entry, MetaSet)
    ]


def heard(process: "subprocess.Popen[bytes]") -> IO[bytes]:
    """What a process says."""
    assert process.stdout is not None
    return process.stdout


if __name__ == "__main__":
    _, deed_asked, folder_asked, run_asked, *most_bytes = sys.argv
    for text in most_bytes:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(text), hard))
    trio.run(work, deed_asked, folder_asked, run_asked)
