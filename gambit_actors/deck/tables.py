"""Tables of a frontmatter, read key by key with their types checked.

A `Table` gives the value of a key in the type its reader asks for, or None with a
finding where it is of another type. What was not asked for in the end is unknown.
"""

import difflib
import math
from collections.abc import Collection, Iterable
from typing import Any

from gambit_actors.deck.documents import Document, Values
from gambit_actors.deck.findings import Findings
from gambit_actors.deck.keys import HOMES, TOP_LEVEL_KEYS
from gambit_actors.deck.toml_places import Path
from gambit_actors.openresponses.describing import shown
from gambit_actors.schema.diagnostics import Edit, Severity
from gambit_actors.schema.explaining import path_from

_CLOSE = 0.7
_LONGEST_NAME = 100
_HUGE = 2**63  # JSON and TOML agree up to here.
# What these say is about a key, whatever its value.
_ABOUT_KEYS = frozenset(
    {"GD006", "GD007", "GD008", "GD010", "GD014", "GD054", "GD080", "GD081", "GD082"}
)


class Table:
    """One table, where it stands, and where to say what is wrong with it."""

    def __init__(
        self, document: Document, findings: Findings, values: Values, path: Path = ()
    ) -> None:
        self.document = document
        self.findings = findings
        self.values = values
        self.path = path

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def text(self, key: str, *, required: bool = False) -> str | None:
        """A string that is not blank, without space around it."""
        if key not in self.values:
            if required:
                self.report("GD013", "error", f"{self._named()} needs {_a(key)}.")
            return None
        value = self.values[key]
        if not isinstance(value, str):
            self.wrong_type(key, "a string")
            return None
        if not value.strip():
            self.report("GD012", "error", f"{self._name(key)} is blank.", key=key)
            return None
        return value.strip()

    def flag(self, key: str) -> bool | None:
        """True or false."""
        value = self.values.get(key)
        if value is None or isinstance(value, bool):
            return value
        self.wrong_type(key, "true or false")
        return None

    def number(
        self, key: str, *, least: float = -math.inf, most: float = math.inf
    ) -> float | None:
        """A number within limits."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.wrong_type(key, "a number")
            return None
        if not (least <= value <= most and -_HUGE < value < _HUGE):
            self._out_of_range(key, value, least, most)
            return None
        return value

    def whole(self, key: str, *, least: int) -> int | None:
        """A whole number of at least so much; 3.0 is one."""
        value = self.number(key, least=least)
        if value is None or value == int(value):
            return None if value is None else int(value)
        self.wrong_type(key, "a whole number")
        return None

    def choice(self, key: str, options: Collection[str]) -> str | None:
        """One of a few words."""
        value = self.text(key)
        if value is None or value in options:
            return value
        listed = ", ".join(f'"{option}"' for option in options)
        message = f"{self._name(key)} is {shown(value)}; it can be {listed}."
        hint = did_you_mean(value, options)
        self.report("GD012", "error", message, key=key, hint=hint)
        return None

    def texts(self, key: str) -> tuple[str, ...] | None:
        """A list of strings that are not blank."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list):
            self.wrong_type(key, "a list of strings")
            return None
        found = []
        for index, entry in enumerate(value):
            if isinstance(entry, str) and entry.strip():
                found.append(entry.strip())
            else:
                self.wrong_type(key, "a string that is not blank", index=index)
        return tuple(found)

    def table(self, key: str) -> "Table | None":
        """A table in this one."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.wrong_type(key, f"a table, such as [{self._name(key)}]")
            return None
        return Table(self.document, self.findings, value, (*self.path, key))

    def tables(self, key: str) -> list["Table"]:
        """The tables of a list of tables."""
        value = self.values.get(key, [])
        if not isinstance(value, list):
            self.wrong_type(key, f"a list of tables, such as [[{key}]]")
            return []
        found = []
        for index, entry in enumerate(value):
            if isinstance(entry, dict):
                path = (*self.path, key, index)
                found.append(Table(self.document, self.findings, entry, path))
            else:
                self.wrong_type(key, f"a table, such as [[{key}]]", index=index)
        return found

    def check_keys(
        self, known: Iterable[str], *, idle: dict[str, str] | None = None
    ) -> None:
        """Say what is in the table and is not known, or is known to do nothing.

        Args:
            known: the keys that are read.
            idle: keys without an effect here, with the reason.
        """
        names = set(known)
        for key in self.values:
            if key in names:
                continue
            if idle is not None and key in idle:
                message = f"{self._name(key)} has no effect: {idle[key]}."
                self.report("GD014", "warning", message, key=key)
                continue
            guess = did_you_mean(key, sorted(names))
            message = f"{self._name(key)} is not a known key, and is ignored."
            # A misspelt table takes all that is in it along.
            is_grave = guess is not None and _has_tables(self.values[key])
            severity: Severity = "error" if is_grave else "warning"
            hint = guess or self._misplaced(key)
            self.report("GD010", severity, message, key=key, hint=hint)

    def wrong_type(self, key: str, expected: str, *, index: int | None = None) -> None:
        """Say that a value, or an entry of a list, is of the wrong type."""
        value: Any = self.values[key]
        path = (*self.path, key)
        if index is not None:
            value, path = value[index], (*path, index)
        message = f"{path_from(path)}: expected {expected}, got {_shown(value)}."
        at = self.document.place(path).start
        self.findings.add(
            self.document.source.finding("GD011", "error", message, at=at)
        )

    def report(
        self,
        code: str,
        severity: Severity,
        message: str,
        *,
        key: str | Path = (),
        hint: str | None = None,
        edits: tuple[Edit, ...] = (),
    ) -> None:
        """Say something about this table, or about a value in it."""
        path = (*self.path, *((key,) if isinstance(key, str) else key))
        is_about_key = code in _ABOUT_KEYS
        place = self.document.key_place if is_about_key else self.document.place
        self.findings.add(
            self.document.source.finding(
                code, severity, message, at=place(path).start, hint=hint, edits=edits
            )
        )

    def _misplaced(self, key: str) -> str | None:
        """Notice the classic slip: a key of the top, written below a table."""
        if not self.path:
            return f"It belongs under [{HOMES[key]}]." if key in HOMES else None
        if key not in TOP_LEVEL_KEYS:
            return None
        return (
            f"In TOML a key belongs to the table above it; move {key} up, above the"
            " first line in brackets."
        )

    def _name(self, key: str) -> str:
        return path_from((*self.path, key))

    def _named(self) -> str:
        # Authors count the entries of a list from 1, or rather not at all.
        if self.path and isinstance(self.path[-1], int):
            return f"This [[{self.path[-2]}]] entry"
        return f"[{path_from(self.path)}]" if self.path else "The frontmatter"

    def _out_of_range(self, key: str, value: float, least: float, most: float) -> None:
        limits = [f"at least {least:g}"] if least > -math.inf else []
        limits += [f"at most {most:g}"] if most < math.inf else []
        words = " and ".join(limits) or "a finite number"
        if abs(value) >= _HUGE and limits:
            words += ", and not that large"
        # JSON has no way to write inf and nan; Python has.
        written = shown(value) if isinstance(value, int) else f"{value:g}"
        message = f"{self._name(key)} is {written}; it must be {words}."
        self.report("GD012", "error", message, key=key)


def did_you_mean(name: str, names: Collection[str]) -> str | None:
    """Guess what a misspelt name was meant to be."""
    if len(name) > _LONGEST_NAME:
        return None
    lowered = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=_CLOSE)
    return f"Did you mean {lowered[close[0]]}?" if close else None


def _has_tables(value: Any) -> bool:  # noqa: ANN401  # whatever TOML has
    return isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(entry, dict) for entry in value)
    )


def _a(key: str) -> str:
    return f"an {key}" if key[0] in "aeiou" else f"a {key}"


def _shown(value: Any) -> str:  # noqa: ANN401  # whatever TOML has
    if isinstance(value, dict):
        return "a table"
    return shown(value)
