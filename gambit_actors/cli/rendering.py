"""Diagnostics as people read them: what, where, the line itself, and what to do.

Everything shown comes from files that nobody vouches for. It is made harmless here,
and never taken for markup. This module opens no file: the lines are handed in.
"""

import difflib
import re
from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from gambit_actors.cli.flow import printable
from gambit_actors.schema.diagnostics import Diagnostic, Severity

STYLES: dict[Severity, str] = {
    "error": "bold red",
    "warning": "bold yellow",
    "note": "bold cyan",
}
_FRAME_STYLE = "bold blue"
_HELP_STYLE = "bold green"
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}

_TAB = " " * 4
_CUT = "..."
_NARROWEST = 20
# What is marked from the place on: a string, or a word, path, URI or dotted name. Where
# a finding ends is not known, so this is as much as every reader would take for one.
_MARKED = re.compile(
    r"""
    "(?:[^"\\]|\\.)*" | '[^']*'
    | (?:\.{0,2}/)* [\w%-]+ (?: (?:://|[./]) [\w%-]+ )*
    """,
    re.VERBOSE,
)


def lines_of(text: str) -> list[str]:
    """Split a text as diagnostics count its lines: at newlines, and nowhere else."""
    return text.split("\n")


def render(diagnostic: Diagnostic, lines: Sequence[str] | None, *, width: int) -> Text:
    """Lay out one diagnostic; it ends in a newline.

    Args:
        diagnostic: what to show.
        lines: the file it is about; None if there is none to show. Then a place at the
            very start is taken to mean the file as a whole.
        width: how many cells a line with source text may take.
    """
    style = STYLES[diagnostic.severity]
    line = _line_at(diagnostic, lines)
    margin = " " * len(str(diagnostic.line)) if line is not None else " "
    text = Text()
    text.append(f"{diagnostic.severity}[{_on_one_line(diagnostic.code)}]", style=style)
    text.append(f": {_on_one_line(diagnostic.message)}\n", style="bold")
    text.append(f"{margin}--> ", style=_FRAME_STYLE)
    text.append(f"{_place(diagnostic, lines)}\n")
    if line is not None:
        shown, before, marked = _excerpt(
            line, diagnostic, width=max(width - len(margin) - 3, _NARROWEST)
        )
        text.append(f"{margin} |\n{diagnostic.line} |", style=_FRAME_STYLE)
        text.append(f" {shown}".rstrip() + "\n")
        text.append(f"{margin} |", style=_FRAME_STYLE)
        text.append(" " * (before + 1) + "^" * marked + "\n", style=style)
    if diagnostic.hint:
        text.append(f"{margin} = ", style=_FRAME_STYLE)
        text.append("help", style=_HELP_STYLE)
        text.append(f": {_on_one_line(diagnostic.hint)}\n")
    return text


def render_diff(file: str, before: str, after: str) -> Text:
    """Lay out what changes in a file as a unified diff, for eyes."""
    text = Text()
    changes = difflib.unified_diff(
        _whole_lines(before),
        _whole_lines(after),
        fromfile=_on_one_line(file),
        tofile=_on_one_line(file),
    )
    for number, line in enumerate(changes):
        style = "bold" if number < 2 else _DIFF_STYLES.get(line[0], "")  # noqa: PLR2004
        ending = "" if line.endswith("\n") else "\n\\ No newline at end of file\n"
        text.append(printable(line) + ending, style=style)
    return text


def _on_one_line(text: str) -> str:
    return printable(text).replace("\n", "\N{REPLACEMENT CHARACTER}")


def _place(diagnostic: Diagnostic, lines: Sequence[str] | None) -> str:
    file = _on_one_line(diagnostic.file)
    if lines is None and (diagnostic.line, diagnostic.column) == (1, 1):
        return file
    return f"{file}:{diagnostic.line}:{diagnostic.column}"


def _line_at(diagnostic: Diagnostic, lines: Sequence[str] | None) -> str | None:
    """The line meant, unless the file is not the one that was read."""
    if lines is None or not 1 <= diagnostic.line <= len(lines):
        return None
    line = lines[diagnostic.line - 1]
    # One past the end is where something is missing; further on there is nothing.
    return line if 1 <= diagnostic.column <= len(line) + 1 else None


def _excerpt(line: str, diagnostic: Diagnostic, *, width: int) -> tuple[str, int, int]:
    """What to show of a line, and where its mark begins and how long it is, in cells.

    A long line is cut to a window around the mark. Only as much of it as a window can
    hold is looked at: there may be many diagnostics on one line of a megabyte.
    """
    line = line.removesuffix("\r")
    column = min(diagnostic.column - 1, len(line))
    marked = _MARKED.match(line, column, column + width)
    end = marked.end() if marked else column + 1
    start, stop = max(column - width, 0), column + 2 * width
    head, mark, tail = (
        _visible(line[a:b]) for a, b in ((start, column), (column, end), (end, stop))
    )
    is_cut_left, is_cut_right = start > 0, stop < len(line)
    if not is_cut_left and not is_cut_right and cell_len(head + mark + tail) <= width:
        return head + mark + tail, cell_len(head), max(cell_len(mark), 1)
    room = width - 2 * len(_CUT)
    mark = _first_cells(mark, room)
    # The mark in the middle, except near an end: no room is given to nothing.
    beside = room - cell_len(mark)
    left = max(beside // 2, beside - cell_len(tail))
    kept_head = _first_cells(head[::-1], left)[::-1]
    kept_tail = _first_cells(tail, beside - cell_len(kept_head))
    is_cut_left = is_cut_left or kept_head != head
    is_cut_right = is_cut_right or kept_tail != tail
    kept_head = _CUT * is_cut_left + kept_head
    shown = kept_head + mark + kept_tail + _CUT * is_cut_right
    return shown, cell_len(kept_head), max(cell_len(mark), 1)


def _visible(text: str) -> str:
    return printable(text).replace("\t", _TAB).replace("\n", " ")


def _first_cells(text: str, cells: int) -> str:
    """The longest beginning of a text that fits."""
    end = used = 0
    for character in text:
        used += cell_len(character)
        if used > cells:
            break
        end += 1
    return text[:end]


def _whole_lines(text: str) -> list[str]:
    """The lines with their newlines; unlike `str.splitlines`, split at nothing else."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)
