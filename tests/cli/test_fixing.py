"""Edits of diagnostics are applied whole, in any order, and never do harm."""

import random
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.cli.fixing import Fixes, apply_edits, fix_texts
from gambit_actors.schema.diagnostics import Diagnostic, Edit, Severity

TEXT = "one two three"


def finding(
    *edits: tuple[int, int, str],
    message: str = "m",
    file: str = "f",
    severity: Severity = "warning",
) -> Diagnostic:
    """Make a diagnostic with these edits."""
    return Diagnostic(
        code="GD010",
        severity=severity,
        message=message,
        file=file,
        line=1,
        column=1,
        edits=tuple(
            Edit(start=start, end=end, text=text) for start, end, text in edits
        ),
    )


class Read(NamedTuple):
    """A reading by hand."""

    diagnostics: tuple[Diagnostic, ...]
    texts: Mapping[str, str]


def fix(
    texts: dict[str, str],
    diagnose: Callable[[Mapping[str, str]], list[Diagnostic]],
    *,
    may_change: Callable[[str], bool] = lambda _: True,
) -> Fixes:
    """Fix texts about which a function says something."""

    def read(changed: Mapping[str, str]) -> Read:
        now = texts | dict(changed)
        return Read(tuple(diagnose(now)), now)

    return fix_texts(read({}), read, may_change=may_change)


def says(word: str, other: str) -> Callable[[Mapping[str, str]], list[Diagnostic]]:
    """Complain about the first of a word in each text, and offer another."""
    return lambda texts: [
        finding((at, at + len(word), other), file=file)
        for file, text in texts.items()
        if (at := text.find(word)) >= 0
    ]


def test_all_edits_of_a_diagnostic_are_applied() -> None:
    """A diagnostic may change several places at once."""
    both = finding((0, 3, "1"), (8, 13, "3"))
    assert apply_edits(TEXT, [both]) == ("1 two 3", (both,))


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        pytest.param([(0, 3, "1"), (3, 7, "")], "1 three", id="side by side"),
        pytest.param([(0, 3, "1"), (3, 3, "!")], "1! two three", id="insert after"),
        pytest.param([(4, 7, "2"), (4, 4, "!")], "one !2 three", id="insert before"),
        pytest.param([(0, 0, "a"), (13, 13, "z")], "aone two threez", id="both ends"),
        pytest.param([(0, 7, "1"), (4, 13, "2")], "1 three", id="overlap"),
        pytest.param([(0, 13, "1"), (4, 7, "2")], "1", id="inside"),
        pytest.param([(0, 7, "1"), (3, 3, "2")], "1 three", id="insert inside"),
        pytest.param([(4, 4, "b"), (4, 4, "a")], "one atwo three", id="same point"),
        pytest.param([(4, 7, "2"), (4, 7, "2")], "one 2 three", id="same edit"),
    ],
)
def test_of_two_that_overlap_the_later_waits(
    edits: list[tuple[int, int, str]], expected: str
) -> None:
    """Neighbours are both applied; of those in each other's way, the one above."""
    findings = [finding(edit) for edit in edits]
    assert apply_edits(TEXT, findings).text == expected
    assert apply_edits(TEXT, findings[::-1]).text == expected


def test_a_diagnostic_is_applied_whole_or_not_at_all() -> None:
    """One edit without a place keeps the others of its diagnostic out."""
    first, second = finding((4, 7, "2")), finding((5, 6, "x"), (8, 13, "3"))
    assert apply_edits(TEXT, [first, second]) == ("one 2 three", (first,))
    itself = finding((0, 5, "a"), (4, 7, "b"))
    assert apply_edits(TEXT, [itself]) == (TEXT, ())


@pytest.mark.parametrize("edit", [(-1, 2, ""), (3, 2, ""), (0, 14, ""), (14, 14, "")])
def test_edits_that_do_not_fit_the_text_are_left_out(
    edit: tuple[int, int, str],
) -> None:
    """Offsets outside of the text mean that it is another text."""
    assert apply_edits(TEXT, [finding(edit), finding((0, 0, ""))]) == (TEXT, ())


def test_an_edit_that_changes_nothing_fixes_nothing() -> None:
    """Text replaced by itself is no fix, and no reason for another round."""
    assert apply_edits(TEXT, [finding((0, 3, "one"))]) == (TEXT, ())


Drawn: TypeAlias = tuple[str, list[list[tuple[int, int, str]]], random.Random]

edits_of_texts: st.SearchStrategy[Drawn] = st.text(
    "ab\r\n\ufeff\N{GRINNING FACE}", max_size=30
).flatmap(
    lambda text: st.tuples(
        st.just(text),
        st.lists(
            st.lists(
                st.tuples(
                    st.integers(-1, len(text) + 1),
                    st.integers(-1, len(text) + 1),
                    st.text("xyz", max_size=3),
                ),
                max_size=3,
            ),
            max_size=8,
        ),
        st.randoms(use_true_random=False),
    )
)


@pytest.mark.slow
@given(edits_of_texts)
def test_the_order_of_edits_does_not_matter(drawn: Drawn) -> None:
    """However diagnostics and their edits are shuffled, the text is the same."""
    text, groups, shuffler = drawn
    result = apply_edits(text, [finding(*group) for group in groups]).text
    shuffled = [shuffler.sample(group, len(group)) for group in groups]
    shuffler.shuffle(shuffled)
    assert apply_edits(text, [finding(*group) for group in shuffled]).text == result


@pytest.mark.slow
@given(edits_of_texts)
def test_nothing_outside_of_edits_changes(drawn: Drawn) -> None:
    """Text that no applied edit covers is all there, in its order."""
    text, groups, _ = drawn
    applied = apply_edits(text, [finding(*group) for group in groups])
    covered = {
        offset
        for diagnostic in applied.fixed
        for edit in diagnostic.edits
        for offset in range(edit.start, edit.end)
    }
    kept = "".join(c for offset, c in enumerate(text) if offset not in covered)
    # Edits only ever bring x, y and z, which are not in the text.
    assert "".join(c for c in applied.text if c not in "xyz") == kept
    brought = sum(len(e.text) for found in applied.fixed for e in found.edits)
    assert len(applied.text) == len(kept) + brought


def test_fixes_go_on_until_nothing_is_left() -> None:
    """A fix that only shows when another was made is made as well."""
    fixes = fix({"f": "aaa", "g": "b"}, says("a", "b"))
    assert (fixes.before, fixes.after) == ({"f": "aaa"}, {"f": "bbb"})
    assert len(fixes.fixed) == 3
    assert fixes.reading.diagnostics == ()


def test_fixes_that_undo_each_other_come_to_an_end() -> None:
    """There are only so many rounds."""
    fixes = fix({"f": "a"}, lambda t: [*says("a", "b")(t), *says("b", "a")(t)])
    assert len(fixes.fixed) == 10


def test_only_what_may_change_is_changed() -> None:
    """A file that is none of our business keeps its text and its findings."""
    fixes = fix({"f": "a", "g": "a"}, says("a", "b"), may_change=lambda f: f == "g")
    assert fixes.after == {"g": "b"}
    assert [found.file for found in fixes.reading.diagnostics] == ["f"]


def test_a_fix_that_brings_a_new_error_is_refused() -> None:
    """Its file stays as it was, the error is named, and other files are fixed."""

    def diagnose(texts: Mapping[str, str]) -> list[Diagnostic]:
        found = says("a", "b")(texts)
        if "b" in texts["bad"]:
            found.append(finding(file="bad", message="no b", severity="error"))
        return found

    fixes = fix({"bad": "a", "good": "a"}, diagnose)
    assert fixes.after == fixes.before | {"good": "b"} == {"good": "b"}
    assert {file: error.message for file, error in fixes.refused.items()} == {
        "bad": "no b"
    }
    assert [found.file for found in fixes.fixed] == ["good"]
    assert [found.file for found in fixes.reading.diagnostics] == ["bad"]


def test_an_error_elsewhere_refuses_all_fixes() -> None:
    """If a file that was not touched breaks, nobody knows which fix it was."""

    def diagnose(texts: Mapping[str, str]) -> list[Diagnostic]:
        broken = [finding(file="other", message="broken", severity="error")]
        return says("a", "b")(texts) + broken * ("b" in texts["f"] + texts["g"])

    fixes = fix({"f": "a", "g": "a", "other": ""}, diagnose)
    assert fixes.after == {}
    assert fixes.refused.keys() == {"f", "g"}


def test_an_error_that_was_there_before_refuses_nothing() -> None:
    """Errors may stay, and new warnings may come; one more of an error may not."""

    def diagnose(texts: Mapping[str, str]) -> list[Diagnostic]:
        name = "actions[1]" if "b" in texts["f"] else "actionDecks[0]"
        old = finding(file="f", message=f"{name} is bad", severity="error")
        new = finding(file="f", message="new")
        return [*says("a", "b")(texts), old, *([new] * ("b" in texts["f"]))]

    assert fix({"f": "a"}, diagnose).after == {"f": "b"}

    def doubled(texts: Mapping[str, str]) -> list[Diagnostic]:
        old = finding(file="f", message="old", severity="error")
        return [*says("a", "b")(texts), *[old] * (1 + texts["f"].count("b"))]

    assert fix({"f": "a"}, doubled).refused.keys() == {"f"}
