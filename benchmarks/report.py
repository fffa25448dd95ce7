"""A run in words: plain tables for a terminal, or a page."""

from collections.abc import Iterator, Sequence

import msgspec

from benchmarks.contenders import FLOOR, OPENAI, OURS
from benchmarks.long_line import LineCost
from benchmarks.machine import Machine
from benchmarks.measures import Cost
from benchmarks.targets import Verdict, ratio_of

_MARKS = {True: "pass", False: "FAIL", None: "n/a"}


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


def machine_lines(machine: Machine) -> Iterator[str]:
    """What it was measured on."""
    yield f"{machine.date}, {machine.cpu}, {machine.cores} cores, {machine.system}"
    yield f"{machine.python}, load at start {machine.load}"
    yield ", ".join(f"{name} {version}" for name, version in machine.libraries.items())


def report_lines(report: Report) -> Iterator[str]:
    """All tables of a run."""
    yield f"Equal output: {report.events_compared} events compared with what was sent."
    yield from _section("Streams", _stream_rows(report.streams))
    yield from _section("Bytes to typed events", _event_rows(report.events))
    yield from _section(
        "First byte fed to first event out (us)", _first_rows(report.first_events)
    )
    yield from _section("Our other parts", _part_rows(report.parts))
    yield from _section(
        "One line in 1 KiB chunks, no JSON", _line_rows(report.long_lines)
    )
    yield from _section("Targets", _verdict_rows(report.verdicts))


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows in aligned columns, the first row a heading, words left, numbers right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    is_number = [
        all(cell[:1].isdigit() or cell == "-" for cell in column[1:])
        for column in zip(*rows, strict=True)
    ]
    for number, row in enumerate(rows):
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_number, strict=True)
        ]
        yield "  ".join(cells).rstrip()
        if number == 0:
            yield "  ".join("-" * width for width in widths)


def _section(title: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield ""
    yield title
    yield ""
    yield from table(rows)


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
                _times(ratio_of(costs, where, cost.name, FLOOR)),
                _times(ratio_of(costs, where, OPENAI, cost.name)),
            ]
        )
    return rows


def _first_rows(costs: Sequence[Cost]) -> list[list[str]]:
    names = list(dict.fromkeys(cost.name for cost in costs))
    rows = [["waiting for", "arriving", *names, "openai / ours"]]
    for where in dict.fromkeys((cost.subject, cost.case) for cost in costs):
        best = {c.name: c.best_us for c in costs if (c.subject, c.case) == where}
        ratio = _times(ratio_of(costs, where, OPENAI, OURS))
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


def _verdict_rows(verdicts: Sequence[Verdict]) -> list[list[str]]:
    rows = [["target", "stream", "shape", "found", ""]]
    for verdict in verdicts:
        where = [verdict.target, verdict.subject, verdict.case]
        rows.append([*where, _times(verdict.found), _MARKS[verdict.is_met]])
    return rows


def _times(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.1f}x"
