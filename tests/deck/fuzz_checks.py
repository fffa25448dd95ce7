"""What holds for every loading, whatever was loaded; see `test_fuzz`."""

import posixpath
import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn, get_args

import msgspec

from gambit_actors.cli.fixing import apply_edits
from gambit_actors.deck.builtin import DECK_SCHEME, DECKS, SNIPPET_SCHEME, SNIPPETS
from gambit_actors.deck.codes import CODES as DECK_CODES
from gambit_actors.deck.loader import Loaded
from gambit_actors.deck.model import Deck, Link
from gambit_actors.schema.diagnostics import CODES as SCHEMA_CODES
from gambit_actors.schema.diagnostics import Diagnostic, Severity

# What a deck is told because of another that tries to use it, or to embed it.
FROM_OUTSIDE = {"GD040", "GD041", "GD050", "GD051", "GD054", "GD055", "GD056"}
TRIALS = ("scenarios", "graders", "testDecks", "graderDecks")
OPENING = re.compile(
    r"\s*(?:\[+\s*[\"']?(?P<table>\w+)|[\"']?(?P<key>\w+)[\"']?\s*[.=]\s*[\[{])"
)
Files = Mapping[str, str | OSError]


class TookTooLong(BaseException):
    """The limit is reached. Not an Exception, so that nobody takes it for theirs."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Stop what computes for too long, where the system has a clock for that."""

    def stop(*_: object) -> NoReturn:
        raise TookTooLong

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    # Again and again: what is raised in a callback of the collector gets lost.
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def check(files: Files, loaded: Loaded) -> None:
    """Check that findings are well formed, in place, and worth what they say."""
    for finding in loaded.diagnostics:
        check_finding(files, finding)
    errors = [d for d in loaded.diagnostics if d.severity == "error"]
    if loaded.deck is None:
        assert errors, "a deck that cannot be used needs a reason"
        return
    needed = {deck.path for deck in needed_decks(loaded.deck)}
    for finding in errors:
        if finding.file in needed and finding.code not in FROM_OUTSIDE:
            text = text_of(files, finding.file) or ""
            is_of_trial = is_in_trial(text, finding.line)
            assert is_of_trial, f"a deck with an error is not to be used: {finding}"


def is_in_trial(text: str, line: int) -> bool:
    """Whether a line belongs to a list of scenarios or graders."""
    opened = ""
    for written in text.split("\n")[:line]:
        if opening := OPENING.match(written):
            opened = opening["table"] or opening["key"]
    return opened in TRIALS


def needed_decks(root: Deck) -> list[Deck]:
    """A deck and those it cannot do without, directly or not."""
    found = {root.path: root}
    waiting = [root]
    while waiting:
        deck = waiting.pop()
        handlers = deck.handlers
        links = [action.target for action in deck.actions]
        links += [
            handler.link
            for handler in (handlers.on_busy, handlers.on_idle, handlers.on_error)
            if handler is not None
        ]
        for link in links:
            if isinstance(link, Link) and link.path not in found:
                found[link.path] = link.deck
                waiting.append(link.deck)
    return list(found.values())


def check_finding(files: Files, finding: Diagnostic) -> None:
    """Check one finding: its words, and that its place is in its file."""
    assert finding.code in DECK_CODES or finding.code in SCHEMA_CODES, finding
    assert finding.severity in get_args(Severity), finding
    for words in (finding.message, finding.hint):
        assert words is None or words.splitlines() == [words], finding
        assert words is None or words.strip(), finding
    assert msgspec.json.encode(finding)  # Which half a surrogate pair would prevent.
    text = text_of(files, finding.file)
    assert text is not None, f"a finding in no file: {finding}"
    lines = text.split("\n" if "\n" in text else "\r")
    assert 1 <= finding.line <= len(lines), finding
    assert 1 <= finding.column <= len(lines[finding.line - 1]) + 1, finding
    edits = sorted(finding.edits, key=lambda edit: edit.start)
    ends = [0, *(edit.end for edit in edits)]
    for edit, end_before in zip(edits, ends, strict=False):
        assert end_before <= edit.start <= edit.end <= len(text), finding


def text_of(files: Files, file: str) -> str | None:
    """The text that a finding is about."""
    if file.startswith(SNIPPET_SCHEME):
        return SNIPPETS[file.removeprefix(SNIPPET_SCHEME)]
    if file.startswith(DECK_SCHEME):
        return DECKS[file.removeprefix(DECK_SCHEME)]
    text = files.get(posixpath.normpath(file))
    return "" if isinstance(text, OSError) else text


def with_edits(files: Files, findings: tuple[Diagnostic, ...]) -> Files | None:
    """The files after all edits that findings suggest; None if there are none."""
    changed = dict(files)
    for file in {finding.file for finding in findings if finding.edits}:
        text = changed[posixpath.normpath(file)]
        assert isinstance(text, str)
        own = [finding for finding in findings if finding.file == file]
        applied = apply_edits(text, own)
        assert applied.fixed, f"edits that change nothing: {own}"
        changed[posixpath.normpath(file)] = applied.text
    return changed if changed != files else None
