"""The door to the actors: open a runtime once, run decks in it for weeks.

::

    async with open_runtime(provider, reader=DiskReader()) as runtime:
        result = await runtime.run("decks/support", message="Where is my order?")

A `Runtime` has no global state: two in one process know nothing of each other. A run is
cancelled by leaving the block it is awaited in. Nothing of a run is kept when it is
over, but what its store keeps.
"""

import math
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import msgspec
import trio

from gambit_actors.actors.actor import DeckActor
from gambit_actors.actors.begun import BegunRun, worked
from gambit_actors.actors.candidates import Candidates
from gambit_actors.actors.compute import Modules
from gambit_actors.actors.confined.confinement import Confinement, open_confinement
from gambit_actors.actors.confined.rules import Platform
from gambit_actors.actors.given import check_text, checked_context
from gambit_actors.actors.history import RunHistory
from gambit_actors.actors.hook import ToolHook
from gambit_actors.actors.loading import DeckLike, DeckLoader
from gambit_actors.actors.mailboxes import Turn
from gambit_actors.actors.memory_log import MemoryStore
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.program_cache import ProgramCache
from gambit_actors.actors.resuming import (
    FoundRun,
)
from gambit_actors.actors.session_meta import SessionMeta
from gambit_actors.actors.sessions import RunResult, Session
from gambit_actors.actors.taking_up import RunTaker, TakingUp, root_program
from gambit_actors.actors.trees import (
    Bounds,
    Live,
    LiveActor,
    RunTree,
    actor_tree,
    new_id,
)
from gambit_actors.deck.model import Deck
from gambit_actors.deck.reader import DeckReader
from gambit_actors.errors import RequestError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.budgets import Account
from gambit_actors.run.doubts import Answer
from gambit_actors.run.entries import RunStarted
from gambit_actors.run.ports import (
    DefaultModel,
    LogStore,
    ModelProvider,
    PacedProvider,
    ServerPace,
)
from gambit_actors.run.programs import Program
from gambit_actors.trace.tracer import Sink, Tracer


class Runtime:
    """Runs decks. Made by `open_runtime`."""

    def __init__(
        self,
        provider: ModelProvider,
        *,
        reader: DeckReader,
        store: LogStore,
        tracer: Tracer,
        options: RunOptions,
        confinement: Confinement,
    ) -> None:
        self._provider = provider
        self._candidates = Candidates(provider)
        self._default_models: tuple[str, ...] = ()
        if isinstance(provider, DefaultModel) and provider.default_model is not None:
            self._default_models = (provider.default_model,)
        self._decks = DeckLoader(reader)
        self._store = store
        self._tracer = tracer
        self._options = options
        self._modules = Modules()
        self._confinement = confinement
        self._programs = ProgramCache()
        self._live: dict[str, Live] = {}
        self._threads = trio.CapacityLimiter(math.inf)
        # Bound once: every run has all three.
        self._load = self._decks.load
        self._real_path = self._decks.real_path
        self._sources = self._decks.own_files.find
        self._is_open = True

    @property
    def options(self) -> RunOptions:
        """What holds for runs that bring no options of their own."""
        return self._options

    @property
    def history(self) -> RunHistory:
        """The runs that are in the store."""
        return RunHistory(
            self._store, self._decks, self._programs, options=self._options
        )

    @property
    def _taker(self) -> RunTaker:
        return RunTaker(
            self._store,
            self._decks,
            self._programs,
            history=self.history,
            make_tree=self._tree,
        )

    def snapshot(self) -> tuple[LiveActor, ...]:
        """The actors that are alive now: those that runs began with, others below."""
        return actor_tree(self._live)

    def paces(self) -> Mapping[str, ServerPace]:
        """How fast each model server is being asked now, of those asked so far."""
        provider = self._provider
        return provider.paces() if isinstance(provider, PacedProvider) else {}

    async def run(
        self,
        deck: DeckLike,
        *,
        message: str | None = None,
        context: JSONValue = msgspec.UNSET,
        options: RunOptions | None = None,
    ) -> RunResult:
        """Run a deck for one answer.

        Raises:
            InvalidDeck: the deck has mistakes.
            RequestError: the context does not fit the deck, or somebody has to speak
                first.
            RunFailed: there is no answer; it has what was spent and said all the same.
        """
        loaded = await self.load(deck)
        return worked(await self._ask_once(loaded, message, context, options))

    async def try_run(
        self,
        deck: DeckLike,
        *,
        message: str | None = None,
        context: JSONValue = msgspec.UNSET,
        options: RunOptions | None = None,
    ) -> RunResult:
        """Run a deck for one answer; a run that fails is a result like any other."""
        loaded = await self.load(deck)
        return await self._ask_once(loaded, message, context, options)

    async def resume(
        self,
        run_id: str,
        *,
        message: str | None = None,
        answers: Mapping[str, Answer] | None = None,
        deck: DeckLike | None = None,
        options: RunOptions | None = None,
    ) -> RunResult:
        """Go on with a run where its log ends, or give the result that it has.

        What is recorded is not done again. A run that has its answer can be asked
        something else; one that was interrupted has to come to its answer first.

        Args:
            run_id: the run.
            message: the next thing to say, if the last turn has its answer.
            answers: what is to be done about calls in doubt, by `Doubt.key`.
            deck: the deck, if it is not where it was.
            options: for this part of the run.

        Raises:
            InDoubt: somebody has to say what became of a call.
            InvalidDeck: the deck has mistakes.
            RequestError: the run cannot be gone on with in this way.
            StoreError: there is no such run, or its log cannot be used.
            RunFailed: there is no answer.
        """
        check_text(message)
        options = options or self._options
        if message is None:
            result = await self.history.result(run_id)
            if result is not None:
                return worked(result)
        taking = TakingUp(run_id, answers or {}, deck, options)
        begun = await self._taker.take_up(taking, self._tracer, message=message)
        if isinstance(begun, RunResult):
            return worked(begun)
        turn = Turn(message=message, is_continued=message is None)
        return worked(await begun.ask(turn))

    def open_session(
        self, deck: DeckLike, *, options: RunOptions | None = None
    ) -> AbstractAsyncContextManager["Session"]:
        """Hold a conversation with a deck, one turn after the other.

        Entering loads the deck. Leaving the block ends the conversation; what is under
        way is cancelled, and waited for.

        Raises:
            InvalidDeck: the deck has mistakes.
        """
        return self._open(deck, options or self._options)

    def reopen_session(
        self,
        run_id: str,
        *,
        answers: Mapping[str, Answer] | None = None,
        deck: DeckLike | None = None,
        options: RunOptions | None = None,
    ) -> AbstractAsyncContextManager["Session"]:
        """Take a conversation up again where its log ends, today or in a year.

        If it was interrupted, `Session.go_on` brings its last turn to an end first.

        Raises:
            InDoubt, InvalidDeck, RequestError, StoreError: as for `resume`.
        """
        options = options or self._options
        return self._reopen(TakingUp(run_id, answers or {}, deck, options))

    @asynccontextmanager
    async def _open(
        self, deck: DeckLike, options: RunOptions
    ) -> AsyncIterator["Session"]:
        loaded = await self.load(deck)
        begun = self._begin(loaded, options, self._own_tracer())
        async with begun.converse() as session:
            yield session

    @asynccontextmanager
    async def _reopen(self, taking: TakingUp) -> AsyncIterator["Session"]:
        begun = await self._taker.reopen(taking, self._own_tracer())
        async with begun.converse() as session:
            yield session

    def _own_tracer(self) -> Tracer:
        """A tracer for one session: its streams show what is of it and no other."""
        sinks = [self._tracer.emit] if self._tracer.is_on else []
        return Tracer(*sinks, clock=self._tracer.stamp)

    async def load(self, deck: DeckLike) -> Deck:
        """Load a deck, reading again only what has changed.

        Raises:
            InvalidDeck: it has mistakes.
            RequestError: it is not the path of one.
        """
        return await self._decks.load(deck)

    def _ask_once(
        self,
        deck: Deck,
        message: str | None,
        context: JSONValue,
        options: RunOptions | None,
    ) -> Awaitable[RunResult]:
        """Begin a run; whoever awaits it has the result.

        No coroutine of its own: thousands of runs may wait here at once.
        """
        # Nobody can stream this one, so it needs no tracer of its own.
        begun = self._begin(deck, options or self._options, self._tracer)
        context = checked_context(begun.program, message, context)
        return begun.ask(Turn(context=context, message=message))

    def close(self) -> None:
        """Begin no more runs. Called when the block of the runtime is left."""
        self._is_open = False

    def _program(self, deck: Deck, options: RunOptions) -> Program:
        return root_program(self._programs, deck, options)

    def _begin(self, deck: Deck, options: RunOptions, tracer: Tracer) -> BegunRun:
        program = self._program(deck, options)
        tree = self._tree(options, tracer)
        run = RunStarted(run_id=new_id("run"), deck=program.name, path=deck.path)
        tree.expect_code(program)
        actor = DeckActor(tree, program, run, bounds=Bounds(), account=tree.account)
        return BegunRun(
            actor=actor,
            program=program,
            tree=tree,
            run_id=run.run_id,
            began=tracer.stamp(),
        )

    def _tree(
        self,
        options: RunOptions,
        tracer: Tracer,
        *,
        found: FoundRun | None = None,
    ) -> RunTree:
        if not self._is_open:
            raise RequestError("the runtime is closed: its block was left")
        limits = options.limits
        return RunTree(
            provider=self._provider,
            candidates=self._candidates,
            store=self._store,
            tracer=tracer,
            hook=ToolHook(
                options.on_tool,
                max_calls=options.max_tool_calls,
                call_seconds=options.tool_seconds,
            ),
            account=Account(max_tokens=limits.max_tokens, max_cost=limits.max_cost),
            limits=limits,
            prices=options.prices,
            programs=self._programs,
            live=self._live,
            modules=self._modules,
            confinement=self._confinement,
            load=self._load,
            real_path=self._real_path,
            sources=self._sources,
            default_models=options.models or self._default_models,
            forced_models=options.models if options.forces_models else (),
            mode=options.mode,
            unconfined=options.unconfined,
            meta=SessionMeta(),
            threads=self._threads,
            past={} if found is None else found.past.below,
            abandoned=() if found is None else found.past.abandoned,
            answers={} if found is None else found.answers,
        )


@asynccontextmanager
async def open_runtime(
    provider: ModelProvider,
    *,
    reader: DeckReader,
    store: LogStore | None = None,
    sinks: Sequence[Sink] = (),
    options: RunOptions | None = None,
    platform: Platform | None = None,
) -> AsyncIterator[Runtime]:
    """Open a runtime: once for a service, or for one run.

    Leaving it ends the processes that code was confined in.

    Args:
        provider: answers for models.
        reader: where decks are read from.
        store: where logs are kept; in memory, and forgotten, if not told.
        sinks: where traces go.
        options: for all runs that bring none of their own.
        platform: what there is to confine code with; found out if not told.

    Raises:
        RequestError: the provider or the options are none.
    """
    if not callable(getattr(provider, "responses", None)):
        msg = f"a {type(provider).__name__} answers for no models: it has no responses"
        raise RequestError(msg)
    if not isinstance(options, RunOptions | None):
        msg = f"options is a {type(options).__name__}, and has to be RunOptions(...)"  # type: ignore[unreachable]  # who calls us may not be checked
        raise RequestError(msg)
    tracer = Tracer(*sinks)
    async with open_confinement(platform) as confinement:
        runtime = Runtime(
            provider,
            reader=reader,
            store=store or MemoryStore(),
            tracer=tracer,
            options=options or RunOptions(),
            confinement=confinement,
        )
        try:
            yield runtime
        finally:
            runtime.close()
