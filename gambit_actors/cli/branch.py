"""``gambit branch``: a run that shares the beginning of another."""

from collections.abc import Mapping

import click
import msgspec

from gambit_actors.actors.runtime import open_runtime
from gambit_actors.cli.answering import Answering
from gambit_actors.cli.asking import refuse_another_deck
from gambit_actors.cli.resume import AskedToResume, go_on_with
from gambit_actors.cli.stopping import run_until_stopped
from gambit_actors.cli.stored_runs import (
    found_run,
    refuse_damaged,
    resume_command,
    worded,
)
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.store.deck_files import DiskReader
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.store.run_index import find_run


class AskedToBranch(AskedToResume, frozen=True, kw_only=True):
    """The options of ``gambit branch``, by their names."""

    items: int


def branch_from_options(options: Mapping[str, object]) -> int:
    """Begin the run that the command line asks for; gives the exit code."""
    asked = msgspec.convert(options, AskedToBranch)
    with worded():
        run = found_run(asked.store, asked.run_id)
        refuse_damaged(run, asked.store)
        refuse_another_deck(asked.deck)
        if asked.message is not None:
            Answering(asked, asked.deck or run.path)  # Or there would be half of it.
        begun: list[str] = []

        async def work() -> None:
            async with (
                DiskStore(asked.store, durability=asked.durability) as store,
                open_runtime(
                    ScriptedProvider([]), reader=DiskReader(), store=store
                ) as runtime,
            ):
                history = runtime.history
                begun.append(await history.branch(run.run_id, items=asked.items))

        code = run_until_stopped(work)
        if code:
            return code
        if asked.message is not None:
            click.echo(f"branched as {begun[0]}", err=True)
            return go_on_with(asked, find_run(asked.store, begun[0]), {})
    click.echo(begun[0])
    click.echo(f"Go on with it: {resume_command(begun[0], asked.store)}", err=True)
    return 0
