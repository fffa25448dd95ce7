"""The log of one run on disk: entries become lines, are written, and are synced.

An append that neither waits for others nor for a slow disk goes through without giving
way to other tasks, so that a fast disk costs a run little more than memory does.
"""

from collections.abc import Callable, Collection, Sequence

import msgspec
import trio

from gambit_actors.errors import GambitBug, NotWritable, StoreError, WireError
from gambit_actors.run.entries import Entry, RunEnded
from gambit_actors.store.log_files import LogFile
from gambit_actors.store.log_lines import LineWriter
from gambit_actors.store.syncing import Durability, Syncer, needs_sync


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """What all logs of a store have in common.

    Attributes:
        forget: is told of each log that is not written to any more.
    """

    syncer: Syncer
    durability: Durability
    clock: Callable[[], float]
    forget: Callable[["DiskLog"], None]


class DiskLog:
    """The log of one run, in a file; made by a `DiskStore`."""

    __slots__ = (
        "_file",
        "_first",
        "_is_closed",
        "_lines",
        "_means",
        "_owes",
        "_parent_run_id",
        "_secrets",
        "_turn",
        "run_id",
    )

    def __init__(
        self,
        run_id: str,
        means: Means,
        *,
        file: LogFile,
        lines: LineWriter,
        first: Sequence[Entry] = (),
        parent_run_id: str | None = None,
    ) -> None:
        self.run_id = run_id
        self._parent_run_id = parent_run_id
        self._means = means
        self._file = file
        self._lines = lines
        self._first = tuple(first)
        # Held only while somebody waits for the disk; then all others wait in line.
        self._turn = trio.Lock()
        self._owes = False
        self._is_closed = False
        self._secrets: Collection[str] = ()

    def hide(self, secrets: Collection[str], /) -> None:
        """Strike these texts out of what is written from now on."""
        self._secrets = secrets

    # A Ctrl+C in the middle would leave what is written and what is known of it apart.
    @trio.lowlevel.enable_ki_protection
    async def append(  # noqa: ASYNC910  # like MemoryLog
        self, entries: Sequence[Entry], /
    ) -> None:
        """Add entries: all of them or, when cancelled, none.

        It can be cancelled until it begins to write. From then on it goes on to its
        end, also in a slow sync. If it raises, they are not promised, though some may
        be found in the log; what they were to go before must not happen.

        Raises:
            LogBroken: the disk does not take them. All later calls raise it, too.
            LogLost: the file was removed, replaced or written to by somebody else.
                All later calls raise it, too.
            NotWritable: one of them has no JSON form. The log is as it was.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        has_turn = self._turn.locked()
        if has_turn:
            await self._turn.acquire()
        syncer = self._means.syncer
        syncer.note_run(self.run_id, self._parent_run_id)
        try:
            if self._write(entries) and not syncer.sync_nowait(self._file):
                if not has_turn:
                    self._turn.acquire_nowait()
                    has_turn = True
                await syncer.sync(self._file)
        except NotWritable:
            raise
        except StoreError:
            self._owes = False  # It was said; nothing is made better by another sync.
            self._forget()
            raise
        finally:
            if has_turn:
                self._turn.release()
        if entries and isinstance(entries[-1], RunEnded):
            # From here on others may go on with it.
            self._let_go()

    @trio.lowlevel.enable_ki_protection
    async def aclose(self) -> None:  # noqa: ASYNC910  # like MemoryLog
        """Sync what is not synced yet, and let go. Again is harmless.

        Raises:
            StoreError: see `append`.
        """
        try:
            if self._owes and not self._is_closed and self._means.durability != "none":
                await self._means.syncer.sync(self._file)
        finally:
            self._let_go()
        await trio.lowlevel.checkpoint_if_cancelled()

    def _write(self, entries: Sequence[Entry]) -> bool:
        """Write entries, and say whether they have to be synced now."""
        if self._is_closed:
            raise GambitBug(f"the log of run {self.run_id} was let go of")
        if not entries:
            return False
        batch = [*self._first, *entries] if self._first else entries
        try:
            now, secrets = self._means.clock(), self._secrets
            lines = self._lines.batch(batch, now, secrets=secrets)
        except WireError as problem:
            raise NotWritable(self.run_id, str(problem)) from problem
        self._file.append(lines)
        self._first = ()
        is_due = needs_sync(batch, self._means.durability, owes=self._owes)
        self._owes = not is_due and type(batch[0]) is not RunEnded
        return is_due

    def _let_go(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._file.close()
            self._forget()

    def _forget(self) -> None:
        self._means.syncer.forget_run(self.run_id)
        self._means.forget(self)
