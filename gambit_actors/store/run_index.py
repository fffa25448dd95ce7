"""The runs of a store's folder: listed, found by the beginning of an id, and pruned.

What is told of a run stands in the first line of its log and in the last, so a few KB
of each file are read. A log that is not quite as expected there is read as a whole.
Damage in the middle is found by who reads a log, and not here.

``<folder>/.index.jsonl`` remembers what was found, by the size and the time of each
file. It is only ever a cache: it can be removed, and one that is damaged or behind is
made anew from the logs. It is replaced as a whole, so who reads it at the same time has
the old or the new one.

All of it blocks, and belongs in a thread.
"""

import fnmatch
import os
import re
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from gambit_actors.errors import NoSuchRun, RequestError, StoreError
from gambit_actors.openresponses.responses import Usage
from gambit_actors.store.index_cache import load_index, save_index
from gambit_actors.store.log_ends import SUFFIX, Damage, LogEnds, read_ends, unread_ends
from gambit_actors.store.log_files import FileCalls, broken, sync_folder
from gambit_actors.store.turns import alive_writers, turn_of

Status: TypeAlias = Literal[
    "running",
    "interrupted",
    "waiting",
    "completed",
    "failed",
    "cancelled",
    "damaged",
]
"""How a run is doing. One that is interrupted was left in the middle of a turn; one
that is waiting has its answer and can be told something else; nobody is at them."""

ENDED: frozenset[Status] = frozenset({"completed", "failed", "cancelled"})
LAST = "last"
"""Finds the run that was written to last."""

_RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_LOG_NAME = re.compile(_RUN_ID.pattern + re.escape(SUFFIX))
_SHOWN = 5
_CALLS = FileCalls()


class RunSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run in one line.

    Attributes:
        deck: its path as it is shown; empty if it cannot be read.
        path: where the deck was read from.
        code: why it failed, in a word.
        started: when it began, in seconds since 1970.
        last: when its log was last written to.
        turns: how many there were; None if the run has not ended.
        usage: tokens of the run with all below it; None if it has not ended.
        cost: the same in money; None where it is not known.
        root_run_id: the run that it is a part of; None if it is of none.
        bytes: of its log, and with a listing of those below it, too.
        branched_from: the run whose beginning it shares, and how many items of it.
        damage: what is wrong with its log, and where.
    """

    run_id: str
    deck: str
    path: str
    status: Status
    started: float
    last: float
    bytes: int
    code: str | None = None
    turns: int | None = None
    usage: Usage | None = None
    cost: float | None = None
    depth: int = 0
    root_run_id: str | None = None
    branched_from: str | None = None
    damage: Damage | None = None


class AmbiguousRun(RequestError):
    """Several runs have ids that begin like this.

    Attributes:
        candidates: those ids.
    """

    def __init__(self, prefix: str, candidates: Sequence[str]) -> None:
        shown = ", ".join(candidates[:_SHOWN])
        more = len(candidates) - _SHOWN
        tail = f" and {more} more" if more > 0 else ""
        super().__init__(f"{prefix} is the beginning of several runs: {shown}{tail}")
        self.candidates = tuple(candidates)


class FolderBusy(StoreError):
    """Somebody kept us from the runs of a folder for too long."""

    def __init__(self, folder: str) -> None:
        super().__init__(f"{folder} is kept busy by another process; try again")
        self.folder = folder


def list_runs(
    folder: str | os.PathLike[str],
    *,
    status: Status | Collection[Status] | None = None,
    since: float | None = None,
    deck: str | None = None,
    limit: int | None = None,
) -> list[RunSummary]:
    """List the runs of a folder, those that were written to last in front.

    Runs below another are not listed; their bytes count with their root's. A log whose
    end or beginning is damaged, or that cannot be read, is listed as such.

    Args:
        folder: the folder of a store.
        status: only those that are doing like this.
        since: only those that were written to at this time or later.
        deck: only those of decks whose path is like this glob; those whose deck cannot
            be read are listed all the same.
        limit: only so many.

    Raises:
        LogBroken: the folder cannot be read.
    """
    wanted = {status} if isinstance(status, str) else status
    runs = _Folder(folder)
    found = [
        run
        for run in runs.roots()
        if (wanted is None or run.status in wanted)
        and (since is None or run.last >= since)
        and (deck is None or not run.deck or _is_like(run, deck))
    ]
    found.sort(key=_newest_first)
    return found[:limit]


def find_run(folder: str | os.PathLike[str], prefix: str) -> RunSummary:
    """Find a run by its id, by the beginning of it, or as the ``last``.

    A run that is below another is found only if none that is not begins like this.

    Raises:
        AmbiguousRun: several begin like this.
        LogBroken: the folder cannot be read.
        NoSuchRun: none does.
    """
    path = Path(folder)
    if _RUN_ID.fullmatch(prefix) and (path / f"{prefix}{SUFFIX}").is_file():
        return _Folder(folder, only=prefix).summaries[0]
    if prefix == LAST:
        runs = _Folder(folder)
        # Nobody knows when anything was last written to a log that cannot be read.
        known = [run for run in runs.roots() if runs.may_be_read([run])]
        if not known:
            raise NoSuchRun(prefix, str(path))
        return min(known, key=_newest_first)
    found = _Folder(folder, prefix=prefix).summaries if prefix else []
    found = [run for run in found if run.root_run_id is None] or found
    if not found:
        raise NoSuchRun(prefix, str(path))
    if len(found) > 1:
        raise AmbiguousRun(prefix, sorted(run.run_id for run in found))
    return found[0]


def prune(
    folder: str | os.PathLike[str],
    *,
    keep_seconds: float,
    dry_run: bool = False,
    include_interrupted: bool = False,
    now: float | None = None,
) -> list[RunSummary]:
    """Remove runs that nobody has written to for long, with all runs below them.

    What is being written stays, always, and so does what cannot be read: somebody else
    may be writing it. What has not ended stays as well (interrupted,
    waiting or damaged), unless told.

    Args:
        folder: the folder of a store.
        keep_seconds: how long ago is not long.
        dry_run: only say what would be removed.
        include_interrupted: remove also what has not ended.
        now: the time; found out if not told.

    Returns:
        What was removed, or would be; the bytes are those of all that went with it.

    Raises:
        FolderBusy: another process is in the way.
        LogBroken: a log could not be removed.
    """
    until = (time.time() if now is None else now) - keep_seconds
    runs = _Folder(folder)
    removed = []
    for root in runs.roots():
        family = runs.family(root)
        if max(run.last for run in family) > until or not runs.may_be_read(family):
            continue
        if not all(_may_go(run, root, is_any=include_interrupted) for run in family):
            continue
        if dry_run or runs.remove(family):
            removed.append(root)
    if removed and not dry_run:
        runs.sync()
    return removed


def _may_go(run: RunSummary, root: RunSummary, *, is_any: bool) -> bool:
    if run.status == "running":
        return False
    # What has ended takes what is below it along, however that was left.
    return is_any or root.status in ENDED


def _newest_first(run: RunSummary) -> tuple[float, str]:
    return -run.last, run.run_id


def _is_like(run: RunSummary, glob: str) -> bool:
    return fnmatch.fnmatchcase(run.deck, glob) or fnmatch.fnmatchcase(run.path, glob)


class _Folder:
    """The logs of a folder as they were at one time.

    Args:
        folder: where they are.
        prefix: only those whose ids begin like this.
        only: only the one with this id.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        prefix: str = "",
        only: str | None = None,
    ) -> None:
        self._folder = Path(folder).absolute()
        self._unread: set[str] = set()
        try:
            self._ends = self._look(prefix) if only is None else self._look_at(only)
            alive = alive_writers(self._folder, [ends.writer for ends in self._ends])
        except OSError as problem:
            raise broken(str(self._folder), problem, deed="read") from problem
        self.summaries = [_summary(ends, alive) for ends in self._ends]
        self._below: dict[str, list[RunSummary]] = {}
        for run in self.summaries:
            if run.root_run_id is not None:
                self._below.setdefault(run.root_run_id, []).append(run)

    def roots(self) -> list[RunSummary]:
        """Those that are below no other; a run whose root is gone counts as one."""
        names = {run.run_id for run in self.summaries if run.root_run_id is None}
        return [
            self._with_all_bytes(run)
            for run in self.summaries
            if run.root_run_id not in names
        ]

    def may_be_read(self, family: Sequence[RunSummary]) -> bool:
        """Whether it is known of all of these how they are doing."""
        return self._unread.isdisjoint(run.run_id for run in family)

    def family(self, root: RunSummary) -> list[RunSummary]:
        """A run and all below it, the run itself last."""
        return [*self._below.get(root.run_id, ()), root]

    def remove(self, family: Sequence[RunSummary]) -> bool:
        """Remove logs; False if somebody has gone on with one meanwhile.

        Raises:
            FolderBusy: another process is in the way.
            LogBroken: the disk does not let us.
        """
        names = {run.run_id for run in family}
        seen = {ends.run_id: ends for ends in self._ends if ends.run_id in names}
        path = self._folder
        try:
            with turn_of(self._folder) as has_turn:
                if not has_turn:
                    raise FolderBusy(str(self._folder))
                for run in family:
                    path = self._folder / f"{run.run_id}{SUFFIX}"
                    if not _is_same(seen[run.run_id], path.stat()):
                        return False
                # The root last: as long as it is there, what is left is found again.
                for run in family:
                    path = self._folder / f"{run.run_id}{SUFFIX}"
                    path.unlink(missing_ok=True)
        except FileNotFoundError:
            return False
        except OSError as problem:
            raise broken(str(path), problem, deed="removed") from problem
        return True

    def sync(self) -> None:
        """Wait until the disk knows what was removed.

        Raises:
            LogBroken: it may not.
        """
        try:
            sync_folder(str(self._folder), _CALLS)
        except OSError as problem:
            raise broken(str(self._folder), problem, deed="synced") from problem

    def _with_all_bytes(self, run: RunSummary) -> RunSummary:
        below = self._below.get(run.run_id)
        if not below:
            return run
        size = run.bytes + sum(other.bytes for other in below)
        return msgspec.structs.replace(run, bytes=size)

    def _look_at(self, run_id: str) -> list[LogEnds]:
        path = self._folder / f"{run_id}{SUFFIX}"
        try:
            return [read_ends(path)]
        except OSError as problem:
            return [unread_ends(path, problem)]

    def _look(self, prefix: str) -> list[LogEnds]:
        """Find out about each log, from the cache where that is up to date."""
        cached = load_index(self._folder)
        found: list[LogEnds] = []
        unread: list[LogEnds] = []
        changes = 0
        with os.scandir(self._folder) as entries:
            for entry in entries:
                name = entry.name
                if not name.startswith(prefix) or not _LOG_NAME.fullmatch(name):
                    continue
                ends = cached.get(name[: -len(SUFFIX)])
                try:
                    if ends is None or not _is_same(ends, entry.stat()):
                        if not entry.is_file():
                            continue
                        ends = read_ends(Path(entry.path))
                        changes += 1
                except FileNotFoundError:
                    continue  # It was removed meanwhile.
                except OSError as problem:
                    # Not remembered: what keeps us from it leaves no trace in it.
                    unread.append(unread_ends(Path(entry.path), problem))
                    continue
                found.append(ends)
        if not prefix and (changes or len(found) != len(cached)):
            save_index(self._folder, found)
        self._unread = {ends.run_id for ends in unread}
        return [*found, *unread]


def _is_same(ends: LogEnds, status: os.stat_result) -> bool:
    return ends.size == status.st_size and ends.mtime_ns == status.st_mtime_ns


def _summary(ends: LogEnds, alive: Collection[str]) -> RunSummary:
    return RunSummary(
        run_id=ends.run_id,
        deck=ends.deck,
        path=ends.path,
        status=_status(ends, alive),
        started=ends.started,
        last=ends.last,
        bytes=ends.size,
        code=ends.code,
        turns=ends.turns,
        usage=ends.usage,
        cost=ends.cost,
        depth=ends.depth,
        root_run_id=ends.root_run_id,
        branched_from=ends.branched_from,
        damage=ends.damage,
    )


def _status(ends: LogEnds, alive: Collection[str]) -> Status:
    if ends.damage is not None:
        return "damaged"
    if ends.ended is not None:
        return ends.ended
    if ends.writer in alive:
        return "running"
    return "waiting" if ends.is_between_turns else "interrupted"
