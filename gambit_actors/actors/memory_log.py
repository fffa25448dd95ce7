"""Logs that are kept in memory, for as long as somebody holds on to them.

A list is never waited for, and a run asks often: it can be cancelled here, and others
get their turn where there is something to wait for.
"""

import os
from collections.abc import Collection, Sequence

import msgspec
import trio

from gambit_actors.errors import LogInUse, NoSuchRun
from gambit_actors.run.entries import Entry, RunResumed, RunStarted


class MemoryLog:
    """The entries of one run, in a list."""

    __slots__ = ("entries", "is_open", "run")

    def __init__(self, run: RunStarted) -> None:
        self.run = run
        self.entries: list[Entry] = [run]
        self.is_open = True

    async def append(  # noqa: ASYNC910  # see above
        self, entries: Sequence[Entry], /
    ) -> None:
        """Add entries, all of them or, when cancelled, none."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self.entries.extend(entries)

    def hide(self, secrets: Collection[str], /) -> None:
        """Do nothing: what is in memory is where the secrets are anyway."""

    async def aclose(self) -> None:  # noqa: ASYNC910  # see above
        """Let others go on with it."""
        self.is_open = False
        await trio.lowlevel.checkpoint_if_cancelled()


class MemoryStore:
    """Makes logs and forgets them, unless it is told to keep them.

    Args:
        keep: whether `logs` has every log that was made. A service that runs for
            weeks must not.
    """

    def __init__(self, *, keep: bool = False) -> None:
        self.logs: dict[str, MemoryLog] = {}
        self._keep = keep

    async def open_log(self, run: RunStarted, /) -> MemoryLog:  # noqa: ASYNC910
        """Make the log of a new run."""
        await trio.lowlevel.checkpoint_if_cancelled()
        log = MemoryLog(run)
        if self._keep:
            self.logs[run.run_id] = log
        return log

    async def read_log(self, run_id: str, /) -> MemoryLog:  # noqa: ASYNC910
        """Find the log of a run that was kept.

        Raises:
            NoSuchRun: it was not.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        log = self.logs.get(run_id)
        if log is None:
            raise NoSuchRun(run_id, "memory")
        return log

    async def reopen_log(self, run_id: str, /) -> "ReopenedMemoryLog":  # noqa: ASYNC910
        """Go on with the log of a run that was kept.

        Raises:
            NoSuchRun: it was not.
        """
        log = await self.read_log(run_id)
        if log.is_open:
            since = "it was opened"
            raise LogInUse(run_id, host="this machine", pid=os.getpid(), since=since)
        log.is_open = True
        await log.append([RunResumed()])
        return ReopenedMemoryLog(log=log, entries=tuple(log.entries))


class ReopenedMemoryLog(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A log that somebody goes on with, and what was in it."""

    log: MemoryLog
    entries: tuple[Entry, ...]
