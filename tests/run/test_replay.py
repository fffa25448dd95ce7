"""Runs of any kind: what is next is a matter of the entries, and there is an end.

A run is played with a model that does whatever Hypothesis thinks of. What it does is
chosen before; when the next thing happens is up to `next_step`.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.deck.permissions import Permissions
from gambit_actors.openresponses.base import Extra, JSONValue
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
    UnknownItem,
    assistant_message,
)
from gambit_actors.openresponses.parts import OutputText, ReasoningText
from gambit_actors.openresponses.responses import Usage
from gambit_actors.run.calls import RefusedCall, RespondCall, plan_call
from gambit_actors.run.entries import (
    CallEnded,
    CallStarted,
    Entry,
    ItemAdded,
    ItemSource,
    ModelAnswered,
    RunEnded,
    RunStarted,
    TurnStarted,
)
from gambit_actors.run.envelopes import CallSource, envelope_from, output_text
from gambit_actors.run.programs import Program, RuntimeTool
from gambit_actors.run.states import RunState, state_from_entries
from gambit_actors.run.steps import CallModel, Finish, RunTools, Step, next_step
from gambit_actors.run.synthetic import completion_items, context_items
from tests.run.playing import (
    ACTION,
    COUNTED,
    FREE_TOOL,
    RESPOND,
    TOOL,
    WORDED,
    asked,
    program,
)

pytestmark = pytest.mark.slow

TOOLS = ACTION + TOOL + FREE_TOOL
ENDING = "allowEnd = true\n"
PROGRAMS = {
    name: program(
        frontmatter,
        permissions=Permissions(read=True),
        runtime_tools=(RuntimeTool(name="clock"),),
    )
    for name, frontmatter in {
        "plain": TOOLS,
        "words": ENDING + WORDED + TOOLS,
        "json": COUNTED + TOOLS,
        "json that may end": ENDING + COUNTED + TOOLS,
        "respond": RESPOND + TOOLS,
        "respond or end": ENDING + RESPOND + COUNTED + TOOLS,
    }.items()
}
SOURCE = CallSource(
    run_id="r", call_id="c", parent_call_id=None, deck_path="PROMPT.md", name="t"
)


def _extra(kind: type, value: JSONValue) -> JSONValue:
    return kind(value)  # Extra is the one type that msgspec has to be told about.


_decode = msgspec.json.Decoder(list[Entry], dec_hook=_extra).decode


# --- a model that does anything ----------------------------------------------


class Answer(msgspec.Struct, frozen=True):
    """What the model does when it is asked; calls get their ids when played."""

    status: str
    items: tuple[Item, ...]


class Script(msgspec.Struct, frozen=True):
    """All that is not decided by `next_step`."""

    program: str
    turns: int
    max_passes: int
    answers: tuple[Answer, ...]
    has_new_ids: bool
    is_reversed: bool


TEXTS = st.sampled_from(
    ["", "Hello.", "7", '{"n": 1}', '```json\n{"n": 2}\n```', '{"n": "x"}', "{", "null"]
)
ARGUMENTS = st.sampled_from(
    [
        "",
        "{}",
        "{",
        "[]",
        '{"n": 1}',
        '{"n": "x", "unit": 1}',
        '{"payload": {"n": 1}}',
        '{"payload": "x", "status": 200}',
        '{"payload": {"n": 2}, "message": "m", "meta": {"a": 1.0}}',
        '{"message": "Bye."}',
        '{"path": "a"}',
    ]
)
NAMES = st.sampled_from(
    [
        "gambit_respond",
        "gambit_end",
        "weigh",
        "look_up",
        "anything",
        "read_file",
        "clock",
        "nope",
        "gambit_context",
    ]
)
CALLS = st.builds(FunctionCall, call_id=st.just(""), name=NAMES, arguments=ARGUMENTS)
MESSAGES = st.builds(assistant_message, TEXTS)
ODD_ITEMS = st.sampled_from(
    [
        Reasoning(id="rs_1", content=(ReasoningText(text="Hm."),)),
        UnknownItem(type_name="x:search", extra=Extra({"query": ["q"]})),
        Message(
            role="assistant",
            content=(OutputText(text="", extra=Extra({"x": None})),),
            extra=Extra({"y": 1}),
        ),
    ]
)
ANSWERS = st.builds(
    Answer,
    st.sampled_from(["completed"] * 8 + ["incomplete", "failed"]),
    st.lists(MESSAGES | CALLS | CALLS | ODD_ITEMS, max_size=4).map(tuple),
)
SCRIPTS = st.builds(
    Script,
    program=st.sampled_from(sorted(PROGRAMS)),
    turns=st.integers(1, 3),
    max_passes=st.integers(0, 5),
    answers=st.lists(ANSWERS, max_size=10).map(tuple),
    has_new_ids=st.booleans(),
    is_reversed=st.booleans(),
)


class Played:
    """A run that is being played, one step at a time."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.program: Program = PROGRAMS[script.program]
        self.state = RunState()
        self.entries: list[Entry] = []
        self._answers = iter(script.answers)
        self._ids = 0

    def steps(self) -> Iterator[Step]:
        """Play all turns. Each step is handed out before it is done."""
        self._log(RunStarted(run_id="r", deck="PROMPT.md"))
        for _ in range(self.script.turns):
            self._log(TurnStarted(), asked())
            if self.state.turns == 1:
                self._add("deck", *context_items("context", {"a": 1}))
            step: Step | None = None
            while not isinstance(step, Finish):
                step = self.next()
                yield step
                self._do(step)
        self._log(RunEnded(status="completed"))

    def next(self) -> Step:
        """What the state says is next."""
        return next_step(self.program, self.state, max_passes=self.script.max_passes)

    def _do(self, step: Step) -> None:
        match step:
            case CallModel(first=first):
                self._log(*first)
                self._answer(next(self._answers, Answer("completed", ())))
            case RunTools(calls=calls):
                self._carry_out(calls)
            case Finish(ended=ended):
                self._log(ended)

    def _answer(self, answer: Answer) -> None:
        usage = Usage(input_tokens=1, output_tokens=2, total_tokens=3)
        self._log(ModelAnswered(model="m", status=answer.status, usage=usage))
        if not self.script.has_new_ids:
            self._ids = 0  # Some models count from one in every answer.
        for item in answer.items:
            if isinstance(item, FunctionCall):
                self._ids += 1
                named = msgspec.structs.replace(item, call_id=f"call_{self._ids}")
                self._add("model", named)
            else:
                self._add("model", item)

    def _carry_out(self, calls: tuple[FunctionCall, ...]) -> None:
        # Calls that are carried out side by side end in any order. Their outputs join
        # the conversation when all are there, in the order of the calls.
        for call in calls[::-1] if self.script.is_reversed else calls:
            self._log(CallEnded(call_id=call.call_id, output=self._output(call)))
        for call in calls:
            text = self.state.finished[call.call_id].output
            self._add("tool", FunctionCallOutput(call_id=call.call_id, output=text))
            if call.name == "weigh":
                self._add("tool", *completion_items("event", text))

    def _output(self, call: FunctionCall) -> str:
        planned = plan_call(self.program, call)
        if isinstance(planned, RespondCall):
            return call.arguments
        if isinstance(planned, RefusedCall):
            return output_text(planned.envelope, SOURCE)
        self._log(CallStarted(call_id=call.call_id, name=call.name, kind="tool"))
        self._add("handler", assistant_message("Still busy."))
        return output_text(envelope_from({"done": 1.0}), SOURCE)

    def _add(self, source: ItemSource, *items: Item) -> None:
        self._log(*(ItemAdded(item=item, source=source) for item in items))

    def _log(self, *entries: Entry) -> None:
        for entry in entries:
            self.entries.append(entry)
            self.state.feed(entry)


def attributes(state: RunState) -> dict[str, object]:
    """All there is to know of a state, as it is now."""
    values = ((name, getattr(state, name)) for name in RunState.__slots__)
    return {
        name: value.copy() if isinstance(value, list | dict) else value
        for name, value in values
    }


# --- what is true of all of them ---------------------------------------------


@given(SCRIPTS)
def test_a_step_depends_on_the_state_alone(script: Script) -> None:
    """Asked twice, the answer is the same, and asking changes nothing."""
    played = Played(script)
    for step in played.steps():
        before = attributes(played.state)
        assert played.next() == step
        assert attributes(played.state) == before


@given(SCRIPTS)
def test_a_run_read_from_its_log_goes_on_as_it_would_have(script: Script) -> None:
    """At every step the log, written and read again, gives that state and that step."""
    played = Played(script)
    for step in played.steps():
        entries = _decode(msgspec.json.encode(played.entries))
        assert entries == played.entries
        state = state_from_entries(entries)
        assert attributes(state) == attributes(played.state)
        again = next_step(played.program, state, max_passes=script.max_passes)
        assert again == step


@given(SCRIPTS)
def test_a_log_that_breaks_off_anywhere_has_a_next_step(script: Script) -> None:
    """A crash may cut a log after any entry; there is always something to do next."""
    played = Played(script)
    assert list(played.steps())
    state = RunState()
    for entry in played.entries:
        state.feed(entry)
        step = next_step(played.program, state, max_passes=script.max_passes)
        assert isinstance(step, CallModel | RunTools | Finish)


@given(SCRIPTS)
def test_the_model_is_not_asked_more_often_than_it_may(script: Script) -> None:
    """In no turn are there more model calls than passes."""
    played = Played(script)
    asked_in: Counter[int] = Counter()
    for step in played.steps():
        asked_in[played.state.turns] += isinstance(step, CallModel)
    assert all(count <= script.max_passes for count in asked_in.values())


@given(SCRIPTS)
def test_every_call_that_the_model_is_shown_has_one_output(script: Script) -> None:
    """In every request each call is followed by one output, before its id comes again.

    Providers refuse anything else.
    """
    for step in Played(script).steps():
        if not isinstance(step, CallModel):
            continue
        is_open: set[str] = set()
        for item in step.request.input or ():
            match item:
                case FunctionCall(call_id=call_id):
                    assert call_id not in is_open
                    is_open.add(call_id)
                case FunctionCallOutput(call_id=call_id):
                    assert call_id in is_open
                    is_open.remove(call_id)
        assert not is_open


@given(SCRIPTS)
def test_there_is_an_end(script: Script) -> None:
    """Every turn ends, with no more steps than its passes can have.

    A pass is a model call and the calls it makes; then there is the ending, and before
    it what a turn that was cut off may have left undone.
    """
    played = Played(script)
    steps_in: Counter[int] = Counter()
    for step in played.steps():
        steps_in[played.state.turns] += 1
        assert steps_in[played.state.turns] <= 2 * script.max_passes + 2
        if isinstance(step, Finish):
            ended = step.ended
            assert (ended.status == "failed") == (ended.failure is not None)
    assert played.state.is_over
    assert played.state.turns == script.turns
