"""How the time for some work grows with its size."""

import gc
import time
from collections.abc import Callable

_LEAST_SECONDS = 0.002  # Less is all noise.
_RUNS = 3


def growth(work: Callable[[int], object], size: int) -> float:
    """How many times as long four times as much takes; 16 if each looks at all."""
    return _seconds(work, 4 * size) / max(_seconds(work, size), _LEAST_SECONDS)


def _seconds(work: Callable[[int], object], size: int) -> float:
    """The shortest of some tries, in time of this thread alone.

    The collector is held back: it goes over all that other tests have left behind.
    """
    tries = []
    for _ in range(_RUNS):
        gc.collect()
        gc.disable()
        try:
            began = time.thread_time()
            work(size)
            tries.append(time.thread_time() - began)
        finally:
            gc.enable()
    return min(tries)
