"""The benchmark of decks runs, and measures what it promises to."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.slow
def test_it_measures_loading_and_checking(tmp_path: Path) -> None:
    """A run checks tree and values, then tells what loading and checking cost."""
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "benchmarks.deck_loading", "--quick"]

    done = subprocess.run(
        [*command, "--json", str(report)],
        cwd=ROOT,
        capture_output=True,
        check=False,
        encoding="utf-8",
    )

    assert done.returncode == 0, done.stderr
    assert "The tree: 200 decks, " in done.stdout
    assert "Equal judgement: " in done.stdout
    assert "us/deck" in done.stdout
    assert "us/value" in done.stdout
    assert "warm at most 0.1x cold" in done.stdout
    assert json.loads(report.read_bytes())["tree"]["decks"] == 200
