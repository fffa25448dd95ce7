"""The benchmark of logs works without its peers, and measures what it promises to."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.log_cases import (
    CREATE,
    DBOS,
    FILE,
    FOLDER_SYNC,
    LANGGRAPH,
    LANGGRAPH_SYNC,
    LIST,
    LISTINGS,
    OURS_ALL,
    PASS,
    SYNC,
    TIMED,
    W1,
    W3,
    WRITE,
    Asked,
    LogFinding,
)
from benchmarks.log_report import LogCost, judge, sum_of
from benchmarks.logs import file_system
from benchmarks.run_cases import FLOOR

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.slow
def test_it_measures_logs_beside_the_floor(tmp_path: Path) -> None:
    """Runs, appends, resumes and listings give numbers, and a word on the targets."""
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "benchmarks.logs", "--quick"]
    command += ["--folder", str(tmp_path), "--json", str(report)]
    for start in ("W1", "append", "resume, 100 ", "list"):
        command += ["--case", start]

    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, check=False, encoding="utf-8"
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_bytes())
    names = {cost["name"] for cost in found["costs"] if cost["case"] == W1.title}
    assert {FLOOR, *OURS_ALL, TIMED} <= names
    assert all(0 < cost["best"] <= cost["median"] for cost in found["costs"])
    (timed,) = (cost for cost in found["costs"] if cost["name"] == TIMED)
    assert timed["asked"][SYNC]["times"] == 2.0
    assert timed["asked"][CREATE]["times"] == 1.0
    titles = {cost["case"] for cost in found["costs"]}
    assert titles == {W1.title, "append, 1,000 entries", "resume, 100 entries"} | {
        LIST.title
    }
    assert "at most 2.2x floor, + syncs" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def cost(name: str, seconds: float, case: str = W1.title, sync: float = 0.0) -> LogCost:
    """What somebody needed."""
    asked = {kind: Asked(times=1.0, seconds=0.0) for kind in (CREATE, WRITE)}
    asked |= {kind: Asked(times=1.0, seconds=sync) for kind in (SYNC, FOLDER_SYNC)}
    return LogCost.of(case, name, [LogFinding(seconds=[seconds], asked=asked)])


def runs(ours: float, **peers: float) -> list[LogCost]:
    """Runs of everybody, on a disk whose sync takes as long as the floor."""
    others = [cost(name.replace("_", ", "), taken) for name, taken in peers.items()]
    timed = cost(TIMED, ours, sync=1.0)
    return [cost(FLOOR, 1.0), cost(FILE, 2.0), cost(PASS, ours), timed, *others]


def test_the_floor_is_given_the_syncs() -> None:
    """What is compared with is the floor with the fdatasyncs, and nothing else."""
    found = {cost.name: cost for cost in runs(5.0)}
    total = sum_of(found)
    assert (total.floor, total.syncs, total.files, total.ours) == (1.0, 1.0, 1.0, 5.0)
    assert total.allowed == 3.2
    assert total.ratio == 4.0


def test_a_target_can_be_missed() -> None:
    """More than 2.2 times the floor besides syncs is one, or a peer not far behind."""
    peers = {LANGGRAPH_SYNC.replace(", ", "_"): 30.0, LANGGRAPH: 24.0, DBOS: 50.0}
    time, cheaper = judge([W1], runs(5.0, **peers))
    assert (time.found, time.is_met) == (4.0, False)
    assert (cheaper.found, cheaper.is_met) == (24.0 / 5.0, False)
    time, cheaper = judge([W1], runs(3.0, **peers))
    assert (time.is_met, cheaper.found, cheaper.is_met) == (True, 8.0, True)


def test_a_peer_that_is_missing_leaves_the_question_open() -> None:
    """Cheaper than those who are there says nothing about who is not."""
    (cheaper,) = judge([W3], [cost(PASS, 1.0, W3.title), cost(DBOS, 9.0, W3.title)])
    assert (cheaper.found, cheaper.is_met) == (9.0, None)


def test_the_slowest_listing_counts() -> None:
    """A second for one of them is too much."""
    costs = [cost(name, 0.5, LIST.title) for name in LISTINGS[1:]]
    (verdict,) = judge([LIST], [cost(LISTINGS[0], 1.5, LIST.title), *costs])
    assert (verdict.found, verdict.is_met) == (1500.0, False)


@pytest.mark.skipif(not Path("/proc/mounts").exists(), reason="nobody says what it is")
def test_it_is_known_what_is_no_disk() -> None:
    """What the system keeps in memory is told from what is kept."""
    assert file_system(Path("/proc/self")) == "proc"
