"""One reading: its findings and its bounds.

Whatever the text, a reading ends soon and says why it ended. Three bounds do that:
how deep expressions nest, how many steps are taken in all, and how many findings are
worth telling. Steps are counted here and charged by everybody who loops or copies.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from tree_sitter import Node

from gambit_actors.schema.diagnostics import Diagnostic, Severity
from gambit_actors.schema.zod.syntax import Source

MAX_TEXT_CHARACTERS = 400_000
"""Of a module and all that it imports."""
MAX_BRACKETS = 500
"""How deep brackets may be in each other in a text that is parsed at all. The parser's
time grows with the square of that, most of all if they are never closed."""
MAX_STEPS = 400_000
MAX_DEPTH = 96
"""Nested expressions and helper calls; a schema nested this deep needs two each."""
MAX_SCHEMA_DEPTH = 40
MAX_FILES = 64
_MAX_DIAGNOSTICS = 100
_STEPS_PER_REPORT = 50  # A place is found by counting lines from the top.


class Spot(msgspec.Struct, frozen=True, eq=False):
    """A place in a file."""

    source: Source
    node: Node


class Refused(Exception):
    """An expression has no value; the reason has been reported."""


class Exhausted(Exception):
    """The reading went too deep or took too many steps, which has been reported."""


class Session:
    """Collects findings and counts steps."""

    def __init__(self) -> None:
        self.diagnostics: dict[Diagnostic, None] = {}  # In order, each once.
        self.has_errors = False
        self._steps = 0
        self._depth = 0

    def error(
        self, code: str, message: str, spot: Spot, *, hint: str | None = None
    ) -> None:
        """Report what makes the file unusable."""
        self.has_errors = True
        self._report(code, "error", message, spot=spot, hint=hint)

    def warn(
        self, code: str, message: str, spot: Spot, *, hint: str | None = None
    ) -> None:
        """Report what the author should know."""
        self._report(code, "warning", message, spot=spot, hint=hint)

    @contextmanager
    def muted(self) -> Iterator["Session"]:
        """Try something: what it reports is forgotten, all but having gone too far."""
        before = dict(self.diagnostics), self.has_errors
        self.has_errors = False
        yield self
        self.diagnostics, self.has_errors = before

    def charge(self, steps: int, spot: Spot) -> None:
        """Count work.

        Raises:
            Exhausted: it was too much.
        """
        self._steps += steps
        if self._steps > MAX_STEPS:
            message = (
                f"This expands to more than {MAX_STEPS:,} steps of reading;"
                " make the schema smaller."
            )
            self.error("GS013", message, spot)
            raise Exhausted

    def enter(self, spot: Spot) -> None:
        """Go one expression deeper.

        Raises:
            Exhausted: that is too deep. Going on beside it would be no use: a helper
                that calls itself twice would be back here at once, time after time.
        """
        self.charge(1, spot)
        if self._depth >= MAX_DEPTH:
            message = (
                f"Expressions and helper calls nest more than {MAX_DEPTH} deep here;"
                " give the inner parts names of their own."
            )
            self.error("GS012", message, spot)
            raise Exhausted
        self._depth += 1

    def leave(self) -> None:
        """Come back from one `enter`."""
        self._depth -= 1

    def _report(
        self,
        code: str,
        severity: Severity,
        message: str,
        *,
        spot: Spot,
        hint: str | None,
    ) -> None:
        self._steps += _STEPS_PER_REPORT  # Charged with the next step that is not one.
        if len(self.diagnostics) >= _MAX_DIAGNOSTICS:
            return
        line, column = spot.source.position(spot.node)
        finding = Diagnostic(
            code=code,
            severity=severity,
            message=message,
            file=spot.source.file,
            line=line,
            column=column,
            hint=hint,
        )
        self.diagnostics[finding] = None
