"""DK-23 to DK-30: actions, what they take and what they give.

What a model is shown of one (DK-25) and what happens when it is called (DK-26 to DK-30)
is not known here: those decks are tried as far as loading goes, and the tests do not
claim to prove the rules.
"""

import pytest

from gambit_actors.deck.model import Action, Link, Module
from gambit_actors.schema.matching import differences
from tests.deck.rule_decks import bad, folder, good, load_rule, schema_of, words


def action_of(rule: int, name: str) -> Action:
    """An action of a good deck."""
    action = good(rule).action(name)
    assert action is not None
    return action


@pytest.mark.slow
@pytest.mark.spec("DK-23")
def test_an_action_is_a_deck_or_a_module() -> None:
    """Both have a name and a description; one has a path and the other an execute."""
    find, fee = good(23).actions
    assert (find.name, find.target) == ("find_book", Link("find_book/PROMPT.md"))
    assert isinstance(fee.target, Module)
    assert fee.target.path == "late_fee_dk23.py"
    assert fee.description == "Work out what a late book costs."


@pytest.mark.spec("DK-23")
def test_an_action_needs_a_name_a_description_and_one_target() -> None:
    """Whatever is missing, or there twice, is an error at the action."""
    assert bad(23) == [
        "PROMPT.md:2:1 error GD013",
        "PROMPT.md:6:1 error GD013",
        "PROMPT.md:14:11 error GD020",
        "PROMPT.md:16:1 error GD020",
    ]
    said = words(load_rule(23, "bad"))
    assert " needs a name." in said
    assert " needs a description." in said


@pytest.mark.slow
@pytest.mark.spec("DK-24")
def test_what_an_action_takes_and_gives_is_always_known() -> None:
    """It comes from the deck, from beside the action, from the module, or from both."""
    find = action_of(24, "find_book")
    assert "title" in schema_of(find.context_schema)["properties"]
    assert "shelf" in schema_of(find.response_schema)["properties"]
    inline = action_of(24, "fee_inline")
    for name in ("fee_module", "fee_both"):
        action = action_of(24, name)
        expected = schema_of(inline.context_schema)
        assert differences(expected, schema_of(action.context_schema)) == []
        assert schema_of(action.response_schema)["type"] == "number"
    assert inline.context_schema.source == "loan.zod.ts"
    assert inline.response_schema.source == "fee.json"
    # Said in both places, the two match; the one beside the action has the limits.
    check = action_of(24, "fee_both").response_schema.validator.check
    assert not check(-1).is_valid


@pytest.mark.slow
@pytest.mark.spec("DK-24")
def test_two_schemas_of_an_action_match_deeply() -> None:
    """A field of another type or requiredness is named; so is what nobody declares."""
    assert bad(24) == [
        "PROMPT.md:2:1 error GD025",
        "PROMPT.md:11:17 error GD026",
        "PROMPT.md:11:17 error GD026",
        "PROMPT.md:18:18 error GD026",
    ]
    said = words(load_rule(24, "bad"))
    assert "What this action gives is not declared; add a responseSchema." in said
    assert "book.price: expected a string, is a number." in said
    assert "days: expected to be required, is optional." in said
    assert "the one of find_book/PROMPT.md: expected a number, is an object." in said


@pytest.mark.slow
def test_an_action_has_the_schemas_of_its_target() -> None:
    """Its signature is that of the child deck, or what is resolved for its module."""
    find, fee = action_of(25, "find_book"), action_of(25, "late_fee")
    assert isinstance(find.target, Link)
    assert find.context_schema is find.target.deck.context_schema
    assert find.response_schema is find.target.deck.response_schema
    assert schema_of(find.context_schema)["properties"] == {"title": {"type": "string"}}
    assert schema_of(fee.context_schema)["required"] == ["days"]
    assert schema_of(fee.response_schema) == {"type": "number"}


def test_a_signature_cannot_be_told_apart_from_its_target() -> None:
    """A schema beside a path that says something else is an error, field by field."""
    assert bad(25) == ["PROMPT.md:6:17 error GD026", "PROMPT.md:6:17 error GD026"]
    said = words(load_rule(25, "bad"))
    assert "the field 'name' is missing" in said
    assert "the field 'title' is not expected" in said


def test_a_result_can_be_checked() -> None:
    """An action has a response schema that refuses what does not conform."""
    check = action_of(26, "find_book").response_schema.validator.check
    assert check({"shelf": "A3"}).is_valid
    assert not check({"shelf": 3}).is_valid
    assert not check({}).is_valid
    assert bad(26) == ["find_book/PROMPT.md:2:1 error GD040"]


def test_a_deck_that_gives_an_envelope_says_so() -> None:
    """An action that answers by gambit_respond has the flag; another is warned of."""
    target = action_of(27, "find_book").target
    assert isinstance(target, Link)
    assert target.deck.respond
    assert bad(27) == ["find_book/PROMPT.md:2:1 warning GD043"]


def test_a_tool_brings_no_code() -> None:
    """A tool is what is declared of it; how it is run is not for the deck to say."""
    (tool,) = good(28).tools
    assert (tool.name, tool.label, tool.id) == ("renew_loan", None, None)
    assert schema_of(tool.input_schema)["required"] == ["card"]
    assert bad(28) == ["PROMPT.md:5:1 warning GD010"]
    assert bad(29) == ["PROMPT.md:6:11 warning GD010"]
    assert [tool.name for tool in good(29).tools] == ["renew_loan"]


@pytest.mark.slow
def test_a_module_defines_a_deck() -> None:
    """A module with a plain or an async run is found, and described but not run."""
    fee, ask = good(30).actions
    assert isinstance(fee.target, Module)
    assert isinstance(ask.target, Module)
    assert (fee.target.path, ask.target.path) == ("late_fee_sync.py", "ask_async.py")
    assert fee.context_schema.validator.check({"days": 3}).is_valid
    assert not fee.context_schema.validator.check({"days": "many"}).is_valid
    assert ask.response_schema.source == "answer.json"
    assert not (folder(30, "good") / "__pycache__").exists()


@pytest.mark.slow
def test_a_module_that_cannot_be_used_is_an_error() -> None:
    """No deck in it, a failing import, another language, no file: each says why."""
    assert bad(30) == [
        "PROMPT.md:5:11 error GD027",
        "PROMPT.md:10:11 error GD027",
        "PROMPT.md:15:11 error GD027",
        "PROMPT.md:20:11 error GD032",
    ]
    said = words(load_rule(30, "bad"))
    assert "defines no deck; write deck = define_deck(...) in it" in said
    assert (
        "line 4 of ask_broken.py raises RuntimeError: the catalogue is closed" in said
    )
