"""Reads an answer of Chat Completions, streamed or whole, into events.

How an answer has ended is decided by what is in it and by what the server says of it:
a stream without a finish reason and without the marker was cut, calls that were begun
are calls whatever the reason says, and one whose arguments stop in the middle is never
complete. The events end with the marker or the body, because usage comes last.
"""

from collections.abc import Sequence

from gambit_actors.openresponses.base import Extra, JSONValue
from gambit_actors.openresponses.endings import StopReason
from gambit_actors.openresponses.events import Event, MalformedEvent, UnknownEvent
from gambit_actors.openresponses.responses import Response, Usage
from gambit_actors.openresponses.sse import DONE_DATA, SSEFrame
from gambit_actors.openresponses.writer import ResponseWriter
from gambit_actors.providers.dialects.chat_calls import Call, Calls
from gambit_actors.providers.dialects.chat_flavours import ChatFlavour
from gambit_actors.providers.dialects.chat_frames import (
    NOT_IN_FORM,
    CallPiece,
    Choice,
    Chunk,
    Delta,
    Read,
    decode_chunk,
    is_empty,
    read_carefully,
    says_something,
    words_of,
)
from gambit_actors.providers.dialects.chat_reasoning import Details, sealed
from gambit_actors.providers.dialects.chat_words import ending_of, usage_in
from gambit_actors.providers.dialects.complaints import complaint_of, short_code
from gambit_actors.providers.dialects.problems import Problems

_THOUGHTS = "thoughts"
_STANDARD_OBJECT = "chat.completion.chunk"


class ChatReader:
    """Reads one answer.

    Args:
        started: what the response starts as.
        flavour: of the server that answers.

    Attributes:
        problems: what the server did against its dialect, the first hundred.
        is_done: whether nothing more can come.
    """

    def __init__(self, started: Response, flavour: ChatFlavour) -> None:
        self.problems = Problems()
        self._note = self.problems.note
        self.is_done = False
        self._flavour = flavour
        self._id_stem = started.id.removeprefix("resp_")
        self._writer = ResponseWriter(started)
        self._has_begun = False
        # The text or refusal that is open, and the reasoning: open, between two parts
        # with its item held open for what has to be sealed, or not there.
        self._speech: str | None = None
        self._has_spoken = False
        self._thinking: str | None = None
        self._thoughts: list[str] = []
        self._details = Details()
        self._calls = Calls(self._note)
        self._call_ids: set[str] = set()
        self._last: str | Call | None = None
        self._finish_reason: str | None = None
        self._usage: Usage | None = None

    def feed(self, frame: SSEFrame, /) -> Sequence[Event]:
        """Take the next frame, give the events it comes to."""
        if self.is_done:
            self._note("something came after the end")
            return []
        try:
            chunk = decode_chunk(frame.data)
        except NOT_IN_FORM:
            return self._feed_odd(frame)
        if chunk.choices is None and not says_something(chunk):
            return self._strange(frame)
        return self.take(chunk)

    def close(self) -> Sequence[Event]:
        """The body has ended: end the answer, if the server said how it went."""
        if self.is_done or self._finish_reason is None:
            return []
        return self.end()

    def take(self, chunk: Chunk) -> list[Event]:
        """Take a document that was decoded."""
        events: list[Event] = []
        if not self._has_begun:
            self._has_begun = True
            events += self._writer.start()
        if chunk.usage is not None:
            self._usage = usage_in(chunk.usage) or self._usage
        if isinstance(chunk.x_groq, dict) and "usage" in chunk.x_groq:
            self._usage = usage_in(chunk.x_groq["usage"]) or self._usage
        error = chunk.error
        for choice in chunk.choices or ():
            if choice.index:
                self._note("there is more than one choice; the first is read")
                continue
            events += self._choose(choice)
            error = error or choice.error
        if error:
            events += self._fail(error)
        return events

    def end(self) -> list[Event]:
        """End the answer, of which nothing more comes."""
        self.is_done = True
        reason = self._finish_reason
        if reason is None:
            self._note("the answer ended without a finish_reason")
            if not self._has_spoken and all(c.is_nothing for c in self._calls.all):
                return []  # It came to nothing, and the server did not say why.
        ending = "stop" if reason is None else ending_of(reason)
        if ending is None:
            self._note(f"nobody knows the finish_reason {reason}")
        if ending == "broken":
            message = f"the server stopped with finish_reason {reason}"
            return self._fail({"code": reason, "message": message})
        if ending == "length":
            return self._end_cut("max_tokens")
        if ending == "filter":
            return self._end_cut("content_filter")
        return self._end_whole(ending, reason)

    # Frames that are no chunk

    def _feed_odd(self, frame: SSEFrame) -> Sequence[Event]:
        if frame.data.strip() == DONE_DATA:
            return self.end()
        read = read_carefully(frame.data)
        if isinstance(read, MalformedEvent):
            return [read]
        for problem in read.problems:
            self._note(problem)
        if read.chunk.choices is None and not says_something(read.chunk):
            return self._strange(frame, read)
        return self.take(read.chunk)

    def _strange(self, frame: SSEFrame, read: Read | None = None) -> list[Event]:
        """A document without a choice, usage or error."""
        # A chunk was decoded, but what it has no place for was not looked at.
        found = read or read_carefully(frame.data)
        if isinstance(found, MalformedEvent):
            return [found]
        value = found.value
        kind = value.get("type")
        is_error = "error" in (kind, frame.event, value.get("object"))
        if is_error and complaint_of(value).message:
            return self.take(Chunk()) + self._fail(value)
        if "ping" in (kind, frame.event):
            return []
        if value.get("object") == _STANDARD_OBJECT:
            return self.take(Chunk())
        names = (kind, value.get("object"), frame.event)
        name = next(name for name in names if name and isinstance(name, str))
        return [UnknownEvent(type_name=f"chat.{name}", extra=Extra(value))]

    # What a choice says

    def _choose(self, choice: Choice) -> list[Event]:
        if choice.usage is not None:
            self._usage = usage_in(choice.usage) or self._usage
        said = self._said_in(choice)
        events: list[Event] = []
        if said is not None and self._finish_reason is None:
            events = self._say(said)
        elif said is not None and not is_empty(said):
            self._note("something was said after the finish_reason")
        reason = choice.finish_reason
        if reason:
            if self._finish_reason not in (None, reason):
                self._note(f"finish_reason {self._finish_reason}, and then {reason}")
            self._finish_reason = self._finish_reason or reason
        return events

    def _said_in(self, choice: Choice) -> Delta | None:
        if choice.delta is not None:
            return choice.delta
        if choice.message is not None and self._last is not None:
            self._note("the whole message came after pieces of it")
            return None
        if choice.message is None and choice.text:
            return Delta(content=choice.text)  # As completions had it before chats.
        return choice.message

    def _say(self, said: Delta) -> list[Event]:
        events: list[Event] = []
        if said.reasoning_content or said.reasoning or said.reasoning_details:
            events += self._think(said)
        content = said.content
        if content:
            if isinstance(content, str):
                events += self._speak("text", content)
            else:
                events += self._speak_parts(content)
        if said.refusal:
            events += self._speak("refusal", said.refusal)
        if said.tool_calls:
            is_only = len(said.tool_calls) == 1
            for place, piece in enumerate(said.tool_calls):
                events += self._call(piece, None if is_only else place)
        if said.function_call is not None:
            events += self._call(CallPiece(function=said.function_call), None)
        return events

    def _speak(self, kind: str, text: str) -> list[Event]:
        writer = self._writer
        if self._speech == kind:
            return [*writer.add(kind, text)]
        events = self._pause_thinking() + self._hush()
        self._speech = self._last = kind
        self._has_spoken = True
        start = writer.start_text if kind == "text" else writer.start_refusal
        return events + start(kind) + writer.add(kind, text)

    def _speak_parts(self, parts: list[JSONValue]) -> list[Event]:
        events: list[Event] = []
        for part in parts:
            kind, text = words_of(part)
            if kind == "thinking":
                events += self._think(Delta(reasoning=text))
            elif kind is None:
                self._note("there is content of a kind that has no place here")
            elif text:
                events += self._speak(kind, text)
        return events

    def _hush(self) -> list[Event]:
        if self._speech is None:
            return []
        speech, self._speech = self._speech, None
        return [*self._writer.stop(speech)]

    def _think(self, said: Delta) -> list[Event]:
        words = self._details.take(said.reasoning_details or [])
        plain = said.reasoning_content or said.reasoning
        if not words and plain:
            words = [(False, plain)]
        events = self._hush() if words else []
        if self._thinking is None:
            events += self._writer.start_reasoning(_THOUGHTS)
            self._last = self._last or _THOUGHTS
        if words:
            self._last = _THOUGHTS
        self._thinking = "open"
        for is_summary, text in words:
            self._thoughts.append(text)
            add = self._writer.add_summary if is_summary else self._writer.add
            events += add(_THOUGHTS, text)
        return events

    def _pause_thinking(self) -> list[Event]:
        """Something else begins: end what was thought, but for what must be sealed."""
        if self._thinking != "open":
            return []
        if self._details or self._flavour.reasoning_back is not None:
            self._thinking = "held"
            return [*self._writer.next_part(_THOUGHTS)]
        self._thinking = None
        return [*self._writer.stop(_THOUGHTS)]

    # Calls

    def _call(self, piece: CallPiece, place: int | None) -> list[Event]:
        call, text = self._calls.take(piece, place)
        self._last = self._last if call.is_nothing else call
        if not text:
            return []
        if call.is_started:
            return [*self._writer.add(call, text)]
        if not call.name:
            return []  # It can begin when it is known what is called.
        named = self._calls.startable(call)
        return [event for c in named for event in self._start_call(c)]

    def _start_call(self, call: Call) -> list[Event]:
        if call.is_started:
            return []
        call.is_started = True
        call_id = call.id
        if not call_id or call_id in self._call_ids:
            if not call_id:
                self._note("a call has no id")
            call_id = f"call_{self._id_stem}_{call.number}"
        self._call_ids.add(call_id)
        events = self._pause_thinking() + self._hush()
        events += self._writer.start_tool_call(call, call_id=call_id, name=call.name)
        return events + (self._writer.add(call, call.arguments) if call.pieces else [])

    def _start_calls(self) -> list[Event]:
        """Start those that wait for more; a call may have no arguments."""
        events: list[Event] = []
        for call in self._calls.all:
            if call.is_nothing:
                self._note("there is a call with nothing in it")
            else:
                events += self._start_call(call)
        return events

    # Endings

    def _end_whole(self, ending: str | None, reason: str | None) -> list[Event]:
        events = self._start_calls()
        calls = [call for call in self._calls.all if call.is_started]
        if not calls and ending == "calls":
            self._note(f"finish_reason {reason} without a call")
        if calls and reason is not None and ending == "stop":
            self._note(f"finish_reason {reason} with calls")
        if not calls and ending != "stop" and not self._has_spoken:
            why = "missing_call" if ending == "calls" else short_code(str(reason))
            return events + self._writer.cancel(reason=why, usage=self._usage)
        events += self._seal() + self._hush()
        for call in calls:
            is_cut = not call.name or call.is_cut_short
            if is_cut:
                self._note(f"a call of {call.name or 'nothing'} is not whole")
            events += self._writer.stop(
                call, status="incomplete" if is_cut else "completed"
            )
        events += self._writer.finish(
            "tool_use" if calls else "end_turn", usage=self._usage
        )
        return events

    def _end_cut(self, why: StopReason) -> list[Event]:
        """The model was cut off: what it said last is incomplete, the rest is whole."""
        events = self._start_calls()
        if self._thinking is not None and self._last != _THOUGHTS:
            events += self._seal()
        if self._last != self._speech:
            events += self._hush()
        for call in self._calls.all:
            is_whole = call.name and not call.is_cut_short
            if call.is_started and is_whole and call is not self._last:
                events += self._writer.stop(call)
        events += self._writer.flush()
        events += self._writer.finish(why, usage=self._usage)
        return events

    def _fail(self, error: JSONValue) -> list[Event]:
        if self._writer.has_ended:
            return []
        self.is_done = True
        complaint = complaint_of({"error": error})
        message = complaint.message or "the server gave no reason"
        code = complaint.code or "server_error"
        events = self._start_calls()
        events += self._writer.error(message, code=complaint.code or None)
        return events + self._writer.fail(code, message, usage=self._usage)

    def _seal(self) -> list[Event]:
        extras = [c.extra_content for c in self._calls.all if c.is_started]
        secret = sealed(
            self._flavour,
            details=self._details.whole(),
            text="".join(self._thoughts),
            calls=extras,
        )
        if self._thinking is None and secret is None:
            return []
        start: list[Event] = []
        if self._thinking is None:
            start += self._writer.start_reasoning(_THOUGHTS)
        self._thinking = None
        return start + self._writer.stop(_THOUGHTS, encrypted_content=secret)
