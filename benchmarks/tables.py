"""Plain tables for a terminal, or a page: what all reports are made of."""

from collections.abc import Iterator, Sequence

from benchmarks.costs import Verdict
from benchmarks.machine import Machine

_MARKS = {True: "pass", False: "FAIL", None: "n/a"}


def machine_lines(machine: Machine) -> Iterator[str]:
    """What it was measured on."""
    yield f"{machine.date}, {machine.cpu}, {machine.cores} cores, {machine.system}"
    yield f"{machine.python}, load at start {machine.load}"
    yield ", ".join(f"{name} {version}" for name, version in machine.libraries.items())


def section(title: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table with a title over it."""
    yield ""
    yield title
    yield ""
    yield from table(rows)


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows in aligned columns, the first row a heading, words left, numbers right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    is_number = [
        all(cell[:1].isdigit() or cell == "-" for cell in column[1:])
        for column in zip(*rows, strict=True)
    ]
    for number, row in enumerate(rows):
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_number, strict=True)
        ]
        yield "  ".join(cells).rstrip()
        if number == 0:
            yield "  ".join("-" * width for width in widths)


def verdict_rows(
    verdicts: Sequence[Verdict], *, subject: str, case: str
) -> list[list[str]]:
    """The targets; subject and case are what their columns are headed."""
    rows = [["target", subject, case, "found", ""]]
    for verdict in verdicts:
        where = [verdict.target, verdict.subject, verdict.case]
        rows.append([*where, _found(verdict), _MARKS[verdict.is_met]])
    return rows


def _found(verdict: Verdict) -> str:
    if verdict.found is None or verdict.unit == "x":
        return times(verdict.found)
    return f"{verdict.found:.1f} {verdict.unit}"


def times(ratio: float | None) -> str:
    """A ratio such as 1.25x; a dash if there is none."""
    if ratio is None:
        return "-"
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.1f}x"
