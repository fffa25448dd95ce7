"""The door to the actors: open a runtime once, run decks in it for weeks.

::

    async with open_runtime(provider, reader=DiskReader()) as runtime:
        result = await runtime.run("decks/support", message="Where is my order?")

A `Runtime` has no global state: two in one process know nothing of each other. A run is
cancelled by leaving the block it is awaited in. Nothing of a run is kept when it is
over, but what its store keeps.
"""

import math
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import msgspec
import trio

from gambit_actors.actors.actor import DeckActor
from gambit_actors.actors.compute import Modules
from gambit_actors.actors.confined.confinement import Confinement, open_confinement
from gambit_actors.actors.confined.rules import Platform
from gambit_actors.actors.hook import MAX_CALLS, OnTool, ToolHook
from gambit_actors.actors.mailboxes import Turn, ask_once
from gambit_actors.actors.memory_log import MemoryStore
from gambit_actors.actors.program_cache import ProgramCache
from gambit_actors.actors.session_meta import SessionMeta
from gambit_actors.actors.sessions import (
    RunResult,
    Session,
    checked_context,
    result_of,
)
from gambit_actors.actors.telling import error_of
from gambit_actors.actors.trees import (
    Bounds,
    Limits,
    Live,
    LiveActor,
    RunTree,
    actor_tree,
    new_id,
)
from gambit_actors.deck.loader import DeckCache
from gambit_actors.deck.model import Deck
from gambit_actors.deck.permissions import Permissions
from gambit_actors.deck.reader import DeckReader
from gambit_actors.errors import RunFailed
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.budgets import Account, Price
from gambit_actors.run.entries import RunStarted, TurnEnded
from gambit_actors.run.ports import LogStore, ModelProvider
from gambit_actors.run.programs import Program, RuntimeTool
from gambit_actors.trace import events
from gambit_actors.trace.tracer import Sink, Tracer


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What can be different from run to run.

    Attributes:
        on_tool: carries out external tools.
        max_tool_calls: how many of those are out at once.
        tool_seconds: how long one may take.
        limits: beyond which no deck of the run can go.
        permissions: what narrows those of the deck; None leaves them.
        models: asked where a deck names none.
        prices: what models cost, by name; without one, what a run costs is unknown.
        runtime_tools: external tools that every deck of the run is offered.
        unconfined: actions that may run without the confinement that their
            permissions ask for.
    """

    on_tool: OnTool | None = None
    max_tool_calls: int = MAX_CALLS
    tool_seconds: float = float("inf")
    limits: Limits = Limits()
    permissions: Permissions | None = None
    models: tuple[str, ...] = ()
    prices: dict[str, Price] = {}
    runtime_tools: tuple[RuntimeTool, ...] = ()
    unconfined: frozenset[str] = frozenset()


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
        self._reader = reader
        self._store = store
        self._tracer = tracer
        self._options = options
        self._cache = DeckCache()
        self._modules = Modules()
        self._confinement = confinement
        self._programs = ProgramCache()
        self._live: dict[str, Live] = {}
        self._threads = trio.CapacityLimiter(math.inf)

    def snapshot(self) -> tuple[LiveActor, ...]:
        """The actors that are alive now: those that runs began with, others below."""
        return actor_tree(self._live)

    async def run(
        self,
        deck: str | Deck,
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
        result = await self.try_run(
            deck, message=message, context=context, options=options
        )
        if result.failure is not None:
            raise RunFailed(result.failure.code, result.failure.message, result)
        return result

    async def try_run(
        self,
        deck: str | Deck,
        *,
        message: str | None = None,
        context: JSONValue = msgspec.UNSET,
        options: RunOptions | None = None,
    ) -> RunResult:
        """Run a deck for one answer; a run that fails is a result like any other."""
        loaded = deck if isinstance(deck, Deck) else await self.load(deck)
        # Nobody can stream this one, so it needs no tracer of its own.
        begun = self._begin(loaded, options or self._options, self._tracer)
        context = checked_context(begun.program, message, context)
        begun.tell_start(context, message)
        ended: TurnEnded | None = None
        try:
            turn = Turn(context=context, message=message)
            ended = await ask_once(begun.actor, turn, hook=begun.tree.hook)
        finally:
            begun.tell_end(ended)
        return result_of(begun.actor, begun.tree, ended)

    def open_session(
        self, deck: str | Deck, *, options: RunOptions | None = None
    ) -> AbstractAsyncContextManager["Session"]:
        """Hold a conversation with a deck, one turn after the other.

        Entering loads the deck. Leaving the block ends the conversation; what is under
        way is cancelled, and waited for.

        Raises:
            InvalidDeck: the deck has mistakes.
        """
        return self._open(deck, options or self._options)

    @asynccontextmanager
    async def _open(
        self, deck: str | Deck, options: RunOptions
    ) -> AsyncIterator["Session"]:
        loaded = deck if isinstance(deck, Deck) else await self.load(deck)
        # A tracer of its own: a stream shows what is of this session and no other.
        sinks = [self._tracer.emit] if self._tracer.is_on else []
        tracer = Tracer(*sinks, clock=self._tracer.stamp)
        begun = self._begin(loaded, options, tracer)
        actor, hook = begun.actor, begun.tree.hook
        mailbox, inbox = trio.open_memory_channel[Turn](1)
        outbox, answers = trio.open_memory_channel[TurnEnded](1)
        session = Session(
            actor, begun.program, begun.tree, mailbox=mailbox, answers=answers
        )
        problem: Exception | None = None
        begun.tell_start()
        try:
            async with trio.open_nursery() as nursery:
                hook.start(nursery)
                nursery.start_soon(actor.run, inbox, outbox)
                try:
                    yield session
                except Exception as raised:  # noqa: BLE001  # raised again below
                    # The caller's own error: it leaves the block as it is, and not in
                    # a group with what the actors had to say.
                    problem = raised
                finally:
                    session.is_over = True
                    # The stop signal: who listens ends when there is nobody to hear.
                    mailbox.close()
                    if session.is_busy:
                        nursery.cancel_scope.cancel()
        finally:
            begun.tell_end(session.last)
        if problem is not None:
            raise problem

    async def load(self, deck: str | Deck) -> Deck:
        """Load a deck, reading again only what has changed.

        Raises:
            InvalidDeck: it has mistakes.
        """
        if isinstance(deck, Deck):
            await trio.lowlevel.checkpoint()
            return deck
        loaded = await trio.to_thread.run_sync(self._cache.load, self._reader, deck)
        return loaded.usable()

    def _begin(self, deck: Deck, options: RunOptions, tracer: Tracer) -> "_Begun":
        program = self._programs.root(
            deck, permissions=options.permissions, runtime_tools=options.runtime_tools
        )
        limits = options.limits
        tree = RunTree(
            provider=self._provider,
            store=self._store,
            tracer=tracer,
            hook=ToolHook(
                options.on_tool,
                max_calls=options.max_tool_calls,
                call_seconds=options.tool_seconds,
            ),
            account=Account(max_tokens=limits.max_tokens, max_cost=limits.max_cost),
            settled=trio.lowlevel.ParkingLot(),
            limits=limits,
            prices=options.prices,
            programs=self._programs,
            live=self._live,
            modules=self._modules,
            confinement=self._confinement,
            load=self.load,
            real_path=self._reader.real_path,
            default_models=options.models,
            unconfined=options.unconfined,
            meta=SessionMeta(),
            threads=self._threads,
        )
        run = RunStarted(run_id=new_id("run"), deck=program.name, path=deck.path)
        tree.expect_code(program)
        actor = DeckActor(tree, program, run, bounds=Bounds(), account=tree.account)
        return _Begun(actor, program, tree, run.run_id, tracer.stamp())


class _Begun(msgspec.Struct, frozen=True, eq=False):
    """A run that is about to start, and how it is told of."""

    actor: DeckActor
    program: Program
    tree: RunTree
    run_id: str
    began: float

    def tell_start(
        self, context: JSONValue = msgspec.UNSET, message: str | None = None
    ) -> None:
        tracer = self.tree.tracer
        if tracer.is_on:
            tracer.emit(
                events.RunStart(
                    run_id=self.run_id,
                    time=self.began,
                    deck_path=self.program.name,
                    input=None if context is msgspec.UNSET else context,
                    initial_user_message=message,
                    permissions=self.program.told_permissions,
                )
            )

    def tell_end(self, last: TurnEnded | None) -> None:
        tracer, spent = self.tree.tracer, self.tree.account.spent
        if not tracer.is_on:
            return
        now = tracer.stamp()
        tracer.emit(
            events.RunEnd(
                run_id=self.run_id,
                time=now,
                deck_path=self.program.name,
                status=last.status if last else "cancelled",
                error=error_of(last) if last else None,
                duration=now - self.began,
                passes=spent.passes,
                calls=spent.calls,
                decks=spent.decks,
                usage=spent.as_usage(),
                cost=spent.known_cost,
                models=tuple(spent.models),
            )
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
    """
    tracer = Tracer(*sinks)
    async with open_confinement(platform) as confinement:
        yield Runtime(
            provider,
            reader=reader,
            store=store or MemoryStore(),
            tracer=tracer,
            options=options or RunOptions(),
            confinement=confinement,
        )
