"""Logs on disk: a folder with one file for each run.

A file is only ever added to. What `DiskLog.append` returned from is there after the
process is killed, whatever it was doing; what is there after the machine goes down is
what ``durability`` says. A log has one writer at a time, also among processes.
"""

import os
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, get_args

import msgspec
import trio

from gambit_actors.errors import (
    CorruptLog,
    GambitBug,
    LogInUse,
    NoSuchRun,
    RequestError,
)
from gambit_actors.run.entries import Entry, RunResumed, RunStarted
from gambit_actors.store.disk_logs import DiskLog, Means
from gambit_actors.store.log_files import (
    Descriptors,
    FileCalls,
    FoundFile,
    LogFile,
    broken,
    default_most_open,
    sync_folder,
)
from gambit_actors.store.log_lines import LineWriter, LogContents, Torn
from gambit_actors.store.log_reading import read_file, repair_file
from gambit_actors.store.syncing import Durability, Syncer
from gambit_actors.store.writers import Owner, Writers

_RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_SUFFIX = ".jsonl"
_FOLDER_MODE = 0o700
_TURN_SECONDS = 0.02
_THREADS = 4
_CALLS = FileCalls()
_RESUMED = RunResumed()
_T = TypeVar("_T")


class Reopened(msgspec.Struct, frozen=True, kw_only=True):
    """A log that can be gone on with.

    Attributes:
        log: takes more entries.
        entries: those it has; the last is a `RunResumed`.
        torn: what a crash had left unfinished at its end, and was cut off.
        previous_writer: the store that had it and is gone without having ended the
            run; None if it had been let go of.
    """

    log: "DiskLog"
    entries: list[Entry]
    torn: Torn | None
    previous_writer: str | None


class DiskStore:
    """Keeps the log of each run in a file of its own: ``<folder>/<run id>.jsonl``.

    An async context manager; entering it can be cancelled, leaving it cannot and waits
    for the disk. Reading works without entering.

    Args:
        folder: where; made if it is not there.
        durability: what outlives the machine, and not only the process.
        clock: gives the time in seconds since 1970.
        max_open_files: how many logs may be open at once; by default a quarter of
            what the process is allowed, and not more than 256.
        calls: the way to the disk.

    Raises:
        RequestError: there is no such durability.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        durability: Durability = "pass",
        clock: Callable[[], float] = time.time,
        max_open_files: int | None = None,
        calls: FileCalls = _CALLS,
    ) -> None:
        if durability not in get_args(Durability):
            raise RequestError(f"there is no durability {durability!r}")
        self.folder = Path(folder).absolute()
        self._prefix = f"{self.folder}{os.sep}"
        self._calls = calls
        self._means = Means(
            syncer=Syncer(calls),
            durability=durability,
            clock=clock,
            forget=self._forget,
        )
        self._descriptors = Descriptors(max_open_files or default_most_open(), calls)
        # None for a run that is about to be taken over.
        self._logs: dict[str, DiskLog | None] = {}
        self._writers: Writers | None = None
        self._keeps_names = False
        self._taking = trio.Lock()
        self._threads = trio.CapacityLimiter(_THREADS)

    async def __aenter__(self) -> Self:
        if self._writers is not None:
            raise GambitBug("a DiskStore is opened that is open")
        writers = Writers(self.folder)
        await self._in_thread(self._make_folder, writers)
        async with self._turn(writers):
            await self._in_thread(writers.open)
        self._writers = writers
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        writers, self._writers = self._opened(), None
        # Whoever is cancelled here has to let go of everything as well.
        with trio.CancelScope(shield=True):
            async with AsyncExitStack() as stack:
                stack.push_async_callback(self._in_thread, writers.close)
                for log in self._logs.values():
                    if log is not None:
                        stack.push_async_callback(log.aclose)

    def path_of(self, run_id: str) -> Path:
        """Where the log of a run is, or would be.

        Raises:
            RequestError: no run has such an id.
        """
        return Path(self._text_path_of(run_id))

    def _text_path_of(self, run_id: str) -> str:
        if not _RUN_ID.fullmatch(run_id):
            raise RequestError(
                f"{run_id!r} is not the id of a run, which has 1 to 128 ASCII letters, "
                "digits, underscores and hyphens"
            )
        return f"{self._prefix}{run_id}{_SUFFIX}"

    async def open_log(self, run: RunStarted, /) -> DiskLog:  # noqa: ASYNC910
        """Make the log of a new run, whose first entry is the one given.

        That is written together with the first that are appended, and if there never
        are any, there is no file. Nothing is waited for here, like in MemoryStore.

        Raises:
            LogInUse: this store has a log of that run already. If there is only a
                file of it, the first append raises `LogBroken`.
            RequestError: no run has such an id.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        path, writers = self._text_path_of(run.run_id), self._opened()
        self._reserve(run.run_id, writers)
        file = LogFile(
            path,
            self._descriptors,
            self._calls,
            is_named=self._keeps_names,
            is_below=run.parent_run_id is not None,
        )
        lines = LineWriter(writers.id)
        log = DiskLog(
            run.run_id,
            self._means,
            file=file,
            lines=lines,
            first=[run],
            parent_run_id=run.parent_run_id,
        )
        self._logs[run.run_id] = log
        return log

    async def reopen_log(self, run_id: str) -> Reopened:
        """Go on with the log of a run that was begun before, here or elsewhere.

        What a crash left at its end is cut off, and a `RunResumed` is added, which
        says that this store writes it now. One log at a time is taken over in a
        folder, among all processes.

        Raises:
            CorruptLog: it is damaged. Nothing is changed.
            LogBroken: the disk does not give it, or does not take what is added.
            LogInUse: a process that is there has it, maybe this one.
            NoSuchRun: there is none, or no entry in it.
            RequestError: no run has such an id.
        """
        path, writers = self.path_of(run_id), self._opened()
        self._reserve(run_id, writers)
        try:
            async with self._turn(writers):
                taken = await self._in_thread(_take, path, run_id, writers)
                log = self._log_after(taken, path, run_id, writers)
                await log.append([_RESUMED])
        except BaseException:
            del self._logs[run_id]
            raise
        self._logs[run_id] = log
        return Reopened(
            log=log,
            entries=[*taken.contents.entries, _RESUMED],
            torn=taken.contents.torn,
            previous_writer=taken.previous_writer,
        )

    async def read_log(self, run_id: str) -> LogContents:
        """Read a log, whoever writes it. Nothing is changed.

        Of one that is being written, the end may look torn: what is there was read.

        Raises:
            CorruptLog: it is damaged.
            LogBroken: the disk does not give it.
            NoSuchRun: there is none.
            RequestError: no run has such an id.
        """
        contents, _ = await self._in_thread(_read, self.path_of(run_id), run_id)
        return contents

    async def run_ids(self) -> list[str]:
        """All runs that have a log here, sorted by id."""

        def listed() -> list[str]:
            found = (path.stem for path in self.folder.glob(f"*{_SUFFIX}"))
            return sorted(name for name in found if _RUN_ID.fullmatch(name))

        return await self._in_thread(listed)

    def _log_after(
        self, taken: "_Taken", path: Path, run_id: str, writers: Writers
    ) -> DiskLog:
        contents = taken.contents
        lines = LineWriter(
            writers.id,
            seq=len(contents.entries),
            crc=contents.crc,
            ts=contents.lines[-1].ts,
        )
        file = LogFile(
            str(path),
            self._descriptors,
            self._calls,
            found=taken.found,
            is_named=self._keeps_names,
        )
        run = contents.entries[0]
        parent = run.parent_run_id if isinstance(run, RunStarted) else None
        return DiskLog(
            run_id, self._means, file=file, lines=lines, parent_run_id=parent
        )

    def _opened(self) -> Writers:
        if self._writers is None:
            raise GambitBug("a DiskStore is used outside of its async with block")
        return self._writers

    def _reserve(self, run_id: str, writers: Writers) -> None:
        if run_id in self._logs:
            raise _in_use(run_id, writers.owner)
        self._logs[run_id] = None

    def _forget(self, log: DiskLog) -> None:
        # A log that broke may have been opened anew since.
        if self._logs.get(log.run_id) is log:
            del self._logs[log.run_id]

    def _make_folder(self, writers: Writers) -> None:
        missing = [
            path for path in (self.folder, *self.folder.parents) if not path.exists()
        ]
        self.folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        if self._means.durability != "none":
            for path in missing:
                sync_folder(str(path.parent), self._calls)
        self._keeps_names = self._calls.keeps_names(str(self.folder))
        writers.prepare()

    @asynccontextmanager
    async def _turn(self, writers: Writers) -> AsyncIterator[None]:
        """Have the turn of the folder: among our tasks first, then among processes."""
        async with self._taking:
            # Asked again and not waited for, so that it can be cancelled.
            while (turn := await self._in_thread(writers.take_turn)) is None:  # noqa: ASYNC110
                await trio.sleep(_TURN_SECONDS)
            try:
                yield
            finally:
                writers.end_turn(turn)

    async def _in_thread(self, function: Callable[..., _T], *args: object) -> _T:
        try:
            return await trio.to_thread.run_sync(function, *args, limiter=self._threads)
        except OSError as problem:
            # Of the folder and its locks: what goes wrong with a log is said there.
            raise broken(str(self.folder), problem, deed="used") from problem


class _Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A log that nobody else writes to, with its end in order."""

    contents: LogContents
    found: FoundFile
    previous_writer: str | None


def _take(path: Path, run_id: str, writers: Writers) -> _Taken:
    """Read a log, see whether it is free, and repair it. Have the turn for this."""
    contents, found = _read(path, run_id)
    if not contents.entries:
        raise NoSuchRun(run_id, str(path.parent))
    previous = None if contents.is_over else contents.writer
    # Our own lock is always held. A log that we had, we let go of.
    if previous == writers.id:
        previous = None
    if previous is not None and (owner := writers.holder(previous)) is not None:
        raise _in_use(run_id, owner)
    found = repair_file(path, contents, found)
    return _Taken(contents=contents, found=found, previous_writer=previous)


def _read(path: Path, run_id: str) -> tuple[LogContents, FoundFile]:
    try:
        contents, found = read_file(path)
    except FileNotFoundError as problem:
        raise NoSuchRun(run_id, str(path.parent)) from problem
    match contents.entries:
        case [RunStarted(run_id=named), *_] if named != run_id:
            reason = f"it is the log of run {named}"
        case [first, *_] if not isinstance(first, RunStarted):
            reason = "it does not begin with run.started"
        case _:
            return contents, found
    raise CorruptLog(str(path), line=1, offset=0, reason=reason)


def _in_use(run_id: str, owner: Owner) -> LogInUse:
    return LogInUse(run_id, host=owner.host, pid=owner.pid, since=owner.since)
