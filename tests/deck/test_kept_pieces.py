"""What is done again after a change, and what is not."""

import pytest

from gambit_actors.deck import pieces
from gambit_actors.deck.documents import Document, document_from_text
from gambit_actors.deck.loader import DeckCache
from gambit_actors.deck.reader import DescribedType
from gambit_actors.schema.keywords import Schema
from tests.deck.reading import Texts, deck_text

CHILD = deck_text(
    'contextSchema = "../a.json"\nresponseSchema = "../b.json"\nrespond = true'
)
ROOT = deck_text(
    'contextSchema = "a.json"\n[[actions]]\nname = "one"\ndescription = "One."\n'
    'path = "one/PROMPT.md"',
    "Hello. ![](snippet.md) ![](gambit://snippets/end.md)",
)
FILES = {
    "PROMPT.md": ROOT,
    "one/PROMPT.md": CHILD,
    "snippet.md": "Be kind.",
    "a.json": '{"type": "object"}',
    "b.json": '{"type": "string"}',
}


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that have been taken apart, in order."""
    files: list[str] = []

    def counting(file: str, text: str) -> Document:
        files.append(file)
        return document_from_text(file, text)

    monkeypatch.setattr(pieces, "document_from_text", counting)
    return files


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ("a.json", []),
        ("b.json", []),
        ("PROMPT.md", ["PROMPT.md"]),
        ("one/PROMPT.md", ["one/PROMPT.md"]),
        ("snippet.md", ["snippet.md"]),
    ],
)
def test_only_a_document_that_changed_is_parsed_again(
    changed: str, again: list[str], parsed: list[str]
) -> None:
    """After a change every other document is taken as it was."""
    cache, reader = DeckCache(), Texts(FILES)
    first = cache.load(reader, ".")
    assert sorted(parsed) == sorted(
        ["PROMPT.md", "one/PROMPT.md", "snippet.md", "gambit://snippets/end.md"]
    )
    parsed.clear()
    reader.files[changed] = FILES[changed] + "\n \n"
    second = cache.load(reader, ".")
    assert second is not first
    assert parsed == again


def test_another_policy_parses_nothing_again(parsed: list[str]) -> None:
    """Documents are the same whatever is done about old names."""
    cache, reader = DeckCache(), Texts(FILES)
    cache.load(reader, ".", legacy="warn")
    parsed.clear()
    cache.load(reader, ".", legacy="refuse")
    assert parsed == []


class Installing(Texts):
    """A reader of types, once what they need is installed."""

    is_installed = False
    described = 0

    def describe_type(self, path: str, name: str) -> DescribedType:
        """Describe a type, or say what is missing."""
        self.described += 1
        if not self.is_installed:
            return super().describe_type(path, name)
        schema: Schema = {"type": "string"}
        return DescribedType(schema=schema)


def test_a_type_that_fails_is_asked_for_again() -> None:
    """Why a type cannot be had may be in no file, so a failure is not kept."""
    text = deck_text('contextSchema = "x.py:T"\nresponseSchema = "x.py:T"')
    cache, reader = DeckCache(), Installing({"PROMPT.md": text, "x.py": ""})
    broken = cache.load(reader, ".")
    assert [d.code for d in broken.diagnostics] == ["GS046", "GS046"]
    assert broken.deck is None
    assert reader.described == 1
    reader.is_installed = True
    mended = cache.load(reader, ".")
    assert mended.diagnostics == ()
    context = mended.usable().context_schema
    assert context is not None
    assert context.schema == {"type": "string"}
    assert cache.load(reader, ".") is mended


def test_a_type_that_works_is_not_asked_for_again() -> None:
    """As long as its module is the same, a type is described once."""
    text = deck_text('contextSchema = "x.py:T"')
    cache, reader = DeckCache(), Installing({"PROMPT.md": text, "x.py": ""})
    reader.is_installed = True
    cache.load(reader, ".")
    reader.files["PROMPT.md"] = text + "More."
    assert cache.load(reader, ".").deck is not None
    assert reader.described == 1
    reader.files["x.py"] = "# Changed."
    assert cache.load(reader, ".").deck is not None
    assert reader.described == 2
