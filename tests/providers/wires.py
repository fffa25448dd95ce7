"""A way out to the network that leads nowhere: exchanges that a test has written."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

import msgspec
import trio

from gambit_actors.openresponses import (
    DONE_FRAME,
    encode_event,
    events_from_response,
)
from gambit_actors.openresponses.items import Item, assistant_message
from gambit_actors.openresponses.responses import Response, Usage
from gambit_actors.providers.endpoints import Timeouts

EVENT_STREAM = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}
USAGE = Usage(input_tokens=10, output_tokens=5, total_tokens=15)


class Exchange(msgspec.Struct, kw_only=True):
    """What a server does with one request.

    Attributes:
        pieces: of the body, in order: bytes, seconds to wait, or an error to break
            off with.
    """

    status: int = 200
    headers: Mapping[str, str] = msgspec.field(default_factory=EVENT_STREAM.copy)
    pieces: tuple[bytes | float | Exception, ...] = ()
    refusal: Exception | None = None


class Posted(msgspec.Struct, kw_only=True):
    """A request that was sent, and how far its answer was read.

    Attributes:
        is_read: whether it was read to its end.
        is_closed: whether it was let go of.
    """

    url: str
    headers: Mapping[str, str]
    body: dict[str, object]
    timeouts: Timeouts
    allow_plain_keys: bool = False
    is_read: bool = False
    is_closed: bool = False


class WrittenAnswer:
    """The answer of an exchange."""

    def __init__(self, exchange: Exchange, posted: Posted) -> None:
        self.status = exchange.status
        self.headers = exchange.headers
        self._pieces = iter(exchange.pieces)
        self._posted = posted

    async def next_chunk(self) -> bytes:
        """The next piece."""
        await trio.lowlevel.checkpoint()
        for piece in self._pieces:
            if isinstance(piece, bytes):
                return piece
            if isinstance(piece, Exception):
                raise piece
            await trio.sleep(piece)
        self._posted.is_read = True
        return b""


class WrittenTransport:
    """Answers requests with exchanges, one after the other.

    Attributes:
        posted: the requests, in order.
    """

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        self._exchanges = iter(exchanges)
        self.posted: list[Posted] = []

    @asynccontextmanager
    async def post(
        self,
        provider: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes,
        timeouts: Timeouts,
        allow_plain_keys: bool = False,
    ) -> AsyncIterator[WrittenAnswer]:
        """Answer as the next exchange has it."""
        assert provider == "acme"
        posted = Posted(
            url=url,
            headers=headers,
            body=msgspec.json.decode(body),
            timeouts=timeouts,
            allow_plain_keys=allow_plain_keys,
        )
        self.posted.append(posted)
        exchange = next(self._exchanges)
        await trio.lowlevel.checkpoint()
        if exchange.refusal is not None:
            raise exchange.refusal
        try:
            yield WrittenAnswer(exchange, posted)
        finally:
            posted.is_closed = True


def answer(*output: Item | str, id: str = "resp_1") -> Response:
    """An answer that is whole; a string is a message."""
    items = [
        msgspec.structs.replace(assistant_message(item), id=f"msg_{place}")
        if isinstance(item, str)
        else item
        for place, item in enumerate(output)
    ]
    done = [
        msgspec.structs.replace(item, status="completed")
        if hasattr(item, "status")
        else item
        for item in items
    ]
    return Response(
        id=id, status="completed", model="m-1", output=tuple(done), usage=USAGE
    )


def frames_of(response: Response) -> list[bytes]:
    """A response as the frames of a stream, without the marker at the end."""
    return [encode_event(event) for event in events_from_response(response)]


def streamed(*output: Item | str, id: str = "resp_1") -> Exchange:
    """An exchange that answers with a stream."""
    frames = frames_of(answer(*output, id=id))
    return Exchange(pieces=(*frames, DONE_FRAME))


def refused(
    status: int, message: str = "No.", code: str = "", **headers: str
) -> Exchange:
    """An exchange that answers with an error."""
    error = {"error": {"message": message, "code": code}}
    return Exchange(
        status=status,
        headers=JSON | {name.replace("_", "-"): v for name, v in headers.items()},
        pieces=(msgspec.json.encode(error),),
    )
