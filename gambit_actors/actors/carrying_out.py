"""The calls of one turn, carried out side by side.

Each call is noted before it begins and when it ends, so that a log knows which were
under way. The outputs join the conversation together, in the order of the calls. Where
a call fails, the model reads why; only what is wrong with us ends the run.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec
import trio

from gambit_actors.actors.beginnings import ACTING, Acting, started_entry
from gambit_actors.actors.builtin_tools import use_builtin
from gambit_actors.actors.children import Asker, run_child
from gambit_actors.actors.code_actions import run_module
from gambit_actors.actors.compute import Speaker
from gambit_actors.actors.handlers import after_error, while_busy
from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.outputs import readable
from gambit_actors.actors.trees import new_id
from gambit_actors.deck.model import Link
from gambit_actors.errors import NotWritable
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    assistant_message,
    user_message,
)
from gambit_actors.run.calls import (
    ActionCall,
    BuiltinCall,
    PlannedCall,
    RefusedCall,
    RespondCall,
    ToolCall,
    plan_call,
)
from gambit_actors.run.doubts import (
    Happened,
    choice_about,
    idempotency_key,
    in_doubt,
    is_taken_up,
    secret_lost,
)
from gambit_actors.run.entries import (
    CallEnded,
    CallNoted,
    CallStarted,
    Entry,
    ItemAdded,
)
from gambit_actors.run.envelopes import (
    Envelope,
    envelope_from,
    output_text,
    refusal,
)
from gambit_actors.run.secrets import lacks_secrets, secrets_in, secrets_of
from gambit_actors.run.synthetic import completion_items
from gambit_actors.trace.events import DoubtChoice, ToolKind

Keep: TypeAlias = Callable[[CallEnded], Awaitable[None]]
"""Writes down what a call gave."""

LAST_WORDS_SECONDS = 5.0
"""How long a call that was cut may take to write down what it gave."""


class CallRunner:
    """Carries out the calls of one turn, for one actor."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        # What has a place in the conversation behind the output of a call.
        self._behind = {
            call_id: list(noted) for call_id, noted in asker.state.noted.items()
        }
        # What calls gave before a handler had its say.
        self._given: dict[str, Envelope] = {}

    async def carry_out(
        self, calls: Sequence[FunctionCall], *, begun: Mapping[str, PlannedCall]
    ) -> None:
        """Carry out calls, and add their outputs to the conversation.

        Args:
            calls: those without an output.
            begun: those that were looked at just now, and noted as begun where they
                are to be.
        """
        program = self._asker.program
        plans = [begun.get(call.call_id) or plan_call(program, call) for call in calls]
        ended = dict(self._asker.state.finished)
        append = self._asker.append

        async def keep_one(entry: CallEnded) -> None:
            ended[entry.call_id] = entry
            await append([entry])

        async def keep_all(entry: CallEnded) -> None:
            ended[entry.call_id] = entry
            await append(self._outputs(plans, ended))

        if len(begun) < len(plans):
            await self._settle(plans, begun, ended)
        acting = [
            plan
            for plan in plans
            if isinstance(plan, ACTING) and plan.call.call_id not in ended
        ]
        if len(acting) == 1:
            # There is nothing to run it beside, and nothing for its output to wait for.
            await self._one(acting[0], keep_all)
        else:
            await self._side_by_side(acting, keep_one)
            await append(self._outputs(plans, ended))
        self._tell_others(plans)

    async def _settle(
        self,
        plans: Sequence[PlannedCall],
        begun: Mapping[str, PlannedCall],
        ended: dict[str, CallEnded],
    ) -> None:
        """Note which calls begin now, and do what is to be done about those in doubt.

        There are some only if the log was begun by another process.
        """
        entries: list[Entry] = []
        state = self._asker.state
        for plan in plans:
            call_id = plan.call.call_id
            earlier = state.started.get(call_id)
            is_of_now = isinstance(plan, ACTING) or earlier is not None
            if not is_of_now or call_id in begun or call_id in ended:
                continue
            answer = None if earlier is None else self._answer_for(plan, earlier)
            if answer is None and self._lacks_secrets(plan, earlier):
                answer = secret_lost(plan.call.name)
            if answer is None and isinstance(plan, ACTING):
                entries.append(self._begun_again(plan, earlier))
                continue
            # What is there to be made again would be refused today.
            answer = answer or in_doubt(
                plan.call.name, earlier.attempt if earlier else 1
            )
            ended[call_id] = self._ended(plan, answer)
            entries.append(ended[call_id])
        if entries:
            await self._asker.append(entries)
        else:
            await trio.lowlevel.checkpoint_if_cancelled()

    def _answer_for(self, plan: PlannedCall, earlier: CallStarted) -> Envelope | None:
        """What a call in doubt is taken to have given; None if it is made again."""
        asker, name = self._asker, plan.call.name
        key = idempotency_key(asker.run.run_id, plan.call.call_id)
        given = asker.tree.answers.get(key)
        answer = given or choice_about(asker.program, earlier, plan.call)
        if is_taken_up(asker.program, earlier):
            return None
        is_told = isinstance(answer, Happened)
        # Who goes on with a run has been asked what is to be asked.
        choice: DoubtChoice = "retry" if answer == "retry" else "fail"
        choice = "happened" if is_told else choice
        asker.teller.in_doubt(plan.call, attempt=earlier.attempt, choice=choice)
        if isinstance(answer, Happened):
            return envelope_from(answer.value)
        return None if answer == "retry" else in_doubt(name, earlier.attempt)

    def _lacks_secrets(self, plan: PlannedCall, earlier: CallStarted | None) -> bool:
        """Whether a call would be made with what a log has in the place of secrets.

        A deck that had begun has what it was asked in its own log.
        """
        past = self._asker.tree.past.get((earlier and earlier.run_id) or "")
        has_begun = past is not None and not past.is_cancelled and past.state.turns > 0
        return not has_begun and lacks_secrets(plan.call.arguments)

    def _begun_again(self, plan: Acting, earlier: CallStarted | None) -> CallStarted:
        if earlier is None:
            return started_entry(plan)
        entry = started_entry(plan)
        past = self._asker.tree.past.get(earlier.run_id or "")
        # What was cancelled, or never came to write anything, is begun anew.
        is_known = past is not None and not past.is_cancelled
        run_id = earlier.run_id if is_known else entry.run_id
        return msgspec.structs.replace(
            entry, attempt=earlier.attempt + 1, run_id=run_id
        )

    async def _side_by_side(self, acting: Sequence[Acting], keep: Keep) -> None:
        if not acting:
            return  # noqa: ASYNC910  # outputs are written next
        actions = sum(isinstance(plan, ActionCall) for plan in acting)
        account = self._asker.account
        # So that those who run side by side share what may be spent.
        account.expect(actions)
        try:
            async with trio.open_nursery() as nursery:
                for plan in acting:
                    nursery.start_soon(self._one, plan, keep)
        finally:
            account.expect(-actions)

    async def _one(self, plan: Acting, keep: Keep) -> None:
        call, kind, teller = plan.call, _kind(plan), self._asker.teller
        self._asker.account.count_call()
        narrowed = plan.action.permissions if isinstance(plan, ActionCall) else None
        teller.call_start(call, kind, permissions=narrowed)
        entry: CallEnded | None = None
        kept: CallEnded | None = None
        is_error = False
        try:
            envelope = await self._with_handlers(plan)
            is_error = envelope.is_error
            entry = self._ended(plan, envelope)
            try:
                await keep(entry)
            except NotWritable as problem:
                # It has happened, so it is on record, in whatever form there is.
                message = f"{call.name} gave something that cannot be kept: {problem}"
                is_error = True
                entry = self._ended(plan, refusal(500, "invalid_result", message))
                await keep(entry)
            kept = entry
        except BaseException:
            # It has happened, whatever a handler was about to make of it. A log that
            # did not know would have it done again.
            given = self._given.get(call.call_id)
            if given is not None:
                is_error = given.is_error
                entry = entry or self._ended(plan, given)
                with trio.move_on_after(LAST_WORDS_SECONDS, shield=True):
                    await keep(entry)
                    kept = entry
            raise
        finally:
            output = None if kept is None else kept.output
            teller.call_end(call, kind, output=output, is_error=is_error)

    def _ended(self, plan: PlannedCall, envelope: Envelope) -> CallEnded:
        """What is written down of a call that is over."""
        call = plan.call
        envelope, text = readable(envelope, call, self._asker.teller.source.of(call))
        if envelope.meta is not None:
            self._asker.tree.secrets.update(secrets_of(envelope))
        after: list[ItemAdded] = []
        if isinstance(plan, ActionCall):
            if self._asker.program.marks_secrets:
                schema = plan.action.response_schema
                self._asker.tree.secrets.update(secrets_in(envelope.payload, schema))
            items = completion_items(new_id("event"), text)
            after += [ItemAdded(item=item, source="tool") for item in items]
        after += self._behind.get(call.call_id, ())
        return CallEnded(call_id=call.call_id, output=text, after=tuple(after))

    def _tell_others(self, plans: Sequence[PlannedCall]) -> None:
        """Tell of calls that are answered on the spot: nothing is done for them."""
        for plan in plans:
            if isinstance(plan, RespondCall | RefusedCall):
                self._asker.teller.internal_call(
                    plan.call,
                    self._answer_to(plan),
                    is_refused=isinstance(plan, RefusedCall),
                )

    def _answer_to(self, plan: RespondCall | RefusedCall) -> str:
        if isinstance(plan, RespondCall):
            return plan.call.arguments  # Accepted: answered with itself.
        return output_text(plan.envelope, self._asker.teller.source.of(plan.call))

    async def _with_handlers(self, plan: Acting) -> Envelope:
        """Carry out a call, with what the deck wants done meanwhile and afterwards."""
        handlers, given = self._asker.program.deck.handlers, self._given
        if handlers.on_busy is not None and isinstance(plan, ActionCall):
            async with trio.open_nursery() as nursery:
                say = self._say_busy(plan)
                nursery.start_soon(while_busy, self._asker, handlers.on_busy, plan, say)
                envelope = given[plan.call.call_id] = await self._envelope(plan)
                nursery.cancel_scope.cancel()
        else:
            envelope = given[plan.call.call_id] = await self._envelope(plan)
        if envelope.is_error and handlers.on_error is not None and _broke(envelope):
            return await after_error(self._asker, handlers.on_error, plan, envelope)
        return envelope

    def _say_busy(self, plan: ActionCall) -> Callable[[str, int], Awaitable[None]]:
        async def say(words: str, elapsed_ms: int) -> None:
            item = assistant_message(f"{words} (elapsed {elapsed_ms}ms)")
            # Before anybody is told: the words have their place if this is cut off.
            call_id = plan.call.call_id
            noted = CallNoted(call_id=call_id, item=item, source="handler")
            await self._asker.append([noted])
            self._put_behind(plan, ItemAdded(item=item, source="handler"))
            self._asker.teller.handler_said("busy", words, elapsed_ms)

        return say

    async def _envelope(self, plan: Acting) -> Envelope:
        if isinstance(plan, ToolCall):
            return await self._ask_hook(plan)
        if isinstance(plan, BuiltinCall):
            program = self._asker.program
            file = self._asker.tree.real_path(program.deck.path)
            folder = file.rpartition("/")[0]
            return await use_builtin(
                plan,
                program.permissions,
                folder=folder,
                sources=self._asker.tree.sources,
            )
        target = plan.action.target
        if isinstance(target, Link):
            run_id = self._asker.state.started[plan.call.call_id].run_id
            return await run_child(self._asker, plan, target.deck, run_id=run_id)

        def say(role: Speaker, text: str) -> None:
            make = user_message if role == "user" else assistant_message
            self._put_behind(plan, ItemAdded(item=make(text), source="action"))

        return await run_module(self._asker, plan, target, say)

    def _put_behind(self, plan: Acting, added: ItemAdded) -> None:
        self._behind.setdefault(plan.call.call_id, []).append(added)

    async def _ask_hook(self, plan: ToolCall) -> Envelope:
        asker, call_id = self._asker, plan.call.call_id
        return await asker.tree.hook.ask(
            ExternalCall(
                name=plan.name,
                args=plan.arguments,
                run_id=asker.teller.run_id,
                action_call_id=call_id,
                attempt=asker.state.started[call_id].attempt,
                idempotency_key=idempotency_key(asker.run.run_id, call_id),
                parent_action_call_id=asker.teller.span,
                deck_path=asker.program.name,
            )
        )

    def _outputs(
        self, plans: Sequence[PlannedCall], ended: Mapping[str, CallEnded]
    ) -> list[Entry]:
        """The outputs of calls as items, in the order in which they were made."""
        entries: list[Entry] = []
        for plan in plans:
            after: tuple[ItemAdded, ...] = ()
            known = ended.get(plan.call.call_id)
            if known is not None:
                text, after = known.output, known.after
            else:
                assert isinstance(plan, RespondCall | RefusedCall)  # noqa: S101  # the rest has ended
                text = self._answer_to(plan)
            output = FunctionCallOutput(call_id=plan.call.call_id, output=text)
            entries.append(ItemAdded(item=output, source="tool"))
            entries += after
        return entries


# What a model did wrong is for the model to read, and not for a handler.
_MODELS_FAULT = 500


def _broke(envelope: Envelope) -> bool:
    return envelope.status is not None and envelope.status >= _MODELS_FAULT


def _kind(plan: Acting) -> ToolKind:
    if isinstance(plan, ActionCall):
        return "action"
    return "external" if isinstance(plan, ToolCall) else "builtin"
