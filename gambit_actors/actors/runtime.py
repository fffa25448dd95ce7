"""The door to the actors: open a runtime once, run decks in it for weeks.

::

    async with open_runtime(provider) as runtime:
        result = await runtime.run("decks/support", message="Where is my order?")

A `Runtime` has no global state: two in one process know nothing of each other. A run is
cancelled by leaving the block it is awaited in. Nothing of a run is kept when it is
over, but what its store keeps.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import trio

from gambit_actors.actors.actor import DeckActor, Turn
from gambit_actors.actors.compute import Modules
from gambit_actors.actors.hook import OnTool, ToolHook
from gambit_actors.actors.memory_log import MemoryStore
from gambit_actors.actors.trees import Limits, Live, RunTree, new_id
from gambit_actors.deck.loader import DeckCache
from gambit_actors.deck.model import Deck
from gambit_actors.deck.permissions import Permissions, root_permissions
from gambit_actors.deck.reader import DeckReader
from gambit_actors.errors import RequestError, RunFailed
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import Item
from gambit_actors.openresponses.responses import Usage
from gambit_actors.run.budgets import Spent
from gambit_actors.run.calls import problem_words
from gambit_actors.run.entries import Failure, RunStarted, RunStatus, TurnEnded
from gambit_actors.run.ports import LogStore, ModelProvider
from gambit_actors.run.programs import Program, RuntimeTool
from gambit_actors.schema.schemas import LoadedSchema
from gambit_actors.trace import events
from gambit_actors.trace.tracer import Sink, Tracer

_MAX_PROGRAMS = 1000


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a run, or a turn of a session, came to.

    Attributes:
        value: the answer, checked against the deck's responseSchema and filled in.
        text: the answer as words.
        items: the whole conversation of the root deck.
        usage: tokens of the whole tree.
        failure: why there is no answer, if there is none.
        is_end: whether the deck asked for the whole conversation to stop.
    """

    run_id: str
    status: RunStatus
    value: JSONValue = None
    text: str = ""
    items: tuple[Item, ...] = ()
    usage: Usage
    failure: Failure | None = None
    is_end: bool = False
    envelope: dict[str, JSONValue] = {}


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
    ) -> None:
        self._provider = provider
        self._reader = reader
        self._store = store
        self._tracer = tracer
        self._options = options
        self._cache = DeckCache()
        self._modules = Modules()
        self._programs: dict[tuple[int, Permissions], Program] = {}
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
        async with self.open_session(deck, options=options) as session:
            return await session.send(message, context=context)

    @asynccontextmanager
    async def open_session(
        self, deck: str | Deck, *, options: RunOptions | None = None
    ) -> AsyncIterator["Session"]:
        """Hold a conversation with a deck, one turn after the other.

        Leaving the block ends it; what is under way is cancelled, and waited for.
        """
        loaded = await self.load(deck)
        options = options or self._options
        tree = self._tree(loaded, options)
        program = tree.program(
            loaded,
            root_permissions(loaded.permissions, run=options.permissions).effective,
        )
        run = RunStarted(run_id=new_id("run"), deck=program.name)
        actor = DeckActor(tree, program, options.limits, run)
        mailbox, inbox = trio.open_memory_channel[Turn](0)
        self._tell_start(run)
        began = self._tracer.stamp()
        session = Session(actor, program, mailbox, tree)
        problem: Exception | None = None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(tree.hook.run)
                nursery.start_soon(actor.run, inbox)
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
            self._tell_end(run, tree, session.last, began)
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

    def _tree(self, deck: Deck, options: RunOptions) -> RunTree:
        if len(self._programs) > _MAX_PROGRAMS:
            self._programs.clear()  # Decks that were loaded anew leave theirs behind.
        return RunTree(
            provider=self._provider,
            store=self._store,
            tracer=self._tracer,
            hook=ToolHook(options.on_tool),
            spent=Spent(),
            programs=self._programs,
            names=_relative_to(deck.path),
            live=self._live,
            modules=self._modules,
            default_models=options.models,
            runtime_tools=options.runtime_tools,
            unconfined=options.unconfined,
        )

    def _tell_start(self, run: RunStarted) -> None:
        if self._tracer.is_on:
            start = events.RunStart(
                run_id=run.run_id, time=self._tracer.stamp(), deck_path=run.deck
            )
            self._tracer.emit(start)

    def _tell_end(
        self, run: RunStarted, tree: RunTree, last: TurnEnded | None, began: float
    ) -> None:
        if not self._tracer.is_on:
            return
        now, spent = self._tracer.stamp(), tree.spent
        failure = last.failure if last else None
        error = None
        if failure is not None:
            error = events.TraceError(code=failure.code, message=failure.message)
        self._tracer.emit(
            events.RunEnd(
                run_id=run.run_id,
                time=now,
                deck_path=run.deck,
                status=last.status if last else "cancelled",
                error=error,
                duration=now - began,
                passes=spent.passes,
                calls=spent.calls,
                decks=spent.decks,
                usage=spent.as_usage(),
            )
        )


class Session:
    """A conversation with a deck. Made by `Runtime.open_session`.

    Attributes:
        is_busy: whether a turn is under way.
        last: how the last turn ended.
    """

    def __init__(
        self,
        actor: DeckActor,
        program: Program,
        mailbox: trio.MemorySendChannel[Turn],
        tree: RunTree,
    ) -> None:
        self.is_busy = False
        self.last: TurnEnded | None = None
        self._actor = actor
        self._program = program
        self._mailbox = mailbox
        self._tree = tree

    async def send(
        self, message: str | None = None, *, context: JSONValue = msgspec.UNSET
    ) -> RunResult:
        """Say something, and wait for the answer.

        Args:
            message: None lets the deck speak first.
            context: what the deck is given to know; only with the first message.

        Raises:
            RequestError: the context does not fit, somebody has to speak first, or the
                last answer is still being waited for.
        """
        if self.is_busy:
            msg = "the session is still busy with the last message"
            raise RequestError(msg)
        context = self._checked_context(message, context)
        answer, answers = trio.open_memory_channel[TurnEnded](1)
        self.is_busy = True
        with answer, answers:
            turn = Turn(context=context, message=message, answer=answer)
            await self._mailbox.send(turn)
            ended = await answers.receive()
        self.is_busy = False
        self.last = ended
        return RunResult(
            run_id=self._actor.run_id,
            status=ended.status,
            value=ended.result,
            text=ended.text,
            items=tuple(self._actor.state.items),
            usage=self._tree.spent.as_usage(),
            failure=ended.failure,
            is_end=ended.is_end,
            envelope=ended.envelope,
        )

    def _checked_context(self, message: str | None, context: JSONValue) -> JSONValue:
        deck = self._program.deck
        is_first = not self._actor.state.turns
        if context is not msgspec.UNSET and not is_first:
            msg = "context can only be given with the first message"
            raise RequestError(msg)
        if message is None and is_first and deck.start_mode == "user":
            msg = f"{self._program.name} waits for the user to speak: give it a message"
            raise RequestError(msg)
        schema = deck.context_schema
        if schema is None or not is_first:
            return context
        return _fitting(schema, context, self._program.name)


def _fitting(schema: LoadedSchema, given: JSONValue, name: str) -> JSONValue:
    """Context that fits a schema; where none is given, an empty value that does."""
    candidates: list[JSONValue] = [{}, ""] if given is msgspec.UNSET else [given]
    checks = [schema.validator.check(candidate) for candidate in candidates]
    for checked in checks:
        if checked.is_valid:
            return checked.value
    words = problem_words(checks[0].problems)
    msg = f"the context does not fit {name}: {words}"
    raise RequestError(msg)


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
) -> AsyncIterator[Runtime]:
    """Open a runtime: once for a service, or for one run.

    Args:
        provider: answers for models.
        reader: where decks are read from.
        store: where logs are kept; in memory, and forgotten, if not told.
        sinks: where traces go.
        options: for all runs that bring none of their own.
    """
    tracer = Tracer(*sinks)
    yield Runtime(
        provider,
        reader=reader,
        store=store or MemoryStore(),
        tracer=tracer,
        options=options or RunOptions(),
    )
