"""Applying the edits that diagnostics carry, in memory: nothing here touches a file.

Invariants: all edits of a diagnostic are applied or none, no two applied edits overlap,
the order in which diagnostics come does not matter, and a text in which a fix gives
rise to a new error is handed back unchanged.
"""

import bisect
import collections
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from gambit_actors.schema.diagnostics import Diagnostic, Edit

# A fix may lay bare another one. More than a few turns means that two of them undo
# each other.
MAX_ROUNDS = 10


class Reading(Protocol):
    """Files as they were read."""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What was found."""

    @property
    def texts(self) -> Mapping[str, str]:
        """The texts it was found in, by file."""


ReadAgain: TypeAlias = Callable[[Mapping[str, str]], Reading]
"""Reads everything once more, as if these files had these texts."""


class Applied(NamedTuple):
    """A text with edits applied, and the diagnostics whose edits these were."""

    text: str
    fixed: tuple[Diagnostic, ...]


class Fixes(NamedTuple):
    """What fixing came to.

    Attributes:
        before: the text as it was of each file that changes.
        after: the text it is to have.
        fixed: the diagnostics whose edits are in there.
        refused: files that stay as they are, with the error that fixing would bring.
        reading: what would be found then.
    """

    before: dict[str, str]
    after: dict[str, str]
    fixed: tuple[Diagnostic, ...]
    refused: dict[str, Diagnostic]
    reading: Reading


def apply_edits(text: str, diagnostics: Iterable[Diagnostic]) -> Applied:
    """Apply the edits of diagnostics about one text.

    Of two diagnostics whose edits overlap, the one further down is left out; it can be
    applied when the text was read again. So is one whose edits do not fit the text.
    """
    taken: list[Edit] = []
    fixed = tuple(
        diagnostic
        for diagnostic in sorted(diagnostics, key=_edits_in_order)
        if _is_within(diagnostic.edits, text) and _take(taken, diagnostic.edits)
    )
    pieces, done = [], 0
    for edit in taken:
        pieces += [text[done : edit.start], edit.text]
        done = edit.end
    changed = "".join([*pieces, text[done:]])
    return Applied(changed, fixed if changed != text else ())


def fix_texts(
    reading: Reading, read_again: ReadAgain, *, may_change: Callable[[str], bool]
) -> Fixes:
    """Apply what can be applied, read again, and go on until nothing changes."""
    first, before, after = reading, dict[str, str](), dict[str, str]()
    fixed: list[Diagnostic] = []
    for _ in range(MAX_ROUNDS):
        round_fixed: list[Diagnostic] = []
        for file, found in _by_file(reading.diagnostics).items():
            if file in reading.texts and may_change(file):
                applied = apply_edits(reading.texts[file], found)
                if applied.fixed:
                    before.setdefault(file, reading.texts[file])
                    after[file] = applied.text
                    round_fixed += applied.fixed
        if not round_fixed:
            break
        fixed += round_fixed
        reading = read_again(after)
    refused = dict[str, Diagnostic]()
    while harm := _new_errors(first, reading) if after else {}:
        # An error in a file that no fix touched may come from any of them.
        for file in harm.keys() & after.keys() or set(after):
            refused[file] = harm.get(file) or next(iter(harm.values()))
            del before[file], after[file]
        reading = read_again(after)
    kept = tuple(diagnostic for diagnostic in fixed if diagnostic.file in after)
    return Fixes(before, after, kept, refused, reading)


def _by_file(diagnostics: Iterable[Diagnostic]) -> dict[str, list[Diagnostic]]:
    groups = collections.defaultdict[str, list[Diagnostic]](list)
    for diagnostic in diagnostics:
        if diagnostic.edits:
            groups[diagnostic.file].append(diagnostic)
    return groups


def _new_errors(before: Reading, after: Reading) -> dict[str, Diagnostic]:
    """One error of each file that has more errors of a code than it had.

    Lines do not tell errors apart, nor do messages: a fix may move what it does not
    touch, and ``actionDecks[0]`` may be ``actions[1]`` afterwards.
    """
    messages = {found.message for found in before.diagnostics}
    known, now = _errors(before), _errors(after)
    new: dict[str, Diagnostic] = {}
    for (file, code), errors in now.items():
        if len(errors) > len(known[file, code]):
            unheard = [error for error in errors if error.message not in messages]
            new.setdefault(file, (unheard or errors)[-1])
    return new


def _errors(reading: Reading) -> dict[tuple[str, str], list[Diagnostic]]:
    errors = collections.defaultdict[tuple[str, str], list[Diagnostic]](list)
    for found in reading.diagnostics:
        if found.severity == "error":
            errors[found.file, found.code].append(found)
    return errors


def _edits_in_order(diagnostic: Diagnostic) -> list[tuple[int, int, str]]:
    return sorted((edit.start, edit.end, edit.text) for edit in diagnostic.edits)


def _is_within(edits: tuple[Edit, ...], text: str) -> bool:
    return all(0 <= edit.start <= edit.end <= len(text) for edit in edits)


def _take(taken: list[Edit], edits: tuple[Edit, ...]) -> bool:
    """Put edits in their places among those taken, or none if one has no place."""
    added: list[Edit] = []
    for edit in edits:
        at = bisect.bisect_left(taken, _span(edit), key=_span)
        # Those taken do not overlap, so only the two neighbours can be in the way.
        if any(_overlap(edit, other) for other in taken[max(at - 1, 0) : at + 1]):
            for one in added:
                taken.remove(one)
            return False
        taken.insert(at, edit)
        added.append(edit)
    return bool(edits)


def _span(edit: Edit) -> tuple[int, int]:
    return edit.start, edit.end


def _overlap(one: Edit, other: Edit) -> bool:
    # Two insertions at one point overlap too: nobody knows which comes first.
    return _span(one) == _span(other) or (
        one.start < other.end and other.start < one.end
    )
