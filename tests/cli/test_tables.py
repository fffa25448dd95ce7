"""Tables fit where they are shown, and lose nothing by it."""

from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.cli.tables import table_lines

WORDS = st.text("abcdefg-/", min_size=1, max_size=12)
CELLS = st.lists(WORDS, max_size=6).map(" ".join)
TABLES = st.integers(1, 5).flatmap(
    lambda columns: st.lists(
        st.lists(CELLS, min_size=columns, max_size=columns), min_size=1, max_size=4
    )
)
ROWS = [["NAME", "KIND", "WHERE"], ["one", "large", "far away"], ["two", "", "here"]]


def test_a_table_that_fits_has_a_line_for_each_row() -> None:
    """Its columns stand below each other."""
    assert list(table_lines(ROWS, 80)) == [
        "NAME  KIND   WHERE",
        "one   large  far away",
        "two          here",
    ]


def test_what_does_not_fit_is_below() -> None:
    """Indented, and together as far as that has room."""
    assert list(table_lines(ROWS, 12)) == [
        "NAME  KIND",
        "    WHERE",
        "one   large",
        "    far away",
        "two",
        "    here",
    ]
    assert list(table_lines([["a", "b c", "d"] * 2], 7)) == [
        "a  b c",
        "    d",
        "    a",
        "    b c",
        "    d",
    ]


@given(TABLES, st.integers(17, 60))
def test_nothing_is_lost(rows: list[list[str]], width: int) -> None:
    """Every word is there, in order, and whole; only a first column may be too wide."""
    lines = list(table_lines(rows, width))
    words = [word for row in rows for cell in row for word in cell.split()]
    assert [word for line in lines for word in line.split()] == words
    first = max(len(row[0]) for row in rows)
    assert all(len(line) <= max(width, first) for line in lines)
