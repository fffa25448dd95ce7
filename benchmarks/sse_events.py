"""``make bench``: what one server-sent event costs, here and in other libraries.

Run as ``python -m benchmarks.sse_events``. ``--quick`` is a smoke test whose numbers
mean little; ``--strict`` makes a missed target an error; ``--json FILE`` keeps it all.
"""

import json
import sys
from collections.abc import Sequence

import msgspec

from benchmarks.agreement import Disagreement, check_agreement
from benchmarks.contenders import all_contenders
from benchmarks.long_line import measure_long_lines
from benchmarks.machine import this_machine
from benchmarks.measures import measure_events, measure_first_events, measure_parts
from benchmarks.peers import OpenAI, load_httpx_sse, load_openai
from benchmarks.report import Report, StreamFacts, report_lines
from benchmarks.running import QUICK_NOTE, finish, options_from
from benchmarks.streams import EventStream, all_streams
from benchmarks.tables import machine_lines
from benchmarks.targets import judge
from benchmarks.timing import Effort

LIBRARIES = ("msgspec", "httpx-sse", "openai", "pydantic", "pydantic-core")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How much of everything."""

    text_deltas: int
    events: Effort
    first_events: Effort
    long_lines: Effort
    megabytes: tuple[int, ...]


FULL = Plan(
    text_deltas=2000,
    events=Effort(rounds=12, turn_seconds=0.15),
    first_events=Effort(rounds=12, turn_seconds=0.05),
    long_lines=Effort(rounds=3, turn_seconds=0.0),
    megabytes=(5, 10, 20),
)
QUICK = Plan(
    text_deltas=60,
    events=Effort(rounds=2, turn_seconds=0.002),
    first_events=Effort(rounds=2, turn_seconds=0.002),
    long_lines=Effort(rounds=1, turn_seconds=0.0),
    megabytes=(1, 2),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, measure, print; give the exit code."""
    options = options_from(
        arguments,
        prog="benchmarks.sse_events",
        description="Measure the cost of one SSE event.",
    )
    plan = QUICK if options.quick else FULL
    try:
        report = _measure(plan, is_quick=options.quick)
    except Disagreement as problem:
        print(f"Nothing was timed: the decoders disagree.\n{problem}", file=sys.stderr)
        return 2
    for line in report_lines(report):
        print(line)
    return finish(options, report, report.verdicts)


def _measure(plan: Plan, *, is_quick: bool) -> Report:
    machine = this_machine(LIBRARIES)
    for line in machine_lines(machine):
        print(line)
    if is_quick:
        print(QUICK_NOTE)
    httpx_sse, openai = load_httpx_sse(), load_openai()
    contenders = all_contenders(httpx_sse, openai)
    streams = all_streams(plan.text_deltas)
    compared = check_agreement(contenders, streams)
    plain = streams[0]
    events = [
        cost
        for stream in streams
        for cost in measure_events(stream, contenders, plan.events)
    ]
    return Report(
        machine=machine,
        is_quick=is_quick,
        streams=[_facts(stream, openai) for stream in streams],
        events_compared=compared,
        events=events,
        first_events=measure_first_events(plain, contenders, plan.first_events),
        parts=measure_parts(plain, plan.events),
        long_lines=measure_long_lines(
            httpx_sse, openai, megabytes=plan.megabytes, effort=plan.long_lines
        ),
        verdicts=judge(events),
    )


def _facts(stream: EventStream, openai: OpenAI | None) -> StreamFacts:
    refused = None
    if openai is not None:
        payloads = [json.loads(payload) for payload in stream.payloads]
        refused = sum(not openai.accepts(payload) for payload in payloads)
    return StreamFacts(
        name=stream.name, events=stream.events, size=stream.size, refused_by_sdk=refused
    )


if __name__ == "__main__":
    sys.exit(main())
