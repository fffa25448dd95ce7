"""``gambit runs``: the runs in a folder, a line each, or one JSON document."""

import fnmatch
import os
import time
from collections.abc import Mapping, Sequence
from datetime import datetime

import click
import msgspec

from gambit_actors.cli.amounts import cost_text
from gambit_actors.cli.deck_folders import PROMPT
from gambit_actors.cli.flow import printable
from gambit_actors.cli.stored_runs import (
    refuse_what_is_no_store,
    resume_command,
    seconds_from,
    worded,
)
from gambit_actors.cli.tables import (
    table_width,
    terminal_width,
    without_empty_columns,
)
from gambit_actors.store.run_index import RunSummary, Status, list_runs

_COLORS: Mapping[Status, str] = {
    "completed": "green",
    "failed": "red",
    "damaged": "red",
    "cancelled": "yellow",
    "interrupted": "yellow",
    "running": "cyan",
    "waiting": "cyan",
}
_TITLES = ("RUN", "STATUS", "LAST", "TURNS", "TOKENS", "COST", "SIZE", "DECK")
# What is given up, one after the other, until a table fits: of LAST, the year and the
# seconds.
_GIVEN_UP = ("SIZE", "TURNS", "LAST", "TOKENS", "COST")
_UNITS = ("B", "KB", "MB", "GB")
_STEP = 1000


class AskedForRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``gambit runs``, by their names."""

    store: str
    failed: bool = False
    interrupted: bool = False
    since: str | None = None
    deck: str | None = None
    limit: int | None = None
    as_json: bool = False


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The document that ``--json`` writes."""

    version: int = 1
    runs: list[RunSummary]


def list_from_options(options: Mapping[str, object]) -> int:
    """List what the command line asks for; gives the exit code."""
    asked = msgspec.convert(options, AskedForRuns)
    refuse_what_is_no_store(asked.store)
    wanted: list[Status] = []
    wanted += ["failed"] if asked.failed else []
    wanted += ["interrupted"] if asked.interrupted else []
    since = None
    if asked.since is not None:
        since = time.time() - seconds_from("--since", asked.since)
    with worded():
        runs = list_runs(
            asked.store,
            status=wanted or None,
            since=since,
        )
    if asked.deck is not None:
        runs = [run for run in runs if not run.deck or _is_of(run, asked.deck)]
    runs = runs[: asked.limit]
    if asked.as_json:
        click.echo(msgspec.json.encode(Listing(runs=runs)))
    else:
        show_runs(runs, asked.store)
    return 0


def show_runs(runs: Sequence[RunSummary], store: str) -> None:
    """Write a table of runs, and on standard error what else is to be said."""
    if not runs:
        click.echo("There are no such runs.", err=True)
        return
    rows = _fitting_rows(runs, terminal_width())
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, run in zip(rows, [None, *runs], strict=True):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        if run is not None:
            cells[1] = click.style(cells[1], fg=_COLORS[run.status])
        click.echo("  ".join(cells).rstrip())
        if run is not None and run.damage is not None:
            damage = run.damage
            where = f"line {damage.line}, byte {damage.offset}: {damage.reason}"
            click.echo(printable(f"  {where}"))
    one = next((run for run in runs if run.status == "interrupted"), None)
    if one is not None:
        command = resume_command(one.run_id, store)
        click.echo(f"Go on with what was interrupted: {command}", err=True)


def size_text(count: float) -> str:
    """A number of bytes, as people read it."""
    for unit in _UNITS[:-1]:
        if count < _STEP:
            return f"{count:.3g} {unit}"
        count /= _STEP
    return f"{count:.3g} {_UNITS[-1]}"


def _is_of(run: RunSummary, glob: str) -> bool:
    """Whether the deck of a run is like this: its file, its folder or where it is."""
    globs = (glob.removesuffix("/"), os.path.abspath(glob))  # noqa: PTH100  # a glob
    names = [run.deck, run.path]
    names += [name.removesuffix(f"/{PROMPT}") for name in names]
    return any(fnmatch.fnmatchcase(name, one) for name in names for one in globs)


def _fitting_rows(runs: Sequence[RunSummary], width: int) -> list[list[str]]:
    """A table with its head, with as much of each run as has room."""
    rows: list[list[str]] = []
    for count in range(len(_GIVEN_UP) + 1):
        gone = _GIVEN_UP[:count]
        titles = [title for title in _TITLES if title not in gone or title == "LAST"]
        cells = [_cells(run, is_brief="LAST" in gone) for run in runs]
        rows = [titles, *([row[title] for title in titles] for row in cells)]
        if table_width(rows) <= width:
            break
    return without_empty_columns(rows)


def _cells(run: RunSummary, *, is_brief: bool) -> dict[str, str]:
    """What is known of a run, by the titles of the columns."""
    is_told = run.code is None or run.code == run.status
    when = datetime.fromtimestamp(run.last).astimezone()
    return {
        "RUN": run.run_id,
        "STATUS": printable(run.status if is_told else f"{run.status} {run.code}"),
        "LAST": f"{when:%m-%d %H:%M}" if is_brief else f"{when:%Y-%m-%d %H:%M:%S}",
        "TURNS": "" if run.turns is None else str(run.turns),
        "TOKENS": "" if run.usage is None else str(run.usage.total_tokens),
        "COST": "" if run.cost is None else cost_text(run.cost),
        "SIZE": size_text(run.bytes),
        "DECK": printable(run.deck).removesuffix(f"/{PROMPT}"),
    }
