"""How the time for some work grows with its size."""

import time
from collections.abc import Callable

_LEAST_SECONDS = 0.002  # Less is all noise.
_RUNS = 3


def growth(work: Callable[[int], object], size: int) -> float:
    """How many times as long four times as much takes; 16 if each looks at all."""
    return _seconds(work, 4 * size) / max(_seconds(work, size), _LEAST_SECONDS)


def _seconds(work: Callable[[int], object], size: int) -> float:
    """The shortest of some tries: whatever else runs here only makes it longer."""
    tries = []
    for _ in range(_RUNS):
        began = time.perf_counter()
        work(size)
        tries.append(time.perf_counter() - began)
    return min(tries)
