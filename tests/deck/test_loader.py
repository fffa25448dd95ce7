"""A tree of decks: what is read, how decks find each other, and which can be used."""

from pathlib import Path

import pytest

from gambit_actors.deck.findings import LEGACY
from gambit_actors.deck.loader import load_deck
from gambit_actors.deck.model import Deck, DeckReference, Link
from gambit_actors.errors import DeckError, InvalidDeck
from gambit_actors.store.deck_files import DiskReader
from tests.deck.reading import Texts, deck_text, found, load, messages

SCHEMAS = 'contextSchema = "/any.json"\nresponseSchema = "/any.json"\nrespond = true\n'
ANY = {"/any.json": '{"type": "object"}'}


def calling(*paths: str, more: str = "") -> str:
    """A deck with schemas, and with actions in these places."""
    entries = [
        f'[[actions]]\nname = "a{n}"\ndescription = "A."\npath = "{path}"\n'
        for n, path in enumerate(paths)
    ]
    return deck_text(SCHEMAS + more + "".join(entries))


def child(deck: Deck, index: int = 0) -> Deck:
    """The deck of an action."""
    target = deck.actions[index].target
    assert isinstance(target, Link)
    return target.deck


@pytest.mark.parametrize("reference", ["d", "d/", "./d", "d/PROMPT.md", "x/../d"])
def test_a_deck_is_named_by_its_folder_or_its_file(reference: str) -> None:
    """All ways to name a deck come to the same path."""
    loaded = load({"d/PROMPT.md": "Hi."}, reference)
    assert loaded.diagnostics == ()
    assert loaded.usable().path == "d/PROMPT.md"


@pytest.mark.parametrize("reference", ["", ".", "./"])
def test_the_folder_where_one_is(reference: str) -> None:
    """A reader has a folder of its own, and a deck may be in it."""
    assert load("Hi.", reference).usable().path == "PROMPT.md"


def test_an_absolute_path_stays_one() -> None:
    """Everything in a deck with an absolute path has one, too."""
    loaded = load({"/d/PROMPT.md": "![](s.md)", "/d/s.md": "S"}, "/d")
    assert loaded.usable().sources == ("/d/PROMPT.md", "/d/s.md")


@pytest.mark.parametrize("reference", ["x", "x/PROMPT.md", "d"])
def test_where_there_is_no_deck(reference: str) -> None:
    """A path with nothing there, or a folder without a prompt, is one error."""
    loaded = load({"d/README.md": "Hi."}, reference)
    assert [code for code, *_ in found(loaded)] == ["GD001"]
    assert loaded.deck is None


def test_the_prompt_comes_before_the_old_entrypoint() -> None:
    """A folder with both files is the deck of today."""
    loaded = load({"PROMPT.md": "New.", "root.deck.md": "Old."}, ".")
    assert loaded.diagnostics == ()
    assert loaded.usable().prompt == "New."


def test_decks_in_a_circle_are_linked_to_each_other() -> None:
    """Two decks that call each other are read once each, and are each other's."""
    files = ANY | {
        "a/PROMPT.md": calling("../b/PROMPT.md"),
        "b/PROMPT.md": calling("../a/PROMPT.md"),
    }
    reader = Texts(files)
    loaded = load_deck(reader, "a")
    assert loaded.diagnostics == ()
    deck = loaded.usable()
    assert child(child(deck)) is deck
    assert sorted(reader.asked) == sorted(files)
    assert repr(deck)  # Which does not go round, either.
    assert deck == load(files, "a").deck


def test_a_deck_may_call_itself() -> None:
    """The smallest circle is one deck."""
    deck = load(ANY | {"PROMPT.md": calling("PROMPT.md")}).usable()
    assert child(deck) is deck


def test_a_deck_is_read_once_whoever_refers_to_it() -> None:
    """Two references to one deck, however spelled, lead to one object."""
    files = ANY | {
        "PROMPT.md": calling("./b/PROMPT.md", "b/../b/PROMPT.md", "c/PROMPT.md"),
        "b/PROMPT.md": calling(),
        "c/PROMPT.md": calling("../b/PROMPT.md"),
    }
    reader = Texts(files)
    deck = load_deck(reader, ".").usable()
    assert child(deck, 0) is child(deck, 1) is child(child(deck, 2))
    assert reader.asked.count("b/PROMPT.md") == 1


@pytest.mark.slow
def test_a_deep_chain_of_decks_is_one_loop() -> None:
    """Five hundred decks that call each other in a row do not recurse."""
    last = 500
    files = ANY | {
        f"{n}/PROMPT.md": calling(f"../{n + 1}/PROMPT.md") for n in range(last)
    }
    deck = load(files | {f"{last}/PROMPT.md": calling()}, "0").usable()
    for _ in range(last):
        deck = child(deck)
    assert deck.path == f"{last}/PROMPT.md"
    broken = load(files | {f"{last}/PROMPT.md": "+++"}, "0")
    assert broken.deck is None
    assert found(broken) == [("GD002", 1, 1)]


def test_a_broken_action_breaks_the_deck_that_needs_it() -> None:
    """An error in an action of an action is one of the root, and is told once."""
    files = ANY | {
        "PROMPT.md": calling("b/PROMPT.md", "c/PROMPT.md"),
        "b/PROMPT.md": calling("../c/PROMPT.md"),
        "c/PROMPT.md": calling(more='startMode = "never"\n'),
    }
    loaded = load(files)
    assert found(loaded) == [("GD012", 5, 13)]
    assert loaded.deck is None
    with pytest.raises(InvalidDeck, match=r"c/PROMPT\.md:5:13"):
        loaded.usable()


def test_a_broken_handler_breaks_the_deck_that_needs_it() -> None:
    """A handler is as much a part of a deck as an action."""
    text = deck_text('[handlers.onError]\npath = "e/PROMPT.md"')
    loaded = load({"PROMPT.md": text, "e/PROMPT.md": "+++"})
    assert found(loaded) == [("GD002", 1, 1)]
    assert loaded.deck is None


@pytest.mark.parametrize(("broken", "code"), [("+++", "GD002"), (deck_text(), "GD040")])
@pytest.mark.parametrize("kind", ["scenarios", "graders"])
def test_a_broken_test_does_not_break_the_deck(
    kind: str, broken: str, code: str
) -> None:
    """A deck can be used while a scenario or grader of it cannot, which says so."""
    text = deck_text(f'[[{kind}]]\npath = "s/PROMPT.md"')
    loaded = load({"PROMPT.md": text, "s/PROMPT.md": broken})
    assert code in [found for found, *_ in found(loaded)]
    deck = loaded.usable()
    (reference,) = (*deck.scenarios, *deck.graders)
    assert not reference.link.is_usable
    with pytest.raises(DeckError, match=r"the deck s/PROMPT\.md has errors"):
        _ = reference.link.deck


def test_a_deck_unfit_for_one_role_is_fit_for_another() -> None:
    """Only the reference in the role that it does not fit leads nowhere."""
    entries = (
        '[[scenarios]]\npath = "s/PROMPT.md"\n[handlers.onIdle]\npath = "s/PROMPT.md"'
    )
    loaded = load({"PROMPT.md": deck_text(entries), "s/PROMPT.md": "Hi."})
    assert [code for code, *_ in found(loaded)] == ["GD040", "GD040"]
    deck = loaded.usable()
    assert not deck.scenarios[0].link.is_usable
    assert deck.handlers.on_idle is not None
    assert deck.handlers.on_idle.link.deck.prompt == "Hi."


def test_a_scenario_of_a_broken_root_can_be_used() -> None:
    """What is broken is the deck with the error, not what it refers to."""
    scenario = deck_text(
        'contextSchema = "/any.json"\n'
        'responseSchema = "gambit://schemas/scenarios/plain_chat_output.zod.ts"'
    )
    text = deck_text('startMode = 3\n[[scenarios]]\npath = "s/PROMPT.md"')
    files = ANY | {"PROMPT.md": text, "s/PROMPT.md": scenario}
    assert load(files).deck is None
    assert load(files, "s").diagnostics == ()


def test_using_a_deck_with_errors_lists_them_all() -> None:
    """The exception has every error, of every deck, and no warnings."""
    files = ANY | {
        "PROMPT.md": calling("b/PROMPT.md", more='startMode = 1\nlable = "x"\n'),
        "b/PROMPT.md": calling(more="allowEnd = 1\n"),
    }
    loaded = load(files)
    with pytest.raises(InvalidDeck) as caught:
        loaded.usable()
    assert [(d.file, d.code) for d in caught.value.diagnostics] == [
        ("PROMPT.md", "GD011"),
        ("b/PROMPT.md", "GD011"),
    ]
    assert str(caught.value) == (
        "PROMPT.md:5:13: startMode: expected a string, got 1. [GD011] (and 1 more)"
    )
    assert len(loaded.diagnostics) == 3


def test_a_deck_without_errors_is_given() -> None:
    """Warnings do not keep a deck from being used."""
    loaded = load(deck_text('lable = "x"'))
    assert loaded.usable() is loaded.deck
    assert [d.severity for d in loaded.diagnostics] == ["warning"]


def test_every_mistake_is_found_at_once() -> None:
    """One error does not hide another, in one file or in several."""
    text = deck_text(
        """
        startMode = "x"
        contextSchema = "missing.json"
        [guardrails]
        maxDepth = 0
        [[actions]]
        name = "a b"
        description = "A."
        path = "missing/PROMPT.md"
        """,
        "![](missing.md)",
    )
    assert sorted(found(load(text))) == [
        ("GD012", 2, 13),
        ("GD012", 5, 12),
        ("GD021", 7, 8),
        ("GD032", 9, 8),
        ("GD050", 11, 5),
        ("GS040", 3, 17),
    ]


def test_a_list_names_a_deck_once() -> None:
    """A scenario that is listed twice is kept once, with a warning."""
    scenario = '[[scenarios]]\npath = "s/PROMPT.md"\n'
    files = ANY | {
        "PROMPT.md": deck_text(scenario + scenario),
        "s/PROMPT.md": deck_text(SCHEMAS),
    }
    loaded = load(files)
    assert found(loaded) == [("GD034", 4, 1)]
    assert loaded.usable().scenarios == (DeckReference(link=Link("s/PROMPT.md")),)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ok_1", None),
        ("_ok", None),
        ("a" * 64, None),
        ("a" * 65, "GD021"),
        ("1a", "GD021"),
        ("a-b", "GD021"),
        ("ä", "GD021"),
        ("gambit_respond", "GD021"),
        ("read_file", "GD024"),
    ],
)
def test_names_that_a_model_can_call(name: str, code: str | None) -> None:
    """Letters, digits and underscores, not too many, and none that are taken."""
    loaded = load(deck_text(f'[[tools]]\nname = "{name}"'))
    assert [code for code, *_ in found(loaded)] == ([code] if code else [])


def test_the_deck_overrules_its_snippets() -> None:
    """An action of the deck counts before one of the same name in a snippet."""
    action = '[[actions]]\nname = "a"\ndescription = "{}"\npath = "/a/PROMPT.md"'
    files = ANY | {
        "PROMPT.md": deck_text(action.format("Mine."), "![](s.md)"),
        "s.md": deck_text(action.format("Theirs.")),
        "/a/PROMPT.md": deck_text(SCHEMAS),
    }
    deck = load(files).usable()
    assert [action.description for action in deck.actions] == ["Mine."]


def test_sources_are_the_files_of_a_deck() -> None:
    """Its own file comes first, then snippets and schemas; built-ins are no files."""
    text = deck_text(
        'contextSchema = "c.json"\n'
        'responseSchema = "gambit://schemas/graders/respond.zod.ts"',
        "![](s.md) ![](gambit://snippets/end.md)",
    )
    files = {"PROMPT.md": text, "c.json": "{}", "s.md": "S"}
    assert load(files).usable().sources == ("PROMPT.md", "s.md", "c.json")


def test_an_unreadable_deck_is_told_once() -> None:
    """What follows from a file that cannot be read is not worth saying."""
    files: dict[str, str | OSError] = {**ANY, "PROMPT.md": calling("b/PROMPT.md")}
    files["b/PROMPT.md"] = PermissionError(13, "Permission denied")
    loaded = load(files)
    assert [code for code, *_ in found(loaded)] == ["GD005"]
    assert messages(loaded)[0].startswith("b/PROMPT.md:1:1 error GD005")
    assert loaded.deck is None


def test_the_policy_of_the_release_is_the_default() -> None:
    """Who does not say what to do about old names gets what this version does."""
    reader = Texts({"PROMPT.md": "![](gambit://end)"})
    assert load_deck(reader, ".") == load_deck(reader, ".", legacy=LEGACY)


def test_loading_from_a_disk_is_the_same(tmp_path: Path) -> None:
    """A folder on disk and a table of texts come to the same deck."""
    files = {"PROMPT.md": deck_text('contextSchema = "c.json"'), "c.json": "{}"}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert load_deck(DiskReader(tmp_path), ".") == load(files, ".")
