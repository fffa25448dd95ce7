"""One contender, one case, one process: does a `LogJob` and prints its `LogFinding`.

Like `benchmarks.run_worker`, with a folder on the disk that is measured. All that a
contender writes goes there and stays: some file systems make files slowly for minutes
after many were removed. Nobody has the others' modules in its process.
"""

import asyncio
import importlib
import sys
import tempfile
import time
from collections.abc import Callable
from typing import TypeAlias

import msgspec
import trio

from benchmarks.log_cases import CLOCKED, MODULES, STEPS, Asked, LogFinding, LogJob
from benchmarks.run_cases import Contender, RunOnce
from benchmarks.run_worker import CHUNK_RUNS, CHUNK_SECONDS, WARM_UP_RUNS

Take: TypeAlias = Callable[[int], dict[str, Asked]]
"""Gives what each of so many runs has asked of the disk."""


def main() -> None:
    """Read a job from the command line."""
    job = msgspec.json.decode(sys.argv[1], type=LogJob)
    tempfile.tempdir = job.folder  # Contenders ask for theirs there.
    if job.case.step != "runs":
        steps = importlib.import_module(STEPS)
        finding = LogFinding(seconds=trio.run(steps.measure, job))
    else:
        module = importlib.import_module(MODULES[job.contender])
        take = module.CLOCK.take if job.name in CLOCKED else _take_nothing
        if module.LOOP == "trio":
            finding = trio.run(_measure, job, module, take)
        else:
            finding = asyncio.run(_measure(job, module, take))
    print(msgspec.json.encode(finding).decode())


# Awaits nothing but the contender's own, and so runs in either kind of loop.
async def _measure(job: LogJob, contender: Contender, take: Take) -> LogFinding:
    async with contender.open_runs(job.case.workload, job.variant) as run_once:
        warm_up = WARM_UP_RUNS if job.case.seconds >= CHUNK_SECONDS else 1
        for _ in range(warm_up):
            await run_once()
        return await _in_a_row(run_once, job, take)


async def _in_a_row(run_once: RunOnce, job: LogJob, take: Take) -> LogFinding:
    clock = time.perf_counter
    means: list[float] = []
    asked: list[dict[str, Asked]] = []
    take(1)
    ends_at = clock() + job.case.seconds
    while not means or clock() < ends_at:
        runs, began = 0, clock()
        while runs < CHUNK_RUNS or clock() < began + CHUNK_SECONDS:
            await run_once()
            runs += 1
        means.append((clock() - began) / runs)
        asked.append(take(runs))
    best = means.index(min(means))
    return LogFinding(seconds=means, asked=asked[best])  # noqa: ASYNC910  # it has run


def _take_nothing(_runs: int) -> dict[str, Asked]:
    return {}


if __name__ == "__main__":
    main()
