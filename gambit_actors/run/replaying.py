"""A log read again against a deck: would the same be done now?

What came from outside is taken from the log: what users said, what models answered,
what calls gave, what handlers and code added, and when time or money ran out. All the
rest is decided anew, by the functions that decide it in a run, and compared byte for
byte. So is how models are asked, as far as a log says that. No model is asked and
nothing is carried out.
"""

import contextlib
from collections.abc import Sequence

import msgspec

from gambit_actors.deck.model import Link
from gambit_actors.openresponses.items import FunctionCallOutput, Message
from gambit_actors.run.calls import (
    CALL_KINDS,
    ActionCall,
    RefusedCall,
    RespondCall,
    plan_call,
)
from gambit_actors.run.entries import (
    CallStarted,
    Entry,
    ItemAdded,
    ModelAnswered,
    RunResumed,
    TurnEnded,
    TurnStarted,
)
from gambit_actors.run.entry_codec import encode_entry
from gambit_actors.run.programs import Program, asked_otherwise
from gambit_actors.run.states import RunState
from gambit_actors.run.steps import (
    MAX_PASSES,
    CallModel,
    Finish,
    RunTools,
    Step,
    next_step,
)
from gambit_actors.run.synthetic import END, RESPOND

# Where a log does not say how far it was limited besides, that is from outside.
_ANY_PASSES = 10**9
_OUT_OF_PASSES = "max_passes"
_ANSWERS = frozenset({RESPOND, END})
_FROM_OUTSIDE = frozenset(
    {
        "cancelled",
        "max_cost",
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


def replay(
    program: Program, entries: Sequence[Entry], *, max_passes: int = MAX_PASSES
) -> Replayed:
    """Decide anew what a run did, and compare.

    Args:
        program: the deck, as it is now.
        entries: the log.
        max_passes: what the deck allows itself, or the decks above it.
    """
    again = _Again(program, entries, max_passes)
    decided = taken = 0
    for index, entry in enumerate(entries):
        try:
            is_decided = again.compare(index, entry)
        except _Mismatch as mismatch:
            difference = Difference(
                index=index,
                recorded=encode_entry(entry).decode(),
                now=mismatch.now,
                words=mismatch.words,
            )
            return Replayed(
                decided=decided,
                taken=taken,
                ended=again.state.ended,
                difference=difference,
            )
        decided, taken = decided + is_decided, taken + (not is_decided)
        again.state.feed(entry)
    return Replayed(decided=decided, taken=taken, ended=again.state.ended)


def with_uncompared(
    replayed: Replayed, entry: Entry, *, index: int, words: str
) -> Replayed:
    """What came of a replay in which an entry led to something that is not there.

    Args:
        replayed: what came of the rest; a difference before the entry stays the first.
        entry: the one.
        index: its place.
        words: what is missing.
    """
    known = replayed.difference
    if known is not None and known.index <= index:
        return replayed
    recorded = encode_entry(entry).decode()
    found = Difference(index=index, recorded=recorded, now="", words=words)
    return msgspec.structs.replace(replayed, difference=found)


class _Again:
    """A run that is decided anew, as far as its log has been read."""

    def __init__(
        self, program: Program, entries: Sequence[Entry], max_passes: int
    ) -> None:
        self.state = RunState()
        self._program = program
        self._deck_passes = max_passes
        self._passes = _ANY_PASSES
        self._given = _given_turns(entries)
        self._is_given = False

    def compare(self, index: int, entry: Entry) -> bool:
        """Whether an entry is for the deck to decide. If so, it is what was decided."""
        match entry:
            case TurnStarted():
                self._is_given = index in self._given
                limit = entry.max_passes
                passes = self._deck_passes
                self._passes = passes if limit is None else min(passes, limit)
            case RunResumed():
                # Whoever goes on with a turn may have another limit in mind.
                self._passes = _ANY_PASSES
            case _ if self._is_given:
                pass
            case ItemAdded():
                return self._compare_item(entry)
            case ModelAnswered():
                return self._compare_answer(entry)
            case CallStarted():
                return self._compare_start(entry)
            case TurnEnded():
                return self._compare_end(entry)
            case _:
                pass
        return False

    def _step(self) -> Step:
        return next_step(self._program, self.state, max_passes=self._passes)

    def _compare_answer(self, entry: ModelAnswered) -> bool:
        if not entry.asked:
            self._passes = _ANY_PASSES  # The log is from before such things were noted.
        step = self._step()
        if not isinstance(step, CallModel) or step.first:
            raise _Mismatch(*_told(step, "the model was asked"))
        if entry.asked:
            now = msgspec.structs.replace(entry, asked=self._program.asked)
            parts = asked_otherwise(entry.asked, now.asked)
            _check_same(now, entry, f"the model is asked with other {_listed(parts)}")
        return True

    def _compare_item(self, entry: ItemAdded) -> bool:
        item = entry.item
        if not self.state.items:
            opening = self._program.opening
            is_system = isinstance(item, Message) and item.role == "system"
            recorded = entry if is_system else None
            if opening is not None or recorded is not None:
                now = ItemAdded(item=opening, source="deck") if opening else None
                _check_same(now, recorded, "the prompt is another")
            return opening is not None
        if entry.source == "runtime" and isinstance(item, Message):
            step = self._step()
            first = step.first if isinstance(step, CallModel) else ()
            if not first:
                asked = "the model was asked to put its answer right"
                raise _Mismatch(*_told(step, asked))
            _check_same(first[0], entry, "the model would be told something else")
            return True
        if entry.source == "tool" and isinstance(item, FunctionCallOutput):
            return self._compare_output(item)
        return False

    def _compare_output(self, output: FunctionCallOutput) -> bool:
        """Compare what was answered on the spot; other outputs come from outside."""
        call = self.state.pending.get(output.call_id)
        if call is None or call.call_id in self.state.started:
            return False
        plan = plan_call(self._program, call)
        was_accepted = call.name in _ANSWERS and output.output == call.arguments
        if isinstance(plan, RespondCall):
            if was_accepted:
                return True
            words = f"{call.name} was refused, and now would be accepted"
        elif not isinstance(plan, RefusedCall):
            words = (
                f"{call.name} was answered on the spot, and now would be carried out"
            )
        elif was_accepted:
            words = f"{call.name} was accepted, and now would be refused"
        else:
            return _check_refusal(plan, str(output.output))
        raise _Mismatch(type(plan).__name__, words)

    def _compare_start(self, entry: CallStarted) -> bool:
        step = self._step()
        call = self.state.pending.get(entry.call_id)
        if not isinstance(step, RunTools) or call is None:
            raise _Mismatch(*_told(step, f"{entry.name} was called"))
        plan = plan_call(self._program, call)
        kind = CALL_KINDS.get(type(plan))
        if kind is None:
            now = "answered on the spot"
        elif kind != entry.kind:
            now = f"a call of the kind {kind}"
        elif isinstance(plan, ActionCall) and _is_deck(plan) != bool(entry.run_id):
            now = "run as a deck" if _is_deck(plan) else "run as code"
        else:
            return True
        words = f"{entry.name} was carried out as {_kind_of(entry)}, and now would be "
        raise _Mismatch(type(plan).__name__, words + now)

    def _compare_end(self, entry: TurnEnded) -> bool:
        code = None if entry.failure is None else entry.failure.code
        is_from_outside = code in _FROM_OUTSIDE
        is_from_outside |= code == _OUT_OF_PASSES and self._passes == _ANY_PASSES
        if is_from_outside:
            return False
        step = self._step()
        if not isinstance(step, Finish):
            raise _Mismatch(*_told(step, "the turn ended"))
        now = step.ended
        if now.failure is not None and self._program.deck.handlers.on_error is not None:
            now = msgspec.structs.replace(now, text=entry.text)  # A handler's words.
        _check_same(now, entry, "the turn would end in another way")
        return True


def _given_turns(entries: Sequence[Entry]) -> frozenset[int]:
    """The starts of turns that were not played here, but come from a saved state.

    A deck has its answer from a model; a turn that has one without is not its own.
    """
    found: set[int] = set()
    start, is_played = -1, False
    for index, entry in enumerate(entries):
        if isinstance(entry, TurnStarted):
            start, is_played = index, False
        elif isinstance(entry, ModelAnswered):
            is_played = True
        elif isinstance(entry, TurnEnded) and entry.status == "completed":
            found |= set() if is_played else {start}
    return frozenset(found)


def _is_deck(plan: ActionCall) -> bool:
    return isinstance(plan.action.target, Link)


def _kind_of(entry: CallStarted) -> str:
    if entry.kind != "action":
        return f"a {entry.kind}"
    return "a deck" if entry.run_id else "code"


def _check_refusal(plan: RefusedCall, recorded: str) -> bool:
    """See that a call is refused as it was; an output that is no refusal is not."""
    now = {
        "status": plan.envelope.status,
        "code": plan.envelope.code,
        "message": plan.envelope.message,
    }
    said: object = None
    with contextlib.suppress(msgspec.DecodeError, ValueError, RecursionError):
        said = msgspec.json.decode(recorded)
    if isinstance(said, dict) and {key: said.get(key) for key in now} == now:
        return True
    shown = msgspec.json.encode(now).decode()
    raise _Mismatch(shown, f"{plan.call.name} would be refused in other words")


def _listed(words: Sequence[str]) -> str:
    return " and ".join(words)


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
