"""A run of the benchmark of events in words."""

from collections.abc import Iterator, Sequence

import msgspec

from benchmarks.contenders import FLOOR, OPENAI, OURS
from benchmarks.costs import Cost, Verdict, ratio_of
from benchmarks.long_line import LineCost
from benchmarks.machine import Machine
from benchmarks.tables import section, times, verdict_rows


class StreamFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream is like, and how many of its events the SDK's models refuse."""

    name: str
    events: int
    size: int
    refused_by_sdk: int | None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one run found; also what ``--json`` writes."""

    machine: Machine
    is_quick: bool
    streams: list[StreamFacts]
    events_compared: int
    events: list[Cost]
    first_events: list[Cost]
    parts: list[Cost]
    long_lines: list[LineCost]
    verdicts: list[Verdict]


def report_lines(report: Report) -> Iterator[str]:
    """All tables of a run."""
    yield f"Equal output: {report.events_compared} events compared with what was sent."
    yield from section("Streams", _stream_rows(report.streams))
    yield from section("Bytes to typed events", _event_rows(report.events))
    yield from section(
        "First byte fed to first event out (us)", _first_rows(report.first_events)
    )
    yield from section("Our other parts", _part_rows(report.parts))
    yield from section(
        "One line in 1 KiB chunks, no JSON", _line_rows(report.long_lines)
    )
    yield from section(
        "Targets", verdict_rows(report.verdicts, subject="stream", case="shape")
    )


def _stream_rows(streams: Sequence[StreamFacts]) -> list[list[str]]:
    rows = [["stream", "events", "bytes", "bytes/event", "not valid to the openai SDK"]]
    for facts in streams:
        refused = "-" if facts.refused_by_sdk is None else str(facts.refused_by_sdk)
        per_event = f"{facts.size / facts.events:.0f}"
        rows.append(
            [facts.name, str(facts.events), str(facts.size), per_event, refused]
        )
    return rows


def _event_rows(costs: Sequence[Cost]) -> list[list[str]]:
    rows = [
        ["stream", "shape", "decoder", "us/event", "median", "x floor", "openai / it"]
    ]
    for cost in costs:
        where = (cost.subject, cost.case)
        rows.append(
            [
                *where,
                cost.name,
                f"{cost.best_us:.3f}",
                f"{cost.median_us:.3f}",
                times(ratio_of(costs, where, cost.name, FLOOR)),
                times(ratio_of(costs, where, OPENAI, cost.name)),
            ]
        )
    return rows


def _first_rows(costs: Sequence[Cost]) -> list[list[str]]:
    names = list(dict.fromkeys(cost.name for cost in costs))
    rows = [["waiting for", "arriving", *names, "openai / ours"]]
    for where in dict.fromkeys((cost.subject, cost.case) for cost in costs):
        best = {c.name: c.best_us for c in costs if (c.subject, c.case) == where}
        ratio = times(ratio_of(costs, where, OPENAI, OURS))
        rows.append([*where, *(f"{best[name]:.1f}" for name in names), ratio])
    return rows


def _part_rows(costs: Sequence[Cost]) -> list[list[str]]:
    rows = [["part", "given", "us/event", "median"]]
    rows += [
        [cost.subject, cost.case, f"{cost.best_us:.3f}", f"{cost.median_us:.3f}"]
        for cost in costs
    ]
    return rows


def _line_rows(costs: Sequence[LineCost]) -> list[list[str]]:
    rows = [["decoder", "line", "ms per MB", "peak memory"]]
    for cost in sorted(costs, key=lambda cost: (cost.decoder != OURS, cost.decoder)):
        length, peak = f"{cost.megabytes} MB", f"{cost.peak_factor:.1f}x the line"
        rows.append([cost.decoder, length, f"{cost.ms_per_megabyte:.2f}", peak])
    return rows
