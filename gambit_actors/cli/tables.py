"""Tables for people, in as many columns as the terminal has room for.

Nothing is cut off. What does not fit beside the first columns is below them, indented,
so that an address or a name of a variable can still be copied as a whole.
"""

import itertools
import shutil
import textwrap
from collections.abc import Iterator, Sequence

_GAP = "  "
_INDENT = "    "
NO_LIMIT = 100_000
"""How wide a line may be where nobody knows how wide it will be shown."""


def terminal_width() -> int:
    """How wide a line may be."""
    return shutil.get_terminal_size((NO_LIMIT, 1)).columns


def without_empty_columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The same without the columns that have nothing but a head."""
    full = [any(column[1:]) for column in zip(*rows, strict=True)]
    return [list(itertools.compress(row, full)) for row in rows]


def table_width(rows: Sequence[Sequence[str]]) -> int:
    """How wide a table is with all its full columns beside each other."""
    widths = [
        max(map(len, column))
        for column in zip(*without_empty_columns(rows), strict=True)
    ]
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def table_lines(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """The lines of a table.

    Args:
        rows: the head first; all are of one length.
        width: of a line; only what has no space in it may be longer.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    beside = _columns_within(widths, width)
    for row in rows:
        cells = (f"{cell:<{wide}}" for cell, wide in zip(row, widths, strict=True))
        yield _GAP.join(list(cells)[:beside]).rstrip()
        yield from _below(row[beside:], width)


def _columns_within(widths: Sequence[int], width: int) -> int:
    """How many of the first columns fit beside each other; one at least."""
    used = 0
    for number, wide in enumerate(widths):
        used += wide + (len(_GAP) if number else 0)
        if used > width:
            return max(1, number)
    return len(widths)


def _below(cells: Sequence[str], width: int) -> Iterator[str]:
    line = ""
    for cell in filter(None, cells):
        longer = f"{line}{_GAP}{cell}" if line else _INDENT + cell
        if len(longer) <= width:
            line = longer
            continue
        if line:
            yield line
        *whole, line = textwrap.wrap(
            cell,
            max(width, len(_INDENT) + 1),
            initial_indent=_INDENT,
            subsequent_indent=_INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
        yield from whole
    if line:
        yield line
