"""The promises about the speed of events, and whether a run kept them."""

from collections.abc import Sequence

from benchmarks.contenders import FLOOR, OPENAI, OURS
from benchmarks.costs import Cost, Verdict, ratio_of

MOST_TIMES_FLOOR = 1.4
LEAST_TIMES_FASTER = 30.0


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
