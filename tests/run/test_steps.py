"""What a run does next."""

import msgspec
import pytest

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import Message
from gambit_actors.run.entries import (
    Entry,
    ItemAdded,
    RunStatus,
    TurnEnded,
    TurnStarted,
)
from gambit_actors.run.programs import Program
from gambit_actors.run.steps import (
    MAX_PASSES,
    MAX_REPAIRS,
    CallModel,
    Finish,
    next_step,
)
from tests.run.playing import (
    COUNTED,
    RESPOND,
    WORDED,
    accepted,
    answered,
    asked,
    call,
    called,
    calls_after,
    complaint,
    failure_of,
    finish_after,
    output,
    program,
    request_after,
    said,
    state_of,
    step_after,
)

PLAIN = program()
WORDS = program(WORDED)
COUNTS = program(COUNTED)
RESPONDS = program(RESPOND + COUNTED)
ENDS = program("allowEnd = true\n" + RESPOND)
REFUSED = '{"status": 400}'


def answer(text: str) -> tuple[Entry, ...]:
    """An answer in words."""
    return answered(), said(text)


def complained(step: CallModel) -> str:
    """What the model is told about its answer."""
    (first,) = step.first
    assert isinstance(first, ItemAdded)
    assert first.source == "runtime"
    assert isinstance(first.item, Message)
    assert isinstance(step.request.input, tuple)
    assert step.request.input[-1] == first.item
    return first.item.text


# --- asking ------------------------------------------------------------------


def test_a_turn_starts_with_the_model() -> None:
    """The first thing in a turn is to ask the model, with the conversation so far."""
    step = request_after(PLAIN, asked("Hi."))
    assert step.first == ()
    assert step.request == msgspec.structs.replace(
        PLAIN.template, input=(asked("Hi.").item,)
    )


def test_a_deck_may_speak_first() -> None:
    """Without anything said the model is asked all the same."""
    assert request_after(PLAIN).request.input == ()


def test_the_model_sees_what_its_calls_gave() -> None:
    """When every call has its output the model is asked again, with all of it."""
    entries = [asked(), said("Let me see."), called("t"), output("7")]
    step = request_after(PLAIN, entries[0], answered(), *entries[1:])
    assert step.request.input == tuple(entry.item for entry in entries)


def test_the_request_is_not_changed_by_what_comes_later() -> None:
    """A request keeps the conversation as it was when it was made."""
    state = state_of(asked())
    step = next_step(PLAIN, state, max_passes=1)
    state.feed(said("x"))
    assert isinstance(step, CallModel)
    assert step.request.input == (asked().item,)


# --- calls -------------------------------------------------------------------


def test_calls_are_carried_out_together() -> None:
    """All calls of an answer are to be done, in the order they were made."""
    calls = calls_after(PLAIN, answered(), called("a"), called("b", call_id="c2"))
    assert calls == (call("a"), call("b", call_id="c2"))


def test_only_what_has_no_output_is_carried_out() -> None:
    """A run that goes on after a crash does not do again what is done."""
    entries: list[Entry] = [answered(), called("a"), called("b", call_id="c2")]
    entries.append(output())
    assert calls_after(PLAIN, *entries) == (call("b", call_id="c2"),)


def test_calls_are_done_before_a_result_counts() -> None:
    """Other calls beside a result are carried out before the turn ends."""
    entries = [
        answered(),
        *accepted("gambit_respond", '{"payload": {"n": 1}}'),
        called("t", call_id="c2"),
    ]
    assert calls_after(RESPONDS, *entries) == (call("t", call_id="c2"),)


def test_words_beside_calls_are_no_answer() -> None:
    """What is said with a call does not end the turn."""
    entries = [*answer("Done!"), called("t")]
    assert calls_after(PLAIN, *entries)
    request_after(PLAIN, *entries, output())


# --- answers in words --------------------------------------------------------


@pytest.mark.parametrize("made", [PLAIN, WORDS])
@pytest.mark.parametrize("text", ["Hello.", "", " x\n", '{"n": 1}', "```\nx\n```"])
def test_words_are_the_answer(made: Program, text: str) -> None:
    """Where a string will do, any text is the answer as it is, also an empty one."""
    ended = finish_after(made, *answer(text)).ended
    assert ended == TurnEnded(status="completed", result=text, text=text)


def test_an_answer_with_nothing_in_it() -> None:
    """A model that gives no item at all has given an empty answer."""
    assert finish_after(PLAIN, answered()).ended == TurnEnded(
        status="completed", result="", text=""
    )


def test_several_messages_are_one_answer() -> None:
    """Messages of one answer are joined."""
    assert finish_after(PLAIN, answered(), said("a"), said("b")).ended.result == "ab"


def test_only_the_last_answer_counts() -> None:
    """What was said with earlier calls is not in the answer."""
    entries = [*answer("Wait."), called("t"), output(), *answer("Done.")]
    assert finish_after(PLAIN, *entries).ended.result == "Done."


@pytest.mark.parametrize(
    "text",
    [
        '{"n": 1}',
        ' \n{"n": 1}\n',
        '```json\n{"n": 1}\n```',
        '```\n{"n": 1}\n```',
        '\n```json\r\n{"n": 1}\r\n```\n',
        '```JSON\n{\n"n": 1\n}```',
    ],
)
def test_json_is_read_from_words(text: str) -> None:
    """JSON that fits is the result, also in a code fence, with defaults filled in."""
    assert finish_after(COUNTS, *answer(text)).ended == TurnEnded(
        status="completed", result={"n": 1, "unit": "kg"}, text=text
    )


@pytest.mark.parametrize(
    ("schema", "text", "result"),
    [
        ('{"type": "integer"}', "42", 42),
        ('{"type": "boolean"}', "false", False),
        ('{"type": ["string", "null"]}', "null", None),
        ('{"type": ["string", "null"]}', '"x"', "x"),
        ('{"type": "array"}', "[]", []),
    ],
)
def test_json_of_any_type(schema: str, text: str, result: JSONValue) -> None:
    """A result need not be an object."""
    made = program('responseSchema = "/r.json"', files={"/r.json": schema})
    ended = finish_after(made, *answer(text)).ended
    assert (ended.status, ended.result) == ("completed", result)


# --- answers that do not fit -------------------------------------------------


@pytest.mark.parametrize("text", ["", "one", "{", "{'n': 1}", "```json\none\n```", "`"])
def test_what_is_not_json_is_asked_for_again(text: str) -> None:
    """The model is told that its answer is not JSON, and gets to give another."""
    assert "is not JSON" in complained(request_after(COUNTS, *answer(text)))


def test_json_that_does_not_fit_is_asked_for_again() -> None:
    """The model is told all that is wrong with its answer."""
    words = complained(request_after(COUNTS, *answer('{"n": "one", "unit": 1}')))
    assert "n: expected a whole number" in words
    assert "unit: expected a string" in words


def test_words_that_do_not_fit_are_asked_for_again() -> None:
    """A string may have to be one of several."""
    files = {"/r.json": '{"enum": ["yes", "no"]}'}
    made = program('responseSchema = "/r.json"', files=files)
    assert complained(request_after(made, *answer("maybe")))
    assert finish_after(made, *answer("yes")).ended.result == "yes"


def test_the_bad_answer_stays_in_the_conversation() -> None:
    """The model sees what it said, and what was wrong with it."""
    step = request_after(COUNTS, asked(), *answer("one"))
    assert isinstance(step.request.input, tuple)
    assert step.request.input[:2] == (asked().item, said("one").item)
    assert len(step.request.input) == 3


def test_a_complaint_that_was_logged_is_not_made_twice() -> None:
    """A run that stopped after the complaint asks the model, and says no more."""
    step = request_after(COUNTS, *answer("one"), complaint())
    assert step.first == ()
    assert isinstance(step.request.input, tuple)
    assert step.request.input[-1] == complaint().item


def test_an_answer_can_be_put_right() -> None:
    """A good answer after a complaint is the result."""
    entries = [*answer("one"), complaint(), *answer('{"n": 1}')]
    assert finish_after(COUNTS, *entries).ended.status == "completed"


def test_repairs_come_to_an_end() -> None:
    """After so many complaints the turn fails, and says what was wrong last."""
    entries: list[Entry] = [*answer("one")]
    for _ in range(MAX_REPAIRS):
        entries += [*request_after(COUNTS, *entries).first, *answer('{"n": "one"}')]
    step = finish_after(COUNTS, *entries)
    code, message = failure_of(step)
    assert code == "invalid_answer"
    assert "n: expected a whole number" in message
    assert step.ended.text == '{"n": "one"}'
    assert step.ended.result is None


def test_repairs_are_counted_across_calls() -> None:
    """A call in between does not give a model more tries in a turn."""
    entries: list[Entry] = []
    for _ in range(MAX_REPAIRS):
        entries += [*answer("one"), complaint(), answered(), called("t"), output()]
    assert failure_of(finish_after(COUNTS, *entries, *answer("one")))


def test_repairs_are_counted_per_turn() -> None:
    """In a new turn a model may be asked again as often."""
    entries: list[Entry] = [*answer("one"), complaint()] * MAX_REPAIRS
    step = step_after(COUNTS, *entries, TurnStarted(), *answer("one"))
    assert isinstance(step, CallModel)


def test_a_repair_is_a_pass() -> None:
    """When no pass is left, there is no asking again, and the problem is named."""
    step = finish_after(COUNTS, *answer("one"), max_passes=1)
    code, message = failure_of(step)
    assert code == "max_passes"
    assert "is not JSON" in message
    assert step.ended.text == "one"


# --- results and ends --------------------------------------------------------


def test_a_result_ends_the_turn() -> None:
    """What was given with gambit_respond is the result, filled in."""
    result = accepted(
        "gambit_respond", '{"payload": {"n": 1}, "status": 201, "message": "Done."}'
    )
    assert finish_after(RESPONDS, answered(), *result).ended == TurnEnded(
        status="completed",
        result={"n": 1, "unit": "kg"},
        text="Done.",
        envelope={"status": 201, "message": "Done."},
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"payload": "Hi.", "message": "Said."}', "Hi."),
        ('{"payload": [1, {"a": null}], "message": "Said."}', "Said."),
        ('{"payload": [1, {"a": null}]}', '[1,{"a":null}]'),
        ('{"message": "Said."}', "Said."),
        ("{}", ""),
    ],
)
def test_a_result_in_words(arguments: str, text: str) -> None:
    """A result is shown as its own text, else its message, else as JSON."""
    made = program("allowEnd = true")
    ended = finish_after(made, answered(), *accepted("gambit_end", arguments)).ended
    assert ended.text == text


def test_a_result_that_was_refused_goes_on() -> None:
    """The model is asked again, and has seen why."""
    refused = called("gambit_respond", '{"payload": 1}'), output(REFUSED)
    step = request_after(RESPONDS, answered(), *refused)
    assert isinstance(step.request.input, tuple)
    assert step.request.input[-1] == output(REFUSED).item


def test_a_good_result_beside_a_refused_one_counts() -> None:
    """One result that fits is enough."""
    good = accepted("gambit_respond", '{"payload": {"n": 1}}', "c2")
    entries = [answered(), called("gambit_respond"), output(REFUSED), *good]
    ended = finish_after(RESPONDS, *entries).ended
    assert ended.result == {"n": 1, "unit": "kg"}


def test_the_last_result_counts() -> None:
    """Of several results in one answer it is the last."""
    first = accepted("gambit_respond", '{"payload": {"n": 1}}')
    last = accepted("gambit_respond", '{"payload": {"n": 2}}', "c2")
    entries = [answered(), first[0], last[0], first[1], last[1]]
    assert finish_after(RESPONDS, *entries).ended.result["n"] == 2


@pytest.mark.parametrize("names", [("respond", "end"), ("end", "respond")])
def test_an_end_counts_before_a_result(names: tuple[str, str]) -> None:
    """Whichever comes first, an end is an end."""
    one, two = names
    entries = [
        answered(),
        *accepted(f"gambit_{one}", f'{{"payload": "{one}"}}'),
        *accepted(f"gambit_{two}", f'{{"payload": "{two}"}}', "c2"),
    ]
    ended = finish_after(ENDS, *entries).ended
    assert (ended.is_end, ended.result) == (True, "end")


def test_an_end_without_words() -> None:
    """An end needs no result and no reason."""
    ended = finish_after(ENDS, answered(), *accepted("gambit_end", "{}")).ended
    assert ended == TurnEnded(status="completed", is_end=True)


def test_a_deck_that_does_not_respond_may_end() -> None:
    """An end is open to any deck that allows it, whatever its schema."""
    made = program("allowEnd = true\n" + COUNTED)
    ended = finish_after(made, answered(), *accepted("gambit_end", "{}")).ended
    assert (ended.status, ended.is_end) == ("completed", True)


@pytest.mark.parametrize("text", ["", "Done.", '{"n": 1}', '{"payload": {"n": 1}}'])
def test_a_responding_deck_does_not_finish_in_words(text: str) -> None:
    """Whatever it says, it is told to call gambit_respond."""
    words = complained(request_after(RESPONDS, *answer(text)))
    assert "gambit_respond" in words


def test_a_responding_deck_is_reminded_until_its_passes_are_used_up() -> None:
    """Words are not mistakes here, so only the passes end it."""
    entries: list[Entry] = []
    for _ in range(MAX_REPAIRS + 3):
        entries += [*answer("Done."), complaint()]
    assert complained(request_after(RESPONDS, *entries, *answer("Done.")))
    step = finish_after(RESPONDS, *entries, *answer("Done."), max_passes=6)
    code, message = failure_of(step)
    assert code == "max_passes"
    assert "gambit_respond" in message
    # A person reads this: what to do about it was said to the model.
    assert message.endswith("in 6 passes: it never called gambit_respond")


def test_a_result_that_the_deck_no_longer_takes() -> None:
    """A log may be older than its deck; then the turn fails instead of guessing."""
    entries = [answered(), *accepted("gambit_respond", '{"payload": "old"}')]
    assert failure_of(finish_after(RESPONDS, *entries))[0] == "deck_changed"
    assert failure_of(finish_after(PLAIN, *entries))[0] == "deck_changed"


# --- cut answers -------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("incomplete", "model_incomplete"),
        ("failed", "model_failed"),
        ("in_progress", "model_incomplete"),
        ("cancelled", "model_incomplete"),
    ],
)
@pytest.mark.parametrize(
    "items",
    [
        (),
        (said('{"n": 1}'),),
        (called("t"),),
        accepted("gambit_respond", '{"payload": {"n": 1}}')[:1],
    ],
)
@pytest.mark.parametrize("made", [PLAIN, COUNTS, RESPONDS])
def test_an_answer_that_was_cut_fails(
    made: Program, status: str, code: str, items: tuple[Entry, ...]
) -> None:
    """Whatever a cut answer has in it, none of it is done and none is the result."""
    step = finish_after(made, answered(status, "out of luck"), *items)
    assert failure_of(step)[0] == code
    assert "out of luck" in failure_of(step)[1]
    assert step.ended.result is None


def test_a_cut_answer_without_a_reason() -> None:
    """The failure names the model, also if nobody said why."""
    _, message = failure_of(finish_after(PLAIN, answered("failed")))
    assert message == "m did not finish its answer: no reason given"


# --- passes and turns --------------------------------------------------------


def test_passes_come_to_an_end() -> None:
    """After the last pass the model is not asked again, and the turn fails."""
    entries: list[Entry] = [answered(), called("t"), output()]
    request_after(PLAIN, *entries, max_passes=2)
    code, message = failure_of(finish_after(PLAIN, *entries, max_passes=1))
    assert code == "max_passes"
    assert "in 1 pass" in message


def test_the_last_pass_is_a_pass() -> None:
    """An answer in the last pass is as good as any, and its calls are carried out."""
    before: list[Entry] = [answered(), called("t"), output()]
    last = finish_after(PLAIN, *before, *answer("Done."), max_passes=2)
    assert last.ended.status == "completed"
    result = accepted("gambit_respond", '{"payload": {"n": 1}}')
    assert finish_after(RESPONDS, answered(), *result, max_passes=1).ended.result
    step = step_after(PLAIN, answered(), called("t"), max_passes=1)
    assert not isinstance(step, Finish)


def test_passes_are_counted_per_turn() -> None:
    """A new turn has all its passes, however many the one before used."""
    used: list[Entry] = [answered(), called("t"), output()] * MAX_PASSES
    ended = finish_after(PLAIN, *used).ended
    again = step_after(PLAIN, *used, ended, TurnStarted(), asked())
    assert isinstance(again, CallModel)


def test_a_new_turn_does_not_end_with_the_old_answer() -> None:
    """The answer of a turn, in words or given, is of that turn only."""
    old = [*answer("Done."), TurnEnded(status="completed", result="Done.")]
    request_after(PLAIN, *old, TurnStarted(), asked())
    given = accepted("gambit_respond", '{"payload": {"n": 1}}')
    ended = TurnEnded(status="completed")
    request_after(RESPONDS, answered(), *given, ended, TurnStarted(), asked())


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_turn_that_has_ended_has_ended(status: RunStatus) -> None:
    """Whatever else there is, the step is the ending that was logged."""
    ended = TurnEnded(status=status)
    assert finish_after(PLAIN, answered(), called("t"), ended).ended is ended


def test_usual_limits() -> None:
    """Ten passes and two repairs, unless somebody says otherwise."""
    assert (MAX_PASSES, MAX_REPAIRS) == (10, 2)
