"""Writes the page of all diagnostics, from folders that give them.

``tests/fixtures/diagnostics`` has a folder for each code: ``bad`` is a deck that gives
it, ``good`` the same deck without the mistake. A code that comes in several forms has
more folders that start with ``bad``. Where that does not say it all, a ``case.toml``
beside them does; its keys are the fields of `Case`.

What the page says about an example is what loading it says, so the page cannot be
wrong. ``python -m tests.deck.diagnostics_page`` writes it.
"""

import os
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec

from gambit_actors.cli.check import check_paths
from gambit_actors.deck.codes import CODES as DECK_CODES
from gambit_actors.deck.codes import DEPRECATIONS
from gambit_actors.deck.loader import load_deck, load_decks
from gambit_actors.schema.diagnostics import CODES as SCHEMA_CODES
from gambit_actors.schema.diagnostics import Diagnostic
from gambit_actors.store.deck_files import DiskReader

ROOT = Path(__file__).resolve().parent.parent.parent
FIXTURES = ROOT / "tests" / "fixtures" / "diagnostics"
PAGE = ROOT / "docs" / "reference" / "diagnostics.md"
CODES = DECK_CODES | SCHEMA_CODES

PREAMBLE = """\
# Diagnostics

Everything that can be said about a deck and its schemas, each with an example that
gives it and one that does not. `gambit check` prints these with the line they are
about, and `load_deck` gives them as values. This page is made by loading the examples,
so what it says is what you get.

A **code** keeps its meaning for good, and one that falls out of use is not given again;
so a code, and not the words, is what a program should look for. The **severity** is one
of three. An *error* means that the deck it is in cannot be used, nor a deck that needs
it. A *warning* means that it can, and may not do what its author thinks. A *note* only
recommends something. A **hint** is a further idea, where there is one.

What has an old name is deprecated: it works, with a warning, in every release below
1.0.0, and is an error from there on. `gambit check --legacy refuse` is that strict
today.

Only the files that matter are shown, and one that is the same in both examples once.
"""

SECTIONS = (
    ("Decks: files", "GD00[1-5]|GD09."),
    ("Decks: keys", "GD00[6-9]|GD01."),
    ("Decks: actions and tools", "GD02."),
    ("Decks: references", "GD03."),
    ("Decks: roles", "GD04."),
    ("Decks: snippets", "GD05."),
    ("Decks: permissions", "GD06."),
    ("Decks: old names", "GD08."),
    ("Schemas: references", "GS04[0-3]"),
    ("Schemas: Zod", "GS0[0-2].|GS049"),
    ("Schemas: JSON", "GS04[458]"),
    ("Schemas: Python", "GS04[67]"),
)
"""The parts of the page: a title, and the codes in it as a pattern."""

# Not "python": such blocks are run by a test, and these are only to be read.
_LANGUAGES = {".json": "json", ".md": "markdown", ".py": "py", ".ts": "typescript"}
_FENCE = "```"


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the examples of a code are loaded and shown.

    Attributes:
        reference: what is loaded, from the folder of an example.
        show: the files to show; if empty, those that the findings are in.
        about: a sentence for the reader.
        check: whether to ask ``gambit check``, which says more than a loader does.
    """

    reference: str = "PROMPT.md"
    show: tuple[str, ...] = ()
    about: str = ""
    check: bool = False


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A folder, and what is found in it."""

    folder: Path
    found: tuple[Diagnostic, ...]

    def text(self, file: str) -> str | None:
        """The text of a file as it can be shown; None if there is no such file."""
        path = self.folder / file
        return path.read_bytes().decode("utf-8", "replace") if path.is_file() else None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A code, and the examples of it."""

    code: str
    case: Case
    bad: tuple[Example, ...]
    good: Example

    @property
    def found(self) -> list[Diagnostic]:
        """What is found with this code."""
        return [d for each in self.bad for d in each.found if d.code == self.code]


@cache
def entry_of(code: str) -> Entry:
    """Load the examples of a code."""
    folder = FIXTURES / code
    options = folder / "case.toml"
    said = tomllib.loads(options.read_text("utf-8")) if options.exists() else {}
    case = msgspec.convert(said, Case)
    bad = sorted(path for path in folder.glob("bad*") if path.is_dir())
    return Entry(
        code=code,
        case=case,
        bad=tuple(_example(path, case) for path in bad),
        good=_example(folder / "good", case),
    )


def render(entries: Iterable[Entry]) -> str:
    """Write the page."""
    by_code = {entry.code: entry for entry in entries}
    parts = [PREAMBLE]
    for title, pattern in SECTIONS:
        parts.append(f"## {title}\n")
        parts += [
            render_entry(entry)
            for code, entry in by_code.items()
            if re.fullmatch(pattern, code)
        ]
    return "\n".join(parts)


def render_entry(entry: Entry) -> str:
    """Write what there is to know about one code."""
    lines = [f"### {entry.code}", "", f"{CODES[entry.code]} {severity_of(entry)}", ""]
    about = [entry.case.about.strip()] if entry.case.about else []
    if any(found.edits for found in entry.found):
        about.append("`gambit check --fix` can change it for you.")
    if about:
        lines += [" ".join(about), ""]
    shown = entry.case.show or tuple(dict.fromkeys(d.file for d in entry.found))
    for example in entry.bad:
        same = {file for file in shown if entry.good.text(file) == example.text(file)}
        for file in shown:
            lines += _file("Both" if file in same else "Bad", example, file)
        lines += ["Says:", "", *_block(map(message_of, example.found), "text"), ""]
    first = entry.bad[0]
    for file in shown:
        if entry.good.text(file) != first.text(file):
            lines += _file("Good", entry.good, file)
    return "\n".join(lines)


def severity_of(entry: Entry) -> str:
    """Say how bad it is."""
    if entry.code in DEPRECATIONS:
        return "*Warning; error from 1.0.0 on.*"
    found = dict.fromkeys(d.severity for d in entry.found)
    return f"*{' or '.join(found).capitalize()}.*"


def message_of(found: Diagnostic) -> str:
    """Write a diagnostic as text."""
    place = f"{found.file}:{found.line}:{found.column}"
    hint = f"\n  = help: {found.hint}" if found.hint else ""
    return f"{found.severity}[{found.code}]: {found.message}\n --> {place}{hint}"


def _example(folder: Path, case: Case) -> Example:
    if case.check:
        return Example(folder=folder, found=_checked(folder))
    loaded = load_deck(DiskReader(folder), case.reference)
    return Example(folder=folder, found=loaded.diagnostics)


def _checked(folder: Path) -> tuple[Diagnostic, ...]:
    """What ``gambit check`` finds in a folder, with files named from there."""
    checked = check_paths([str(folder)], reader=DiskReader(), load=load_decks)
    return tuple(
        msgspec.structs.replace(
            found, file=Path(os.path.relpath(found.file, folder)).as_posix()
        )
        for found in checked.diagnostics
    )


def _file(label: str, example: Example, file: str) -> list[str]:
    """Show a file of an example, if it is there."""
    text = example.text(file)
    if text is None:
        return []
    language = _LANGUAGES.get(Path(file).suffix, "text")
    return [f"{label}, `{file}`:", "", *_block([text.rstrip("\n")], language), ""]


def _block(texts: Iterable[str], language: str) -> list[str]:
    texts = list(texts)
    fence = _FENCE
    while any(fence in text for text in texts):
        fence += "`"
    return [fence + language, *texts, fence]


if __name__ == "__main__":
    PAGE.write_text(render(map(entry_of, CODES)), encoding="utf-8")
