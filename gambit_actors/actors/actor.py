"""One invocation of a deck: a task with a mailbox that does what is decided.

::

    Turn ─▶ inbox ─▶ DeckActor ⇄ run.next_step
                        │  CallModel ▶ ModelCalls ▶ entries ▶ log ▶ trace
                        │  RunTools  ▶ CallRunner ▶ entries ▶ log ▶ trace
                        └  Finish    ▶ TurnEnded ─▶ outbox

Log first, then show: an entry is in the log before any event tells of it; only the
pieces of a model's answer are shown as they come. A turn that is cut, by its deadline
or by a cancel, still owes its log an ending: every call gets an output, and the turn
an end.
"""

from collections.abc import Awaitable

import msgspec
import trio

from gambit_actors.actors.abandoning import abandon, abandon_left
from gambit_actors.actors.beginnings import beginnings, planned_calls
from gambit_actors.actors.carrying_out import CallRunner
from gambit_actors.actors.children import Asker
from gambit_actors.actors.failing import is_of_model, store_error_in
from gambit_actors.actors.handlers import IdleWatch, after_model_error
from gambit_actors.actors.mailboxes import Turn, next_turn
from gambit_actors.actors.model_calls import ModelCalls
from gambit_actors.actors.opening import open_turn
from gambit_actors.actors.run_log import RunLog
from gambit_actors.actors.telling import Teller
from gambit_actors.actors.trees import Bounds, Live, RunTree, narrowed, new_id
from gambit_actors.deck.model import Action, Handler
from gambit_actors.errors import NotWritable, StoreError
from gambit_actors.openresponses.items import (
    FunctionCall,
    assistant_message,
)
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.run.budgets import Account, Spent
from gambit_actors.run.calls import PlannedCall, with_unique_calls
from gambit_actors.run.endings import outputs_when_cut, run_ended, turn_failed
from gambit_actors.run.entries import (
    Entry,
    Failure,
    ItemAdded,
    RunEnded,
    RunStarted,
    RunStatus,
    TurnEnded,
)
from gambit_actors.run.openings import answer_entry
from gambit_actors.run.ports import LogReopened
from gambit_actors.run.programs import Program
from gambit_actors.run.secrets import secrets_in, secrets_of_call
from gambit_actors.run.steps import CallModel, Finish, RunTools, next_step

LAST_WORDS_SECONDS = 5.0
"""How long a turn that was cut may take to write its ending."""


class DeckActor:
    """Works on one deck for one asker.

    Args:
        tree: what is shared with the other actors of the run.
        program: the deck, and what it may do.
        run: how the log begins.
        bounds: those of the asker; the deck's own can only be tighter.
        account: that of the asker, which pays for this one.
        reopened: the log of the run, if another process had begun it.

    Attributes:
        state: the run so far.
        span: the actor's id in the trace.
        spent_before: what a turn that is gone on with had used.
        opened: set when what another process had written is known; None for a new run.
    """

    __slots__ = (
        "_account",
        "_answer",
        "_append",
        "_asked_bounds",
        "_begun",
        "_bounds",
        "_has_finished",
        "_is_last",
        "_is_new",
        "_live",
        "_log",
        "_models",
        "_paying",
        "_program",
        "_run",
        "_teller",
        "_tree",
        "opened",
        "span",
        "spent_before",
        "state",
    )

    def __init__(
        self,
        tree: RunTree,
        program: Program,
        run: RunStarted,
        *,
        bounds: Bounds,
        account: Account,
        reopened: LogReopened | None = None,
    ) -> None:
        self.spent_before: Spent | None = None
        self.opened = None if reopened is None else trio.Event()
        self.span = new_id("action")
        self._tree = tree
        self._program = program
        self._run = run
        self._asked_bounds = self._bounds = bounds
        self._paying = self._account = account
        self._is_new = reopened is None
        self._has_finished = True
        self._is_last = False
        # The calls of this pass, which were noted as begun along with the answer.
        self._begun: dict[str, PlannedCall] = {}
        self._teller = Teller(tree.tracer, run, program, self.span, mode=tree.mode)
        self._log = RunLog(tree, run, self._teller, reopened)
        self._append = self._log.append
        self._answer: Response | None = None
        self.state = self._log.state
        self._live = Live(
            run_id=run.run_id,
            deck=program.name,
            depth=run.depth,
            parent_run_id=run.parent_run_id,
            began=trio.current_time(),
        )
        self._models = ModelCalls(tree, program, self._live, self._teller)

    @property
    def run_id(self) -> str:
        """The run this actor writes the log of."""
        return self._run.run_id

    async def run(
        self,
        inbox: trio.MemoryReceiveChannel[Turn],
        outbox: trio.MemorySendChannel[TurnEnded],
    ) -> None:
        """Take turns until the mailbox is closed, then say goodbye to the log.

        Args:
            inbox: what it is asked for, one thing at a time.
            outbox: takes the one end that each turn comes to.
        """
        tree, run = self._tree, self._run
        tree.live[run.run_id] = self._live
        if self._is_new:
            self._paying.count_deck()
        status: RunStatus = "cancelled"
        with inbox, outbox:
            try:
                await self._log.open()
                if self.opened is not None:
                    status = self.state.ended.status if self.state.ended else status
                    self.opened.set()
                if not run.depth:
                    if tree.abandoned:
                        await abandon(tree.store, tree.abandoned, tree.tracer)
                    tree.meta.bind(self.state.meta, self._append)
                while (turn := await next_turn(inbox)) is not None:
                    answer = await self._take(turn)
                    status = answer.status
                    self._live.doing = "waiting"
                    # Never full: nobody asks again before there is an answer.
                    outbox.send_nowait(answer)
                await self._log.close(self._end_after(self.state.ended, status))
            except BaseException:
                ended = self._end_after(self.state.ended, status)
                with trio.move_on_after(LAST_WORDS_SECONDS, shield=True):
                    await self._log.close(ended)
                raise
            finally:
                self._models.tell(None)  # One that could not be written down.
                del tree.live[run.run_id]
                if not run.depth:
                    tree.meta.release()

    def _end_after(self, last: TurnEnded | None, status: RunStatus) -> RunEnded:
        """How the log ends if nothing more comes."""
        # A root pays for all its turns, what is below it has but one.
        spent = self._account.spent if self._run.depth else self._paying.spent
        return run_ended(last, turns=self.state.turns, status=status, spent=spent)

    async def _take(self, turn: Turn) -> TurnEnded:
        """Work on one turn within its time, and leave nothing open behind."""
        self._begin(turn)
        ended = turn_failed("cancelled", "cancelled", "the run was cancelled")
        try:
            # Two blocks in one coroutine: thousands of actors may wait in here.
            try:
                with turn.begin(self._bounds.deadline) as scope:
                    ended = await self._worked_on(turn)
                if scope.cancelled_caught and not turn.is_cancelled:
                    seconds = self._bounds.timeout_seconds
                    message = f"the deck did not answer within {seconds:g} seconds"
                    ended = turn_failed("failed", "timeout", message)
                return await self._finish(ended)
            except BaseException as problem:
                # A turn that was cut still owes its log an ending, but not for long.
                # What was cancelled did not happen, so if there is none yet, it is
                # written now.
                if not self._has_finished and store_error_in(problem) is None:
                    with trio.move_on_after(LAST_WORDS_SECONDS, shield=True):
                        await self._finish(ended)
                raise
        except (StoreError, BaseExceptionGroup) as problem:
            broken = store_error_in(problem)
            if broken is None:
                raise
            if isinstance(broken, NotWritable) and not self._has_finished:
                return await self._end_unkept(broken)
            return self._give_up(broken)  # noqa: ASYNC910  # it has waited

    def _begin(self, turn: Turn) -> None:
        """Take up a turn: its bounds, and its account."""
        guardrails = self._program.deck.guardrails
        self._bounds = narrowed(self._asked_bounds, guardrails, self._tree.limits)
        self._account = Account(
            self._paying,
            max_tokens=guardrails.max_tokens,
            max_cost=guardrails.max_cost,
        )
        if turn.is_continued and self.spent_before is not None:
            self._account.spent = self.spent_before
        self._has_finished = False
        self._is_last = turn.is_last
        self._teller.deck_start()

    async def _end_unkept(self, problem: NotWritable) -> TurnEnded:
        """End a turn of which something has no form in a log, which is as it was."""
        self._models.forget_unfinished()
        try:
            return await self._finish(
                turn_failed("failed", "cannot_be_kept", str(problem))
            )
        except StoreError as worse:
            return self._give_up(worse)  # noqa: ASYNC910  # it has waited

    def _give_up(self, problem: StoreError) -> TurnEnded:
        """End a turn whose log takes nothing more; what is not in it is not told."""
        self._log.is_broken = True
        ended = turn_failed("failed", "store_failed", str(problem))
        self._teller.deck_end(ended, self._account.spent)
        return ended

    async def _work(self, turn: Turn) -> TurnEnded:
        if not turn.is_continued:
            await open_turn(self._asker(), turn)
        program, state = self._program, self.state
        max_passes = self._bounds.max_passes
        # Each step waits for a model or for the log, where it can be cancelled.
        while True:  # noqa: ASYNC913
            match next_step(program, state, max_passes=max_passes):
                case CallModel(request=request, first=first):
                    await self._call_model(request, first)
                case RunTools(calls=calls):
                    await self._carry_out(calls)
                case Finish(ended=ended):
                    return await self._after(ended)

    def _worked_on(self, turn: Turn) -> Awaitable[TurnEnded]:
        """Work on a turn; watched if the deck wants something done when it is idle."""
        handler = self._program.deck.handlers.on_idle
        return self._work(turn) if handler is None else self._watched(turn, handler)

    async def _watched(self, turn: Turn, handler: Handler) -> TurnEnded:
        """Work on a turn, with an eye on how long nothing happens."""
        self._log.idle = watch = IdleWatch(handler, self._say_idle)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch.run, self._asker())
            ended = await self._work(turn)
            nursery.cancel_scope.cancel()
        self._log.idle = None
        return ended

    async def _carry_out(self, calls: tuple[FunctionCall, ...]) -> None:
        self._live.doing = ", ".join([call.name for call in calls])
        idle, offers = self._log.idle, self._program.offers
        # Waiting for an action is not idling; waiting for an external tool is.
        if not any(isinstance(offers.get(call.name), Action) for call in calls):
            idle = None
        if idle is not None:
            idle.pause()
        begun, self._begun = self._begun, {}
        await CallRunner(self._asker()).carry_out(calls, begun=begun)
        if idle is not None:
            idle.go_on()

    def _asker(self) -> Asker:
        return Asker(
            tree=self._tree,
            program=self._program,
            bounds=self._bounds,
            run=self._run,
            state=self.state,
            append=self._append,
            teller=self._teller,
            account=self._account,
        )

    async def _after(self, ended: TurnEnded) -> TurnEnded:
        """Let the error handler speak if it was the model that failed."""
        handler, failure = self._program.deck.handlers.on_error, ended.failure
        if handler is None or failure is None or not is_of_model(failure):
            return ended  # noqa: ASYNC910  # the end is written next
        words = await after_model_error(self._asker(), handler, failure)
        if not words:
            return ended
        item = assistant_message(words)
        await self._append([ItemAdded(item=item, source="handler")])
        self._teller.handler_said("error", words, 0)
        return msgspec.structs.replace(ended, text=words)

    async def _say_idle(self, words: str, elapsed_ms: int) -> None:
        item = assistant_message(f"{words} (idle for {elapsed_ms}ms)")
        await self._append([ItemAdded(item=item, source="handler")])
        self._teller.handler_said("idle", words, elapsed_ms)

    async def _call_model(
        self, request: CreateResponse, first: tuple[Entry, ...]
    ) -> None:
        if first:
            await self._append(first)
        touch = None if self._log.idle is None else self._log.idle.touch
        found = await self._models.ask(request, self.state, self._account, touch)
        if isinstance(found, Failure):
            # The turn ends at the next step, and its end is logged with the rest.
            self.state.feed(TurnEnded(status="failed", failure=found))
            return
        response = found.response
        answered = answer_entry(found.model, response, self._program.asked)
        items = with_unique_calls(response.output, self.state.call_ids)
        added = [ItemAdded(item=item, source="model") for item in items]
        # What is about to have effects is written down along with what asked for it:
        # one write for each pass.
        is_whole = response.status == "completed"
        plans = planned_calls(self._program, items) if is_whole else {}
        if self._program.marks_secrets:
            for plan in plans.values():
                # Before what has them is written down.
                self._tree.secrets.update(secrets_of_call(self._program, plan))
        lost = self._models.lost
        entries: list[Entry] = [*lost, answered, *added, *beginnings(plans)]
        self._answer = response
        if plans:
            await self._append(entries)
            self._tell_answer()
        else:
            # The next step ends the turn, or asks again, and is written with it.
            self._log.hold_back(entries, on_logged=self._tell_answer)
        self._models.forget_unfinished()
        self._begun = plans

    def _tell_answer(self) -> None:
        """Tell of the model's answer, now that it is in the log."""
        answer, self._answer = self._answer, None
        self._models.tell(answer)

    async def _finish(self, ended: TurnEnded) -> TurnEnded:
        """Keep what was half said, give every call an output, and the turn an end."""
        tree = self._tree
        if tree.past:
            await abandon_left(tree.store, tree.past, self.run_id, tree.tracer)
        entries: list[Entry] = [*self._models.lost]
        if ended.status != "completed":
            said = self._models.unfinished()
            entries += [ItemAdded(item=item, source="model") for item in said]
            if said and not ended.text:
                text = "".join(item.text for item in said)
                ended = msgspec.structs.replace(ended, text=text)
        if self.state.pending:
            why = ended.failure.message if ended.failure else "the run ended"
            entries += outputs_when_cut(self.state, why, self._teller.source)
        if self._program.marks_secrets:
            schema = self._program.deck.response_schema
            self._tree.secrets.update(secrets_in(ended.result, schema))
        entries.append(ended)
        if self._is_last:
            # There will be no more, so this is the end of the log as well.
            entries.append(self._end_after(ended, ended.status))
        await self._append(entries)
        self._has_finished = True
        self._models.forget_unfinished()
        self._teller.deck_end(ended, self._account.spent)
        return ended
