"""Recordings: what models were asked and what they answered, one exchange a line.

A recording is JSON lines: first one that says what it is, then one for each exchange,
written when it is over, so that a process that is killed loses no more than what was
under way. Keys are in none of it: those of the servers are struck out, and headers are
not recorded. A name that stood for other models has a line that says for which, since
where a recording is replayed nobody has to know of it.

An exchange is known again by its request. Ids that the runtime draws anew in each run
are not part of that: see `recognised`.
"""

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec
import trio

from gambit_actors.errors import ProviderError, WireError
from gambit_actors.openresponses.base import JSONValue, Open
from gambit_actors.openresponses.codec import (
    event_from_json,
    request_from_json,
    response_from_json,
)
from gambit_actors.openresponses.events import Event, MalformedEvent
from gambit_actors.openresponses.provider_frames import ProviderEvent, ProviderFrame
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.openresponses.writing import encode, to_builtins
from gambit_actors.run.ports import (
    Candidate,
    DefaultModel,
    ModelContext,
    ModelDirectory,
    ModelProvider,
    PacedProvider,
    ServerPace,
)

FORMAT: Literal["gambit.recording.v1"] = "gambit.recording.v1"

# As `actors.trees.new_id` makes them.
_DRAWN_ID = re.compile(
    rb"(?<![a-z0-9])(run|call|action|event)-[0-9a-f]{24}(?![a-z0-9])"
)


class Head(
    msgspec.Struct, frozen=True, kw_only=True, tag="recording", tag_field="type"
):
    """The first line of a recording."""

    format: str


class NamedModel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of the models that a name stood for, with what was asked of it."""

    model: str
    params: dict[str, JSONValue] = {}

    def told_candidate(self) -> Candidate:
        """The same, as a directory tells it.

        Raises:
            WireError: its settings are none.
        """
        return Candidate(model=self.model, params=request_from_json(self.params))


class Name(msgspec.Struct, frozen=True, kw_only=True, tag="name", tag_field="type"):
    """The models that a name stood for, in the order in which they were to be asked."""

    name: str
    models: tuple[NamedModel, ...]


class RecordedError(msgspec.Struct, frozen=True, kw_only=True):
    """How an exchange failed.

    Attributes:
        kind: the name of the exception.
        message: what it said.
    """

    kind: str
    message: str


class Exchange(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    tag="exchange",
    tag_field="type",
):
    """A request and what came of it: a response, or an error.

    Attributes:
        deck, turn, pass_number: who asked.
        request: what was asked, as Open Responses has it.
        seconds: how long it took.
        times: when the events came, in seconds from the request.
        events: what was passed on, as it came; bytes that are no event under
            ``malformed``.
        frames: what the server sent, word for word.
        response: what it came to; None for an error.
        error: why there is no response.
    """

    deck: str
    turn: int
    pass_number: int
    request: dict[str, JSONValue]
    seconds: float
    times: tuple[float, ...] = ()
    events: tuple[JSONValue, ...] = ()
    frames: tuple[ProviderEvent, ...] = ()
    response: JSONValue = None
    error: RecordedError | None = None

    def told_events(self) -> list[Event]:
        """The events, as they were passed on."""
        return [_event_from(value) for value in self.events]

    def told_response(self) -> Response:
        """The response.

        Raises:
            BadResponse: somebody has edited it, and it is none any more.
        """
        return response_from_json(self.response)


class Recorder:
    """Has another provider answer, and writes down every exchange.

    Args:
        provider: who answers.
        write: takes a line, with its end; called once an exchange, and once a name.
        conceal: strikes keys out of a line.
    """

    def __init__(
        self,
        provider: ModelProvider,
        write: Callable[[bytes], object],
        *,
        conceal: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self._provider = provider
        self._write = write
        self._conceal = conceal
        self._named: set[str] = set()
        self._has_answers = False
        self._write(_ENCODER.encode(Head(format=FORMAT)) + b"\n")

    @property
    def has_answers(self) -> bool:
        """Whether a model has answered yet, and not only failed."""
        return self._has_answers

    def candidates(self, model: str) -> Sequence[Candidate]:
        """The models that a name stands for, as the provider has it."""
        itself = [Candidate(model=model)]
        if not isinstance(self._provider, ModelDirectory):
            return itself
        found = self._provider.candidates(model)
        if list(found) != itself and model not in self._named:
            self._named.add(model)
            self._keep(Name(name=model, models=tuple(map(_named, found))))
        return found

    @property
    def default_model(self) -> str | None:
        """The model that is meant where nobody names one, as the provider has it."""
        provider = self._provider
        return provider.default_model if isinstance(provider, DefaultModel) else None

    def paces(self) -> Mapping[str, ServerPace]:
        """How fast the provider asks its servers."""
        provider = self._provider
        return provider.paces() if isinstance(provider, PacedProvider) else {}

    async def responses(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
    ) -> Response:
        """Have the provider answer. What is cancelled is not written down.

        Raises:
            ProviderError: the provider has no answer, which is written down.
        """
        tape = _Tape(request, context, on_event)
        context = msgspec.structs.replace(context, on_frame=tape.take_frame)
        try:
            response = await self._provider.responses(request, context, tape.take)
        except ProviderError as problem:
            kind = type(problem).__name__
            error = RecordedError(kind=kind, message=str(problem))
            self._keep(tape.exchange(error=error))
            raise
        self._has_answers = True
        self._keep(tape.exchange(response=to_builtins(response)))
        return response

    def _keep(self, line: Exchange | Name) -> None:
        # Text that has no bytes was asked of nobody: there is nothing to replay.
        with contextlib.suppress(UnicodeEncodeError):
            self._write(self._conceal(_ENCODER.encode(line)) + b"\n")


class _Tape:
    """Gathers one exchange."""

    def __init__(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
    ) -> None:
        self._request = request
        self._context = context
        self._on_event = on_event
        self._began = trio.current_time()
        self._times: list[float] = []
        self._events: list[Event] = []
        self._frames: list[ProviderEvent] = []

    def take(self, event: Event) -> None:
        self._times.append(round(trio.current_time() - self._began, 6))
        self._events.append(event)
        self._on_event(event)

    def take_frame(self, frame: ProviderFrame) -> None:
        # The text in a frame is among the events.
        if isinstance(frame, ProviderEvent):
            time = round(frame.time - self._began, 6)
            self._frames.append(msgspec.structs.replace(frame, time=time))
        if self._context.on_frame is not None:
            self._context.on_frame(frame)

    def exchange(
        self, *, response: JSONValue = None, error: RecordedError | None = None
    ) -> Exchange:
        return Exchange(
            deck=self._context.deck,
            turn=self._context.turn,
            pass_number=self._context.pass_number,
            request=to_builtins(self._request),
            seconds=round(trio.current_time() - self._began, 6),
            times=tuple(self._times),
            events=tuple(_event_as_json(event) for event in self._events),
            frames=tuple(self._frames),
            response=response,
            error=error,
        )


_ENCODER = msgspec.json.Encoder()
_MALFORMED = "malformed"


def recognised(request: CreateResponse) -> bytes:
    """A request as bytes that are the same for the same request of another run.

    And the same whether it was made by a run or read from a recording: a number that
    may have a fraction is 0 in one, and 0.0 in the other.
    """
    read = request_from_json(msgspec.json.decode(encode(request)))
    return _DRAWN_ID.sub(rb"\1-*", encode(read))


def _named(candidate: Candidate) -> NamedModel:
    return NamedModel(model=candidate.model, params=to_builtins(candidate.params))


def _event_as_json(event: Event) -> JSONValue:
    if isinstance(event, MalformedEvent):
        return {_MALFORMED: msgspec.structs.asdict(event)}
    assert isinstance(event, Open)  # noqa: S101  # all others are
    return to_builtins(event)


def _event_from(value: JSONValue) -> Event:
    if isinstance(value, dict) and set(value) == {_MALFORMED}:
        try:
            return msgspec.convert(value[_MALFORMED], MalformedEvent)
        except msgspec.ValidationError as problem:
            raise WireError(_MALFORMED, str(problem)) from problem
    return event_from_json(value)
