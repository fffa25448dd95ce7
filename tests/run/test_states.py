"""What the entries of a run add up to."""

import msgspec
import pytest

from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Reasoning,
    assistant_message,
    system_message,
)
from gambit_actors.openresponses.parts import InputText, ReasoningText, SummaryText
from gambit_actors.run.entries import (
    CallEnded,
    CallStarted,
    Entry,
    ItemAdded,
    ItemSource,
    RunEnded,
    RunStarted,
    TurnEnded,
    TurnStarted,
)
from gambit_actors.run.states import RunState, state_from_entries
from gambit_actors.run.synthetic import completion_items, context_items
from tests.run.playing import (
    accepted,
    answered,
    asked,
    call,
    called,
    complaint,
    output,
    said,
    state_of,
)

RESULT = '{"payload": 1}'
THOUGHT = Reasoning(
    summary=(SummaryText(text="Short."),), content=(ReasoningText(text="Long."),)
)


def test_a_run_that_has_not_begun() -> None:
    """Without entries there is nothing, and nothing is over."""
    state = RunState()
    assert state.run is None
    assert (state.items, state.sent, state.turns) == ([], [], 0)
    assert not state.is_over


def test_the_run_is_known_by_its_first_entry() -> None:
    """Which run it is, and of which deck, is in the state."""
    run = RunStarted(run_id="r", deck="PROMPT.md", depth=1)
    assert state_from_entries([run]).run == run


def test_the_end_of_a_run() -> None:
    """When a run has ended the state says so."""
    assert state_of(RunEnded(status="completed")).is_over


def test_items_are_in_the_order_they_came() -> None:
    """The conversation is every item, whoever it is from."""
    entries = [asked("a"), said("b"), called("t"), output(), complaint("c")]
    state = state_of(*entries)
    assert state.items == [entry.item for entry in entries]
    assert state.sent == state.items


def test_raw_reasoning_is_kept_and_not_sent() -> None:
    """What a model thought is in the conversation, and goes back without its words."""
    state = state_of(ItemAdded(item=THOUGHT, source="model"))
    assert state.items == [THOUGHT]
    assert state.sent == [msgspec.structs.replace(THOUGHT, content=None)]


# --- answers -----------------------------------------------------------------


def test_an_answer_counts_as_a_pass() -> None:
    """Every answer of the model is one pass, however it went."""
    state = state_of(answered(), output(), answered("failed"), answered("incomplete"))
    assert state.passes == 3


def test_the_words_of_the_last_answer() -> None:
    """What was said is what the model said last, in all messages of its answer."""
    state = state_of(answered(), said("old"), answered(), said("a"), said("b"))
    assert state.said == "ab"
    assert state.answer == answered()


@pytest.mark.parametrize("source", ["deck", "user", "handler", "tool"])
def test_words_of_others_are_no_answer(source: ItemSource) -> None:
    """A message that is not the model's is not what it answered."""
    entry = ItemAdded(item=assistant_message("x"), source=source)
    assert state_of(answered(), entry).said == ""


def test_an_output_means_that_the_model_is_to_be_asked() -> None:
    """The model has not seen an output that came after its answer."""
    assert state_of(answered(), called("t"), output()).answer is None


def test_a_complaint_is_a_repair() -> None:
    """Asking for a better answer is counted, and the old answer is none."""
    state = state_of(answered(), said("x"), complaint())
    assert (state.repairs, state.answer) == (1, None)


def test_a_message_of_the_user_is_no_repair() -> None:
    """Only the runtime asks for a better answer."""
    assert state_of(asked(), asked()).repairs == 0


def test_the_prompt_is_no_repair() -> None:
    """What the deck says first is not about an answer."""
    prompt = ItemAdded(item=system_message("Be kind."), source="deck")
    assert state_of(prompt).repairs == 0


# --- calls -------------------------------------------------------------------


def test_calls_wait_for_their_outputs() -> None:
    """Calls are pending in the order they were made until each has its output."""
    entries: list[Entry] = [answered(), called("a"), called("b", call_id="c2")]
    state = state_of(*entries)
    assert list(state.pending.values()) == [call("a"), call("b", call_id="c2")]
    state.feed(output())
    assert list(state.pending) == ["c2"]
    state.feed(output(call_id="c2"))
    assert state.pending == {}


def test_an_output_may_have_parts() -> None:
    """An output that is not plain text answers its call as well."""
    item = FunctionCallOutput(call_id="c1", output=(InputText(text="hi"),))
    state = state_of(called("t"), ItemAdded(item=item, source="tool"))
    assert state.pending == {}


def test_a_call_that_was_begun_is_remembered_until_it_is_answered() -> None:
    """A call with effects is known to have begun, and how often."""
    begun = CallStarted(call_id="c1", name="t", kind="tool")
    again = CallStarted(call_id="c1", name="t", kind="tool", attempt=2)
    state = state_of(called("t"), begun)
    assert state.started["c1"].attempt == 1
    state.feed(again)
    assert state.started["c1"].attempt == 2
    state.feed(output())
    assert state.started == {}


def test_a_call_that_is_done_waits_for_the_others() -> None:
    """Its output is known, and joins the conversation when it is added."""
    done = CallEnded(call_id="c1", output="7")
    state = state_of(answered(), called("a"), called("b", call_id="c2"), done)
    assert state.finished["c1"].output == "7"
    assert list(state.pending) == ["c1", "c2"]
    assert state.answer == answered()
    assert len(state.items) == 2
    state.feed(output("7"))
    assert state.finished == {}
    assert list(state.pending) == ["c2"]


def test_an_id_may_be_used_again_when_it_was_answered() -> None:
    """Some models count their calls from one in every answer."""
    state = state_of(called("a"), output(), called("b"))
    assert state.pending == {"c1": call("b")}


def test_an_output_for_no_call_changes_no_call() -> None:
    """What answers nothing is in the conversation, and no more."""
    state = state_of(called("a"), output(call_id="other"))
    assert list(state.pending) == ["c1"]
    assert len(state.items) == 2


@pytest.mark.spec("OR-6")
@pytest.mark.parametrize(
    "items", [context_items("x", {"a": 1}), completion_items("x", RESULT)]
)
def test_calls_that_carry_leave_nothing_to_do(
    items: tuple[FunctionCall, FunctionCallOutput],
) -> None:
    """Context and completion come as answered calls, and are no results."""
    entries = [ItemAdded(item=item, source="runtime") for item in items]
    state = state_of(*entries)
    assert (state.pending, state.responses, state.repairs) == ({}, (), 0)


# --- results -----------------------------------------------------------------


@pytest.mark.spec("OR-6")
@pytest.mark.parametrize("name", ["gambit_respond", "gambit_end"])
def test_a_result_that_was_taken_is_answered_with_itself(name: str) -> None:
    """The output of an accepted result is its arguments, as they were written."""
    state = state_of(answered(), *accepted(name, RESULT))
    assert state.responses == (call(name, RESULT),)


@pytest.mark.parametrize("name", ["gambit_respond", "gambit_end"])
def test_a_result_that_was_refused_is_none(name: str) -> None:
    """A result that was answered with anything else was not taken."""
    state = state_of(answered(), called(name, RESULT), output('{"status": 400}'))
    assert state.responses == ()
    assert state.answer is None


def test_another_call_that_gives_back_its_arguments_is_no_result() -> None:
    """A tool may well be an echo."""
    assert state_of(answered(), *accepted("echo", RESULT)).responses == ()


# --- turns -------------------------------------------------------------------


def test_a_turn_starts_with_nothing_counted() -> None:
    """Passes, repairs, results and the ending are those of this turn alone."""
    state = state_of(
        answered(),
        said("x"),
        complaint(),
        answered(),
        *accepted("gambit_respond", RESULT),
        TurnEnded(status="completed"),
        TurnStarted(),
    )
    assert (state.turns, state.passes, state.repairs) == (2, 0, 0)
    assert (state.responses, state.said) == ((), "")
    assert state.answer is None
    assert state.ended is None


def test_the_conversation_goes_on_in_the_next_turn() -> None:
    """A new turn forgets no item."""
    state = state_of(asked(), answered(), said("x"), TurnStarted())
    assert len(state.items) == len(state.sent) == 2


def test_the_end_of_a_turn_is_kept() -> None:
    """How a turn ended is known until the next one starts."""
    ended = TurnEnded(status="completed", result=1)
    assert state_of(ended).ended == ended


def test_feeding_all_is_feeding_each() -> None:
    """A state made from a log is the state of the run that wrote it."""
    entries: list[Entry] = [
        TurnStarted(),
        asked(),
        answered(),
        called("t"),
        CallStarted(call_id="c1", name="t", kind="tool"),
        output(),
        answered(),
        ItemAdded(item=assistant_message("x"), source="model"),
    ]
    state = RunState()
    for entry in entries:
        state.feed(entry)
    again = state_from_entries(entries)
    assert all(getattr(state, a) == getattr(again, a) for a in RunState.__slots__)
