"""Servers that do not stop sending: they are stopped, and memory stays flat."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio

from gambit_actors.errors import EventTooLarge
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.providers import answering
from gambit_actors.providers.answering import AnswerReading
from gambit_actors.providers.concealing import Concealer
from gambit_actors.providers.dialects.open_responses import OpenResponsesDialect
from gambit_actors.providers.endpoints import Endpoint, Retries, Timeouts
from gambit_actors.providers.errors import AnswerTooLarge, NotAnAnswer, ProviderTimeout
from gambit_actors.providers.gate import Gate
from gambit_actors.providers.http import HttpTransport
from gambit_actors.providers.http_provider import HttpProvider
from gambit_actors.run.ports import ModelContext
from gambit_actors.testing.fake_server import Answer, Asked, serve
from tests.providers.wires import EVENT_STREAM, Exchange, WrittenTransport

CONTEXT = ModelContext(run_id="run-1", deck="PROMPT.md", turn=1, pass_number=1)
ASKED = CreateResponse(model="m", input="Hi.", store=False)
MEGABYTE = 1024 * 1024

COMMENTS = b": still here\n\n" * 4000
STRANGE = b'data: {"type":"acme:strange","a":"' + b"x" * 200 + b'"}\n\n'
NO_LINE = b"x" * 65_536


@contextmanager
def at_most(megabytes: float) -> Iterator[None]:
    """What is allocated at once, in this block, stays below a limit."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < megabytes * MEGABYTE


def provider_at(base_url: str, transport: HttpTransport) -> HttpProvider:
    """The provider that asks a server here, and waits for a second in all."""
    endpoint = Endpoint(
        name="acme",
        dialect=OpenResponsesDialect(),
        base_url=base_url,
        timeouts=Timeouts(total=1.0),
        retries=Retries(most=0),
    )
    return HttpProvider(endpoint, transport, Gate(endpoint.pace))


@pytest.mark.slow
@pytest.mark.spec("PA-8")
@pytest.mark.parametrize("piece", [COMMENTS, STRANGE * 300], ids=["comments", "events"])
async def test_who_never_finishes_is_cut_at_the_total_time(piece: bytes) -> None:
    """A flood of bytes that mean nothing ends at the deadline, with memory flat."""

    async def flood(_asked: Asked, answer: Answer) -> None:
        await answer.head(200, EVENT_STREAM)
        while True:
            await answer.send(piece)

    async with serve(flood) as server, HttpTransport() as transport:
        provider = provider_at(server.base_url, transport)
        with at_most(16), pytest.raises(ProviderTimeout) as caught:
            await provider.responses(ASKED, CONTEXT, lambda _: None)
        await server.wait_connections(0)

    assert caught.value.phase == "total"


@pytest.mark.slow
async def test_a_line_without_an_end_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One line that does not end is read up to the limit of an event, no further."""
    monkeypatch.setattr(answering, "MOST_EVENT_BYTES", 4 * MEGABYTE)

    async def endless(_asked: Asked, answer: Answer) -> None:
        await answer.head(200, EVENT_STREAM)
        while True:
            await answer.send(NO_LINE)

    async with serve(endless) as server, HttpTransport() as transport:
        provider = provider_at(server.base_url, transport)
        with at_most(32), pytest.raises(EventTooLarge):
            await provider.responses(ASKED, CONTEXT, lambda _: None)
        await server.wait_connections(0)


async def test_a_stream_without_an_end_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More bytes than any answer has are an error, however well formed they are."""
    monkeypatch.setattr(answering, "MOST_ANSWER_BYTES", MEGABYTE)

    class Endless:
        status = 200
        headers = EVENT_STREAM

        async def next_chunk(self) -> bytes:
            await trio.lowlevel.checkpoint()
            return STRANGE * 100

    reading = AnswerReading(
        "acme",
        OpenResponsesDialect(),
        Response(id="resp_1", status="in_progress"),
        CONTEXT,
        on_event=lambda _: None,
        concealer=Concealer(),
    )
    with pytest.raises(AnswerTooLarge, match="1048576 bytes"):
        await reading.read(Endless())


async def test_a_body_in_one_piece_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON that does not end is not gathered for ever."""
    monkeypatch.setattr("gambit_actors.providers.http_provider.MOST_BODY_BYTES", 1000)
    exchange = Exchange(
        headers={"content-type": "application/json"}, pieces=(b"[1," * 200,) * 9
    )
    endpoint = Endpoint(
        name="acme", dialect=OpenResponsesDialect(), base_url="https://acme.example"
    )
    provider = HttpProvider(endpoint, WrittenTransport([exchange]), Gate(endpoint.pace))
    with pytest.raises(NotAnAnswer, match="more than 1000 bytes"):
        await provider.responses(ASKED, CONTEXT, lambda _: None)
