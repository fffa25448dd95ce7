"""``make bench``: what it costs to read streams of servers, 50 and 1,000 at once.

Run as ``python -m benchmarks.http_streams``. ``--quick`` is a smoke test whose numbers
mean little; ``--strict`` makes a missed target an error; ``--json FILE`` keeps it all.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from benchmarks.costs import Verdict
from benchmarks.http_worker import BARE, ONE_POOL, PROVIDER, TRANSPORT, Found, Job
from benchmarks.machine import Machine, this_machine
from benchmarks.running import QUICK_NOTE, finish, options_from
from benchmarks.tables import machine_lines, section, times, verdict_rows

PACKAGES = ("trio", "httpx", "httpcore", "h11", "msgspec")
FEW, MANY = "50 at once", "1,000 at once"
MOST_TIMES_BARE = 1.5
_DELTAS = 40
_ROUNDS = 1


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one run found; also what ``--json`` writes."""

    machine: Machine
    is_quick: bool
    found: list[Found]
    verdicts: list[Verdict]


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print; give the exit code."""
    options = options_from(words, prog="http_streams", description=__doc__ or "")
    machine = this_machine(PACKAGES)
    for line in machine_lines(machine):
        print(line)
    if options.quick:
        print(QUICK_NOTE)
    with _server() as port:
        found = [_best(job, options.quick) for job in _jobs(port, options.quick)]
    verdicts = judge(found)
    for line in _report(found, verdicts):
        print(line)
    report = Report(
        machine=machine, is_quick=options.quick, found=found, verdicts=verdicts
    )
    return finish(options, report, verdicts)


def judge(found: Sequence[Found]) -> list[Verdict]:
    """What was promised, and what was found."""
    cpu = {(one.title, one.name): one.cpu_us for one in found}
    verdicts = []
    for name in (TRANSPORT, PROVIDER):
        ratio = cpu[FEW, name] / cpu[FEW, BARE]
        verdicts.append(
            Verdict(
                target=f"at most {MOST_TIMES_BARE}x bare httpx",
                subject=name,
                case=FEW,
                found=ratio,
                is_met=ratio <= MOST_TIMES_BARE,
            )
        )
    return verdicts


def _jobs(port: int, is_quick: bool) -> Iterator[Job]:  # noqa: FBT001  # an option
    few, many = (20, 20) if is_quick else (300, 1000)
    for title, streams, at_once, pause_ms in (
        (FEW, few, 50, 0 if is_quick else 2),
        (MANY, many, many, 0 if is_quick else 20),
    ):
        for name in (BARE, TRANSPORT, PROVIDER, ONE_POOL):
            if name != ONE_POOL or title == MANY:
                yield Job(
                    title=title,
                    name=name,
                    port=port,
                    streams=streams,
                    at_once=at_once,
                    pause_ms=pause_ms,
                    text_deltas=_DELTAS,
                )


def _best(job: Job, is_quick: bool) -> Found:  # noqa: FBT001  # an option
    rounds = 1 if is_quick else _ROUNDS
    return min((_measured(job) for _ in range(rounds)), key=lambda one: one.cpu_s)


def _measured(job: Job) -> Found:
    command = [sys.executable, "-m", "benchmarks.http_worker"]
    words = msgspec.json.encode(job).decode()
    done = subprocess.run([*command, words], stdout=subprocess.PIPE, check=True)  # noqa: S603  # our own
    return msgspec.json.decode(done.stdout, type=Found)


@contextmanager
def _server() -> Iterator[int]:
    command = [sys.executable, "-m", "benchmarks.http_server", str(_DELTAS)]
    with subprocess.Popen(  # noqa: S603  # our own
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("the server has no pipes")
        yield int(server.stdout.readline())
        server.stdin.close()  # It ends with its input.


def _report(found: Sequence[Found], verdicts: Sequence[Verdict]) -> Iterator[str]:
    cpu = {(one.title, one.name): one.cpu_us for one in found}
    rows = [["case", "read by", "cpu/event", "x bare", "cpu", "wall"]]
    waits = [["case", "read by", "p50", "p99", "max", "first bytes to event"]]
    for one in found:
        ratio = times(one.cpu_us / cpu[one.title, BARE])
        rows.append(
            [
                one.title,
                one.name,
                f"{one.cpu_us:.1f} us",
                ratio,
                f"{one.cpu_s:.2f} s",
                f"{one.wall_s:.2f} s",
            ]
        )
        shown = "-" if one.shown_us is None else f"{one.shown_us:.0f} us"
        waits.append([one.title, one.name, *_waits(one.first_ms), shown])
    yield from section("Reading streams", rows)
    yield from section("From asking to the first event", waits)
    yield from section("Targets", verdict_rows(verdicts, subject="of", case="case"))


def _waits(first_ms: Sequence[float]) -> list[str]:
    places = (len(first_ms) // 2, len(first_ms) * 99 // 100, len(first_ms) - 1)
    return [f"{first_ms[place]:.1f} ms" for place in places]


if __name__ == "__main__":
    sys.exit(main())
