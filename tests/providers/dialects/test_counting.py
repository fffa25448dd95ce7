"""Token counts, which servers send in many wrong ways."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.dialects.counting import (
    MOST_TOKENS,
    token_count,
    usage_of,
)


@pytest.mark.parametrize(
    "value",
    [None, True, "12", -1, 1e30, math.nan, math.inf, [1], {}, MOST_TOKENS + 1],
)
def test_what_is_no_count_is_none(value: JSONValue) -> None:
    """Text, truth values, negative and impossible numbers are no counts."""
    assert token_count(value) is None
    assert usage_of(input_tokens=value, output_tokens=1) is None
    assert usage_of(input_tokens=1, output_tokens=value) is None


@given(*[st.integers(0, MOST_TOKENS)] * 5)
def test_a_total_is_never_less_than_its_parts(
    spent: int, made: int, total: int, cached: int, thought: int
) -> None:
    """The total is at least the sum, and no detail is more than what it details."""
    usage = usage_of(
        input_tokens=spent,
        output_tokens=made,
        total_tokens=total,
        cached_tokens=cached,
        reasoning_tokens=thought,
    )

    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (spent, made)
    assert usage.total_tokens == max(total, spent + made)
    assert usage.input_tokens_details.cached_tokens == min(cached, spent)
    assert usage.output_tokens_details.reasoning_tokens == min(thought, made)


def test_a_fraction_of_a_token_is_cut_off() -> None:
    """A count that comes as a fraction is read as a whole number."""
    assert token_count(12.0) == 12
