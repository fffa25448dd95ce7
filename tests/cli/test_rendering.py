"""A diagnostic on the screen points at the very place, and does a terminal no harm."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from gambit_actors.cli.rendering import lines_of, render, render_diff
from gambit_actors.schema.diagnostics import Diagnostic, Severity


def finding(
    line: int = 2,
    column: int = 1,
    *,
    message: str = "There is no key modle.",
    severity: Severity = "error",
    file: str = "decks/a/PROMPT.md",
    hint: str | None = None,
) -> Diagnostic:
    """Make a diagnostic."""
    return Diagnostic(
        code="GD010",
        severity=severity,
        message=message,
        file=file,
        line=line,
        column=column,
        hint=hint,
    )


def plain(found: Diagnostic, source: str | None, *, width: int = 80) -> str:
    """Render without color."""
    lines = None if source is None else lines_of(source)
    return render(found, lines, width=width).plain


def excerpt(source: str, column: int, *, width: int = 80) -> list[str]:
    """Render something about the first line; the line and the marks below it."""
    shown = plain(finding(1, column), source, width=width).splitlines()
    assert shown[2] == "  |"
    assert shown[3].startswith("1 |")
    return [line[4:] for line in shown[3:5]]


def test_what_where_the_line_and_what_to_do() -> None:
    """An error has its code, place, source line, marks under the word, and help."""
    found = finding(hint='Did you mean "model"?')
    assert plain(found, '+++\nmodle = "x"\n+++\n') == (
        "error[GD010]: There is no key modle.\n"
        " --> decks/a/PROMPT.md:2:1\n"
        "  |\n"
        '2 | modle = "x"\n'
        "  | ^^^^^\n"
        '  = help: Did you mean "model"?\n'
    )


def test_the_gutter_is_as_wide_as_the_line_number() -> None:
    """A line number of three digits moves everything else along."""
    assert plain(finding(123, 3, severity="warning"), "\n" * 122 + "a = 1\n") == (
        "warning[GD010]: There is no key modle.\n"
        "   --> decks/a/PROMPT.md:123:3\n"
        "    |\n"
        "123 | a = 1\n"
        "    |   ^\n"
    )


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param(None, finding(7, 3), id="vanished"),
        pytest.param("a\nb", finding(3, 1), id="shorter"),
        pytest.param("a\nb", finding(2, 3), id="shorter line"),
        pytest.param("a\nb", finding(0, 1), id="no line"),
        pytest.param("a\nb", finding(1, 0), id="no column"),
    ],
)
def test_no_line_is_shown_that_is_not_the_one(
    source: str | None, found: Diagnostic
) -> None:
    """A file that is gone or is another now gives a place and no source."""
    assert plain(found, source) == (
        "error[GD010]: There is no key modle.\n"
        f" --> decks/a/PROMPT.md:{found.line}:{found.column}\n"
    )


def test_a_finding_about_a_whole_file_has_no_line() -> None:
    """Without source, the start of a file means the file, or a folder."""
    assert " --> decks/a\n" in plain(finding(1, 1, file="decks/a"), None)


@pytest.mark.parametrize(
    ("source", "column", "shown"),
    [
        pytest.param("a = 1", 6, ["a = 1", "     ^"], id="at the end"),
        pytest.param("", 1, ["", "^"], id="empty line"),
        pytest.param("a = 1\r\nb", 6, ["a = 1", "     ^"], id="CR"),
        pytest.param("a = 1\r\nb", 7, ["a = 1", "     ^"], id="LF of CRLF"),
        pytest.param("\ta = 1", 2, ["    a = 1", "    ^"], id="tab"),
        pytest.param("a\t= 1", 2, ["a    = 1", " ^^^^"], id="at a tab"),
        pytest.param("日本 = 1", 4, ["日本 = 1", "     ^"], id="wide before"),
        pytest.param("a 日本 = 1", 3, ["a 日本 = 1", "  ^^^^"], id="wide"),
        pytest.param("e\u0301e = 1", 5, ["e\u0301e = 1", "   ^"], id="combining"),
        pytest.param("a\x1b[2Jb", 6, ["a\ufffd[2Jb", "     ^"], id="escape"),
        pytest.param("a\udcffb", 3, ["a\ufffdb", "  ^"], id="not UTF-8"),
        pytest.param("a\u2028b", 3, ["a\ufffdb", "  ^"], id="odd line end"),
        pytest.param("x a-b c", 3, ["x a-b c", "  ^^^"], id="word"),
        pytest.param("The end. x", 5, ["The end. x", "    ^^^"], id="last word"),
        pytest.param("z.str();", 1, ["z.str();", "^^^^^"], id="dotted"),
        pytest.param(
            'a = "b \\" c" d', 5, ['a = "b \\" c" d', "    ^^^^^^^^"], id="text"
        ),
        pytest.param("a = 'b\\' c", 5, ["a = 'b\\' c", "    ^^^^"], id="literal"),
        pytest.param('a = "b', 5, ['a = "b', "    ^"], id="open text"),
        pytest.param("[](../a%20/b)", 4, ["[](../a%20/b)", "   ^^^^^^^^^"], id="path"),
        pytest.param(
            "(gambit://end)", 2, ["(gambit://end)", " ^^^^^^^^^^^^"], id="URI"
        ),
        pytest.param("[[a]]", 1, ["[[a]]", "^"], id="mark"),
    ],
)
def test_marks_stand_under_the_place(
    source: str, column: int, shown: list[str]
) -> None:
    """Whatever stands before it, the mark is in the cells of what it marks."""
    assert excerpt(source, column) == shown


@pytest.mark.parametrize("width", [20, 24, 41, 80])
@pytest.mark.parametrize("filler", ["x ", "日", "\t", "\x07", "e\u0301", "👩\u200d🚀"])
@pytest.mark.parametrize("before", [0, 1, 7, 30, 500])
@pytest.mark.parametrize("after", [0, 1, 7, 30, 500])
def test_a_long_line_is_cut_around_the_place(
    width: int, filler: str, before: int, after: int
) -> None:
    """The window fits, holds what is marked, and says where something is left out."""
    head, tail = filler * before, " " + filler * after
    line, marks = excerpt(f"{head}!{tail}", len(head) + 1, width=width)
    assert cell_len(line) <= max(width - 4, 20)
    at = marks.index("^")
    assert marks.strip() == "^"
    assert cell_len(line[: line.index("!")]) == at
    if line.startswith("..."):
        assert before
    if width == 80 and max(before, after) <= 7:
        assert "..." not in line


def test_a_window_near_an_end_is_full() -> None:
    """Room that one side does not need is given to the other."""
    line = " ".join(["word"] * 100)
    for column in (1, 251, 496):
        shown, _ = excerpt(line, column, width=64)
        assert 60 - 4 <= cell_len(shown) <= 60
    assert excerpt(line, 1, width=64)[0].startswith("word")
    assert excerpt(line, 496, width=64)[0].endswith("word")


def test_a_mark_longer_than_the_window_is_cut() -> None:
    """A word of a thousand letters is marked as far as it is shown."""
    line, marks = excerpt("a " + "x" * 1000, 3, width=40)
    assert cell_len(line) <= 36
    assert len(marks) <= 36
    assert line.endswith("...")


def test_a_line_of_megabytes_costs_no_more_than_its_window() -> None:
    """Many findings on one huge line are rendered at once."""
    lines = [f"{'x ' * 2_000_000}"]
    for column in range(1, 4_000_000, 8_000):
        assert "..." in render(finding(1, column), lines, width=80).plain


ATTACKS = ["\x1b]0;owned\x07", "\x9b31m", "a\rb", "\b", "\N{RIGHT-TO-LEFT OVERRIDE}x"]


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_deck_cannot_steer_the_terminal(attack: str) -> None:
    """Control characters come out harmless, wherever a deck can put them."""
    found = finding(1, 1, message=attack, file=attack, hint=attack)
    shown = plain(found, attack) + render_diff(attack, attack, attack + "x").plain
    assert attack not in shown
    assert not any(c in shown for c in attack if not c.isprintable())
    # The file's name three times, its line, and what the diff takes and gives.
    assert shown.count("\ufffd") >= 6


def test_newlines_cannot_fake_another_finding() -> None:
    """Message, file name and hint stay on their lines."""
    faked = "x\nerror[GD001]: faked"
    lines = plain(finding(message=faked, file=faked, hint=faked), None).splitlines()
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("severity", "code"), [("error", "31"), ("warning", "33"), ("note", "36")]
)
def test_colors_tell_severities_apart(severity: Severity, code: str) -> None:
    """The heading and the marks have the color of the severity; markup is text."""
    found = finding(1, 1, severity=severity, message="[green]m[/green]")
    text = render(found, ["[red]x"], width=80)
    colored = io.StringIO()
    Console(file=colored, force_terminal=True, color_system="standard").print(text)
    assert f"\x1b[1;{code}m{severity}[GD010]" in colored.getvalue()
    assert f"\x1b[1;{code}m ^" in colored.getvalue()
    assert "[red]x" in colored.getvalue()
    assert "[green]m[/green]" in Text.from_ansi(colored.getvalue()).plain


def test_a_diff_shows_what_changes() -> None:
    """Lines are split at newlines only, and a missing one at the end is told."""
    assert render_diff("f", "a\u2028\r\nb\nc", "a\u2028\r\nB\nc").plain == (
        "--- f\n"
        "+++ f\n"
        "@@ -1,3 +1,3 @@\n"
        " a\ufffd\n"
        "-b\n"
        "+B\n"
        " c\n"
        "\\ No newline at end of file\n"
    )
