"""``gambit replay``: what a run did, decided anew and compared with its log."""

from collections.abc import Mapping, Sequence

import click
import msgspec

from gambit_actors.actors.history import ReplayedRun
from gambit_actors.actors.runtime import open_runtime
from gambit_actors.cli.asking import refuse_another_deck
from gambit_actors.cli.flow import printable
from gambit_actors.cli.stopping import run_until_stopped
from gambit_actors.cli.stored_runs import (
    found_run,
    worded,
)
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.run.entries import TurnEnded
from gambit_actors.run.replaying import Difference
from gambit_actors.store.deck_files import DiskReader
from gambit_actors.store.disk_store import DiskStore


class AskedToReplay(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``gambit replay``, by their names."""

    run_id: str
    store: str
    deck: str | None = None


def replay_from_options(options: Mapping[str, object]) -> int:
    """Replay the run that the command line names; gives the exit code."""
    asked = msgspec.convert(options, AskedToReplay)
    found: list[ReplayedRun] = []
    with worded():
        run_id = found_run(asked.store, asked.run_id).run_id
        refuse_another_deck(asked.deck)

        async def work() -> None:
            # Nobody is asked, and the store is read and not opened.
            async with open_runtime(
                ScriptedProvider([]), reader=DiskReader(), store=DiskStore(asked.store)
            ) as runtime:
                found.extend(await runtime.history.replay(run_id, deck=asked.deck))

        code = run_until_stopped(work)
    return code or _tell(found)


def _tell(runs: Sequence[ReplayedRun]) -> int:
    for run in runs:
        if run.replayed.difference is not None:
            _tell_difference(run, run.replayed.difference)
            return 1
    ended = runs[0].replayed.ended
    if ended is not None and ended.failure is None:
        click.echo(printable(_answer(ended)))
    elif ended is not None and ended.failure is not None:
        words = f"there was no answer: {ended.failure.message}"
        click.echo(printable(words), err=True)
    decided = sum(run.replayed.decided for run in runs)
    what = "1 decision" if decided == 1 else f"{decided} decisions"
    click.echo(f"replayed {what}, byte for byte", err=True)
    return 0


def _tell_difference(run: ReplayedRun, difference: Difference) -> None:
    where = f"{run.run_id} ({run.deck}) differs at entry {difference.index}"
    lines = [
        f"Error: {where}: {difference.words}",
        f"  recorded  {difference.recorded or 'nothing'}",
        f"  now       {difference.now or 'nothing'}",
    ]
    click.echo(printable("\n".join(lines)), err=True)


def _answer(ended: TurnEnded) -> str:
    if ended.result is None or isinstance(ended.result, str):
        return ended.text
    encoded = msgspec.json.encode(ended.result)
    return msgspec.json.format(encoded, indent=2).decode()
