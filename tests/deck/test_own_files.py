"""What a deck is made from, and the warning about a deck that may write it."""

import pytest

from gambit_actors.deck.loader import load_deck
from gambit_actors.deck.own_files import is_deck_file, tree_sources
from tests.deck.reading import Texts, deck_text, found, load

CHILD = """
    contextSchema = "any.json"
    responseSchema = "any.json"
    [permissions]
    write = true
"""
ROOT = """
    [[actions]]
    name = "a"
    description = "Do."
    path = "a/PROMPT.md"
"""


@pytest.mark.parametrize(
    ("write", "is_told"),
    [
        ('["."]', True),
        ('[".."]', True),
        ('["./PROMPT.md"]', True),
        ('["./snippet.md"]', True),
        ('["./data"]', False),
        ("true", True),
        ("false", False),
    ],
)
def test_a_deck_that_may_write_itself_is_told(write: str, *, is_told: bool) -> None:
    """Its PROMPT.md, and whatever else it is made from, is not for it to write."""
    text = deck_text(f"[permissions]\nwrite = {write}", "![s](snippet.md)")
    loaded = load({"PROMPT.md": text, "snippet.md": "Be kind."})
    assert found(loaded) == ([("GD063", 3, 9)] if is_told else [])


def test_the_place_of_a_link_is_a_files_own() -> None:
    """Who may change where a link leads may change what the deck is."""
    text = deck_text('[permissions]\nwrite = ["./data"]', "![s](data/s.md)")
    files = {"PROMPT.md": text, "data/s.md": "Be kind."}
    reader = Texts(files, links={"/home/data/s.md": "/far/s.md"})
    assert found(load_deck(reader, "PROMPT.md")) == [("GD063", 3, 9)]


def test_a_child_that_asks_for_everything_is_not_told() -> None:
    """It has what its parent leaves it, which is not known here."""
    respond = "![r](gambit://snippets/respond.md)"
    files = {
        "PROMPT.md": deck_text(ROOT),
        "a/PROMPT.md": deck_text(CHILD, respond),
        "a/any.json": "{}",
    }
    assert found(load(files)) == []


def test_the_files_of_a_tree() -> None:
    """Those of the deck and of all it leads to, each once, though it be a circle."""
    again = ROOT.replace("a/PROMPT.md", "../PROMPT.md")
    schemas = 'contextSchema = "any.json"\nresponseSchema = "any.json"\n'
    files = {
        "PROMPT.md": f"+++\n{schemas}{ROOT}\n+++\nBe kind.\n",
        "any.json": "{}",
        "a/PROMPT.md": f"+++\n{schemas}{again}\n+++\nBe kind.\n",
        "a/any.json": "{}",
    }
    deck = load(files).usable()
    assert sorted(tree_sources(deck)) == sorted(files)


@pytest.mark.parametrize(
    ("path", "is_deck"),
    [
        ("/a/PROMPT.md", True),
        ("/a/prompt.MD", True),
        ("/a/root.deck.md", True),
        ("/a/PROMPT.md/b", False),
        ("/a/xPROMPT.md", False),
    ],
)
def test_decks_have_names(path: str, *, is_deck: bool) -> None:
    """On some systems capitals make no difference, so here they make none."""
    assert is_deck_file(path) is is_deck
