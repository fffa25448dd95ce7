"""Whether a request is sent again, and when. Plain functions of what went wrong.

They are for requests of whose answer nothing was passed on: who has passed an event on
must not ask again.
"""

import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from gambit_actors.errors import ProviderError
from gambit_actors.providers.endpoints import Retries
from gambit_actors.providers.errors import (
    ConnectionLost,
    ProviderStatusError,
    ProviderTimeout,
    ProviderUnreachable,
)

_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_TOO_MANY_REQUESTS = 429
# What servers call an account that is used up. Waiting for seconds does not fill it.
_USED_UP = ("insufficient", "billing", "credit", "payment", "exceeded_current_quota")
_MOST_DOUBLINGS = 60
_MS_PER_SECOND = 1000


def retry_after_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """How long a server asks to be left alone; None if it does not say.

    It may be any number from 0 on: who waits has a limit of its own.

    Args:
        headers: of the answer, by lower-case name.
        now: seconds since 1970, for a server that gives a date.
    """
    in_ms = _number(headers.get("retry-after-ms", ""))
    if in_ms is not None:
        return max(0.0, in_ms / _MS_PER_SECOND)
    asked = headers.get("retry-after", "").strip()
    seconds = _number(asked)
    if seconds is None:
        seconds = _seconds_until(asked, now)
    return None if seconds is None else max(0.0, seconds)


def is_worth_retrying(problem: ProviderError) -> bool:
    """Whether the same request may well be answered a little later."""
    match problem:
        case ProviderStatusError(status=status, code=code):
            if status == _TOO_MANY_REQUESTS:
                return not any(word in code.lower() for word in _USED_UP)
            return status in _TRANSIENT
        case ProviderTimeout(phase=phase):
            return phase != "total"
        case ProviderUnreachable() | ConnectionLost():
            return True
        case _:
            return False


def delay_before(
    attempt: int, retries: Retries, asked: float | None, jitter: float
) -> float:
    """How many seconds to wait before a request is sent again.

    Those who were refused together come back at different times, so the wait is a
    random part of one that doubles; and never shorter than what the server asks for,
    unless that is longer than we wait for anything.

    Args:
        attempt: which time it is sent again, from 1.
        retries: the first and the longest wait.
        asked: what the server asks for, see `retry_after_seconds`.
        jitter: a random number from 0 to 1.
    """
    doublings = min(max(attempt, 1) - 1, _MOST_DOUBLINGS)
    longest = min(retries.cap_seconds, retries.base_seconds * 2.0**doublings)
    wait = (asked or 0.0) + longest * min(max(jitter, 0.0), 1.0)
    return min(max(wait, 0.0), retries.cap_seconds)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _seconds_until(date: str, now: float) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp() - now
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
