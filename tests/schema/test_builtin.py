"""The seven built-in schemas are there, in every spelling, and mean what they say."""

from typing import Any

import pytest

from gambit_actors.schema.builtin import BUILTIN_URIS, builtin_name, builtin_schema
from gambit_actors.schema.schemas import load_schema
from gambit_actors.schema.validation import Validator

SCHEMAS = "gambit://schemas/"
DECK = "decks/a/PROMPT.md"


def no_files(path: str) -> str | None:
    """Stand for a disk that must not be touched."""
    raise AssertionError(path)


def load(reference: str) -> Any:  # noqa: ANN401
    """Load a built-in schema the way a deck does."""
    return load_schema(reference, base=DECK, read_file=no_files)


@pytest.mark.spec("DK-15")
@pytest.mark.parametrize(
    "name",
    [
        "graders/respond",
        "graders/grader_output",
        "graders/contexts/turn",
        "graders/contexts/turn_tools",
        "graders/contexts/conversation",
        "graders/contexts/conversation_tools",
        "scenarios/plain_chat_output",
    ],
)
def test_every_built_in_resolves(name: str) -> None:
    """Each of the seven URIs gives a schema that values can be checked against."""
    uri = f"{SCHEMAS}{name}.zod.ts"
    loaded = load(uri)
    assert (loaded.source, loaded.diagnostics) == (uri, ())
    assert Validator(loaded.schema).check(b"").problems
    assert uri in BUILTIN_URIS
    assert len(BUILTIN_URIS) == 7


@pytest.mark.spec("DK-15")
@pytest.mark.parametrize(
    ("name", "value", "seen", "problems"),
    [
        (
            "graders/respond",
            {"payload": [1], "status": 200, "meta": {"a": 1}, "junk": 1},
            {"payload": [1], "status": 200, "meta": {"a": 1}},
            [],
        ),
        (
            "graders/respond",
            {"status": "ok"},
            {"status": "ok"},
            ['status: expected a whole number, got "ok"'],
        ),
        (
            "graders/grader_output",
            {"score": 4, "evidence": "x"},
            {"score": 4, "evidence": "x"},
            [
                'evidence: expected a list, got "x"',
                "score: expected at most 3, got 4",
                "the key 'reason' is missing",
            ],
        ),
        (
            "graders/contexts/conversation",
            {"session": {"messages": [{"role": "user", "tool_calls": []}]}},
            {"session": {"messages": [{"role": "user"}]}},
            [],
        ),
        (
            "graders/contexts/turn_tools",
            {
                "session": {"notes": {"text": "n"}},
                "messageToGrade": {
                    "role": "assistant",
                    "tool_calls": [{"id": "1", "function": {"name": "f", "x": 1}}],
                },
            },
            {
                "session": {"notes": {"text": "n"}},
                "messageToGrade": {
                    "role": "assistant",
                    "tool_calls": [{"id": "1", "function": {"name": "f"}}],
                },
            },
            [],
        ),
        (
            "graders/contexts/turn",
            {"session": {}},
            {"session": {}},
            ["the key 'messageToGrade' is missing"],
        ),
        ("scenarios/plain_chat_output", 1, 1, ["expected a string, got 1"]),
    ],
)
def test_built_ins_check_and_strip(
    name: str,
    value: Any,  # noqa: ANN401
    seen: Any,  # noqa: ANN401
    problems: list[str],
) -> None:
    """The built-ins take the fields they list and drop the others."""
    schema = builtin_schema(f"{SCHEMAS}{name}.zod.ts")
    assert schema is not None
    checked = Validator(schema).check(value)
    assert checked.value == seen
    assert sorted(map(str, checked.problems)) == problems


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("graders/respond.ts", "graders/respond.zod.ts"),
        ("contexts/turn.zod.ts", "graders/contexts/turn.zod.ts"),
        ("contexts/turn_tools.ts", "graders/contexts/turn_tools.zod.ts"),
    ],
)
def test_old_spellings_resolve_with_a_warning(written: str, canonical: str) -> None:
    """A deprecated URI gives the schema, and a diagnostic with the new spelling."""
    loaded = load(SCHEMAS + written)
    (note,) = loaded.diagnostics
    assert loaded.source == SCHEMAS + canonical
    assert loaded.schema == builtin_schema(SCHEMAS + canonical)
    assert (note.code, note.severity, note.file) == ("GS043", "warning", DECK)
    assert SCHEMAS + canonical in note.message
    assert not builtin_name(loaded.source).is_deprecated


@pytest.mark.parametrize(
    ("uri", "hint"),
    [
        (
            f"{SCHEMAS}graders/grader_outptu.zod.ts",
            f"Did you mean {SCHEMAS}graders/grader_output.zod.ts?",
        ),
        ("gambit://", None),
    ],
)
def test_an_unknown_built_in_is_a_diagnostic(uri: str, hint: str | None) -> None:
    """A URI that names nothing is an error, with the closest one that does."""
    loaded = load(uri)
    (note,) = loaded.diagnostics
    assert loaded.schema is None
    assert (note.code, note.severity, note.hint) == ("GS042", "error", hint)


def test_nobody_shares_a_built_in() -> None:
    """What one caller does to a built-in is not seen by the next."""
    uri = BUILTIN_URIS[0]
    first = builtin_schema(uri)
    assert first is not None
    first["properties"].clear()
    assert builtin_schema(uri) != first
