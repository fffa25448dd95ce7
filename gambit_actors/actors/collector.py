"""Python's garbage collector, for processes with thousands of runs at once.

The collector looks through everything that is alive, again and again while more comes
to life. With 10,000 runs at once that is half of the time a run takes, and for nothing:
a run that is over leaves no circles behind, so reference counting frees all of it. What
is done about it holds for the whole process, so it is for the program around the
runtime to ask for. Nothing else in this package touches the collector.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

Thresholds: TypeAlias = tuple[int, int, int]
"""As for `gc.set_threshold`."""

RARELY: Thresholds = (50_000, 20, 50)
"""One look at what is new for every 50,000 objects more; Python's own number is 700."""


@contextmanager
def collect_rarely(thresholds: Thresholds = RARELY) -> Iterator[None]:
    """Have the garbage collector look less often while the block lasts, and at less.

    Enter it when decks are loaded and imports are done: all that is alive then is set
    aside (`gc.freeze`) and not looked at before the end. Circles that your own code
    leaves behind are freed later than they were. At the end everything is as before.

    It holds for the whole process. Where it holds already, or somebody else has frozen
    what is alive, that stays as it is, and it stays so at the end.

    Args:
        thresholds: how often; as for `gc.set_threshold`.
    """
    before = gc.get_threshold()
    is_frozen = bool(gc.get_freeze_count())
    gc.set_threshold(*thresholds)
    if not is_frozen:
        # Or garbage would be set aside as well, and kept until the end.
        gc.collect()
        gc.freeze()
    try:
        yield
    finally:
        # Blocks of two services in one process may end in any order. The first one
        # undoes it all, and the second does not do it again.
        if before != thresholds:
            gc.set_threshold(*before)
        if not is_frozen:
            gc.unfreeze()
