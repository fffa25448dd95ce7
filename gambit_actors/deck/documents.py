"""One Markdown file of a deck: its frontmatter as data, its body as text.

Frontmatter is TOML between two lines of ``+++`` at the top; a file without is all
body. A `Document` depends on the file's text alone, so that it can be kept for as
long as the text is the same. Offsets are in characters of that text.
"""

import re
from bisect import bisect_right
from functools import cached_property
from typing import Any, TypeAlias

import msgspec
import tomli

from gambit_actors.deck.embeds import Image, images
from gambit_actors.deck.frontmatter import explained_toml, other_frontmatter
from gambit_actors.deck.toml_places import Path, Span, TomlPlaces
from gambit_actors.schema.diagnostics import Diagnostic, Edit, Severity

Values: TypeAlias = dict[str, Any]
"""A TOML table. Its values are JSON's, and dates."""

# Marks that nobody sees may stand before it, even twice.
_OPENING = re.compile("[\\s\ufeff\u200b]*\\+\\+\\+[ \\t]*(?:\\r?\\n|\\Z)")
_CLOSING = re.compile(r"^\+\+\+[ \t]*\r?(?:\n|\Z)", re.MULTILINE)


class Source(msgspec.Struct, frozen=True, dict=True):
    """The text of a file, and what the file is called."""

    file: str
    text: str

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a place, both counted from 1."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(end.end() for end in re.finditer("\n", self.text))]

    def finding(
        self,
        code: str,
        severity: Severity,
        message: str,
        *,
        at: int = 0,
        hint: str | None = None,
        edits: tuple[Edit, ...] = (),
    ) -> Diagnostic:
        """Say something about a place in the file."""
        line, column = self.position(at)
        return Diagnostic(
            code=code,
            severity=severity,
            message=message,
            file=self.file,
            line=line,
            column=column,
            hint=hint,
            edits=edits,
        )


class Document(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A file of a deck, taken apart.

    Attributes:
        source: the file.
        values: the frontmatter; empty if there is none or it cannot be read.
        toml: where the text of the frontmatter is.
        body: where the text after it is.
        problems: why the frontmatter cannot be read, or may not be what it seems.
    """

    source: Source
    values: Values = {}
    toml: Span = Span(0, 0)
    body: Span
    problems: tuple[Diagnostic, ...] = ()

    @property
    def is_readable(self) -> bool:
        """Whether what the frontmatter says is known."""
        return all(found.severity != "error" for found in self.problems)

    @cached_property
    def _places(self) -> TomlPlaces:
        # Late, because only a deck with something to say about it needs places.
        return TomlPlaces(self.source.text[self.toml.start : self.toml.end])

    @cached_property
    def images(self) -> tuple[Image, ...]:
        """The images of the body."""
        return tuple(images(self.source.text, self.body))

    def place(self, path: Path) -> Span:
        """Where a value of the frontmatter stands, or the nearest to it."""
        return self._moved(self._places.nearest(path))

    def key_place(self, path: Path) -> Span:
        """Where the last key of a path is written, or the nearest to it."""
        span = self._places.key(path)
        return self.place(path) if span is None else self._moved(span)

    def key_uses(self, keys: tuple[str, ...]) -> list[Span]:
        """Every place where a key is written."""
        return [self._moved(span) for span in self._places.uses(keys)]

    def _moved(self, span: Span) -> Span:
        return Span(span.start + self.toml.start, span.end + self.toml.start)


def document_from_text(file: str, text: str) -> Document:
    """Take a file apart; what is wrong with its frontmatter is among the problems."""
    source = Source(file, text)
    start = len(text) - len(text.removeprefix("\ufeff"))
    opening = _OPENING.match(text, start)
    if opening is None:
        body = Span(start, len(text))
        return Document(source=source, body=body, problems=_misplaced(source, start))
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        message = "The frontmatter has no end; close it with a line of +++."
        mark = opening.start() + opening[0].index("+++")
        finding = source.finding("GD002", "error", message, at=mark)
        body = Span(len(text), len(text))
        return Document(source=source, body=body, problems=(finding,))
    toml = Span(opening.end(), closing.start())
    values, problems = _parsed(source, toml)
    body = Span(closing.end(), len(text))
    return Document(
        source=source, values=values, toml=toml, body=body, problems=problems
    )


def document_from_toml(file: str, text: str) -> Document:
    """Take a file apart that is TOML from its first line to its last."""
    source = Source(file, text)
    whole, rest = Span(0, len(text)), Span(len(text), len(text))
    values, problems = _parsed(source, whole, what="The file")
    return Document(
        source=source, values=values, toml=whole, body=rest, problems=problems
    )


def _parsed(
    source: Source, toml: Span, *, what: str = "The frontmatter"
) -> tuple[Values, tuple[Diagnostic, ...]]:
    text = source.text[toml.start : toml.end]
    try:
        return tomli.loads(text), ()
    except tomli.TOMLDecodeError as problem:
        # Its offset is in a text without carriage returns, its line and column are not.
        lines = text.split("\n")
        before = sum(len(line) + 1 for line in lines[: problem.lineno - 1])
        at = toml.start + min(before + problem.colno - 1, len(text))
        reason, hint = explained_toml(problem.msg, source.text[at : at + 10])
    except (RecursionError, ValueError) as problem:
        # Nesting without end, or a number of more digits than Python reads.
        at, reason, hint = toml.start, str(problem), None
    message = f"{what} is not valid TOML: {uncapitalised(reason)}."
    return {}, (source.finding("GD003", "error", message, at=at, hint=hint),)


def uncapitalised(words: str) -> str:
    """Words for the middle of a sentence; TOML and NaN stay as they are."""
    is_name = words[1:2].isupper() or words[:3] == "NaN"
    return words if is_name else words[:1].lower() + words[1:]


def _misplaced(source: Source, start: int) -> tuple[Diagnostic, ...]:
    """Notice settings that are not where, or not how, they are looked for."""
    at = other_frontmatter(source.text, start)
    if at is None:
        return ()
    message = "These look like settings, and are not read: they are part of the prompt."
    hint = 'Put them first, as TOML between two lines of +++: label = "My deck".'
    return (source.finding("GD004", "error", message, at=at, hint=hint),)
