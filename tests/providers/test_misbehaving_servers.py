"""The whole provider against servers that misbehave, over real sockets."""

import traceback
from collections.abc import Sequence

import pytest
import trio

from gambit_actors.errors import ProviderError, StreamTruncated
from gambit_actors.openresponses import DONE_FRAME, Event
from gambit_actors.openresponses.items import user_message
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.providers.dialects.dialect import Dialect
from gambit_actors.providers.dialects.open_responses import OpenResponsesDialect
from gambit_actors.providers.endpoints import Endpoint, Retries, Secret, Timeouts
from gambit_actors.providers.errors import (
    BadAnswer,
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
from tests.providers.spoken import SPOKEN
from tests.providers.wires import answer as whole_answer
from tests.providers.wires import frames_of

STREAM = {"content-type": "text/event-stream"}
FRAMES = frames_of(whole_answer("Hello."))
WHOLE = b"".join(FRAMES) + DONE_FRAME
KEY = "sk-open-sesame"
REQUEST = CreateResponse(model="m", input=(user_message("Hi."),), store=False)
CONTEXT = ModelContext(run_id="r", deck="d", turn=1, pass_number=1)
TIMEOUTS = Timeouts(connect=2.0, first_byte=0.3, idle=0.3, total=1.0)
OPEN_RESPONSES = OpenResponsesDialect()
NO_RETRIES = Retries(most=0)
TWO_RETRIES = Retries(most=2, base_seconds=0.01, cap_seconds=0.05)


async def _ask(
    transport: HttpTransport,
    url: str,
    events: list[Event],
    retries: Retries,
    timeouts: Timeouts = TIMEOUTS,
    *,
    dialect: Dialect = OPEN_RESPONSES,
) -> Response:
    endpoint = Endpoint(
        name="acme",
        dialect=dialect,
        base_url=url,
        key=Secret(KEY),
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
    await answer.send(b'{"error": "%s' % KEY.encode())
    await answer.hang()


HTML = {"content-type": "text/html"}
JSON = {"content-type": "application/json"}


NO_JSON = f"garbage {KEY} ".encode() * 500
SAYS_IT = b'{"error": {"message": "The key %s is none."}}' % KEY.encode()
UTF_16 = {"content-type": STREAM["content-type"] + "; charset=utf-16"}


def _cases(
    begun: Sequence[bytes], whole: bytes
) -> dict[str, tuple[Handler, type[ProviderError]]]:
    """What a server may do wrong that begins a stream so, or would have it whole."""
    return {
        "html": (_says(200, b"<html>%s</html>" % KEY.encode(), HTML), NotAnAnswer),
        "another document": (_says(200, b'{"%s": 1}' % KEY.encode(), JSON), BadAnswer),
        "half a document": (_says(200, b'{"a": "%s' % KEY.encode(), JSON), BadAnswer),
        "nothing": (_says(200, b"", STREAM), StreamTruncated),
        "no events": (_says(200, NO_JSON, STREAM), StreamTruncated),
        "no json": (_says(200, b"data: %s\n\n" % NO_JSON, STREAM), StreamTruncated),
        "compressed": (
            _says(200, whole, STREAM | {"content-encoding": f"gzip {KEY}"}),
            NotAnAnswer,
        ),
        "utf-16": (_says(200, whole, UTF_16), NotAnAnswer),
        "204": (_says(204, b""), NotAnAnswer),
        "302": (_says(302, b"", {"location": f"/{KEY}"}), ProviderStatusError),
        "400": (_says(400, SAYS_IT, JSON), ProviderStatusError),
        "500": (_says(500, NO_JSON + b"\xff" * 100_000), ProviderStatusError),
        "429": (
            _says(429, SAYS_IT, {"content-encoding": "gzip"}),
            ProviderStatusError,
        ),
        "closed": (_starts(ends="close", frames=begun), ConnectionLost),
        "reset": (_starts(ends="reset", frames=begun), ConnectionLost),
        "ended": (_starts(ends="end", frames=begun), StreamTruncated),
        "silent": (_starts(ends="hang", frames=begun), ProviderTimeout),
        "silent at once": (_starts(ends="hang", frames=()), ProviderTimeout),
    }


# These take as long as servers are waited for, and have nothing of a dialect in them.
PATIENT = {
    "half an error": (_status_then_hang, ProviderStatusError),
    "comments": (_starts(ends="comments"), ProviderTimeout),
    "a flood": (_starts(ends="flood"), ProviderTimeout),
    "a line": (_starts(ends="line"), ProviderError),
}
CASES = {
    (name, case): found
    for name, spoken in SPOKEN.items()
    for begun in [spoken.text(["Hel", "lo."])]
    for case, found in _cases(begun[: -spoken.endings], b"".join(begun)).items()
}
WAITS = Timeouts(connect=2.0, first_byte=2.0, idle=0.05, total=5.0)


async def _failure(
    handler: Handler, dialect: Dialect, timeouts: Timeouts
) -> ProviderError:
    """What a server comes to that does so."""
    with trio.fail_after(10):
        async with serve(handler) as server:
            async with HttpTransport() as transport:
                with pytest.raises(ProviderError) as caught:
                    await _ask(
                        transport,
                        server.base_url,
                        [],
                        NO_RETRIES,
                        timeouts,
                        dialect=dialect,
                    )
            await server.wait_connections(0)
    return caught.value


@pytest.mark.parametrize(("name", "case"), CASES)
@pytest.mark.spec("PA-8", "PA-9")
async def test_whatever_a_server_does_ends_in_a_named_error(
    name: str, case: str
) -> None:
    """Nothing hangs, nothing passes for an answer, and no connection stays."""
    handler, kind = CASES[name, case]

    failure = await _failure(handler, SPOKEN[name].dialect, WAITS)

    assert isinstance(failure, kind)
    assert KEY not in "".join(traceback.format_exception(failure))
    assert len(str(failure)) < 1000


@pytest.mark.parametrize("case", PATIENT)
@pytest.mark.slow
async def test_a_server_that_goes_on_for_ever_ends_in_a_named_error(case: str) -> None:
    """Whether it sends nothing of use, or does not end what it began to say."""
    handler, kind = PATIENT[case]

    failure = await _failure(handler, OPEN_RESPONSES, TIMEOUTS)

    assert isinstance(failure, kind)
    assert KEY not in "".join(traceback.format_exception(failure))


@pytest.mark.parametrize("name", SPOKEN)
@pytest.mark.parametrize("status", [400, 500])
async def test_what_a_server_says_of_an_error_is_shown_without_the_key(
    name: str, status: int
) -> None:
    """In the words of all dialects there is a message, and the key was in it."""
    handler = _says(status, SAYS_IT, JSON)

    failure = await _failure(handler, SPOKEN[name].dialect, WAITS)

    assert isinstance(failure, ProviderStatusError)
    assert (failure.status, failure.reason) == (status, "The key [key] is none.")


@pytest.mark.parametrize("name", SPOKEN)
async def test_each_dialect_is_read_when_nothing_goes_wrong(name: str) -> None:
    """What the servers above break is an answer as long as they do not."""
    frames = b"".join(SPOKEN[name].text(["Hel", "lo."]))
    with trio.fail_after(10):
        async with (
            serve(_says(200, frames, STREAM)) as server,
            HttpTransport() as transport,
        ):
            response = await _ask(
                transport,
                server.base_url,
                [],
                NO_RETRIES,
                dialect=SPOKEN[name].dialect,
            )
    assert (response.status, response.output_text) == ("completed", "Hello.")


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
