"""The benchmark of runs works without its peers, and measures what it promises to."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.run_cases import (
    AUTOGEN,
    CASES,
    DEADLINE,
    FLOOR,
    OPENAI_AGENTS,
    OURS,
    PYDANTIC_AI,
    TUNED,
    W1,
    W2_LARGE,
    W2_SMALL,
    Case,
    Finding,
)
from benchmarks.run_report import RunCost, judge

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.slow
def test_it_measures_runs_beside_the_floor(tmp_path: Path) -> None:
    """Every case gives numbers for ours and for the floor, and a word on its target."""
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "benchmarks.runs", "--quick"]
    titles = [case.title for case in CASES]

    done = subprocess.run(
        [*command, "--json", str(report)],
        cwd=ROOT,
        capture_output=True,
        check=False,
        encoding="utf-8",
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_bytes())
    for title in titles:
        names = {run["name"] for run in found["runs"] if run["case"] == title}
        assert {FLOOR, OURS} <= names
    assert all(0 < run["best"] <= run["worst"] for run in found["runs"])
    assert {verdict["subject"] for verdict in found["verdicts"]} == set(titles)
    assert "at most 2x the floor" in done.stdout


def costs_of(case: Case, seconds: dict[str, float]) -> list[RunCost]:
    """What contenders needed, by their names."""
    return [
        RunCost.of(case.title, name, [Finding(seconds=[taken], kb_per_run=31.0)])
        for name, taken in seconds.items()
    ]


def test_a_target_can_be_missed() -> None:
    """More than twice the floor's time, too much memory or a faster peer is a miss."""
    peers_seconds = {AUTOGEN: 2.0, OPENAI_AGENTS: 9.0, PYDANTIC_AI: 9.0}
    costs = costs_of(W2_SMALL, {FLOOR: 1.0, OURS: 3.0} | peers_seconds)
    time, memory, peers = judge([W2_SMALL], costs)
    assert (time.found, time.is_met) == (3.0, False)
    assert (memory.found, memory.is_met) == (31.0, False)
    assert (peers.found, peers.is_met) == (2.0 / 3.0, False)


def test_what_the_processor_worked_is_judged_and_not_what_else_it_did() -> None:
    """On a busy machine the wall time says what others did, so it does not count."""
    floor = Finding(seconds=[9.0], cpu_seconds=[1.0])
    ours = Finding(seconds=[1.0], cpu_seconds=[3.0])
    found = {FLOOR: floor, OURS: ours}
    costs = [RunCost.of(W1.title, name, [finding]) for name, finding in found.items()]
    time, _ = judge([W1], costs)
    assert (time.found, time.is_met) == (3.0, False)


def test_a_peer_that_is_missing_leaves_the_question_open() -> None:
    """Faster than those who are there says nothing about who is not."""
    costs = costs_of(W1, {FLOOR: 1.0, OURS: 2.0, AUTOGEN: 4.0})
    time, peers = judge([W1], costs)
    assert (time.found, time.is_met) == (2.0, True)
    assert (peers.found, peers.is_met) == (2.0, None)


def test_a_deadline_is_judged_by_its_worst_time() -> None:
    """One late answer of many is late."""
    floor = RunCost.of(DEADLINE.title, FLOOR, [Finding(seconds=[0.1])])
    ours = RunCost.of(DEADLINE.title, OURS, [Finding(seconds=[0.101, 0.111])])
    (verdict,) = judge([DEADLINE], [floor, ours])
    assert (verdict.found, verdict.is_met) == (111.0, False)


def test_peers_are_held_against_ours_with_the_collector_as_rare_for_both() -> None:
    """Ours, tuned, has to be faster than a peer that is tuned as well."""
    tuned = {f"{FLOOR}, {TUNED}": 0.5, f"{OURS}, {TUNED}": 1.0}
    costs = costs_of(W2_LARGE, {FLOOR: 1.0, OURS: 2.0, AUTOGEN: 4.0} | tuned)
    *_, peers, tuned_peers = judge([W2_LARGE], costs)
    assert (peers.found, peers.is_met) == (2.0, True)
    assert (tuned_peers.found, tuned_peers.is_met) == (None, None)
    costs += costs_of(W2_LARGE, {f"{AUTOGEN}, {TUNED}": 0.8})
    assert judge([W2_LARGE], costs)[-1].is_met is False
