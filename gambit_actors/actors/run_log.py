"""The log of one run as its actor has it: written down, then counted, then shown."""

from collections.abc import Callable, Sequence

import trio

from gambit_actors.actors.handlers import IdleWatch, is_of_handler
from gambit_actors.actors.telling import Teller
from gambit_actors.actors.trees import RunTree
from gambit_actors.errors import StoreError
from gambit_actors.run.entries import Entry, ItemAdded, RunEnded, RunStarted
from gambit_actors.run.ports import ItemLog, LogReopened
from gambit_actors.run.states import RunState
from gambit_actors.trace.tracer import complain


class RunLog:
    """Writes the entries of one run.

    Args:
        tree: has the store, and what is secret.
        run: how the log begins.
        teller: shows what is in it.
        reopened: the log, if another process had begun it.

    Attributes:
        state: what the entries add up to.
        idle: told of signs of life; None if nobody watches for them.
        is_broken: whether it takes nothing more.
    """

    __slots__ = (
        "_held",
        "_log",
        "_on_logged",
        "_reopened",
        "_run",
        "_teller",
        "_tree",
        "idle",
        "is_broken",
        "state",
    )

    def __init__(
        self,
        tree: RunTree,
        run: RunStarted,
        teller: Teller,
        reopened: LogReopened | None,
    ) -> None:
        self.state = RunState()
        self.idle: IdleWatch | None = None
        self.is_broken = False
        self._tree = tree
        self._run = run
        self._teller = teller
        self._reopened = reopened
        self._log: ItemLog | None = None
        self._held: Sequence[Entry] = ()
        self._on_logged: Callable[[], None] | None = None

    def hold_back(
        self, entries: Sequence[Entry], *, on_logged: Callable[[], None]
    ) -> None:
        """Count entries that are written down with those that come next.

        What ends a turn is mostly known as soon as there is an answer: then there is
        one write for both.

        Args:
            entries: what to count now and to write later.
            on_logged: called once, when they have been written.
        """
        self._held = [*self._held, *entries]
        # Not kept any longer than that: it leads to the actor, which has this log.
        self._on_logged = on_logged
        self.state.feed_all(entries)

    async def open(self) -> None:
        """Take in what is in the log, if there is one.

        One that is new is made with what is first written: a conversation in which
        nothing was ever said leaves no run behind.
        """
        if self._reopened is None:
            self.state.feed(self._run)
        else:
            self._log = self._reopened.log
            self._log.hide(self._tree.secrets)
            self.state.feed_all(self._reopened.entries)
        await trio.lowlevel.checkpoint_if_cancelled()

    async def append(self, entries: Sequence[Entry]) -> None:
        """Write entries down, then count them, then show them."""
        log = self._log
        if log is None:
            log = self._log = await self._tree.store.open_log(self._run)
            log.hide(self._tree.secrets)
        held, self._held = self._held, ()
        written = [*held, *entries] if held else entries
        try:
            await log.append(written)
        except BaseException:
            self._held = [*held, *self._held]
            raise
        self.state.feed_all(entries)
        if held and self._on_logged is not None:
            on_logged, self._on_logged = self._on_logged, None
            on_logged()
        if self._teller.tracer.is_on:
            for entry in written:
                if isinstance(entry, ItemAdded):
                    self._teller.item_logged(entry)
        if self.idle is not None and not is_of_handler(written):
            self.idle.touch()

    async def close(self, ended: RunEnded) -> None:  # noqa: ASYNC910  # a log waits
        """Write that nothing more will come, and let go of the log; once.

        Args:
            ended: what is written, unless that has been.
        """
        log, state = self._log, self.state
        if log is None:
            return  # noqa: ASYNC910  # nothing was written, or all of it has been
        try:
            if not (self.is_broken or state.is_over):
                await log.append([ended])
                state.feed(ended)
            self._log = None
            await log.aclose()
        except StoreError as problem:
            # The turns have been written; the log looks as if there was to be another.
            complain(
                "a run has no end in its log", run=self._run.run_id, why=str(problem)
            )
