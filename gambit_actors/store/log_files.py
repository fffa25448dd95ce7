"""The bytes of logs on disk: written whole or taken back, by few descriptors at once.

A batch is one write at the end of the file. If the disk does not take all of it, what
it took is cut off again, and the log is broken from then on: nobody can say what such a
disk keeps, so nothing is tried twice. Before each write the file is looked at: one that
somebody else removed, replaced or wrote to is lost, and left as it is.

Thousands of logs are live at once, more than a process may have files open. Those used
last stay open; the others are opened again when they are needed, if they are still the
same.

All of it is called from one thread, except where it says so. It waits for nothing but
the system's own calls and knows nothing of lines.
"""

import errno
import os
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec

from gambit_actors.errors import LogBroken, LogLost, StoreError
from gambit_actors.store.file_systems import keeps_names

OWNER_ONLY = 0o600
"""Logs have whole conversations in them."""

# Without the last, Windows would write two bytes for a newline.
APPEND = os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0)
"""How a log that is there is opened."""

_CREATE = APPEND | os.O_CREAT | os.O_EXCL
_MOST_OPEN = 256
_SHARE = 4  # Sockets and pipes need descriptors, too.
_TOO_MANY_OPEN = frozenset({errno.EMFILE, errno.ENFILE})
# Some file systems have folders that cannot be synced, and say so in these ways.
_NO_FOLDER_SYNC = frozenset({errno.EBADF, errno.EINVAL})
_ADVICE = {
    errno.ENOSPC: "free some space, then resume the run",
    errno.EDQUOT: "free some space, then resume the run",
    errno.EFBIG: "raise the limit on file sizes, then resume the run",
    errno.EIO: "look after the disk, then resume the run",
    errno.EROFS: "make it writable, then resume the run",
    errno.EACCES: "see to its permissions and those of its folder",
    errno.EPERM: "see to its permissions and those of its folder",
    errno.ENOENT: "see whether its folder was removed",
    errno.EMFILE: "raise the limit on open files, then resume the run",
    errno.ENFILE: "raise the limit on open files, then resume the run",
}


class FileCalls(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of the system on the way to the disk.

    Tests put others in their place, to have a disk that is full, broken or slow.
    """

    open: Callable[[str, int, int], int] = os.open
    write: Callable[[int, memoryview], int] = os.write
    fdatasync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)
    fsync: Callable[[int], None] = os.fsync
    ftruncate: Callable[[int, int], None] = os.ftruncate
    fstat: Callable[[int], os.stat_result] = os.fstat
    unlink: Callable[[str], None] = os.unlink
    close: Callable[[int], None] = os.close
    keeps_names: Callable[[str], bool] = keeps_names
    now: Callable[[], float] = time.perf_counter


class FoundFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was when it was read.

    Attributes:
        identity: its device and its number there.
    """

    identity: tuple[int, int]
    size: int


def broken(
    path: str, problem: OSError, *, deed: str = "written", is_new: bool = False
) -> LogBroken:
    """Make the error that says what the system said, and what can be done.

    Args:
        path: what cannot be used.
        problem: why.
        deed: for what it cannot be used.
        is_new: whether it is a run of which nothing is kept yet.
    """
    number = problem.errno or 0
    advice = _ADVICE.get(number, "see to what is there, then resume the run")
    if number == errno.EEXIST and deed == "written":
        advice = "resume that run, or choose another id"
    elif is_new:
        advice = advice.replace("resume the run", "try again")
    return LogBroken(
        path,
        errno=number,
        reason=problem.strerror or str(problem),
        deed=deed,
        advice=advice,
    )


def default_most_open() -> int:
    """How many logs may be open at once: a share of what the process is allowed."""
    if sys.platform == "win32":
        return _MOST_OPEN
    import resource  # noqa: PLC0415  (not on every system)

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST_OPEN
    return max(1, min(_MOST_OPEN, soft // _SHARE))


class Descriptors:
    """The open descriptors of logs, those used last.

    Args:
        most: how many there may be.
    """

    def __init__(self, most: int, calls: FileCalls) -> None:
        self._most = max(1, most)
        self._calls = calls
        self._open: OrderedDict[LogFile, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def get(self, file: "LogFile") -> int | None:
        """The descriptor of a log, if it is open."""
        descriptor = self._open.get(file)
        if descriptor is not None:
            self._open.move_to_end(file)
        return descriptor

    def open(self, file: "LogFile", flags: int) -> int:
        """Open a log, and close another if there are too many."""
        try:
            descriptor = self._calls.open(file.path, flags, OWNER_ONLY)
        except OSError as problem:
            if problem.errno not in _TOO_MANY_OPEN or not self._open:
                raise
            # Others in the process use more than was left to them.
            self._close_oldest()
            descriptor = self._calls.open(file.path, flags, OWNER_ONLY)
        self._open[file] = descriptor
        while len(self._open) > self._most:
            self._close_oldest()
        return descriptor

    def drop(self, file: "LogFile") -> None:
        """Close a log that is not going to be written to."""
        descriptor = self._open.pop(file, None)
        if descriptor is not None:
            # Whatever this says, there is nothing in it that was promised.
            with suppress(OSError):
                self._calls.close(descriptor)

    def _close_oldest(self) -> None:
        file, descriptor = self._open.popitem(last=False)
        try:
            self._calls.close(descriptor)
        except OSError as problem:
            # On a network disk, this is where a write turns out not to have worked.
            file.fail(problem)


class LogFile:
    """The file of one log, made when something is written to it.

    Args:
        path: where it is, or is to be.
        found: what was found there, for a log that is gone on with.
        is_below: whether it is of a run below another, with which it is resumed.
        is_named: whether its name is on the disk when it is synced, without its folder
            being synced, too.

    Attributes:
        size: how many bytes of it are good.
    """

    __slots__ = (
        "_calls",
        "_descriptors",
        "_fault",
        "_identity",
        "_is_below",
        "_is_named",
        "path",
        "size",
    )

    def __init__(
        self,
        path: str,
        descriptors: Descriptors,
        calls: FileCalls,
        *,
        found: FoundFile | None = None,
        is_named: bool = False,
        is_below: bool = False,
    ) -> None:
        self.path = path
        self.size = found.size if found else 0
        self._identity = found.identity if found else None
        # Of one that was found, nobody knows: who made it may have been killed before.
        self._is_named = is_named
        self._is_below = is_below
        self._descriptors = descriptors
        self._calls = calls
        self._fault: Callable[[], StoreError] | None = None

    def append(self, data: bytes) -> None:
        """Write a batch: all of it, or nothing.

        Raises:
            LogBroken: the disk does not take it. From then on this raises the same.
            LogLost: the file is not what it was. From then on this raises the same.
        """
        descriptor = self._ready()
        try:
            self._write(descriptor, data)
        except OSError as problem:
            # If this does not work either, there is a torn tail: readers know those.
            with suppress(OSError):
                self._calls.ftruncate(descriptor, self.size)
                if not self.size:
                    self._remove_empty(descriptor)
            raise self.fail(problem) from problem
        self.size += len(data)

    def sync(self) -> None:
        """Wait until the disk has what was written.

        Raises:
            LogBroken: it may not. This is not tried again: a system forgets what it
                could not write, and says the next time that all is well.
            LogLost: the file is not what it was.
        """
        descriptor = self._ready()
        try:
            self.flush(descriptor)
        except OSError as problem:
            raise self.fail(problem) from problem
        self._is_named = True

    @contextmanager
    def borrowed(self) -> Iterator[int]:
        """Sync by calling `flush` with this descriptor, which nobody else closes.

        Raises:
            StoreError: see `sync`.
        """
        descriptor = self._ready()
        try:
            descriptor = os.dup(descriptor)
            try:
                yield descriptor
            finally:
                # What is synced is on the disk, whatever closing says.
                with suppress(OSError):
                    self._calls.close(descriptor)
        except OSError as problem:
            raise self.fail(problem) from problem
        self._is_named = True

    def flush(self, descriptor: int) -> None:
        """Do what `sync` does, in any thread.

        Raises:
            OSError: the disk may not have what was written.
        """
        self._calls.fdatasync(descriptor)
        if not self._is_named:
            sync_folder(os.path.dirname(self.path), self._calls)  # noqa: PTH120  (text)

    def fail(self, problem: OSError) -> LogBroken:
        """Have nothing more written, because of a problem; give the error for it."""
        is_new = not (self.size or self._is_below)
        self._give_up(lambda: broken(self.path, problem, is_new=is_new))
        return broken(self.path, problem, is_new=is_new)

    def close(self) -> None:
        """Let go of the descriptor. The log can still be written to."""
        self._descriptors.drop(self)

    def _ready(self) -> int:
        """Give the descriptor of the file, which is as it was left."""
        if self._fault is not None:
            raise self._fault()
        descriptor = self._descriptors.get(self)
        if descriptor is None:
            descriptor = self._open()
        try:
            status = self._calls.fstat(descriptor)
        except OSError as problem:
            raise self.fail(problem) from problem
        if self._identity is None:
            self._identity = (status.st_dev, status.st_ino)
        if status.st_nlink == 0:
            raise self._lose("was removed")
        if self._identity != (status.st_dev, status.st_ino):
            raise self._lose("was replaced by another file")
        if status.st_size != self.size:
            raise self._lose("was changed by somebody else")
        return descriptor

    def _open(self) -> int:
        is_new = self._identity is None
        try:
            return self._descriptors.open(self, _CREATE if is_new else APPEND)
        except FileNotFoundError as problem:
            if is_new:
                raise self.fail(problem) from problem
            raise self._lose("was removed") from problem
        except OSError as problem:
            raise self.fail(problem) from problem

    def _write(self, descriptor: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                # A disk that is nearly full takes a part. At the next part it says why.
                taken = self._calls.write(descriptor, rest)
            except InterruptedError:
                continue
            if not taken:
                raise OSError(errno.EIO, "it takes nothing, and does not say why")
            rest = rest[taken:]

    def _remove_empty(self, descriptor: int) -> None:
        """Remove the file that was just made, of which nothing is kept."""
        there, ours = os.stat(self.path), self._calls.fstat(descriptor)  # noqa: PTH116  (text)
        if os.path.samestat(there, ours) and not ours.st_size:
            self._calls.unlink(self.path)

    def _lose(self, reason: str) -> LogLost:
        self._give_up(lambda: LogLost(self.path, reason))
        return LogLost(self.path, reason)

    def _give_up(self, fault: Callable[[], StoreError]) -> None:
        # A new error each time: one that is raised twice has two tracebacks in it.
        self._fault = fault
        self._descriptors.drop(self)


def sync_folder(folder: str, calls: FileCalls) -> None:
    """Wait until the disk knows which files are in a folder. Blocks.

    Raises:
        OSError: it may not.
    """
    if sys.platform == "win32":
        return  # It has no call for this.
    descriptor = calls.open(folder or ".", os.O_RDONLY, 0)
    try:
        calls.fsync(descriptor)
    except OSError as problem:
        if problem.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        calls.close(descriptor)
