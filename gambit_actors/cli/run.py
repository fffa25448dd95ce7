"""``gambit run``: one deck, one message, the answer on standard output.

Exits with 0 if there is an answer, 1 if there is none, 2 if it was asked wrongly, and
130 if it was interrupted; also then the run ends in order, and its trace is whole.
"""

import contextlib
import signal
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import click
import msgspec
import trio
from rich.console import Console

from gambit_actors.actors.runtime import RunOptions, Runtime, open_runtime
from gambit_actors.actors.sessions import RunResult
from gambit_actors.cli.flow import printable
from gambit_actors.cli.showing import PipeConsole, Show, summary_line
from gambit_actors.deck.loader import load_deck
from gambit_actors.errors import BadScript, GambitError, RequestError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import (
    Script,
    script_from_jsonl,
    script_from_toml,
)
from gambit_actors.store.deck_files import DiskReader
from gambit_actors.trace.events import RunEnd, TraceEvent
from gambit_actors.trace.sinks import JsonlSink
from gambit_actors.trace.tracer import Sink

INTERRUPTED = 130
"""What a shell calls a command that was ended by Ctrl-C."""


class Refused(click.ClickException):
    """The command was asked for something that cannot be."""

    exit_code = 2


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``gambit run``, by their names."""

    deck: str
    message: str | None = None
    context: str | None = None
    script: str | None = None
    trace: str | None = None
    stream: bool = True
    verbose: bool = False
    unconfined: tuple[str, ...] = ()


class Ending:
    """A sink that waits for the last event of a run."""

    def __init__(self) -> None:
        self.event: RunEnd | None = None

    def __call__(self, event: TraceEvent) -> None:
        """Look at an event."""
        if isinstance(event, RunEnd):
            self.event = event


def run_from_options(options: Mapping[str, object]) -> int:
    """Run what the command line asks for; gives the exit code."""
    try:
        return _run(msgspec.convert(options, Asked))
    except RequestError as problem:
        raise Refused(printable(str(problem))) from problem
    except GambitError as problem:
        raise click.ClickException(printable(str(problem))) from problem


def _run(asked: Asked) -> int:
    if not asked.deck.startswith("gambit://") and not Path(asked.deck).exists():
        raise Refused(f"there is no deck at {printable(asked.deck)}")
    context = _context_from(asked.context)
    if asked.script is None:
        raise Refused(_why_a_script(asked.deck))
    provider = ScriptedProvider(_script_from(Path(asked.script)))
    answers = PipeConsole(highlight=False)
    notes = PipeConsole(stderr=True, highlight=False)
    show = Show(
        answers,
        notes,
        is_labelled=answers.is_terminal,
        is_streamed=asked.stream,
        is_verbose=asked.verbose,
    )
    ending, results = Ending(), list[RunResult]()

    async def work() -> None:
        with contextlib.ExitStack() as stack:
            sinks: list[Sink] = [ending]
            if asked.trace is not None:
                sinks.append(stack.enter_context(JsonlSink(asked.trace)))
            options = RunOptions(
                unconfined=frozenset(asked.unconfined), models=("scripted/model",)
            )
            async with open_runtime(
                provider, reader=DiskReader(), sinks=sinks, options=options
            ) as runtime:
                results.append(await _shown(runtime, asked, context, show))

    try:
        is_done = run_until_interrupted(work)
    finally:
        show.close()
    return tell_end(results[0], ending, notes) if is_done else INTERRUPTED


async def _shown(
    runtime: Runtime, asked: Asked, context: JSONValue, show: Show
) -> RunResult:
    async with (
        runtime.open_session(asked.deck) as session,
        session.stream(asked.message, context=context) as stream,
    ):
        async for event in stream:
            show.feed(event)
    show.finish(stream.result)
    return stream.result


def tell_end(result: RunResult, ending: Ending, notes: Console) -> int:
    """Say why there is no answer, if there is none, and sum up; gives the exit code."""
    if result.failure is not None:
        click.echo(f"Error: {printable(result.failure.message)}", err=True)
    if ending.event is not None:
        notes.print(summary_line(ending.event), soft_wrap=True)
    return 0 if result.failure is None else 1


def run_until_interrupted(work: Callable[[], Awaitable[None]]) -> bool:
    """Run something to its end, or until Ctrl-C; gives whether it came to its end.

    It is cancelled where it waits, and not interrupted where it happens to be: what it
    has to put in order, it can. A second Ctrl-C is not that patient. What it raises
    comes out as it is, and not in a group.
    """
    is_done = False
    try:
        is_done = trio.run(_interruptible, work)
    except* KeyboardInterrupt:
        is_done = False
    return is_done


async def _interruptible(work: Callable[[], Awaitable[None]]) -> bool:
    is_done = False
    problem: Exception | None = None
    async with trio.open_nursery() as nursery:
        await nursery.start(_cancel_on_interrupt, nursery.cancel_scope)
        try:
            await work()
            is_done = True
        except Exception as raised:  # noqa: BLE001  # raised again below
            problem = raised
        nursery.cancel_scope.cancel()
    if problem is not None:
        raise problem
    return is_done


async def _cancel_on_interrupt(  # noqa: ASYNC114  # no context manager starts it
    scope: trio.CancelScope, task_status: trio.TaskStatus[None]
) -> None:
    with trio.open_signal_receiver(signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            scope.cancel()
            return


def _context_from(given: str | None) -> JSONValue:
    """What ``--context`` says: JSON, or @ and the name of a file with JSON in it."""
    if given is None:
        return msgspec.UNSET
    name = "--context"
    text: str | bytes = given
    if given.startswith("@"):
        name = printable(given[1:])
        text = Path(given[1:]).read_bytes()
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as problem:
        raise Refused(f"{name}: {problem}") from problem


def _script_from(path: Path) -> Script:
    read = script_from_jsonl if path.suffix == ".jsonl" else script_from_toml
    try:
        return read(path.read_text(encoding="utf-8"))
    except (BadScript, UnicodeError) as problem:
        raise Refused(printable(f"{path}: {problem}")) from problem


def _why_a_script(path: str) -> str:
    deck = load_deck(DiskReader(), path).usable()
    models = " or ".join(deck.model_params.models) or "the model of this deck"
    return printable(
        f"there is no provider for {models} yet: write down what the model says, and"
        " give it with --script FILE"
    )
