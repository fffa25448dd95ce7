"""Every rule of the deck format has a good and a bad deck that is named after it."""

import pytest

from tests.conformance import load_sections
from tests.deck.rule_decks import RULES, load_rule

# DK-41 is about running TypeScript, which nothing does yet.
NUMBERS = range(1, 41)


def test_every_rule_has_its_decks_and_there_are_no_others() -> None:
    """The folders are those of the rules DK-1 to DK-40, with good and bad in each."""
    promises = next(s.promises for s in load_sections() if s.key == "DK")
    rules = {f"DK-{int(id_.removeprefix('DK-')):02}" for id_ in promises}
    assert {path.name for path in RULES.iterdir()} == rules - {"DK-41"}
    for rule in RULES.iterdir():
        assert {path.name for path in rule.iterdir()} == {"good", "bad"}


@pytest.mark.slow
@pytest.mark.parametrize("rule", NUMBERS)
def test_there_is_nothing_to_say_about_a_good_deck(rule: int) -> None:
    """The good deck of a rule loads without a finding, under both policies."""
    for legacy in ("warn", "refuse"):
        loaded = load_rule(rule, "good", legacy=legacy)
        assert loaded.diagnostics == ()
        assert loaded.deck is not None


@pytest.mark.slow
@pytest.mark.parametrize("rule", NUMBERS)
def test_there_is_something_to_say_about_a_bad_deck(rule: int) -> None:
    """The bad deck of a rule has findings, each in a place that can be pointed at."""
    loaded = load_rule(rule, "bad")
    assert loaded.diagnostics
    for found in loaded.diagnostics:
        assert found.severity in ("error", "warning")
        assert found.line >= 1
        assert found.column >= 1
