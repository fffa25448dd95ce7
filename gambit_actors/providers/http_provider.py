"""A model server as a `ModelProvider`: asked in its dialect, again if that may help.

::

    request ─▶ Cursors ─▶ Dialect.render ─▶ Gate ─▶ Transport ─▶ AnswerReading
                 │                            │          │
                 └ whole_history              └ waited   └ retry, before the first event

Everything that a server can do wrong ends in a `ProviderError` that says who did what.
A request is sent again only as long as nothing of an answer was passed on.
"""

import os
import random
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec
import trio

from gambit_actors.errors import ProviderError, RequestError
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response, response_for
from gambit_actors.providers.answering import AnswerReading, HttpAnswer
from gambit_actors.providers.concealing import Concealer
from gambit_actors.providers.cursors import Beginning, Cursors
from gambit_actors.providers.dialects.dialect import Rendered
from gambit_actors.providers.endpoints import Endpoint, Timeouts
from gambit_actors.providers.errors import (
    NotAnAnswer,
    ProviderNotReady,
    ProviderStatusError,
    RequestNotSent,
)
from gambit_actors.providers.gate import Admission, Gate
from gambit_actors.providers.http_rules import media_type_of
from gambit_actors.providers.limited import read_limited
from gambit_actors.providers.retrying import (
    delay_before,
    is_worth_retrying,
    retry_after_seconds,
)
from gambit_actors.run.ports import ModelContext, Notice, ServerPace
from gambit_actors.version import VERSION

MOST_BODY_BYTES = 64 * 1024 * 1024
MOST_ERROR_BYTES = 64 * 1024

_OK = 200
_SUCCESS = range(200, 300)
# The statuses by which a server says that it is asked too much.
_TOO_MUCH = (429, 529)
# How they say it when they have begun to answer.
_TOO_MUCH_CODES = frozenset(
    {
        "429",
        "529",
        "RESOURCE_EXHAUSTED",
        "overloaded_error",
        "rate_limit_error",
        "rate_limit_exceeded",
        "too_many_requests",
    }
)
# The statuses by which a server may say that it has forgotten a response.
_FORGOTTEN = (400, 404)
_FORGOTTEN_CODE = "previous_response_not_found"

_NOTICEABLE_SECONDS = 0.1
_MOST_ODDITIES = 5
_BYTES_PER_TOKEN = 4
_SAMPLE_BYTES = 200


class Transport(Protocol):
    """The way out to the network."""

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
        """Send a request; leaving the block hangs up if there is more to come.

        Raises:
            ProviderError: there is no answer.
        """


class HttpProvider:
    """Asks one model server.

    Args:
        endpoint: where it is, and how it is to be treated.
        transport: the way there.
        gate: holds requests back, of all actors together.
        now: the time of day, for ids and for what servers say of it.
        jitter: a number from 0 to 1, so that not all retry at once.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        transport: Transport,
        gate: Gate,
        *,
        now: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.endpoint = endpoint
        self.gate = gate
        self._transport = transport
        self._now = now
        self._jitter = jitter
        self._cursors = Cursors()
        self._concealer = Concealer(endpoint.key)
        is_kept = endpoint.history == "kept" and endpoint.dialect.keeps_responses
        self._keeps_history = is_kept

    async def responses(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
    ) -> Response:
        """Answer a request.

        Raises:
            ProviderError: there is no answer that could be told from a failure.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        endpoint = self.endpoint
        if endpoint.key is None and endpoint.key_hint is not None:
            model = f"{endpoint.name}/{request.model}"
            raise ProviderNotReady(model, endpoint.key_hint)
        if self._keeps_history:
            return await self._go_on(request, context, on_event)
        return await self._ask(request, context, on_event)

    def paces(self) -> Mapping[str, ServerPace]:
        """How fast the server is being asked."""
        return {self.endpoint.name: self.gate.snapshot()}

    async def _go_on(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
    ) -> Response:
        """Ask a server that keeps the conversation; tell it all if it does not."""
        request = msgspec.structs.replace(request, store=True)
        shorter = self._cursors.shortened(request, context)
        response = None
        if shorter is not None:
            response = await self._ask_from_cursor(shorter, context, on_event)
        if response is None:
            self._cursors.forget(request, context)
            response = await self._ask(request, context, on_event)
        self._cursors.remember(request, context, response)
        return response  # noqa: ASYNC910  # somebody was asked

    async def _ask_from_cursor(
        self,
        shorter: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
    ) -> Response | None:
        """Send only what is new; None if the server cannot make anything of it."""
        beginning = Beginning(on_event)
        try:
            response = await self._ask(shorter, context, beginning.take)
        except ProviderStatusError as problem:
            if problem.status not in _FORGOTTEN:
                raise
            reason = problem.code or f"HTTP {problem.status}"
        except ProviderError:
            beginning.show()
            raise
        else:
            error = response.error
            is_lost = error is not None and error.code == _FORGOTTEN_CODE
            if not is_lost or beginning.is_shown:
                beginning.show()
                return response
            reason = _FORGOTTEN_CODE
        message = f"the server does not know the last response any more ({reason})"
        context.note(Notice(kind="whole_history", message=message))
        return None  # noqa: ASYNC910  # as above

    async def _ask(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
    ) -> Response:
        """Ask until there is an answer, or no use in asking again."""
        rendered, body = self._said(request)
        for unsent in rendered.unsent:
            message = f"{unsent.path} was left out: {unsent.reason}"
            context.note(Notice(kind="left_out", message=message))
        tokens = self._estimate(request, body)
        retries, attempt = self.endpoint.retries, 0
        # Each round waits for the gate, the server or the delay.
        while True:  # noqa: ASYNC913
            answer = self._reading(request, context, on_event)
            try:
                async with self.gate.admitted(tokens=tokens) as admission:
                    _note_waiting(context, admission.waited_seconds)
                    response = await self._attempt(
                        rendered, body, answer, admission, context
                    )
            except ProviderError as problem:
                _note_oddities(context, answer)
                attempt += 1
                is_over = attempt > retries.most or answer.has_begun
                if is_over or not is_worth_retrying(problem):
                    raise
                asked = getattr(problem, "retry_after_seconds", None)
                delay = delay_before(attempt, retries, asked, self._jitter())
                message = f"{problem}; asking again in {delay:.1f} seconds"
                context.note(Notice(kind="retry", message=message, seconds=delay))
                await trio.sleep(delay)
                continue
            _note_oddities(context, answer)
            return response

    def _said(self, request: CreateResponse) -> tuple[Rendered, bytes]:
        endpoint = self.endpoint
        try:
            rendered = endpoint.dialect.render(request, stream=endpoint.streams)
            return rendered, msgspec.json.encode(rendered.body)
        except RequestError as problem:
            raise RequestNotSent(endpoint.name, str(problem)) from problem
        except (TypeError, ValueError, RecursionError) as problem:
            reason = f"it cannot be written as JSON: {problem}"
            raise RequestNotSent(endpoint.name, reason) from problem

    def _estimate(self, request: CreateResponse, body: bytes) -> int:
        """What a request will roughly cost, for a limit on tokens per minute."""
        if self.endpoint.pace.tokens_per_minute is None:
            return 0
        return len(body) // _BYTES_PER_TOKEN + (request.max_output_tokens or 0)

    def _reading(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
    ) -> AnswerReading:
        started = response_for(
            request, id=f"resp_{os.urandom(12).hex()}", created_at=int(self._now())
        )
        return AnswerReading(
            self.endpoint.name,
            self.endpoint.dialect,
            started,
            context,
            on_event=on_event,
            concealer=self._concealer,
        )

    async def _attempt(
        self,
        rendered: Rendered,
        body: bytes,
        reading: AnswerReading,
        admission: Admission,
        context: ModelContext,
    ) -> Response:
        endpoint = self.endpoint
        async with self._transport.post(
            endpoint.name,
            endpoint.base_url.rstrip("/") + rendered.path,
            headers=self._headers(rendered),
            body=body,
            timeouts=endpoint.timeouts,
            allow_plain_keys=endpoint.sends_plain_key,
        ) as answer:
            if answer.status != _OK:
                problem = await self._refusal(answer)
                if _is_too_much(problem):
                    pause = problem.retry_after_seconds
                    if pause is not None:
                        pause = min(pause, endpoint.retries.cap_seconds)
                    _slow_down(context, admission, pause)
                raise problem
            response = await self._read(answer, reading)
        if response.status != "failed":
            admission.succeeded()
        elif response.error is not None and response.error.code in _TOO_MUCH_CODES:
            _slow_down(context, admission)
        if response.usage is not None:
            admission.used(response.usage.total_tokens)
        return response

    def _headers(self, rendered: Rendered) -> dict[str, str]:
        endpoint = self.endpoint
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream" if endpoint.streams else "application/json",
            "user-agent": f"gambit_actors/{VERSION}",
        }
        headers |= {name.lower(): value for name, value in endpoint.headers.items()}
        headers |= rendered.headers
        if endpoint.key is not None:
            headers |= endpoint.dialect.auth_headers(endpoint.key.reveal())
        return headers

    async def _read(self, answer: HttpAnswer, reading: AnswerReading) -> Response:
        name, words = self.endpoint.name, self._concealer.words
        stated = answer.headers.get("content-type", "")
        kind = media_type_of(stated)
        if kind == "application/json":
            return reading.whole(await self._body(answer))
        if stated.strip() and kind != "text/event-stream":
            body = self._concealer.bytes(await read_limited(answer, MOST_ERROR_BYTES))
            sample = words(body[:_SAMPLE_BYTES].decode("utf-8", "replace"))
            raise NotAnAnswer(name, f"{words(stated)}, which begins {sample!r}")
        return await reading.read(answer)

    async def _refusal(self, answer: HttpAnswer) -> ProviderStatusError:
        status, words = answer.status, self._concealer.words
        if status in _SUCCESS:
            raise NotAnAnswer(self.endpoint.name, f"HTTP {status}, which has no answer")
        body = self._concealer.bytes(await read_limited(answer, MOST_ERROR_BYTES))
        complaint = self.endpoint.dialect.read_error(body)
        return ProviderStatusError(
            self.endpoint.name,
            status,
            code=words(complaint.code),
            reason=words(complaint.message),
            retry_after_seconds=retry_after_seconds(answer.headers, self._now()),
        )

    async def _body(self, answer: HttpAnswer) -> bytes:
        """Read an answer in one piece to its end."""
        body = bytearray()
        while chunk := await answer.next_chunk():
            body += chunk
            if len(body) > MOST_BODY_BYTES:
                reason = f"more than {MOST_BODY_BYTES} bytes in one piece"
                raise NotAnAnswer(self.endpoint.name, reason)
        return self._concealer.bytes(bytes(body))


def _is_too_much(problem: ProviderStatusError) -> bool:
    """Whether the server says that it is asked too much, or wants to be left alone."""
    return problem.status in _TOO_MUCH or problem.retry_after_seconds is not None


def _slow_down(
    context: ModelContext, admission: Admission, asked_seconds: float | None = None
) -> None:
    limit = admission.refused(asked_seconds)
    if limit is not None:
        message = f"the server has too much to do; asked {limit} at once from now on"
        context.note(Notice(kind="slowed", message=message))


def _note_waiting(context: ModelContext, seconds: float) -> None:
    if seconds >= _NOTICEABLE_SECONDS:
        message = f"held back for {seconds:.1f} seconds, so as not to ask too much"
        context.note(Notice(kind="waited", message=message, seconds=seconds))


def _note_oddities(context: ModelContext, answer: AnswerReading) -> None:
    for message in answer.problems()[:_MOST_ODDITIES]:
        context.note(Notice(kind="odd", message=message))
