"""``gambit runs prune``: remove old runs, after having asked."""

import sys
from collections.abc import Mapping, Sequence

import click
import msgspec

from gambit_actors.cli.refusing import Refused
from gambit_actors.cli.runs import size_text
from gambit_actors.cli.stored_runs import (
    refuse_what_is_no_store,
    seconds_from,
    worded,
)
from gambit_actors.store.run_index import RunSummary, prune


class AskedToPrune(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``gambit runs prune``, by their names."""

    store: str
    keep: str
    interrupted: bool = False
    dry_run: bool = False
    yes: bool = False


def prune_from_options(options: Mapping[str, object]) -> int:
    """Remove what the command line asks for; gives the exit code."""
    asked = msgspec.convert(options, AskedToPrune)
    keep_seconds = seconds_from("--keep", asked.keep)
    refuse_what_is_no_store(asked.store)
    with worded():
        if asked.dry_run or not asked.yes:
            runs = prune(
                asked.store,
                keep_seconds=keep_seconds,
                dry_run=True,
                include_interrupted=asked.interrupted,
            )
            _list(runs)
            if asked.dry_run or not runs:
                click.echo(f"Would remove {_sum(runs)}.", err=True)
                return 0
            _ask(runs)
        removed = prune(
            asked.store,
            keep_seconds=keep_seconds,
            include_interrupted=asked.interrupted,
        )
    click.echo(f"Removed {_sum(removed)}.", err=True)
    return 0


def _ask(runs: Sequence[RunSummary]) -> None:
    if not (sys.stdin and sys.stdin.isatty()):
        raise Refused("nobody is here to be asked: say --yes, or --dry-run")
    click.confirm(f"Remove {_sum(runs)}?", abort=True, err=True)


def _list(runs: Sequence[RunSummary]) -> None:
    for run in runs:
        click.echo(run.run_id)


def _sum(runs: Sequence[RunSummary]) -> str:
    size = size_text(sum(run.bytes for run in runs))
    return f"{len(runs)} {'run' if len(runs) == 1 else 'runs'} ({size})"
