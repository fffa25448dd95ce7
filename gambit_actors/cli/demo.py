"""``gambit demo``: a recorded stream, decoded in front of your eyes."""

import time
from collections.abc import Iterator
from importlib import resources

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from gambit_actors.errors import StreamTruncated
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
from gambit_actors.openresponses.sse import SSEDecoder, SSEFrame

_CHUNK_BYTES = 512
_PAUSE_SECONDS = 0.02
_STATUS_STYLES = {"completed": "green", "incomplete": "yellow", "failed": "red"}


def shipped_stream() -> bytes:
    """The recording that comes with the package."""
    return resources.files("gambit_actors.cli").joinpath("demo.sse").read_bytes()


def play(data: bytes, *, is_paced: bool) -> None:
    """Decode a stream, show it as it comes, then show what it built.

    Raises:
        StreamTruncated: the stream had no end; what there was is shown first.
    """
    console = Console(highlight=False)
    console.print(Rule("the stream, as it arrives", align="left"))
    builder = ResponseBuilder()
    counts = {"events": 0, "unknown": 0, "malformed": 0}
    for event in _events(data):
        builder.feed(event)
        counts["events"] += 1
        counts["unknown"] += isinstance(event, UnknownEvent)
        counts["malformed"] += isinstance(event, MalformedEvent)
        _show_event(console, event)
        if is_paced:
            time.sleep(_PAUSE_SECONDS)
    console.print()
    try:
        response = builder.close()
    except StreamTruncated:
        _show_response(console, builder.partial(), counts, builder.problems)
        raise
    _show_response(console, response, counts, builder.problems)


def _events(data: bytes) -> Iterator[Event]:
    """Cut in small chunks on purpose: events do not care where reads end."""
    decoder = SSEDecoder()
    for start in range(0, len(data), _CHUNK_BYTES):
        for frame in decoder.feed(data[start : start + _CHUNK_BYTES]):
            if not frame.is_done:
                yield _event_of(frame)
    decoder.close()


def _event_of(frame: SSEFrame) -> Event:
    return decode_event(frame.data)


def _show_event(console: Console, event: Event) -> None:
    match event:
        case OutputItemAdded(item=FunctionCall(name=name)):
            console.print()
            console.print(Text(f"→ {printable(name)} ", style="cyan"), end="")
        case OutputItemAdded(item=item) if item is not None:
            console.print()
        case OutputTextDelta(delta=delta):
            console.print(Text(printable(delta)), end="")
        case ReasoningDelta(delta=delta) | ReasoningSummaryTextDelta(delta=delta):
            console.print(Text(printable(delta), style="dim italic"), end="")
        case RefusalDelta(delta=delta):
            console.print(Text(printable(delta), style="yellow"), end="")
        case FunctionCallArgumentsDelta(delta=delta):
            console.print(Text(printable(delta), style="cyan"), end="")
        case _:
            pass


def _show_response(
    console: Console, response: Response, counts: dict[str, int], problems: list[str]
) -> None:
    console.print(Rule("the response it built", align="left"))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for item in response.output:
        status = getattr(item, "status", None) or ""
        table.add_row(
            Text(printable(item.type)), Text(printable(status)), Text(_summary(item))
        )
    console.print(table)
    console.print(Rule(style="dim"))
    style = _STATUS_STYLES.get(response.status, "yellow")
    line = Text(printable(response.status), style=f"bold {style}")
    if response.error is not None:
        line.append(f" · {printable(response.error.message)}")
    if response.incomplete_details is not None:
        line.append(f" · {printable(response.incomplete_details.reason)}")
    line.append(f" · {counts['events']} events")
    for kind in ("unknown", "malformed"):
        if counts[kind]:
            line.append(f", {counts[kind]} {kind}")
    if response.usage is not None:
        usage = response.usage
        line.append(
            f" · {usage.total_tokens} tokens"
            f" ({usage.input_tokens} in, {usage.output_tokens} out)"
        )
    console.print(line)
    for problem in problems:
        console.print(Text(f"note: {printable(problem)}", style="yellow"))


def _summary(item: Item) -> str:
    match item:
        case Message():
            return printable(item.text or item.refusal)
        case FunctionCall(name=name, arguments=arguments):
            return printable(f"{name} {arguments}")
        case FunctionCallOutput(output=output):
            return printable(output if isinstance(output, str) else "(parts)")
        case Reasoning(summary=summary, content=content):
            parts = (*summary, *(content or ()))
            return printable(
                " ".join(
                    part.text
                    for part in parts
                    if isinstance(part, SummaryText | ReasoningText)
                )
            )
        case _:
            return ""


def printable(text: str) -> str:
    """Text from a model, harmless in a terminal: no control characters but newlines."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for c in text
    )
