"""DK-7 to DK-11: what a model can call.

How calls are carried out (DK-8, DK-9, DK-10) is not known here: those decks are tried
as far as loading goes, and the tests do not claim to prove the rules.
"""

import pytest

from gambit_actors.deck.findings import LegacyPolicy
from tests.deck.rule_decks import bad, good, load_rule, places, words


@pytest.mark.spec("DK-7")
def test_actions_and_tools_stand_side_by_side() -> None:
    """An action and a tool of different names are both there to be called."""
    deck = good(7)
    assert [action.name for action in deck.actions] == ["find_book"]
    assert [tool.name for tool in deck.tools] == ["renew_loan"]


@pytest.mark.spec("DK-7")
def test_a_shadowed_tool_is_gone() -> None:
    """A tool with the name of an action is warned of, and is no tool of the deck."""
    assert bad(7) == ["PROMPT.md:12:8 warning GD023"]
    deck = load_rule(7, "bad").usable()
    assert [tool.name for tool in deck.tools] == ["renew_loan"]
    assert deck.tool("find_book") is None
    action = deck.action("find_book")
    assert action is not None
    assert action.description == "Find a book by its title."


def test_on_tool_is_not_a_key() -> None:
    """A deck declares tools; onTool in it is an error that says where it belongs."""
    assert [tool.name for tool in good(8).tools] == ["renew_loan"]
    assert bad(8) == ["PROMPT.md:2:1 error GD008"]
    assert "passed to the runtime" in words(load_rule(8, "bad"))


def test_the_schema_of_a_tool_checks_arguments() -> None:
    """A tool's inputSchema is loaded and refuses what it should; it may be left out."""
    deck = good(9)
    renew, hours = deck.tools
    assert renew.input_schema is not None
    check = renew.input_schema.validator.check
    assert check({"card": "L1234", "weeks": 2}).is_valid
    assert not check({"card": "L1234", "weeks": 0}).is_valid
    assert hours.input_schema is None


def test_names_of_tools_are_unique() -> None:
    """A name that is given twice is an error, and so is a schema that is not there."""
    assert bad(9) == ["PROMPT.md:5:15 error GS040", "PROMPT.md:11:8 error GD022"]


def test_without_tools_there_are_only_actions() -> None:
    """A deck without [[tools]] has none; a misspelt list of them is an error."""
    assert good(10).tools == ()
    assert [action.name for action in good(10).actions] == ["find_book"]
    assert bad(10) == ["PROMPT.md:2:3 error GD010"]
    assert load_rule(10, "bad").deck is None
    assert "Did you mean tools?" in words(load_rule(10, "bad"))


@pytest.mark.spec("DK-11")
@pytest.mark.parametrize("legacy", ["warn", "refuse"])
def test_mcp_servers_are_refused(legacy: LegacyPolicy) -> None:
    """Declaring mcpServers is an error under either policy, and called reserved."""
    assert good(11).tools
    loaded = load_rule(11, "bad", legacy=legacy)
    assert places(loaded) == ["PROMPT.md:4:3 error GD007"]
    assert "reserved" in words(loaded)
    assert loaded.deck is None
