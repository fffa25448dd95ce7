"""The same answers in the words of each dialect, as the frames of its streams.

An answer is told in pieces, which become deltas: what is in them one after the other is
what a reader has to put together. What is one piece comes in one.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from gambit_actors.openresponses import DONE_FRAME, ResponseWriter, encode, encode_event
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.endings import StopReason
from gambit_actors.openresponses.responses import Response
from gambit_actors.providers.dialects.anthropic import AnthropicDialect
from gambit_actors.providers.dialects.chat import ChatDialect
from gambit_actors.providers.dialects.dialect import Dialect
from gambit_actors.providers.dialects.gemini import GeminiDialect
from gambit_actors.providers.dialects.open_responses import OpenResponsesDialect
from gambit_actors.providers.dialects.open_responses_profiles import OPENAI
from tests.providers.wires import USAGE, answer

Frames = list[bytes]


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """How a server that speaks a dialect answers.

    Attributes:
        endings: how many frames at the end of a text do nothing but end it.
        text: a message; ends well.
        thought: what was thought, with a signature if there are any, and a message.
        call: one of the tool ``crm``, whose arguments these are.
        failure: a message that an error breaks off, which has these words.
        whole: a message in one piece, which is no stream.
    """

    dialect: Dialect
    endings: int
    text: Callable[[Sequence[str]], Frames]
    thought: Callable[[Sequence[str]], Frames]
    call: Callable[[Sequence[str]], Frames]
    failure: Callable[[Sequence[str], str], Frames]
    whole: Callable[[str], bytes]


def _frame(value: JSONValue) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


# Open Responses


def _written(
    start: Callable[[ResponseWriter], list[JSONValue]], pieces: Sequence[str]
) -> tuple[ResponseWriter, list[JSONValue]]:
    writer = ResponseWriter(Response(id="resp_1", status="in_progress", model="m-1"))
    events: list[JSONValue] = [*writer.start(), *start(writer)]
    for piece in pieces:
        events += writer.add("k", piece)
    return writer, events


def _ended(
    writer: ResponseWriter, events: list[JSONValue], reason: StopReason = "end_turn"
) -> Frames:
    events += [*writer.stop("k"), *writer.finish(reason, usage=USAGE)]
    return [*map(encode_event, events), DONE_FRAME]


def _or_text(pieces: Sequence[str]) -> Frames:
    return _ended(*_written(lambda w: [*w.start_text("k")], pieces))


def _or_thought(pieces: Sequence[str]) -> Frames:
    writer, events = _written(lambda w: [*w.start_reasoning("k")], pieces)
    events += writer.stop("k")
    events += [*writer.start_text("k"), *writer.add("k", "Yes.")]
    return _ended(writer, events)


def _or_call(pieces: Sequence[str]) -> Frames:
    def start(writer: ResponseWriter) -> list[JSONValue]:
        return [*writer.start_tool_call("k", call_id="c1", name="crm")]

    return _ended(*_written(start, pieces), "tool_use")


def _or_failure(pieces: Sequence[str], words: str) -> Frames:
    writer, events = _written(lambda w: [*w.start_text("k")], pieces)
    events += [*writer.error(words, code="server_error")]
    events += writer.fail("server_error", words)
    return [*map(encode_event, events), DONE_FRAME]


# Chat Completions


def _chat(deltas: Sequence[JSONValue], *ends: JSONValue) -> Frames:
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return [*map(_frame, [*chunks, *ends]), DONE_FRAME]


def _chat_end(reason: str) -> JSONValue:
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    choice = {"index": 0, "delta": {}, "finish_reason": reason}
    return {"choices": [choice], "usage": usage}


def _chat_text(pieces: Sequence[str]) -> Frames:
    return _chat([{"content": piece} for piece in pieces], _chat_end("stop"))


def _chat_thought(pieces: Sequence[str]) -> Frames:
    deltas = [{"reasoning_content": piece} for piece in pieces]
    return _chat([*deltas, {"content": "Yes."}], _chat_end("stop"))


def _chat_call(pieces: Sequence[str]) -> Frames:
    calls: list[JSONValue] = [
        {"index": 0, "id": "c1", "function": {"name": "crm", "arguments": ""}},
        *({"index": 0, "function": {"arguments": piece}} for piece in pieces),
    ]
    deltas = [{"tool_calls": [call]} for call in calls]
    return _chat(deltas, _chat_end("tool_calls"))


def _chat_failure(pieces: Sequence[str], words: str) -> Frames:
    error = {"error": {"message": words, "code": "server_error"}}
    return _chat([{"content": piece} for piece in pieces], error)


def _chat_whole(text: str) -> bytes:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    return msgspec.json.encode({"choices": [choice]})


# Anthropic Messages


def _block(
    index: int, begun: JSONValue, key: str, pieces: Sequence[str]
) -> list[JSONValue]:
    kind = {"partial_json": "input_json_delta"}.get(key, f"{key}_delta")
    frames: list[JSONValue] = [
        {"type": "content_block_start", "index": index, "content_block": begun}
    ]
    for piece in pieces:
        delta = {"type": kind, key: piece}
        frames.append({"type": "content_block_delta", "index": index, "delta": delta})
    return frames


def _anthropic(frames: Sequence[JSONValue]) -> Frames:
    started = {"type": "message_start", "message": {"usage": {"input_tokens": 10}}}
    return [
        b"event: " + one["type"].encode() + b"\n" + _frame(one)
        for one in [started, *frames]
    ]


def _anthropic_end(index: int, reason: str) -> list[JSONValue]:
    return [
        {"type": "content_block_stop", "index": index},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason},
            "usage": {"output_tokens": 5},
        },
        {"type": "message_stop"},
    ]


def _anthropic_text(pieces: Sequence[str]) -> Frames:
    said = _block(0, {"type": "text", "text": ""}, "text", pieces)
    return _anthropic([*said, *_anthropic_end(0, "end_turn")])


def _anthropic_thought(pieces: Sequence[str]) -> Frames:
    return _anthropic(
        [
            *_block(0, {"type": "thinking", "signature": "s"}, "thinking", pieces),
            {"type": "content_block_stop", "index": 0},
            *_block(1, {"type": "text", "text": ""}, "text", ["Yes."]),
            *_anthropic_end(1, "end_turn"),
        ]
    )


def _anthropic_call(pieces: Sequence[str]) -> Frames:
    begun = {"type": "tool_use", "id": "c1", "name": "crm", "input": {}}
    call = _block(0, begun, "partial_json", pieces)
    return _anthropic([*call, *_anthropic_end(0, "tool_use")])


def _anthropic_failure(pieces: Sequence[str], words: str) -> Frames:
    error = {"type": "error", "error": {"type": "api_error", "message": words}}
    return _anthropic([*_block(0, {"type": "text", "text": ""}, "text", pieces), error])


def _anthropic_whole(text: str) -> bytes:
    message: JSONValue = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
    }
    return msgspec.json.encode(message)


# Gemini


def _piece(*parts: JSONValue, **fields: JSONValue) -> JSONValue:
    return {"candidates": [{"content": {"role": "model", "parts": parts}, **fields}]}


def _gemini_text(pieces: Sequence[str]) -> Frames:
    said = [_piece({"text": piece}) for piece in pieces]
    return [*map(_frame, [*said, _piece(finishReason="STOP")])]


def _gemini_thought(pieces: Sequence[str]) -> Frames:
    parts: list[JSONValue] = [{"text": piece, "thought": True} for piece in pieces]
    parts[-1]["thoughtSignature"] = "s"
    parts.append({"text": "Yes."})
    return [*map(_frame, [*map(_piece, parts), _piece(finishReason="STOP")])]


def _gemini_call(pieces: Sequence[str]) -> Frames:
    # It has no calls in pieces: they come whole, with their arguments as a value.
    call = {"name": "crm", "args": msgspec.json.decode("".join(pieces))}
    return [_frame(_piece({"functionCall": call}, finishReason="STOP"))]


def _gemini_failure(pieces: Sequence[str], words: str) -> Frames:
    error = {"error": {"code": 500, "status": "INTERNAL", "message": words}}
    return [*(_frame(_piece({"text": piece})) for piece in pieces), _frame(error)]


def _gemini_whole(text: str) -> bytes:
    return msgspec.json.encode(_piece({"text": text}, finishReason="STOP"))


SPOKEN: Mapping[str, Spoken] = {
    "openai": Spoken(
        dialect=OpenResponsesDialect(profile=OPENAI),
        endings=5,
        text=_or_text,
        thought=_or_thought,
        call=_or_call,
        failure=_or_failure,
        whole=lambda text: encode(answer(text)),
    ),
    "chat": Spoken(
        dialect=ChatDialect(),
        endings=2,
        text=_chat_text,
        thought=_chat_thought,
        call=_chat_call,
        failure=_chat_failure,
        whole=_chat_whole,
    ),
    "anthropic": Spoken(
        dialect=AnthropicDialect(),
        endings=3,
        text=_anthropic_text,
        thought=_anthropic_thought,
        call=_anthropic_call,
        failure=_anthropic_failure,
        whole=_anthropic_whole,
    ),
    "gemini": Spoken(
        dialect=GeminiDialect(),
        endings=1,
        text=_gemini_text,
        thought=_gemini_thought,
        call=_gemini_call,
        failure=_gemini_failure,
        whole=_gemini_whole,
    ),
}
