"""What can be done with runs that are over: look again, and begin another like one."""

import contextlib
from collections.abc import Sequence
from functools import partial

import msgspec
import trio

from gambit_actors.actors.below import BelowFinder
from gambit_actors.actors.given import check_run_id
from gambit_actors.actors.loading import DeckLike, DeckLoader
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.program_cache import ProgramCache
from gambit_actors.actors.resuming import run_of
from gambit_actors.actors.sessions import RunResult, recorded_result
from gambit_actors.actors.trees import PastRun, new_id
from gambit_actors.errors import NoSuchRun, RequestError
from gambit_actors.openresponses.items import FunctionCallOutput
from gambit_actors.run.branching import begin_branch, branch_entries
from gambit_actors.run.endings import run_ended
from gambit_actors.run.entries import (
    CallEnded,
    CallStarted,
    ChildStarted,
    Entry,
    ItemAdded,
    RunEnded,
    RunResumed,
    TurnEnded,
)
from gambit_actors.run.ports import LogStore
from gambit_actors.run.programs import Program
from gambit_actors.run.replaying import Replayed, replay, with_uncompared
from gambit_actors.run.states import state_from_entries
from gambit_actors.run.steps import MAX_PASSES


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
        options: what holds where no others are given.
    """

    def __init__(
        self,
        store: LogStore,
        decks: DeckLoader,
        programs: ProgramCache,
        *,
        options: RunOptions,
    ) -> None:
        self._store = store
        self._decks = decks
        self._programs = programs
        self._options = options

    async def replay(
        self,
        run_id: str,
        *,
        deck: DeckLike | None = None,
        options: RunOptions | None = None,
    ) -> tuple[ReplayedRun, ...]:
        """Decide anew what a run did, and all below it, and compare with its log.

        No model is asked, and nothing is carried out. What cannot be compared any more,
        because a log or a deck below is gone, is a difference.

        Args:
            run_id: the run.
            deck: the deck to decide with; that of the run if it is not given.
            options: the permissions, and the tools of the runtime, that the run had.

        Returns:
            The run first, then those below it in the order in which they began.

        Raises:
            InvalidDeck: the deck has mistakes.
            StoreError: there is no such run, or its log cannot be read.
        """
        check_run_id(run_id)
        read = await self._store.read_log(run_id)
        was_at = run_of(read.entries).path
        loaded = await self._decks.load(deck or was_at)
        options = options or self._options
        program = self._programs.root(
            loaded,
            permissions=options.permissions,
            runtime_tools=options.runtime_tools,
        )
        finder = BelowFinder(
            self._programs, self._decks.load, was_at=was_at, is_at=loaded.path
        )
        found: list[ReplayedRun] = []
        await self._replay(program, read.entries, finder, found)
        return tuple(found)

    async def branch(self, run_id: str, *, items: int) -> str:
        """Begin a run that shares the beginning of another; gives its id.

        It is gone on with like any run that was interrupted: with `Runtime.resume` or
        `Runtime.reopen_session`.

        Args:
            run_id: the other run.
            items: how many items of its conversation are shared.

        Raises:
            RequestError: the conversation is not that long, it is part of another
                run's, or ``items`` is no whole number.
            StoreError: there is no such run, or its log cannot be read.
        """
        check_run_id(run_id)
        read = await self._store.read_log(run_id)
        other = run_of(read.entries)
        if other.root_run_id is not None:
            msg = f"run {run_id} is part of run {other.root_run_id}: branch that one"
            raise RequestError(msg)
        run = begin_branch(other, new_id("run"), items=items)
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
        check_run_id(run_id)
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
        self,
        program: Program,
        entries: Sequence[Entry],
        finder: BelowFinder,
        found: list[ReplayedRun],
        max_passes: int = MAX_PASSES,
    ) -> None:
        run = run_of(entries)
        max_passes = program.deck.guardrails.max_passes or max_passes
        again = partial(replay, program, entries, max_passes=max_passes)
        replayed = await trio.to_thread.run_sync(again)
        place = len(found)
        found.append(
            ReplayedRun(
                run_id=run.run_id, deck=run.deck, depth=run.depth, replayed=replayed
            )
        )
        items = [entry.item for entry in entries if isinstance(entry, ItemAdded)]
        for index, entry in _begun_below(entries):
            below = await finder.find(program, items, entry)
            log = await self._log_below(entry)
            lack = _lack(
                entries[index:], entry, has_log=bool(log), has_deck=bool(below)
            )
            if lack is not None:
                replayed = with_uncompared(replayed, entry, index=index, words=lack)
                found[place] = msgspec.structs.replace(found[place], replayed=replayed)
            elif below is not None and log:
                await self._replay(below, log, finder, found, max_passes)

    async def _log_below(self, entry: CallStarted | ChildStarted) -> Sequence[Entry]:
        """The log that an entry speaks of; empty if it is not there."""
        try:
            return (await self._store.read_log(entry.run_id or "")).entries
        except NoSuchRun:
            return ()  # noqa: ASYNC910  # it has looked


def _begun_below(
    entries: Sequence[Entry],
) -> list[tuple[int, CallStarted | ChildStarted]]:
    """What begins the runs below, with its place; the last where one began again."""
    found: dict[str, tuple[int, CallStarted | ChildStarted]] = {}
    for index, entry in enumerate(entries):
        if isinstance(entry, CallStarted | ChildStarted) and entry.run_id is not None:
            found[entry.run_id] = (index, entry)
    return list(found.values())


def _lack(
    entries: Sequence[Entry],
    entry: CallStarted | ChildStarted,
    *,
    has_log: bool,
    has_deck: bool,
) -> str | None:
    """Why a run below cannot be compared, if that has to be said.

    Args:
        entries: the log above it, from where it began.
        entry: the first of those.
        has_log: whether it has a log.
        has_deck: whether its deck is there.
    """
    name = entry.name if isinstance(entry, CallStarted) else entry.path
    if not has_log:
        # One that was about to begin when all ended never had a log.
        if not _has_come_to_an_end(entries[1:], entry.call_id):
            return None
        return f"there is no log of run {entry.run_id}, so {name} was not compared"
    if not has_deck:
        return f"{name} is no deck any more, so run {entry.run_id} was not compared"
    return None


def _has_come_to_an_end(entries: Sequence[Entry], call_id: str | None) -> bool:
    """Whether what a call or a turn had begun below was there to its end.

    Args:
        entries: what comes after the beginning.
        call_id: the call; None for what is part of the turn alone.
    """
    for entry in entries:
        match entry:
            case RunResumed():
                return False  # It was begun anew, under another name, or given up.
            case TurnEnded():
                return call_id is None
            case CallEnded(call_id=ended, output=output) if ended == call_id:
                return not _is_too_deep(output)
            case ItemAdded(
                item=FunctionCallOutput(call_id=ended, output=output), source="tool"
            ) if ended == call_id:
                return not _is_too_deep(output)
            case _:
                pass
    return False


def _is_too_deep(output: object) -> bool:
    """Whether a call was refused because there are too many decks inside each other."""
    said: object = None
    with contextlib.suppress(msgspec.DecodeError, ValueError, RecursionError):
        said = msgspec.json.decode(str(output))
    return isinstance(said, dict) and said.get("code") == "max_depth"
