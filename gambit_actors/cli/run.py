"""``gambit run``: one deck, one message, the answer on standard output.

Exits with 0 if there is an answer, 1 if there is none, 2 if it was asked wrongly, 130
after Ctrl-C and 143 after SIGTERM; also then the run ends in order, and its trace is
whole.
"""

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path

import click
import msgspec
from rich.console import Console

from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.runtime import Runtime, open_runtime
from gambit_actors.actors.sessions import RunResult
from gambit_actors.cli.asking import (
    Asked,
    Refused,
    context_from,
    context_hint,
    prices_from,
    refuse_what_is_no_deck,
    script_from,
    why_a_script,
)
from gambit_actors.cli.flow import printable
from gambit_actors.cli.showing import PipeConsole, Show, summary_line
from gambit_actors.cli.stopping import run_until_stopped
from gambit_actors.errors import GambitError, RequestError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.store.deck_files import DiskReader
from gambit_actors.trace.events import RunEnd, TraceEvent
from gambit_actors.trace.sinks import JsonlSink
from gambit_actors.trace.tracer import Sink


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
    asked = msgspec.convert(options, Asked)
    try:
        return _run(asked)
    except RequestError as problem:
        hint = context_hint(asked)
        words = f"{problem}\n{hint}" if hint else str(problem)
        raise Refused(printable(words)) from problem
    except GambitError as problem:
        raise click.ClickException(printable(str(problem))) from problem


def _run(asked: Asked) -> int:
    refuse_what_is_no_deck(asked.deck)
    context = context_from(asked.context)
    options = RunOptions(
        unconfined=frozenset(asked.unconfined),
        models=("scripted/model",),
        limits=asked.limits,
        prices=prices_from(asked.price),
    )
    if asked.script is None:
        raise Refused(why_a_script(asked.deck))
    provider = ScriptedProvider(script_from(Path(asked.script)))
    # By name, because standard output is another one while the deck runs.
    answers = PipeConsole(file=sys.stdout, highlight=False)
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
        async with open_runtime(
            provider, reader=DiskReader(), sinks=sinks, options=options
        ) as runtime:
            results.append(await _shown(runtime, asked, context, show))

    with contextlib.ExitStack() as stack:
        sinks: list[Sink] = [ending]
        if asked.trace is not None:
            sinks.append(stack.enter_context(_trace_to(asked.trace)))
        # Code that is not confined runs in this process, and what it prints is no
        # part of the answer.
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        stack.callback(show.close)
        code = run_until_stopped(work)
    return code or tell_end(results[0], ending, notes)


def _trace_to(path: str) -> JsonlSink:
    try:
        return JsonlSink(path)
    except OSError as problem:
        raise Refused(printable(f"--trace {path}: {problem.strerror}")) from problem


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
