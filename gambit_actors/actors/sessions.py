"""A conversation with a deck, turn by turn, whole or as it comes.

A `Session` has a tracer of its own that passes everything on to the runtime's: what a
stream shows is of that session and no other, and who does not stream pays nothing.
"""

import contextlib
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import trio

from gambit_actors.actors.actor import DeckActor
from gambit_actors.actors.failing import CallersOwn
from gambit_actors.actors.given import checked_context
from gambit_actors.actors.mailboxes import Turn
from gambit_actors.actors.options import check_whole
from gambit_actors.actors.trees import RunTree
from gambit_actors.errors import RequestError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.events import OutputTextDelta
from gambit_actors.openresponses.items import Item
from gambit_actors.openresponses.responses import Usage
from gambit_actors.run.entries import Failure, RunStatus, TurnEnded
from gambit_actors.run.programs import Program
from gambit_actors.run.states import RunState
from gambit_actors.trace import events
from gambit_actors.trace.live import LiveFeed, Subscription

MAX_EVENTS = 1000
"""How many events of a stream may wait for a reader before the oldest are missed."""

_OVER = "the session is over: its block was left"
_GONE = (trio.BrokenResourceError, trio.ClosedResourceError)


class RunResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a run, or a turn of a session, came to.

    Attributes:
        value: the answer, checked against the deck's responseSchema and filled in.
        text: the answer as words.
        items: the whole conversation of the root deck.
        usage: tokens of the run so far, with all decks below.
        cost: the same in the currency of the prices; None where one is not known.
        failure: why there is no answer, if there is none.
        is_end: whether the deck asked for the whole conversation to stop.
    """

    run_id: str
    status: RunStatus
    value: JSONValue = None
    text: str = ""
    items: tuple[Item, ...] = ()
    usage: Usage
    cost: float | None = None
    failure: Failure | None = None
    is_end: bool = False
    envelope: dict[str, JSONValue] = {}


class Session:
    """A conversation with a deck. Made by `Runtime.open_session`.

    Args:
        actor: who answers.
        program: the deck.
        tree: what the actor shares with those below it.
        mailbox: where turns are put, one at a time.
        answers: where their ends come from.

    Attributes:
        is_busy: whether a turn is under way.
        is_over: whether there will be no more.
        last: how the last turn ended; None if none has.
    """

    def __init__(
        self,
        actor: DeckActor,
        program: Program,
        tree: RunTree,
        *,
        mailbox: trio.MemorySendChannel[Turn],
        answers: trio.MemoryReceiveChannel[TurnEnded],
    ) -> None:
        self.is_busy = False
        self.is_over = False
        self.last: TurnEnded | None = actor.state.ended
        self._over = trio.Event()
        self._actor = actor
        self._program = program
        self._tree = tree
        self._mailbox = mailbox
        self._answers = answers

    @property
    def run_id(self) -> str:
        """The run that all turns of the session are of."""
        return self._actor.run_id

    @property
    def is_unfinished(self) -> bool:
        """Whether its last turn was interrupted, and has to be gone on with first."""
        state = self._actor.state
        return not self.is_busy and state.turns > 0 and state.ended is None

    def end(self) -> None:
        """Take nothing more: whoever held the conversation has left it."""
        self.is_over = True
        self._over.set()

    async def go_on(self) -> RunResult:
        """Bring a turn to its end that was interrupted in another process.

        Raises:
            RequestError: there is none, or the log takes nothing more.
        """
        self._check_log()
        if not self.is_unfinished:
            msg = "the last turn was not interrupted: say something with send"
            raise RequestError(msg)
        self._take_turn()
        return await self._ask(Turn(is_continued=True))

    async def send(
        self, message: str | None = None, *, context: JSONValue = msgspec.UNSET
    ) -> RunResult:
        """Say something, and wait for the answer.

        Who is cancelled here cancels the turn, and leaves when all of it has stopped.
        The session goes on: something else can be said next.

        Args:
            message: None lets the deck speak first.
            context: what the deck is given to know; only with the first message.

        Raises:
            RequestError: the context does not fit, somebody has to speak first, the
                last answer is still being waited for, the log takes nothing more, or
                the session is over.
        """
        context = self._begin(message, context)
        return await self._ask(Turn(context=context, message=message))

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
        waits until all of it has stopped. The session goes on.

        Args:
            message: None lets the deck speak first.
            context: what the deck is given to know; only with the first message.
            max_events: how many may wait for a slow reader. More than that, and the
                oldest are missed, which a `Lagged` tells; the run goes on regardless.

        Raises:
            RequestError: as `send` does, on entering.
        """
        check_whole("max_events", max_events)
        context = self._begin(message, context)
        feed, tracer = LiveFeed(), self._tree.tracer
        tracer.add(feed)
        try:
            with CallersOwn() as own, feed.subscribe(max_events=max_events) as waiting:
                stream = TurnStream(waiting, self._actor.span)
                async with trio.open_nursery() as nursery:

                    async def work() -> None:
                        turn = Turn(context=context, message=message)
                        stream.ended = await self._ask(turn)
                        feed.close()

                    nursery.start_soon(work)
                    with own.kept():
                        yield stream
                    nursery.cancel_scope.cancel()
        finally:
            tracer.remove(feed)

    async def _ask(self, turn: Turn) -> RunResult:
        try:
            # An actor that was cancelled is gone: then there is no answer to wait for.
            with contextlib.suppress(*_GONE):
                self._mailbox.send_nowait(turn)
            self.last = await self._wait(turn)
        finally:
            self.is_busy = False
        return result_of(self._actor, self._tree, self.last)

    async def _wait(self, turn: Turn) -> TurnEnded:
        """Wait for the end of a turn; who does not wait any more calls it off."""
        try:
            return await self._answers.receive()
        except trio.Cancelled:
            turn.cancel()
            # Without an end of its own: an actor's last words have one. If the actor
            # is cancelled as well, it closes its side and there is no answer.
            with (
                contextlib.suppress(trio.EndOfChannel),
                trio.CancelScope(shield=True, deadline=math.inf),
            ):
                self.last = await self._answers.receive()
            raise
        except trio.EndOfChannel:
            # It is over, or it broke: whoever holds the session is told why, and
            # whoever asks from elsewhere is told that.
            await self._over.wait()  # noqa: ASYNC120  # that is the point
            raise RequestError(_OVER) from None

    def _begin(self, message: str | None, context: JSONValue) -> JSONValue:
        """Take a turn if there is one to have; gives the context as it is to be."""
        self._check_log()
        if self.is_unfinished:
            msg = "the last turn was interrupted: bring it to its end with go_on first"
            raise RequestError(msg)
        is_first = not self._actor.state.turns
        context = checked_context(self._program, message, context, is_first=is_first)
        self._take_turn()
        return context

    def _check_log(self) -> None:
        """Refuse to go on when what is said could not be kept any more."""
        failure = self.last.failure if self.last else None
        if failure is not None and failure.code == "store_failed":
            msg = f"the log of run {self.run_id} takes nothing more: {failure.message}"
            raise RequestError(msg)

    def _take_turn(self) -> None:
        if self.is_busy:
            msg = "the session is still busy with the last message"
            raise RequestError(msg)
        if self.is_over:
            raise RequestError(_OVER)
        self.is_busy = True


def result_of(actor: DeckActor, tree: RunTree, ended: TurnEnded) -> RunResult:
    """What a turn came to, with what it took."""
    spent = tree.account.spent
    return RunResult(
        run_id=actor.run_id,
        status=ended.status,
        value=ended.result,
        text=ended.text,
        items=tuple(actor.state.items),
        usage=spent.as_usage(),
        cost=spent.known_cost,
        failure=ended.failure,
        is_end=ended.is_end,
        envelope=ended.envelope,
    )


def recorded_result(
    run_id: str, state: RunState, *, usage: Usage, cost: float | None
) -> RunResult | None:
    """What a run came to, by its log; None if it came to nothing."""
    ended = state.ended
    if ended is None:
        return None
    return RunResult(
        run_id=run_id,
        status=ended.status,
        value=ended.result,
        text=ended.text,
        items=tuple(state.items),
        usage=usage,
        cost=cost,
        failure=ended.failure,
        is_end=ended.is_end,
        envelope=ended.envelope,
    )


class TurnStream:
    """A turn as it happens. Made by `Session.stream`; iterate over it.

    Gives the trace events of the turn, and of everything below it, in their order. It
    ends after the turn's last one, ``deck.end`` of the root.

    Attributes:
        ended: what the turn came to; None until it has.
    """

    def __init__(self, waiting: Subscription, span: str) -> None:
        self.ended: RunResult | None = None
        self._waiting = waiting
        self._span = span

    def __aiter__(self) -> Subscription:
        return self._waiting

    def text(self) -> "TextPieces":
        """The words of the root deck alone, piece by piece as they come.

        What a slow reader misses is missing; `result` has the whole answer.
        """
        return TextPieces(self._waiting, self._span)

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

    def __init__(self, waiting: Subscription, span: str) -> None:
        self._waiting = waiting
        self._span = span

    def __aiter__(self) -> "TextPieces":
        return self

    async def __anext__(self) -> str:
        async for event in self._waiting:
            match event:
                case events.StreamEvent(
                    parent_action_call_id=span, event=OutputTextDelta(delta=piece)
                ) if span == self._span:
                    return piece
        raise StopAsyncIteration
