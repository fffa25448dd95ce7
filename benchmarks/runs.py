"""``make bench``: what it costs to run decks, beside other runtimes and a floor.

Run as ``python -m benchmarks.runs``. ``--quick`` is a smoke test whose numbers mean
little; ``--strict`` makes a missed target an error; ``--json FILE`` keeps it all;
``--full`` lets those run who take minutes; ``--case W1`` measures that alone.
"""

import argparse
import importlib.util
import subprocess
import sys
from collections.abc import Iterator, Sequence

import msgspec

from benchmarks.costs import Verdict
from benchmarks.machine import Machine, this_machine
from benchmarks.run_cases import (
    CASES,
    FLOOR,
    LIBRARIES,
    OURS,
    PEERS,
    Case,
    Finding,
    Job,
)
from benchmarks.run_report import RunCost, judge, note_lines, run_rows
from benchmarks.running import QUICK_NOTE, finish, new_parser
from benchmarks.tables import machine_lines, section, verdict_rows

PACKAGES = ("trio", "msgspec", "autogen-core", "openai-agents", "pydantic-ai-slim")

_QUICK_SECONDS = 0.05
_QUICK_RUNS = 20


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one run found; also what ``--json`` writes."""

    machine: Machine
    is_quick: bool
    runs: list[RunCost]
    verdicts: list[Verdict]
    not_run: list[str]


class BrokenRun(Exception):
    """A contender did not come to the answer, or to none in the end."""


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print; give the exit code."""
    options = _options(words)
    cases = [
        _quick(case) if options.quick else case
        for case in CASES
        if not options.case or case.title.startswith(tuple(options.case))
    ]
    machine = this_machine(PACKAGES)
    for line in machine_lines(machine):
        print(line)
    if options.quick:
        print(QUICK_NOTE)
    try:
        costs = [cost for case in cases for cost in _measure(case, options)]
    except BrokenRun as problem:
        print(f"There is no result: {problem}.", file=sys.stderr)
        return 2
    verdicts = judge(cases, costs)
    not_run = list(_not_run(cases, options))
    report = Report(
        machine=machine,
        is_quick=options.quick,
        runs=costs,
        verdicts=verdicts,
        not_run=not_run,
    )
    for line in (
        *section("Runs", run_rows(cases, costs)),
        *note_lines(not_run),
        *section("Targets", verdict_rows(verdicts, subject="case", case="of")),
    ):
        print(line)
    return finish(options, report, verdicts)


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(
        prog="benchmarks.runs", description="Measure what it costs to run decks."
    )
    parser.add_argument(
        "--full", action="store_true", help="also what takes minutes for some"
    )
    parser.add_argument(
        "--case",
        action="append",
        metavar="START",
        help="only the cases whose title starts so; may be given again",
    )
    return parser.parse_args(words)


def _quick(case: Case) -> Case:
    """The same with little of everything."""
    workload = msgspec.structs.replace(
        case.workload,
        model_seconds=min(case.workload.model_seconds, _QUICK_SECONDS),
        child_seconds=min(case.workload.child_seconds, _QUICK_SECONDS),
    )
    return msgspec.structs.replace(
        case,
        workload=workload,
        seconds=min(case.seconds, _QUICK_SECONDS),
        count=min(case.count, 2 if case.how == "singly" else _QUICK_RUNS),
        rounds=1,
    )


def _measure(case: Case, options: argparse.Namespace) -> list[RunCost]:
    """Let everybody take turns, in another order each round."""
    far_behind = [*case.far_behind, *(case.slow_peers if options.full else ())]
    always = [FLOOR, OURS, *case.variants, *case.peers]
    found: dict[str, list[Finding]] = {
        name: [] for name in [*always, *far_behind] if _is_there(name)
    }
    for turn in range(case.rounds):
        names = [n for n in found if turn == 0 or n not in far_behind]
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            _tell_progress(f"{case.title}, {turn + 1} of {case.rounds}: {name}")
            found[name].append(_run_process(name, case))
    _tell_progress("")
    return [RunCost.of(case.title, name, found[name]) for name in found]


def _run_process(name: str, case: Case) -> Finding:
    contender, _, variant = name.partition(", ")
    job = Job(contender=contender, variant=variant, case=case)
    done = subprocess.run(  # noqa: S603  # our own module
        [sys.executable, "-m", "benchmarks.run_worker", msgspec.json.encode(job)],
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    if done.returncode != 0:
        last_line = done.stderr.strip().rpartition("\n")[2]
        msg = f"{name} in {case.title}: {last_line}"
        raise BrokenRun(msg)
    return msgspec.json.decode(done.stdout, type=Finding)


def _is_there(name: str) -> bool:
    library = LIBRARIES.get(name.partition(", ")[0])
    return library is None or importlib.util.find_spec(library) is not None


def _not_run(cases: Sequence[Case], options: argparse.Namespace) -> Iterator[str]:
    for name in PEERS:
        if not _is_there(name):
            yield f"{name}: not installed"
    for case in cases:
        slow = [name for name in case.slow_peers if _is_there(name)]
        if slow and not options.full:
            yield f"{' and '.join(slow)} in {case.title}: would take minutes; --full"


def _tell_progress(words: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{words}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
