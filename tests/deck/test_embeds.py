"""Which images of a Markdown text embed something, and what comes of it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.deck.embeds import embed_kind, images, path_from_target
from gambit_actors.deck.toml_places import Span
from tests.deck.reading import deck_text, found, load, messages


def targets(text: str) -> list[str]:
    """The targets of the images of a text."""
    return [image.target for image in images(text, Span(0, len(text)))]


def prompt(text: str, **files: str) -> str:
    """The prompt of a body, with files beside it whose names have no ending."""
    table = {f"{name}.md": content for name, content in files.items()}
    return load({"PROMPT.md": text, **table}).usable().prompt


@pytest.mark.parametrize(
    "image",
    [
        "![](a.md)",
        "![label](a.md)",
        "![two\nlines](a.md)",
        "![](<a.md>)",
        '![](a.md "title")',
        "![](a.md 'title')",
        "![]( a.md )",
        "> ![](a.md)",
        "- ![](a.md)",
        "x![](a.md)y",
        "[![](a.md)](https://library.example)",
    ],
)
def test_an_image_has_a_target(image: str) -> None:
    """All forms of an image in Markdown are found, wherever they stand in a line."""
    assert targets(image) == ["a.md"]


@pytest.mark.parametrize(
    "text",
    [
        "[](a.md)",
        "!(a.md)",
        "![](a.md",
        "![ ] (a.md)",
        "\\![](a.md)",
        "`![](a.md)`",
        "``a ` ![](a.md)``",
        "`two\nlines ![](a.md)`",
        "```\n![](a.md)\n```",
        "```md\n![](a.md)\n```",
        "~~~\n![](a.md)\n~~~",
        "~~~\n![](a.md)\n```\n![](a.md)",
        "````\n```\n![](a.md)\n```\n````",
        "> ```\n> ![](a.md)\n> ```",
        "- item\n  ```\n  ![](a.md)\n  ```",
        "```\n![](a.md) and no end",
        "<!-- ![](a.md) -->",
        "<!-- two\nlines ![](a.md) -->",
        "<!-- ![](a.md) and no end",
    ],
)
def test_what_is_not_an_image(text: str) -> None:
    """A link, code, a comment and what is behind a backslash are left alone."""
    assert targets(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "`code` ![](a.md) `code`",
        "a ` alone ![](a.md)",
        "a ` alone\n\n![](a.md) in the next paragraph `",
        "`` a ` ![](a.md)",
        "```\ncode\n```\n![](a.md)",
        "```code``` ![](a.md)",
        "<!-- closed --> ![](a.md)",
        "\\\\![](a.md)",
        "![ [](x) ![](a.md)",
    ],
)
def test_code_ends_where_it_ends(text: str) -> None:
    """What follows code or a comment, or backticks without a partner, is an image."""
    assert targets(text) == ["a.md"]


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("gambit://snippets/respond.md", "built-in"),
        ("gambit://anything", "built-in"),
        ("./a.md", "file"),
        ("../b/A.MD", "file"),
        ("a.markdown", "file"),
        ("a.txt", "file"),
        ("./a.ts", "code"),
        ("a.py", "code"),
        ("./a.png", None),
        ("a", None),
        ("https://library.example/a.md", None),
        ("//library.example/a.md", None),
        ("data:text/markdown,a.md", None),
        ("#a.md", None),
    ],
)
def test_what_a_target_embeds(target: str, kind: str | None) -> None:
    """Built-ins and texts are embedded, code is a mistake, the rest are images."""
    assert embed_kind(target) == kind


def test_a_snippet_takes_the_place_of_its_image() -> None:
    """It comes without its frontmatter and the space around it."""
    snippet = '+++\nlabel = "S"\n+++\n\n  one\ntwo\n\n'
    assert prompt("a ![x](s.md) b", s=snippet) == "a one\ntwo b"


def test_a_name_can_be_written_with_escapes() -> None:
    """A space in the name of a file is %20, or stands in angle brackets."""
    assert path_from_target("my%20%C3%BCber.md") == "my über.md"
    files = {"PROMPT.md": "![](my%20file.md) ![](<my file.md>)", "my file.md": "S"}
    assert load(files).usable().prompt == "S S"


def test_a_snippet_with_images_is_expanded_each_time() -> None:
    """One snippet may come many times, and is one source."""
    files = {"PROMPT.md": "![](a.md) ![](a.md)", "a.md": "A![](b.md)", "b.md": "B"}
    deck = load(files).usable()
    assert deck.prompt == "AB AB"
    assert deck.sources == ("PROMPT.md", "a.md", "b.md")


@pytest.mark.parametrize(
    ("files", "chain"),
    [
        ({"PROMPT.md": "![](PROMPT.md)"}, "PROMPT.md -> PROMPT.md"),
        ({"PROMPT.md": "![](a.md)", "a.md": "![](./a.md)"}, "a.md -> a.md"),
        (
            {"PROMPT.md": "![](a.md)", "a.md": "![](b.md)", "b.md": "![](PROMPT.md)"},
            "PROMPT.md -> a.md -> b.md -> PROMPT.md",
        ),
    ],
)
def test_a_circle_is_shown(files: dict[str, str], chain: str) -> None:
    """A file that embeds itself, at once or in the end, is an error with the chain."""
    loaded = load(files)
    assert [code for code, *_ in found(loaded)] == ["GD051"]
    assert f"circle: {chain}." in messages(loaded)[0]
    assert loaded.deck is None


def test_snippets_bring_more_than_text() -> None:
    """Flags, actions, scenarios and graders of a snippet are those of the deck."""
    action = deck_text(
        'contextSchema = "s.json"\nresponseSchema = "s.json"\nrespond = true'
    )
    snippet = deck_text(
        """
        allowEnd = true
        [[actions]]
        name = "look"
        description = "Look."
        path = "../a/PROMPT.md"
        [[scenarios]]
        path = "../a/PROMPT.md"
        """,
        "S",
    )
    files = {
        "PROMPT.md": "![](s/s.md)",
        "s/s.md": snippet,
        "a/PROMPT.md": action,
        "a/s.json": "{}",
    }
    loaded = load(files)
    assert loaded.diagnostics == ()
    deck = loaded.usable()
    assert deck.allow_end
    assert deck.actions[0].target == deck.scenarios[0].link
    assert deck.scenarios[0].link.path == "a/PROMPT.md"


def test_a_snippet_cannot_have_everything() -> None:
    """Handlers in one are an error, and keys of a deck have no effect."""
    snippet = deck_text('startMode = "user"\n[handlers.onIdle]\npath = "x"')
    loaded = load({"PROMPT.md": "![](s.md)", "s.md": snippet})
    assert found(loaded) == [("GD054", 3, 2), ("GD014", 2, 1)]


def test_a_bad_snippet_is_told_in_its_own_file() -> None:
    """Bad TOML in a snippet is an error of the deck, placed in the snippet."""
    loaded = load({"PROMPT.md": "![](s.md)", "s.md": "+++\na = = 1\n+++\n"})
    (problem,) = loaded.diagnostics
    assert (problem.code, problem.file, problem.line) == ("GD003", "s.md", 2)
    assert loaded.deck is None


def test_an_unreadable_snippet_is_an_error_of_the_deck() -> None:
    """A snippet that is not text, or not to be had, is told where it is."""
    files: dict[str, str | OSError] = {
        "PROMPT.md": "![](a.md) ![](b.md)",
        "a.md": "\n\udcff",
        "b.md": OSError("gone"),
    }
    loaded = load(files)
    assert found(loaded) == [("GD005", 2, 1), ("GD005", 1, 1)]
    assert loaded.deck is None


def test_snippets_that_double_end_soon() -> None:
    """Thirty snippets that each embed the next one twice are one error, at once."""
    files = {f"{n}.md": f"![]({n + 1}.md)![]({n + 1}.md)" for n in range(30)}
    files |= {"PROMPT.md": "![](0.md)", "30.md": "bomb"}
    start = time.process_time()
    loaded = load(files)
    assert time.process_time() - start < 5
    assert [code for code, *_ in found(loaded)] == ["GD055"]
    assert loaded.deck is None


def test_snippets_that_are_large_end_soon() -> None:
    """A large text that is embedded over and over is one error, and not a prompt."""
    files = {"PROMPT.md": "![](a.md)" * 1000, "a.md": "x" * 1_000_000}
    loaded = load(files)
    assert [code for code, *_ in found(loaded)] == ["GD055"]


def test_snippets_can_be_nested_but_not_without_end() -> None:
    """Thirty-two levels are fine; a chain of hundreds is an error, not a crash."""
    for depth, codes in ((32, []), (33, ["GD055"]), (3000, ["GD055"])):
        files = {f"{n}.md": f"![]({n + 1}.md)" for n in range(1, depth)}
        files |= {"PROMPT.md": "![](1.md)", f"{depth}.md": "end"}
        loaded = load(files)
        assert [code for code, *_ in found(loaded)] == codes


HOSTILE = {
    "images": "![a](b.png) ",
    "openings": "![",
    "labels": "![a](",
    "backticks": "` ",
    "growing backticks": "",
    "comments": "<!-- ",
    "closed comments": "<!-- --> ",
    "backslashes": "\\",
    "fences": "```\n",
    "quotes": '![](a "',
    "spaces": "![](a    ",
    "brackets": "![](<",
    "paragraphs": "`\n\n",
    "quoted lines": "> > > > \n",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_looking_for_images_takes_linear_time(name: str) -> None:
    """A hundred thousand of anything takes about ten times as long as ten thousand."""

    def seconds(count: int) -> float:
        text = HOSTILE[name] * count
        if not text:
            text = " ".join("`" * (n % 400 + 1) for n in range(count // 50))
        start = time.process_time()
        images(text, Span(0, len(text)))
        return time.process_time() - start

    small = min(seconds(10_000) for _ in range(3))
    # Quadratic would be a hundred times; the rest is for a busy machine.
    assert seconds(100_000) < max(small, 0.002) * 40


@given(st.text(alphabet="`~!<>-[]()\\ \nab./md", max_size=80))
def test_any_text_has_images_in_order(text: str) -> None:
    """Images are parts of the text, one after the other, with targets inside."""
    at = 0
    for image in images(text, Span(0, len(text))):
        assert at <= image.span.start < image.target_span.start
        assert image.target_span.end < image.span.end <= len(text)
        start, end = image.target_span.start, image.target_span.end
        assert text[start:end] == image.target
        at = image.span.end


@given(st.text(alphabet="`~!<>-[]() \nab", max_size=60))
def test_a_prompt_without_embeds_is_its_body(text: str) -> None:
    """Where nothing is embedded, nothing is changed but the space around."""
    deck = load("x" + text).deck
    assert deck is not None
    assert deck.prompt == ("x" + text).strip()
