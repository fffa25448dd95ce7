"""How a reply of a script becomes events, and what it is said to have cost.

Every event comes from a `ResponseWriter`, so the order is legal. A reply that is told
at once is written only the first time: `PreparedReply` keeps its events as a template
and puts in what differs. Both ways give the same events, which a test holds them to.
No clock, no randomness, no I/O.
"""

import itertools
import re
from collections.abc import Iterator

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.events import StandardEvent
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
)
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response, Usage
from gambit_actors.openresponses.writer import ResponseWriter
from gambit_actors.providers.scripts import Reply, text_of

CHARACTERS_PER_TOKEN = 4
FLOOD_DELTAS = 10_000

_MOST_STEPS = 500
_PIECE = re.compile(r"\S+\s*|\s+")
_STEM = "@"  # Stands in a template where the ids of its items will differ.


class PreparedReply:
    """A reply with what is the same each time it is told.

    Attributes:
        reply: the reply.
        template: its events with blanks; None if it is not to be told at once, because
            it waits, breaks or is long.
    """

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.template: Template | None = None
        self._output_tokens = rough_tokens(characters_of(reply))
        waits = reply.latency_seconds or reply.per_delta_seconds
        if not waits and reply.fault in (None, "failed"):
            template = Template(reply)
            # A stream that is long must let others run in between.
            self.template = template if template.size <= _MOST_STEPS else None

    def usage(self, request: CreateResponse) -> Usage:
        """What the reply claims to have cost, or roughly would have."""
        given = self.reply.usage
        spent = None if given is None else given.input_tokens
        made = None if given is None else given.output_tokens
        spent = rough_tokens(characters_in(request)) if spent is None else spent
        made = self._output_tokens if made is None else made
        return Usage(input_tokens=spent, output_tokens=made, total_tokens=spent + made)


class Template:
    """A reply as the writer tells it, with blanks for ids, settings and usage."""

    def __init__(self, reply: Reply) -> None:
        writer = ResponseWriter(Response(id=f"resp_{_STEM}", status="in_progress"))
        created, begun, *steps, ended = write_reply(reply, writer, usage=None)
        self._first = (created, begun)
        self._steps = [_blank_step(event) for event in steps]
        self._ended = ended
        self._response = writer.response
        self._blanks = list(_blanks(reply, self._response.output))

    @property
    def size(self) -> int:
        """How many events it has between the beginning and the end."""
        return len(self._steps)

    def fill(
        self, started: Response, usage: Usage
    ) -> tuple[list[StandardEvent], Response]:
        """Fill the blanks: the events of one telling, and what they come to."""
        replace = msgspec.structs.replace
        stem = started.id.removeprefix("resp_")
        ids = [
            {key: head + stem + tail for key, head, tail in blanks}
            for blanks in self._blanks
        ]
        end = self._response
        response = replace(
            started,
            status=end.status,
            output=tuple(map(_filled, end.output, ids)),
            usage=usage,
            error=end.error,
            incomplete_details=end.incomplete_details,
            completed_at=end.completed_at,
        )
        events = [replace(event, response=started) for event in self._first]
        for index, event, item in self._steps:
            if item is None:
                events.append(replace(event, item_id=ids[index]["id"]))
            else:
                events.append(replace(event, item=_filled(item, ids[index])))
        events.append(replace(self._ended, response=response))
        return events, response


def _filled(item: Item, ids: dict[str, str]) -> Item:
    return msgspec.structs.replace(item, **ids)


def _blank_step(event: StandardEvent) -> tuple[int, StandardEvent, Item | None]:
    fields: dict[str, JSONValue] = msgspec.structs.asdict(event)
    return fields["output_index"], event, fields.get("item")


def _blanks(
    reply: Reply, output: tuple[Item, ...]
) -> Iterator[list[tuple[str, str, str]]]:
    """List for each item the ids to be made: the key, and what stands around the stem.

    A call id that the script gives is not among them.
    """
    calls = iter(reply.calls)
    for item in output:
        fields: dict[str, JSONValue] = msgspec.structs.asdict(item)
        is_call = isinstance(item, FunctionCall)
        keys = ["id", "call_id"] if is_call and not next(calls).call_id else ["id"]
        yield [(key, *fields[key].split(_STEM)) for key in keys]


def write_reply(
    reply: Reply, writer: ResponseWriter, *, usage: Usage | None
) -> Iterator[StandardEvent]:
    """Tell a reply through a writer, from its first event to its last."""
    yield from writer.start()
    yield from _write_words(reply, writer)
    yield from _write_calls(reply, writer)
    if reply.fault == "failed":
        code = reply.code or "server_error"
        message = reply.message or "the script says so"
        yield from writer.fail(code, message, usage=usage)
    else:
        # A rehearsal has no date: every time is 0.
        yield from writer.finish(reply.stop_reason, usage=usage, completed_at=0)


def _write_words(reply: Reply, writer: ResponseWriter) -> Iterator[StandardEvent]:
    if reply.reasoning is not None:
        yield from writer.start_reasoning("reasoning")
        for piece in _pieces(reply.reasoning, reply.chunk_characters):
            yield from writer.add_summary("reasoning", piece)
        yield from writer.stop("reasoning")
    if reply.text is not None or reply.fault == "flood":
        yield from writer.start_text("text")
        for piece in _text_pieces(reply):
            yield from writer.add("text", piece)
        yield from writer.stop("text")
    if reply.refusal is not None:
        yield from writer.start_refusal("refusal")
        for piece in _pieces(reply.refusal, reply.chunk_characters):
            yield from writer.add("refusal", piece)
        yield from writer.stop("refusal")


def _write_calls(reply: Reply, writer: ResponseWriter) -> Iterator[StandardEvent]:
    stem = writer.response.id.removeprefix("resp_")
    for key, call in enumerate(reply.calls):
        call_id = call.call_id or f"call_{stem}_{key}"
        yield from writer.start_tool_call(key, call_id=call_id, name=call.name)
        arguments = call.arguments_text
        for piece in _pieces(arguments, reply.chunk_characters or len(arguments)):
            yield from writer.add(key, piece)
        yield from writer.stop(key)


def _text_pieces(reply: Reply) -> Iterator[str]:
    if reply.fault != "flood":
        return _pieces(reply.text or "", reply.chunk_characters)
    return itertools.repeat(*_flood(reply))


def _flood(reply: Reply) -> tuple[str, int]:
    """One delta of a flood, and how many there are of it."""
    count = FLOOD_DELTAS if reply.count is None else reply.count
    return reply.text or "flood ", count


def _pieces(text: str, size: int | None) -> Iterator[str]:
    """Cut a text into words with the space after them, or into pieces of a size."""
    if size is None:
        return (word[0] for word in _PIECE.finditer(text))
    return (text[start : start + size] for start in range(0, len(text), size or 1))


def rough_tokens(characters: int) -> int:
    """Count tokens as if each had four characters, rounded up."""
    return -(-characters // CHARACTERS_PER_TOKEN)


def characters_of(reply: Reply) -> int:
    """How many characters a reply has that a model would be paid for."""
    piece, count = _flood(reply) if reply.fault == "flood" else (reply.text or "", 1)
    words = len(reply.refusal or "") + len(reply.reasoning or "")
    calls = sum(len(call.name) + len(call.arguments_text) for call in reply.calls)
    return len(piece) * count + words + calls


def characters_in(request: CreateResponse) -> int:
    """How many characters of text a model would have to read."""
    count = len(request.instructions or "")
    if isinstance(request.input, str):
        return count + len(request.input)
    for item in request.input or ():
        match item:
            case Message(content=content) | FunctionCallOutput(output=content):
                count += len(text_of(content))
            case FunctionCall(name=name, arguments=arguments):
                count += len(name) + len(arguments)
            case _:
                pass
    return count
