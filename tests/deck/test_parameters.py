"""The values that keys take, from the first that is allowed to the last."""

import pytest

from gambit_actors.deck.model import ModelParams, Reasoning
from tests.deck.reading import deck_text, found, load

IDLE_KEYS = {
    "acceptsUserTurns": "it is not part of the deck format",
    "description": "describe a deck where it is referred to, or in INTENT.md",
    "input": "it is not part of the deck format",
    "maxTurns": "it belongs into the [[scenarios]] entry that refers to this deck",
    "responseItemExtensions": "it belongs to a newer Gambit",
    "workloop": "it belongs to a newer Gambit",
}


@pytest.mark.spec("DK-31")
@pytest.mark.parametrize("mode", ["user", "assistant"])
def test_either_side_may_start(mode: str) -> None:
    """The startMode is user or assistant, and kept as it is written."""
    loaded = load(deck_text(f'startMode = "{mode}"'))
    assert found(loaded) == []
    assert loaded.usable().start_mode == mode


@pytest.mark.spec("DK-31")
@pytest.mark.parametrize(("key", "reason"), IDLE_KEYS.items())
def test_a_key_without_effect_is_explained(key: str, reason: str) -> None:
    """A key that decks of others have is a warning with the reason, and no guess."""
    loaded = load(deck_text(f"{key} = 1"))
    assert found(loaded) == [("GD014", 2, 1)]
    (warning,) = loaded.diagnostics
    assert warning.message.startswith(f"{key} has no effect: ")
    assert reason in warning.message
    assert (warning.severity, warning.hint) == ("warning", None)
    assert loaded.deck is not None


@pytest.mark.parametrize("key", ["asyncStart", "intermediateOutput"])
def test_a_key_of_an_action_without_effect_is_explained(key: str) -> None:
    """What only a newer Gambit does with actions is a warning."""
    text = f'[[actions]]\nname = "a"\ndescription = "A."\npath = "PROMPT.md"\n{key} = 1'
    schemas = 'contextSchema = "a.json"\nresponseSchema = "a.json"\nrespond = true\n'
    loaded = load({"PROMPT.md": deck_text(schemas + text), "a.json": "{}"})
    assert found(loaded) == [("GD014", 9, 1)]
    assert "newer Gambit" in loaded.diagnostics[0].message


@pytest.mark.parametrize(
    "key",
    [
        "contextSchema",
        "guardrails",
        "modelParams",
        "permissions",
        "responseSchema",
        "startMode",
        "tools",
    ],
)
def test_what_a_snippet_cannot_set_has_no_effect(key: str) -> None:
    """A key that is for decks only is a warning in a snippet, whatever its value."""
    loaded = load({"PROMPT.md": "![](s.md)", "s.md": deck_text(f"{key} = 1")})
    assert found(loaded) == [("GD014", 2, 1)]
    assert loaded.diagnostics[0].file == "s.md"
    assert loaded.deck is not None


@pytest.mark.spec("DK-32")
@pytest.mark.parametrize("effort", ["none", "low", "medium", "high", "xhigh"])
def test_every_effort_is_accepted(effort: str) -> None:
    """Each effort of reasoning is kept as it is written."""
    loaded = load(deck_text(f'modelParams.reasoning.effort = "{effort}"'))
    assert found(loaded) == []
    expected = ModelParams(reasoning=Reasoning(effort=effort))
    assert loaded.usable().model_params == expected


@pytest.mark.spec("DK-32")
@pytest.mark.parametrize("summary", ["concise", "detailed", "auto"])
def test_every_summary_is_accepted(summary: str) -> None:
    """Each kind of summary is kept as it is written."""
    loaded = load(deck_text(f'modelParams.reasoning.summary = "{summary}"'))
    assert found(loaded) == []
    expected = ModelParams(reasoning=Reasoning(summary=summary))
    assert loaded.usable().model_params == expected


@pytest.mark.spec("DK-32")
@pytest.mark.parametrize(
    ("row", "code"),
    [
        ('reasoning.effort = "minimal"', "GD012"),
        ('reasoning.summary = "minimal"', "GD012"),
        ("model = 5", "GD011"),
        ("model = true", "GD011"),
        ("model = {}", "GD011"),
        ("temperature = -0.1", "GD012"),
        ("temperature = -1", "GD012"),
        ("top_p = -0.1", "GD012"),
        ("top_p = 1.1", "GD012"),
        ("max_tokens = 0", "GD012"),
    ],
)
def test_other_parameters_are_refused(row: str, code: str) -> None:
    """A value of another type or beyond its limits is an error where it stands."""
    loaded = load(deck_text(f"modelParams.{row}"))
    column = len("modelParams.") + row.index("= ") + 3
    assert found(loaded) == [(code, 2, column)]
    assert loaded.deck is None


@pytest.mark.spec("DK-32")
@pytest.mark.parametrize(
    "row", ["temperature = 0", "top_p = 0", "top_p = 1", "max_tokens = 1"]
)
def test_the_limits_of_parameters_are_allowed(row: str) -> None:
    """The least and the most that a parameter can be are fine."""
    key, _, value = row.partition(" = ")
    loaded = load(deck_text(f"modelParams.{row}"))
    assert found(loaded) == []
    assert getattr(loaded.usable().model_params, key) == int(value)


@pytest.mark.spec("DK-32")
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("{ a = ", "}")])
def test_additional_parameters_are_nested_so_deep(opening: str, closing: str) -> None:
    """A hundred levels are passed on, and one more has no JSON form."""

    def row(depth: int) -> str:
        inside = "[]" if opening == "[" else "{}"
        value = opening * (depth - 1) + inside + closing * (depth - 1)
        return f"modelParams.additionalParams.x = {value}"

    assert found(load(deck_text(row(100)))) == []
    loaded = load(deck_text(row(101)))
    assert found(loaded) == [("GD015", 2, 34)]
    assert loaded.deck is None


@pytest.mark.spec("DK-33")
@pytest.mark.parametrize("key", ["maxDepth", "maxPasses"])
def test_a_guardrail_of_nothing_is_refused(key: str) -> None:
    """One level and one pass are the least that a deck can be limited to."""
    assert found(load(deck_text(f"guardrails.{key} = 1"))) == []
    loaded = load(deck_text(f"guardrails.{key} = 0"))
    assert found(loaded) == [("GD012", 2, len(f"guardrails.{key} = ") + 1)]
    assert loaded.deck is None


def test_only_so_many_errors_are_kept() -> None:
    """Of three hundred errors two hundred are told, and the deck is not usable."""
    loaded = load("![](x.py)\n" * 300)
    expected = [("GD053", line, 5) for line in range(1, 201)]
    assert found(loaded) == expected
    assert loaded.deck is None
