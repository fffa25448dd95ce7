"""What only a log has: adding to it, going on with it, and listing many.

Each function takes a folder of its own and gives the seconds that were taken, over and
over until its time is up. What is prepared for a step is not on the clock.
"""

import gc
import itertools
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import trio

from benchmarks.log_cases import (
    AGAIN,
    BY_HAND,
    CREATE,
    FIRST,
    FOLDER_SYNC,
    SYNC,
    WRITE,
    LogJob,
)
from benchmarks.logs_by_hand import Kept, open_logs
from benchmarks.our_logs import open_store
from benchmarks.our_runs import FakeModel, on_tool, write_decks
from benchmarks.run_cases import (
    ANSWER,
    ARGUMENTS_JSON,
    MESSAGE,
    TOOL,
    Workload,
)
from gambit_actors import DiskReader, RunOptions, open_runtime
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    assistant_message,
    user_message,
)
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response, Usage
from gambit_actors.run.entries import (
    CallStarted,
    Entry,
    ItemAdded,
    ModelAnswered,
    RunEnded,
    RunStarted,
    TurnEnded,
    TurnStarted,
)
from gambit_actors.run.entry_codec import encode_entry
from gambit_actors.run.ports import ModelContext
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.store.log_lines import LineWriter
from gambit_actors.store.run_index import list_runs

_USAGE = Usage(input_tokens=50, output_tokens=10, total_tokens=60)
_OUTPUT = '{"payload":{"city":"Bergen","sky":"rain","celsius":9}}'
_clock = time.perf_counter


async def measure(job: LogJob) -> list[float]:
    """Do the step of a job."""
    steps: dict[str, Callable[[LogJob, Path], Awaitable[list[float]]]] = {
        "append": append,
        "sync": ask_disk,
        "resume": resume,
        "list": list_many,
    }
    return await steps[job.case.step](job, Path(job.folder))


# Adding


def pass_of(number: int) -> tuple[list[Entry], list[Entry]]:
    """What a model's turn with one call adds: before the call, and after it."""
    call_id = f"call_{number}"
    call = FunctionCall(call_id=call_id, name=TOOL, arguments=ARGUMENTS_JSON)
    output = FunctionCallOutput(call_id=call_id, output=_OUTPUT)
    return [
        ModelAnswered(model="fake/root", status="completed", usage=_USAGE),
        ItemAdded(item=call, source="model"),
        CallStarted(call_id=call_id, name=TOOL, kind="tool"),
    ], [ItemAdded(item=output, source="tool")]


async def append(job: LogJob, folder: Path) -> list[float]:
    """Fill logs, pass by pass; gives seconds per entry, log by log."""
    passes = [pass_of(number) for number in range(job.case.count // 4)]
    entries = 4 * len(passes)
    taken: list[float] = []
    runs = (RunStarted(run_id=f"run_{n}", deck="d") for n in itertools.count())
    ends_at = _clock() + job.case.seconds
    if job.contender == BY_HAND:
        async with AsyncExitStack() as stack:
            new_log = open_logs(folder, job.variant, stack)
            while not taken or _clock() < ends_at:
                taken.append(_fill_by_hand(new_log(), passes) / entries)
        return taken
    async with open_store(job.name, folder) as store:
        while not taken or _clock() < ends_at:
            log = await store.open_log(next(runs))
            gc.collect()
            began = _clock()
            for before, after in passes:
                await log.append(before)
                await log.append(after)
            taken.append((_clock() - began) / entries)
            await log.aclose()
    return taken


def _fill_by_hand(
    log: Kept, passes: Sequence[tuple[Sequence[Entry], Sequence[Entry]]]
) -> float:
    gc.collect()
    began = _clock()
    for before, after in passes:
        for entry in before:
            log.add(encode_entry(entry))
        log.commit()
        for entry in after:
            log.add(encode_entry(entry))
    log.commit()
    return _clock() - began


async def ask_disk(job: LogJob, folder: Path) -> list[float]:
    """Ask the disk for one thing, as often as there is time for."""
    await trio.lowlevel.checkpoint()
    data = b"x" * job.case.count
    taken: list[float] = []
    file = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    above = os.open(folder, os.O_RDONLY)
    ends_at = _clock() + job.case.seconds
    while not taken or _clock() < ends_at:
        path = folder / f"file_{len(taken)}"
        if job.name == FOLDER_SYNC:
            _make(path, data)
        elif job.name == SYNC:
            os.write(file, data)
        began = _clock()
        if job.name == CREATE:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        elif job.name == WRITE:
            os.write(file, data)
        elif job.name == SYNC:
            getattr(os, "fdatasync", os.fsync)(file)
        else:
            os.fsync(above)
        taken.append(_clock() - began)
    os.close(file)
    os.close(above)
    return taken


def _make(path: Path, data: bytes) -> None:
    """Make a file that has its bytes on the disk; its folder has not."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(file, data)
    getattr(os, "fdatasync", os.fsync)(file)
    os.close(file)


# Going on


def conversation(run: RunStarted, count: int) -> Iterator[Entry]:
    """A log of so many entries, of turns with a call each, cut off in the last one."""
    asked = ItemAdded(item=user_message(MESSAGE), source="user")
    ask: list[Entry] = [TurnStarted(), asked]
    answer = ItemAdded(item=assistant_message(ANSWER), source="model")
    model = ModelAnswered(model="fake/root", status="completed", usage=_USAGE)
    ended = TurnEnded(status="completed", result=ANSWER, text=ANSWER)
    yield run
    for number in range((count - 3) // 9):
        before, after = pass_of(number)
        yield from [*ask, *before, *after, model, answer, ended]
    yield from ask


class Reached(FakeModel):
    """A model that says when it was asked."""

    def __init__(self) -> None:
        super().__init__(Workload())
        self.at = 0.0

    async def responses(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
        /,
    ) -> Response:
        """Look at the clock the first time, then answer."""
        self.at = self.at or _clock()
        return await super().responses(request, context, on_event)


async def resume(job: LogJob, folder: Path) -> list[float]:
    """Open a store, read a log and go on; until the model is asked."""
    write_decks(folder / "decks", Workload(), is_execute=False)
    reader = DiskReader(folder / "decks")
    options = RunOptions(on_tool=on_tool)
    async with open_runtime(FakeModel(Workload()), reader=reader) as runtime:
        deck = await runtime.load("PROMPT.md")
    run = RunStarted(run_id="run_1", deck="PROMPT.md", path=deck.path)
    lines = LineWriter("w").batch(list(conversation(run, job.case.count)), 1.5)
    taken: list[float] = []
    ends_at = _clock() + job.case.seconds
    while not taken or _clock() < ends_at:
        logs = folder / f"logs_{len(taken)}"
        logs.mkdir()
        (logs / "run_1.jsonl").write_bytes(lines)
        model = Reached()
        gc.collect()
        began = _clock()
        async with (
            DiskStore(logs) as store,
            open_runtime(model, reader=reader, store=store, options=options) as runtime,
        ):
            result = await runtime.resume("run_1", deck=deck)
        assert result.text == ANSWER
        taken.append(model.at - began)
    return taken


# Listing


async def list_many(job: LogJob, folder: Path) -> list[float]:
    """Open a store with many runs and list them; once."""
    count = job.case.count
    for number in range(count):
        _write_run(folder, f"run_{number}")
    if job.name != FIRST:
        list_runs(folder)
    if job.name not in (FIRST, AGAIN):
        _write_run(folder, "run_more")
        count += 1
    gc.collect()
    began = _clock()
    async with DiskStore(folder):
        found = await trio.to_thread.run_sync(list_runs, folder)
    seconds = _clock() - began
    assert len(found) == count
    return [seconds]


def _write_run(folder: Path, run_id: str) -> None:
    run = RunStarted(run_id=run_id, deck="PROMPT.md", path="PROMPT.md")
    before, after = pass_of(1)
    entries: list[Entry] = [
        run,
        TurnStarted(),
        ItemAdded(item=user_message(MESSAGE), source="user"),
        *before,
        *after,
        ModelAnswered(model="fake/root", status="completed", usage=_USAGE),
        ItemAdded(item=assistant_message(ANSWER), source="model"),
        TurnEnded(status="completed", result=ANSWER, text=ANSWER),
        RunEnded(status="completed", turns=1, usage=_USAGE),
    ]
    lines = LineWriter("w").batch(entries, time.time())
    (folder / f"{run_id}.jsonl").write_bytes(lines)
