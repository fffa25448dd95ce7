"""What is shown of a run makes plain which call failed, and who says what to it."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from gambit_actors.cli.main import main

DECK = """+++
[modelParams]
model = "far/away"

[handlers.onError]
path = "mender/PROMPT.md"

[[tools]]
name = "book"
description = "Book a slot."
inputSchema = "book.json"

[[actions]]
name = "ask"
description = "Ask somebody."
path = "clerk/PROMPT.md"
+++

Be kind.
"""
SCHEMAS = 'contextSchema = "any.json"\nresponseSchema = "any.json"\n'
MENDER = CLERK = f"+++\nrespond = true\n{SCHEMAS}+++\n\nLook.\n"
BOOK = '{"type": "object", "properties": {"hours": {"type": "integer"}}}'
RESPOND = """
[[replies]]
deck = "desk/{deck}/PROMPT.md"
calls = [{{ name = "gambit_respond", arguments = {arguments} }}]
"""


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A deck that has an error handler and an action; its folder is in the current."""
    monkeypatch.chdir(tmp_path)
    desk = tmp_path / "desk"
    for name, text in (("mender", MENDER), ("clerk", CLERK)):
        (desk / name).mkdir(parents=True)
        (desk / name / "PROMPT.md").write_text(text)
        (desk / name / "any.json").write_text("{}")
    (desk / "PROMPT.md").write_text(DECK)
    (desk / "book.json").write_text(BOOK)
    return desk


def notes(call: str, *more: str) -> list[str]:
    """What is told of a run in which the model makes this call, without the summary."""
    first = f'[[replies]]\ndeck = "desk/PROMPT.md"\ncalls = [{{ {call} }}]\n'
    last = '[[replies]]\ntext = "Done."\n'
    Path("s.toml").write_text(first + "".join(more) + last)
    command = ["run", "desk", "-m", "Hi.", "--script", "s.toml"]
    result = CliRunner(env={"NO_COLOR": "1"}).invoke(main, command)
    assert (result.exit_code, result.stdout) == (0, "Done.\n"), result.stderr
    return result.stderr.splitlines()[:-1]


def test_a_call_that_is_refused_is_shown_like_any_other() -> None:
    """Or nobody would see what was wrong about it."""
    told = notes('name = "book", arguments = { hours = "two" }')
    assert told[0] == 'calls   book {"hours":"two"}'
    assert told[1].startswith("        book: ")
    assert 'expected a whole number, got "two"' in told[1]


def test_an_error_handler_speaks_after_what_it_is_about() -> None:
    """It is named as what it is, and what went wrong is told once."""
    mended = RESPOND.format(
        deck="mender", arguments='{ status = 503, code = "no_slot", payload = 1 }'
    )
    assert notes('name = "book", arguments = { hours = 2 }', mended) == [
        'calls   book {"hours":2}',
        "        book: nobody is there to carry out the external tool book",
        "          its error handler, desk/mender, answers: no_slot",
    ]


def test_a_deck_that_answers_with_a_problem_is_named() -> None:
    """It has not called anything that failed; its answer is what is wrong."""
    asked = RESPOND.format(
        deck="clerk", arguments='{ status = 404, code = "nobody", payload = 1 }'
    )
    told = notes('name = "ask", arguments = { input = 1 }', asked)
    assert told[:2] == [
        'calls   ask {"input":1}',
        "          desk/clerk answers: nobody",
    ]


def test_an_answer_that_is_refused_is_a_call_that_failed(desk: Path) -> None:
    """The deck did not say so itself."""
    (desk / "clerk" / "any.json").write_text('{"type": "integer"}')
    wrong = RESPOND.format(deck="clerk", arguments='{ payload = "x" }')
    right = RESPOND.format(deck="clerk", arguments="{ payload = 1 }")
    told = notes('name = "ask", arguments = { input = 1 }', wrong, right)
    assert told[1].startswith("          gambit_respond: ")
