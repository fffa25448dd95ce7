"""The calls of one turn, carried out side by side.

Each call is noted before it begins and when it ends, so that a log knows which were
under way. The outputs join the conversation together, in the order of the calls. Where
a call fails, the model reads why; only what is wrong with us ends the run.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

import trio

from gambit_actors.actors.builtin_tools import use_builtin
from gambit_actors.actors.children import Asker, run_child, run_module
from gambit_actors.actors.compute import Speaker
from gambit_actors.actors.handlers import after_error, while_busy
from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.trees import new_id
from gambit_actors.deck.model import Link
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
from gambit_actors.run.entries import (
    CallEnded,
    CallStarted,
    Entry,
    ItemAdded,
)
from gambit_actors.run.envelopes import CallSource, Envelope, output_text, refusal
from gambit_actors.run.states import RunState
from gambit_actors.run.synthetic import completion_items
from gambit_actors.trace.events import ToolKind

Append: TypeAlias = Callable[[Sequence[Entry]], Awaitable[None]]
Keep: TypeAlias = Callable[[str, str], Awaitable[None]]
"""Writes down what a call gave: its id, and the text of its output."""

LAST_WORDS_SECONDS = 5.0
"""How long a call that was cut may take to write down what it gave."""

_Acting: TypeAlias = ActionCall | ToolCall | BuiltinCall


class CallRunner:
    """Carries out the calls of one turn, for one actor."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        # What handlers said while a call was under way, by the call.
        self._said: dict[str, list[str]] = {}
        # What the code of a call added to the conversation, by the call.
        self._added: dict[str, list[tuple[Speaker, str]]] = {}

    async def carry_out(
        self, calls: Sequence[FunctionCall], state: RunState, append: Append
    ) -> None:
        """Carry out calls, and add their outputs to the conversation."""
        plans = [plan_call(self._asker.program, call) for call in calls]
        texts = dict(state.finished)
        acting = [
            plan
            for plan in plans
            if isinstance(plan, _ACTING) and plan.call.call_id not in texts
        ]

        async def keep_one(call_id: str, text: str) -> None:
            texts[call_id] = text
            await append([CallEnded(call_id=call_id, output=text)])

        async def keep_all(call_id: str, text: str) -> None:
            texts[call_id] = text
            await append(self._outputs(plans, texts))

        if acting:
            await append([_started(plan, state) for plan in acting])
        if len(acting) == 1:
            # There is nothing to run it beside, and nothing for its output to wait for.
            await self._one(acting[0], keep_all)
        else:
            await self._side_by_side(acting, keep_one)
            await append(self._outputs(plans, texts))
        self._tell_others(plans)

    async def _side_by_side(self, acting: Sequence[_Acting], keep: Keep) -> None:
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

    async def _one(self, plan: _Acting, keep: Keep) -> None:
        call, kind, teller = plan.call, _kind(plan), self._asker.teller
        self._asker.account.count_call()
        teller.call_start(call, kind)
        output: str | None = None
        try:
            envelope = await self._with_handlers(plan)
            text = self._text_of(envelope, call)
            await _see_to_it(keep, call.call_id, text)
            output = text
        finally:
            teller.call_end(call, kind, output=output)

    def _text_of(self, envelope: Envelope, call: FunctionCall) -> str:
        """An envelope as the model reads it, or one that says why it cannot be read."""
        source = self._source(call)
        try:
            return output_text(envelope, source)
        except (TypeError, ValueError, RecursionError) as problem:
            message = f"{call.name} gave something that has no JSON form: {problem}"
            return output_text(refusal(500, "invalid_result", message), source)

    def _tell_others(self, plans: Sequence[PlannedCall]) -> None:
        """Tell of calls that are answered on the spot: nothing is done for them."""
        for plan in plans:
            if isinstance(plan, RespondCall | RefusedCall):
                self._asker.teller.internal_call(plan.call, self._answer_to(plan))

    def _answer_to(self, plan: RespondCall | RefusedCall) -> str:
        if isinstance(plan, RespondCall):
            return plan.call.arguments  # Accepted: answered with itself.
        return output_text(plan.envelope, self._source(plan.call))

    async def _with_handlers(self, plan: _Acting) -> Envelope:
        """Carry out a call, with what the deck wants done meanwhile and afterwards."""
        handlers = self._asker.program.deck.handlers
        if handlers.on_busy is not None and isinstance(plan, ActionCall):
            async with trio.open_nursery() as nursery:
                say = self._say_busy(plan)
                nursery.start_soon(while_busy, self._asker, handlers.on_busy, plan, say)
                envelope = await self._envelope(plan)
                nursery.cancel_scope.cancel()
        else:
            envelope = await self._envelope(plan)
        if envelope.is_error and handlers.on_error is not None and _broke(envelope):
            return await after_error(self._asker, handlers.on_error, plan, envelope)
        return envelope

    def _say_busy(self, plan: ActionCall) -> Callable[[str, int], Awaitable[None]]:
        async def say(words: str, elapsed_ms: int) -> None:
            await trio.lowlevel.checkpoint()
            said = self._said.setdefault(plan.call.call_id, [])
            said.append(f"{words} (elapsed {elapsed_ms}ms)")
            self._asker.teller.handler_said("busy", words, elapsed_ms)

        return say

    async def _envelope(self, plan: _Acting) -> Envelope:
        if isinstance(plan, ToolCall):
            return await self._ask_hook(plan)
        if isinstance(plan, BuiltinCall):
            program = self._asker.program
            file = self._asker.tree.real_path(program.deck.path)
            folder = file.rpartition("/")[0]
            return await use_builtin(plan, program.permissions, folder=folder)
        target = plan.action.target
        if isinstance(target, Link):
            return await run_child(self._asker, plan, target.deck)
        added = self._added.setdefault(plan.call.call_id, [])

        def say(role: Speaker, text: str) -> None:
            added.append((role, text))

        return await run_module(self._asker, plan, target, say)

    async def _ask_hook(self, plan: ToolCall) -> Envelope:
        asker = self._asker
        return await asker.tree.hook.ask(
            ExternalCall(
                name=plan.name,
                args=plan.arguments,
                run_id=asker.teller.run_id,
                action_call_id=plan.call.call_id,
                parent_action_call_id=asker.teller.span,
                deck_path=asker.program.name,
            )
        )

    def _outputs(
        self, plans: Sequence[PlannedCall], texts: Mapping[str, str]
    ) -> list[Entry]:
        """The outputs of calls as items, in the order in which they were made."""
        entries: list[Entry] = []
        for plan in plans:
            call = plan.call
            if isinstance(plan, RespondCall | RefusedCall):
                text = self._answer_to(plan)
            else:
                text = texts[call.call_id]
            output = FunctionCallOutput(call_id=call.call_id, output=text)
            entries.append(ItemAdded(item=output, source="tool"))
            if isinstance(plan, ActionCall):
                items = completion_items(new_id("event"), text)
                entries += [ItemAdded(item=item, source="tool") for item in items]
            for words in self._said.get(call.call_id, ()):
                said = assistant_message(words)
                entries.append(ItemAdded(item=said, source="handler"))
            for role, words in self._added.get(call.call_id, ()):
                make = user_message if role == "user" else assistant_message
                entries.append(ItemAdded(item=make(words), source="action"))
        return entries

    def _source(self, call: FunctionCall) -> CallSource:
        return CallSource(
            run_id=self._asker.teller.run_id,
            call_id=call.call_id,
            parent_call_id=self._asker.teller.span,
            deck_path=self._asker.program.name,
            name=call.name,
        )


async def _see_to_it(keep: Keep, call_id: str, text: str) -> None:
    """Write down what a call gave, also if the run is cancelled meanwhile.

    It has happened. A log that did not know would have it done again.
    """
    try:
        await keep(call_id, text)
    except trio.Cancelled:
        # What was cancelled did not happen, so it is done now.
        with trio.move_on_after(LAST_WORDS_SECONDS, shield=True):
            await keep(call_id, text)
        raise


# What a model did wrong is for the model to read, and not for a handler.
_MODELS_FAULT = 500


def _broke(envelope: Envelope) -> bool:
    return envelope.status is not None and envelope.status >= _MODELS_FAULT


_ACTING = (ActionCall, ToolCall, BuiltinCall)


def _started(plan: _Acting, state: RunState) -> CallStarted:
    kinds = {ActionCall: "action", ToolCall: "tool", BuiltinCall: "builtin"}
    return CallStarted(
        call_id=plan.call.call_id,
        name=plan.call.name,
        kind=kinds[type(plan)],  # type: ignore[arg-type]  # one of the three words
        attempt=state.started.get(plan.call.call_id, 0) + 1,
    )


def _kind(plan: _Acting) -> ToolKind:
    if isinstance(plan, ActionCall):
        return "action"
    return "external" if isinstance(plan, ToolCall) else "builtin"
