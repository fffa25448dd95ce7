"""Answers from a recording: the same events, with the same pauses or with none.

A request is answered with what was recorded for the same request. If it was recorded
several times, its answers are given in their order, and then from the first again. One
that was not recorded is never answered with something like it: `NotRecorded` says where
it differs first from the recorded request that is most like it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import trio

from gambit_actors.errors import ProviderError, RequestError, WireError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.codec import request_from_json
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.providers.recording import FORMAT, Exchange, Head, Name, recognised
from gambit_actors.run.ports import Candidate, ModelContext

_SHOWN_CHARACTERS = 60
_SHOWN_BEFORE = 20


class BadRecording(RequestError):
    """A recording cannot be used.

    Attributes:
        line: which line of it, from 1.
    """

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line} of the recording: {problem}")
        self.line = line


class NotRecorded(ProviderError):
    """A request is not in the recording.

    Attributes:
        path: where it differs first from the recorded one that is most like it; empty
            if there is none that is like it at all.
    """

    def __init__(self, deck: str, context: ModelContext, path: str, words: str) -> None:
        super().__init__(
            f"{deck}, turn {context.turn}, pass {context.pass_number}, asks for "
            f"something that was not recorded: {words}; record it again"
        )
        self.path = path


class ReplayedError(ProviderError):
    """What failed when it was recorded fails again.

    Attributes:
        kind: the name of the exception that it was.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """What models were asked and answered.

    Attributes:
        exchanges: in the order in which they were over.
        names: the models behind each name that stood for others.
    """

    exchanges: tuple[Exchange, ...] = ()
    names: Mapping[str, tuple[Candidate, ...]] = {}


class ReplayProvider:
    """Answers from a recording.

    Args:
        recording: see `load_recording`.
        is_timed: whether events come when they came, or at once.
    """

    def __init__(self, recording: Recording, *, is_timed: bool = False) -> None:
        self._is_timed = is_timed
        self._names = recording.names
        self._exchanges = recording.exchanges
        self._places: dict[bytes, list[int]] = defaultdict(list)
        self._used: dict[bytes, int] = defaultdict(int)
        for place, exchange in enumerate(self._exchanges):
            self._places[recognised(request_from_json(exchange.request))].append(place)

    def candidates(self, model: str) -> Sequence[Candidate]:
        """The models that a name stood for when it was recorded."""
        return self._names.get(model, (Candidate(model=model),))

    async def responses(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
    ) -> Response:
        """Answer as it was recorded.

        Raises:
            NotRecorded: the request is not in the recording.
            ReplayedError: it had failed.
        """
        await trio.lowlevel.checkpoint()
        exchange = self._next(request, context)
        began = trio.current_time()
        events = exchange.told_events()
        for at, event in zip(exchange.times, events, strict=True):
            if self._is_timed:
                await trio.sleep_until(began + at)
            on_event(event)
        if self._is_timed:
            await trio.sleep_until(began + exchange.seconds)
        if exchange.error is not None:
            raise ReplayedError(exchange.error.kind, exchange.error.message)
        return exchange.told_response()

    def _next(self, request: CreateResponse, context: ModelContext) -> Exchange:
        key = recognised(request)
        places = self._places.get(key)
        if places is None:
            raise self._unknown(key, context)
        used = self._used[key]
        self._used[key] = used + 1
        return self._exchanges[places[used % len(places)]]

    def _unknown(self, key: bytes, context: ModelContext) -> NotRecorded:
        asked = msgspec.json.decode(key)
        alike = (
            max(self._places, key=lambda known: self._likeness(known, asked, context))
            if self._places
            else None
        )
        if alike is None:
            return NotRecorded(context.deck, context, "", "nothing was recorded")
        path, recorded, now = _first_difference(msgspec.json.decode(alike), asked)
        was, is_now = _shown(recorded, now)
        words = f"{path} was {was} and is {is_now}"
        return NotRecorded(context.deck, context, path, words)

    def _likeness(
        self, known: bytes, asked: JSONValue, context: ModelContext
    ) -> tuple[bool, bool, int]:
        exchange = self._exchanges[self._places[known][0]]
        at_same_place = (exchange.turn, exchange.pass_number) == (
            context.turn,
            context.pass_number,
        )
        recorded = msgspec.json.decode(known)
        return exchange.deck == context.deck, at_same_place, _shared(recorded, asked)


def load_recording(data: bytes) -> Recording:
    """Read a recording. A last line that was cut off is left out.

    Raises:
        BadRecording: a line is not what it has to be.
    """
    # Behind the last line break stands nothing, or an exchange that was not over.
    lines = data.split(b"\n")[:-1]
    if not lines:
        raise BadRecording(1, "it is not whole" if data else "there is none")
    exchanges: list[Exchange] = []
    names: dict[str, tuple[Candidate, ...]] = {}
    for number, line in enumerate(lines, 1):
        try:
            entry = _DECODER.decode(line)
            if isinstance(entry, Head):
                _check_format(number, entry)
            elif number == 1:
                raise BadRecording(1, "it does not begin as recordings do")
            elif isinstance(entry, Name):
                names[entry.name] = _candidates(number, entry)
            else:
                _check_exchange(number, entry)
                exchanges.append(entry)
        except (msgspec.DecodeError, UnicodeDecodeError, WireError) as problem:
            raise BadRecording(number, str(problem)) from problem
    return Recording(exchanges=tuple(exchanges), names=names)


_DECODER = msgspec.json.Decoder(Head | Name | Exchange)


def _check_format(number: int, head: Head) -> None:
    if head.format != FORMAT:
        raise BadRecording(number, f"its format is {head.format!r}, and not {FORMAT!r}")


def _candidates(number: int, entry: Name) -> tuple[Candidate, ...]:
    if not entry.models:
        raise BadRecording(number, f"{entry.name!r} stands for no model")
    return tuple(model.told_candidate() for model in entry.models)


def _check_exchange(number: int, exchange: Exchange) -> None:
    request_from_json(exchange.request)
    exchange.told_events()
    if exchange.error is None:
        exchange.told_response()
    if len(exchange.times) != len(exchange.events):
        raise BadRecording(number, "it has not one time for each event")


def _first_difference(
    recorded: JSONValue, asked: JSONValue, path: str = ""
) -> tuple[str, JSONValue, JSONValue]:
    """Where two documents differ first, and what stands there in each."""
    if isinstance(recorded, dict) and isinstance(asked, dict):
        for key in [*recorded, *(key for key in asked if key not in recorded)]:
            was, now = recorded.get(key, msgspec.UNSET), asked.get(key, msgspec.UNSET)
            if was != now:
                return _first_difference(was, now, f"{path}.{key}".lstrip("."))
    if isinstance(recorded, list) and isinstance(asked, list):
        for place in range(max(len(recorded), len(asked))):
            was, now = _at(recorded, place), _at(asked, place)
            if was != now:
                return _first_difference(was, now, f"{path}[{place}]")
    return path, recorded, asked


def _at(values: list[JSONValue], place: int) -> JSONValue:
    return values[place] if place < len(values) else msgspec.UNSET


def _shared(recorded: JSONValue, asked: JSONValue) -> int:
    """How much of a conversation two requests have in common, from its beginning."""
    pairs: Iterator[tuple[JSONValue, JSONValue]] = zip(
        _input(recorded), _input(asked), strict=False
    )
    count = 0
    for was, now in pairs:
        if was != now:
            break
        count += 1
    return count


def _input(request: JSONValue) -> list[JSONValue]:
    given = request.get("input")
    return given if isinstance(given, list) else [given]


def _shown(was: JSONValue, now: JSONValue) -> tuple[str, str]:
    """Two values in short, so that it can be seen where they part."""
    texts = [_as_text(was), _as_text(now)]
    pairs = enumerate(zip(*texts, strict=False))
    parted = next((at for at, (one, other) in pairs if one != other), 0)
    begin = max(0, parted - _SHOWN_BEFORE)
    return _cut(texts[0], begin), _cut(texts[1], begin)


def _as_text(value: JSONValue) -> str:
    if value is msgspec.UNSET:
        return "not there"
    return msgspec.json.encode(value).decode()


def _cut(text: str, begin: int) -> str:
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    end = begin + _SHOWN_CHARACTERS
    before, after = "…" * (begin > 0), "…" * (end < len(text))
    return f"{before}{text[begin:end]}{after}"
