"""How long a log waits for the system: a clock around each call that it makes.

It knows none of the contenders, so that each can have it without the others' modules.
"""

import time
from collections.abc import Callable
from typing import TypeVar

from benchmarks.log_cases import Asked

_T = TypeVar("_T")


class DiskClock:
    """Adds up how long whoever keeps a log waits for the system.

    Attributes:
        taken: for each kind of call, how often it was made and how long that took.
    """

    def __init__(self) -> None:
        self.taken: dict[str, tuple[int, float]] = {}

    def timed(self, kind: str, call: Callable[[], _T]) -> _T:
        """Make a call on the clock."""
        began = time.perf_counter()
        result = call()
        seconds = time.perf_counter() - began
        times, before = self.taken.get(kind, (0, 0.0))
        self.taken[kind] = (times + 1, before + seconds)
        return result

    def take(self, runs: int) -> dict[str, Asked]:
        """What each of so many runs has asked for; then begin anew."""
        taken, self.taken = self.taken, {}
        return {
            kind: Asked(times=times / runs, seconds=seconds / runs)
            for kind, (times, seconds) in taken.items()
        }
