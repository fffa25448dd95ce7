"""One answer of a model server, from its bytes to a response.

::

    chunks ─▶ SSEDecoder ─▶ frames ─▶ Reader of the dialect ─▶ events ─▶ builder
                               │                                 │
                               └▶ on_frame, word for word        └▶ on_event, at once

The first terminal event is the last word: what a server sends behind it is noted and
shown to nobody. An answer is never made up for one that broke off.

Keys are struck out of each frame, and once more out of what has been put together from
several: whole texts, items and the response.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import trio

from gambit_actors.errors import (
    BadResponse,
    EventTooLarge,
    ProviderError,
    StreamTruncated,
    WireError,
)
from gambit_actors.openresponses.builder import ResponseBuilder
from gambit_actors.openresponses.codec import decode_event, decode_response
from gambit_actors.openresponses.events import (
    ContentPartDone,
    Event,
    FunctionCallArgumentsDone,
    OutputItemDone,
    OutputTextDone,
    ReasoningDone,
    ReasoningSummaryPartDone,
    ReasoningSummaryTextDone,
    RefusalDone,
    ResponseCompleted,
    ResponseFailed,
    ResponseIncomplete,
)
from gambit_actors.openresponses.provider_frames import FrameRecords
from gambit_actors.openresponses.responses import Response
from gambit_actors.openresponses.sse import SSEDecoder, SSEFrame
from gambit_actors.openresponses.writing import encode
from gambit_actors.providers.concealing import Concealer
from gambit_actors.providers.dialects.dialect import Dialect
from gambit_actors.providers.dialects.sealing import conceal_sealed
from gambit_actors.providers.errors import (
    AnswerTooLarge,
    BadAnswer,
    StreamCut,
    StreamedTooMuch,
)
from gambit_actors.run.ports import ModelContext

MOST_EVENT_BYTES = 16 * 1024 * 1024
"""How large one event may get. Images that models make are the largest there are."""

MOST_ANSWER_BYTES = 256 * 1024 * 1024
"""How large a whole stream may get. Who asked keeps what was said until it is over."""

LAST_WORDS_SECONDS = 0.5
"""How long a server may take to hang up after its last event.

Reading to the end keeps the connection for the next request. A server that dawdles
loses that, and nobody waits longer for an answer that is there.
"""


# What has a whole text in it, and not the next few letters.
_PUT_TOGETHER = (
    ContentPartDone,
    FunctionCallArgumentsDone,
    OutputItemDone,
    OutputTextDone,
    ReasoningDone,
    ReasoningSummaryPartDone,
    ReasoningSummaryTextDone,
    RefusalDone,
    ResponseCompleted,
    ResponseFailed,
    ResponseIncomplete,
)


class HttpAnswer(Protocol):
    """What a transport gives of an answer."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, their names in lower case."""

    async def next_chunk(self) -> bytes:
        """More of the body; empty at its end.

        Raises:
            ProviderError: nothing came in time, or the connection broke.
        """


class AnswerReading:
    """Reads one answer.

    Args:
        provider: who answers.
        dialect: what is spoken.
        started: what the response starts as.
        context: for whom it is; takes the frames, if it wants them.
        on_event: takes each event, at once.
        concealer: strikes keys out of what the server sends.
    """

    def __init__(
        self,
        provider: str,
        dialect: Dialect,
        started: Response,
        context: ModelContext,
        *,
        on_event: Callable[[Event], None],
        concealer: Concealer,
    ) -> None:
        self._provider = provider
        self._dialect = dialect
        self._started = started
        self._reader = dialect.reader(started)
        self._builder = ResponseBuilder()
        self._on_event = on_event
        self._concealer = concealer
        self._on_frame = context.on_frame
        self._conceal = context.conceal
        self._records = None if context.on_frame is None else FrameRecords(provider)
        self._events_shown = 0

    @property
    def has_begun(self) -> bool:
        """Whether an event was passed on, so that it cannot be asked for again."""
        return self._events_shown > 0

    def problems(self) -> list[str]:
        """What the server did that its own protocol does not have."""
        # Both see the same events, and what is wrong with one is said once.
        return [*dict.fromkeys((*self._reader.problems, *self._builder.problems))]

    def whole(self, body: bytes) -> Response:
        """Read an answer that came in one piece; there are no events of it.

        Raises:
            BadAnswer: it is none.
        """
        try:
            response = self._dialect.read_whole(body, self._started)
        except BadResponse as problem:
            raise BadAnswer(self._provider, problem.path, problem.problem) from problem
        return self._without_keys(response)

    async def read(self, answer: HttpAnswer) -> Response:
        """Read to the end.

        Raises:
            StreamCut: the server did not say how its answer went.
            ProviderError: it broke off.
        """
        try:
            response = await self._read(answer)
        except EventTooLarge as problem:
            raise StreamedTooMuch(self._provider, problem.limit_bytes) from problem
        except StreamTruncated as problem:
            raise StreamCut(self._provider, problem.events_seen) from problem
        return self._without_keys(response)

    async def _read(self, answer: HttpAnswer) -> Response:
        try:
            await self._take_all(answer)
            self._show(self._reader.close())
            return self._builder.close()
        except BaseException:
            self._conceal_pieces()
            raise

    def _conceal_pieces(self) -> None:
        """Have nobody keep a key that half an answer has spelled out piece by piece."""
        if self._concealer.has_keys and self._events_shown:
            for key in self._concealer.found_in(encode(self._builder.partial())):
                self._conceal(key)

    async def _take_all(self, answer: HttpAnswer) -> None:  # noqa: ASYNC910  # it reads
        decoder, taken = SSEDecoder(max_event_bytes=MOST_EVENT_BYTES), 0
        try:
            with trio.CancelScope() as scope:
                while chunk := await answer.next_chunk():
                    taken += len(chunk)
                    if taken > MOST_ANSWER_BYTES:
                        raise AnswerTooLarge(self._provider, MOST_ANSWER_BYTES)
                    for frame in decoder.feed(chunk):
                        self._take(frame)
                    if self._is_over and scope.deadline == float("inf"):
                        scope.deadline = trio.current_time() + LAST_WORDS_SECONDS
        except ProviderError:
            if not self._builder.is_finished:
                raise

    @property
    def _is_over(self) -> bool:
        return self._builder.is_finished or self._reader.is_done

    def _take(self, frame: SSEFrame) -> None:
        frame = self._concealer.frame(frame)
        events = self._reader.feed(frame)
        if self._records is not None and self._on_frame is not None:
            for record in self._records.of(frame, events, trio.current_time()):
                self._on_frame(record)
        self._show(events)

    def _show(self, events: Sequence[Event]) -> None:
        for event in events:
            is_late = self._builder.is_finished
            self._builder.feed(event)
            if not is_late:
                self._events_shown += 1
                self._on_event(self._shown(event))

    def _shown(self, event: Event) -> Event:
        """The event without a key that the server had spelled out over several."""
        if not self._concealer.has_keys or not isinstance(event, _PUT_TOGETHER):
            return event
        with suppress(WireError):  # What cannot be written, nobody can keep.
            data = encode(event)
            concealed = self._concealed(data)
            return event if concealed == data else decode_event(concealed)
        return event

    def _without_keys(self, response: Response) -> Response:
        if not self._concealer.has_keys:
            return response
        with suppress(WireError):
            data = encode(response)
            concealed = self._concealed(data)
            return response if concealed == data else decode_response(concealed)
        return response

    def _concealed(self, data: bytes) -> bytes:
        conceal = self._concealer.bytes
        return conceal_sealed(conceal(data), conceal)
