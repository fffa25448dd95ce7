"""Taking up runs that another process had begun, and their results where they have one.

A log is looked at before it is taken over: who has to be asked about a call is asked
first. Somebody else may have gone on with the run in between, and then it is looked at
again.
"""

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeVar

import msgspec

from gambit_actors.actors.abandoning import abandon
from gambit_actors.actors.actor import DeckActor
from gambit_actors.actors.begun import BegunRun
from gambit_actors.actors.below import BelowFinder
from gambit_actors.actors.given import check_run_id
from gambit_actors.actors.history import RunHistory
from gambit_actors.actors.loading import DeckLike, DeckLoader
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.program_cache import ProgramCache
from gambit_actors.actors.resuming import (
    FoundRun,
    PastReader,
    answers_to,
    run_of,
    taken_over,
)
from gambit_actors.actors.sessions import RunResult
from gambit_actors.actors.trees import Bounds, RunTree
from gambit_actors.deck.model import Deck
from gambit_actors.errors import LogGrown, RequestError
from gambit_actors.run.doubts import Answer
from gambit_actors.run.ports import LogStore
from gambit_actors.run.programs import Program
from gambit_actors.trace.tracer import Tracer

_MOST_LOOKS = 3
_Taken = TypeVar("_Taken", BegunRun, BegunRun | RunResult)


class TakingUp(msgspec.Struct, frozen=True, eq=False):
    """How a run is to be gone on with.

    Attributes:
        answers: what is to be done about calls in doubt, by their keys.
        deck: the deck, if it is not where it was.
    """

    run_id: str
    answers: Mapping[str, Answer]
    deck: DeckLike | None
    options: RunOptions


class MakesTree(Protocol):
    """Makes what the actors of a run share."""

    def __call__(
        self, options: RunOptions, tracer: Tracer, *, found: FoundRun | None = None
    ) -> RunTree:
        """Make it for a run; for one that is gone on with if it is ``found``."""


class RunTaker:
    """Takes runs up.

    Args:
        store: where the logs are.
        decks: loads decks.
        programs: what decks come to.
        history: gives results that are there.
        make_tree: what a run is begun with.
    """

    def __init__(
        self,
        store: LogStore,
        decks: DeckLoader,
        programs: ProgramCache,
        *,
        history: RunHistory,
        make_tree: MakesTree,
    ) -> None:
        self._store = store
        self._decks = decks
        self._programs = programs
        self._history = history
        self._make_tree = make_tree

    async def reopen(self, taking: TakingUp, tracer: Tracer) -> BegunRun:
        """Begin a run again.

        Raises:
            InDoubt: somebody has to say what became of a call.
            StoreError: there is no such run, or its log cannot be used.
        """

        async def reopen() -> BegunRun:
            return await self._begin_again(await self._found(taking), taking, tracer)

        return await _unless_grown(reopen)

    async def take_up(
        self, taking: TakingUp, tracer: Tracer, *, message: str | None
    ) -> BegunRun | RunResult:
        """Begin a run again; or give the result that it has, if nothing is to be said.

        Raises:
            InDoubt: somebody has to say what became of a call.
            RequestError: something is to be said in the middle of a turn.
            StoreError: there is no such run, or its log cannot be used.
        """

        async def take_up() -> BegunRun | RunResult:
            found = await self._found(taking)
            root = found.past.root
            if message is not None and root.is_open:
                words = "was interrupted: resume it without a message first"
                raise RequestError(f"run {taking.run_id} {words}")
            if message is not None or root.state.ended is None:
                return await self._begin_again(found, taking, tracer)
            # Its process was gone before it could say that there will be no more.
            await abandon(self._store, found.past.abandoned, tracer)
            await self._history.close(root)
            result = await self._history.result(taking.run_id)
            assert result is not None  # noqa: S101  # its end has just been written
            return result

        return await _unless_grown(take_up)

    async def _found(self, taking: TakingUp) -> FoundRun:
        run_id, options = taking.run_id, taking.options
        check_run_id(run_id)
        read = await self._store.read_log(run_id)
        run = run_of(read.entries)
        if run.root_run_id is not None:
            msg = f"run {run_id} is part of run {run.root_run_id}: resume that one"
            raise RequestError(msg)
        deck = await self._decks.load(taking.deck or run.path)
        program = root_program(self._programs, deck, options)
        finder = BelowFinder(
            self._programs, self._decks.load, was_at=run.path, is_at=deck.path
        )
        reader = PastReader(self._store, below=finder, prices=options.prices)
        past = await reader.read(program, read.entries)
        return FoundRun(past, program, answers_to(past.doubts, taking.answers))

    async def _begin_again(
        self, found: FoundRun, taking: TakingUp, tracer: Tracer
    ) -> BegunRun:
        root = found.past.root
        tree = self._make_tree(taking.options, tracer, found=found)
        tree.account.spent = root.spent
        tree.expect_code(found.program)
        actor = DeckActor(
            tree,
            found.program,
            root.run,
            bounds=Bounds(),
            account=tree.account,
            reopened=await taken_over(self._store, root),
        )
        actor.spent_before = root.spent_in_turn
        return BegunRun(
            actor=actor,
            program=found.program,
            tree=tree,
            run_id=root.run.run_id,
            began=tracer.stamp(),
            is_resumed=True,
            notices=found.past.missing,
        )


def root_program(programs: ProgramCache, deck: Deck, options: RunOptions) -> Program:
    """What a deck comes to that a run begins with."""
    return programs.root(
        deck, permissions=options.permissions, runtime_tools=options.runtime_tools
    )


async def _unless_grown(take_up: Callable[[], Awaitable[_Taken]]) -> _Taken:
    """Take a run up; look again if somebody else was at it since the look at its log.

    Raises:
        LogGrown: that was so each time.
    """
    for _ in range(_MOST_LOOKS - 1):
        with contextlib.suppress(LogGrown):
            return await take_up()
    return await take_up()
