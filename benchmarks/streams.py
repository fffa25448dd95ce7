"""The streams that are decoded: made by our own writer, the same on every run.

Each stream is one response as a model gives it: a reasoning summary, a long answer,
two tool calls side by side, the completed response, the end marker.
"""

from collections.abc import Iterator, Sequence

import msgspec

from gambit_actors.openresponses import (
    DONE_FRAME,
    CreateResponse,
    Response,
    ResponseWriter,
    StandardEvent,
    Usage,
    encode,
    encode_event,
    response_for,
)
from gambit_actors.openresponses.base import Extra
from gambit_actors.openresponses.events import (
    FunctionCallArgumentsDelta,
    OutputTextDelta,
    OutputTextDone,
    ReasoningSummaryTextDelta,
)
from gambit_actors.openresponses.requests import ReasoningConfig
from gambit_actors.openresponses.responses import InputTokensDetails
from gambit_actors.openresponses.tools import FunctionTool

CHUNK_BYTES = 64 * 1024

_CREATED_AT = 1_794_960_000
_SUMMARY_DELTAS = 40

_ASCII_TEXT = (
    " the| a| order| shipped| on| Tuesday|,| and| wheel| was| true| again|.| Please"
    "| check| spoke| tension|:|\n\n|1|.| loosen| quarter|-turn| before| riding| it"
    '| (|see| figure| 7|)|;| otherwise| warranty| does| not| cover| damage|!| "quoted"'
    "| back\\slash| 42| km| internationalization"
)
_OTHER_TEXT = (
    " naïve| Größe| coûte| señal| Żółć| колесо| натяжение| спицы| τροχός| 車輪|を|調整"
    "|してください|。| 输入|辐条|张力| 바퀴| 조정| عجلة| الدراجة| पहिया| กงล้อ| 🚲"
    "| 👩🏽\u200d🔧"
)
_ASCII_WORDS = tuple(_ASCII_TEXT.split("|"))
_MIXED_WORDS = (*_ASCII_WORDS[:18], *_OTHER_TEXT.split("|"))
# What OpenAI puts into a response beyond the standard's 31 keys.
_VENDOR_KEYS = {
    "billing": {"payer": "developer"},
    "prompt_cache_retention": None,
    "user": None,
}
_OBFUSCATIONS = ("Xq4", "b7RtWz0pLk", "9dVhQ2sYc3mA1f", "k", "Zt5uE8", "Nw6gJrHx")


class EventStream(msgspec.Struct, frozen=True, kw_only=True):
    """One stream to decode.

    Attributes:
        name: for the tables.
        frames: the bytes of one server-sent event each, the end marker last.
        payloads: the JSON document of each event, so one less than the frames.
        text_at: which event is the first text delta.
    """

    name: str
    frames: tuple[bytes, ...]
    payloads: tuple[bytes, ...]
    text_at: int

    @property
    def events(self) -> int:
        """How many events it has, not counting the end marker."""
        return len(self.payloads)

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return sum(len(frame) for frame in self.frames)

    def cut(self, chunk_bytes: int = CHUNK_BYTES) -> tuple[bytes, ...]:
        """The stream in chunks of equal size, wherever that cuts."""
        return pieces(b"".join(self.frames), chunk_bytes)


def pieces(data: bytes, size: int) -> tuple[bytes, ...]:
    """Bytes in pieces of equal size; the last one may be shorter."""
    return tuple(data[at : at + size] for at in range(0, len(data), size))


def all_streams(text_deltas: int) -> tuple[EventStream, ...]:
    """The four streams of the benchmark, the plain one first."""
    plain = answer_events(_ASCII_WORDS, text_deltas)
    vendor = answer_events(_ASCII_WORDS, text_deltas, is_vendor=True)
    return (
        _stream("plain ASCII", plain),
        _stream("mixed scripts", answer_events(_MIXED_WORDS, text_deltas)),
        _stream("vendor keys in responses", vendor),
        _stream("obfuscation and logprobs", list(_padded(plain))),
    )


def answer_events(
    words: Sequence[str], text_deltas: int, *, is_vendor: bool = False
) -> list[StandardEvent]:
    """The events of one response, with text deltas of these words.

    With ``is_vendor`` its responses carry keys that the standard does not have.
    """
    response = new_response()
    details = InputTokensDetails()
    if is_vendor:
        response = msgspec.structs.replace(response, extra=Extra(_VENDOR_KEYS))
        details = InputTokensDetails(extra=Extra(cache_write_tokens=0))
    writer = ResponseWriter(response)
    events = writer.start()
    events += writer.start_reasoning("thoughts")
    for word in walk(words, _SUMMARY_DELTAS):
        events += writer.add_summary("thoughts", word)
    events += writer.stop("thoughts")
    events += writer.start_text("answer")
    for word in walk(words, text_deltas):
        events += writer.add("answer", word)
    events += writer.stop("answer")
    events += _tool_calls(writer)
    usage = Usage(
        input_tokens=812,
        output_tokens=text_deltas,
        total_tokens=812 + text_deltas,
        input_tokens_details=details,
    )
    return events + writer.finish(
        "tool_use", usage=usage, completed_at=_CREATED_AT + 31
    )


def new_response() -> Response:
    """A response as a server starts it."""
    tool = FunctionTool(
        name="find_order",
        description="Look an order up by its number.",
        parameters={
            "type": "object",
            "properties": {"order_id": {"type": "string"}},
            "required": ["order_id"],
            "additionalProperties": False,
        },
        strict=True,
    )
    request = CreateResponse(
        model="bench-model",
        instructions="You are the support desk of a small bicycle shop.",
        tools=(tool,),
        reasoning=ReasoningConfig(effort="medium", summary="auto"),
        metadata={"ticket": "4711"},
    )
    # Hexadecimal and 50 digits long, as the ids in the wild are.
    return response_for(
        request, id="resp_" + "68b1f0c2d4a97e53" * 3 + "06", created_at=_CREATED_AT
    )


def walk(words: Sequence[str], count: int) -> Iterator[str]:
    """Words in an order that looks arbitrary and never changes."""
    state = 1
    for _ in range(count):
        state = (state * 1_103_515_245 + 12_345) % 2**31
        yield words[(state >> 16) % len(words)]


def ascii_words(count: int) -> list[str]:
    """The words of the plain stream's answer."""
    return list(walk(_ASCII_WORDS, count))


def _tool_calls(writer: ResponseWriter) -> list[StandardEvent]:
    """Two calls whose arguments come in turns."""
    keys = ("first", "second")
    events: list[StandardEvent] = []
    for key in keys:
        events += writer.start_tool_call(key, call_id=f"call_{key}", name="find_order")
    arguments = '{"order_id":"A-2026-118","note":"the customer asked twice"}'
    for at in range(0, len(arguments), 4):
        for key in keys:
            events += writer.add(key, arguments[at : at + 4])
    for key in keys:
        events += writer.stop(key)
    return events


def _padded(events: Sequence[StandardEvent]) -> Iterator[StandardEvent]:
    """Give deltas what OpenAI gives them: padding, and a list of log probabilities."""
    for number, event in enumerate(events):
        padding = _OBFUSCATIONS[number % len(_OBFUSCATIONS)]
        match event:
            case OutputTextDelta():
                yield msgspec.structs.replace(event, logprobs=(), obfuscation=padding)
            case OutputTextDone():
                yield msgspec.structs.replace(event, logprobs=())
            case FunctionCallArgumentsDelta() | ReasoningSummaryTextDelta():
                yield msgspec.structs.replace(event, obfuscation=padding)
            case _:
                yield event


def _stream(name: str, events: Sequence[StandardEvent]) -> EventStream:
    is_text = [isinstance(event, OutputTextDelta) for event in events]
    return EventStream(
        name=name,
        frames=(*(encode_event(event) for event in events), DONE_FRAME),
        payloads=tuple(encode(event) for event in events),
        text_at=is_text.index(True),
    )
