"""Reads the answers of Gemini: each frame is a piece of the answer, as JSON.

A frame has candidates, of which the first is the answer, with parts: text, thoughts
(``thought: true``) and whole function calls. Nothing says that a part has ended, and
nothing marks the end of the stream. ``finishReason`` says how it went, in the last
frame, and with some servers in earlier ones as well; so the ending waits for the end of
the body, and a reason that is not ``STOP`` is not forgotten for one that is.

Any part may be signed, and has to go back to the model with its signature, cut as it
was. `Signed` is what is sealed for that; `gemini_input` puts it back.
"""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec

from gambit_actors.openresponses.base import Extra, JSONValue
from gambit_actors.openresponses.endings import StopReason
from gambit_actors.openresponses.events import Event, MalformedEvent, UnknownEvent
from gambit_actors.openresponses.reading import Mismatch, parse_json
from gambit_actors.openresponses.responses import Response, Usage
from gambit_actors.openresponses.sse import SSEFrame
from gambit_actors.openresponses.writer import ResponseWriter
from gambit_actors.providers.dialects.complaints import short_code, shown
from gambit_actors.providers.dialects.counting import token_count, usage_of
from gambit_actors.providers.dialects.problems import Problems
from gambit_actors.providers.dialects.sealing import seal

NAME = "gemini"
MADE_ID = "gemini_call_"
"""What the ids of calls begin with that came without one."""

_Fields: TypeAlias = dict[str, JSONValue]

# How an answer ends that was not stopped by a fault. What is not here is a failure.
_ENDINGS: dict[str, StopReason] = {
    "STOP": "end_turn",
    "MAX_TOKENS": "max_tokens",
    "BLOCKLIST": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "RECITATION": "content_filter",
    "SAFETY": "content_filter",
    "SPII": "content_filter",
}
_UNSAID = "FINISH_REASON_UNSPECIFIED"
_FRAME_KEYS = frozenset(
    {
        "candidates",
        "createTime",
        "error",
        "modelStatus",
        "modelVersion",
        "promptFeedback",
        "responseId",
        "usageMetadata",
    }
)
_CANDIDATE_KEYS = frozenset(
    {
        "avgLogprobs",
        "content",
        "finishMessage",
        "finishReason",
        "index",
        "safetyRatings",
        "tokenCount",
    }
)


class Signed(msgspec.Struct, frozen=True, omit_defaults=True):
    """What has to go back, sealed into a reasoning item.

    Attributes:
        thoughts: parts with thoughts, as they came; only those that are signed.
        signature: of a call or a text.
        call_id: the call it belongs to.
        text: how many characters of the message before it it belongs to.
    """

    thoughts: tuple[_Fields, ...] = ()
    signature: str | None = None
    call_id: str | None = None
    text: int | None = None

    def sealed(self) -> str:
        """In the form that a reasoning item has."""
        return seal(NAME, msgspec.to_builtins(self))


class GeminiReader:
    """Reads one answer.

    Attributes:
        is_done: whether nothing more can come.
        problems: what the server did against its own dialect.
    """

    def __init__(self, started: Response) -> None:
        self.is_done = False
        self.problems = Problems()
        self._note = self.problems.note
        self._parts = _PartReader(ResponseWriter(started), self._note)
        self._writer = self._parts.writer
        self._stem = started.id.removeprefix("resp_")
        self._has_begun = False
        self._reason: str | None = None
        self._message = ""
        self._usage: Usage | None = None

    def feed(self, frame: SSEFrame, /) -> Sequence[Event]:
        """Take the next frame, give the events it comes to."""
        if self.is_done:
            self._note("a frame after the end")
            return []
        if frame.is_done:
            # Not of this dialect, but servers in between send it.
            return self.close() if self._reason is not None else []
        try:
            fields = parse_json(frame.data)
        except Mismatch as problem:
            self._note(f"a frame that is no JSON: {problem.problem}")
            raw = frame.data.decode("utf-8", "replace")
            return [
                MalformedEvent(reason="invalid_json", problem=problem.problem, raw=raw)
            ]
        return self._begin(fields)

    def close(self) -> Sequence[Event]:
        """End as the server said; not at all if it did not say."""
        if self.is_done or self._reason is None:
            return []
        self.is_done = True
        events: list[Event] = list(self._parts.stop())
        ending = _ENDINGS.get(self._reason)
        if ending is None:
            reason = short_code(self._reason)
            words = self._message or f"the model stopped with {reason}"
            return events + self._failed(reason.lower(), words)
        if ending == "end_turn" and not self._parts.has_said:
            self._note("an answer with nothing in it")
        return events + list(self._writer.finish(ending, usage=self._usage))

    def _begin(self, fields: JSONValue) -> list[Event]:
        """Read a document, which is a frame or the whole of an answer."""
        if not isinstance(fields, dict) or not fields.keys() & _FRAME_KEYS:
            self._note("a frame of a kind that is not known")
            return [_unknown("frame", fields)]
        events: list[Event] = []
        if not self._has_begun:
            self._has_begun = True
            events += self._writer.start()
        return events + self._read(fields)

    def _read(self, fields: _Fields) -> list[Event]:
        self._count(fields.get("usageMetadata"))
        events: list[Event] = [
            _unknown(key, value)
            for key, value in fields.items()
            if key not in _FRAME_KEYS
        ]
        if isinstance(error := fields.get("error"), dict):
            self.is_done = True
            code, message = error_words(error)
            events += self._parts.stop()
            return events + self._failed(code or "server_error", message)
        for candidate in self._dicts(fields.get("candidates"), "candidates"):
            events += self._read_candidate(candidate)
        feedback = fields.get("promptFeedback")
        if isinstance(feedback, dict) and feedback.get("blockReason"):
            # Blocked for what was asked, whatever else the server says.
            self._reason = "PROHIBITED_CONTENT"
        return events

    def _read_candidate(self, candidate: _Fields) -> list[Event]:
        if candidate.get("index") not in (None, 0):
            self._note("an answer beside the first, which is left out")
            return [_unknown("candidate", candidate)]
        events: list[Event] = [
            _unknown(key, value)
            for key, value in candidate.items()
            if key not in _CANDIDATE_KEYS
        ]
        content = candidate.get("content")
        if isinstance(content, dict):
            for part in self._dicts(content.get("parts"), "parts"):
                if self._reason is not None:
                    self._note("a part after the reason to stop")
                events += self._parts.read(part, self._stem)
        elif content is not None:
            self._note("content that is no object")
        self._stop_for(candidate)
        return events

    def _stop_for(self, candidate: _Fields) -> None:
        reason = candidate.get("finishReason")
        if reason is None or reason == _UNSAID:
            return
        if not isinstance(reason, str) or not reason:
            self._note("a reason to stop that is no word")
            reason = "OTHER"
        if self._reason in (None, "STOP"):
            self._reason = reason
            message = candidate.get("finishMessage")
            self._message = shown(message) if isinstance(message, str) else ""

    def _failed(self, code: str, message: str) -> list[Event]:
        events: list[Event] = [*self._writer.error(message, code=code)]
        return events + list(self._writer.fail(code, message, usage=self._usage))

    def _count(self, counts: JSONValue) -> None:
        """Keep what an answer has cost so far: each count stands for all before."""
        if isinstance(counts, dict):
            self._usage = _usage(counts) or self._usage

    def _dicts(self, value: JSONValue, what: str) -> list[_Fields]:
        if value is None:
            return []
        entries = value if isinstance(value, list) else [value]
        found = [entry for entry in entries if isinstance(entry, dict)]
        if len(found) < len(entries) or entries is not value:
            self._note(f"{what} that are not a list of objects")
        return found


class _PartReader:
    """Turns the parts of an answer into items.

    Text that comes piece by piece is one message, up to a piece that is signed.
    """

    def __init__(self, writer: ResponseWriter, note: Callable[[str], None]) -> None:
        self.writer = writer
        self.has_said = False
        self._note = note
        self._open: Literal["text", "thought"] | None = None
        self._thoughts: list[_Fields] = []
        self._call_ids: set[str] = set()
        self._calls = 0

    def read(self, part: _Fields, stem: str) -> list[Event]:
        """Read one part."""
        if "functionCall" in part:
            return self._call(part, stem)
        text = part.get("text")
        if isinstance(text, str):
            return self._thought(part) if part.get("thought") else self._text(part)
        if text is None and isinstance(part.get("thoughtSignature"), str):
            return self._text(part | {"text": ""})
        self._note("a part of a kind that is not known")
        return [_unknown("part", part)]

    def stop(self, signed: Signed | None = None) -> list[Event]:
        """End what is open; seal into it what has to go back."""
        events: list[Event] = []
        if self._open == "text":
            events += self.writer.stop("text")
        if self._open == "thought" or signed is not None:
            if self._open != "thought":
                events += self.writer.start_reasoning("thought")
            kept = msgspec.structs.replace(
                signed or Signed(), thoughts=tuple(self._thoughts)
            )
            events += self.writer.stop("thought", encrypted_content=kept.sealed())
            self._thoughts = []
        self._open = None
        return events

    def _text(self, part: _Fields) -> list[Event]:
        text, signature = part["text"], part.get("thoughtSignature")
        events: list[Event] = []
        if text:
            self.has_said = True
            if self._open != "text":
                events += self.stop()
                events += self.writer.start_text("text")
                self._open = "text"
            events += self.writer.add("text", text)
        if isinstance(signature, str):
            events += self.stop()
            events += self.stop(Signed(signature=signature, text=len(text)))
        return events

    def _thought(self, part: _Fields) -> list[Event]:
        events: list[Event] = []
        if self._open != "thought":
            events += self.stop()
            events += self.writer.start_reasoning("thought")
            self._open = "thought"
        if part["text"]:
            events += self.writer.add_summary("thought", part["text"])
        if isinstance(part.get("thoughtSignature"), str):
            self._thoughts.append(part)
        return events

    def _call(self, part: _Fields, stem: str) -> list[Event]:
        call = part["functionCall"]
        if not isinstance(call, dict):
            self._note("a call that is no object")
            return [_unknown("part", part)]
        self.has_said = True
        call_id = self._call_id(call, stem)
        signature = part.get("thoughtSignature")
        signed = None
        if isinstance(signature, str):
            signed = Signed(signature=signature, call_id=call_id)
        events = self.stop(signed)
        name = call.get("name")
        is_whole = isinstance(name, str) and bool(name)
        if not is_whole:
            self._note("a call without a name")
        if call.get("willContinue") or call.get("partialArgs"):
            self._note("a call in pieces, which was not asked for")
            is_whole = False
        key = ("call", self._calls)
        name = name if isinstance(name, str) else ""
        events += self.writer.start_tool_call(key, call_id=call_id, name=name)
        events += self.writer.add(key, _arguments(call))
        status: Literal["completed", "incomplete"]
        status = "completed" if is_whole else "incomplete"
        return events + list(self.writer.stop(key, status=status))

    def _call_id(self, call: _Fields, stem: str) -> str:
        given = call.get("id")
        self._calls += 1
        if isinstance(given, str) and given and given not in self._call_ids:
            self._call_ids.add(given)
            return given
        if given:
            self._note("a call whose id is taken, or is none")
        made = f"{MADE_ID}{stem}_{self._calls - 1}"
        self._call_ids.add(made)
        return made


def error_words(error: _Fields) -> tuple[str, str]:
    """The code and the message of an error, cut short; empty where there is none."""
    code = error.get("status") or error.get("code") or ""
    message = error.get("message")
    return short_code(str(code)), shown(message) if isinstance(message, str) else ""


def _arguments(call: _Fields) -> str:
    # An empty object is left out of the wire form, as all empty values are.
    arguments = call.get("args")
    if isinstance(arguments, str):
        return arguments
    return msgspec.json.encode({} if arguments is None else arguments).decode()


def _usage(counts: _Fields) -> Usage | None:
    asked = token_count(counts.get("promptTokenCount"))
    if asked is None:
        return None
    asked += token_count(counts.get("toolUsePromptTokenCount")) or 0
    thought = token_count(counts.get("thoughtsTokenCount")) or 0
    total = token_count(counts.get("totalTokenCount"))
    said: int | None = token_count(counts.get("candidatesTokenCount"))
    if "candidatesTokenCount" not in counts and total is not None:
        # What is zero is left out of the wire form.
        said = max(total - asked - thought, 0)
    return usage_of(
        input_tokens=asked,
        output_tokens=None if said is None else said + thought,
        total_tokens=total,
        cached_tokens=counts.get("cachedContentTokenCount"),
        reasoning_tokens=thought,
    )


def _unknown(what: str, value: JSONValue) -> UnknownEvent:
    is_plain = isinstance(value, dict) and "type" not in value
    fields = value if is_plain else {"value": value}
    return UnknownEvent(type_name=f"{NAME}.{what}", extra=Extra(fields))
