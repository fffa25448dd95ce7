"""What can be done with runs that are over: look again, and begin another like one."""

from collections.abc import Sequence

import msgspec
import trio

from gambit_actors.actors.loading import DeckLike, DeckLoader
from gambit_actors.actors.program_cache import ProgramCache
from gambit_actors.actors.resuming import run_of
from gambit_actors.actors.sessions import RunResult, recorded_result
from gambit_actors.actors.trees import PastRun, new_id
from gambit_actors.deck.model import Action, Link
from gambit_actors.deck.permissions import Permissions
from gambit_actors.errors import DeckError, NoSuchRun, RequestError
from gambit_actors.run.branching import begin_branch, branch_entries
from gambit_actors.run.endings import run_ended
from gambit_actors.run.entries import CallStarted, ChildStarted, Entry, RunEnded
from gambit_actors.run.ports import LogStore
from gambit_actors.run.programs import Program, RuntimeTool
from gambit_actors.run.replaying import Replayed, replay
from gambit_actors.run.states import state_from_entries


class ReplayedRun(msgspec.Struct, frozen=True, kw_only=True):
    """What came of replaying one run of a tree."""

    run_id: str
    deck: str
    depth: int
    replayed: Replayed


class RunHistory:
    """The runs in a store. Made by a runtime: ``runtime.history``.

    Args:
        store: where the logs are.
        decks: loads decks.
        programs: what decks come to.
        permissions: what narrows those of decks.
        runtime_tools: what decks are offered besides their own.
    """

    def __init__(
        self,
        store: LogStore,
        decks: DeckLoader,
        programs: ProgramCache,
        *,
        permissions: Permissions | None,
        runtime_tools: tuple[RuntimeTool, ...],
    ) -> None:
        self._store = store
        self._decks = decks
        self._programs = programs
        self._permissions = permissions
        self._runtime_tools = runtime_tools

    async def replay(
        self, run_id: str, *, deck: DeckLike | None = None
    ) -> tuple[ReplayedRun, ...]:
        """Decide anew what a run did, and all below it, and compare with its log.

        No model is asked, and nothing is carried out.

        Args:
            run_id: the run.
            deck: the deck to decide with; that of the run if it is not given.

        Returns:
            The run first, then those below it in the order in which they began.

        Raises:
            InvalidDeck: the deck has mistakes.
            StoreError: there is no such run, or its log cannot be read.
        """
        read = await self._store.read_log(run_id)
        loaded = await self._decks.load(deck or run_of(read.entries).path)
        program = self._programs.root(
            loaded, permissions=self._permissions, runtime_tools=self._runtime_tools
        )
        found: list[ReplayedRun] = []
        await self._replay(program, read.entries, found)
        return tuple(found)

    async def branch(self, run_id: str, *, items: int) -> str:
        """Begin a run that shares the beginning of another; gives its id.

        It is gone on with like any run that was interrupted: with `Runtime.resume` or
        `Runtime.reopen_session`.

        Args:
            run_id: the other run.
            items: how many items of its conversation are shared.

        Raises:
            RequestError: the conversation is not that long.
            StoreError: there is no such run, or its log cannot be read.
        """
        read = await self._store.read_log(run_id)
        run = begin_branch(run_of(read.entries), new_id("run"), items=items)
        entries = branch_entries(read.entries, run, items=items)
        log = await self._store.open_log(run)
        await log.append(entries[1:])
        await log.aclose()
        return run.run_id

    async def result(self, run_id: str) -> RunResult | None:
        """The result of a run that is over; None if it is not.

        Raises:
            RequestError: it is part of another run.
            StoreError: there is no such run, or its log cannot be read.
        """
        read = await self._store.read_log(run_id)
        if not read.entries:
            raise NoSuchRun(run_id, "the store")
        run = run_of(read.entries)
        if run.root_run_id is not None:
            msg = f"run {run_id} is part of run {run.root_run_id}: resume that one"
            raise RequestError(msg)
        last = read.entries[-1]
        if not isinstance(last, RunEnded) or last.usage is None:
            return None
        state = state_from_entries(read.entries)
        return recorded_result(run_id, state, usage=last.usage, cost=last.cost)

    async def close(self, past: PastRun) -> None:
        """Write that a run has ended whose process was gone before it could.

        Raises:
            StoreError: its log cannot be written.
        """
        state = past.state
        last = state.ended
        status = last.status if last else "cancelled"
        ended = run_ended(last, turns=state.turns, status=status, spent=past.spent)
        reopened = await self._store.reopen_log(past.run.run_id)
        await reopened.log.append([ended])
        await reopened.log.aclose()

    async def _replay(
        self, program: Program, entries: Sequence[Entry], found: list[ReplayedRun]
    ) -> None:
        run = run_of(entries)
        found.append(
            ReplayedRun(
                run_id=run.run_id,
                deck=run.deck,
                depth=run.depth,
                replayed=await trio.to_thread.run_sync(replay, program, entries),
            )
        )
        seen: set[str] = set()
        for entry in entries:
            if not isinstance(entry, CallStarted | ChildStarted):
                continue
            if entry.run_id is None or entry.run_id in seen:
                continue
            seen.add(entry.run_id)
            below = await self._below(program, entry)
            try:
                read = await self._store.read_log(entry.run_id)
            except NoSuchRun:
                continue  # It was about to begin.
            if below is not None and read.entries:
                await self._replay(below, read.entries, found)

    async def _below(
        self, program: Program, entry: CallStarted | ChildStarted
    ) -> Program | None:
        if isinstance(entry, ChildStarted):
            try:
                deck = await self._decks.load(entry.path)
            except DeckError:
                return None  # noqa: ASYNC910  # It is not there any more.
            return self._programs.below(program, deck, None)
        await trio.lowlevel.checkpoint()
        offer = program.offers.get(entry.name)
        if isinstance(offer, Action) and isinstance(offer.target, Link):
            return self._programs.below(program, offer.target.deck, offer.permissions)
        return None  # It is no deck any more, which the run above it shows.
