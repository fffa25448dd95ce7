"""What the entries of a run add up to.

`RunState.feed` takes one entry. A run that goes on and a log that is read again feed
the same entries, so both come to the same state, and to the same next step.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.followup import in_input_form
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
)
from gambit_actors.run.entries import (
    CallEnded,
    CallNoted,
    CallStarted,
    ChildStarted,
    Entry,
    ItemAdded,
    MetaSet,
    ModelAnswered,
    ModelLost,
    RunEnded,
    RunResumed,
    RunStarted,
    TurnEnded,
    TurnStarted,
)
from gambit_actors.run.synthetic import END, RESPOND

_NOTHING_NOTED: Mapping[str, tuple[ItemAdded, ...]] = {}


class RunState:
    """A run so far.

    Attributes:
        items: the conversation.
        passes: how often the model has answered in this turn.
        repairs: how often, in this turn, it was asked to put its answer right.
        pending: calls without an output, in the order they were made.
        started: of those, the ones that have begun, as they did last.
        finished: those that have an output, and wait for the others of their turn.
        noted: what was said meanwhile, by the calls whose outputs it comes behind.
        answer: the model's last answer; None if the model has to be asked again.
        said: the text of that answer.
        refused: the words of its refusal.
        meta: what code keeps for the session.
        call_ids: of all calls there ever were.
        children: the decks that were run below this one, in their order.
        responses: calls that gave the result or the end, in this turn.
        ended: how the last turn ended; None while one is going on.
    """

    __slots__ = (
        "_sent",
        "answer",
        "call_ids",
        "children",
        "ended",
        "finished",
        "is_over",
        "items",
        "meta",
        "noted",
        "passes",
        "pending",
        "refused",
        "repairs",
        "responses",
        "run",
        "said",
        "started",
        "turns",
    )

    def __init__(self) -> None:
        self.run: RunStarted | None = None
        self.items: list[Item] = []
        # None as long as it is the same: what cannot be sent as it is is rare.
        self._sent: list[Item] | None = None
        self.turns = 0
        self.passes = 0
        self.repairs = 0
        self.pending: dict[str, FunctionCall] = {}
        self.started: dict[str, CallStarted] = {}
        self.finished: dict[str, CallEnded] = {}
        self.noted: Mapping[str, tuple[ItemAdded, ...]] = _NOTHING_NOTED
        self.call_ids: dict[str, None] = {}
        self.children: list[ChildStarted] = []
        self.meta: dict[str, JSONValue] = {}
        self.answer: ModelAnswered | None = None
        self.said = ""
        self.refused = ""
        self.responses: tuple[FunctionCall, ...] = ()
        self.ended: TurnEnded | None = None
        self.is_over = False

    @property
    def sent(self) -> list[Item]:
        """The conversation in the form in which it is sent to a model."""
        return self.items if self._sent is None else self._sent

    def feed(self, entry: Entry) -> None:
        """Take in one entry."""
        # By type, and not by a match: this runs for every entry of every run.
        self._FEEDS[type(entry)](self, entry)

    def feed_all(self, entries: Sequence[Entry]) -> None:
        """Take in entries, one after the other."""
        feeds = self._FEEDS
        for entry in entries:
            feeds[type(entry)](self, entry)

    def _begin(self, entry: RunStarted) -> None:
        self.run = entry

    def _pass_over(self, _entry: ModelLost) -> None:
        """It has cost something, and has no part in the conversation."""

    def _resume(self, _entry: RunResumed) -> None:
        self.is_over = False

    def _end(self, _entry: RunEnded) -> None:
        self.is_over = True

    def _take_answer(self, entry: ModelAnswered) -> None:
        self.passes += 1
        self.answer = entry
        self.said = ""
        self.refused = ""

    def _start_call(self, entry: CallStarted) -> None:
        self.started[entry.call_id] = entry

    def _note(self, entry: CallNoted) -> None:
        added = ItemAdded(item=entry.item, source=entry.source)
        noted = (*self.noted.get(entry.call_id, ()), added)
        self.noted = {**self.noted, entry.call_id: noted}

    def _start_child(self, entry: ChildStarted) -> None:
        self.children.append(entry)

    def _end_call(self, entry: CallEnded) -> None:
        self.finished[entry.call_id] = entry

    def _set_meta(self, entry: MetaSet) -> None:
        if entry.value is None:
            self.meta.pop(entry.key, None)
        else:
            self.meta[entry.key] = entry.value

    def _end_turn(self, entry: TurnEnded) -> None:
        self.ended = entry

    def _begin_turn(self, _entry: TurnStarted) -> None:
        self.turns += 1
        self.passes = self.repairs = 0
        self.answer = None
        self.said = ""
        self.responses = ()
        self.ended = None

    def _add(self, entry: ItemAdded) -> None:
        item = entry.item
        self.items.append(item)
        form = in_input_form(item)
        if self._sent is not None:
            self._sent.append(form)
        elif form is not item:
            self._sent = [*self.items[:-1], form]
        match item:
            case FunctionCall(call_id=call_id):
                self.call_ids[call_id] = None
                # Only a model asks for things; what others say of calls is history.
                if entry.source == "model":
                    self.pending[call_id] = item
            case FunctionCallOutput(call_id=call_id, output=output):
                self._answered(call_id, output)
            case Message(role="assistant") if entry.source == "model":
                self.said += item.text
                self.refused += item.refusal
            case Message() if entry.source == "runtime":
                # The model is told what was wrong with its answer.
                self.repairs += 1
                self.answer = None
            case _:
                pass

    def _answered(self, call_id: str, output: object) -> None:
        call = self.pending.pop(call_id, None)
        self.started.pop(call_id, None)
        self.finished.pop(call_id, None)
        if call_id in self.noted:
            self.noted = {k: v for k, v in self.noted.items() if k != call_id}
        self.answer = None  # The model has not seen this yet.
        if call is None:
            return
        # A result that was accepted is answered with itself, one that was not with
        # an envelope that says why.
        if call.name in (RESPOND, END) and output == call.arguments:
            self.responses += (call,)

    _FEEDS: ClassVar[dict[type[Entry], Callable[..., None]]] = {
        RunStarted: _begin,
        RunResumed: _resume,
        TurnStarted: _begin_turn,
        ItemAdded: _add,
        ModelAnswered: _take_answer,
        ModelLost: _pass_over,
        CallStarted: _start_call,
        ChildStarted: _start_child,
        CallNoted: _note,
        CallEnded: _end_call,
        MetaSet: _set_meta,
        TurnEnded: _end_turn,
        RunEnded: _end,
    }


def state_from_entries(entries: Sequence[Entry]) -> RunState:
    """Make the state of a run from its log."""
    state = RunState()
    state.feed_all(entries)
    return state
