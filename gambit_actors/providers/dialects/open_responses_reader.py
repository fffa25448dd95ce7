"""Streams of Open Responses: the server's own events, and a watch on their order.

The events are the server's, with its numbers and its ids. What is added is little: an
error that no failure follows becomes one, so that a stream that said how it went has an
ending; what comes after an ending is told and not passed on.
"""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.codec import (
    OTHER_NAMES,
    decode_event,
    event_from_json,
)
from gambit_actors.openresponses.endings import Terminal
from gambit_actors.openresponses.events import (
    ErrorEvent,
    ErrorPayload,
    Event,
    MalformedEvent,
    ResponseCompleted,
    ResponseCreated,
    ResponseFailed,
    ResponseIncomplete,
    ResponseInProgress,
    ResponseQueued,
)
from gambit_actors.openresponses.reading import parse_json
from gambit_actors.openresponses.responses import (
    InputTokensDetails,
    OutputTokensDetails,
    Response,
    ResponseError,
    Usage,
)
from gambit_actors.openresponses.sse import SSEFrame
from gambit_actors.openresponses.writing import to_builtins
from gambit_actors.providers.dialects.complaints import complaint_of
from gambit_actors.providers.dialects.counting import usage_of
from gambit_actors.providers.dialects.problems import Problems

_D = TypeVar("_D", InputTokensDetails, OutputTokensDetails)

_TERMINAL = (ResponseCompleted, ResponseFailed, ResponseIncomplete)
# What is remembered of. Nearly all events are pieces of items, which are not.
_NOTEWORTHY = frozenset(
    {
        *_TERMINAL,
        ErrorEvent,
        ResponseCreated,
        ResponseInProgress,
        ResponseQueued,
    }
)


class OpenResponsesReader:
    """Reads one streamed answer.

    Args:
        started: what the response starts as, for a server that fails before it says.
    """

    def __init__(self, started: Response) -> None:
        self._latest = started
        self._problems = Problems()
        self._note = self._problems.note
        self._is_done = False
        self._error: ErrorPayload | None = None
        self._ended_by: str | None = None
        self._number = -1

    @property
    def is_done(self) -> bool:
        """Whether the marker has been seen after which nothing comes."""
        return self._is_done

    @property
    def problems(self) -> Sequence[str]:
        """What the server did against the standard, one sentence each."""
        return self._problems

    def feed(self, frame: SSEFrame, /) -> Sequence[Event]:
        """Take the next frame, give the event it is."""
        if self._is_done:
            self._note(f"{frame.event} after [DONE]: ignored")
            return ()
        if frame.is_done:
            self._is_done = True
            return ()
        event = decode_event(frame.data)
        if isinstance(event, MalformedEvent) and event.reason == "invalid_shape":
            event = self._second_reading(event, frame.data)
        if self._ended_by is not None:
            self._note(f"{event.type} after {self._ended_by}: ignored")
            return ()
        if isinstance(event, MalformedEvent):
            self._note(f"an event that is none: {event.problem}")
        else:
            self._look_at(event, frame)
        if isinstance(event, _TERMINAL):
            event = self._counted(event)
        return (event,)

    def close(self) -> Sequence[Event]:
        """The body has ended: an error that nothing followed is a failure."""
        if self._ended_by is not None or self._error is None:
            return ()
        self._note("the stream ended after an error, without response.failed")
        self._ended_by = "the end"
        error = ResponseError(
            code=self._error.code or self._error.type, message=self._error.message
        )
        failed = msgspec.structs.replace(self._latest, status="failed", error=error)
        return (ResponseFailed(response=failed, sequence_number=self._number + 1),)

    def _second_reading(self, event: MalformedEvent, data: bytes) -> Event:
        """Read what is no event only by a detail that does not matter that much."""
        value = parse_json(data)
        if not isinstance(value, dict):
            return event
        response = value.get("response")
        if isinstance(response, dict) and response.get("usage") is not None:
            self._note(f"{event.type}: {event.problem}")
            response = with_countable_usage(response)
            return event_from_json(value | {"response": response})
        # Some routers send what they answer with when nothing has begun.
        if event.type not in (None, "error") or not value.get("error"):
            return event
        complaint = complaint_of(value)
        payload = ErrorPayload(
            message=complaint.message or complaint.code, code=complaint.code or None
        )
        return ErrorEvent(error=payload)

    def _counted(self, event: Terminal) -> Terminal:
        """The event with token counts that can be trusted, or none."""
        usage = event.response.usage
        counted = sane_usage(usage)
        if counted == usage:
            return event
        self._note(f"{event.type} has token counts that cannot be")
        response = msgspec.structs.replace(event.response, usage=counted)
        return msgspec.structs.replace(event, response=response)

    def _look_at(self, event: Event, frame: SSEFrame) -> None:
        # A stream without event lines is common; a reasoning event has two names.
        line, kind = frame.event, event.type
        if line != kind and OTHER_NAMES.get(line, line) not in (kind, "message"):
            self._note(f"the event line says {line}, the data {kind}")
        number = getattr(event, "sequence_number", None)
        if isinstance(number, int):
            if number <= self._number:
                self._note(f"{kind} has number {number} after {self._number}")
            else:
                self._number = number
        if type(event) in _NOTEWORTHY:
            self._remember(event)

    def _remember(self, event: Event) -> None:
        """Keep what a response begins with, an error, and that it has ended."""
        match event:
            case (
                ResponseCreated(response=response)
                | ResponseQueued(response=response)
                | ResponseInProgress(response=response)
            ):
                self._latest = response
            case ErrorEvent(error=error):
                self._error = self._error or error
            case ResponseCompleted() | ResponseFailed() | ResponseIncomplete():
                self._ended_by = event.type
            case _:
                pass


def sane_usage(usage: Usage | None) -> Usage | None:
    """Token counts with what cannot be put right, or None."""
    if usage is None:
        return None
    counted = usage_of(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        cached_tokens=usage.input_tokens_details.cached_tokens,
        reasoning_tokens=usage.output_tokens_details.reasoning_tokens,
    )
    if counted is None:
        return None
    return msgspec.structs.replace(
        usage,
        total_tokens=counted.total_tokens,
        input_tokens_details=_with(
            usage.input_tokens_details, counted.input_tokens_details
        ),
        output_tokens_details=_with(
            usage.output_tokens_details, counted.output_tokens_details
        ),
    )


def with_countable_usage(response: dict[str, JSONValue]) -> dict[str, JSONValue]:
    """A response's JSON whose usage can be read; null where it cannot be."""
    usage = response.get("usage")
    counted = None
    if isinstance(usage, dict):
        counted = usage_of(
            input_tokens=usage.get("input_tokens"),
            output_tokens=usage.get("output_tokens"),
            total_tokens=usage.get("total_tokens"),
        )
    return response | {"usage": None if counted is None else to_builtins(counted)}


def _with(details: _D, counted: _D) -> _D:
    """The counted details, with the keys that nobody knows."""
    return msgspec.structs.replace(counted, extra=details.extra)
