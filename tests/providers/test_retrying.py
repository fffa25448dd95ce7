"""When a request is sent again, and after how long."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import ProviderError
from gambit_actors.providers.endpoints import Retries
from gambit_actors.providers.errors import (
    ConnectionLost,
    NotAnAnswer,
    ProviderNotReady,
    ProviderStatusError,
    ProviderTimeout,
    ProviderUnreachable,
)
from gambit_actors.providers.retrying import (
    delay_before,
    is_worth_retrying,
    retry_after_seconds,
)

# Wed, 21 Oct 2015 07:28:00 GMT
_NOW = 1445412480.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": "1e9"}, 1e9),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:27:00 GMT"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "1"}, 1.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Wed, 99 Oct 20150000 07:27:00 GMT"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
@pytest.mark.spec("PA-8")
def test_what_a_server_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    """A wait is read as seconds, milliseconds or a date; what is none is no wait."""
    assert retry_after_seconds(headers, _NOW) == seconds


@given(text=st.text())
def test_any_text_may_be_a_wait(text: str) -> None:
    """Whatever a server sends, a wait is a finite number from 0 on, or none."""
    seconds = retry_after_seconds({"retry-after": text}, _NOW)
    assert seconds is None or (seconds >= 0 and math.isfinite(seconds))


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        *[
            (ProviderStatusError("p", status), True)
            for status in (408, 409, 425, 429, 500, 502, 503, 504, 529)
        ],
        *[
            (ProviderStatusError("p", status), False)
            for status in (204, 302, 400, 401, 403, 404, 413, 422, 501, 505)
        ],
        (ProviderStatusError("p", 429, code="rate_limit_exceeded"), True),
        (ProviderStatusError("p", 429, code="RESOURCE_EXHAUSTED"), True),
        (ProviderStatusError("p", 429, code="insufficient_quota"), False),
        (ProviderStatusError("p", 429, code="billing_hard_limit_reached"), False),
        (ProviderTimeout("p", "connect", 1), True),
        (ProviderTimeout("p", "first_byte", 1), True),
        (ProviderTimeout("p", "idle", 1), True),
        (ProviderTimeout("p", "total", 1), False),
        (ProviderUnreachable("p", "no"), True),
        (ConnectionLost("p", "no"), True),
        (NotAnAnswer("p", "no"), False),
        (ProviderNotReady("p", "no"), False),
        (ProviderError("no"), False),
    ],
)
@pytest.mark.spec("PA-8")
def test_what_is_worth_another_try(problem: ProviderError, *, expected: bool) -> None:
    """A server that is busy or away is asked again; one that says no is not."""
    assert is_worth_retrying(problem) is expected


def test_waits_double_up_to_the_cap() -> None:
    """The longest wait doubles from one to the next and ends at the cap."""
    retries = Retries(base_seconds=0.5, cap_seconds=3.0)
    waits = [delay_before(attempt, retries, None, 1.0) for attempt in range(1, 6)]
    assert waits == [0.5, 1.0, 2.0, 3.0, 3.0]


@pytest.mark.spec("PA-8")
def test_a_wait_asked_for_is_kept_up_to_the_cap() -> None:
    """A server is left alone as long as it asks for, but never longer than the cap."""
    retries = Retries(base_seconds=0.5, cap_seconds=30.0)
    assert delay_before(1, retries, 7.0, 0.0) == 7.0
    assert delay_before(1, retries, 1e9, 0.5) == 30.0


@given(
    attempt=st.integers(-3, 10**9),
    asked=st.none() | st.floats(allow_nan=False),
    jitter=st.floats(-1, 2, allow_nan=False),
    cap=st.floats(0, 1000),
)
def test_no_wait_is_longer_than_the_cap(
    attempt: int, asked: float | None, jitter: float, cap: float
) -> None:
    """Whatever is asked for, a wait is between nothing and the cap."""
    retries = Retries(cap_seconds=cap)
    assert 0 <= delay_before(attempt, retries, asked, jitter) <= cap
