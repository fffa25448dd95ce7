"""One invocation of a deck: a task with a mailbox that does what is decided.

::

    Turn ─▶ mailbox ─▶ DeckActor ⇄ run.next_step
                          │  CallModel ▶ provider ▶ entries ▶ log ▶ trace
                          │  RunTools  ▶ CallRunner ▶ entries ▶ log ▶ trace
                          └  Finish    ▶ TurnEnded

Log first, then show: an entry is in the log before any event tells of it; only the
pieces of a model's answer are shown as they come. A turn that is cut, by its deadline
or by a cancel, still owes its log an ending: every call gets an output, and the turn
an end.
"""

from collections.abc import Callable, Sequence

import msgspec
import trio

from gambit_actors.actors.carrying_out import CallRunner
from gambit_actors.actors.children import Asker
from gambit_actors.actors.handlers import IdleWatch
from gambit_actors.actors.telling import Teller
from gambit_actors.actors.trees import Limits, Live, RunTree, narrowed, new_id
from gambit_actors.errors import ProviderError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    assistant_message,
    user_message,
)
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.run.calls import with_unique_calls
from gambit_actors.run.entries import (
    Entry,
    Failure,
    ItemAdded,
    ModelAnswered,
    RunEnded,
    RunStarted,
    TurnEnded,
    TurnStarted,
)
from gambit_actors.run.envelopes import CallSource, output_text, refusal
from gambit_actors.run.ports import ItemLog, ModelContext
from gambit_actors.run.programs import Program
from gambit_actors.run.states import RunState
from gambit_actors.run.steps import CallModel, Finish, RunTools, next_step
from gambit_actors.run.synthetic import context_items
from gambit_actors.trace import events

LAST_WORDS_SECONDS = 5.0
"""How long a turn that was cut may take to write its ending."""


class Turn(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A message in a mailbox: what a deck is asked for, and where its answer goes.

    Attributes:
        context: what the deck is given to know; UNSET for nothing.
        message: what the user says; None if the deck is to speak first.
        answer: takes the one end that this turn comes to.
    """

    context: JSONValue = msgspec.UNSET
    message: str | None = None
    answer: trio.MemorySendChannel[TurnEnded]


class DeckActor:
    """Works on one deck for one asker.

    Args:
        tree: what is shared with the other actors of the run.
        program: the deck, and what it may do.
        limits: those of the asker; the deck's own can only be tighter.
        run: how the log begins.
    """

    def __init__(
        self, tree: RunTree, program: Program, limits: Limits, run: RunStarted
    ) -> None:
        self.state = RunState()
        self._tree = tree
        self._program = program
        self._asked_limits = limits
        self._limits = limits
        self._run = run
        self._log: ItemLog | None = None
        self._idle: IdleWatch | None = None
        self._has_finished = False
        self._teller = Teller(
            tracer=tree.tracer, run=run, deck=program.name, span=new_id("action")
        )
        self._live = Live(
            run_id=run.run_id,
            deck=program.name,
            depth=run.depth,
            parent_run_id=run.parent_run_id,
        )

    @property
    def run_id(self) -> str:
        """The run this actor writes the log of."""
        return self._run.run_id

    async def run(self, inbox: trio.MemoryReceiveChannel[Turn]) -> None:
        """Take turns until the mailbox is closed, then say goodbye to the log."""
        tree, run = self._tree, self._run
        tree.live[run.run_id] = self._live
        tree.spent.decks += 1
        status: events.EndStatus = "cancelled"
        try:
            self._log = await tree.store.open_log(run)
            self.state.feed(run)
            with inbox:
                async for turn in inbox:
                    ended = await self._take(turn)
                    status = ended.status
                    turn.answer.send_nowait(ended)
                    self._live.doing = "waiting"
        finally:
            del tree.live[run.run_id]
            if self._log is not None:
                with trio.move_on_after(LAST_WORDS_SECONDS, shield=True):
                    await self._log.append([RunEnded(status=status)])
                    await self._log.aclose()

    async def _take(self, turn: Turn) -> TurnEnded:
        """Work on one turn within its time, and leave nothing open behind."""
        self._limits = narrowed(self._asked_limits, self._program.deck.guardrails)
        self._has_finished = False
        self._teller.deck_start(self._program.deck.label)
        ended = _ended("cancelled", "cancelled", "the run was cancelled")
        try:
            with trio.CancelScope(deadline=self._limits.deadline) as scope:
                ended = await self._work_watched(turn)
            if scope.cancelled_caught:
                seconds = self._limits.timeout_seconds
                message = f"the deck did not answer within {seconds:g} seconds"
                ended = _ended("failed", "timeout", message)
            await self._finish(ended)
        except BaseException:
            # A turn that was cut still owes its log an ending, but not for long. What
            # was cancelled did not happen, so if there is none yet, it is written now.
            if not self._has_finished:
                with trio.move_on_after(LAST_WORDS_SECONDS, shield=True):
                    await self._finish(ended)
            raise
        return ended

    async def _work(self, turn: Turn) -> TurnEnded:
        await self._append(self._opening(turn))
        if turn.message is not None:
            self._teller.user_message(turn.message)
        while True:
            await trio.lowlevel.checkpoint_if_cancelled()
            step = next_step(
                self._program, self.state, max_passes=self._limits.max_passes
            )
            match step:
                case CallModel(request=request, first=first):
                    await self._call_model(request, first)
                case RunTools(calls=calls):
                    self._live.doing = ", ".join(call.name for call in calls)
                    await self._carry_out(calls)
                case Finish(ended=ended):
                    return ended

    async def _carry_out(self, calls: tuple[FunctionCall, ...]) -> None:
        if self._idle is not None:
            self._idle.pause()
        await CallRunner(self._asker()).carry_out(calls, self.state, self._append)
        if self._idle is not None:
            self._idle.go_on()

    def _asker(self) -> Asker:
        return Asker(
            tree=self._tree,
            program=self._program,
            limits=self._limits,
            run=self._run,
            teller=self._teller,
        )

    async def _work_watched(self, turn: Turn) -> TurnEnded:
        """Work on a turn, with an eye on how long nothing happens."""
        handler = self._program.deck.handlers.on_idle
        if handler is None:
            return await self._work(turn)
        self._idle = IdleWatch(handler, self._say_idle)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._idle.run, self._asker())
            ended = await self._work(turn)
            nursery.cancel_scope.cancel()
        self._idle = None
        return ended

    async def _say_idle(self, words: str, elapsed_ms: int) -> None:
        item = assistant_message(f"{words} (idle for {elapsed_ms}ms)")
        await self._append([ItemAdded(item=item, source="handler")])
        self._teller.handler_said("idle", words, elapsed_ms)

    def _opening(self, turn: Turn) -> list[Entry]:
        """What a turn begins with; the prompt and the context only the first time."""
        entries: list[Entry] = [TurnStarted()]
        if not self.state.turns:
            if self._program.opening is not None:
                entries.append(ItemAdded(item=self._program.opening, source="deck"))
            if turn.context is not msgspec.UNSET:
                items = context_items(new_id("call"), turn.context)
                entries += [ItemAdded(item=item, source="deck") for item in items]
        if turn.message is not None:
            item = user_message(turn.message)
            entries.append(ItemAdded(item=item, source="user"))
        return entries

    async def _call_model(
        self, request: CreateResponse, first: tuple[Entry, ...]
    ) -> None:
        if first:
            await self._append(first)
        models = self._program.deck.model_params.models or self._tree.default_models
        if not models:
            self._end_turn("no_model", f"{self._program.name} names no model")
        for index, model in enumerate(models):
            self._live.doing = model
            asked = msgspec.structs.replace(request, model=model)
            try:
                response = await self._ask(asked, model)
            except ProviderError as problem:
                if index + 1 == len(models):
                    self._end_turn("model_unavailable", str(problem))
                else:
                    self._teller.failover(model, models[index + 1], _told(problem))
            else:
                await self._take_answer(model, response)
                return
        await trio.lowlevel.checkpoint()

    async def _ask(self, request: CreateResponse, model: str) -> Response:
        state = self.state
        context = ModelContext(
            run_id=self._run.run_id,
            deck=self._program.name,
            turn=state.turns,
            pass_number=state.passes + 1,
        )
        span = f"{self._teller.span}:{state.turns}.{context.pass_number}"
        self._teller.model_call(
            span,
            model,
            pass_number=context.pass_number,
            items=len(state.sent),
            tools=len(self._program.template.tools or ()),
        )
        response: Response | None = None
        error: events.TraceError | None = None
        try:
            response = await self._tree.provider.responses(
                request, context, self._shower(model)
            )
        except ProviderError as problem:
            error = _told(problem)
            raise
        finally:
            self._teller.model_result(
                span,
                model,
                pass_number=context.pass_number,
                response=response,
                error=error,
            )
        return response

    def _shower(self, model: str) -> Callable[[Event], None]:
        """What takes the pieces of an answer: they are told, and a sign of life."""
        show, idle = self._teller.stream_of(model), self._idle
        if idle is None:
            return show

        def touch_and_show(event: Event) -> None:
            idle.touch()
            show(event)

        return touch_and_show

    async def _take_answer(self, model: str, response: Response) -> None:
        spent = self._tree.spent
        spent.passes += 1
        if response.usage is not None:
            spent.add_usage(response.usage)
        answered = ModelAnswered(
            model=model,
            status=response.status,
            response_id=response.id,
            reason=_reason(response),
            usage=response.usage,
        )
        items = with_unique_calls(response.output, self.state.items)
        added = [ItemAdded(item=item, source="model") for item in items]
        await self._append([answered, *added])

    async def _append(self, entries: Sequence[Entry]) -> None:
        """Write entries down, then count them, then show them."""
        assert self._log is not None  # noqa: S101  # opened before the first turn
        await self._log.append(entries)
        for entry in entries:
            self.state.feed(entry)
        for entry in entries:
            self._teller.logged(entry)
        if self._idle is not None and not _is_of_handler(entries):
            self._idle.touch()

    def _end_turn(self, code: str, message: str) -> None:
        """End the turn at the next step; the end is logged with the rest."""
        self.state.feed(_ended("failed", code, message))

    async def _finish(self, ended: TurnEnded) -> None:
        """Give every call an output, and the turn an end."""
        entries: list[Entry] = []
        for call in self.state.pending.values():
            output = self.state.finished.get(call.call_id)
            if output is None:
                source = CallSource(
                    run_id=self._run.run_id,
                    call_id=call.call_id,
                    parent_call_id=self._teller.span,
                    deck_path=self._program.name,
                    name=call.name,
                )
                why = ended.failure.message if ended.failure else "the run ended"
                output = output_text(refusal(499, "not_carried_out", why), source)
            item = FunctionCallOutput(call_id=call.call_id, output=output)
            entries.append(ItemAdded(item=item, source="runtime"))
        entries.append(ended)
        await self._append(entries)
        self._has_finished = True
        self._teller.deck_end(ended)


def _is_of_handler(entries: Sequence[Entry]) -> bool:
    return all(isinstance(e, ItemAdded) and e.source == "handler" for e in entries)


def _told(problem: ProviderError) -> events.TraceError:
    return events.TraceError(code="provider_error", message=str(problem))


def _ended(status: events.EndStatus, code: str, message: str) -> TurnEnded:
    return TurnEnded(status=status, failure=Failure(code=code, message=message))


def _reason(response: Response) -> str | None:
    if response.error is not None:
        return response.error.message
    details = response.incomplete_details
    return details.reason if details is not None else None
