"""DK-19 to DK-22: what is in a deck's folder, and in its PROMPT.md.

What is sent to a model (DK-22) is not known here: that deck is tried as far as loading
goes, and the test does not claim to prove the rule.
"""

import pytest

from gambit_actors.deck.model import Link, ModelParams
from tests.deck.rule_decks import bad, folder, good, load_rule, places, words


@pytest.mark.spec("DK-19")
def test_the_prompt_is_all_that_is_told() -> None:
    """Neither INTENT.md nor policy/ is in the prompt, or among the files it is from."""
    deck = good(19)
    home = folder(19, "good")
    for other in ("INTENT.md", "policy/privacy.md"):
        last_line = (home / other).read_text(encoding="utf-8").splitlines()[-1]
        assert last_line.removeprefix("- ") not in deck.prompt
    assert deck.prompt.startswith("You are the desk of a lending library.")
    assert deck.sources == ("PROMPT.md",)


@pytest.mark.spec("DK-19")
@pytest.mark.parametrize("reference", [".", "PROMPT.md"])
def test_a_folder_without_a_prompt_is_no_deck(reference: str) -> None:
    """A folder with all but a PROMPT.md is an error that says what is missing."""
    loaded = load_rule(19, "bad", reference)
    assert places(loaded) == ["PROMPT.md:1:1 error GD001"]
    assert "A deck is a folder with a PROMPT.md." in words(loaded)
    assert loaded.deck is None


@pytest.mark.spec("DK-20")
def test_decks_are_fractal_and_folders_hold_anything() -> None:
    """An action has its own action, scenario and grader; other files do no harm."""
    target = good(20).actions[0].target
    assert isinstance(target, Link)
    inner = target.deck
    read_shelf = inner.actions[0].target
    assert isinstance(read_shelf, Link)
    assert read_shelf.deck.prompt.startswith("List the titles on the shelf.")
    assert inner.scenarios[0].link.deck.prompt == "You remember half of the title."
    assert inner.graders[0].link.deck.respond
    assert sorted(path.name for path in folder(20, "good").iterdir()) == [
        "PROMPT.md",
        "README.md",
        "actions",
        "reviews",
        "samples",
    ]


@pytest.mark.spec("DK-20")
def test_a_mistake_in_an_action_of_an_action_is_found() -> None:
    """A deck two levels down is read with the same care, and is needed."""
    assert bad(20) == [
        "actions/find_book/actions/read_shelf/PROMPT.md:6:13 error GD011"
    ]
    assert load_rule(20, "bad").deck is None


@pytest.mark.spec("DK-21")
def test_frontmatter_is_toml_between_plus_signs() -> None:
    """The first two +++ lines enclose TOML; any further one is part of the body."""
    deck = good(21)
    assert deck.label == "Library desk"
    assert deck.model_params == ModelParams(temperature=0.2)
    assert deck.prompt.startswith("You are the desk")
    assert "\n\n+++\n\n" in deck.prompt


@pytest.mark.spec("DK-21")
def test_other_frontmatter_is_refused_with_its_line() -> None:
    """Bad TOML, no end, YAML and a top-level execute are errors where they stand."""
    assert bad(21) == [
        "PROMPT.md:3:1 error GD006",
        "find_book/PROMPT.md:3:17 error GD003",
        "renew_loan/PROMPT.md:1:1 error GD002",
        "return_book/PROMPT.md:1:1 error GD004",
    ]
    assert load_rule(21, "bad").deck is None


def test_a_prompt_deck_has_a_body_and_parameters() -> None:
    """The body comes with its snippets in place, and the parameters as written."""
    deck = good(22)
    assert deck.prompt == (
        "You are the desk of a lending library.\n\n"
        "Books are lent for four weeks.\n\n"
        "Answer in one sentence."
    )
    assert deck.model_params == ModelParams(
        models=("openai/gpt-5-mini",), temperature=0.2, max_tokens=400
    )
    assert bad(22) == ["PROMPT.md:4:15 error GD012", "PROMPT.md:6:1 warning GD044"]
