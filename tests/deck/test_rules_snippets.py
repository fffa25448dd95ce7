"""DK-12 to DK-14: what is put into a prompt, and what is left as it is."""

import pytest

from gambit_actors.deck.builtin import SNIPPETS
from tests.deck.reading import found, load
from tests.deck.rule_decks import bad, folder, good, load_rule, words


def body_of(name: str) -> str:
    """The text of a built-in snippet, without its frontmatter."""
    return SNIPPETS[name].split("+++\n")[2].strip()


@pytest.mark.spec("DK-12")
def test_builtin_snippets_are_embedded_where_they_stand() -> None:
    """The five built-in texts take the places of their images, and set their flags."""
    deck = good(12)
    names = ("context", "init", "scenario-participant", "respond", "end")
    bodies = [body_of(f"{name}.md") for name in names]
    expected = ["You are a reader of a lending library.", *bodies, "That is all."]
    assert deck.prompt == "\n\n".join(expected)
    assert deck.respond
    assert deck.allow_end


@pytest.mark.spec("DK-12")
def test_an_old_name_and_a_wrong_name_are_noticed() -> None:
    """An old name is deprecated; what does not exist is an error with a hint."""
    assert bad(12) == ["PROMPT.md:3:17 warning GD087", "PROMPT.md:5:20 error GD052"]
    assert "Did you mean gambit://snippets/respond.md?" in words(load_rule(12, "bad"))


@pytest.mark.spec("DK-12")
def test_the_old_name_embeds_the_init_snippet() -> None:
    """The snippet generate-test-input works, and is another name of init."""
    loaded = load("![](gambit://snippets/generate-test-input.md)", legacy="warn")
    assert found(loaded) == [("GD087", 1, 5)]
    assert loaded.usable().prompt == body_of("init.md")


@pytest.mark.spec("DK-13")
def test_local_snippets_are_found_from_the_file_that_embeds_them() -> None:
    """Bodies are put in place, nested ones too, and one snippet may come twice."""
    assert good(13).prompt == (
        "You are the desk of a lending library.\n\n"
        'Be kind. Say "reader", never "customer".\n\n'
        "Know the rules:\n"
        "Books are lent for four weeks.\n\n"
        'Say "reader", never "customer".'
    )
    assert good(13).sources == (
        "PROMPT.md",
        "snippets/manners.md",
        "snippets/shared.md",
        "snippets/rules/loans.md",
    )


@pytest.mark.spec("DK-13")
def test_a_circle_of_snippets_is_an_error_that_shows_it() -> None:
    """The chain is printed where it closes; a missing snippet is an error, too."""
    assert bad(13) == [
        "PROMPT.md:9:12 error GD050",
        "snippets/rules/loans.md:3:14 error GD051",
    ]
    loaded = load_rule(13, "bad")
    chain = "snippets/manners.md -> snippets/rules/loans.md -> snippets/manners.md"
    assert chain in words(loaded)
    assert loaded.deck is None


@pytest.mark.spec("DK-14")
def test_ordinary_images_and_code_are_left_alone() -> None:
    """URLs, a .png and embeds in code are in the prompt as they were written."""
    text = (folder(14, "good") / "PROMPT.md").read_text(encoding="utf-8")
    deck = good(14)
    assert deck.prompt == text.split("+++\n")[2].strip()
    assert "gambit://snippets/respond.md" in deck.prompt
    assert not deck.respond


@pytest.mark.spec("DK-14")
def test_what_is_outside_a_fence_is_embedded() -> None:
    """The same line is left alone in a fence and looked up outside of it."""
    assert bad(14) == ["PROMPT.md:13:9 error GD050", "PROMPT.md:14:8 error GD053"]
