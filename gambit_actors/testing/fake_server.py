r"""A server on this machine that answers as a test wants it to, and as badly.

::

    async def handler(request: Asked, answer: Answer) -> None:
        assert request.json()["stream"] is True
        await answer.head(200, {"content-type": "text/event-stream"})
        await answer.send(b"data: {}\n\n")
        await answer.hang()

    async with serve(handler) as server:
        ...  # ask server.base_url
        assert len(server.requests) == 1
        await server.wait_connections(0)

A handler is run for each request. What it has sent when it returns is ended as HTTP
wants it; `Answer.close` and `Answer.reset` end it otherwise. A handler is cancelled
when its client goes away, wherever it waits; an exception it raises comes out of
`serve` in a group. Connections are kept alive unless one side says ``connection:
close``.

HTTP/1.1 without TLS, on the loopback alone, for some thousands of connections at a
time. Sockets are real, and so is the time they take: a test that uses this cannot use
trio's autojump clock.
"""

import http
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeAlias

import h11
import msgspec
import trio

from gambit_actors.openresponses.base import JSONValue

_HOST = "127.0.0.1"
_BACKLOG = 4096
_RECEIVE_BYTES = 65_536
_NO_BODY = frozenset({204, 304})
# On, and no time to linger: closing then sends a reset.
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it came.

    Attributes:
        target: the path, and the query if there is one.
        headers: in lower case; of those that came twice, the last.
        connection: which connection it came on, counted from 1.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    connection: int

    def json(self) -> JSONValue:
        """The body, read as JSON."""
        return msgspec.json.decode(self.body)


class Answer:
    """What a handler says to one request.

    Each method waits until the system has taken the bytes, which it does at once
    unless the client does not read.

    Attributes:
        has_ended: whether all of it is said.
        keeps_connection: whether another request may come on the same connection.
    """

    def __init__(self, stream: trio.SocketStream, leave: Callable[[], None]) -> None:
        self._stream = stream
        self._leave = leave
        self._has_head = False
        self._is_chunked = False
        self.has_ended = False
        self.keeps_connection = True

    async def head(
        self, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send the status and the headers.

        The body is sent in chunks unless the headers have a ``content-length``.
        """
        fields = {name.lower(): value for name, value in (headers or {}).items()}
        if fields.get("connection", "").lower() == "close":
            self.keeps_connection = False
        if "content-length" not in fields and status not in _NO_BODY:
            self._is_chunked = True
            fields["transfer-encoding"] = "chunked"
        self._has_head = True
        lines = [f"HTTP/1.1 {status} {_phrase(status)}"]
        lines += [f"{name}: {value}" for name, value in fields.items()]
        await self.raw("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def send(self, data: bytes) -> None:
        """Send a piece of the body; after `head` with 200 if there was none yet."""
        if not self._has_head:
            await self.head()
        if self._is_chunked and data:
            data = b"%x\r\n%s\r\n" % (len(data), data)
        await self.raw(data)

    async def whole(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send head and body at once, with the length."""
        length = {"content-length": str(len(body))}
        await self.head(status, {**(headers or {}), **length})
        await self.send(body)

    async def json(self, status: int, value: JSONValue) -> None:
        """Send a JSON document as the whole answer."""
        body = msgspec.json.encode(value)
        await self.whole(status, body, {"content-type": "application/json"})

    async def raw(self, data: bytes) -> None:
        """Send bytes as they are, HTTP or not."""
        try:
            await self._stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._leave()
            await trio.lowlevel.checkpoint()

    async def hang(self) -> None:
        """Say nothing more, until the client goes away or the server ends."""
        await trio.sleep_forever()

    async def close(self) -> None:
        """Close the connection here and now, with whatever was said so far."""
        self.has_ended = True
        self.keeps_connection = False
        await trio.aclose_forcefully(self._stream)

    async def reset(self) -> None:
        """Break the connection: the client gets an error, not an end."""
        self._stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        await self.close()

    async def end(self) -> None:
        """End the body; done for a handler that returns."""
        await trio.lowlevel.checkpoint()
        if self.has_ended:
            return
        self.has_ended = True
        if not self._has_head:
            await self.whole(200, b"")
        elif self._is_chunked:
            await self.raw(b"0\r\n\r\n")


Handler: TypeAlias = Callable[[Asked, Answer], Awaitable[None]]


class FakeServer:
    """A server that is running.

    Attributes:
        base_url: ``http://127.0.0.1:PORT``, without a slash at the end.
        requests: all of them, in the order in which they were complete.
        connections_made: how many connections there have been.
        open_connections: how many there are.
        most_open: how many there were at once.
        refused: why bytes that came were no request, one sentence each.
    """

    def __init__(self, handler: Handler, port: int, *, most_body_bytes: int) -> None:
        self.base_url = f"http://{_HOST}:{port}"
        self.requests: list[Asked] = []
        self.connections_made = 0
        self.open_connections = 0
        self.most_open = 0
        self.refused: list[str] = []
        self._handler = handler
        self._most_body_bytes = most_body_bytes
        self._changed = trio.lowlevel.ParkingLot()

    async def wait_requests(self, count: int) -> None:
        """Wait until there were this many requests."""
        await trio.lowlevel.checkpoint()
        while len(self.requests) < count:
            await self._changed.park()

    async def wait_connections(self, count: int) -> None:
        """Wait until exactly this many connections are open."""
        await trio.lowlevel.checkpoint()
        while self.open_connections != count:
            await self._changed.park()

    async def _serve(self, stream: trio.SocketStream) -> None:
        self.connections_made += 1
        self.open_connections += 1
        self.most_open = max(self.most_open, self.open_connections)
        self._changed.unpark_all()
        try:
            await self._serve_requests(stream, self.connections_made)
        finally:
            self.open_connections -= 1
            self._changed.unpark_all()

    async def _serve_requests(self, stream: trio.SocketStream, number: int) -> None:
        early = bytearray()  # What came before it was asked for.
        while True:
            try:
                asked = await self._read(stream, early, number)
            except h11.RemoteProtocolError as problem:
                self.refused.append(str(problem))
                await Answer(stream, lambda: None).whole(400, b"")
                return
            if asked is None:
                return
            self.requests.append(asked)
            self._changed.unpark_all()
            if not await self._answer(stream, early, asked):
                return

    async def _read(
        self, stream: trio.SocketStream, early: bytearray, number: int
    ) -> Asked | None:
        """Read a request; None if the client has gone."""
        reading = h11.Connection(our_role=h11.SERVER)
        if early:  # To h11 no bytes at all are the end.
            reading.receive_data(bytes(early))
            early.clear()
        body = bytearray()
        request = await _next_event(reading, stream)
        if not isinstance(request, h11.Request):
            return None
        while isinstance(event := await _next_event(reading, stream), h11.Data):
            body += event.data
            if len(body) > self._most_body_bytes:
                raise h11.RemoteProtocolError("the body is too large")
        if not isinstance(event, h11.EndOfMessage):
            return None
        early += reading.trailing_data[0]
        return _asked(request, bytes(body), number)

    async def _answer(
        self, stream: trio.SocketStream, early: bytearray, asked: Asked
    ) -> bool:
        """Have a request answered; give whether another may follow."""
        is_here = True
        async with trio.open_nursery() as nursery:
            answer = Answer(stream, nursery.cancel_scope.cancel)

            async def watch() -> None:
                """Leave the handler when the client has left."""
                nonlocal is_here
                while data := await _receive(stream):
                    early.extend(data)
                is_here = False
                if not answer.has_ended:
                    nursery.cancel_scope.cancel()

            nursery.start_soon(watch)
            await self._handler(asked, answer)
            await answer.end()
            nursery.cancel_scope.cancel()
        wants_more = asked.headers.get("connection", "").lower() != "close"
        return is_here and answer.keeps_connection and wants_more


@asynccontextmanager
async def serve(
    handler: Handler, *, most_body_bytes: int = 64 * 1024 * 1024
) -> AsyncIterator[FakeServer]:
    """Run a server. Leaving breaks off what is still being answered.

    Args:
        handler: answers each request; many run at once.
        most_body_bytes: a request with a longer body is refused.
    """
    listeners = await trio.open_tcp_listeners(0, host=_HOST, backlog=_BACKLOG)
    port = listeners[0].socket.getsockname()[1]
    server = FakeServer(handler, port, most_body_bytes=most_body_bytes)
    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, server._serve, listeners)  # noqa: SLF001
        yield server
        nursery.cancel_scope.cancel()


def one_answer(
    body: bytes, *, content_type: str = "text/event-stream", piece_bytes: int = 0
) -> Handler:
    """A handler that says the same to every request.

    Args:
        body: what it says.
        content_type: what it calls that.
        piece_bytes: how much is sent at a time; 0 for all at once.
    """

    async def handler(_request: Asked, answer: Answer) -> None:
        await answer.head(200, {"content-type": content_type})
        size = piece_bytes or len(body) or 1
        for start in range(0, len(body), size):
            await answer.send(body[start : start + size])

    return handler


@asynccontextmanager
async def refuse() -> AsyncIterator[str]:
    """The base URL of a server that is not there: connections are refused."""
    await trio.lowlevel.checkpoint()
    # Bound, so that nobody else gets the port, and not listening.
    with socket.socket() as taken:
        taken.bind((_HOST, 0))
        yield f"http://{_HOST}:{taken.getsockname()[1]}"


@asynccontextmanager
async def never_connect() -> AsyncIterator[str]:
    """The base URL of a server that lets clients wait for a connection (Linux)."""
    await trio.lowlevel.checkpoint()
    with socket.socket() as full, socket.socket() as first:
        full.bind((_HOST, 0))
        # A queue of one, and the one is here; Linux lets all others wait.
        full.listen(0)
        first.connect(full.getsockname())
        yield f"http://{_HOST}:{full.getsockname()[1]}"


async def _next_event(
    reading: h11.Connection, stream: trio.SocketStream
) -> h11.Event | None:
    """Read the next part of a request; None if the client has gone."""
    await trio.lowlevel.checkpoint()
    while (event := reading.next_event()) is h11.NEED_DATA:
        if reading.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            await stream.send_all(reading.send(go_on) or b"")
        data = await _receive(stream)
        if not data:
            return None
        reading.receive_data(data)
    return event if isinstance(event, h11.Event) else None


async def _receive(stream: trio.SocketStream) -> bytes:
    """Read some bytes; none if the connection has ended in whatever way."""
    try:
        return bytes(await stream.receive_some(_RECEIVE_BYTES))
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return b""  # noqa: ASYNC910  # that was found out by waiting


def _asked(request: h11.Request, body: bytes, number: int) -> Asked:
    return Asked(
        method=request.method.decode("ascii"),
        target=request.target.decode("latin-1"),
        headers={
            name.decode("ascii"): value.decode("latin-1")
            for name, value in request.headers
        },
        body=body,
        connection=number,
    )


def _phrase(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return ""
