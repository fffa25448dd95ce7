"""A conversation with a deck, turn by turn, whole or as it comes.

A `Session` has a tracer of its own that passes everything on to the runtime's: what a
stream shows is of that session and no other, and who does not stream pays nothing.
"""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import trio

from gambit_actors.actors.actor import DeckActor, Turn
from gambit_actors.actors.trees import RunTree
from gambit_actors.errors import RequestError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.events import OutputTextDelta
from gambit_actors.openresponses.items import Item
from gambit_actors.openresponses.responses import Usage
from gambit_actors.run.calls import problem_words
from gambit_actors.run.entries import Failure, RunStatus, TurnEnded
from gambit_actors.run.programs import Program
from gambit_actors.schema.schemas import LoadedSchema
from gambit_actors.trace import events
from gambit_actors.trace.live import LiveFeed, Subscription

MAX_EVENTS = 1000
"""How many events of a stream may wait for a reader before the oldest are missed."""


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


class Session:
    """A conversation with a deck. Made by `Runtime.open_session`.

    Attributes:
        is_busy: whether a turn is under way.
        last: how the last turn ended; None if none has, or it was cancelled.
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
        self._scope = trio.CancelScope()
        self._over = trio.Event()

    async def send(
        self, message: str | None = None, *, context: JSONValue = msgspec.UNSET
    ) -> RunResult:
        """Say something, and wait for the answer.

        Who is cancelled here cancels the turn, and with it the session.

        Args:
            message: None lets the deck speak first.
            context: what the deck is given to know; only with the first message.

        Raises:
            RequestError: the context does not fit, somebody has to speak first, the
                last answer is still being waited for, or the session is over.
        """
        return await self._ask(message, self._begin(message, context))

    @asynccontextmanager
    async def stream(
        self,
        message: str | None = None,
        *,
        context: JSONValue = msgspec.UNSET,
        max_events: int = MAX_EVENTS,
    ) -> AsyncIterator["TurnStream"]:
        """Say something, and watch the answer come.

        Entering waits for nothing. Leaving before the last event cancels the turn, and
        with it the session, and waits until both have stopped.

        Args:
            message: None lets the deck speak first.
            context: what the deck is given to know; only with the first message.
            max_events: how many may wait for a slow reader. More than that, and the
                oldest are missed, which a `Lagged` tells; the run goes on regardless.

        Raises:
            RequestError: as `send` does, on entering.
        """
        context = self._begin(message, context)
        feed, tracer = LiveFeed(), self._tree.tracer
        problem: Exception | None = None
        tracer.add(feed)
        try:
            with feed.subscribe(max_events=max_events) as waiting:
                stream = TurnStream(waiting, self._actor.run_id)
                async with trio.open_nursery() as nursery:

                    async def work() -> None:
                        stream.ended = await self._ask(message, context)
                        feed.close()

                    nursery.start_soon(work)
                    try:
                        yield stream
                    except Exception as raised:  # noqa: BLE001  # raised again below
                        problem = raised
                    nursery.cancel_scope.cancel()
        finally:
            tracer.remove(feed)
        if problem is not None:
            raise problem

    async def live(self, inbox: trio.MemoryReceiveChannel[Turn]) -> None:
        """Let the actor take turns until it is told to stop. For `Runtime` alone."""
        try:
            with self._scope:
                await self._actor.run(inbox)
        finally:
            self._over.set()

    async def _ask(self, message: str | None, context: JSONValue) -> RunResult:
        answer, answers = trio.open_memory_channel[TurnEnded](1)
        turn = Turn(context=context, message=message, answer=answer)
        try:
            with answer, answers:
                await self._mailbox.send(turn)
                self.last = await answers.receive()
        finally:
            if self.last is None:
                # Nobody waits for the answer any more, so nothing may go on for it.
                # Without an end of its own: an actor's last words have one.
                self._scope.cancel()
                with trio.CancelScope(shield=True, deadline=math.inf):
                    await self._over.wait()
            self.is_busy = False
        return self._result(self.last)

    def _result(self, ended: TurnEnded) -> RunResult:
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

    def _begin(self, message: str | None, context: JSONValue) -> JSONValue:
        """Take a turn if there is one to have; gives the context as it is to be."""
        if self.is_busy:
            msg = "the session is still busy with the last message"
            raise RequestError(msg)
        if self._over.is_set():
            msg = "the session is over: it was left, or a turn of it was cancelled"
            raise RequestError(msg)
        context = self._checked_context(message, context)
        self.is_busy = True
        self.last = None
        return context

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


class TurnStream:
    """A turn as it happens. Made by `Session.stream`; iterate over it.

    Gives the trace events of the turn, and of everything below it, in their order. It
    ends after the turn's last one, ``deck.end`` of the root.

    Attributes:
        ended: what the turn came to; None until it has.
    """

    def __init__(self, waiting: Subscription, run_id: str) -> None:
        self.ended: RunResult | None = None
        self._waiting = waiting
        self._run_id = run_id

    def __aiter__(self) -> Subscription:
        return self._waiting

    def text(self) -> "TextPieces":
        """The words of the root deck alone, piece by piece as they come.

        What a slow reader misses is missing; `result` has the whole answer.
        """
        return TextPieces(self._waiting, self._run_id)

    @property
    def result(self) -> RunResult:
        """What the turn came to.

        Raises:
            RequestError: it has not come to its end, or was cancelled.
        """
        if self.ended is None:
            msg = "the turn has no result: it was not followed to its end"
            raise RequestError(msg)
        return self.ended


class TextPieces:
    """The words in a stream of events. Made by `TurnStream.text`."""

    def __init__(self, waiting: Subscription, run_id: str) -> None:
        self._waiting = waiting
        self._run_id = run_id

    def __aiter__(self) -> "TextPieces":
        return self

    async def __anext__(self) -> str:
        async for event in self._waiting:
            match event:
                case events.StreamEvent(
                    run_id=run_id, event=OutputTextDelta(delta=piece)
                ) if run_id == self._run_id:
                    return piece
        raise StopAsyncIteration


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
