"""Where a run of the command line is shown, and how its end is told.

Exit codes are the same for all commands that run a deck: 0 if there is an answer, 1 if
there is none, 2 if they were asked wrongly, 3 if somebody has to say what became of a
call, 130 after Ctrl-C, 143 after SIGTERM and 129 after SIGHUP.
"""

import contextlib
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import click
import trio
from rich.console import Console

from gambit_actors.actors.sessions import RunResult
from gambit_actors.cli.asking import Playing
from gambit_actors.cli.flow import printable
from gambit_actors.cli.refusing import Refused
from gambit_actors.cli.showing import PipeConsole, Show, summary_line
from gambit_actors.cli.stored_runs import resume_command
from gambit_actors.errors import GambitError, RunFailed
from gambit_actors.trace.events import RunEnd, RunStart, TraceEvent
from gambit_actors.trace.live import LiveFeed
from gambit_actors.trace.sinks import JsonlSink
from gambit_actors.trace.tracer import Sink

WAITING = 3
"""What a shell is told of a run that waits for somebody's answer."""


class Ending:
    """A sink that waits for the last event of a run, and notes which run it is."""

    def __init__(self) -> None:
        self.event: RunEnd | None = None
        self.run_id: str | None = None

    def __call__(self, event: TraceEvent) -> None:
        """Look at an event."""
        if isinstance(event, RunStart):
            self.run_id = event.run_id
        elif isinstance(event, RunEnd):
            self.event = event


class Stage:
    """Shows one run: its answer on standard output, all else on standard error.

    Args:
        asked: how.
        screen: where all of it is shown instead, with labels.

    Attributes:
        ending: what is known of the run.
        result: what it came to; None if it was stopped.
        sinks: what the runtime has to tell.
    """

    def __init__(self, asked: Playing, *, screen: Console | None = None) -> None:
        self.ending = Ending()
        self.result: RunResult | None = None
        self.sinks: list[Sink] = [self.ending]
        # By name, because standard output is another one while a deck runs.
        answers = screen or PipeConsole(file=sys.stdout, highlight=False)
        self.notes = screen or PipeConsole(stderr=True, highlight=False)
        self.show = Show(
            answers,
            self.notes,
            is_labelled=answers.is_terminal or screen is not None,
            is_streamed=asked.stream,
            is_verbose=asked.verbose,
        )
        self._asked = asked

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Show what happens, as long as the block lasts.

        Raises:
            Refused: there can be no trace in that file.
        """
        with contextlib.ExitStack() as stack:
            if self._asked.trace is not None:
                self.sinks.append(stack.enter_context(_trace_to(self._asked.trace)))
            # Code that is not confined runs in this process, and what it prints is no
            # part of the answer.
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
            stack.callback(self.show.close)
            yield

    async def follow(  # noqa: ASYNC910  # the nursery waits
        self, feed: LiveFeed, ask: Callable[[], Awaitable[RunResult]]
    ) -> None:
        """Show what a feed tells until somebody has an answer, then the answer.

        Args:
            feed: one of the runtime's sinks.
            ask: gives the answer, or raises `RunFailed` with what there is of it.
        """
        problem: Exception | None = None
        results: list[RunResult] = []

        async def work() -> None:  # noqa: ASYNC910  # it waits for an answer
            nonlocal problem
            try:
                results.append(await _result(ask))
            except GambitError as raised:
                problem = raised
            feed.close()

        with feed.subscribe() as waiting:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(work)
                try:
                    async for event in waiting:
                        self.show.feed(event)
                except OSError as raised:  # Nobody reads any more.
                    problem = raised
                    nursery.cancel_scope.cancel()
        if problem is not None:
            raise problem
        if results:
            self.finish(results[0])

    def finish(self, result: RunResult) -> None:
        """Show an answer, if its words have not been shown."""
        self.result = result
        self.show.finish(result)

    def tell_end(self, *, is_kept: bool = False) -> int:
        """Say why there is no answer, if there is none, and sum up; the exit code.

        Args:
            is_kept: whether the run can be found again, so that its id is of use.
        """
        assert self.result is not None  # noqa: S101  # whoever was stopped does not ask
        return tell_end(self.result, self.ending, self.notes, is_kept=is_kept)

    def tell_how_to_go_on(self, store: str | None) -> None:
        """Say what to type if the run was stopped, or could not be kept to its end."""
        # A run that is over is not begun again to give its answer.
        run_id = self.ending.run_id if self.result is None else self.result.run_id
        words = _how_to_go_on(run_id, store, self.result) if store and run_id else None
        if words is not None:
            click.echo(words, err=True)


def tell_end(
    result: RunResult, ending: Ending, notes: Console, *, is_kept: bool = False
) -> int:
    """Say why there is no answer, if there is none, and sum up; gives the exit code."""
    if result.failure is not None:
        click.echo(f"Error: {printable(result.failure.message)}", err=True)
    if ending.event is not None:
        line = summary_line(ending.event)
        if is_kept:
            line.append(f" · {printable(result.run_id)}", style="not bold default")
        notes.print(line, soft_wrap=True)
    return 0 if result.failure is None else 1


def _how_to_go_on(run_id: str, store: str, result: RunResult | None) -> str | None:
    """What to say of a run that was stopped or could not be kept; None of any other."""
    if result is None or result.status == "cancelled":
        command = resume_command(run_id, store, "--message", "TEXT")
        return f"It was stopped. Say something else to it with:\n  {command}"
    if result.failure is not None and result.failure.code == "store_failed":
        command = resume_command(run_id, store)
        return f"When that is mended, go on with it:\n  {command}"
    return None


async def _result(ask: Callable[[], Awaitable[RunResult]]) -> RunResult:
    """What an answer came to; no answer is a result as well."""
    try:
        return await ask()
    except RunFailed as failed:
        if not isinstance(failed.result, RunResult):
            raise  # The runtime raises no other.
        return failed.result  # noqa: ASYNC910  # it has waited


def _trace_to(path: str) -> JsonlSink:
    try:
        return JsonlSink(path)
    except OSError as problem:
        raise Refused(printable(f"--trace {path}: {problem.strerror}")) from problem
