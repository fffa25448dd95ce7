"""What a call of the model's comes to: something to do, or why not."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.deck.permissions import EVERYTHING
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.calls import (
    ActionCall,
    BuiltinCall,
    PlannedCall,
    RefusedCall,
    RespondCall,
    ToolCall,
    plan_call,
    problem_words,
)
from gambit_actors.run.envelopes import Envelope
from gambit_actors.run.programs import Program, RuntimeTool
from gambit_actors.schema.explaining import Problem
from tests.run.playing import (
    ACTION,
    COUNTED,
    FREE_TOOL,
    RESPOND,
    TOOL,
    WORDED,
    call,
    program,
)

ALL = program(
    "allowEnd = true\n" + RESPOND + COUNTED + ACTION + TOOL + FREE_TOOL,
    permissions=EVERYTHING,
    runtime_tools=(RuntimeTool(name="clock"),),
)
FREE = program(RESPOND)
NAMES = [*ALL.offers]
MALFORMED = ["{", '{"n": 1', "n=1", "{'n': 1}", '{"n": NaN}', '{"n": 1} x', "[" * 9999]
NO_OBJECTS = ["null", "1", '"x"', "[]", '[{"n": 1}]', "true"]


def plan(name: str, arguments: str = "{}", made: Program = ALL) -> PlannedCall:
    """What a call comes to."""
    return plan_call(made, call(name, arguments))


def refused(planned: PlannedCall) -> Envelope:
    """What the model is told instead of a result."""
    assert isinstance(planned, RefusedCall)
    return planned.envelope


def taking(schema: str) -> Program:
    """A program with one action, whose deck takes this."""
    return program(ACTION, files={"/count.json": schema})


def giving(schema: str) -> Program:
    """A program that responds with this."""
    files = {"/r.json": schema}
    return program('respond = true\nresponseSchema = "/r.json"', files=files)


# --- names and arguments -----------------------------------------------------


@pytest.mark.parametrize(
    "name", ["nope", "", "WEIGH", "gambit_context", "gambit_init", "gambit_complete"]
)
def test_an_unknown_tool_is_a_404(name: str) -> None:
    """What was not offered cannot be called, and the model is told so."""
    envelope = refused(plan(name))
    assert (envelope.status, envelope.code) == (404, "unknown_action")
    assert name in (envelope.message or "")


@pytest.mark.parametrize("name", ["gambit_respond", "gambit_end", "read_file", "exec"])
def test_what_a_deck_does_not_have_is_unknown(name: str) -> None:
    """A tool of the runtime that the deck did not ask for is no tool of it."""
    assert refused(plan(name, made=program())).status == 404


def test_an_unknown_tool_with_bad_arguments_is_unknown() -> None:
    """The name is looked at first."""
    assert refused(plan("nope", "{")).status == 404


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("arguments", [*MALFORMED, *NO_OBJECTS])
def test_malformed_arguments_are_a_400(name: str, arguments: str) -> None:
    """Arguments that are no JSON object are told to the model, and never guessed."""
    envelope = refused(plan(name, arguments))
    assert (envelope.status, envelope.code) == (400, "invalid_input")
    assert "JSON" in (envelope.message or "")


@pytest.mark.parametrize("arguments", ["", " ", "\n"])
def test_no_arguments_are_none(arguments: str) -> None:
    """Some models write nothing where there is nothing to say."""
    assert plan("anything", arguments) == ToolCall(
        call=call("anything", arguments), name="anything", arguments={}
    )


def test_no_arguments_are_not_enough_where_some_are_needed() -> None:
    """Nothing is read as an empty object, which is checked like any other."""
    envelope = refused(plan("weigh", ""))
    assert (envelope.status, envelope.message) == (400, "the key 'n' is missing")


@given(st.sampled_from(NAMES), st.text())
def test_any_text_comes_to_something(name: str, arguments: str) -> None:
    """No arguments whatever make the planning fail, and the call is kept as it is."""
    planned = plan(name, arguments)
    assert planned.call == call(name, arguments)


# --- actions -----------------------------------------------------------------


def test_an_action_gets_its_arguments_checked_and_filled_in() -> None:
    """What the deck is run with has the defaults of its schema."""
    arguments = '{"n": 2}'
    assert plan("weigh", arguments) == ActionCall(
        call=call("weigh", arguments),
        action=ALL.deck.actions[0],
        input={"n": 2, "unit": "kg"},
    )


def test_all_that_is_wrong_with_arguments_is_said() -> None:
    """The model reads every problem at once, each with its place."""
    envelope = refused(plan("weigh", '{"n": "two", "unit": 3}'))
    assert (envelope.status, envelope.code) == (400, "invalid_input")
    assert envelope.message is not None
    assert "n: expected a whole number" in envelope.message
    assert "unit: expected a string" in envelope.message


@pytest.mark.parametrize(
    ("schema", "arguments", "expected"),
    [
        ('{"type": "string"}', '{"input": "hi"}', "hi"),
        ('{"type": "array"}', '{"input": [1]}', [1]),
        ('{"type": ["array", "null"]}', '{"input": null}', None),
        # What can be an object is not unwrapped, whatever its keys are called.
        ('{"type": ["object", "null"]}', '{"input": null}', {"input": None}),
        ("{}", '{"input": 0}', {"input": 0}),
        ('{"type": "object"}', '{"input": 1}', {"input": 1}),
    ],
)
def test_wrapped_input_is_unwrapped(
    schema: str, arguments: str, expected: JSONValue
) -> None:
    """An action that takes no object gets what is under the key that it was shown."""
    planned = plan("weigh", arguments, taking(schema))
    assert isinstance(planned, ActionCall)
    assert planned.input == expected


@pytest.mark.parametrize("arguments", ["{}", '{"input": 1}', '{"text": "hi"}'])
def test_wrapped_input_is_checked(arguments: str) -> None:
    """What is under that key has to fit, and has to be there."""
    assert refused(plan("weigh", arguments, taking('{"type": "string"}'))).status == 400


# --- tools -------------------------------------------------------------------


@pytest.mark.spec("DK-9")
def test_a_tool_s_arguments_are_checked_before_it_is_asked() -> None:
    """Arguments that do not fit the inputSchema never reach the tool."""
    envelope = refused(plan("look_up", '{"n": "two"}'))
    assert (envelope.status, envelope.code) == (400, "invalid_input")
    assert "n: expected a whole number" in (envelope.message or "")


def test_a_tool_gets_its_arguments_filled_in() -> None:
    """Arguments that fit reach the tool with the defaults of the schema."""
    arguments = '{"n": 2}'
    assert plan("look_up", arguments) == ToolCall(
        call=call("look_up", arguments),
        name="look_up",
        arguments={"n": 2, "unit": "kg"},
    )


@pytest.mark.parametrize("name", ["anything", "clock"])
def test_a_tool_without_a_schema_takes_any_object(name: str) -> None:
    """What says nothing about its arguments gets them as they are."""
    arguments = '{"a": [null]}'
    assert plan(name, arguments) == ToolCall(
        call=call(name, arguments), name=name, arguments={"a": [None]}
    )


# --- built-in tools ----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_file", '{"path": "a", "start_line": 1, "end_line": 2}'),
        ("list_dir", '{"path": "a", "recursive": true, "max_entries": 2000}'),
        ("grep_files", '{"path": "a", "query": "b", "max_matches": 1}'),
        ("apply_patch", '{"path": "a", "edits": [{"old_text": "", "new_text": ""}]}'),
        ("exec", '{"command": "a", "args": ["b"], "timeout_ms": 30000}'),
    ],
)
def test_a_built_in_tool_is_used(name: str, arguments: str) -> None:
    """Arguments that fit come with the tool that they are for."""
    planned = plan(name, arguments)
    assert isinstance(planned, BuiltinCall)
    assert planned.tool.name == name
    assert planned.arguments["path" if name != "exec" else "command"] == "a"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_file", "{}"),
        ("read_file", '{"path": "a", "start_line": 0}'),
        ("read_file", '{"path": "a", "lines": 3}'),
        ("list_dir", '{"path": "a", "max_entries": 2001}'),
        ("grep_files", '{"path": "a"}'),
        ("apply_patch", '{"path": "a", "edits": [{"old_text": ""}]}'),
        ("exec", '{"command": ["a"]}'),
        ("exec", '{"command": "a", "timeout_ms": 30001}'),
    ],
)
def test_a_built_in_tool_s_arguments_are_checked(name: str, arguments: str) -> None:
    """Arguments that do not fit are a 400, like those of any other tool."""
    envelope = refused(plan(name, arguments))
    assert (envelope.status, envelope.code) == (400, "invalid_input")


# --- results and ends --------------------------------------------------------


def test_a_result_is_checked_and_filled_in() -> None:
    """The payload is made to fit the response schema; its envelope is kept."""
    arguments = '{"payload": {"n": 1}, "status": 200, "message": "Done.", "meta": {}}'
    assert plan("gambit_respond", arguments) == RespondCall(
        call=call("gambit_respond", arguments),
        envelope=Envelope(
            payload={"n": 1, "unit": "kg"}, status=200, message="Done.", meta={}
        ),
    )


def test_a_result_without_a_payload_is_all_of_the_arguments() -> None:
    """A model that forgets the payload and gives its fields is understood."""
    arguments = '{"n": 1, "message": "Done."}'
    planned = plan("gambit_respond", arguments)
    assert isinstance(planned, RespondCall)
    assert planned.envelope.message == "Done."
    assert planned.envelope.payload["n"] == 1


@pytest.mark.parametrize(
    "arguments", [{"message": "Done."}, {"status": 200, "code": "ok"}, {}]
)
def test_a_result_of_words_like_those_about_it_is_still_a_result(
    arguments: dict[str, JSONValue],
) -> None:
    """Without a payload the whole arguments are it, where the schema takes them."""
    schema = {
        "type": "object",
        "properties": {"message": {}, "status": {}, "code": {}},
        "additionalProperties": False,
    }
    made = giving(msgspec.json.encode(schema).decode())
    planned = plan("gambit_respond", msgspec.json.encode(arguments).decode(), made)
    assert isinstance(planned, RespondCall)
    assert planned.envelope.payload == arguments


@pytest.mark.parametrize(
    "arguments",
    [
        '{"payload": {"n": "one"}}',
        '{"payload": null}',
        '{"payload": "{\\"n\\": 1}"}',
        '{"status": 200}',
        '{"message": "Done."}',
        "{}",
        "",
    ],
)
def test_a_result_that_does_not_fit_is_refused(arguments: str) -> None:
    """The model is told what is wrong with its payload, and may try again."""
    envelope = refused(plan("gambit_respond", arguments))
    assert (envelope.status, envelope.code) == (400, "invalid_input")
    assert "the payload does not fit" in (envelope.message or "")


def test_all_that_is_wrong_with_a_result_is_said() -> None:
    """Every problem of the payload is in the refusal."""
    message = refused(plan("gambit_respond", '{"payload": {"unit": 1}}')).message or ""
    assert "the key 'n' is missing" in message
    assert "unit: expected a string" in message


@pytest.mark.parametrize("payload", ["null", "0", '""', "[1]", '{"a": {}}'])
def test_without_a_schema_any_result_will_do(payload: str) -> None:
    """A deck that does not say what it gives may give anything."""
    planned = plan("gambit_respond", f'{{"payload": {payload}}}', FREE)
    assert isinstance(planned, RespondCall)
    assert not planned.is_end


def test_a_string_result_is_not_parsed() -> None:
    """A payload of the type string is that string."""
    made = program(RESPOND + WORDED)
    planned = plan("gambit_respond", '{"payload": "{}"}', made)
    assert isinstance(planned, RespondCall)
    assert planned.envelope.payload == "{}"


def test_a_null_result_fits_where_null_does() -> None:
    """Null is a result like any other if the schema has it."""
    planned = plan("gambit_respond", '{"payload": null}', giving('{"type": "null"}'))
    assert isinstance(planned, RespondCall)
    assert planned.envelope.payload is None


@pytest.mark.parametrize(
    "arguments", ["", "{}", '{"payload": 7}', '{"message": "Bye."}', '{"why": "tired"}']
)
def test_an_end_needs_no_result(arguments: str) -> None:
    """A conversation may end at any point, whatever the response schema is."""
    planned = plan("gambit_end", arguments)
    assert isinstance(planned, RespondCall)
    assert planned.is_end


def test_an_end_says_what_it_says() -> None:
    """What is said with an end is kept, and extras of the wrong type are not."""
    planned = plan("gambit_end", '{"payload": 7, "message": "Bye.", "code": 3}')
    assert isinstance(planned, RespondCall)
    assert planned.envelope == Envelope(payload=7, message="Bye.")


# --- words -------------------------------------------------------------------


def test_a_long_list_of_problems_is_cut_and_counted() -> None:
    """Twenty problems are told in full; of the rest it is said how many."""
    problems = tuple(Problem(path=f"a{n}", message="bad") for n in range(23))
    assert problem_words(problems[:2]) == "a0: bad; a1: bad"
    assert problem_words(problems[:20]).endswith("a19: bad")
    assert problem_words(problems).endswith("a19: bad; and 3 more")
