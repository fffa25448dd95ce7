"""What something costs, how that compares, and whether it is what was promised."""

from collections.abc import Iterable

import msgspec

from benchmarks.timing import Timing

_MICROSECONDS = 1e6


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What something costs, in microseconds: per event, per deck, or per wait."""

    subject: str
    case: str
    name: str
    best_us: float
    median_us: float
    runs: int


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One target in one case: what was asked, what was found.

    ``is_met`` is None where the peer to compare with is not installed. What is found
    is a ratio unless ``unit`` says otherwise.
    """

    target: str
    subject: str
    case: str
    found: float | None
    is_met: bool | None
    unit: str = "x"


def cost_from(timing: Timing, pieces: int, labels: tuple[str, str, str]) -> Cost:
    """The cost of one piece of what was timed; labels are subject, case and name."""
    subject, case, name = labels
    return Cost(
        subject=subject,
        case=case,
        name=name,
        best_us=timing.best / pieces * _MICROSECONDS,
        median_us=timing.median / pieces * _MICROSECONDS,
        runs=timing.runs,
    )


def ratio_of(
    costs: Iterable[Cost], where: tuple[str, str], name: str, base: str
) -> float | None:
    """How many times the base's best time another one's is, if both were measured."""
    best = {
        cost.name: cost.best_us for cost in costs if where == (cost.subject, cost.case)
    }
    if name not in best or base not in best:
        return None
    return best[name] / best[base]
