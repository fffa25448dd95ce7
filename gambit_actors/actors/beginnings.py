"""Which calls of an answer are carried out, and what is noted before they begin."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from gambit_actors.actors.trees import new_id
from gambit_actors.deck.model import Link
from gambit_actors.openresponses.items import FunctionCall, Item
from gambit_actors.run.calls import (
    CALL_KINDS,
    ActionCall,
    BuiltinCall,
    PlannedCall,
    ToolCall,
    plan_call,
)
from gambit_actors.run.entries import CallStarted
from gambit_actors.run.programs import Program

Acting: TypeAlias = ActionCall | ToolCall | BuiltinCall
ACTING = (ActionCall, ToolCall, BuiltinCall)
"""The calls that something is done for; all others are answered on the spot."""


def planned_calls(program: Program, items: Sequence[Item]) -> dict[str, PlannedCall]:
    """What the calls in an answer come to, by their ids."""
    return {
        item.call_id: plan_call(program, item)
        for item in items
        if isinstance(item, FunctionCall)
    }


def beginnings(plans: Mapping[str, PlannedCall]) -> list[CallStarted]:
    """What is noted before calls begin for the first time."""
    return [started_entry(p) for p in plans.values() if isinstance(p, ACTING)]


def started_entry(plan: Acting) -> CallStarted:
    """What is noted before a call begins for the first time."""
    is_deck = isinstance(plan, ActionCall) and isinstance(plan.action.target, Link)
    return CallStarted(
        call_id=plan.call.call_id,
        name=plan.call.name,
        kind=CALL_KINDS[type(plan)],
        run_id=new_id("run") if is_deck else None,
    )
