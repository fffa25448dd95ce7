"""The door to the actors: open a runtime once, run decks in it for weeks.

::

    async with open_runtime(provider, reader=DiskReader()) as runtime:
        result = await runtime.run("decks/support", message="Where is my order?")

A `Runtime` has no global state: two in one process know nothing of each other. A run is
cancelled by leaving the block it is awaited in. Nothing of a run is kept when it is
over, but what its store keeps.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import msgspec
import trio

from gambit_actors.actors.actor import DeckActor, Turn
from gambit_actors.actors.compute import Modules
from gambit_actors.actors.confined.confinement import Confinement, open_confinement
from gambit_actors.actors.confined.rules import Platform
from gambit_actors.actors.hook import OnTool, ToolHook
from gambit_actors.actors.memory_log import MemoryStore
from gambit_actors.actors.sessions import RunResult, Session
from gambit_actors.actors.telling import error_of
from gambit_actors.actors.trees import Limits, Live, ProgramKey, RunTree, new_id
from gambit_actors.deck.loader import DeckCache
from gambit_actors.deck.model import Deck
from gambit_actors.deck.permissions import Permissions, root_permissions
from gambit_actors.deck.reader import DeckReader
from gambit_actors.errors import RunFailed
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.budgets import Spent
from gambit_actors.run.entries import RunStarted, TurnEnded
from gambit_actors.run.ports import LogStore, ModelProvider
from gambit_actors.run.programs import Program, RuntimeTool
from gambit_actors.trace import events
from gambit_actors.trace.tracer import Sink, Tracer

_MAX_PROGRAMS = 1000


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What can be different from run to run.

    Attributes:
        on_tool: carries out external tools.
        limits: beyond which no deck of the run can go.
        permissions: what narrows those of the deck; None leaves them.
        models: asked where a deck names none.
        unconfined: actions that may run without the confinement that their
            permissions ask for.
    """

    on_tool: OnTool | None = None
    limits: Limits = Limits()
    permissions: Permissions | None = None
    models: tuple[str, ...] = ()
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
        self._programs: dict[ProgramKey, Program] = {}
        self._live: dict[str, Live] = {}

    def snapshot(self) -> tuple[Live, ...]:
        """The actors that are alive now; ``parent_run_id`` makes a tree of them."""
        return tuple(self._live.values())

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
        # Nobody can stream this one, so it needs no tracer of its own.
        async with self._open(deck, options, self._tracer) as session:
            return await session.send(message, context=context)

    def open_session(
        self, deck: str | Deck, *, options: RunOptions | None = None
    ) -> AbstractAsyncContextManager["Session"]:
        """Hold a conversation with a deck, one turn after the other.

        Entering loads the deck. Leaving the block ends the conversation; what is under
        way is cancelled, and waited for.

        Raises:
            InvalidDeck: the deck has mistakes.
        """
        sinks = [self._tracer.emit] if self._tracer.is_on else []
        return self._open(deck, options, Tracer(*sinks, clock=self._tracer.stamp))

    @asynccontextmanager
    async def _open(
        self, deck: str | Deck, options: RunOptions | None, tracer: Tracer
    ) -> AsyncIterator["Session"]:
        loaded = await self.load(deck)
        options = options or self._options
        tree = self._tree(loaded, options, tracer)
        program = tree.program(
            loaded,
            root_permissions(loaded.permissions, run=options.permissions).effective,
            is_declared=(loaded.permissions or options.permissions) is not None,
        )
        run = RunStarted(run_id=new_id("run"), deck=program.name)
        actor = DeckActor(tree, program, options.limits, run)
        mailbox, inbox = trio.open_memory_channel[Turn](0)
        _tell_start(run, tracer)
        began = tracer.stamp()
        session = Session(actor, program, mailbox, tree)
        problem: Exception | None = None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(tree.hook.run)
                nursery.start_soon(session.live, inbox)
                try:
                    yield session
                except Exception as raised:  # noqa: BLE001  # raised again below
                    # The caller's own error: it leaves the block as it is, and not in
                    # a group with what the actors had to say.
                    problem = raised
                finally:
                    # The stop signal: who listens ends when there is nobody to hear.
                    mailbox.close()
                    tree.hook.close()
                    if session.is_busy:
                        nursery.cancel_scope.cancel()
        finally:
            _tell_end(run, tree, session.last, began)
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

    def _tree(self, deck: Deck, options: RunOptions, tracer: Tracer) -> RunTree:
        if len(self._programs) > _MAX_PROGRAMS:
            self._programs.clear()  # Decks that were loaded anew leave theirs behind.
        return RunTree(
            provider=self._provider,
            store=self._store,
            tracer=tracer,
            hook=ToolHook(options.on_tool),
            spent=Spent(),
            programs=self._programs,
            names=_relative_to(deck.path),
            live=self._live,
            modules=self._modules,
            confinement=self._confinement,
            load=self.load,
            real_path=self._reader.real_path,
            default_models=options.models,
            runtime_tools=options.runtime_tools,
            unconfined=options.unconfined,
            meta={},
        )


def _tell_start(run: RunStarted, tracer: Tracer) -> None:
    if tracer.is_on:
        tracer.emit(
            events.RunStart(run_id=run.run_id, time=tracer.stamp(), deck_path=run.deck)
        )


def _tell_end(
    run: RunStarted, tree: RunTree, last: TurnEnded | None, began: float
) -> None:
    if not tree.tracer.is_on:
        return
    now, spent = tree.tracer.stamp(), tree.spent
    tree.tracer.emit(
        events.RunEnd(
            run_id=run.run_id,
            time=now,
            deck_path=run.deck,
            status=last.status if last else "cancelled",
            error=error_of(last) if last else None,
            duration=now - began,
            passes=spent.passes,
            calls=spent.calls,
            decks=spent.decks,
            usage=spent.as_usage(),
        )
    )


def _relative_to(root: str) -> Callable[[str], str]:
    """How the decks of a tree are shown: without the folders above it."""
    folder = Path(root).parent.parent

    def shown(path: str) -> str:
        if path.startswith("gambit://"):
            return path
        try:
            return Path(path).relative_to(folder).as_posix()
        except ValueError:
            return Path(path).name

    return shown


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
