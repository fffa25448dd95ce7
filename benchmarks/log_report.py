"""What keeping a log costs, in tables, and whether the promises about it were kept."""

import statistics
from collections.abc import Sequence

import msgspec

from benchmarks.costs import Verdict
from benchmarks.log_cases import (
    CALLS,
    CLOCKED,
    CREATE,
    FILE,
    FILE_TIMED,
    FOLDER_SYNC,
    LIST,
    PASS,
    PEERS,
    SYNC,
    TIMED,
    W1,
    Asked,
    LogCase,
    LogFinding,
)
from benchmarks.run_cases import FLOOR
from benchmarks.tables import times

MOST_TIMES_FLOOR = 2.2
LEAST_TIMES_CHEAPER = 5.0
MOST_MILLISECONDS_TO_LIST = 1000.0

_MICROSECONDS = 1e6
_MILLISECONDS = 1e3


class LogCost(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody needed in one case.

    Attributes:
        asked: what a run asks of the disk, in the best of these times; of those that
            are timed.
    """

    case: str
    name: str
    best: float
    median: float
    rounds: int
    asked: dict[str, Asked]

    @classmethod
    def of(cls, case: str, name: str, findings: Sequence[LogFinding]) -> "LogCost":
        """Put the rounds together."""
        seconds = [second for finding in findings for second in finding.seconds]
        best = min(findings, key=lambda finding: min(finding.seconds))
        return cls(
            case=case,
            name=name,
            best=min(seconds),
            median=statistics.median(seconds),
            rounds=len(findings),
            asked=best.asked,
        )


class Sum(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is held against: the floor's time, and its own fdatasyncs.

    Attributes:
        floor: the best of the bare loop.
        ours: the best of those that are timed: ours, or the file by hand.
        asked: what was asked of the disk in those very runs.
    """

    floor: float
    ours: float
    asked: dict[str, Asked]

    @property
    def syncs(self) -> float:
        """The time in fdatasyncs."""
        return self.asked[SYNC].seconds

    @property
    def files(self) -> float:
        """The time to make files, and to sync their folder where that is done."""
        kinds = {CREATE, FOLDER_SYNC} & set(self.asked)
        return sum(self.asked[kind].seconds for kind in kinds)

    @property
    def allowed(self) -> float:
        """What ours may take."""
        return MOST_TIMES_FLOOR * self.floor + self.syncs

    @property
    def ratio(self) -> float:
        """How many times the floor ours needs besides its fdatasyncs."""
        return (self.ours - self.syncs) / self.floor


def costs_of(case: LogCase, costs: Sequence[LogCost]) -> dict[str, LogCost]:
    """The costs of one case, by who had them."""
    return {cost.name: cost for cost in costs if cost.case == case.title}


def sum_of(found: dict[str, LogCost], name: str = TIMED) -> Sum:
    """The floor of a case, and the syncs of somebody with a clock."""
    timed = found[name]
    return Sum(floor=found[FLOOR].best, ours=timed.best, asked=timed.asked)


def run_rows(cases: Sequence[LogCase], costs: Sequence[LogCost]) -> list[list[str]]:
    """Whole runs, one row for each who took part."""
    rows = [["case", "kept by", "best", "median", "x floor", "it / ours, pass"]]
    for case in cases:
        found = costs_of(case, costs)
        rows += [
            [
                case.title,
                cost.name,
                _microseconds(cost.best),
                _microseconds(cost.median),
                times(cost.best / found[FLOOR].best),
                times(cost.best / found[PASS].best),
            ]
            for cost in found.values()
            if cost.name not in CLOCKED
        ]
    return rows


def disk_rows(cases: Sequence[LogCase], costs: Sequence[LogCost]) -> list[list[str]]:
    """What one of our runs asks of the disk, with ``pass``."""
    rows = [["case", "of", "times", "time in all"]]
    for case in cases:
        cost = costs_of(case, costs)[TIMED]
        rows += [
            [
                case.title,
                kind,
                f"{cost.asked[kind].times:.1f}",
                _microseconds(cost.asked[kind].seconds),
            ]
            for kind in CALLS
            if kind in cost.asked
        ]
    return rows


def sum_rows(cases: Sequence[LogCase], costs: Sequence[LogCost]) -> list[list[str]]:
    """What our runs are held against: the sums, and what is not in them."""
    heading = ["case", "floor", "fdatasyncs", "allowed", "ours", "x floor besides"]
    heading += ["making files", "x floor besides both"]
    rows = [[*heading, "x file by hand", "file by hand, x floor besides"]]
    for case in cases:
        found = costs_of(case, costs)
        total = sum_of(found)
        besides = total.ours - total.syncs - total.files
        rows.append(
            [
                case.title,
                _microseconds(total.floor),
                _microseconds(total.syncs),
                _microseconds(total.allowed),
                _microseconds(total.ours),
                times(total.ratio),
                _microseconds(total.files),
                times(besides / total.floor),
                times(total.ours / found[FILE].best),
                times(sum_of(found, FILE_TIMED).ratio),
            ]
        )
    return rows


def step_rows(cases: Sequence[LogCase], costs: Sequence[LogCost]) -> list[list[str]]:
    """Times of a step."""
    rows = [["case", "how", "best", "median", "per entry or run"]]
    for case in cases:
        rows += [
            [
                case.title,
                cost.name,
                *_step_times(case, cost),
            ]
            for cost in costs_of(case, costs).values()
        ]
    return rows


def _step_times(case: LogCase, cost: LogCost) -> list[str]:
    if case.step in ("append", "sync"):
        words = [_microseconds(cost.best, 1), _microseconds(cost.median, 1)]
        return [*words, words[0] if case.step == "append" else "-"]
    return [
        f"{cost.best * _MILLISECONDS:.1f} ms",
        f"{cost.median * _MILLISECONDS:.1f} ms",
        _microseconds(cost.best / case.count, 1),
    ]


def judge(cases: Sequence[LogCase], costs: Sequence[LogCost]) -> list[Verdict]:
    """Hold the costs against the targets."""
    verdicts: list[Verdict] = []
    for case in cases:
        found = costs_of(case, costs)
        if case.title == W1.title:
            ratio = sum_of(found).ratio
            verdicts.append(
                Verdict(
                    target=f"at most {MOST_TIMES_FLOOR:g}x floor, + syncs",
                    subject=case.title,
                    case=PASS,
                    found=ratio,
                    is_met=ratio <= MOST_TIMES_FLOOR,
                )
            )
        if case.step == "runs":
            verdicts.append(_against_peers(case, found))
        if case.title == LIST.title:
            slowest = max(cost.best for cost in found.values()) * _MILLISECONDS
            verdicts.append(
                Verdict(
                    target=f"at most {MOST_MILLISECONDS_TO_LIST:g} ms",
                    subject=case.title,
                    case="open + list",
                    found=slowest,
                    is_met=slowest <= MOST_MILLISECONDS_TO_LIST,
                    unit="ms",
                )
            )
    return verdicts


def _against_peers(case: LogCase, found: dict[str, LogCost]) -> Verdict:
    """The cheapest peer against ours; open if one is missing and the others lose."""
    ratios = [found[name].best / found[PASS].best for name in PEERS if name in found]
    cheapest = min(ratios, default=None)
    is_met = None
    if cheapest is not None and (
        len(ratios) == len(PEERS) or cheapest < LEAST_TIMES_CHEAPER
    ):
        is_met = cheapest >= LEAST_TIMES_CHEAPER
    return Verdict(
        target=f"{LEAST_TIMES_CHEAPER:g}x cheaper than every peer",
        subject=case.title,
        case="cheapest peer / ours",
        found=cheapest,
        is_met=is_met,
    )


def _microseconds(seconds: float, digits: int = 0) -> str:
    return f"{seconds * _MICROSECONDS:.{digits}f} us"
