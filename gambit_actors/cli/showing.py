"""A run on a terminal: the answer as it comes, and what is done for it in dim lines.

Words of the root deck go to one console, all else to another, so that a pipe gets the
answer and nothing else. Nothing of it is trusted: see `printable`.
"""

import errno
import os

import msgspec
from rich.console import Console
from rich.text import Text

from gambit_actors.actors.sessions import RunResult
from gambit_actors.cli.amounts import cost_text, counted
from gambit_actors.cli.flow import Flow, printable
from gambit_actors.cli.speakers import Speakers, envelope_in
from gambit_actors.openresponses.events import OutputTextDelta
from gambit_actors.run.synthetic import COMPLETE, CONTEXT_NAMES, END, RESPOND
from gambit_actors.trace.events import (
    DeckStart,
    HandlerSaid,
    Lagged,
    Log,
    ModelCall,
    ModelFailover,
    ModelNotice,
    RunEnd,
    StreamEvent,
    ToolCalled,
    ToolResult,
    TraceEvent,
)

_CUT_CHARACTERS = 100
_SYNTHETIC = frozenset({*CONTEXT_NAMES, COMPLETE, END, RESPOND})
"""Calls that say what the runtime shows in other ways, or nothing to a reader."""

_STYLES = {"completed": "green", "cancelled": "yellow", "failed": "red"}


class PipeConsole(Console):
    """A console that says it when nobody reads any more, instead of exiting.

    An exit from inside a run would come out of its tasks in a group, as a traceback.
    """

    def on_broken_pipe(self) -> None:
        """Be quiet from now on, and let the caller end what it does."""
        self.quiet = True
        # What is left in its buffer goes nowhere, or Python would complain at its end.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class Show:
    """Shows the events of one turn.

    Args:
        answers: where the root deck's words go.
        notes: where the rest goes.
        is_labelled: whether words have a label in front of them.
        is_streamed: whether words are shown as they come, or only at the end.
        is_verbose: whether calls are shown whole, with what they gave, and what code
            had to say.
    """

    def __init__(
        self,
        answers: Console,
        notes: Console,
        *,
        is_labelled: bool,
        is_streamed: bool = True,
        is_verbose: bool = False,
    ) -> None:
        self._flow = Flow(answers)
        self._notes = notes
        self._is_labelled = is_labelled
        self._is_streamed = is_streamed
        self._is_verbose = is_verbose
        self._speakers = Speakers()
        self._has_begun = False
        # Of the last answer of the root's model: words before a call are no answer.
        self._has_said = False

    def feed(self, event: TraceEvent) -> None:
        """Show what is to be seen of an event."""
        depth = self._speakers.depth_of(event.parent_action_call_id)
        match event:
            case DeckStart():
                self._speakers.began(event)
            case ModelCall() if depth == 0:
                self._has_begun = self._has_said = False
            case StreamEvent(event=OutputTextDelta(delta=piece)) if depth == 0:
                if self._is_streamed:
                    self._say(piece)
            case ToolCalled(name=name, args=args):
                self._speakers.called(event)
                if name not in _SYNTHETIC or self._is_verbose:
                    self._note("calls", f"{'  ' * depth}{name} {args}")
            case ToolResult(result=str(result)):
                self._note_result(depth, event, result)
            case _:
                self._note_other(event)

    def finish(self, result: RunResult) -> None:
        """Show the answer, if its words have not been shown, and end the line."""
        if result.failure is None and not self._has_said:
            self._has_begun = False
            self._say(answer_text(result))
        self.close()

    def close(self) -> None:
        """End the line that is being written."""
        self._flow.end_line()

    def _say(self, piece: str) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._flow.end_line()
            if self._is_labelled:
                self._flow.start("says", style="")
        self._has_said = self._has_said or bool(piece.strip())
        self._flow.write(piece)

    def _note_result(self, depth: int, event: ToolResult, result: str) -> None:
        indent, name, speakers = "  " * depth, event.name, self._speakers
        handled = speakers.failure_handled(event)
        if handled is not None:
            # Now, because what the handler says to it would otherwise come before it.
            self._note("", f"{'  ' * (depth - 1)}{handled[0]}: {handled[1]}")
        problem, answerer = problem_in(name, result), speakers.answerer(event)
        if problem is not None and answerer is not None:
            self._note("", f"{indent}{answerer} answers: {problem}")
        elif problem is not None and not speakers.was_told(event, problem):
            self._note("", f"{indent}{name}: {problem}")
        elif self._is_verbose:
            self._note("gives", f"{indent}{name} {result}")

    def _note_other(self, event: TraceEvent) -> None:
        match event:
            case HandlerSaid(message=message):
                self._note("says", message, is_whole=True)
            case ModelFailover(model=model, next_model=other, error=error):
                self._note("", f"{model}: {error.message}; asking {other}")
            case ModelNotice(model=model, message=message) if self._is_verbose:
                self._note("model", f"{model}: {message}")
            case Lagged(missed=missed):
                self._note("", f"{missed} events came too fast to be shown")
            case Log(message=message) if self._is_verbose:
                self._note("logs", message)
            case _:
                pass

    def _note(self, label: str, words: str, *, is_whole: bool = False) -> None:
        self._flow.end_line()
        self._has_begun = False
        line = " ".join(printable(words.rstrip()).splitlines())
        is_cut = not (is_whole or self._is_verbose) and len(line) > _CUT_CHARACTERS
        if is_cut:
            line = f"{line[:_CUT_CHARACTERS]}..."
        self._notes.print(Text(f"{label:<8}{line}", style="dim"), soft_wrap=True)


def problem_in(name: str, output: str) -> str | None:
    """What the output of a call says went wrong with it; None if nothing did."""
    envelope = envelope_in(output)
    if envelope.code == "cannot_confine" and envelope.problem is not None:
        return f"{envelope.problem} (--unconfined {name} runs it all the same)"
    return envelope.problem


def answer_text(result: RunResult) -> str:
    """An answer as it is printed: words as they are, anything else as JSON."""
    if result.value is None or isinstance(result.value, str):
        return result.text
    encoded = msgspec.json.encode(result.value)
    return msgspec.json.format(encoded, indent=2).decode()


def summary_line(end: RunEnd) -> Text:
    """A run in one line: how it went, how long it took and what it cost."""
    line = Text(end.status, style=f"bold {_STYLES[end.status]}")
    facts = [f"{end.duration:.1f} s", counted(end.passes, "pass", "passes")]
    facts.append(counted(end.calls, "call", "calls"))
    if end.usage is not None:
        usage = end.usage
        facts.append(
            f"{counted(usage.total_tokens, 'token', 'tokens')}"
            f" ({usage.input_tokens} in, {usage.output_tokens} out)"
        )
    if end.cost is not None:
        facts.append(f"cost {cost_text(end.cost)}")
    line.append("".join(f" · {fact}" for fact in facts), style="not bold default")
    return line
