"""Where decks are: found in folders, named for people, given an INTENT.md.

What is inside a deck's files is no matter here.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from gambit_actors.schema.diagnostics import Diagnostic

PROMPT = "PROMPT.md"
INTENT = "INTENT.md"
_LEGACY_ROOT = "root.deck.md"
_LEGACY_ENDING = ".deck.md"
# Besides hidden ones, such as .venv: other people's files, and no decks of ours.
_SKIPPED = frozenset({"node_modules", "__pycache__"})

INTENT_OUTLINE = """\
# Intent

## Goals

<!-- What this deck should bring about, and for whom. -->

## Non-goals

<!-- What it should leave alone, even when asked. -->

## Constraints

<!-- What must hold whatever happens: rules, limits, tone. -->

## Trade-offs

<!-- What to prefer when two good things cannot both be had. -->

## Escalation

<!-- When to stop and ask, and whom to hand over to. -->
"""


class Found(NamedTuple):
    """The decks in some paths, and what is to be said of folders without one."""

    decks: tuple[str, ...]
    findings: tuple[Diagnostic, ...]


def is_deck_file(name: str) -> bool:
    """Whether a file of this name may be a deck."""
    return name == PROMPT or name.endswith(_LEGACY_ENDING)


def has_deck(folder: str) -> bool:
    """Whether a folder is a deck."""
    return any(Path(folder, name).is_file() for name in (PROMPT, _LEGACY_ROOT))


def find_decks(paths: Iterable[str], *, exclude: Sequence[str] = ()) -> Found:
    """Find the decks that paths name or hold, each once, however often it is reached.

    Links to folders are not followed: what they lead to is found where it is, or it
    is outside and was not asked for.

    Args:
        paths: of decks, and of folders to search.
        exclude: globs for the paths of folders and decks that are not to be found in
            those. As many last parts of a path are compared as a glob has.
    """
    decks: dict[str, str] = {}
    findings: dict[str, Diagnostic] = {}
    for path in paths:
        if not Path(path).is_dir():
            decks.setdefault(os.path.realpath(path), shown_path(path))
            continue
        here, bare, closed = _search(path, exclude)
        for problem in closed:
            findings.setdefault(str(problem.filename), _not_listed(problem))
        for deck in here:
            decks.setdefault(os.path.realpath(deck), shown_path(deck))
        for folder in bare:
            findings.setdefault(os.path.realpath(folder), _no_deck(folder))
        if not here and not bare and not closed:
            findings.setdefault(os.path.realpath(path), _no_deck(path))
    return Found(tuple(decks.values()), tuple(findings.values()))


def shown_path(path: str) -> str:
    """The path from the current folder if it is in there, else the absolute one."""
    absolute = Path(os.path.normpath(Path(path).absolute()))
    here = Path.cwd()
    return (
        absolute.relative_to(here) if absolute.is_relative_to(here) else absolute
    ).as_posix()


def missing_intents(decks: Iterable[str]) -> Iterator[Diagnostic]:
    """Recommend an INTENT.md for each deck that has none."""
    for deck in _without_intent(decks):
        yield Diagnostic(
            code="GD090",
            severity="note",
            message=f"There is no {INTENT} beside this deck to say what it is for.",
            file=deck,
            line=1,
            column=1,
            hint="gambit check --scaffold writes an outline of one.",
        )


def write_intents(decks: Iterable[str]) -> Iterator[str]:
    """Write an outline beside each deck that has no INTENT.md; say what was done."""
    for deck in _without_intent(decks):
        intent = Path(deck).with_name(INTENT)
        name = shown_path(str(intent))
        try:
            # "x" refuses to write over a file, also one that came just now.
            with intent.open("x", encoding="utf-8", newline="\n") as file:
                file.write(INTENT_OUTLINE)
        except OSError as problem:
            yield f"Not written: {name}, because of this: {problem.strerror}."
        else:
            yield f"Wrote {name}."


def _without_intent(decks: Iterable[str]) -> Iterator[str]:
    for deck in decks:
        path = Path(deck)
        # A broken link is somebody's INTENT.md too, and not ours to write through.
        if path.name == PROMPT and not os.path.lexists(path.with_name(INTENT)):
            yield deck


def _search(
    path: str, exclude: Sequence[str]
) -> tuple[list[str], list[str], list[OSError]]:
    """The decks below a folder, the folders that lack one, and what cannot be listed.

    A folder lacks a deck if it has an INTENT.md and no PROMPT.md.
    """
    decks, bare, closed = [], [], []
    waiting = [path]
    while waiting:  # Not os.walk, which goes as deep into the stack as folders nest.
        folder = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as problem:
            closed.append(problem)
            continue
        entries = [entry for entry in entries if not _is_excluded(entry, exclude)]
        waiting += [e.path for e in reversed(entries) if _is_searched(e)]
        names = {entry.name for entry in entries}
        here = [name for name in (PROMPT, _LEGACY_ROOT) if name in names]
        decks += [str(Path(folder, name)) for name in here]
        if INTENT in names and not here:
            bare.append(folder)
    return decks, bare, closed


def _is_searched(entry: os.DirEntry[str]) -> bool:
    is_ours = entry.name not in _SKIPPED and not entry.name.startswith(".")
    return is_ours and entry.is_dir(follow_symlinks=False)


def _is_excluded(entry: os.DirEntry[str], exclude: Sequence[str]) -> bool:
    return any(PurePath(shown_path(entry.path)).match(glob) for glob in exclude)


def _not_listed(problem: OSError) -> Diagnostic:
    name = shown_path(str(problem.filename))
    reason = problem.strerror or str(problem)
    return Diagnostic(
        code="GD005",
        severity="error",
        message=f"The folder {name} cannot be searched: {reason}.",
        file=name,
        line=1,
        column=1,
    )


def _no_deck(folder: str) -> Diagnostic:
    name = shown_path(folder)
    if Path(folder, INTENT).exists():
        message = f"{name} has an {INTENT} and no {PROMPT}, so it is not a deck."
    else:
        message = f"There is no {PROMPT} in {name}, nor in a folder below it."
    return Diagnostic(
        code="GD001",
        severity="error",
        message=message,
        file=name,
        line=1,
        column=1,
        hint=f"A deck is a folder with a {PROMPT} in it.",
    )
