"""Sealed reasoning, which only the dialect that sealed it opens."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.providers.dialects.sealing import is_sealed, seal, unseal

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
NAMES = st.text(string.ascii_lowercase, min_size=1)


@given(NAMES, JSON)
def test_what_a_dialect_sealed_it_opens(dialect: str, value: object) -> None:
    """Any JSON value comes out of its seal as it went in."""
    text = seal(dialect, value)

    assert is_sealed(text)
    assert unseal(dialect, text) == value


@given(NAMES, NAMES, JSON)
def test_no_other_dialect_opens_it(mine: str, other: str, value: object) -> None:
    """A dialect cannot open what another has sealed."""
    found = unseal(other, seal(mine, value))

    assert found == value if mine == other else found is None


@given(st.text() | st.none(), st.integers(0))
def test_what_is_no_seal_opens_to_nothing(text: str | None, cut: int) -> None:
    """Texts of servers, damaged seals and no text at all open to nothing."""
    whole = seal("chat", {"signature": "abc"})
    damaged = whole[: len("gambit-sealed:chat:") + cut % 12] + "!"

    assert unseal("chat", text) is None or (text is not None and is_sealed(text))
    assert unseal("chat", damaged) is None


@pytest.mark.parametrize("stray", ["!", " ", "\n", "\x00", "é"])
def test_a_seal_with_a_stray_character_in_it_opens_to_nothing(stray: str) -> None:
    """It is not what was sealed, and what is left of it is not taken for that."""
    whole = seal("chat", {"signature": "abc"})
    inside = len("gambit-sealed:chat:") + 4

    assert unseal("chat", whole) == {"signature": "abc"}
    assert unseal("chat", whole[:inside] + stray + whole[inside:]) is None
