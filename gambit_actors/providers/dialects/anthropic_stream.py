"""Streams of Anthropic Messages: content blocks become items.

::

    message_start                      created, in_progress
    block text                         a part of a message; texts in a row share one
    block tool_use                     function_call
    block thinking, redacted_thinking  reasoning, sealed with its signature
    message_delta                      why it stopped, what it cost so far
    message_stop                       the ending
    error                              error, failed

A stop reason is what says how an answer went. Without one there is no ending, whatever
else came; with one, blocks that were never stopped are only half there.
"""

from collections.abc import Sequence

import msgspec

from gambit_actors.openresponses.base import Extra, JSONValue
from gambit_actors.openresponses.endings import StopReason
from gambit_actors.openresponses.events import Event, MalformedEvent, UnknownEvent
from gambit_actors.openresponses.reading import Mismatch, parse_json
from gambit_actors.openresponses.responses import Response, Usage
from gambit_actors.openresponses.sse import SSEFrame
from gambit_actors.openresponses.writer import ResponseWriter
from gambit_actors.providers.dialects.anthropic_blocks import Blocks
from gambit_actors.providers.dialects.anthropic_frames import (
    Delta,
    Frame,
    decode_frame,
    frame_from_json,
)
from gambit_actors.providers.dialects.complaints import complaint_of
from gambit_actors.providers.dialects.counting import token_count, usage_of
from gambit_actors.providers.dialects.problems import Problems

_STOPPED: dict[str, StopReason] = {
    "end_turn": "end_turn",
    "stop_sequence": "stop_sequence",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
}
_LIMITS = ("model_context_window_exceeded",)
_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class AnthropicReader:
    """Reads one streamed answer.

    Args:
        started: what the response starts as.
    """

    def __init__(self, started: Response) -> None:
        self._started = started
        self._problems = Problems()
        self._note = self._problems.note
        self._blocks: Blocks | None = None
        self._counts: dict[str, int] = {}
        self._stop_reason: str | None = None
        self._explanation = ""
        self._is_done = False

    @property
    def is_done(self) -> bool:
        """Whether the message has stopped or broken off."""
        return self._is_done

    @property
    def problems(self) -> Sequence[str]:
        """What the server did against its dialect, one sentence each."""
        return self._problems

    def feed(self, frame: SSEFrame, /) -> Sequence[Event]:
        """Take the next frame, give the events it comes to."""
        if self._is_done:
            self._note(f"{frame.event} after the end: ignored")
            return ()
        if frame.is_done:
            self._note("[DONE] before message_stop")
            return ()
        fields = decode_frame(frame.data) or self._careful(frame.data)
        if isinstance(fields, MalformedEvent):
            self._note(f"a frame that is none: {fields.problem}")
            return (fields,)
        if frame.event not in (fields.type, "message"):
            self._note(f"the event line says {frame.event}, the data {fields.type}")
        return self._take(fields, frame.data)

    def close(self) -> Sequence[Event]:
        """The body has ended: that is fine if only message_stop is missing."""
        if self._is_done or self._stop_reason is None or self._blocks is None:
            return ()
        if self._blocks.has_open:
            return ()
        self._note("the stream ended without message_stop")
        return self._finish(self._blocks)

    def _careful(self, data: bytes) -> Frame | MalformedEvent:
        try:
            value = parse_json(data)
        except Mismatch as problem:
            return _malformed(data, problem)
        return frame_from_json(value, data)

    def _strange(self, data: bytes) -> UnknownEvent | MalformedEvent:
        """A frame of which more was decoded than is understood."""
        # What a struct has no place for is skipped, and not looked at: it may be
        # a number that nobody can read.
        try:
            return _unknown(parse_json(data))
        except Mismatch as problem:
            self._note(f"a frame that is none: {problem.problem}")
            return _malformed(data, problem)

    def _take(self, fields: Frame, data: bytes) -> Sequence[Event]:
        match fields.type:
            case "ping":
                return ()
            case "message_start":
                return self._start(fields)
            case "message_delta":
                self._count(fields.usage)
                self._stop(fields.delta or Delta())
                return ()
            case "message_stop":
                return self._message_stop()
            case "error":
                return self._fail(fields)
            case _:
                return self._in_message(fields, data)

    def _in_message(self, fields: Frame, data: bytes) -> Sequence[Event]:
        """A frame about a block, or one that nobody knows."""
        if not fields.is_of_block:
            self._note(f"a frame of type {fields.type} is not known")
            return (self._strange(data),)
        began, blocks = self._begun()
        taken = blocks.take(fields)
        return began + (list(taken) if taken is not None else [self._strange(data)])

    def _start(self, fields: Frame) -> Sequence[Event]:
        message = fields.message if isinstance(fields.message, dict) else {}
        self._count(message.get("usage"))
        if self._blocks is not None:
            self._note("message_start again: ignored")
            return ()
        model = message.get("model")
        if isinstance(model, str) and model:
            self._started = msgspec.structs.replace(self._started, model=model)
        writer = ResponseWriter(self._started)
        self._blocks = Blocks(writer, self._note)
        return writer.start()

    def _begun(self) -> tuple[list[Event], Blocks]:
        if self._blocks is not None:
            return [], self._blocks
        self._note("the message was never started")
        writer = ResponseWriter(self._started)
        self._blocks = Blocks(writer, self._note)
        return list(writer.start()), self._blocks

    def _stop(self, delta: Delta) -> None:
        if delta.stop_reason is None:
            return
        if self._stop_reason not in (None, delta.stop_reason):
            self._note(f"stopped for {self._stop_reason}, then {delta.stop_reason}")
            return
        self._stop_reason = delta.stop_reason
        details = delta.stop_details
        said = details.get("explanation") if isinstance(details, dict) else None
        self._explanation = said if isinstance(said, str) else self._explanation

    def _message_stop(self) -> Sequence[Event]:
        if self._stop_reason is None:
            # It may have been the limit: what came is not known to be whole.
            self._note("message_stop without a stop reason")
            self._is_done = True
            return ()
        began, blocks = self._begun()
        return began + self._finish(blocks)

    def _finish(self, blocks: Blocks) -> list[Event]:
        self._is_done = True
        reason, usage = self._stop_reason or "", self._usage()
        events: list[Event] = list(blocks.stop_all())
        writer = blocks.writer
        if reason == "refusal":
            return events + self._refuse(blocks, usage)
        if reason == "pause_turn":
            # The server waits to be asked to go on; what it said is whole.
            events += blocks.end_message()
            return [
                *events,
                *writer.flush(),
                *writer.cancel(reason=reason, usage=usage),
            ]
        stopped = _STOPPED.get(reason)
        if stopped is None and reason not in _LIMITS:
            self._note(f"the stop reason {reason!r} is not known")
        if stopped is None:
            # Perhaps a limit: what came is not known to be whole.
            return [
                *events,
                *writer.cancel(reason=reason[:64] or "unknown", usage=usage),
            ]
        if blocks.has_lost_a_call and stopped != "max_tokens":
            return [*events, *writer.cancel(reason="unnamed_call", usage=usage)]
        return [*events, *writer.finish(stopped, usage=usage)]

    def _refuse(self, blocks: Blocks, usage: Usage | None) -> list[Event]:
        """What was said stands, the server's words for the refusal behind it."""
        writer = blocks.writer
        if not self._explanation:
            return list(writer.finish("content_filter", usage=usage))
        events = blocks.end_message()
        events += writer.start_refusal("refusal")
        events += writer.add("refusal", self._explanation) + writer.stop("refusal")
        events += writer.flush()
        return [*events, *writer.finish("content_filter", usage=usage)]

    def _fail(self, fields: Frame) -> Sequence[Event]:
        began, blocks = self._begun()
        self._is_done = True
        complaint = complaint_of({"error": fields.error})
        code = complaint.code or "unknown"
        words = complaint.message or code
        events = blocks.writer.error(words, code=code)
        failed = blocks.writer.fail(code, words, usage=self._usage())
        return [*began, *events, *failed]

    def _count(self, usage: JSONValue) -> None:
        """Take counts; they are of the whole so far, so the larger one is later."""
        if not isinstance(usage, dict):
            return
        details = usage.get("output_tokens_details")
        thought = details.get("thinking_tokens") if isinstance(details, dict) else None
        for key, value in [*usage.items(), ("thinking_tokens", thought)]:
            count = token_count(value)
            if count is not None and key in (*_COUNTS, "thinking_tokens"):
                self._counts[key] = max(count, self._counts.get(key, 0))

    def _usage(self) -> Usage | None:
        """The cost so far; input includes what was read from and put into caches."""
        counts = self._counts
        if "input_tokens" not in counts:
            return None
        read = counts.get("cache_read_input_tokens", 0)
        made = counts.get("cache_creation_input_tokens", 0)
        return usage_of(
            input_tokens=counts["input_tokens"] + read + made,
            output_tokens=counts.get("output_tokens"),
            cached_tokens=read,
            reasoning_tokens=counts.get("thinking_tokens"),
        )


def _unknown(fields: JSONValue) -> UnknownEvent:
    kind = fields.get("type", "")
    rest = Extra((key, value) for key, value in fields.items() if key != "type")
    return UnknownEvent(type_name=f"anthropic.{kind}", extra=rest)


def _malformed(data: bytes, problem: Mismatch) -> MalformedEvent:
    return MalformedEvent(
        reason="invalid_json",
        problem=problem.problem,
        raw=data.decode("utf-8", "replace"),
    )
