"""The pages about decks are complete, and the one of diagnostics is true."""

import re
from pathlib import Path

import pytest

from gambit_actors.deck.builtin import DECK_SCHEME, DECKS, SNIPPET_SCHEME, SNIPPETS
from gambit_actors.deck.findings import LEGACY
from gambit_actors.deck.keys import TOP_LEVEL_KEYS
from gambit_actors.deck.legacy import FRAGMENTS, LISTS, SCHEMAS
from gambit_actors.deck.references import BUILTIN_TOOLS
from gambit_actors.schema.builtin import BUILTIN_URIS
from gambit_actors.schema.diagnostics import Diagnostic
from tests.deck.diagnostics_page import (
    CODES,
    FIXTURES,
    PAGE,
    Example,
    entry_of,
    render,
    render_entry,
)

# Loading all examples imports Python modules, each in a process of its own.
pytestmark = pytest.mark.slow


def is_inside(found: Diagnostic, folder: Path) -> bool:
    """Whether the place of a finding is one that its file has."""
    file = folder / found.file
    if not file.exists():  # Then it is missing, which is said of it as a whole.
        return (found.line, found.column) == (1, 1)
    lines = file.read_bytes().decode("utf-8", "replace").split("\n")
    if not 1 <= found.line <= len(lines):
        return False
    # One past the end is where something is missing.
    return 1 <= found.column <= len(lines[found.line - 1]) + 1


def test_page_is_up_to_date() -> None:
    """What is on disk is what the examples give today."""
    page = render(map(entry_of, CODES))

    assert page == PAGE.read_text("utf-8"), (
        "run: .venv/bin/python -m tests.deck.diagnostics_page"
    )


def test_page_has_every_code_once() -> None:
    """Each code has its heading, and no heading is for anything else."""
    headings = re.findall(r"^### (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)

    assert sorted(headings) == sorted(CODES)


def test_every_code_has_examples() -> None:
    """There is a bad and a good folder for each code, and none for another."""
    folders = {path.name: path for path in FIXTURES.iterdir()}

    assert sorted(folders) == sorted(CODES)
    for folder in folders.values():
        examples = {path.name for path in folder.iterdir() if path.is_dir()}
        assert {"bad", "good"} <= examples, folder
        assert all(name == "good" or name.startswith("bad") for name in examples)


@pytest.mark.parametrize("code", CODES)
def test_bad_example_gives_its_code(code: str) -> None:
    """A bad example gives its code, at a place that is there, and nothing else."""
    for example in entry_of(code).bad:
        assert {found.code for found in example.found} == {code}, _said(example)
        assert all(is_inside(found, example.folder) for found in example.found)


@pytest.mark.parametrize("code", CODES)
def test_good_example_gives_nothing(code: str) -> None:
    """A good example has nothing wrong with it."""
    example = entry_of(code).good

    assert example.found == (), _said(example)


@pytest.mark.parametrize("code", CODES)
def test_what_is_found_is_shown(code: str) -> None:
    """The page says how bad each finding is, and shows a file to look at."""
    entry = entry_of(code)
    shown = render_entry(entry)
    heading = shown.split("\n\n")[1]

    assert CODES[code] in heading
    for found in entry.found:
        assert found.severity in heading.lower() or LEGACY == "refuse"
        assert found.message in shown
        assert found.hint is None or found.hint in shown
    assert re.search(r"^(Bad|Both), ", shown, re.MULTILINE)
    assert re.search(r"^Good, ", shown, re.MULTILINE)


def test_deck_page_names_everything() -> None:
    """The reference of decks has every key, every built-in and every old name."""
    page = PAGE.with_name("deck.md").read_text("utf-8")
    words = set(re.findall(r"[\w:/.-]+", page))
    names = {
        *TOP_LEVEL_KEYS,
        *BUILTIN_TOOLS,
        *BUILTIN_URIS,
        *(SNIPPET_SCHEME + name for name in SNIPPETS),
        *(DECK_SCHEME + name for name in DECKS),
        *(
            name
            for table in (LISTS, SCHEMAS, FRAGMENTS)
            for pair in table.items()
            for name in pair
        ),
    }

    assert names - words == set()


def _said(example: Example) -> str:
    return "\n".join(map(str, example.found))
