"""A run goes on from a saved state, and is saved as one."""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import GambitBug
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
    assistant_message,
    system_message,
    user_message,
)
from gambit_actors.openresponses.parts import SummaryText
from gambit_actors.openresponses.seed_v1 import v1_from_item
from gambit_actors.run.entries import (
    CallEnded,
    CallStarted,
    Entry,
    ItemAdded,
    MetaSet,
    RunStarted,
    TurnEnded,
    TurnStarted,
)
from gambit_actors.run.saved_state_entries import (
    NOT_CARRIED_OUT,
    entries_from_saved_state,
    saved_state_from,
)
from gambit_actors.run.saved_states import (
    SavedState,
    json_from_saved_state,
    saved_state_from_json,
)
from gambit_actors.run.states import RunState, state_from_entries
from gambit_actors.run.steps import CallModel, next_step
from tests.openresponses.strategies import items
from tests.run.playing import answered, asked, call, called, output, program, said

STATES = Path(__file__).parent.parent / "fixtures" / "states"
FILES = sorted(STATES.glob("*.json"))
RUN = RunStarted(run_id="run-1", deck="PROMPT.md")


def new_ids() -> Callable[[str], str]:
    """Ids that are counted, and so are known."""
    numbers = count(1)
    return lambda prefix: f"{prefix}-new-{next(numbers)}"


def loaded(name: str) -> SavedState:
    """A file, read."""
    data = (STATES / f"{name}.json").read_bytes()
    return saved_state_from_json(data, new_id=new_ids())


def going_on(state: SavedState) -> RunState:
    """The state of a run that goes on from a saved one."""
    return state_from_entries(entries_from_saved_state(state, run=RUN))


def state_of(told: list[Item]) -> SavedState:
    """A file with these items."""
    raw = tuple(v1_from_item(item) for item in told)
    return SavedState(run_id="r", format="responses", items=raw)


def in_v1(told: list[Item]) -> list[object]:
    """Items as v1 tells them apart: without a status, and content in parts."""
    return [v1_from_item(item) for item in told]


# --- going on -----------------------------------------------------------------------


@pytest.mark.spec("OR-10")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_run_goes_on_from_any_file(file: Path) -> None:
    """Between turns, with every call answered, and what comes next is what was said."""
    made = program("[modelParams]\nmodel = 'm'")
    state = going_on(saved_state_from_json(file.read_bytes()))
    before = list(state.sent)
    assert state.ended == TurnEnded(status="completed")
    assert (state.turns, state.pending, state.is_over) == (1, {}, False)

    for entry in (TurnStarted(), asked("And now?")):
        state.feed(entry)
    step = next_step(made, state, max_passes=1)

    assert isinstance(step, CallModel)
    assert step.request.input == (*before, user_message("And now?"))


def test_a_chat_is_used_word_by_word() -> None:
    """The conversation is that of the file: no prompt and no context is added."""
    state = going_on(loaded("chat_only"))
    assert state.items == [
        system_message("You help customers of a lamp shop."),
        call("gambit_context", "{}", "call-c0ffee"),
        *_without_name("call-c0ffee", '{"shop": "Lamp & Light"}', "gambit_context"),
        user_message("Where is LL-1001?"),
        assistant_message("I will look it up."),
        call("order_lookup", '{ "orderNumber":"LL-1001" }', "call_1"),
        *_without_name("call_1", '{"status": 200, "payload": "sent"}', "order_lookup"),
        assistant_message("It was sent — two days ago."),
    ]


def _without_name(call_id: str, text: str, name: str) -> list[Item]:
    extra = type(user_message("").extra)({"name": name})
    return [FunctionCallOutput(call_id=call_id, output=text, extra=extra)]


def test_who_an_item_is_from_is_told_by_its_kind() -> None:
    """Prompt and context are the deck's, calls and words the model's."""
    entries = entries_from_saved_state(loaded("items_only"), run=RUN)
    sources = [entry.source for entry in entries if isinstance(entry, ItemAdded)]
    assert sources == [
        *("deck", "deck", "tool", "user"),
        *("model", "model", "tool", "model"),
    ]


def test_a_call_without_an_output_gets_one() -> None:
    """It says that nothing was done, right after the calls that it was made with."""
    told: list[Item] = [
        user_message("Both."),
        call("one", "{}", "c1"),
        call("two", "{}", "c2"),
        FunctionCallOutput(call_id="c2", output="2"),
        user_message("And?"),
        call("three", "{}", "c3"),
    ]
    state = going_on(state_of(told))
    assert [_outline(item) for item in state.sent] == [
        *("user", "c1?", "c2?", "c2!", "c1!", "user", "c3?", "c3!"),
    ]
    assert state.pending == {}
    unmet = state.items[4]
    assert isinstance(unmet, FunctionCallOutput)
    assert json.loads(str(unmet.output)) == {
        "runId": "run-1",
        "actionCallId": "c1",
        "source": {"deckPath": "PROMPT.md", "actionName": "one"},
        "status": 499,
        "code": "not_carried_out",
        "message": "it was not carried out before the conversation was saved",
    }


def _outline(item: Item) -> str:
    match item:
        case Message(role=role):
            return role
        case FunctionCall(call_id=call_id):
            return f"{call_id}?"
        case FunctionCallOutput(call_id=call_id):
            return f"{call_id}!"
        case _:
            return item.type


def test_what_was_given_as_a_result_before_is_not_given_again() -> None:
    """A result in the file is history; the next turn has to come to its own."""
    state = going_on(loaded("v1_nested"))
    state.feed(TurnStarted())
    assert state.responses == ()


def test_meta_becomes_the_sessions() -> None:
    """Every value that the file keeps for the session is kept by the run."""
    entries = entries_from_saved_state(loaded("feedback"), run=RUN)
    assert MetaSet(key="initialized", value=True) in entries
    assert state_from_entries(entries).meta.keys() == {"gradingRuns", "initialized"}


def test_an_empty_state_is_a_run_that_has_not_begun() -> None:
    """Where nothing was said, the prompt and the context are still to come."""
    blank = SavedState(run_id="r", messages=(), meta={"a": 1})
    assert entries_from_saved_state(blank, run=RUN) == [RUN, MetaSet(key="a", value=1)]


# --- saving --------------------------------------------------------------------------


def test_a_run_is_saved_as_items() -> None:
    """With its id, its meta, and messages and refs made of its items."""
    entries: list[Entry] = [
        *(RUN, TurnStarted(), asked("Hello?"), answered(), said("Hi.")),
        *(MetaSet(key="mood", value="good"), TurnEnded(status="completed")),
    ]
    state = saved_state_from(state_from_entries(entries), None, new_ids())
    assert json.loads(json_from_saved_state(state)) == {
        "runId": "run-1",
        "format": "responses",
        "items": [
            v1_from_item(user_message("Hello?")),
            v1_from_item(assistant_message("Hi.")),
        ],
        "messages": [
            {"role": "user", "content": "Hello?"},
            {"role": "assistant", "content": "Hi."},
        ],
        "messageRefs": [
            {"id": "msg-new-1", "role": "user"},
            {"id": "msg-new-2", "role": "assistant"},
        ],
        "meta": {"mood": "good"},
    }


@pytest.mark.spec("OR-10")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_a_run_knows_nothing_of_goes_back_to_the_file(file: Path) -> None:
    """After a turn more, all else in the file is as it was, refs included."""
    before = saved_state_from_json(file.read_bytes(), new_id=new_ids())
    run = going_on(before)
    for entry in (TurnStarted(), asked("Thanks."), answered(), said("Bye.")):
        run.feed(entry)

    after = saved_state_from(run, before, new_ids(), format="responses")

    document, was = (json.loads(json_from_saved_state(s)) for s in (after, before))
    turn = [{"role": "user", "content": "Thanks."}]
    turn += [{"role": "assistant", "content": "Bye."}]
    added = ("runId", "format", "items", "messages", "messageRefs")
    assert {k: v for k, v in document.items() if k not in added} == {
        k: v for k, v in was.items() if k not in added
    }
    assert document["format"] == "responses"
    assert document["items"][:-2] == was.get("items", document["items"][:-2])
    assert document["messages"] == [*was["messages"], *turn]
    kept = was.get("messageRefs", [])
    assert document["messageRefs"][: len(kept)] == kept
    assert len(document["messageRefs"]) == len(document["messages"])


@pytest.mark.spec("OR-10")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_keeps_its_form(file: Path) -> None:
    """After a turn more a chat is a chat, and items are items; nothing is lost."""
    before = saved_state_from_json(file.read_bytes(), new_id=new_ids())
    run = going_on(before)
    for entry in (TurnStarted(), asked("Thanks."), answered(), said("Bye.")):
        run.feed(entry)

    for form in (None, before.mode):
        after = saved_state_from(run, before, new_ids(), format=form)

        assert after.mode == before.mode
        user = {"role": "user", "content": "Thanks."}
        model = {"role": "assistant", "content": "Bye."}
        assert after.messages == (*(before.messages or ()), user, model)
        assert (after.items is None) == (before.items is None)
        again = saved_state_from_json(json_from_saved_state(after), new_id=new_ids())
        assert in_v1(going_on(again).items) == in_v1(run.items)


def test_a_chat_becomes_items_where_it_is_asked_for() -> None:
    """And then says so."""
    for name in ("chat_only", "mixed"):
        previous = loaded(name)
        other = saved_state_from(
            going_on(previous), previous, new_ids(), format="responses"
        )
        assert other.format == "responses"
        assert other.items


@pytest.mark.parametrize("previous", [loaded("chat_only"), None])
def test_what_a_chat_has_no_place_for_is_beside_it(previous: SavedState | None) -> None:
    """A thought is not lost, and the chat still counts."""
    run = going_on(previous or SavedState(run_id="r", items=()))
    thought = Reasoning(id="rs_1", summary=(SummaryText(text="Hm."),))
    if run.run is None:
        run.feed(RUN)
    added = ItemAdded(item=thought, source="model")
    for entry in (TurnStarted(), asked("Well?"), answered(), added, said("Yes.")):
        run.feed(entry)

    after = saved_state_from(run, previous, new_ids(), format="chat")

    assert (after.format, after.mode) == ("chat", "chat")
    assert after.messages is not None
    assert after.messages[-1] == {"role": "assistant", "content": "Yes."}
    again = saved_state_from_json(json_from_saved_state(after), new_id=new_ids())
    assert in_v1(going_on(again).items) == in_v1(run.items)
    assert thought in going_on(again).items


def test_what_is_new_becomes_a_chat_where_it_is_asked_for() -> None:
    """A file that was not there before has messages and no items."""
    run = going_on(loaded("chat_only"))
    made = saved_state_from(run, None, new_ids(), format="chat")
    assert (made.format, made.items) == ("chat", None)
    assert made.messages


def test_what_was_carried_out_is_saved_as_that() -> None:
    """In the middle of a turn the file has what is known of every call.

    One has its output, one may have had its effect, and one has not been begun.
    """
    behind = ItemAdded(item=assistant_message("Weighed."), source="handler")
    entries: list[Entry] = [
        *(RUN, TurnStarted(), asked(), answered()),
        *(called("f", "{}", "c1"), called("f", "{}", "c2"), called("f", "{}", "c3")),
        CallStarted(call_id="c1", name="f", kind="tool", attempt=2),
        CallEnded(call_id="c2", output="done", after=(behind,)),
    ]
    state = saved_state_from(state_from_entries(entries), None, new_ids())
    sent = going_on(state).sent
    outputs = {i.call_id: i.output for i in sent if isinstance(i, FunctionCallOutput)}
    assert json.loads(str(outputs["c1"]))["code"] == "in_doubt"
    assert "attempt 2" in str(outputs["c1"])
    assert outputs["c2"] == "done"
    assert json.loads(str(outputs["c3"]))["code"] == "not_carried_out"
    assert sent[-1] == behind.item


def test_meta_that_the_run_forgot_is_gone() -> None:
    """The run rules over its meta; a null in the file is not the run's to forget."""
    before = loaded("feedback")
    run = going_on(before)
    run.feed(MetaSet(key="initialized"))
    assert run.meta.keys() == {"gradingRuns"}
    after = saved_state_from(run, before, new_ids())
    assert (after.meta or {}).keys() == {"gradingRuns", "lastInit"}


def test_a_run_that_has_not_started_cannot_be_saved() -> None:
    """It has no id that a file could have."""
    with pytest.raises(GambitBug, match="no id"):
        saved_state_from(RunState(), None, new_ids())


@pytest.mark.spec("OR-9")
def test_a_run_that_is_saved_goes_on_with_the_same_request() -> None:
    """What would be sent next is, in v1's terms, what would have been sent."""
    entries: list[Entry] = [
        *(RUN, TurnStarted(), asked("Look it up."), answered()),
        *(called("look_up", '{ "n":1 }'), output('{"payload": 1.0}')),
        *(answered(), said("It is one."), TurnEnded(status="completed")),
    ]
    run = state_from_entries(entries)
    state = saved_state_from(run, None, new_ids())
    again = going_on(saved_state_from_json(json_from_saved_state(state)))
    assert again.sent == run.sent


@pytest.mark.slow
@pytest.mark.spec("OR-9")
@given(st.lists(items(), max_size=6))
def test_what_a_model_said_is_sent_again_in_v1s_terms(told: list[Item]) -> None:
    """A status, which v1 does not have, is all that is not sent again."""
    whole = going_on(state_of(told)).items
    added = [ItemAdded(item=item, source="model") for item in (*told, *whole)]
    run = state_from_entries([RUN, TurnStarted(), *added])
    state = saved_state_from(run, None, new_ids())
    again = going_on(saved_state_from_json(json_from_saved_state(state)))
    spoken = [item for item in again.sent if not _is_made_here(item)]
    assert in_v1(spoken) == in_v1([i for i in run.sent if not _is_made_here(i)])


def _is_made_here(item: Item) -> bool:
    """Whether it is what a call without an output is given."""
    return isinstance(item, FunctionCallOutput) and NOT_CARRIED_OUT in str(item.output)


@pytest.mark.slow
@pytest.mark.spec("OR-9")
@given(st.lists(items(), max_size=6))
def test_runs_of_any_kind_go_on_with_what_was_said(told: list[Item]) -> None:
    """Once all calls have outputs, saving and loading changes nothing, ever again."""
    run = going_on(state_of(told))
    assert run.pending == {}
    assert [i for i in in_v1(run.items) if i in in_v1(told)] == in_v1(told)
    state = saved_state_from(run, None, new_ids())
    again = going_on(saved_state_from_json(json_from_saved_state(state)))
    assert again.items == run.items
    assert again.sent == run.sent
    assert saved_state_from(again, state, new_ids()) == state
