"""``make bench``: what it costs to keep a log, in memory, on disk and in a database.

Run as ``python -m benchmarks.logs``. ``--quick`` is a smoke test whose numbers mean
little; ``--strict`` makes a missed target an error; ``--json FILE`` keeps it all;
``--case W1`` measures that alone; ``--folder`` says on which disk.
"""

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.costs import Verdict
from benchmarks.log_cases import CASES, LIBRARIES, LogCase, LogFinding, LogJob
from benchmarks.log_report import (
    LogCost,
    disk_rows,
    judge,
    run_rows,
    step_rows,
    sum_rows,
)
from benchmarks.machine import Machine, this_machine
from benchmarks.run_report import note_lines
from benchmarks.running import QUICK_NOTE, finish, new_parser
from benchmarks.tables import machine_lines, section, verdict_rows

PACKAGES = (
    "trio",
    "msgspec",
    "langgraph",
    "langgraph-checkpoint-sqlite",
    "dbos",
    "sqlalchemy",
)
IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs"})

_QUICK_SECONDS = 0.01
_QUICK_COUNT = 200


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one run found; also what ``--json`` writes."""

    machine: Machine
    disk: str
    is_quick: bool
    costs: list[LogCost]
    verdicts: list[Verdict]
    not_run: list[str]


class BrokenStep(Exception):
    """A contender did not come to the answer, or to none in the end."""


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print; give the exit code."""
    options = _options(words)
    cases = [
        _quick(case) if options.quick else case
        for case in CASES
        if not options.case or case.title.startswith(tuple(options.case))
    ]
    folder = options.folder or disk_folder()
    disk = file_system(folder)
    machine = this_machine(PACKAGES)
    for line in machine_lines(machine):
        print(line)
    print(f"logs on {disk}{', which is no disk' if disk in IN_MEMORY else ''}")
    if options.quick:
        print(QUICK_NOTE)
    try:
        # Nothing is removed before the end: see log_worker.
        with tempfile.TemporaryDirectory(dir=folder) as own:
            costs = [cost for case in cases for cost in _measure(case, Path(own))]
    except BrokenStep as problem:
        print(f"There is no result: {problem}.", file=sys.stderr)
        return 2
    verdicts = judge(cases, costs)
    report = Report(
        machine=machine,
        disk=disk,
        is_quick=options.quick,
        costs=costs,
        verdicts=verdicts,
        not_run=[f"{name}: not installed" for name in LIBRARIES if not _is_there(name)],
    )
    for line in _lines(cases, report):
        print(line)
    return finish(options, report, verdicts)


def _lines(cases: Sequence[LogCase], report: Report) -> Iterator[str]:
    runs = [case for case in cases if case.step == "runs"]
    steps = [case for case in cases if case.step != "runs"]
    if runs:
        yield from section("Runs", run_rows(runs, report.costs))
        yield from section("The disk, in a run of ours", disk_rows(runs, report.costs))
        yield from section("Floor and fdatasyncs", sum_rows(runs, report.costs))
    if steps:
        yield from section("Steps", step_rows(steps, report.costs))
    yield from note_lines(report.not_run)
    rows = verdict_rows(report.verdicts, subject="case", case="of")
    yield from section("Targets", rows)


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(
        prog="benchmarks.logs", description="Measure what it costs to keep a log."
    )
    parser.add_argument(
        "--case",
        action="append",
        metavar="START",
        help="only the cases whose title starts so; may be given again",
    )
    parser.add_argument(
        "--folder", type=Path, help="a folder on the disk that is to be measured"
    )
    return parser.parse_args(words)


def _quick(case: LogCase) -> LogCase:
    """The same with little of everything."""
    return msgspec.structs.replace(
        case,
        seconds=min(case.seconds, _QUICK_SECONDS),
        count=min(case.count, _QUICK_COUNT),
        rounds=1,
    )


def _measure(case: LogCase, folder: Path) -> list[LogCost]:
    """Let everybody take turns, in another order each round."""
    names = [name for name in case.names if _is_there(name)]
    found: dict[str, list[LogFinding]] = {name: [] for name in names}
    for turn in range(case.rounds):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            _tell_progress(f"{case.title}, {turn + 1} of {case.rounds}: {name}")
            found[name].append(_run_process(name, case, folder))
    _tell_progress("")
    return [LogCost.of(case.title, name, found[name]) for name in names]


def _run_process(name: str, case: LogCase, folder: Path) -> LogFinding:
    job = LogJob(name=name, case=case, folder=tempfile.mkdtemp(dir=folder))
    done = subprocess.run(  # noqa: S603  # our own module
        [sys.executable, "-m", "benchmarks.log_worker", msgspec.json.encode(job)],
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    if done.returncode != 0:
        last_line = done.stderr.strip().rpartition("\n")[2]
        msg = f"{name} in {case.title}: {last_line}"
        raise BrokenStep(msg)
    # A library may have had something to say before.
    last_line = done.stdout.strip().rpartition("\n")[2]
    return msgspec.json.decode(last_line, type=LogFinding)


def _is_there(name: str) -> bool:
    library = LIBRARIES.get(name.partition(", ")[0])
    try:
        return library is None or importlib.util.find_spec(library) is not None
    except ModuleNotFoundError:  # not even what it is a part of
        return False


def disk_folder() -> Path:
    """A folder for what is written: the usual one, if that is on a disk."""
    candidates = [Path(tempfile.gettempdir()), Path("/var/tmp"), Path.cwd()]  # noqa: S108  # only looked at
    there = [folder for folder in candidates if folder.is_dir()]
    on_disk = [folder for folder in there if file_system(folder) not in IN_MEMORY]
    return (on_disk or there)[0]


def file_system(folder: Path) -> str:
    """The kind of file system that a folder is on; unknown where nobody says."""
    try:
        lines = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "an unknown file system"
    place = folder.resolve()
    mounts = [(Path(line.split()[1]), line.split()[2]) for line in lines]
    around = [(where, kind) for where, kind in mounts if place.is_relative_to(where)]
    # Of two that are mounted at the same place, the later one is seen.
    return max(enumerate(around), key=lambda m: (len(m[1][0].parts), m[0]))[1][1]


def _tell_progress(words: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{words}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
