"""The benchmark of the decoder runs, and measures what it promises to."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.slow
@pytest.mark.spec("PA-11")
def test_it_measures_cost_per_event_and_time_to_first(tmp_path: Path) -> None:
    """A run checks equal output, then tells the cost of an event and of the first."""
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "benchmarks.sse_events", "--quick"]

    done = subprocess.run(
        [*command, "--json", str(report)],
        cwd=ROOT,
        capture_output=True,
        check=False,
        encoding="utf-8",
    )

    assert done.returncode == 0, done.stderr
    assert "Equal output: " in done.stdout
    assert "us/event" in done.stdout
    assert "First byte fed to first event out (us)" in done.stdout
    assert json.loads(report.read_bytes())
