"""The benchmark of streams over HTTP works, and judges what it promises to."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from benchmarks.http_streams import FEW, MOST_TIMES_BARE, Report, judge
from benchmarks.http_worker import BARE, PROVIDER, TRANSPORT, Found

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.slow
@pytest.mark.spec("PA-11")
def test_every_contender_reads_every_event(tmp_path: Path) -> None:
    """A quick run gives costs, waits and the time to the first event."""
    path = tmp_path / "report.json"
    command = [sys.executable, "-m", "benchmarks.http_streams", "--quick"]
    subprocess.run(
        [*command, "--json", str(path)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
    )
    report = msgspec.json.decode(path.read_bytes(), type=Report)
    assert len({one.events for one in report.found}) == 1
    shown = [one.shown_us for one in report.found if one.name == PROVIDER]
    assert all(us is not None and us > 0 for us in shown)


def test_a_missed_target_is_missed() -> None:
    """A reader that takes more than its share fails, one at the line does not."""
    found = [
        Found(
            title=FEW,
            name=name,
            events=1,
            cpu_s=1.0,
            cpu_us=cpu_us,
            wall_s=1.0,
            first_ms=[1.0],
            shown_us=None,
        )
        for name, cpu_us in (
            (BARE, 10.0),
            (TRANSPORT, 10.0 * MOST_TIMES_BARE),
            (PROVIDER, 16.0),
        )
    ]
    assert [verdict.is_met for verdict in judge(found)] == [True, False]
