"""What the tests of the rules share: the decks in ``fixtures/rules``, good and bad."""

from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from gambit_actors.deck.findings import LegacyPolicy
from gambit_actors.deck.loader import Loaded, load_deck
from gambit_actors.deck.model import Deck
from gambit_actors.schema.keywords import Schema
from gambit_actors.schema.schemas import LoadedSchema
from gambit_actors.store.deck_files import DiskReader

RULES = Path(__file__).parent.parent / "fixtures" / "rules"

Kind: TypeAlias = Literal["good", "bad"]


def folder(rule: int, kind: Kind) -> Path:
    """Where a deck of the rule with a number is."""
    return RULES / f"DK-{rule:02}" / kind


# Decks are frozen, so tests can share them; looking at Python modules takes time.
@cache
def load_rule(
    rule: int, kind: Kind, reference: str = ".", *, legacy: LegacyPolicy = "warn"
) -> Loaded:
    """Load a deck of a rule from the disk; old names warn, in every release."""
    return load_deck(DiskReader(folder(rule, kind)), reference, legacy=legacy)


def good(rule: int) -> Deck:
    """The good deck of a rule, about which there is nothing to say."""
    loaded = load_rule(rule, "good")
    assert places(loaded) == []
    return loaded.usable()


def bad(rule: int) -> list[str]:
    """What there is to say about the bad deck of a rule, and where."""
    return places(load_rule(rule, "bad"))


def places(loaded: Loaded) -> list[str]:
    """Every finding as ``file:line:column severity code``, in the order of places."""
    ordered = sorted(
        loaded.diagnostics, key=lambda d: (d.file, d.line, d.column, d.code)
    )
    return [f"{d.file}:{d.line}:{d.column} {d.severity} {d.code}" for d in ordered]


def words(loaded: Loaded) -> str:
    """All messages and hints, each on a line of its own."""
    lines = [line for d in loaded.diagnostics for line in (d.message, d.hint) if line]
    return "\n".join(lines)


def schema_of(loaded: LoadedSchema | None) -> Schema:
    """The schema of something that has one."""
    assert loaded is not None
    assert loaded.schema is not None
    return loaded.schema
