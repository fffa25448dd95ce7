"""One contender, one case, one process: does a `Job` and prints its `Finding`.

A process each, so that nobody measures in what another has left behind: event loops,
imports, a heap that has grown. The collector has its default settings and runs while
the clock does, because whoever uses a library has it too; only the variants that say so
are done in the block of `collect_rarely`, whoever does them.
"""

import asyncio
import gc
import importlib
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TypeAlias

import msgspec
import trio

from benchmarks.run_cases import MODULES, TUNED, Contender, Finding, Job, RunOnce
from gambit_actors import collect_rarely

WARM_UP_RUNS = 50
CROWD_WARM_UP_RUNS = 5
CHUNK_RUNS = 10
CHUNK_SECONDS = 0.05

AtOnce: TypeAlias = Callable[[RunOnce, int], Awaitable[None]]

_KILOBYTE = 1024


def main() -> None:
    """Read a job from the command line."""
    job = msgspec.json.decode(sys.argv[1], type=Job)
    contender: Contender = importlib.import_module(MODULES[job.contender])
    if contender.LOOP == "trio":
        finding = trio.run(_measure, job, contender, _at_once_in_trio)
    else:
        finding = asyncio.run(_measure(job, contender, _at_once_in_asyncio))
    print(msgspec.json.encode(finding).decode())


# Awaits nothing but the contender's own, and so runs in either kind of loop.
async def _measure(job: Job, contender: Contender, at_once: AtOnce) -> Finding:
    case, variant = job.case, job.variant
    if case.how == "at once":
        warm_up = case.workload.without_waiting()
        async with contender.open_runs(warm_up, variant) as run_once:
            await at_once(run_once, CROWD_WARM_UP_RUNS)
    async with contender.open_runs(case.workload, variant) as run_once:
        match case.how:
            case "in a row":
                return await _in_a_row(run_once, case.seconds)
            case "singly":
                return Finding(seconds=await _singly(run_once, case.count))
            case "at once":
                with collect_rarely() if variant == TUNED else nullcontext():
                    return await _crowd(run_once, case.count, at_once)


async def _in_a_row(run_once: RunOnce, seconds: float) -> Finding:
    await run_once()
    for _ in range(WARM_UP_RUNS):
        await run_once()
    clock, cpu_clock = time.perf_counter, time.process_time
    means: list[float] = []
    cpu_means: list[float] = []
    ends_at = clock() + seconds
    while not means or clock() < ends_at:
        runs, began, cpu_began = 0, clock(), cpu_clock()
        while runs < CHUNK_RUNS or clock() < began + CHUNK_SECONDS:
            await run_once()
            runs += 1
        means.append((clock() - began) / runs)
        cpu_means.append((cpu_clock() - cpu_began) / runs)
    return Finding(seconds=means, cpu_seconds=cpu_means)


async def _singly(run_once: RunOnce, count: int) -> list[float]:
    taken = []
    await run_once()
    for _ in range(count):
        began = time.perf_counter()
        await run_once()
        taken.append(time.perf_counter() - began)
    return taken


async def _crowd(run_once: RunOnce, count: int, at_once: AtOnce) -> Finding:
    gc.collect()
    before = _memory_kb("VmRSS")
    _forget_peak()
    began, cpu_began = time.perf_counter(), time.process_time()
    await at_once(run_once, count)
    taken, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    peak = _memory_kb("VmHWM")
    if before is None or peak is None:
        return Finding(seconds=[taken], cpu_seconds=[cpu])
    return Finding(
        seconds=[taken],
        cpu_seconds=[cpu],
        peak_mb=peak / _KILOBYTE,
        kb_per_run=(peak - before) / count,
    )


async def _at_once_in_trio(run_once: RunOnce, count: int) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(run_once)


async def _at_once_in_asyncio(run_once: RunOnce, count: int) -> None:
    await asyncio.gather(*(run_once() for _ in range(count)))


def _memory_kb(field: str) -> float | None:
    """A field of this process's status: VmRSS for now, VmHWM for the most."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:  # not on every system
        return None
    found = [line.split()[1] for line in lines if line.startswith(f"{field}:")]
    return float(found[0]) if found else None


def _forget_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    except OSError:
        return  # The peak since the start is no less; it is an upper bound then.


if __name__ == "__main__":
    main()
