"""DK-38 to DK-40: old names, which work and warn until they are refused."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from gambit_actors import version
from gambit_actors.deck import findings
from gambit_actors.deck.codes import DEPRECATIONS
from gambit_actors.deck.loader import load_deck
from gambit_actors.deck.model import Deck, Link
from gambit_actors.store.deck_files import DiskReader
from tests.deck.rule_decks import bad, folder, good, load_rule, places, schema_of

OLD_NAMES = [
    "find_book/PROMPT.md:2:1 {} GD081",  # inputSchema
    "find_book/PROMPT.md:3:1 {} GD081",  # outputSchema
    "find_book/PROMPT.md:8:12 {} GD083",  # a card
    "grader/PROMPT.md:2:17 {} GS043",  # .ts
    "grader/PROMPT.md:3:18 {} GS043",  # .ts
    "grader/PROMPT.md:8:12 {} GD084",  # gambit://respond
    "root.deck.md:1:1 {} GD086",  # the name of the file
    "root.deck.md:2:1 {} GD081",  # inputSchema
    "root.deck.md:2:15 {} GS043",  # .ts
    "root.deck.md:3:1 {} GD081",  # outputSchema
    "root.deck.md:3:16 {} GS043",  # .ts
    "root.deck.md:5:3 {} GD080",  # actionDecks
    "root.deck.md:10:3 {} GD080",  # testDecks
    "root.deck.md:11:8 {} GD085",  # a bundled deck without PROMPT.md
    "root.deck.md:13:3 {} GD080",  # graderDecks
    "root.deck.md:16:11 {} GD082",  # onInterval
    "root.deck.md:18:1 {} GD082",  # intervalMs
    "root.deck.md:24:5 {} GD084",  # gambit://init
    "root.deck.md:26:5 {} GD084",  # gambit://respond
    "root.deck.md:28:5 {} GD084",  # gambit://end
    "root.deck.md:30:5 {} GD083",  # a card
    "root.deck.md:32:5 {} GD083",  # a card with an old name
]


def module_from(file: Path, name: str) -> ModuleType:
    """Read a module again, beside the one that everybody else has."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.spec("DK-38")
def test_old_names_warn_or_are_refused() -> None:
    """The same deck works and warns under one policy, and is refused by the other."""
    expected = [
        "PROMPT.md:2:3 {} GD080",
        "PROMPT.md:10:8 {} GD084",
        "find_book/PROMPT.md:3:18 {} GS043",
        "find_book/PROMPT.md:8:12 {} GD083",
    ]
    warned = load_rule(38, "bad", legacy="warn")
    assert places(warned) == [place.format("warning") for place in expected]
    assert warned.usable().actions[0].target == good(38).actions[0].target
    refused = load_rule(38, "bad", legacy="refuse")
    assert places(refused) == [place.format("error") for place in expected]
    assert refused.deck is None


@pytest.mark.spec("DK-38")
def test_the_policy_is_that_of_the_release(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whether old names are refused follows from the version, and is said once."""
    unsaid = load_deck(DiskReader(folder(38, "bad")), ".")
    assert unsaid == load_rule(38, "bad", legacy=findings.LEGACY)
    source = Path(version.__file__).read_text(encoding="utf-8")
    policies = []
    for number in ("0.99.0", "1.0.0", "12.3.4"):
        release = tmp_path / f"version_{number.replace('.', '_')}.py"
        text = source.replace(f'"{version.VERSION}"', f'"{number}"')
        release.write_text(text, encoding="utf-8")
        is_stable = module_from(release, release.stem).IS_STABLE
        monkeypatch.setattr(version, "IS_STABLE", is_stable)
        again = module_from(Path(findings.__file__), "findings_again")
        policies.append(again.LEGACY)
    assert policies == ["warn", "refuse", "refuse"]


@pytest.mark.spec("DK-39")
@pytest.mark.parametrize("reference", [".", "root.deck.md"])
def test_every_old_name_is_noticed(reference: str) -> None:
    """Each spelling of old is a warning where it stands, or an error."""
    warned = load_rule(39, "bad", reference, legacy="warn")
    assert places(warned) == [place.format("warning") for place in OLD_NAMES]
    refused = load_rule(39, "bad", reference, legacy="refuse")
    assert places(refused) == [place.format("error") for place in OLD_NAMES]
    used = {place.rpartition(" ")[2] for place in OLD_NAMES}
    assert used | {"GD087"} == DEPRECATIONS


@pytest.mark.spec("DK-39")
def test_every_old_name_works() -> None:
    """A deck in old names comes to the same as one in those of today."""
    old, new = load_rule(39, "bad", legacy="warn").usable(), good(39)
    assert content(old) == content(new)
    assert content(inner(old)) == content(inner(new))
    assert new.handlers.on_busy is not None
    assert new.handlers.on_busy.repeat_seconds == 4
    assert len(new.actions) == len(new.scenarios) == len(new.graders) == 1


@pytest.mark.spec("DK-40")
def test_scenarios_and_graders_of_the_root_are_found() -> None:
    """Tests are the root's scenarios, and grades its graders, and no others."""
    deck = good(40)
    assert [s.label for s in deck.scenarios] == ["Hurried reader", "Chatty reader"]
    assert [s.link.path for s in deck.scenarios] == [
        "scenarios/hurried/PROMPT.md",
        "scenarios/chatty/PROMPT.md",
    ]
    assert [g.label for g in deck.graders] == ["Was helped"]
    assert all(s.link.is_usable for s in (*deck.scenarios, *deck.graders))


@pytest.mark.spec("DK-40")
def test_scenarios_and_graders_are_found_by_their_old_names() -> None:
    """The lists testDecks and graderDecks are the same, with a warning each."""
    assert bad(40) == ["PROMPT.md:2:3 warning GD080", "PROMPT.md:10:3 warning GD080"]
    old, new = load_rule(40, "bad").usable(), good(40)
    assert (old.scenarios, old.graders) == (new.scenarios, new.graders)
    assert all(s.link.is_usable for s in (*old.scenarios, *old.graders))


def inner(deck: Deck) -> Deck:
    """The deck of the first action."""
    target = deck.actions[0].target
    assert isinstance(target, Link)
    return target.deck


def content(deck: Deck) -> tuple[object, ...]:
    """All that a deck comes to, but for how its own file and its schemas are called."""
    return (
        *(deck.prompt, deck.respond, deck.allow_end, deck.handlers),
        *(deck.actions, deck.scenarios, deck.graders),
        *(all(r.link.is_usable for r in (*deck.scenarios, *deck.graders)),),
        *(schema_of(deck.context_schema), schema_of(deck.response_schema)),
    )
