"""The promises about speed, and whether a run kept them."""

from collections.abc import Iterable, Sequence

import msgspec

from benchmarks.contenders import FLOOR, OPENAI, OURS
from benchmarks.measures import Cost

MOST_TIMES_FLOOR = 1.4
LEAST_TIMES_FASTER = 30.0


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One target in one case: what was asked, what was found.

    ``is_met`` is None where the peer to compare with is not installed.
    """

    target: str
    subject: str
    case: str
    found: float | None
    is_met: bool | None


def judge(costs: Sequence[Cost]) -> list[Verdict]:
    """Hold the costs of events against the targets, for every stream and shape."""
    verdicts = []
    cases = dict.fromkeys((cost.subject, cost.case) for cost in costs)
    for subject, case in cases:
        ratio = ratio_of(costs, (subject, case), OURS, FLOOR)
        is_met = None if ratio is None else ratio <= MOST_TIMES_FLOOR
        verdicts.append(
            Verdict(
                target=f"at most {MOST_TIMES_FLOOR:g}x the floor",
                subject=subject,
                case=case,
                found=ratio,
                is_met=is_met,
            )
        )
    for subject, case in cases:
        ratio = ratio_of(costs, (subject, case), OPENAI, OURS)
        is_met = None if ratio is None else ratio >= LEAST_TIMES_FASTER
        verdicts.append(
            Verdict(
                target=f"at least {LEAST_TIMES_FASTER:g}x faster than the openai SDK",
                subject=subject,
                case=case,
                found=ratio,
                is_met=is_met,
            )
        )
    return verdicts


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
