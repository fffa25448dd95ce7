"""What is written down when a turn or a run ends: nothing stays open in a log."""

from gambit_actors.openresponses.items import FunctionCallOutput
from gambit_actors.run.budgets import Spent
from gambit_actors.run.entries import (
    Entry,
    Failure,
    ItemAdded,
    RunEnded,
    RunStatus,
    TurnEnded,
)
from gambit_actors.run.envelopes import CallSource, output_text, refusal
from gambit_actors.run.states import RunState


def outputs_when_cut(state: RunState, why: str, source: CallSource) -> list[Entry]:
    """Outputs for the calls that have none, in the order in which they were made.

    Args:
        state: the run so far.
        why: why the turn ended before they had one.
        source: whose calls they are; what is of one call alone is filled in.
    """
    entries: list[Entry] = []
    unmet = refusal(499, "not_carried_out", why)
    for call in state.pending.values():
        known = state.finished.get(call.call_id)
        output = known.output if known else output_text(unmet, source.of(call))
        item = FunctionCallOutput(call_id=call.call_id, output=output)
        entries.append(ItemAdded(item=item, source="runtime"))
        entries += known.after if known else ()
    return entries


def run_ended(
    last: TurnEnded | None, *, turns: int, status: RunStatus, spent: Spent
) -> RunEnded:
    """The last entry, which sums up what is in the log before it."""
    failure = last.failure if last else None
    return RunEnded(
        status=status,
        code=failure.code if failure else None,
        turns=turns,
        usage=spent.as_usage(),
        cost=spent.known_cost,
    )


def turn_failed(status: RunStatus, code: str, message: str) -> TurnEnded:
    """The end of a turn that was not for the model to decide."""
    return TurnEnded(status=status, failure=Failure(code=code, message=message))
