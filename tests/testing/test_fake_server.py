"""The server that transport tests are held against."""

import socket

import httpx  # noqa: ASYNC127  # the client that the project uses
import pytest
import trio

from gambit_actors.testing.fake_server import (
    Answer,
    Asked,
    never_connect,
    one_answer,
    refuse,
    serve,
)


async def echo(request: Asked, answer: Answer) -> None:
    """Send the body back."""
    await answer.send(request.body)


async def ask(url: str, body: bytes = b"hi") -> bytes:
    """Ask with a real client."""
    async with httpx.AsyncClient(trust_env=False) as client:
        reply = await client.post(url, content=body)
    return reply.read()


async def test_it_answers_a_real_client_and_remembers_what_was_asked() -> None:
    """Method, target, headers and body are kept; the answer arrives whole."""
    async with serve(echo) as server:
        body = await ask(f"{server.base_url}/v1/x?alt=sse", b'{"a": 1}')

        assert body == b'{"a": 1}'
        (request,) = server.requests
        assert (request.method, request.target) == ("POST", "/v1/x?alt=sse")
        assert request.headers["content-length"] == "8"
        assert request.json() == {"a": 1}
        assert server.refused == []


async def test_connections_are_kept_and_counted() -> None:
    """Two requests of one client share a connection, which is gone when it closes."""
    async with serve(echo) as server:
        async with httpx.AsyncClient(trust_env=False) as client:
            for text in (b"one", b"two"):
                reply = await client.post(server.base_url, content=text)
                assert reply.content == text
            assert server.open_connections == 1
        await server.wait_connections(0)

        assert server.connections_made == 1
        assert [request.connection for request in server.requests] == [1, 1]


async def test_a_closing_side_ends_the_connection() -> None:
    """With "connection: close" from either side no second request is served."""

    async def handler(_request: Asked, answer: Answer) -> None:
        await answer.whole(200, b"bye", {"connection": "close"})

    async with serve(handler) as server, httpx.AsyncClient(trust_env=False) as client:
        await client.get(server.base_url)
        await server.wait_connections(0)
        await client.get(server.base_url, headers={"connection": "close"})
        await server.wait_connections(0)
        assert server.connections_made == 2


async def test_requests_sent_at_once_are_answered_in_turn() -> None:
    """Bytes of the next request that come early are not lost."""
    wanted = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n"
    async with serve(echo) as server:
        port = int(server.base_url.rsplit(":", 1)[1])
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(wanted + b"a" + wanted + b"b")
        got = b""
        while got.count(b"0\r\n\r\n") < 2:
            got += await stream.receive_some()
        await stream.aclose()

    assert [request.body for request in server.requests] == [b"a", b"b"]
    assert b"\r\na\r\n" in got
    assert b"\r\nb\r\n" in got


@pytest.mark.parametrize("has_begun", [False, True])
@pytest.mark.parametrize("way", ["close", "reset"])
async def test_it_breaks_off_when_told(way: str, *, has_begun: bool) -> None:
    """Closed or reset, before or inside an answer: the client gets an error."""

    async def handler(_request: Asked, answer: Answer) -> None:
        if has_begun:
            await answer.send(b"half")
        await getattr(answer, way)()

    async with serve(handler) as server:
        with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
            await ask(server.base_url)
        await server.wait_connections(0)


@pytest.mark.parametrize("headers", [{}, {"connection": "close"}])
async def test_a_handler_ends_when_its_client_leaves(headers: dict[str, str]) -> None:
    """A handler that hangs is cancelled as soon as nobody waits for it."""
    left = trio.Event()

    async def handler(_request: Asked, answer: Answer) -> None:
        await answer.head(200, headers)
        try:
            await answer.hang()
        finally:
            left.set()

    async with serve(handler) as server:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, server.base_url)
            await server.wait_requests(1)
            assert not left.is_set()
            nursery.cancel_scope.cancel()
        await left.wait()
        await server.wait_connections(0)


async def test_what_is_no_request_is_refused() -> None:
    """Garbage gets a 400 and is listed; the server goes on."""
    async with serve(echo) as server:
        port = int(server.base_url.rsplit(":", 1)[1])
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(b"\x00\x01 nothing\r\n\r\n")
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 400 ")
        await stream.aclose()
        assert len(server.refused) == 1
        assert await ask(server.base_url) == b"hi"


async def test_a_body_beyond_the_limit_is_refused() -> None:
    """A request that is too long is not kept."""
    async with serve(echo, most_body_bytes=10) as server:
        async with httpx.AsyncClient(trust_env=False) as client:
            reply = await client.post(server.base_url, content=b"x" * 11)
        assert reply.status_code == 400
        assert server.requests == []


async def test_a_handler_that_fails_fails_the_test() -> None:
    """An assertion in a handler comes out of the server, not into a log."""

    async def handler(_request: Asked, _answer: Answer) -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError("wrong request")

    with pytest.RaisesGroup(pytest.RaisesExc(ValueError), flatten_subgroups=True):
        async with serve(handler) as server:
            with pytest.raises(httpx.HTTPError):
                await ask(server.base_url)
            await trio.sleep_forever()


@pytest.mark.parametrize("size", [0, 1, 7])
async def test_one_answer_comes_in_pieces_of_any_size(size: int) -> None:
    """However it is cut, the body is the same."""
    async with serve(one_answer(b"data: {}\n\n" * 3, piece_bytes=size)) as server:
        assert await ask(server.base_url) == b"data: {}\n\n" * 3


async def test_there_are_servers_that_nobody_reaches() -> None:
    """One refuses connections, one lets them wait."""
    async with refuse() as url:
        with pytest.raises(httpx.ConnectError):
            await ask(url)
    async with never_connect() as url:
        port = int(url.rsplit(":", 1)[1])
        with trio.move_on_after(0.1) as waiting, trio.socket.socket() as client:
            await client.connect(("127.0.0.1", port))
        assert waiting.cancelled_caught


@pytest.mark.slow
async def test_it_holds_three_thousand_connections() -> None:
    """3,000 clients are connected and answered at the same time."""
    count = 3000
    everybody = trio.Event()

    async def handler(_request: Asked, answer: Answer) -> None:
        await answer.send(b"wait")
        if len(server.requests) == count:
            everybody.set()
        await everybody.wait()

    async def client(port: int) -> None:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        got = b"".join([part async for part in stream])
        assert got.endswith(b"wait\r\n0\r\n\r\n")
        await stream.aclose()

    async with serve(handler) as server:
        port = int(server.base_url.rsplit(":", 1)[1])
        async with trio.open_nursery() as nursery:
            for _ in range(count):
                nursery.start_soon(client, port)
        assert server.most_open == count
        assert server.connections_made == count


async def test_leaving_breaks_off_what_is_being_answered() -> None:
    """A server that is left lets go of its port and of hanging clients."""

    async def handler(_request: Asked, answer: Answer) -> None:
        await answer.hang()

    async with serve(handler) as server:
        port = int(server.base_url.rsplit(":", 1)[1])
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        await server.wait_requests(1)
    assert await stream.receive_some() == b""
    await stream.aclose()
    with socket.socket() as again, pytest.raises(ConnectionRefusedError):
        again.connect(("127.0.0.1", port))
