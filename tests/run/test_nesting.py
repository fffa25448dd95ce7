"""How deep JSON may be nested."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.run.nesting import MOST_LEVELS, is_too_deep

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('[]{}\\"ab'),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text('[{\\"', max_size=3), inner, max_size=4)
    ),
)


def nested(levels: int, inside: object = 1) -> object:
    """A value within so many lists and objects."""
    for level in range(levels):
        inside = [inside] if level % 2 else {"a": inside}
    return inside


def depth(value: object) -> int:
    """How deep a value is nested, found out the slow way."""
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


@pytest.mark.parametrize("levels", [0, 1, MOST_LEVELS - 1, MOST_LEVELS])
def test_the_limit_itself_is_allowed(levels: int) -> None:
    """As many levels as there may be are not too many."""
    assert not is_too_deep(json.dumps(nested(levels)))


@pytest.mark.parametrize("levels", [MOST_LEVELS + 1, 100_000])
def test_one_level_more_is_too_deep(levels: int) -> None:
    """However deep: nothing here is done by recursion."""
    assert is_too_deep("[" * levels + "]" * levels)


@given(JSON)
def test_brackets_in_texts_are_no_levels(value: object) -> None:
    """Many brackets in a shallow value are not taken for depth, and none is missed."""
    inner = MOST_LEVELS - depth(value)
    for levels, expected in ((inner, False), (inner + 1, True)):
        text = json.dumps([nested(levels - 1, value), "[" * 300, "{" * 300])
        assert is_too_deep(text) is expected


def test_many_brackets_side_by_side_are_not_deep() -> None:
    """What counts is how many are open, not how many there are."""
    assert not is_too_deep(json.dumps([[] for _ in range(10_000)]))
