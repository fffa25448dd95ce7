"""Ids of calls that had to be changed."""

import re

from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.providers.dialects.call_ids import fitting_id

STRICT = re.compile(r"[A-Za-z0-9_-]{1,64}")


@given(st.text())
def test_an_id_fits_always_and_stays_if_it_can(call_id: str) -> None:
    """Every id becomes one that is allowed, and one that is allowed stays."""
    fitting = fitting_id(call_id, STRICT)

    assert STRICT.fullmatch(fitting)
    assert fitting_id(call_id, STRICT) == fitting
    if STRICT.fullmatch(call_id):
        assert fitting == call_id


@given(st.sets(st.text(), min_size=2, max_size=6))
def test_different_ids_stay_different(ids: set[str]) -> None:
    """Calls are not mixed up by what their ids had to become."""
    assert len({fitting_id(call_id, STRICT) for call_id in ids}) == len(ids)
