"""The one way out to model servers: HTTP/1.1, a body each way, and nothing clever.

::

    async with HttpTransport() as transport:
        async with transport.post(name, url, headers={}, body=b"{}", timeouts=t) as a:
            while chunk := await a.next_chunk():
                ...

No other module imports the HTTP client, and here only its transport is used: there are
no cookies, no redirects and no credentials from anywhere but the call, so that what is
meant for one host never reaches another. Nothing here reads the environment.

- An answer that was read to its end leaves its connection to the next request. All
  others, also those that were cancelled, close it before the block is left.
- A request is sent a second time in one case only: a connection that had been kept
  turns out to be closed, and no head of an answer came.
- Which errors there are is in `gambit_actors.providers.errors`.
"""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Self, cast

import httpx  # noqa: ASYNC127  # the card says httpx; this is the only import of it
import trio

from gambit_actors.errors import ProviderError, RequestError
from gambit_actors.providers.endpoints import Timeouts
from gambit_actors.providers.errors import (
    ConnectionLost,
    NotAnAnswer,
    ProviderNotReady,
    ProviderUnreachable,
)
from gambit_actors.providers.http_phases import Phases
from gambit_actors.providers.http_rules import (
    check_place,
    check_secrecy,
    checked_headers,
    checked_text,
    cut,
    is_garbage,
    is_loopback,
    joined_headers,
    loss_of,
    reason_of,
    refuser_of,
    shown_encoding,
    what_of,
)
from gambit_actors.providers.http_shards import KEPT_SECONDS, Closable, Shards

_CHUNKS_PER_CHECKPOINT = 64
_SUCCESS = range(200, 300)


class HttpAnswer:
    """An answer whose head is here and whose body is still coming.

    Attributes:
        status: the HTTP status.
        headers: by lower-case name; what came several times is joined by commas.
    """

    def __init__(self, call: "_Call", response: httpx.Response) -> None:
        self.status = response.status_code
        self.headers = joined_headers(response.headers.raw)
        self._call = call
        self._response = response
        self._chunks: AsyncIterator[bytes] | None = None
        self._is_over = False

    async def next_chunk(self) -> bytes:
        """The next piece of the body, as large as it came; empty at the end.

        Raises:
            ProviderTimeout: nothing came for too long, or the answer took too long.
            ConnectionLost: the connection broke, or the rest is no HTTP.
            NotAnAnswer: the body is compressed, which was not asked for.
        """
        if self._is_over:
            await trio.lowlevel.checkpoint()
            return b""
        if self._chunks is None:
            self.refuse_encoded()
            self._chunks = aiter(cast(httpx.AsyncByteStream, self._response.stream))
        try:
            chunk = await self._call.in_time(self._chunks)
        except StopAsyncIteration:
            self._is_over = True
            await self._response.aclose()
            return b""
        except httpx.TransportError as problem:
            failure = self._call.body_problem(problem)
            if not is_garbage(problem):
                raise failure from problem
        else:
            return chunk
        # Out here, what repeats the server's words is no context of it either.
        raise failure

    async def aclose(self) -> None:  # noqa: ASYNC910  # closing waits for nobody
        """Give the connection back if all was read, else close it. Waits for nobody."""
        with trio.CancelScope(shield=True):
            await self._response.aclose()
            if self._chunks is None or self._is_over:
                return
            # The client's generators have to be run to their end, which is near.
            with suppress(httpx.TransportError):  # It is closed, it will say.
                async for _ in self._chunks:
                    pass

    def refuse_encoded(self) -> None:
        """Raise `NotAnAnswer` for a body that is compressed."""
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in {"", "identity"}:
            raise NotAnAnswer(
                self._call.provider,
                f"its body is encoded as {shown_encoding(encoding)}",
            )


class HttpTransport:
    """Connections to all model servers, kept and used again. One for each runtime.

    Args:
        most_connections: how many there may be at once; further requests wait.
        proxy: where to send all requests but those to this machine:
            ``http://host:port``, with a name and password if it wants them.
        verify: how servers prove who they are. False trusts everybody.
        connections_per_pool: many in one pool take the client long to look through.

    Raises:
        RequestError: the proxy is no URL of one.
    """

    def __init__(
        self,
        *,
        most_connections: int = 2048,
        proxy: str | None = None,
        verify: ssl.SSLContext | bool = True,
        connections_per_pool: int = 32,
    ) -> None:
        self._places = trio.Semaphore(most_connections)
        sizes = (most_connections, connections_per_pool)
        self._outward = self._direct = Shards(*sizes, _Maker(verify=verify, proxy=None))
        if proxy is not None:
            self._outward = Shards(*sizes, _Maker(verify=verify, proxy=proxy))

    def post(
        self,
        provider: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes,
        timeouts: Timeouts,
        allow_plain_keys: bool = False,
    ) -> AbstractAsyncContextManager[HttpAnswer]:
        """Send a body, and give the answer as soon as its head is here.

        Entering waits for a connection and the head; leaving waits for nobody.

        Args:
            provider: who is asked, for messages.
            url: http or https, without a password.
            headers: of the request, the key included.
            body: what is sent.
            timeouts: how long the server may take.
            allow_plain_keys: a key may go to another machine without TLS.

        Raises:
            ProviderNotReady: the URL or a header cannot be used, or a key would be
                sent in the clear.
            ProviderUnreachable: there was no connection to be had.
            ProviderTimeout: there was no connection, or no head, in time.
            ConnectionLost: the connection broke before the head was here.
            NotAnAnswer: what came is no HTTP, or a compressed body was announced.
        """
        request = _request(
            provider, url, headers=headers, body=body, plain=allow_plain_keys
        )
        return self._exchange(provider, request, timeouts)

    async def aclose(self) -> None:
        """Close all connections, also those in use."""
        await self._direct.aclose()
        if self._outward is not self._direct:
            await self._outward.aclose()

    async def __aenter__(self) -> Self:
        return self  # noqa: ASYNC910  # there is nothing to wait for

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with trio.CancelScope(shield=True):  # Closing waits for nobody.
            await self.aclose()

    @asynccontextmanager
    async def _exchange(
        self, provider: str, request: httpx.Request, timeouts: Timeouts
    ) -> AsyncIterator[HttpAnswer]:
        shards = self._direct if is_loopback(request.url.host) else self._outward
        async with self._places, shards.one() as shard:
            call = _Call(provider, request, timeouts)  # Its time begins here.
            answer = HttpAnswer(call, await call.response(shard, shards.fresh()))
            try:
                if answer.status in _SUCCESS:
                    answer.refuse_encoded()
                yield answer
            finally:
                await answer.aclose()


class _Call:
    """One request on its way: what it waits for, and what goes wrong with it."""

    def __init__(
        self, provider: str, request: httpx.Request, timeouts: Timeouts
    ) -> None:
        self.provider = provider
        self._url = request.url
        self._request = request
        self._phases = Phases(provider, timeouts)
        self._idle = timeouts.idle
        # The client reads this anew when it begins to wait for the body.
        self._client_timeouts: dict[str, float | None] = {}
        request.extensions |= {"timeout": self._client_timeouts, "trace": self._trace}
        self._is_kept = True
        self._opening: Closable | None = None
        self._called = ("", 0)
        self._chunks_given = 0

    async def response(
        self, shard: httpx.AsyncHTTPTransport, fresh: httpx.AsyncHTTPTransport
    ) -> httpx.Response:
        """Send the request, wait for the head; ``fresh`` keeps no connections."""
        try:
            try:
                return await self._head(shard)
            except (httpx.ReadError, httpx.RemoteProtocolError) as problem:
                if not self._is_kept or is_garbage(problem):
                    raise
            # A server may close a connection that it keeps while a request is on its
            # way there. It has not taken that one, so it is asked for once more.
            return await self._head(fresh)
        except (httpx.TransportError, UnicodeError) as problem:
            failure = self._head_problem(problem)
            if not is_garbage(problem):
                raise failure from problem
        # Out here, what repeats the server's words is no context of it either.
        raise failure

    async def in_time(self, chunks: AsyncIterator[bytes]) -> bytes:
        """The next chunk, within the time that is left for all of it."""
        left = self._phases.seconds_left()
        if left <= 0:
            raise self._phases.timeout("total")
        self._chunks_given += 1
        if self._chunks_given % _CHUNKS_PER_CHECKPOINT == 0:
            # Of many small ones that came together, none but the first is waited for.
            await trio.lowlevel.checkpoint()
        if left > self._idle:
            return await anext(chunks)  # The client counts the idle time itself.
        with trio.move_on_after(left):
            return await anext(chunks)
        raise self._phases.timeout("total")

    def body_problem(self, problem: httpx.TransportError) -> ProviderError:
        """What broke the body off."""
        if isinstance(problem, httpx.ReadTimeout):
            return self._phases.timeout("idle")
        return ConnectionLost(self.provider, loss_of(problem))

    async def _head(self, transport: httpx.AsyncHTTPTransport) -> httpx.Response:
        self._is_kept = True
        self._client_timeouts["read"] = None
        try:
            with self._phases.begin():
                response = await transport.handle_async_request(self._request)
                self._client_timeouts["read"] = self._idle
                return response
        finally:
            if self._opening is not None:
                # The client forgets a connection that was given up before it was one.
                with trio.CancelScope(shield=True):
                    await self._opening.aclose()
                self._opening = None
        raise self._phases.timeout()

    async def _trace(self, event: str, info: Mapping[str, Any]) -> None:  # noqa: ASYNC910  # the client says what it is about to do
        if event == "connection.connect_tcp.started":
            self._is_kept = False
            self._called = info["host"], info["port"]
        elif event == "connection.connect_tcp.complete":
            self._opening = info["return_value"]
        elif (
            event == "http11.send_request_headers.started"
            # A proxy is asked for a tunnel first; that still is to connect.
            and info["request"].method != b"CONNECT"
        ):
            self._opening = None
            self._phases.enter("first_byte")

    def _head_problem(self, problem: Exception) -> ProviderError:
        match problem:
            case httpx.ProxyError():
                reason = f"the proxy said {cut(str(problem))}"
                return ProviderUnreachable(self.provider, reason)
            case httpx.RemoteProtocolError() if is_garbage(problem):
                return NotAnAnswer(self.provider, f"not HTTP ({what_of(problem)})")
            case httpx.ConnectError() | UnicodeError():
                host, port = refuser_of(problem, self._url.raw_host, self._called)
                reason = reason_of(problem, host, port=port, provider=self.provider)
                return ProviderUnreachable(self.provider, reason)
            case _:
                return ConnectionLost(self.provider, loss_of(problem))


class _Maker:
    """Makes pools of connections, with one reading of the certificates for all."""

    def __init__(self, *, verify: ssl.SSLContext | bool, proxy: str | None) -> None:
        self._proxy = None if proxy is None else _proxy_of(proxy)
        self._verify = verify
        self._tls: ssl.SSLContext | None = None

    def __call__(self, kept: int, /) -> httpx.AsyncHTTPTransport:
        if self._tls is None:
            self._tls = httpx.create_ssl_context(self._verify, trust_env=False)
        return httpx.AsyncHTTPTransport(
            verify=self._tls,
            trust_env=False,
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=kept,
                keepalive_expiry=KEPT_SECONDS,
            ),
            proxy=self._proxy,
        )


def _request(
    provider: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes,
    plain: bool,
) -> httpx.Request:
    fields = checked_headers(provider, headers)
    try:
        place = httpx.URL(checked_text(provider, url))
        host = place.host  # Which is where a name that can be none is found out.
    except (httpx.InvalidURL, UnicodeError) as problem:
        raise ProviderNotReady(provider, f"its URL is none: {problem}") from problem
    check_place(
        provider,
        scheme=place.scheme,
        host=host,
        port=place.port,
        userinfo=place.userinfo,
    )
    if place.scheme == "http" and not plain and not is_loopback(place.host):
        check_secrecy(provider, place.host, fields)
    request = httpx.Request("POST", place, headers=fields, content=body)
    request.stream = _Body(body)
    return request


class _Body(httpx.AsyncByteStream):
    """What is sent. The client's own is a generator, which a cancel leaves open."""

    def __init__(self, body: bytes) -> None:
        self._body = self._left = body

    def __aiter__(self) -> Self:
        self._left = self._body  # It is sent again where a connection was stale.
        return self

    async def __anext__(self) -> bytes:  # noqa: ASYNC910  # nothing is waited for
        if not self._left:
            raise StopAsyncIteration
        piece, self._left = self._left, b""
        return piece  # noqa: ASYNC910


def _proxy_of(url: str) -> httpx.Proxy:
    with suppress(httpx.InvalidURL, ValueError):
        proxy = httpx.Proxy(url)
        if proxy.url.scheme in {"http", "https"} and proxy.url.host:
            return proxy
    # It may have a password in it, so it is not shown.
    raise RequestError("the proxy is no URL of one: http://host:port")
