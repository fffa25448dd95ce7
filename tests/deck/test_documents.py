"""Taking a file apart: what is frontmatter, what is body, and what is neither."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.deck.documents import Document, Source, document_from_text
from tests.deck.reading import deck_text, found, load


def document(text: str) -> Document:
    """Take a text apart."""
    return document_from_text("PROMPT.md", text)


def body(text: str) -> str:
    """The body of a text."""
    read = document(text)
    return text[read.body.start : read.body.end]


def problems(text: str) -> list[tuple[str, int, int]]:
    """The code and the place of what keeps a frontmatter from being read."""
    return [(d.code, d.line, d.column) for d in document(text).problems]


@pytest.mark.parametrize(
    "text",
    [
        '+++\nlabel = "A"\n+++\nHi.',
        '\ufeff+++\nlabel = "A"\n+++\nHi.',
        '+++\r\nlabel = "A"\r\n+++\r\nHi.',
        '\n\n \n+++\nlabel = "A"\n+++\nHi.',
        '\ufeff\r\n+++\r\nlabel = "A"\r\n+++\r\nHi.',
        '+++ \t\nlabel = "A"\n+++  \nHi.',
    ],
)
def test_frontmatter_is_found_whatever_is_around_it(text: str) -> None:
    """A byte order mark, CRLF, blank lines and space around do not matter."""
    read = document(text)
    assert read.problems == ()
    assert read.values == {"label": "A"}
    assert body(text) == "Hi."


@pytest.mark.parametrize("text", ["", "Hi.", "\n\nHi.\n", "Hi.\n\n+++\n"])
def test_a_file_without_frontmatter_is_all_body(text: str) -> None:
    """Nothing is taken away from it, and there is nothing to say."""
    read = document(text)
    assert (read.values, read.problems) == ({}, ())
    assert body(text) == text


@pytest.mark.parametrize(
    "text",
    [
        '# Desk\n\n+++\nlabel = "A"\n+++\nHi.',
        '<!-- Desk -->\n+++\nlabel = "A"\n+++\nHi.',
        '---\nlabel = "A"\n---\nHi.',
        "---\nname: A\n---\nHi.",
        '++++\nlabel = "A"\n++++\nHi.',
        '```toml\nlabel = "A"\n```\nHi.',
        '{"label": "A"}\nHi.',
    ],
)
def test_settings_that_would_become_prompt_are_refused(text: str) -> None:
    """Frontmatter that comes late, or between other marks, is not lost in silence."""
    (problem,) = problems(text)
    assert problem[0] == "GD004"
    assert load(text).deck is None


@pytest.mark.parametrize(
    "text",
    [
        "Hi.\n\n+++\na = 1\n+++\n",
        "---\n\nHi: this is text.\n\n---\nMore.",
        '```python\nlabel = "A"\n```\nHi.',
        '# Desk\n\nAnswer in JSON:\n\n{"label": 1}',
    ],
)
def test_text_that_is_no_settings_is_left_alone(text: str) -> None:
    """Lines, code and examples in a prompt are not taken for frontmatter."""
    assert problems(text) == []
    assert load(text).usable().prompt == text.strip()


def test_a_byte_order_mark_is_not_part_of_the_body() -> None:
    """It is how some editors start a file, and nothing to tell a model."""
    assert body("\ufeffHi.") == "Hi."
    assert load("\ufeffHi.").usable().prompt == "Hi."


def test_empty_frontmatter_is_frontmatter() -> None:
    """Two lines of +++ with nothing between are taken away."""
    assert document("+++\n+++\nHi.").problems == ()
    assert body("+++\n+++\nHi.") == "Hi."
    assert body("+++\n+++") == ""


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("+++\nlabel = 1\n\nHi.", (1, 1)),
        ("\ufeff+++\nlabel = 1\n\nHi.", (1, 2)),
        ("\n\n  +++\nlabel = 1", (3, 3)),
        ("+++", (1, 1)),
        ("+++\nlabel = 1\n ++++\n", (1, 1)),
    ],
)
def test_frontmatter_without_an_end(text: str, place: tuple[int, int]) -> None:
    """It is an error where it starts, and nothing of it is taken for the body."""
    assert problems(text) == [("GD002", *place)]
    assert body(text) == ""


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("+++\nlabel = 1\nx = = 2\n+++\n", (3, 5)),
        ("+++\r\nlabel = 1\r\nx = = 2\r\n+++\r\n", (3, 5)),
        ("\ufeff\n+++\nlabel = 1\nlabel = 2\n+++\n", (4, 10)),
        ('+++\nlabel = "a\n+++\n', (2, 11)),
    ],
)
def test_bad_toml_is_placed_in_the_file(text: str, place: tuple[int, int]) -> None:
    """Line and column are those of the file, also with CRLF and a byte order mark."""
    assert problems(text) == [("GD003", *place)]


@pytest.mark.parametrize(
    "toml", ["a = " + "[" * 20_000, "a = " + "9" * 20_000, "a.b = 1\na = 2"]
)
def test_hostile_toml_is_only_bad_toml(toml: str) -> None:
    """Endless nesting and endless numbers are errors like others."""
    (problem,) = document(f"+++\n{toml}\n+++\n").problems
    assert problem.code == "GD003"
    assert problem.line in (2, 3)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("---\nlabel: A\n---\nHi.", (1, 1)),
        ("\ufeff---\r\nlabel: A\r\n---\r\nHi.", (1, 2)),
        ("\n---\n# a comment\nlabel: A\n---\nHi.", (2, 1)),
        ("---toml\nlabel = 1\n---\nHi.", (1, 1)),
        ("+++yaml\nlabel: 1\n+++\nHi.", (1, 1)),
    ],
)
def test_other_frontmatter_is_recognised(text: str, place: tuple[int, int]) -> None:
    """YAML, or a mark with the name of a format, is told where it starts."""
    assert problems(text) == [("GD004", *place)]


@pytest.mark.parametrize(
    "text",
    [
        "---\n\nA line across the page, then text.\n",
        "---\nNote: this is prose, and no other line is drawn.\n",
        "---\nJust text.\n---\nMore text.\n",
        "***\nlabel: A\n---\n",
        "Hi.\n\n---\n\nlabel: A\n\n---\n",
    ],
)
def test_a_line_across_the_page_is_not_frontmatter(text: str) -> None:
    """Three dashes count only at the top, with YAML behind them and an end."""
    assert problems(text) == []
    assert body(text) == text


def test_bytes_that_are_not_text_are_told_once() -> None:
    """Invalid UTF-8 comes as surrogates, and is one error where it first is."""
    loaded = load(deck_text('label = "A"', "Fine.\nNot \udcff fine \udcfe."))
    assert found(loaded) == [("GD005", 5, 5)]
    assert loaded.deck is None


def test_a_file_that_cannot_be_read_is_an_error() -> None:
    """What a disk says about a deck is passed on, and nothing is made up after it."""
    loaded = load({"PROMPT.md": PermissionError(13, "Permission denied")})
    assert found(loaded) == [("GD005", 1, 1)]
    assert loaded.diagnostics[0].message == (
        "PROMPT.md cannot be read: Permission denied."
    )
    assert loaded.deck is None


@given(st.text(alphabet="+-\n\r\t \ufeffa=1:#\"'[]", max_size=60))
def test_any_text_is_taken_apart(text: str) -> None:
    """Whatever is in a file, it has a body in it and problems with places."""
    read = document(text)
    assert 0 <= read.toml.start <= read.toml.end <= read.body.start or not read.values
    assert read.body.end == len(text)
    lines = text.split("\n")
    for problem in read.problems:
        assert 1 <= problem.line <= len(lines)
        assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1


@given(st.text(alphabet="ab\n\r", max_size=20), st.data())
def test_positions_count_lines_and_columns_from_one(
    text: str, data: st.DataObject
) -> None:
    """A place is where an editor would show it."""
    offset = data.draw(st.integers(0, len(text)))
    line, column = Source("f", text).position(offset)
    before = text[:offset].split("\n")
    assert (line, column) == (len(before), len(before[-1]) + 1)


def test_places_are_those_of_the_file() -> None:
    """A value and its key are found behind a byte order mark and blank lines."""
    text = '\ufeff\n+++\n[modelParams]\nmodel = "m"\n+++\n'
    read = document(text)
    value, key = (
        read.place(("modelParams", "model")),
        read.key_place(("modelParams", "model")),
    )
    assert text[value.start : value.end] == '"m"'
    assert text[key.start : key.end] == "model"
