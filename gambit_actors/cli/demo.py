"""``gambit demo FILE``: a recorded stream, decoded in front of your eyes."""

import collections
from collections.abc import Iterable, Iterator

import click
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from gambit_actors.cli.flow import Flow, printable
from gambit_actors.errors import EventTooLarge, StreamTruncated
from gambit_actors.openresponses.builder import ResponseBuilder
from gambit_actors.openresponses.codec import decode_event
from gambit_actors.openresponses.events import (
    Event,
    FunctionCallArgumentsDelta,
    MalformedEvent,
    OutputItemAdded,
    OutputTextDelta,
    ReasoningDelta,
    ReasoningSummaryTextDelta,
    RefusalDelta,
    UnknownEvent,
)
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
)
from gambit_actors.openresponses.parts import ReasoningText, SummaryText
from gambit_actors.openresponses.responses import Response
from gambit_actors.openresponses.sse import SSEDecoder

_NARROWEST = 20
_STATUS_STYLES = {"completed": "green", "incomplete": "yellow", "failed": "red"}


def play(chunks: Iterable[bytes]) -> None:
    """Decode a stream, show it as it comes, then show what it built.

    Raises:
        StreamTruncated: the stream had no end; what there was is shown first.
        EventTooLarge: an event outgrew the decoder; what came before is shown first.
        ClickException: there is no event in the stream.
    """
    console = Console(highlight=False)
    console.width = max(console.width, _NARROWEST)
    flow = Flow(console)
    builder = ResponseBuilder()
    tally: collections.Counter[str] = collections.Counter()
    reader = _Reader(chunks)
    for event in reader.events():
        if not tally["event"]:
            console.print(Rule("the stream, as it arrives", align="left"))
        builder.feed(event)
        tally["event"] += 1
        tally["unknown"] += isinstance(event, UnknownEvent)
        tally["malformed"] += isinstance(event, MalformedEvent)
        _show_event(flow, event)
    if not tally["event"]:
        raise click.ClickException(reader.why_nothing())
    flow.end_line()
    try:
        response = reader.close(builder)
    except (StreamTruncated, EventTooLarge):
        _show_response(console, builder.partial(), tally)
        _show_problems(console, [*builder.problems, *reader.cut_off_note()])
        raise
    _show_response(console, response, tally)
    _show_problems(console, builder.problems)


class _Reader:
    """Bytes to events, and what to say of bytes that hold none."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._head = b""
        self._cut_off = b""
        self._decoder = SSEDecoder()

    def events(self) -> Iterator[Event]:
        """The events, up to the end or to one that is too large."""
        for chunk in self._chunks:
            self._head = self._head or chunk[:64]
            try:
                frames = self._decoder.feed(chunk)
            except EventTooLarge:
                return  # `close` raises it again, when all before it is shown.
            for frame in frames:
                if not frame.is_done:
                    yield decode_event(frame.data)

    def close(self, builder: ResponseBuilder) -> Response:
        """The response, if the stream came to its end."""
        self._cut_off = self._decoder.close()
        return builder.close()

    def why_nothing(self) -> str:
        if not self._head.strip():
            return "there is nothing to decode: the input is empty"
        if self._head.lstrip().startswith(b"{"):
            return (
                "no server-sent events here: this looks like a JSON document, "
                "such as a response that was not streamed"
            )
        return (
            "no server-sent events here: expected lines such as 'data: {...}', "
            "each event followed by a blank line"
        )

    def cut_off_note(self) -> list[str]:
        if not self._cut_off:
            return []
        size = len(self._cut_off)
        return [
            f"the input ends inside an event: {size} bytes without a blank line after"
        ]


def _show_event(flow: Flow, event: Event) -> None:
    match event:
        case OutputItemAdded(item=FunctionCall(name=name)):
            flow.start("calls", style="cyan")
            flow.write(f"{name} ")
        case OutputItemAdded(item=Reasoning()):
            flow.start("thinks", style="dim italic")
        case OutputItemAdded(item=Message()):
            flow.start("says", style="")
        case (
            OutputTextDelta(delta=delta)
            | RefusalDelta(delta=delta)
            | ReasoningDelta(delta=delta)
            | ReasoningSummaryTextDelta(delta=delta)
            | FunctionCallArgumentsDelta(delta=delta)
        ):
            flow.write(delta)
        case _:
            pass


def _show_response(
    console: Console, response: Response, tally: collections.Counter[str]
) -> None:
    console.print()
    console.print(Rule("the response it built", align="left"))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for item in response.output:
        status = getattr(item, "status", None) or "-"
        cells = (item.type, status, _summary(item))
        table.add_row(*(Text(printable(cell)) for cell in cells))
    console.print(table)
    console.print()
    console.print(_verdict(response, tally))


def _verdict(response: Response, tally: collections.Counter[str]) -> Text:
    style = _STATUS_STYLES.get(response.status, "yellow")
    line = Text(printable(response.status), style=f"bold {style}")
    if response.error is not None:
        line.append(f" · {printable(response.error.message)}", style="default")
    if response.incomplete_details is not None:
        line.append(f" · {printable(response.incomplete_details.reason)}")
    events = tally["event"]
    line.append(f" · {events} event{'' if events == 1 else 's'}")
    for kind in ("unknown", "malformed"):
        if tally[kind]:
            line.append(f", {tally[kind]} {kind}")
    if response.usage is not None:
        usage = response.usage
        line.append(
            f" · {usage.total_tokens} tokens"
            f" ({usage.input_tokens} in, {usage.output_tokens} out)"
        )
    return line


def _show_problems(console: Console, problems: list[str]) -> None:
    for problem, times in collections.Counter(problems).items():
        note = f"note: {problem}" + (f" (x{times})" if times > 1 else "")
        console.print(Text(printable(note), style="yellow"))


def _summary(item: Item) -> str:
    match item:
        case Message():
            return item.text or item.refusal
        case FunctionCall(name=name, arguments=arguments):
            return f"{name} {arguments}"
        case FunctionCallOutput(output=output):
            return output if isinstance(output, str) else "(parts)"
        case Reasoning(summary=summary, content=content):
            return " ".join(
                part.text
                for part in (*summary, *(content or ()))
                if isinstance(part, SummaryText | ReasoningText)
            )
        case _:
            return ""
