"""What is done about a call in doubt: what the author wants, where that can be."""

import pytest

from gambit_actors.deck.model import OnDoubt
from gambit_actors.deck.permissions import EVERYTHING, NOTHING
from gambit_actors.deck.reader import DescribedModule
from gambit_actors.run.doubts import (
    choice_about,
    choice_for,
    doubts_of,
    is_taken_up,
)
from gambit_actors.run.entries import CallStarted
from gambit_actors.run.programs import Program, program_from_deck
from gambit_actors.run.secrets import STRUCK_OUT
from tests.run.playing import ACTION, TOOL, call, called, deck_from, program, state_of

CODE = """
[[actions]]
name = "weigh"
description = "Weigh it."
execute = "code.py"
contextSchema = "/count.json"
responseSchema = "/text.json"
"""
USABLE = program(TOOL + 'onDoubt = "retry"\n', permissions=EVERYTHING)
LACKING = f'{{"path": "{STRUCK_OUT}"}}'


def with_deck(on_doubt: OnDoubt) -> Program:
    """A program whose action is a deck."""
    return program(f'{ACTION}onDoubt = "{on_doubt}"\n')


def with_code(on_doubt: OnDoubt) -> Program:
    """A program whose action is code."""
    deck = deck_from(
        f'{CODE}onDoubt = "{on_doubt}"\n',
        files={"code.py": ""},
        modules={"code.py": DescribedModule()},
    )
    return program_from_deck(deck, name="PROMPT.md", permissions=NOTHING)


def weighing(run_id: str | None = None) -> CallStarted:
    """An action had begun; one that was a deck had a run of its own."""
    return CallStarted(call_id="c1", name="weigh", kind="action", run_id=run_id)


def reading(name: str) -> CallStarted:
    """A built-in tool had begun."""
    return CallStarted(call_id="c1", name=name, kind="builtin")


@pytest.mark.parametrize("on_doubt", ["retry", "fail", "ask"])
def test_what_the_author_says_of_an_action_is_done(on_doubt: OnDoubt) -> None:
    """As long as it is what it was: a deck, or code."""
    assert choice_for(with_deck(on_doubt), weighing("run-2")) == on_doubt
    assert choice_for(with_code(on_doubt), weighing()) == on_doubt


@pytest.mark.parametrize("on_doubt", ["retry", "fail"])
def test_an_action_that_is_something_else_by_now_is_asked_about(
    on_doubt: OnDoubt,
) -> None:
    """What is said of a deck is not said of the code that it was, nor the reverse."""
    assert choice_for(with_deck(on_doubt), weighing()) == "ask"
    assert choice_for(with_code(on_doubt), weighing("run-2")) == "ask"


def test_a_name_of_another_kind_by_now_is_asked_about() -> None:
    """An action, a tool and a built-in tool are not each other."""
    as_tool = CallStarted(call_id="c1", name="weigh", kind="tool")
    as_action = CallStarted(call_id="c1", name="look_up", kind="action")
    gone = CallStarted(call_id="c1", name="nothing", kind="tool")
    assert choice_for(with_deck("retry"), as_tool) == "ask"
    assert choice_for(USABLE, as_action) == "ask"
    assert choice_for(USABLE, gone) == "ask"


@pytest.mark.parametrize("name", ["read_file", "list_dir", "grep_files"])
def test_a_tool_that_only_reads_is_used_again(name: str) -> None:
    """It changes nothing, so it does not matter whether it happened."""
    assert choice_for(USABLE, reading(name)) == "retry"


@pytest.mark.parametrize("name", ["apply_patch", "exec"])
def test_a_tool_that_changes_something_is_not_used_again(name: str) -> None:
    """The model is told, and can look whether it happened."""
    assert choice_for(USABLE, reading(name)) == "fail"


def test_a_read_whose_secrets_are_lost_fails_and_asks_nobody() -> None:
    """Who would have to be asked could only say that the model is to be told."""
    lacking, whole = call("read_file", LACKING), call("read_file", '{"path": "a"}')
    assert choice_about(USABLE, reading("read_file"), lacking) == "fail"
    assert choice_about(USABLE, reading("read_file"), whole) == "retry"


def test_a_tool_whose_secrets_are_lost_is_asked_about() -> None:
    """Somebody may know what it gave."""
    started = CallStarted(call_id="c1", name="look_up", kind="tool")
    assert choice_about(USABLE, started, call("look_up", LACKING)) == "ask"
    assert choice_about(USABLE, started, call("look_up", '{"n": 1}')) == "retry"


@pytest.mark.parametrize(
    ("on_doubt", "told"), [("retry", []), ("fail", ["fail"]), ("ask", ["ask"])]
)
def test_a_deck_goes_on_from_its_own_log_only_if_its_author_wants_that(
    on_doubt: OnDoubt, told: list[str]
) -> None:
    """With another onDoubt its call is in doubt like any other."""
    made, started = with_deck(on_doubt), weighing("run-2")
    assert is_taken_up(made, started) == (on_doubt == "retry")
    state = state_of(called("weigh", '{"n": 1}'), started)
    found = doubts_of(made, state, run_id="run-1")
    assert [doubt.choice for doubt in found] == told
