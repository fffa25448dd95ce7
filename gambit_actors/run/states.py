"""What the entries of a run add up to.

`RunState.feed` takes one entry. A run that goes on and a log that is read again feed
the same entries, so both come to the same state, and to the same next step.
"""

from gambit_actors.openresponses.followup import in_input_form
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
)
from gambit_actors.run.entries import (
    CallEnded,
    CallStarted,
    Entry,
    ItemAdded,
    ModelAnswered,
    RunEnded,
    RunStarted,
    TurnEnded,
    TurnStarted,
)
from gambit_actors.run.synthetic import END, RESPOND


class RunState:
    """A run so far.

    Attributes:
        items: the conversation.
        sent: the same in the form in which it is sent to a model.
        passes: how often the model has answered in this turn.
        repairs: how often, in this turn, it was asked to put its answer right.
        pending: calls without an output, in the order they were made.
        started: how often each of those has been begun.
        finished: outputs of those that wait for the others of their turn.
        answer: the model's last answer; None if the model has to be asked again.
        said: the text of that answer.
        refused: the words of its refusal.
        call_ids: of all calls there ever were.
        responses: calls that gave the result or the end, in this turn.
        ended: how the last turn ended; None while one is going on.
    """

    __slots__ = (
        "answer",
        "call_ids",
        "ended",
        "finished",
        "is_over",
        "items",
        "passes",
        "pending",
        "refused",
        "repairs",
        "responses",
        "run",
        "said",
        "sent",
        "started",
        "turns",
    )

    def __init__(self) -> None:
        self.run: RunStarted | None = None
        self.items: list[Item] = []
        self.sent: list[Item] = []
        self.turns = 0
        self.passes = 0
        self.repairs = 0
        self.pending: dict[str, FunctionCall] = {}
        self.started: dict[str, int] = {}
        self.finished: dict[str, str] = {}
        self.call_ids: set[str] = set()
        self.answer: ModelAnswered | None = None
        self.said: list[str] = []
        self.refused = ""
        self.responses: list[FunctionCall] = []
        self.ended: TurnEnded | None = None
        self.is_over = False

    def feed(self, entry: Entry) -> None:
        """Take in one entry."""
        match entry:
            case ItemAdded():
                self._add(entry)
            case ModelAnswered():
                self.passes += 1
                self.answer = entry
                self.said = []
                self.refused = ""
            case CallStarted(call_id=call_id, attempt=attempt):
                self.started[call_id] = attempt
            case CallEnded(call_id=call_id, output=output):
                self.finished[call_id] = output
            case TurnStarted():
                self._begin_turn()
            case TurnEnded():
                self.ended = entry
            case RunStarted() | RunEnded():
                self._begin_or_end(entry)

    def _begin_or_end(self, entry: RunStarted | RunEnded) -> None:
        if isinstance(entry, RunStarted):
            self.run = entry
        else:
            self.is_over = True

    def _begin_turn(self) -> None:
        self.turns += 1
        self.passes = self.repairs = 0
        self.answer = None
        self.said = []
        self.responses = []
        self.ended = None

    def _add(self, entry: ItemAdded) -> None:
        item = entry.item
        self.items.append(item)
        self.sent.append(in_input_form(item))
        match item:
            case FunctionCall(call_id=call_id):
                self.call_ids.add(call_id)
                # Only a model asks for things; what others say of calls is history.
                if entry.source == "model":
                    self.pending[call_id] = item
            case FunctionCallOutput(call_id=call_id, output=output):
                self._answered(call_id, output)
            case Message(role="assistant") if entry.source == "model":
                self.said.append(item.text)
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
        self.answer = None  # The model has not seen this yet.
        if call is None:
            return
        # A result that was accepted is answered with itself, one that was not with
        # an envelope that says why.
        if call.name in (RESPOND, END) and output == call.arguments:
            self.responses.append(call)


def state_from_entries(entries: list[Entry]) -> RunState:
    """Make the state of a run from its log."""
    state = RunState()
    for entry in entries:
        state.feed(entry)
    return state
