"""What is found while one deck is read, each thing once."""

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias, get_args

import msgspec

from gambit_actors.deck.codes import DEPRECATIONS
from gambit_actors.schema.diagnostics import Diagnostic, Severity
from gambit_actors.version import IS_STABLE

LegacyPolicy: TypeAlias = Literal["warn", "refuse"]
"""What is done about deprecated keys and URIs: they work and warn, or are errors."""

LEGACY: LegacyPolicy = "refuse" if IS_STABLE else "warn"
"""The policy of this release. This is the one switch between the two."""

_MAX_FINDINGS = 200  # Of one deck and severity. Who has more will not read the rest.


class Findings:
    """Collects diagnostics and knows whether there is an error among them."""

    def __init__(self, legacy: LegacyPolicy = LEGACY) -> None:
        self.legacy = legacy
        self.has_errors = False
        self._found: dict[Diagnostic, None] = {}
        self._room = dict.fromkeys(get_args(Severity), _MAX_FINDINGS)

    def add(self, found: Diagnostic) -> None:
        """Take a diagnostic in; what is deprecated weighs what the policy says."""
        if found.code in DEPRECATIONS and self.legacy == "refuse":
            found = msgspec.structs.replace(found, severity="error")
        self.has_errors |= found.severity == "error"
        if found not in self._found and self._room[found.severity] > 0:
            self._room[found.severity] -= 1
            self._found[found] = None

    def extend(self, found: Iterable[Diagnostic]) -> None:
        """Take several in."""
        for finding in found:
            self.add(finding)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._found)
