"""Who wins when a deck and its snippets bring the same, and what comes first."""

import pytest

from gambit_actors.deck.model import Deck, DeckReference, Link
from tests.deck.reading import deck_text, found, load

TURN = "gambit://schemas/graders/contexts/turn.zod.ts"
SCHEMAS = {
    "actions": 'contextSchema = "/s.json"\nresponseSchema = "/s.json"',
    "scenarios": 'contextSchema = "/s.json"\nresponseSchema = "/s.json"',
    "graders": f'contextSchema = "{TURN}"\n'
    'responseSchema = "gambit://schemas/graders/grader_output.zod.ts"',
}
TEXT = {"/s.json": '{"type": "string"}'}


def files(key: str, top: str, *snippets: str, names: str) -> dict[str, str]:
    """A deck that embeds snippets, and child decks with these names."""
    child = deck_text(f"{SCHEMAS[key]}\nrespond = true")
    body = " ".join(f"![](s{n}.md)" for n in range(len(snippets)))
    return {
        **TEXT,
        **{f"/{name}/PROMPT.md": child for name in names},
        **{f"s{n}.md": deck_text(snippet) for n, snippet in enumerate(snippets)},
        "PROMPT.md": deck_text(top, body),
    }


def action(name: str, target: str) -> str:
    """An entry of a list of actions."""
    path = f'path = "/{target}/PROMPT.md"'
    return f'[[actions]]\nname = "{name}"\ndescription = "To {target}."\n{path}\n'


def test_a_later_snippet_overrules_an_earlier_one() -> None:
    """Of the same action in two snippets the one that is embedded last counts."""
    first, second = action("a", "x"), action("a", "y")
    loaded = load(files("actions", "", first, second, names="xy"))
    assert found(loaded) == []
    (kept,) = loaded.usable().actions
    assert (kept.target, kept.description) == (Link("/y/PROMPT.md"), "To y.")


def test_the_deck_overrules_every_snippet() -> None:
    """An action of the deck counts, however many snippets have one of its name."""
    first, second = action("a", "x"), action("a", "y")
    loaded = load(files("actions", action("a", "z"), first, second, names="xyz"))
    assert found(loaded) == []
    assert [a.target for a in loaded.usable().actions] == [Link("/z/PROMPT.md")]


def listed(deck: Deck, key: str) -> tuple[DeckReference, ...]:
    """The scenarios or the graders of a deck."""
    return deck.scenarios if key == "scenarios" else deck.graders


@pytest.mark.spec("DK-40")
@pytest.mark.parametrize("key", ["scenarios", "graders"])
def test_an_entry_of_the_deck_counts_before_that_of_a_snippet(key: str) -> None:
    """Where both list the same deck, what the deck says about it is kept."""
    entry = f'[[{key}]]\npath = "/x/PROMPT.md"\nlabel = "{{}}"\n'
    top, *snippets = map(entry.format, ("Mine", "First", "Second"))
    loaded = load(files(key, top, *snippets, names="x"))
    assert found(loaded) == []
    assert [r.label for r in listed(loaded.usable(), key)] == ["Mine"]
    without = load(files(key, "", *snippets, names="x"))
    assert [r.label for r in listed(without.usable(), key)] == ["First"]


@pytest.mark.spec("DK-40")
@pytest.mark.parametrize("key", ["scenarios", "graders"])
def test_entries_of_the_deck_come_first(key: str) -> None:
    """Then come those of its snippets, in the order in which they are embedded."""

    def entries(names: str) -> str:
        return "".join(f'[[{key}]]\npath = "/{n}/PROMPT.md"\n' for n in names)

    top, *snippets = map(entries, ("zy", "cb", "xa"))
    loaded = load(files(key, top, *snippets, names="abcxyz"))
    assert found(loaded) == []
    references = listed(loaded.usable(), key)
    assert [r.link.path for r in references] == [f"/{n}/PROMPT.md" for n in "zycbxa"]
    assert all(r.link.is_usable for r in references)
