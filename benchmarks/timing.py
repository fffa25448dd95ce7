"""Timing that survives a busy machine.

Contenders take turns, in another order each round, so that a slow second hits all of
them and none in particular. The best time counts: noise only ever adds. The garbage
collector is off for everybody while the clock runs and collects between turns.
"""

import contextlib
import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """How long to measure.

    Attributes:
        rounds: how many turns each contender gets.
        turn_seconds: how long a turn is; a contender runs at least once in it.
    """

    rounds: int
    turn_seconds: float


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that one run took: the best, the median, and of how many."""

    best: float
    median: float
    runs: int


def race(runs: Mapping[str, Callable[[], object]], effort: Effort) -> dict[str, Timing]:
    """Time several things against each other."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    with _quiet_collector():
        for turn in range(effort.rounds):
            start = turn % len(names)
            for name in names[start:] + names[:start]:
                seconds[name] += _take_turn(runs[name], effort.turn_seconds)
    return {name: _timing(taken) for name, taken in seconds.items()}


def _take_turn(run: Callable[[], object], turn_seconds: float) -> list[float]:
    gc.collect()
    clock = time.perf_counter
    taken: list[float] = []
    ends_at = clock() + turn_seconds
    while not taken or clock() < ends_at:
        began = clock()
        result = run()
        taken.append(clock() - began)
        del result  # Freed off the clock, for everybody.
    return taken


def _timing(seconds: Sequence[float]) -> Timing:
    return Timing(
        best=min(seconds), median=statistics.median(seconds), runs=len(seconds)
    )


@contextlib.contextmanager
def _quiet_collector() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
