"""The entries of a log as lines for people: when, what kind, and the first words."""

from datetime import datetime
from pathlib import Path
from typing import assert_never

import click
import msgspec
from rich.cells import cell_len, set_cell_size

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
from gambit_actors.run.synthetic import COMPLETE
from gambit_actors.store.log_lines import LogContents

_CUT_CHARACTERS = 160
_LABEL_WIDTH = 8
_BEFORE_WORDS = len("12:34:56  ") + _LABEL_WIDTH
_LEAST_CHARACTERS = 20
_MORE = "..."


class _Output(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a call gave, in its envelope: see `gambit_actors.run.envelopes`."""

    run_id: str
    source: msgspec.Raw
    status: float | None = None
    code: str | None = None
    message: str | None = None
    payload: msgspec.Raw = msgspec.Raw()
    meta: msgspec.Raw = msgspec.Raw()


class LogView:
    """Shows entries in their order; it remembers what calls are called.

    Args:
        width: of a line; None for one that is not on a terminal.
        is_verbose: whether entries are shown whole, and those that repeat others, too.
    """

    def __init__(self, *, width: int | None = None, is_verbose: bool = False) -> None:
        self._is_verbose = is_verbose
        room = _CUT_CHARACTERS if width is None else width - _BEFORE_WORDS
        self._room = max(room, _LEAST_CHARACTERS)
        self._turns = 0
        self._calls: dict[str, str] = {}

    def show(self, _path: Path, contents: LogContents, shown: int) -> None:
        """Show the entries of a log from one of them on."""
        pairs = zip(contents.entries, contents.lines, strict=True)
        for entry, line in list(pairs)[shown:]:
            label, words = self.line_of(entry)
            if self._is_repeated(entry) and not self._is_verbose:
                continue
            when = datetime.fromtimestamp(line.ts).astimezone()
            if isinstance(entry, RunStarted):
                words += f", {when:%Y-%m-%d}"
            words = " ".join(printable(words).split())
            if not self._is_verbose and cell_len(words) > self._room:
                words = set_cell_size(words, self._room - len(_MORE)) + _MORE
            click.echo(f"{when:%H:%M:%S}  {label:<{_LABEL_WIDTH}}{words}".rstrip())

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

    def _is_repeated(self, entry: Entry) -> bool:
        """Whether it tells of the end of an action once more, as decks expect it."""
        match entry:
            case ItemAdded(item=FunctionCall(name=name)):
                return name == COMPLETE
            case ItemAdded(item=FunctionCallOutput(call_id=call_id)):
                return self._calls.get(call_id) == COMPLETE
            case _:
                return False

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
                return "ends", self._given(call_id, output)
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
                return "runs", f"{run_id}, {path}"
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
                return "gives", self._given(call_id, text)
            case Reasoning():
                parts = [p.text for p in item.summary if isinstance(p, SummaryText)]
                return "thinks", " ".join(parts)
            case _:
                return "item", item.type

    def _given(self, call_id: str, output: str) -> str:
        """What a call gave: what came of it first, and whose it is only in full."""
        name = self._calls.get(call_id, call_id)
        try:
            given = msgspec.json.decode(output, type=_Output)
        except msgspec.DecodeError:
            return f"{name} {output}"
        if self._is_verbose:
            return f"{name} {output}"
        status = "" if given.status is None else f"{given.status:g}"
        payload, meta = bytes(given.payload).decode(), bytes(given.meta).decode()
        why = ": ".join(filter(None, (given.code, given.message)))
        return " ".join(filter(None, (name, status, why, payload, meta)))


def _tokens(usage: Usage | None) -> str:
    if usage is None:
        return ""
    into, out = usage.input_tokens, usage.output_tokens
    return f", {usage.total_tokens} tokens ({into} in, {out} out)"
