"""The last part of ``gambit demo``: a process is killed, and its run is gone on with.

The desk runs in a process of its own (``python -m`` this module), which is killed while
it leaves a note. Then the run is resumed here, from the log in a temporary folder: what
was done is not done again, and somebody decides about the note.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable

import click
import trio
from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.runtime import open_runtime
from gambit_actors.actors.sessions import RunResult
from gambit_actors.cli.asking import Playing
from gambit_actors.cli.demo_run import DECK, MESSAGE, answer_tool, shipped_script
from gambit_actors.cli.flow import printable
from gambit_actors.cli.showing import PipeConsole
from gambit_actors.cli.stage import Stage
from gambit_actors.cli.stopping import run_until_stopped
from gambit_actors.errors import InDoubt
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Script
from gambit_actors.store.deck_files import DiskReader
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.store.run_index import find_run
from gambit_actors.trace.events import ToolCalled, TraceEvent
from gambit_actors.trace.live import LiveFeed

_UNDER_WAY = "under way"


def show_restart() -> int:
    """Kill a desk at work, and go on with what it did; gives the exit code."""
    # By name, because standard output is another one while a deck runs.
    console = PipeConsole(file=sys.stdout, highlight=False)
    console.print()
    console.print(Rule("the same, killed in the middle of a call", align="left"))
    with tempfile.TemporaryDirectory() as folder:
        _run_and_kill(folder, lambda words: _note(console, words))
        return _resume(folder, console)


def _run_and_kill(folder: str, tell: Callable[[str], None]) -> None:
    """Have the desk work elsewhere, and kill it while it leaves its note.

    Raises:
        ClickException: it did not come as far as that.
    """
    child = [sys.executable, "-m", __name__, folder]
    with subprocess.Popen(  # noqa: S603  # our own
        child, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        is_under_way = False
        for line in process.stdout or ():
            is_under_way = line.strip() == _UNDER_WAY
            if is_under_way:
                break
            tell(f"calls   {line.strip()}")
        process.kill()
    if not is_under_way:
        msg = "the process that was to be killed ended before that"
        raise click.ClickException(msg)
    tell(f"        kill -9 {process.pid}")


def _resume(folder: str, console: Console) -> int:
    """Go on with the run that is in the folder; gives the exit code."""
    run_id = find_run(folder, "last").run_id
    # The model is asked once more: it has not seen what became of the note.
    provider = ScriptedProvider(Script(shipped_script(is_paced=False).replies[-1:]))
    stage, feed = Stage(Playing(), screen=console), LiveFeed()
    stage.sinks.append(feed)
    _note(console, f"        gambit resume {run_id}")

    async def work() -> None:
        async with (
            DiskStore(folder) as store,
            open_runtime(
                provider,
                reader=DiskReader(),
                store=store,
                sinks=stage.sinks,
                options=RunOptions(on_tool=answer_tool),
            ) as runtime,
        ):

            async def resume() -> RunResult:
                try:
                    return await runtime.resume(run_id)
                except InDoubt as problem:
                    (doubt,) = problem.doubts
                    words = f"nobody knows whether {doubt.name} has happened"
                    _note(console, f"        {words}; somebody says: retry")
                    return await runtime.resume(run_id, answers={doubt.key: "retry"})

            await stage.follow(feed, resume)

    with stage.opened():
        code = run_until_stopped(work)
    return code or stage.tell_end()


def _note(console: Console, words: str) -> None:
    console.print(Text(printable(words), style="dim"), soft_wrap=True)


async def _work(folder: str) -> None:
    """Be the process that is killed: say which calls are made, and hang in the last."""

    def tell(event: TraceEvent) -> None:
        if isinstance(event, ToolCalled) and event.tool_kind != "internal":
            print(event.name, event.args, flush=True)

    async def hang(_call: ExternalCall) -> JSONValue:
        print(_UNDER_WAY, flush=True)
        await trio.sleep_forever()

    async with (
        DiskStore(folder) as store,
        open_runtime(
            ScriptedProvider(shipped_script(is_paced=False)),
            reader=DiskReader(),
            store=store,
            sinks=[tell],
            options=RunOptions(on_tool=hang),
        ) as runtime,
    ):
        await runtime.run(DECK, message=MESSAGE)


if __name__ == "__main__":
    trio.run(_work, sys.argv[1])
