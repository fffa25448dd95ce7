"""The real disk, with bad days: full, broken, slow, or interrupted."""

import errno
import os
import threading
from collections import Counter
from collections.abc import Callable

from gambit_actors.store.log_files import FileCalls


class Disk:
    """Passes calls on, counts them, and has those fail that it is told to.

    Attributes:
        room: how many bytes it still takes; None for as many as come.
        failing: calls that fail, each with the error it fails with.
        piece: the most that one write takes.
        on_write: is called in the middle of each write.
        interruptions: how many writes a signal is going to interrupt.
        sync_seconds: how long its clock says that a sync takes.
        keeps_names: whether a new file that is synced keeps its name by itself.
        done: how often each call was made.
        threads: those that it was synced from.
        gate: syncs wait for this.
        waiting: how many of them do.
    """

    def __init__(self) -> None:
        self.room: int | None = None
        self.failing: dict[str, int] = {}
        self.piece: int | None = None
        self.on_write: Callable[[], object] = bool
        self.interruptions = 0
        self.sync_seconds = 0.0
        self.keeps_names = False
        self.done: Counter[str] = Counter()
        self.threads: list[int] = []
        self.gate = threading.Event()
        self.gate.set()
        self.waiting = 0
        self.most_waiting = 0
        self._lock = threading.Lock()
        self._now = 0.0

    @property
    def calls(self) -> FileCalls:
        """The way to this disk."""
        return FileCalls(
            open=self._open,
            write=self._write,
            fdatasync=self._fdatasync,
            fsync=self._fsync,
            ftruncate=self._ftruncate,
            close=self._close,
            keeps_names=lambda _folder: self.keeps_names,
            now=lambda: self._now,
        )

    def _open(self, path: str, flags: int, mode: int) -> int:
        self._begin("open")
        return os.open(path, flags, mode)

    def _write(self, descriptor: int, data: memoryview) -> int:
        if self.interruptions:
            self.interruptions -= 1
            raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR))
        self._begin("write")
        if self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sizes = [size for size in (self.room, self.piece) if size is not None]
        taken = os.write(descriptor, data[: min([len(data), *sizes])])
        if self.room is not None:
            self.room -= taken
        self.on_write()
        return taken

    def _fdatasync(self, descriptor: int) -> None:
        with self._lock:
            self.threads.append(threading.get_ident())
            self.waiting += 1
            self.most_waiting = max(self.waiting, self.most_waiting)
        self.gate.wait(20)
        with self._lock:
            self.waiting -= 1
            self._now += self.sync_seconds
        self._begin("fdatasync")
        os.fdatasync(descriptor)

    def _fsync(self, descriptor: int) -> None:
        self._begin("fsync")
        os.fsync(descriptor)

    def _ftruncate(self, descriptor: int, size: int) -> None:
        self._begin("ftruncate")
        os.ftruncate(descriptor, size)

    def _close(self, descriptor: int) -> None:
        os.close(descriptor)
        self._begin("close")

    def _begin(self, name: str) -> None:
        with self._lock:
            self.done[name] += 1
        if name in self.failing:
            number = self.failing[name]
            raise OSError(number, os.strerror(number))
