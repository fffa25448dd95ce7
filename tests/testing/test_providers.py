"""The suites themselves: our own providers pass, and what is broken is found out."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
import trio
from trio.testing import MockClock

from gambit_actors.errors import RequestError
from gambit_actors.openresponses import CreateResponse, Event, Response
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.dialects.gemini import GeminiDialect
from gambit_actors.providers.endpoints import Endpoint, Pace, Retries, Secret
from gambit_actors.providers.gate import Gate
from gambit_actors.providers.http import HttpTransport
from gambit_actors.providers.http_provider import HttpProvider
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Call, Reply
from gambit_actors.run.ports import ModelContext, ModelProvider
from gambit_actors.testing.checks import LeftOut, table
from gambit_actors.testing.fake_server import Answer, Asked, serve
from gambit_actors.testing.providers import (
    CALLS,
    TEXT,
    THOUGHT,
    Exchange,
    Kind,
    ProviderCheck,
    checks,
    run_all,
)

REPLIES: dict[Kind, Reply] = {
    "text": Reply(text=TEXT, times=0),
    "two_calls": Reply(
        calls=tuple(Call(name=name, arguments=given) for name, given in CALLS), times=0
    ),
    "reasoning": Reply(text=TEXT, reasoning=THOUGHT, times=0),
    "refusal": Reply(refusal=TEXT, times=0),
    "length": Reply(text=TEXT, stop_reason="max_tokens", times=0),
    "failure": Reply(fault="error", message="no", times=0),
    "cut": Reply(text=TEXT, fault="cut", times=0),
    "hang": Reply(text=TEXT, fault="hang", times=0),
}


@asynccontextmanager
async def scripted(exchange: Exchange) -> AsyncIterator[ModelProvider]:
    """A provider that answers from a script."""
    await trio.lowlevel.checkpoint()
    yield ScriptedProvider([REPLIES[exchange.kind]])


@pytest.mark.spec("OR-4", "OR-7")
@pytest.mark.parametrize("check", checks(), ids=lambda check: check.__name__)
async def test_a_script_does_what_any_provider_has_to(
    check: ProviderCheck, autojump_clock: MockClock
) -> None:
    """The provider without a network passes each check."""
    await check(scripted)


def piece(*parts: JSONValue, reason: str | None = None) -> bytes:
    """A frame of Gemini's."""
    candidate: dict[str, JSONValue] = {"content": {"role": "model", "parts": parts}}
    if reason is not None:
        candidate["finishReason"] = reason
    document = msgspec.json.encode({"candidates": [candidate]})
    return b"data: " + document + b"\r\n\r\n"


HALF = piece({"text": TEXT[:8]})
REST = {"text": TEXT[8:]}
GEMINI: dict[Kind, bytes] = {
    "text": HALF + piece(REST, reason="STOP"),
    "two_calls": piece(
        *({"functionCall": {"name": name, "args": given}} for name, given in CALLS),
        reason="STOP",
    ),
    "reasoning": piece({"text": THOUGHT, "thought": True})
    + HALF
    + piece(REST, reason="STOP"),
    "refusal": HALF + piece(reason="SAFETY"),
    "length": HALF + piece(REST, reason="MAX_TOKENS"),
    "cut": HALF,
    "hang": HALF,
}


@asynccontextmanager
async def gemini(exchange: Exchange) -> AsyncIterator[ModelProvider]:
    """The provider for model servers, with one that speaks Gemini."""

    async def handler(request: Asked, answer: Answer) -> None:
        assert request.headers["x-goog-api-key"] == "k-1"
        if exchange.kind == "failure":
            await answer.json(400, {"error": {"status": "BAD", "message": "no"}})
            return
        await answer.head(200, {"content-type": "text/event-stream"})
        await answer.send(GEMINI[exchange.kind])
        if exchange.kind == "hang":
            await answer.hang()

    async with serve(handler) as server, HttpTransport() as transport:
        endpoint = Endpoint(
            name="google",
            dialect=GeminiDialect(),
            base_url=server.base_url,
            key=Secret("k-1"),
            retries=Retries(most=0),
        )
        yield HttpProvider(endpoint, transport, Gate(Pace()))


@pytest.mark.spec("OR-4", "OR-7")
@pytest.mark.parametrize("check", checks(), ids=lambda check: check.__name__)
async def test_gemini_over_http_does_what_any_provider_has_to(
    check: ProviderCheck,
) -> None:
    """Dialect, provider, transport and a real socket pass each check together."""
    await check(gemini)


class Bent:
    """A provider that passes on what another says, bent in one way."""

    def __init__(
        self,
        inner: ModelProvider,
        *,
        event: Callable[[Event], list[Event]] = lambda event: [event],
        response: Callable[[Response], Response] = lambda response: response,
    ) -> None:
        self._inner = inner
        self._event = event
        self._response = response

    async def responses(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
        /,
    ) -> Response:
        """Answer as the other one does, bent."""

        def pass_on(event: Event) -> None:
            for bent in self._event(event):
                on_event(bent)

        return self._response(await self._inner.responses(request, context, pass_on))


def is_created(event: Event) -> bool:
    """Whether an event is the first one."""
    return event.type == "response.created"


@pytest.mark.parametrize(
    ("event", "response", "failed"),
    [
        (
            lambda event: [event, event],
            lambda response: response,
            {"events_come_in_legal_order"},
        ),
        (
            lambda event: [] if is_created(event) else [event],
            lambda response: response,
            {"events_come_in_legal_order"},
        ),
        (
            lambda event: [event],
            lambda response: msgspec.structs.replace(
                response, status="completed", output=response.output[:1]
            ),
            {
                "a_cut_by_length_is_incomplete",
                "calls_of_one_turn_stay_apart",
                "reasoning_is_an_item",
                "the_response_is_what_the_events_come_to",
            },
        ),
        (
            lambda event: [event],
            lambda response: msgspec.structs.replace(response, id="same"),
            {"calls_at_once_do_not_mix", "the_response_is_what_the_events_come_to"},
        ),
    ],
    ids=["doubled", "no-beginning", "half", "one-id"],
)
async def test_a_bent_provider_is_found_out(
    event: Callable[[Event], list[Event]],
    response: Callable[[Response], Response],
    failed: set[str],
    autojump_clock: MockClock,
) -> None:
    """Each way to be wrong fails the checks that are about it, and says so."""

    @asynccontextmanager
    async def adapter(exchange: Exchange) -> AsyncIterator[ModelProvider]:
        async with scripted(exchange) as inner:
            yield Bent(inner, event=event, response=response)

    found = await run_all(adapter)

    assert failed <= {line.check for line in found if line.verdict == "failed"}
    assert all(line.problem for line in found if line.verdict == "failed")


async def test_what_a_provider_does_not_have_is_left_out(
    autojump_clock: MockClock,
) -> None:
    """An adapter may leave an exchange out; the table says that and why."""

    @asynccontextmanager
    async def adapter(exchange: Exchange) -> AsyncIterator[ModelProvider]:
        if exchange.kind == "refusal":
            raise LeftOut("it refuses nothing")
        async with scripted(exchange) as inner:
            yield inner

    found = await run_all(adapter)

    assert {line.verdict for line in found} == {"passed", "left out"}
    assert "left out  it refuses nothing" in table(found)


async def test_an_error_that_is_no_providers_is_found_out(
    autojump_clock: MockClock,
) -> None:
    """A provider that raises something else than it may fails."""

    class Raising:
        async def responses(
            self,
            _request: CreateResponse,
            _context: ModelContext,
            _on_event: Callable[[Event], None],
            /,
        ) -> Response:
            await trio.lowlevel.checkpoint()
            raise RequestError("not mine")

    @asynccontextmanager
    async def adapter(exchange: Exchange) -> AsyncIterator[ModelProvider]:
        await trio.lowlevel.checkpoint()
        yield Raising()

    found = await run_all(adapter)

    assert {line.verdict for line in found} == {"failed"}
