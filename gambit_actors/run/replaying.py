"""A log read again against a deck: would the same be done now?

What came from outside is taken from the log: what users said, what models answered,
what calls gave, what handlers and code added, and when time or money ran out. All the
rest is decided anew, by the functions that decide it in a run, and compared byte for
byte. No model is asked and nothing is carried out.
"""

from collections.abc import Sequence

import msgspec

from gambit_actors.openresponses.items import FunctionCallOutput, Message
from gambit_actors.run.calls import RefusedCall, RespondCall, plan_call
from gambit_actors.run.entries import (
    CallStarted,
    Entry,
    ItemAdded,
    ModelAnswered,
    TurnEnded,
)
from gambit_actors.run.entry_codec import encode_entry
from gambit_actors.run.programs import Program
from gambit_actors.run.states import RunState
from gambit_actors.run.steps import CallModel, Finish, RunTools, Step, next_step

# Whoever ran it may have limited it further than the deck does; that is in the log.
_MAX_PASSES = 10**9
_FROM_OUTSIDE = frozenset(
    {
        "cancelled",
        "max_cost",
        "max_passes",
        "max_tokens",
        "model_failed",
        "model_incomplete",
        "model_unavailable",
        "no_model",
        "store_failed",
        "timeout",
        "unknown_price",
    }
)
"""Failures that are not for the deck to decide."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """The first place where a log and a deck part.

    Attributes:
        index: of the entry, counted from 0.
        recorded: what is in the log there.
        now: what would be there now.
        words: the same for a person.
    """

    index: int
    recorded: str
    now: str
    words: str


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of reading a log again.

    Attributes:
        decided: how many entries were decided anew, and came out the same.
        taken: how many were taken as they are.
        ended: how the last turn ended, in the log.
        difference: the first one; None if there is none.
    """

    decided: int
    taken: int
    ended: TurnEnded | None
    difference: Difference | None = None


class _Mismatch(Exception):  # never leaves this module
    def __init__(self, now: str, words: str) -> None:
        super().__init__(words)
        self.now = now
        self.words = words


def replay(program: Program, entries: Sequence[Entry]) -> Replayed:
    """Decide anew what a run did, and compare.

    Args:
        program: the deck, as it is now.
        entries: the log.
    """
    state = RunState()
    decided = taken = 0
    for index, entry in enumerate(entries):
        try:
            is_decided = _compare(program, state, entry)
        except _Mismatch as mismatch:
            difference = Difference(
                index=index,
                recorded=encode_entry(entry).decode(),
                now=mismatch.now,
                words=mismatch.words,
            )
            return Replayed(
                decided=decided, taken=taken, ended=state.ended, difference=difference
            )
        decided, taken = decided + is_decided, taken + (not is_decided)
        state.feed(entry)
    return Replayed(decided=decided, taken=taken, ended=state.ended)


def _compare(program: Program, state: RunState, entry: Entry) -> bool:
    """Whether an entry is for the deck to decide. If so, it is what was decided."""
    match entry:
        case ItemAdded():
            return _compare_item(program, state, entry)
        case ModelAnswered():
            step = _step(program, state)
            if not isinstance(step, CallModel) or step.first:
                raise _Mismatch(*_told(step, "the model was asked"))
            return True
        case CallStarted():
            step = _step(program, state)
            is_call = isinstance(step, RunTools) and entry.call_id in state.pending
            if not is_call:
                raise _Mismatch(*_told(step, f"{entry.name} was called"))
            _check_acting(program, state, entry)
            return True
        case TurnEnded():
            return _compare_end(program, state, entry)
        case _:
            return False


def _compare_item(program: Program, state: RunState, entry: ItemAdded) -> bool:
    item = entry.item
    if not state.items:
        opening = program.opening
        recorded = item if isinstance(item, Message) and item.role == "system" else None
        if opening is not None or recorded is not None:
            _check_same(
                ItemAdded(item=opening, source="deck") if opening else None,
                entry if recorded else None,
                "the prompt is another",
            )
        return opening is not None
    if entry.source == "runtime" and isinstance(item, Message):
        step = _step(program, state)
        first = step.first if isinstance(step, CallModel) else ()
        if not first:
            raise _Mismatch(*_told(step, "the model was asked to put its answer right"))
        _check_same(first[0], entry, "the model would be told something else")
        return True
    if entry.source == "tool" and isinstance(item, FunctionCallOutput):
        return _compare_output(program, state, item)
    return False


def _compare_output(
    program: Program, state: RunState, output: FunctionCallOutput
) -> bool:
    """Compare what was answered on the spot; all other outputs come from outside."""
    call = state.pending.get(output.call_id)
    if call is None or call.call_id in state.started:
        return False
    plan = plan_call(program, call)
    if isinstance(plan, RespondCall) and output.output == call.arguments:
        return True
    if isinstance(plan, RefusedCall):
        said = msgspec.json.decode(str(output.output))
        now = {
            "status": plan.envelope.status,
            "code": plan.envelope.code,
            "message": plan.envelope.message,
        }
        if {key: said.get(key) for key in now} == now:
            return True
        shown = msgspec.json.encode(now).decode()
        raise _Mismatch(shown, f"{call.name} would be refused in other words")
    words = f"{call.name} was answered on the spot, and now would be carried out"
    raise _Mismatch(type(plan).__name__, words)


def _check_acting(program: Program, state: RunState, entry: CallStarted) -> None:
    plan = plan_call(program, state.pending[entry.call_id])
    if isinstance(plan, RespondCall | RefusedCall):
        words = f"{entry.name} was carried out, and now would be answered on the spot"
        raise _Mismatch(type(plan).__name__, words)


def _compare_end(program: Program, state: RunState, entry: TurnEnded) -> bool:
    if entry.failure is not None and entry.failure.code in _FROM_OUTSIDE:
        return False
    step = _step(program, state)
    if not isinstance(step, Finish):
        raise _Mismatch(*_told(step, "the turn ended"))
    now = step.ended
    if now.failure is not None and program.deck.handlers.on_error is not None:
        now = msgspec.structs.replace(now, text=entry.text)  # A handler's words.
    _check_same(now, entry, "the turn would end in another way")
    return True


def _step(program: Program, state: RunState) -> Step:
    return next_step(program, state, max_passes=_MAX_PASSES)


def _check_same(now: Entry | None, recorded: Entry | None, words: str) -> None:
    shown = "" if now is None else encode_entry(now).decode()
    if shown != ("" if recorded is None else encode_entry(recorded).decode()):
        raise _Mismatch(shown, words)


def _told(step: Step, done: str) -> tuple[str, str]:
    """What would be done now, and the same with what was done."""
    match step:
        case CallModel(first=()):
            now = "the model would be asked"
        case CallModel():
            now = "the model would be asked to put its answer right"
        case RunTools(calls=calls):
            now = f"{', '.join(call.name for call in calls)} would be called"
        case Finish():
            now = "the turn would end"
    return now, f"{done}, and now {now}"
