"""What is written down when a turn or a run ends: nothing stays open in a log."""

from collections.abc import Mapping

from gambit_actors.openresponses.items import FunctionCallOutput
from gambit_actors.run.budgets import Spent
from gambit_actors.run.doubts import in_doubt
from gambit_actors.run.entries import (
    Entry,
    Failure,
    ItemAdded,
    RunEnded,
    RunStatus,
    TurnEnded,
)
from gambit_actors.run.envelopes import CallSource, Envelope, output_text, refusal
from gambit_actors.run.states import RunState

_NOTHING_KNOWN: Mapping[str, Envelope] = {}


def outputs_when_abandoned(
    state: RunState, why: str, source: CallSource
) -> list[Entry]:
    """Outputs for the calls of a run that ended with its process.

    Args:
        state: the run so far.
        why: why the calls that had not begun never will.
        source: as for `outputs_when_cut`.
    """
    unknown = {
        call_id: in_doubt(started.name, started.attempt)
        for call_id, started in state.started.items()
    }
    return outputs_when_cut(state, why, source, unknown)


def outputs_when_cut(
    state: RunState,
    why: str,
    source: CallSource,
    known: Mapping[str, Envelope] = _NOTHING_KNOWN,
) -> list[Entry]:
    """Outputs for the calls that have none, in the order in which they were made.

    Args:
        state: the run so far.
        why: why the turn ended before they had one.
        source: whose calls they are; what is of one call alone is filled in.
        known: what is said of some of them, by their ids, in the place of that.
    """
    entries: list[Entry] = []
    unmet = refusal(499, "not_carried_out", why)
    for call_id, call in state.pending.items():
        ended = state.finished.get(call_id)
        envelope = known.get(call_id, unmet)
        output = ended.output if ended else output_text(envelope, source.of(call))
        item = FunctionCallOutput(call_id=call_id, output=output)
        entries.append(ItemAdded(item=item, source="runtime"))
        entries += ended.after if ended else state.noted.get(call_id, ())
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
