"""The runs in a table, and whether the promises about them were kept."""

import statistics
from collections.abc import Iterator, Sequence

import msgspec

from benchmarks.costs import Verdict
from benchmarks.run_cases import (
    DEADLINE,
    FLOOR,
    OURS,
    PEERS,
    TUNED,
    TWO_ACTIONS,
    W1,
    W2_LARGE,
    W2_SMALL,
    W3,
    Case,
    Finding,
)
from benchmarks.tables import times

MOST_TIMES_FLOOR = 2.0
MOST_KB_PER_RUN = 30.0
MOST_MILLISECONDS = {TWO_ACTIONS.title: 220.0, DEADLINE.title: 110.0}

_WITH_FLOOR = (W1.title, W3.title, W2_SMALL.title, W2_LARGE.title)
_WITH_MEMORY = (W2_SMALL.title, W2_LARGE.title)
_PER_SECOND = {"us": 1e6, "ms": 1e3, "s": 1.0}


class RunCost(msgspec.Struct, frozen=True, kw_only=True):
    """What one contender needed in one case; memory is that of its smallest peak."""

    case: str
    name: str
    best: float
    median: float
    worst: float
    cpu: float | None
    peak_mb: float | None
    kb_per_run: float | None
    rounds: int

    @classmethod
    def of(cls, case: str, name: str, findings: Sequence[Finding]) -> "RunCost":
        """Put the rounds together."""
        seconds = [second for finding in findings for second in finding.seconds]
        cpu = [second for finding in findings for second in finding.cpu_seconds]
        peaks = [f.peak_mb for f in findings if f.peak_mb is not None]
        per_run = [f.kb_per_run for f in findings if f.kb_per_run is not None]
        return cls(
            case=case,
            name=name,
            best=min(seconds),
            median=statistics.median(seconds),
            worst=max(seconds),
            cpu=min(cpu, default=None),
            peak_mb=min(peaks, default=None),
            kb_per_run=min(per_run, default=None),
            rounds=len(findings),
        )


def run_rows(cases: Sequence[Case], costs: Sequence[RunCost]) -> list[list[str]]:
    """One row for each who took part in a case."""
    heading = ["case", "runtime", "best", "median", "worst"]
    ratios = ["x floor", "it / ours", "CPU", "x floor", "it / ours"]
    rows = [[*heading, *ratios, "peak MB", "KB/run"]]
    for case in cases:
        found = {cost.name: cost for cost in costs if cost.case == case.title}
        for cost in found.values():
            worst = _time(cost.worst, case) if case.how == "singly" else "-"
            rows.append(
                [
                    case.title,
                    cost.name,
                    _time(cost.best, case),
                    _time(cost.median, case),
                    worst,
                    times(cost.best / found[FLOOR].best),
                    times(cost.best / found[OURS].best),
                    "-" if cost.cpu is None else _time(cost.cpu, case),
                    _cpu_times(cost, found[FLOOR]),
                    _cpu_times(cost, found[OURS]),
                    _number(cost.peak_mb),
                    _number(cost.kb_per_run),
                ]
            )
    return rows


def note_lines(not_run: Sequence[str]) -> Iterator[str]:
    """What is not in the table, and why."""
    if not_run:
        yield ""
        yield "Not run"
        yield ""
    yield from not_run


def judge(cases: Sequence[Case], costs: Sequence[RunCost]) -> list[Verdict]:
    """Hold the runs against the targets."""
    verdicts: list[Verdict] = []
    for case in cases:
        found = {cost.name: cost for cost in costs if cost.case == case.title}
        ours, floor = found[OURS], found[FLOOR]
        if case.title in _WITH_FLOOR:
            ratio = _needed(ours) / _needed(floor)
            verdicts.append(_at_most(case, "CPU", ratio, MOST_TIMES_FLOOR, "x"))
        if case.title in _WITH_MEMORY:
            found_kb = ours.kb_per_run
            verdicts.append(_at_most(case, "memory", found_kb, MOST_KB_PER_RUN, "KB"))
        if case.title in MOST_MILLISECONDS:
            most = MOST_MILLISECONDS[case.title]
            verdicts.append(_at_most(case, "worst time", ours.worst * 1e3, most, "ms"))
        if case.peers:
            verdicts.append(_against_peers(case, found))
        if f"{OURS}, {TUNED}" in found:
            verdicts.append(_against_tuned_peers(case, found))
    return verdicts


def _at_most(
    case: Case, subject: str, found: float | None, most: float, unit: str
) -> Verdict:
    words = "x the floor" if unit == "x" else f" {unit}"
    return Verdict(
        target=f"at most {most:g}{words}",
        subject=case.title,
        case=subject,
        found=found,
        is_met=None if found is None else found <= most,
        unit=unit,
    )


def _against_peers(case: Case, found: dict[str, RunCost]) -> Verdict:
    """The fastest peer against ours; None if not all that take part are there."""
    asked = [*case.peers, *case.far_behind]
    ours = _needed(found[OURS])
    ratios = [_needed(found[name]) / ours for name in PEERS if name in found]
    is_whole = all(name in found for name in asked)
    fastest = min(ratios, default=None)
    is_met = None
    if fastest is not None and (is_whole or fastest <= 1.0):
        is_met = fastest > 1.0
    return Verdict(
        target="faster than every peer",
        subject=case.title,
        case="fastest peer / ours",
        found=fastest,
        is_met=is_met,
    )


def _against_tuned_peers(case: Case, found: dict[str, RunCost]) -> Verdict:
    """The same where the collector looks less often, for them as for us."""
    ours = _needed(found[f"{OURS}, {TUNED}"])
    tuned = [f"{name}, {TUNED}" for name in case.peers]
    ratios = [_needed(found[name]) / ours for name in tuned if name in found]
    fastest = min(ratios, default=None)
    return Verdict(
        target="faster than every peer",
        subject=case.title,
        case=f"the same, {TUNED}",
        found=fastest,
        is_met=None if fastest is None else fastest > 1.0,
    )


def _needed(cost: RunCost) -> float:
    """What is judged: the processor's time where it is known.

    On a machine that has nothing else to do it is the wall time without the waiting,
    and on one that has, the wall time says what else there was.
    """
    return cost.cpu or cost.best


def _cpu_times(cost: RunCost, other: RunCost) -> str:
    return "-" if cost.cpu is None or not other.cpu else times(cost.cpu / other.cpu)


def _time(seconds: float, case: Case) -> str:
    digits = {"us": 0, "ms": 1, "s": 2}[case.unit]
    return f"{seconds * _PER_SECOND[case.unit]:.{digits}f} {case.unit}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
