"""When a log is synced to the disk, and where that is waited for.

Written entries survive the end of the process by themselves. To survive the end of the
machine they have to be synced, which is what keeping a log costs. So by default it is
done where it counts: before a side effect begins, and before a result is shown.

Where: a sync on a fast disk takes about as long as handing it to a thread and back, so
for a run that is alone it is done in place, in Trio's own thread. On a slow disk that
would hold up everybody in the process. And while many runs are at work it would have
them wait for each other, where a disk writes for several in the time it takes for one.
So then it is done in a few threads. Which of the two a disk is, is known from the last
few syncs; who is alone, from who wrote last.
"""

from collections import deque
from collections.abc import Sequence
from typing import Literal, TypeAlias

import trio

from gambit_actors.run.entries import (
    CallStarted,
    ChildStarted,
    Entry,
    RunEnded,
    TurnEnded,
)
from gambit_actors.store.log_files import FileCalls, LogFile

Durability: TypeAlias = Literal["pass", "item", "none"]
"""What outlives the machine: everything that led to an effect or a result ("pass"),
every entry ("item"), or what the system happens to have written ("none")."""

FAST_SECONDS = 0.002
"""A sync that takes longer is not waited for in place."""

SYNC_THREADS = 8
"""How many syncs run side by side. A disk has little use for more."""

_REMEMBERED = 8

# Not before these is something known to have an effect, or is shown to anybody. A
# child has effects by a log of its own, which is found again by this entry alone.
_BEFORE_EFFECTS = frozenset({CallStarted, ChildStarted, TurnEnded})


def needs_sync(entries: Sequence[Entry], durability: Durability, *, owes: bool) -> bool:
    """Whether entries that were just written have to be on the disk now.

    Args:
        entries: those.
        durability: what was asked for.
        owes: whether there are others before them that are not synced.
    """
    if durability != "pass":
        return durability == "item"
    for entry in entries:
        kind = type(entry)
        if kind in _BEFORE_EFFECTS:
            return True
        # That a run ended says nothing new: its last turn did. A sync for it alone
        # would be one more for every run.
        if kind is RunEnded:
            return owes or len(entries) > 1
    return False


class Syncer:
    """Syncs the logs of a store.

    It has few threads, and no log holds one while it waits for them.
    """

    def __init__(self, calls: FileCalls) -> None:
        self._calls = calls
        self._limiter = trio.CapacityLimiter(SYNC_THREADS)
        self._seconds: deque[float] = deque([0.0], maxlen=_REMEMBERED)
        self._waiting = 0
        self._last_run: str | None = None
        self._is_alone = True

    @property
    def is_in_place(self) -> bool:
        """Whether the next sync will be done in place."""
        return (
            self._is_alone and not self._waiting and max(self._seconds) < FAST_SECONDS
        )

    def note_run(self, run_id: str, parent_run_id: str | None) -> None:
        """Note which run writes now, and with that, whether it is alone.

        It is not if another one was the last to write and has not ended. A run that
        was begun by that other one is: the other one waits for it.
        """
        last = self._last_run
        self._is_alone = last is None or last in (run_id, parent_run_id)
        self._last_run = run_id

    def forget_run(self, run_id: str) -> None:
        """Note that a run will not write any more."""
        # In a crowd somebody ends all the time, and whoever comes next is not alone.
        if self._is_alone and self._last_run == run_id:
            self._last_run = None

    def sync_nowait(self, file: LogFile) -> bool:
        """Sync a log in place, if that is how it is done now.

        Returns:
            Whether it was done.

        Raises:
            StoreError: see `LogFile.sync`.
        """
        if not self.is_in_place:
            return False
        start = self._calls.now()
        file.sync()
        self._seconds.append(self._calls.now() - start)
        return True

    async def sync(self, file: LogFile) -> None:
        """Sync a log in a thread. It was written already, so this is not cancelled.

        Raises:
            StoreError: see `LogFile.sync`.
        """
        self._waiting += 1
        try:
            with trio.CancelScope(shield=True):
                async with self._limiter:
                    await self._sync_in_thread(file)
        finally:
            self._waiting -= 1

    async def _sync_in_thread(self, file: LogFile) -> None:
        def flush(descriptor: int) -> float:
            start = self._calls.now()
            file.flush(descriptor)
            return self._calls.now() - start

        # Borrowed, because the file may be closed meanwhile for the sake of others;
        # and only now, so that there are never more of these than threads. Whoever is
        # here has the store's limiter, so the one of its own never holds it up.
        with file.borrowed() as descriptor:
            seconds = await trio.to_thread.run_sync(
                flush, descriptor, limiter=trio.CapacityLimiter(1)
            )
        self._seconds.append(seconds)
