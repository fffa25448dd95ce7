"""The calls of one turn, carried out side by side.

Each call is noted before it begins and when it ends, so that a log knows which were
under way. The outputs join the conversation together, in the order of the calls. Where
a call fails, the model reads why; only what is wrong with us ends the run.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import msgspec
import trio

from gambit_actors.actors.children import run_child, run_module
from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.telling import Teller
from gambit_actors.actors.trees import Limits, RunTree, new_id
from gambit_actors.deck.model import Link
from gambit_actors.openresponses.items import FunctionCall, FunctionCallOutput
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
    RunStarted,
)
from gambit_actors.run.envelopes import CallSource, Envelope, output_text, refusal
from gambit_actors.run.programs import Program
from gambit_actors.run.states import RunState
from gambit_actors.run.synthetic import completion_items
from gambit_actors.trace.events import ToolKind

Append: TypeAlias = Callable[[Sequence[Entry]], Awaitable[None]]
_Acting: TypeAlias = ActionCall | ToolCall | BuiltinCall


class CallRunner(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Carries out calls for one actor."""

    tree: RunTree
    program: Program
    limits: Limits
    run: RunStarted
    teller: Teller

    async def carry_out(
        self, calls: Sequence[FunctionCall], state: RunState, append: Append
    ) -> None:
        """Carry out calls, and add their outputs to the conversation."""
        plans = [plan_call(self.program, call) for call in calls]
        acting = [
            plan
            for plan in plans
            if isinstance(plan, _ACTING) and plan.call.call_id not in state.finished
        ]
        if acting:
            await append([_started(plan, state) for plan in acting])
            await self._act(acting, append)
        entries: list[Entry] = []
        for plan in plans:
            entries += self._output(plan, state)
        await append(entries)

    async def _act(self, acting: Sequence[_Acting], append: Append) -> None:
        async with trio.open_nursery() as nursery:
            for plan in acting:
                nursery.start_soon(self._one, plan, append)

    async def _one(self, plan: _Acting, append: Append) -> None:
        call, kind = plan.call, _kind(plan)
        self.tree.spent.calls += 1
        self.teller.call_start(call, kind)
        output: str | None = None
        try:
            envelope = await self._envelope(plan)
            output = output_text(envelope, self._source(call))
            await append([CallEnded(call_id=call.call_id, output=output)])
        finally:
            self.teller.call_end(call, kind, output=output)

    async def _envelope(self, plan: _Acting) -> Envelope:
        match plan:
            case ToolCall(call=call, name=name, arguments=arguments):
                return await self.tree.hook.ask(
                    ExternalCall(
                        name=name,
                        args=arguments,
                        run_id=self.run.run_id,
                        action_call_id=call.call_id,
                        parent_action_call_id=self.teller.span,
                        deck_path=self.program.name,
                    )
                )
            case ActionCall(action=action) if isinstance(action.target, Link):
                return await run_child(self, plan, action.target)
            case ActionCall():
                return await run_module(self, plan)
            case BuiltinCall(tool=tool):
                message = f"{tool.name} cannot be used in this release"
        await trio.lowlevel.checkpoint()
        return refusal(501, "unsupported", message)

    def _output(self, plan: PlannedCall, state: RunState) -> list[Entry]:
        """The output of a call as an item, and what is said about an action besides."""
        call = plan.call
        match plan:
            case RespondCall():
                text = call.arguments  # Accepted: answered with itself.
            case RefusedCall(envelope=envelope):
                text = output_text(envelope, self._source(call))
            case _:
                text = state.finished[call.call_id]
        item = FunctionCallOutput(call_id=call.call_id, output=text)
        entries: list[Entry] = [ItemAdded(item=item, source="tool")]
        if isinstance(plan, ActionCall):
            items = completion_items(new_id("event"), text)
            entries += [ItemAdded(item=item, source="tool") for item in items]
        return entries

    def _source(self, call: FunctionCall) -> CallSource:
        return CallSource(
            run_id=self.run.run_id,
            call_id=call.call_id,
            parent_call_id=self.teller.span,
            deck_path=self.program.name,
            name=call.name,
        )


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
