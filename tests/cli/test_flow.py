"""Text of a model on a terminal."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from gambit_actors.cli.flow import Flow, printable


def flowed(pieces: list[str], *, width: int) -> list[str]:
    """Write pieces to a terminal of a width; give its lines."""
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True, no_color=True)
    flow = Flow(console)
    flow.start("says", style="")
    for piece in pieces:
        flow.write(piece)
    flow.end_line()
    text = file.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "")
    return text.splitlines()


def test_lines_break_between_words() -> None:
    """A word that would not fit goes to the next line whole, under the text."""
    lines = flowed(["one two thr", "ee four fi", "ve"], width=20)

    assert [line.rstrip() for line in lines] == [
        "says    one two",
        "        three four",
        "        five",
    ]


@given(st.lists(st.text("ab ", max_size=6), max_size=20), st.integers(20, 60))
def test_no_word_is_cut(pieces: list[str], width: int) -> None:
    """However text is cut into pieces, its words come out whole and in order."""
    text = "".join(pieces)

    words = " ".join(flowed(pieces, width=width)).split()

    if all(len(word) < width - 8 for word in text.split()):
        assert words == ["says", *text.split()]


@pytest.mark.parametrize(
    "text",
    [
        "10\u00a0€",
        "«\u202foui\u202f»",
        "👨\u200d👩\u200d👧",
        "می\u200cخواهم",
        "東京\u3000駅",
        "tab\tand\nline",
    ],
)
def test_text_of_all_scripts_is_left_alone(text: str) -> None:
    """Spaces and joiners that scripts need are not taken for control characters."""
    assert printable(text) == text


@pytest.mark.parametrize(
    "control", ["\x1b", "\x07", "\x9b", "\r", "\u202e", "\u2028", "\x00"]
)
def test_what_drives_a_terminal_is_replaced(control: str) -> None:
    """Escape, bell, carriage return and turns of direction cannot get through."""
    assert printable(f"a{control}b") == "a\ufffdb"


def test_windows_line_ends_are_line_ends() -> None:
    """A CR before an LF is no control character but half a line end."""
    assert printable("a\r\nb") == "a\nb"
