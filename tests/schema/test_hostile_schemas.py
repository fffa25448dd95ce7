"""No schema, however it was made, gets more out of us than a refusal in words."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import SchemaError
from gambit_actors.schema.matching import differences, grader_problems
from gambit_actors.schema.validation import Validator

NAMES = st.sampled_from(["a", "b", "~", "a/b", "%41", "é", ""])
REFERENCES = ["#", "#/$defs/a", "#/$defs/b", "#/$defs/~0", "#/$defs/a~1b", "#x", "a"]

anything = st.none() | st.integers(-2, 3) | st.sampled_from(["a", "string", "("])


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Make schemas from keywords with a liking for what makes trouble."""
    table = st.dictionaries(NAMES, inner, max_size=3)
    many = st.lists(inner, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "array", "string", "null", "integer"])
            | anything,
            "properties": table,
            "$defs": table,
            "required": st.lists(NAMES, unique=True, max_size=2),
            "items": inner,
            "prefixItems": many,
            "additionalProperties": inner | st.booleans(),
            "anyOf": many,
            "oneOf": many,
            "allOf": many,
            "not": inner,
            "default": anything,
            "const": anything,
            "enum": st.lists(anything, min_size=1, max_size=3),
            "pattern": st.sampled_from(["^a", "(", "(a+)+$", "(?=a)"]),
            "$ref": st.sampled_from(REFERENCES),
            "$id": st.sampled_from(["http://x.test/s", "urn:a"]),
            "x-gambit-unknownKeys": st.sampled_from(["strip", "refuse"]) | anything,
        },
    )


schemas = st.recursive(st.just({}) | keywords(anything), keywords, max_leaves=5)
values = st.recursive(
    anything | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.mark.slow
@given(schemas, values)
def test_any_schema_checks_or_is_refused(schema: dict[str, Any], value: Any) -> None:  # noqa: ANN401
    """A schema is refused with a reason, or checks any value without raising."""
    try:
        validator = Validator(schema)
    except SchemaError:
        return
    assert repr(validator.check(value)) == repr(validator.check(value))


@pytest.mark.slow
@given(schemas, schemas)
def test_any_two_schemas_can_be_compared(
    left: dict[str, Any], right: dict[str, Any]
) -> None:
    """Comparing never raises, finds no difference to itself, and is symmetric."""
    assert differences(left, left) == []
    assert bool(differences(left, right)) == bool(differences(right, left))
    assert grader_problems(left, right)
