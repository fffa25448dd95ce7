"""The way out, against a server on this machine that answers well and badly.

Sockets are real here, so timeouts are short, and each test has one of its own around
it. Servers end with the test, and a test ends only when all connections are closed.
"""

import gc
import gzip

import pytest
import trio

from gambit_actors.errors import ProviderError, RequestError
from gambit_actors.providers.endpoints import Timeouts
from gambit_actors.providers.errors import (
    ConnectionLost,
    NotAnAnswer,
    ProviderNotReady,
    ProviderTimeout,
    ProviderUnreachable,
)
from gambit_actors.providers.http import HttpAnswer, HttpTransport
from gambit_actors.providers.http_rules import is_loopback, reason_of
from gambit_actors.providers.limited import read_limited
from gambit_actors.testing.fake_server import (
    Answer,
    Asked,
    Handler,
    never_connect,
    one_answer,
    refuse,
    serve,
)

_QUICK = Timeouts(connect=2.0, first_byte=0.2, idle=0.2, total=2.0)
_PATIENT = Timeouts(connect=20.0, first_byte=20.0, idle=20.0, total=20.0)


async def _read(answer: HttpAnswer) -> bytes:
    body = bytearray()
    while chunk := await answer.next_chunk():
        body += chunk
    return bytes(body)


async def _ask(
    transport: HttpTransport, url: str, timeouts: Timeouts = _PATIENT
) -> bytes:
    async with transport.post(
        "p", url, headers={"authorization": "Bearer k"}, body=b"{}", timeouts=timeouts
    ) as answer:
        return await _read(answer)


async def test_an_answer_comes_as_it_is_sent() -> None:
    """The first piece is here while the server has not sent the second."""
    goes_on = trio.Event()

    async def handler(asked: Asked, answer: Answer) -> None:
        assert (asked.method, asked.body) == ("POST", b'{"a":1}')
        assert asked.headers["accept-encoding"] == "identity"
        await answer.head(200, {"X-Some": "one"})
        await answer.send(b"one")
        await goes_on.wait()
        await answer.send(b"two")

    with trio.fail_after(10):
        async with (
            serve(handler) as server,
            HttpTransport() as transport,
            transport.post(
                "p",
                server.base_url,
                headers={},
                body=b'{"a":1}',
                timeouts=_PATIENT,
            ) as answer,
        ):
            assert (answer.status, answer.headers["x-some"]) == (200, "one")
            assert await answer.next_chunk() == b"one"
            goes_on.set()
            assert await answer.next_chunk() == b"two"
            assert await answer.next_chunk() == b""
            assert await answer.next_chunk() == b""


async def test_a_connection_is_used_again_after_a_whole_answer() -> None:
    """Ten answers read to their end take one connection."""
    async with serve(one_answer(b"x" * 100)) as server, HttpTransport() as transport:
        for _ in range(10):
            assert await _ask(transport, server.base_url) == b"x" * 100
        assert server.connections_made == 1


async def _hang(_asked: Asked, answer: Answer) -> None:
    await answer.hang()


async def _hang_in_head(_asked: Asked, answer: Answer) -> None:
    await answer.raw(b"HTTP/1.1 200 OK\r\nx-some: ")
    await answer.hang()


async def _hang_after_head(_asked: Asked, answer: Answer) -> None:
    await answer.head()
    await answer.hang()


async def _hang_in_body(_asked: Asked, answer: Answer) -> None:
    await answer.send(b"one")
    await answer.hang()


async def _drip(_asked: Asked, answer: Answer) -> None:
    while True:
        await answer.send(b":\n")
        await trio.sleep(0.02)


async def _drip_head(_asked: Asked, answer: Answer) -> None:
    await answer.raw(b"HTTP/1.1 200 OK\r\n")
    while True:
        await answer.raw(b"x: y\r\n")
        await trio.sleep(0.02)


async def _say_continue(_asked: Asked, answer: Answer) -> None:
    while True:
        await answer.raw(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        await trio.sleep(0.01)


async def _flood(_asked: Asked, answer: Answer) -> None:
    while True:
        await answer.send(b"x" * 60_000)


@pytest.mark.parametrize(
    ("handler", "phase"),
    [
        (_hang, "first_byte"),
        (_hang_in_head, "first_byte"),
        (_drip_head, "first_byte"),
        (_say_continue, "first_byte"),
        (_hang_after_head, "idle"),
        (_hang_in_body, "idle"),
        (_drip, "total"),
        (_flood, "total"),
    ],
)
@pytest.mark.slow
@pytest.mark.spec("PA-8")
async def test_each_phase_has_its_own_timeout(handler: Handler, phase: str) -> None:
    """Wherever a server stops, or goes on, a timeout of that phase ends it."""
    timeouts = Timeouts(connect=5.0, first_byte=0.2, idle=0.2, total=0.5)
    with trio.fail_after(10):
        async with serve(handler) as server, HttpTransport() as transport:
            began = trio.current_time()
            with pytest.raises(ProviderTimeout) as caught:
                await _ask(transport, server.base_url, timeouts)
            took = trio.current_time() - began
            assert caught.value.phase == phase
            assert caught.value.seconds == getattr(timeouts, phase)
            assert caught.value.seconds <= took + 0.001 < caught.value.seconds + 1.0
            await server.wait_connections(0)


@pytest.mark.slow
async def test_the_total_time_is_also_that_of_a_short_wait() -> None:
    """Where little is left of the total time, a wait ends with it, as the total."""
    timeouts = Timeouts(connect=5.0, first_byte=5.0, idle=5.0, total=0.3)
    with trio.fail_after(10):
        async with HttpTransport() as transport:
            for handler in (_hang, _hang_in_body):
                async with serve(handler) as server:
                    with pytest.raises(ProviderTimeout) as caught:
                        await _ask(transport, server.base_url, timeouts)
                    assert (caught.value.phase, caught.value.seconds) == ("total", 0.3)


@pytest.mark.slow
async def test_a_server_that_takes_no_connection_is_waited_for_briefly() -> None:
    """Connecting has a timeout of its own."""
    timeouts = Timeouts(connect=0.2)
    async with never_connect() as url, HttpTransport() as transport:
        with trio.fail_after(10), pytest.raises(ProviderTimeout) as caught:
            await _ask(transport, url, timeouts)
    assert (caught.value.phase, caught.value.seconds) == ("connect", 0.2)


@pytest.mark.slow
async def test_a_handshake_that_hangs_is_part_of_connecting() -> None:
    """A server that never answers TLS is given up, and its connection closed."""
    closed = trio.Event()

    async def never_answer(stream: trio.SocketStream) -> None:
        while await stream.receive_some():
            pass
        closed.set()

    timeouts = Timeouts(connect=0.2)
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery, HttpTransport() as transport:
            listeners = await nursery.start(trio.serve_tcp, never_answer, 0)
            port = listeners[0].socket.getsockname()[1]
            with pytest.raises(ProviderTimeout) as caught:
                await _ask(transport, f"https://127.0.0.1:{port}", timeouts)
            assert caught.value.phase == "connect"
            await closed.wait()
            nursery.cancel_scope.cancel()


async def test_nobody_there_is_said_in_a_sentence() -> None:
    """Refused, unknown and not TLS are told apart, in words a user understands."""
    async with (
        HttpTransport() as transport,
        refuse() as refused,
        serve(one_answer(b"")) as plain,
    ):
        places = {
            refused: f"nothing takes connections at .*, port {refused.split(':')[-1]}$",
            "http://nobody.invalid": "there is no host called nobody.invalid",
            f"https{plain.base_url.removeprefix('http')}": "TLS",
            f"https://{'a' * 70}.example": "there is no host called",
        }
        for url, words in places.items():
            with pytest.raises(ProviderUnreachable, match=words):
                async with transport.post(
                    "p", url, headers={}, body=b"", timeouts=_PATIENT
                ):
                    pass


@pytest.mark.parametrize(
    ("provider", "host", "hint"),
    [
        ("ollama", "localhost", "; start it with: ollama serve"),
        ("ollama", "models.test", ""),
        ("vllm", "localhost", ""),
    ],
)
def test_a_server_of_this_machine_that_is_not_up_is_told_how_to_be(
    provider: str, host: str, hint: str
) -> None:
    """If it is one that everybody starts in the same way."""
    reason = reason_of(ConnectionRefusedError(), host, port=11434, provider=provider)
    assert reason == f"nothing takes connections at {host}, port 11434{hint}"


async def _close(_asked: Asked, answer: Answer) -> None:
    await answer.close()


async def _close_in_head(_asked: Asked, answer: Answer) -> None:
    await answer.raw(b"HTTP/1.1 200 OK\r\ncontent-")
    await answer.close()


async def _close_in_chunk(_asked: Asked, answer: Answer) -> None:
    await answer.head()
    await answer.raw(b"ff\r\nshort")
    await answer.close()


async def _close_in_length(_asked: Asked, answer: Answer) -> None:
    await answer.head(200, {"content-length": "100"})
    await answer.send(b"short")
    await answer.close()


async def _reset(_asked: Asked, answer: Answer) -> None:
    await answer.reset()


async def _reset_in_body(_asked: Asked, answer: Answer) -> None:
    await answer.send(b"one")
    await answer.reset()


async def _garbage(_asked: Asked, answer: Answer) -> None:
    await answer.raw(b"\x00\xff" * 40 + b"\r\n\r\n")
    await answer.close()


async def _endless_head(_asked: Asked, answer: Answer) -> None:
    await answer.raw(b"HTTP/1.1 200 OK\r\nx: ")
    for _ in range(100):
        await answer.raw(b"y" * 10_000)
    await answer.close()


async def _bad_length(_asked: Asked, answer: Answer) -> None:
    await answer.raw(b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n")
    await answer.hang()


async def _bad_chunk(_asked: Asked, answer: Answer) -> None:
    await answer.head()
    await answer.raw(b"no number\r\n")
    await answer.hang()


async def _endless_chunk_line(_asked: Asked, answer: Answer) -> None:
    await answer.head()
    for _ in range(100):
        await answer.raw(b"1;" + b"y" * 10_000)
    await answer.hang()


async def _gzipped(_asked: Asked, answer: Answer) -> None:
    bomb = gzip.compress(b"0" * 100_000_000, compresslevel=1)
    await answer.whole(200, bomb, {"content-encoding": "gzip"})


@pytest.mark.parametrize(
    ("handler", "kind"),
    [
        (_close, ConnectionLost),
        (_close_in_head, ConnectionLost),
        (_close_in_chunk, ConnectionLost),
        (_close_in_length, ConnectionLost),
        (_reset, ConnectionLost),
        (_reset_in_body, ConnectionLost),
        (_garbage, NotAnAnswer),
        (_endless_head, NotAnAnswer),
        (_bad_length, NotAnAnswer),
        (_bad_chunk, ConnectionLost),
        (_endless_chunk_line, ConnectionLost),
        (_gzipped, NotAnAnswer),
    ],
)
@pytest.mark.spec("PA-8", "PA-9")
async def test_a_server_that_breaks_off_or_babbles_is_a_named_error(
    handler: Handler, kind: type[ProviderError]
) -> None:
    """Nothing that is not a whole answer of HTTP ends like one; messages stay short."""
    with trio.fail_after(10):
        async with serve(handler) as server, HttpTransport() as transport:
            with pytest.raises(kind) as caught:
                await _ask(transport, server.base_url)
            assert len(str(caught.value)) < 500
            assert len(server.requests) == 1
            await server.wait_connections(0)


async def test_an_error_status_with_a_compressed_body_is_still_that_status() -> None:
    """What an error says is lost if it is compressed; its status is not."""

    async def handler(_asked: Asked, answer: Answer) -> None:
        await answer.whole(429, b"\x1f\x8b", {"content-encoding": "gzip"})

    async with (
        serve(handler) as server,
        HttpTransport() as transport,
        transport.post(
            "p", server.base_url, headers={}, body=b"", timeouts=_QUICK
        ) as answer,
    ):
        assert answer.status == 429
        assert await read_limited(answer, 100) == b""


@pytest.mark.slow
async def test_the_body_of_an_error_is_read_in_part() -> None:
    """An endless explanation is cut, and a slow one is not waited for."""
    async with HttpTransport() as transport:
        for handler, expected in ((_flood, b"x" * 1000), (_hang_in_body, b"one")):
            async with (
                serve(handler) as server,
                transport.post(
                    "p", server.base_url, headers={}, body=b"", timeouts=_PATIENT
                ) as answer,
            ):
                with trio.fail_after(5):
                    read = await read_limited(answer, 1000, within_seconds=0.2)
                assert read == expected


async def test_a_redirect_is_not_followed() -> None:
    """The key of one host is never sent to another that it names."""
    async with serve(one_answer(b"stolen")) as thief, HttpTransport() as transport:

        async def handler(_asked: Asked, answer: Answer) -> None:
            headers = {"location": thief.base_url, "set-cookie": "a=b"}
            await answer.whole(307, b"", headers)

        async with serve(handler) as server:
            for _ in range(2):
                async with transport.post(
                    "p",
                    server.base_url,
                    headers={"authorization": "Bearer k"},
                    body=b"",
                    timeouts=_PATIENT,
                ) as answer:
                    assert answer.status == 307
                    assert await _read(answer) == b""
            assert "cookie" not in server.requests[1].headers
        assert thief.requests == []


async def _cancel_in(transport: HttpTransport, url: str, seconds: float) -> None:
    with trio.move_on_after(seconds):
        await _ask(transport, url)


@pytest.mark.parametrize("handler", [_hang, _hang_in_head, _hang_in_body, _flood])
async def test_a_cancel_closes_the_connection(handler: Handler) -> None:
    """Who is cancelled wherever it waits leaves no connection, and soon."""
    with trio.fail_after(10):
        async with serve(handler) as server, HttpTransport() as transport:
            for wait in (0.0, 0.001, 0.01, 0.05):
                await _cancel_in(transport, server.base_url, wait)
                await server.wait_connections(0)


class _CancelAt(trio.abc.Instrument):
    """Cancels a scope before the n-th step of a task."""

    def __init__(self, step: int, scope: trio.CancelScope) -> None:
        self._task = trio.lowlevel.current_task()
        self._left = step
        self._scope = scope

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self._task:
            self._left -= 1
            if not self._left:
                self._scope.cancel()


async def test_a_cancel_at_any_step_leaves_nothing() -> None:
    """Cancelled before any of its steps, a request leaves nothing open."""

    async def handler(_asked: Asked, answer: Answer) -> None:
        await answer.send(b"one")
        await answer.send(b"two")

    step, was_cut = 0, True
    async with serve(handler) as server:
        while was_cut:
            step += 1
            async with HttpTransport() as transport:
                with trio.CancelScope() as scope:
                    cancel = _CancelAt(step, scope)
                    trio.lowlevel.add_instrument(cancel)
                    try:
                        await _ask(transport, server.base_url)
                    finally:
                        trio.lowlevel.remove_instrument(cancel)
            was_cut = scope.cancelled_caught
            with trio.fail_after(5):
                await server.wait_connections(0)
            gc.collect()  # What was left open says so now, and fails the test.
    assert step > 5


async def test_leaving_early_closes_the_connection() -> None:
    """A connection whose answer was not read to its end is never used again."""

    async def handler(_asked: Asked, answer: Answer) -> None:
        await answer.send(b"one")
        await answer.send(b"two" * 1000)

    with trio.fail_after(10):
        async with serve(handler) as server, HttpTransport() as transport:
            for _ in range(3):
                async with transport.post(
                    "p", server.base_url, headers={}, body=b"", timeouts=_PATIENT
                ) as answer:
                    assert (await answer.next_chunk()).startswith(b"one")
                await server.wait_connections(0)
            assert server.connections_made == 3


async def _closed_while_kept(
    status_line: bytes,
) -> tuple[list[bytes], int, type[Exception] | None]:
    """Answer once, and break the kept connection under the second request."""
    bodies: list[bytes] = []

    async def handler(asked: Asked, answer: Answer) -> None:
        bodies.append(asked.body)
        if len(bodies) == 2:
            await answer.raw(status_line)
            await answer.close()
        else:
            await answer.whole(200, b"ok")

    raised: type[Exception] | None = None
    async with serve(handler) as server, HttpTransport() as transport:
        assert await _ask(transport, server.base_url) == b"ok"
        try:
            assert await _ask(transport, server.base_url) == b"ok"
        except ProviderError as problem:
            raised = type(problem)
        return bodies, server.connections_made, raised


@pytest.mark.spec("PA-8")
async def test_a_kept_connection_that_was_closed_is_replaced_once() -> None:
    """If a kept connection ends before a byte, the request goes out on a new one."""
    with trio.fail_after(10):
        bodies, connections, raised = await _closed_while_kept(b"")
    assert (len(bodies), connections, raised) == (3, 2, None)


@pytest.mark.spec("PA-8")
async def test_nothing_is_asked_twice_once_an_answer_has_begun() -> None:
    """A kept connection that breaks after a head is an error, and not tried again."""
    with trio.fail_after(10):
        bodies, _, raised = await _closed_while_kept(
            b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab"
        )
    assert (len(bodies), raised) == (2, ConnectionLost)


async def test_garbage_on_a_kept_connection_is_not_asked_for_again() -> None:
    """A server that says something, if no HTTP, has taken the request."""
    with trio.fail_after(10):
        bodies, _, raised = await _closed_while_kept(b"\x00\xff" * 40 + b"\r\n\r\n")
    assert (len(bodies), raised) == (2, NotAnAnswer)


@pytest.mark.parametrize(
    ("host", "is_here"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("models.localhost", True),
        ("a.b.localhost.", True),
        ("127.0.0.2", True),
        ("[::1]", True),
        ("notlocalhost", False),
        ("localhost.example", False),
        ("10.0.0.1", False),
        ("127.0.0.1.example", False),
    ],
)
def test_this_machine_is_known_by_its_names(host: str, *, is_here: bool) -> None:
    """By its addresses, and by names that no resolver may take elsewhere."""
    assert is_loopback(host) is is_here


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://127.0.0.1/", "neither http nor https"),
        ("127.0.0.1:80", "neither http nor https"),
        ("http:///x", "no host"),
        ("http://user:pass@127.0.0.1/", "name or a password"),
        ("http://127.0.0.1\\@evil.example/", "backslash"),
        ("http://127.0.0.1/a b", "space"),
        ("http://127.0.0.1:99999999/", "no port"),
        ("http://127.0.0.1/\r\nx: y", "control character"),
    ],
)
async def test_a_url_that_leads_elsewhere_is_refused(url: str, words: str) -> None:
    """A URL that two readers could read in two ways, or that has a key, is not used."""
    async with HttpTransport() as transport:
        with pytest.raises(ProviderNotReady, match=words) as caught:
            await _ask(transport, url)
    assert "pass@" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorization", "Bearer sesame\r\nx: y"),
        ("authorization", "Bearer sesame\n"),
        ("authorization", "Bearer sesame\0"),
        ("authorization", "Bearer sesamé"),
        ("x y", "sesame"),
        ("", "sesame"),
        ("Transfer-Encoding", "sesame"),
        ("Content-Length", "sesame"),
        ("Host", "sesame"),
    ],
)
async def test_a_header_that_cannot_be_one_is_refused(name: str, value: str) -> None:
    """No header ends the head early or changes the length; its value is not shown."""
    async with HttpTransport() as transport:
        with pytest.raises(ProviderNotReady) as caught:
            async with transport.post(
                "p",
                "http://127.0.0.1:9/",
                headers={name: value},
                body=b"",
                timeouts=_QUICK,
            ):
                pass
    assert "sesam" not in str(caught.value)


@pytest.mark.parametrize("name", ["Authorization", "x-api-key", "x-goog-api-key"])
async def test_a_key_never_goes_to_another_machine_in_the_clear(name: str) -> None:
    """Without TLS a key is for this machine alone, unless the caller says otherwise."""
    url = "http://models.invalid/v1"
    async with HttpTransport() as transport:
        with pytest.raises(ProviderNotReady, match=r"models\.invalid in the clear"):
            async with transport.post(
                "p", url, headers={name: "k"}, body=b"", timeouts=_QUICK
            ):
                pass
        for headers, allow in (({name: "k"}, True), ({"x-some": "k"}, False)):
            with pytest.raises(ProviderUnreachable):
                async with transport.post(
                    "p",
                    url,
                    headers=headers,
                    body=b"",
                    timeouts=_QUICK,
                    allow_plain_keys=allow,
                ):
                    pass


async def test_a_proxy_is_asked_for_what_is_not_here() -> None:
    """Requests to other machines go to the proxy, with its password; those here not."""
    async with serve(one_answer(b"by proxy")) as server:
        proxy = server.base_url.replace("http://", "http://me:sesame@")
        async with (
            HttpTransport(proxy=proxy) as transport,
            serve(one_answer(b"here")) as here,
        ):
            async with transport.post(
                "p",
                "http://models.invalid/v1",
                headers={},
                body=b"",
                timeouts=_PATIENT,
            ) as answer:
                assert await _read(answer) == b"by proxy"
            assert await _ask(transport, here.base_url) == b"here"
        assert [asked.target for asked in server.requests] == [
            "http://models.invalid/v1"
        ]
        assert server.requests[0].headers["proxy-authorization"].startswith("Basic ")


async def test_a_proxy_that_refuses_is_said_so() -> None:
    """A tunnel that is not given is a server that cannot be reached."""

    async def handler(asked: Asked, answer: Answer) -> None:
        assert asked.method == "CONNECT"
        await answer.whole(407, b"")

    async with (
        serve(handler) as server,
        HttpTransport(proxy=server.base_url) as transport,
    ):
        with pytest.raises(ProviderUnreachable, match="the proxy said 407"):
            await _ask(transport, "https://models.invalid/v1")


async def test_a_proxy_that_is_not_there_is_said_so() -> None:
    """It is the proxy that takes no connection, and not whoever is behind it."""
    async with refuse() as base_url, HttpTransport(proxy=base_url) as transport:
        port = base_url.rpartition(":")[2].rstrip("/")
        with pytest.raises(ProviderUnreachable) as caught:
            async with transport.post(
                "acme",
                "https://llm.acme.example/v1",
                headers={},
                body=b"{}",
                timeouts=Timeouts(),
            ):
                pass
    assert f"nothing takes connections at the proxy 127.0.0.1, port {port}" in str(
        caught.value
    )


def test_a_proxy_has_to_be_a_url_of_one() -> None:
    """What is no proxy is refused at once, and not shown."""
    for proxy in ("socks5://me:sesame@h:1", "ftp://sesame", "sesame", "http://h:x"):
        with pytest.raises(RequestError) as caught:
            HttpTransport(proxy=proxy)
        assert "sesame" not in str(caught.value)


async def test_nothing_below_settings_reads_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Variables that other clients obey have no effect."""
    async with refuse() as nobody, serve(one_answer(b"ok")) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, nobody)
        monkeypatch.setenv("SSL_CERT_FILE", "/nothing/here")
        async with HttpTransport() as transport:
            assert await _ask(transport, server.base_url) == b"ok"


async def test_more_requests_than_places_wait() -> None:
    """There are never more connections than allowed, and who waits gets its turn."""

    async def handler(_asked: Asked, answer: Answer) -> None:
        await answer.send(b"one")
        await trio.sleep(0.001)
        await answer.send(b"two")

    with trio.fail_after(20):
        async with serve(handler) as server:
            async with HttpTransport(most_connections=5) as transport:
                async with trio.open_nursery() as nursery:
                    for _ in range(40):
                        nursery.start_soon(_ask, transport, server.base_url)
                assert server.most_open <= 5
                assert len(server.requests) == 40
            await server.wait_connections(0)


async def test_pieces_of_one_byte_make_the_same_body() -> None:
    """However an answer is cut up, its bytes are the same."""
    body = bytes(range(256)) * 20
    handler = one_answer(body, piece_bytes=1)
    async with serve(handler) as server, HttpTransport() as transport:
        assert await _ask(transport, server.base_url) == body
