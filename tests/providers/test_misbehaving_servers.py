"""The whole provider against servers that misbehave, over real sockets."""

from collections.abc import Sequence

import pytest
import trio

from gambit_actors.errors import ProviderError, StreamTruncated
from gambit_actors.openresponses import DONE_FRAME, Event
from gambit_actors.openresponses.items import user_message
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.providers.dialects.open_responses import OpenResponsesDialect
from gambit_actors.providers.endpoints import Endpoint, Retries, Secret, Timeouts
from gambit_actors.providers.errors import (
    ConnectionLost,
    NotAnAnswer,
    ProviderStatusError,
    ProviderTimeout,
)
from gambit_actors.providers.gate import Gate
from gambit_actors.providers.http import HttpTransport
from gambit_actors.providers.http_provider import HttpProvider
from gambit_actors.run.ports import ModelContext
from gambit_actors.testing.fake_server import Answer, Asked, Handler, serve
from tests.providers.wires import answer as whole_answer
from tests.providers.wires import frames_of

STREAM = {"content-type": "text/event-stream"}
FRAMES = frames_of(whole_answer("Hello."))
WHOLE = b"".join(FRAMES) + DONE_FRAME
REQUEST = CreateResponse(model="m", input=(user_message("Hi."),), store=False)
CONTEXT = ModelContext(run_id="r", deck="d", turn=1, pass_number=1)
TIMEOUTS = Timeouts(connect=2.0, first_byte=0.3, idle=0.3, total=1.0)
NO_RETRIES = Retries(most=0)
TWO_RETRIES = Retries(most=2, base_seconds=0.01, cap_seconds=0.05)


async def _ask(
    transport: HttpTransport,
    url: str,
    events: list[Event],
    retries: Retries,
    timeouts: Timeouts = TIMEOUTS,
) -> Response:
    endpoint = Endpoint(
        name="acme",
        dialect=OpenResponsesDialect(),
        base_url=url,
        key=Secret("sesame"),
        timeouts=timeouts,
        retries=retries,
    )
    provider = HttpProvider(endpoint, transport, Gate(endpoint.pace))
    return await provider.responses(REQUEST, CONTEXT, events.append)


def _says(status: int, body: bytes, headers: dict[str, str] | None = None) -> Handler:
    async def handler(_asked: Asked, answer: Answer) -> None:
        await answer.whole(status, body, headers or STREAM)

    return handler


def _starts(*, ends: str, frames: Sequence[bytes] = FRAMES[:3]) -> Handler:
    async def handler(_asked: Asked, answer: Answer) -> None:
        await answer.head(200, STREAM)
        await answer.send(b"".join(frames))
        if ends in SENT_ON:
            await _send_on(answer, SENT_ON[ends])
        elif ends != "end":
            await getattr(answer, ends)()

    return handler


SENT_ON = {
    "comments": b": still here\n\n",
    "flood": b"data: {}\n\n" * 5000,
    "line": b"x" * 100_000,
}


async def _send_on(answer: Answer, data: bytes) -> None:
    while True:
        await answer.send(data)
        await trio.sleep(0.0 if len(data) > 1000 else 0.05)


async def _status_then_hang(_asked: Asked, answer: Answer) -> None:
    await answer.head(503, {"content-length": "1000"})
    await answer.send(b'{"error":')
    await answer.hang()


HTML = {"content-type": "text/html"}
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("handler", "kind"),
    [
        (_says(200, b"<html>Sign in</html>", HTML), NotAnAnswer),
        (_says(200, b'{"hello": 1}', JSON), ProviderError),
        (_says(200, b"{", JSON), ProviderError),
        (_says(200, b"", STREAM), StreamTruncated),
        (_says(200, b"garbage " * 1000, STREAM), StreamTruncated),
        (_says(200, WHOLE, STREAM | {"content-encoding": "gzip"}), NotAnAnswer),
        (
            _says(
                200,
                WHOLE,
                {"content-type": STREAM["content-type"] + "; charset=utf-16"},
            ),
            NotAnAnswer,
        ),
        (_says(204, b""), NotAnAnswer),
        (_says(302, b"", {"location": "/elsewhere"}), ProviderStatusError),
        (_says(400, b"{}", JSON), ProviderStatusError),
        (_says(500, b"\xff" * 100_000), ProviderStatusError),
        (_says(429, b"", {"content-encoding": "gzip"}), ProviderStatusError),
        (_status_then_hang, ProviderStatusError),
        (_starts(ends="hang"), ProviderTimeout),
        (_starts(ends="hang", frames=()), ProviderTimeout),
        (_starts(ends="comments"), ProviderTimeout),
        (_starts(ends="flood"), ProviderTimeout),
        (_starts(ends="line"), ProviderError),
        (_starts(ends="close"), ConnectionLost),
        (_starts(ends="reset"), ConnectionLost),
        (_starts(ends="end"), StreamTruncated),
    ],
)
@pytest.mark.slow
@pytest.mark.spec("PA-8", "PA-9")
async def test_whatever_a_server_does_ends_in_a_named_error(
    handler: Handler, kind: type[ProviderError]
) -> None:
    """Nothing hangs, nothing passes for an answer, and no connection stays."""
    with trio.fail_after(10):
        async with serve(handler) as server:
            async with HttpTransport() as transport:
                with pytest.raises(kind) as caught:
                    await _ask(transport, server.base_url, [], NO_RETRIES)
                assert "sesame" not in str(caught.value)
                assert len(str(caught.value)) < 1000
            await server.wait_connections(0)


@pytest.mark.parametrize("ends", ["hang", "close", "reset", "end"])
@pytest.mark.slow
@pytest.mark.spec("PA-8")
async def test_nothing_is_asked_again_once_an_event_was_passed_on(ends: str) -> None:
    """A second answer would be mixed with the first."""
    events: list[Event] = []
    with trio.fail_after(10):
        async with serve(_starts(ends=ends)) as server, HttpTransport() as transport:
            with pytest.raises(ProviderError):
                await _ask(transport, server.base_url, events, TWO_RETRIES)
            assert events
            assert len(server.requests) == 1


@pytest.mark.parametrize(
    "asked", ["1e9", "-5", "Wed, 21 Oct 2015 07:28:00 GMT", "soon", "0.02"]
)
@pytest.mark.spec("PA-8")
async def test_no_wait_that_a_server_asks_for_goes_beyond_the_cap(asked: str) -> None:
    """Whatever Retry-After says, requests come again within the longest wait."""
    count = 0

    async def handler(_asked: Asked, answer: Answer) -> None:
        nonlocal count
        count += 1
        if count < 3:
            await answer.whole(503, b"", {"retry-after": asked})
        else:
            await answer.whole(200, WHOLE, STREAM)

    async def pause(seconds: float) -> Response:
        with trio.fail_after(seconds):
            return await _ask(transport, server.base_url, [], TWO_RETRIES)

    async with serve(handler) as server, HttpTransport() as transport:
        assert (await pause(10)).status == "completed"


async def test_an_answer_in_single_bytes_is_the_same_answer() -> None:
    """However the network cuts it up, the answer is the same."""

    async def handler(_asked: Asked, answer: Answer) -> None:
        await answer.head(200, STREAM)
        for at in range(len(WHOLE)):
            await answer.send(WHOLE[at : at + 1])

    with trio.fail_after(20):
        async with serve(handler) as server, HttpTransport() as transport:
            patient = Timeouts(total=20)
            response = await _ask(transport, server.base_url, [], NO_RETRIES, patient)
    assert response.output == whole_answer("Hello.").output


@pytest.mark.slow
async def test_hundreds_of_streams_at_once_all_get_their_turn() -> None:
    """300 streams through one transport: all whole, their connections used again."""

    async def handler(_asked: Asked, answer: Answer) -> None:
        await answer.head(200, STREAM)
        for frame in FRAMES:
            await answer.send(frame)
            await trio.sleep(0.001)

    async def one() -> None:
        async with limit:
            response = await _ask(transport, server.base_url, [], NO_RETRIES, patient)
            assert response.status == "completed"

    patient = Timeouts(connect=60, first_byte=60, idle=60, total=60)
    limit = trio.Semaphore(150)
    with trio.fail_after(60):
        async with serve(handler) as server:
            async with HttpTransport() as transport, trio.open_nursery() as nursery:
                for _ in range(300):
                    nursery.start_soon(one)
            assert server.most_open <= 150
            await server.wait_connections(0)
