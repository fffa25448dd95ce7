"""The entries of a log as lines for people: when, what kind, and the first words."""

from datetime import datetime
from pathlib import Path
from typing import assert_never

import click
import msgspec

from gambit_actors.cli.amounts import cost_text
from gambit_actors.cli.flow import printable
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
)
from gambit_actors.openresponses.parts import SummaryText
from gambit_actors.openresponses.responses import Usage
from gambit_actors.run.entries import (
    CallEnded,
    CallNoted,
    CallStarted,
    ChildStarted,
    Entry,
    ItemAdded,
    MetaSet,
    ModelAnswered,
    ModelLost,
    RunEnded,
    RunResumed,
    RunStarted,
    TurnEnded,
    TurnStarted,
)
from gambit_actors.store.log_lines import LogContents

_CUT_CHARACTERS = 160


class LogView:
    """Shows entries in their order; it remembers what calls are called."""

    def __init__(self) -> None:
        self._turns = 0
        self._calls: dict[str, str] = {}

    def show(self, _path: Path, contents: LogContents, shown: int) -> None:
        """Show the entries of a log from one of them on."""
        pairs = zip(contents.entries, contents.lines, strict=True)
        for entry, line in list(pairs)[shown:]:
            label, words = self.line_of(entry)
            when = datetime.fromtimestamp(line.ts).astimezone()
            words = " ".join(printable(words).split())
            if len(words) > _CUT_CHARACTERS:
                words = f"{words[:_CUT_CHARACTERS]}..."
            if isinstance(entry, RunStarted):
                words += f", {when:%Y-%m-%d}"
            click.echo(f"{when:%H:%M:%S}  {label:<8}{words}".rstrip())

    def line_of(self, entry: Entry) -> tuple[str, str]:
        """What kind of entry it is, in a word, and what it says."""
        match entry:
            case (
                ItemAdded(item=item, source=source)
                | CallNoted(item=item, source=source)
            ):
                return self._item(item, source)
            case ModelAnswered() | ModelLost() | CallStarted() | CallEnded():
                return self._about_calls(entry)
            case MetaSet(key=key, value=value):
                return "keeps", f"{key} = {msgspec.json.encode(value).decode()}"
            case _:
                return self._about_the_run(entry)

    def _about_calls(
        self, entry: ModelAnswered | ModelLost | CallStarted | CallEnded
    ) -> tuple[str, str]:
        match entry:
            case ModelAnswered(model=model, status=status, usage=usage):
                return "asked", f"{model}: {status}{_tokens(usage)}"
            case ModelLost(model=model, tokens=tokens):
                most = f" of {tokens} tokens at most" if tokens else ""
                return "lost", f"{model}: an answer{most}"
            case CallStarted(call_id=call_id, name=name, attempt=attempt):
                self._calls.setdefault(call_id, name)
                again = f", attempt {attempt}" if attempt > 1 else ""
                below = f", as {entry.run_id}" if entry.run_id else ""
                return "begins", f"{name}{again}{below}"
            case CallEnded(call_id=call_id, output=output):
                return "ends", f"{self._calls.get(call_id, call_id)} {output}"
            case _:
                assert_never(entry)

    def _about_the_run(
        self,
        entry: RunStarted
        | RunResumed
        | TurnStarted
        | ChildStarted
        | TurnEnded
        | RunEnded,
    ) -> tuple[str, str]:
        match entry:
            case RunStarted(run_id=run_id, deck=deck, branched_from=branched):
                return "run", f"{run_id}, {deck}" + (
                    f", branched from {branched}" if branched else ""
                )
            case RunResumed():
                return "resumed", ""
            case TurnStarted():
                self._turns += 1
                return "turn", str(self._turns)
            case ChildStarted(run_id=run_id, path=path):
                return "runs", f"{path} as {run_id}"
            case TurnEnded(status=status, failure=failure):
                why = f": {failure.message} ({failure.code})" if failure else ""
                return "turn", f"{self._turns} {status}{why}"
            case RunEnded(status=status, usage=usage, cost=cost):
                paid = "" if cost is None else f", cost {cost_text(cost)}"
                return "ended", f"{status}{_tokens(usage)}{paid}"
            case _:
                assert_never(entry)

    def _item(self, item: Item, source: str) -> tuple[str, str]:
        match item:
            case Message():
                return source, item.text or item.refusal
            case FunctionCall(call_id=call_id, name=name, arguments=arguments):
                self._calls[call_id] = name
                return "calls", f"{name} {arguments}"
            case FunctionCallOutput(call_id=call_id, output=output):
                text = output if isinstance(output, str) else "[parts]"
                return "gives", f"{self._calls.get(call_id, call_id)} {text}"
            case Reasoning():
                parts = [p.text for p in item.summary if isinstance(p, SummaryText)]
                return "thinks", " ".join(parts)
            case _:
                return "item", item.type


def _tokens(usage: Usage | None) -> str:
    if usage is None:
        return ""
    into, out = usage.input_tokens, usage.output_tokens
    return f", {usage.total_tokens} tokens ({into} in, {out} out)"
