"""Values of a frontmatter: their types, their limits, and the words about them."""

import pytest

from gambit_actors.deck.documents import document_from_text
from gambit_actors.deck.findings import Findings
from gambit_actors.deck.keys import TOP_LEVEL_KEYS
from gambit_actors.deck.tables import Table, did_you_mean
from tests.deck.reading import deck_text


def table_of(toml: str) -> Table:
    """The top table of a deck."""
    document = document_from_text("PROMPT.md", deck_text(toml))
    assert document.problems == ()
    return Table(document, Findings("warn"), document.values)


def said(table: Table) -> list[tuple[str, int, int]]:
    """The code and the place of what a table has found."""
    return [(d.code, d.line, d.column) for d in table.findings]


def only_message(table: Table) -> str:
    """The words of the one thing that a table has found."""
    (finding,) = table.findings
    return finding.message


def test_text_comes_without_the_space_around_it() -> None:
    """A string is stripped, and one that is missing is None."""
    table = table_of('a = "  x "')
    assert (table.text("a"), table.text("b")) == ("x", None)
    assert said(table) == []


@pytest.mark.parametrize(
    ("toml", "code", "message"),
    [
        ("a = 3", "GD011", "a: expected a string, got 3."),
        ("a = []", "GD011", "a: expected a string, got []."),
        ("[a]", "GD011", "a: expected a string, got a table."),
        ('a = "  "', "GD012", "a is blank."),
    ],
)
def test_text_that_is_none(toml: str, code: str, message: str) -> None:
    """Another type and a blank string are errors, and count as missing."""
    table = table_of(toml)
    assert table.text("a") is None
    assert [code for code, *_ in said(table)] == [code]
    assert only_message(table) == message


def test_a_required_text_that_is_missing() -> None:
    """It is told at the table that should have it."""
    (entry,) = table_of('[[actions]]\nlabel = "x"').tables("actions")
    assert entry.text("name", required=True) is None
    assert said(entry) == [("GD013", 2, 1)]
    assert only_message(entry).endswith("needs a name.")


def test_a_flag_is_true_or_false() -> None:
    """Nothing else will do, not even one or a word."""
    table = table_of('a = true\nb = false\nc = 1\nd = "true"')
    assert [table.flag(key) for key in "abcde"] == [True, False, None, None, None]
    assert said(table) == [("GD011", 4, 5), ("GD011", 5, 5)]


def test_a_number_is_within_its_limits() -> None:
    """Whole and broken numbers will do; a truth value is none."""
    table = table_of('a = 1\nb = 0.5\nc = true\nd = "1"\ne = 9\nf = -0.1')
    found = [table.number(key, least=0, most=1) for key in "abcdefg"]
    assert found == [1, 0.5, None, None, None, None, None]
    assert said(table) == [
        ("GD011", 4, 5),
        ("GD011", 5, 5),
        ("GD012", 6, 5),
        ("GD012", 7, 5),
    ]
    last = list(table.findings)[-1]
    assert last.message == "f is -0.1; it must be at least 0 and at most 1."


@pytest.mark.parametrize("value", ["inf", "-inf", "nan"])
def test_a_number_is_finite(value: str) -> None:
    """What TOML has beyond the numbers is refused, also where there is no limit."""
    table = table_of(f"a = {value}")
    assert table.number("a") is None
    assert only_message(table).endswith("it must be a finite number.")
    again = table_of(f"a = {value}")
    assert again.whole("a", least=0) is None
    assert [code for code, *_ in said(again)] == ["GD012"]


def test_a_whole_number() -> None:
    """Three and three point nothing are the same; a half is not one."""
    table = table_of("a = 3\nb = 3.0\nc = 3.5\nd = 0")
    assert [table.whole(key, least=1) for key in "abcd"] == [3, 3, None, None]
    assert isinstance(table.whole("b", least=1), int)
    assert said(table) == [("GD011", 4, 5), ("GD012", 5, 5)]


def test_a_choice() -> None:
    """One of a few words, with a guess at what was meant."""
    table = table_of('a = "low"\nb = "hihg"\nc = 3')
    assert [table.choice(key, ("low", "high")) for key in "abcd"] == [
        *("low", None, None, None)
    ]
    first, second = table.findings
    assert (first.code, first.hint) == ("GD012", "Did you mean high?")
    assert first.message == 'b is "hihg"; it can be "low", "high".'
    assert second.code == "GD011"


def test_a_list_of_texts() -> None:
    """Entries are stripped, and each that is not a text is told where it stands."""
    table = table_of('a = ["x ", 3, "", "y"]\nb = "x"')
    assert table.texts("a") == ("x", "y")
    assert table.texts("b") is None
    assert table.texts("c") is None
    assert said(table) == [("GD011", 2, 12), ("GD011", 2, 15), ("GD011", 3, 5)]


def test_tables_and_lists_of_tables() -> None:
    """A table in a table knows where it is; anything else is an error."""
    table = table_of('b = 1\nc = [1, {x = "y"}]\n[a.d]\n[[e]]\n[[e]]')
    inner = table.table("a")
    assert inner is not None
    deeper = inner.table("d")
    assert deeper is not None
    assert deeper.path == ("a", "d")
    assert table.table("b") is None
    assert [entry.path for entry in table.tables("c")] == [("c", 1)]
    assert [entry.path for entry in table.tables("e")] == [("e", 0), ("e", 1)]
    assert table.tables("a") == []
    assert table.tables("missing") == []
    assert [(code, line) for code, line, _ in said(table)] == [
        ("GD011", 2),
        ("GD011", 3),
        ("GD011", 4),
    ]


def test_keys_that_are_not_known() -> None:
    """They are warned of with a guess, with a reason, or with neither."""
    table = table_of('lable = "x"\nidle = 1\nqqqqqq = 2\nlabel = "y"')
    table.check_keys(("label", "startMode"), idle={"idle": "nobody reads it"})
    first, second, third = table.findings
    assert (first.code, first.hint) == ("GD010", "Did you mean label?")
    assert (second.code, second.message) == (
        *("GD014", "idle has no effect: nobody reads it."),
    )
    assert (third.code, third.hint) == ("GD010", None)
    assert all(found.severity == "warning" for found in table.findings)


def test_a_key_of_the_top_in_a_table_is_noticed() -> None:
    """The classic slip: a key below a table belongs to that table."""
    inner = table_of('[modelParams]\nmodel = "m"\nrespond = true').table("modelParams")
    assert inner is not None
    inner.check_keys(("model",))
    (finding,) = inner.findings
    assert finding.line == 4
    assert finding.hint is not None
    assert finding.hint.endswith("move respond up, above the first line in brackets.")


def test_a_guess_is_made_only_if_it_is_close() -> None:
    """Case does not count; a stranger and an endless name get no guess."""
    assert did_you_mean("STARTMODE", TOP_LEVEL_KEYS) == "Did you mean startMode?"
    assert did_you_mean("contextschema", TOP_LEVEL_KEYS) == (
        "Did you mean contextSchema?"
    )
    assert did_you_mean("weather", TOP_LEVEL_KEYS) is None
    assert did_you_mean("label" * 1000, TOP_LEVEL_KEYS) is None
    assert did_you_mean("x", []) is None


def test_old_names_weigh_what_the_policy_says() -> None:
    """A deprecation becomes an error where it is refused; a warning stays one."""
    document = document_from_text("PROMPT.md", deck_text('a = "x"'))
    for policy, severity in (("warn", "warning"), ("refuse", "error")):
        findings = Findings("refuse" if policy == "refuse" else "warn")
        table = Table(document, findings, document.values)
        table.report("GD081", "warning", "Old.", key="a")
        table.report("GD010", "warning", "Unknown.", key="a")
        assert [found.severity for found in findings] == [severity, "warning"]
        assert findings.has_errors == (policy == "refuse")


def test_the_same_is_said_once() -> None:
    """Two equal findings are one."""
    table = table_of("a = 3")
    assert table.text("a") is None
    assert table.text("a") is None
    assert len(said(table)) == 1
