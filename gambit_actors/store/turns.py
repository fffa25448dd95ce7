"""Which writers of a folder are there, and the turn in which nobody becomes one.

For who looks at a folder without writing to its logs. All of it blocks.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gambit_actors.store.writers import Writers

_TURN_SECONDS = 0.02
_MOST_SECONDS = 10.0


def alive_writers(folder: Path, writers: Iterable[str | None]) -> set[str]:
    """Those writers that are there; where that cannot be told, those that may be."""
    named = {writer for writer in writers if writer is not None}
    locks = folder / ".writers"
    if not named or not locks.is_dir():
        return set()
    here = Writers(folder)
    with suppress(OSError), turn_of(folder) as has_turn:  # Not in a read-only folder.
        if has_turn:
            return {name for name in named if here.holder(name) is not None}
    # A lock that is left over makes a run look alive, which does no harm.
    return {name for name in named if (locks / f"{name}.lock").exists()}


@contextmanager
def turn_of(folder: Path) -> Iterator[bool]:
    """Have the turn of a folder, in which nobody begins to write; False without it.

    Raises:
        OSError: there can be no turn in this folder.
    """
    writers = Writers(folder)
    until = time.monotonic() + _MOST_SECONDS
    turn = _take_turn(writers)
    while turn is None and time.monotonic() < until:
        time.sleep(_TURN_SECONDS)
        turn = _take_turn(writers)
    try:
        yield turn is not None
    finally:
        if turn is not None:
            writers.end_turn(turn)


def _take_turn(writers: Writers) -> int | None:
    writers.prepare()
    return writers.take_turn()
