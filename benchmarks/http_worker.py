"""One contender reads streams, in a process of its own, and says what it took."""

import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import httpx  # noqa: ASYNC127  # what is compared with is what is used
import msgspec
import trio

from benchmarks.streams import all_streams
from gambit_actors.openresponses import CreateResponse
from gambit_actors.openresponses.events import Event, StandardEvent
from gambit_actors.openresponses.items import user_message
from gambit_actors.providers.dialects.open_responses import OpenResponsesDialect
from gambit_actors.providers.endpoints import Endpoint, Pace, Timeouts
from gambit_actors.providers.gate import Gate
from gambit_actors.providers.http import HttpAnswer, HttpTransport
from gambit_actors.providers.http_provider import HttpProvider
from gambit_actors.run.ports import ModelContext

BARE, TRANSPORT, PROVIDER, ONE_POOL = (
    "bare httpx",
    "ours, transport",
    "ours, provider",
    "ours, one pool",
)
_MOST = 100_000
_TIMEOUTS = Timeouts(connect=120.0, first_byte=120.0, idle=120.0, total=600.0)
_decoder = msgspec.json.Decoder(StandardEvent)


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What to measure.

    Attributes:
        streams: how many in all.
        at_once: how many of them at a time.
        pause_ms: between two events of a stream.
    """

    title: str
    name: str
    port: int
    streams: int
    at_once: int
    pause_ms: int
    text_deltas: int


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What was found.

    Attributes:
        cpu_us: of this process, for each event.
        first_ms: from asking to the first event, sorted.
        shown_us: from the first bytes to the first event passed on; None if no event
            is passed on.
    """

    title: str
    name: str
    events: int
    cpu_s: float
    cpu_us: float
    wall_s: float
    first_ms: list[float]
    shown_us: float | None


class Reading:
    """The streams that one contender reads, and when the first event of each came."""

    def __init__(self, job: Job) -> None:
        self.url = f"http://127.0.0.1:{job.port}/{job.pause_ms}"
        self.events = 0
        self.firsts: list[float] = []
        self.shown: list[float] = []


async def main(job: Job) -> Found:
    """Read all streams of a job."""
    reading = Reading(job)
    read = {BARE: _bare, TRANSPORT: _transport, ONE_POOL: _one_pool}.get(
        job.name, _provider
    )
    async with read(reading) as ask:
        await ask()  # What is made once is made here.
        reading.events = 0
        reading.firsts.clear()
        reading.shown.clear()
        cpu, wall = time.process_time(), time.perf_counter()
        limit = trio.Semaphore(job.at_once)

        async def one() -> None:
            async with limit:
                await ask()

        async with trio.open_nursery() as nursery:
            for _ in range(job.streams):
                nursery.start_soon(one)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    expected = all_streams(job.text_deltas)[0].events * job.streams
    if reading.events != expected:
        raise RuntimeError(f"{job.name} read {reading.events} events of {expected}")
    return Found(
        title=job.title,
        name=job.name,
        events=reading.events,
        cpu_s=cpu,
        cpu_us=cpu / reading.events * 1e6,
        wall_s=wall,
        first_ms=sorted(seconds * 1e3 for seconds in reading.firsts),
        shown_us=statistics.median(reading.shown) * 1e6 if reading.shown else None,
    )


@asynccontextmanager
async def _bare(
    reading: Reading,
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """The loop that everybody writes: a client, its bytes, a split, a decoder."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=_MOST)

    async def ask() -> None:
        began, buffer, is_first = time.perf_counter(), b"", True
        async with client.stream("POST", reading.url, content=b"{}") as response:
            async for chunk in response.aiter_bytes():
                *frames, buffer = (buffer + chunk).split(b"\n\n")
                for frame in frames:
                    data = frame.partition(b"data: ")[2]
                    if data == b"[DONE]":
                        continue
                    _decoder.decode(data)
                    reading.events += 1
                    if is_first:
                        is_first = False
                        reading.firsts.append(time.perf_counter() - began)

    async with httpx.AsyncClient(
        limits=limits, timeout=120.0, trust_env=False
    ) as client:
        yield ask


@asynccontextmanager
async def _transport(
    reading: Reading,
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Our transport under the same loop."""

    async def ask() -> None:
        began, buffer, is_first = time.perf_counter(), b"", True
        async with transport.post(
            "p", reading.url, headers={}, body=b"{}", timeouts=_TIMEOUTS
        ) as answer:
            while chunk := await answer.next_chunk():
                *frames, buffer = (buffer + chunk).split(b"\n\n")
                for frame in frames:
                    data = frame.partition(b"data: ")[2]
                    if data == b"[DONE]":
                        continue
                    _decoder.decode(data)
                    reading.events += 1
                    if is_first:
                        is_first = False
                        reading.firsts.append(time.perf_counter() - began)

    async with HttpTransport() as transport:
        yield ask


class _Watched:
    """An answer that says when its first bytes came."""

    def __init__(self, answer: HttpAnswer) -> None:
        self.status = answer.status
        self.headers = answer.headers
        self.began = 0.0
        self._answer = answer

    async def next_chunk(self) -> bytes:
        chunk = await self._answer.next_chunk()
        if not self.began:
            self.began = time.perf_counter()
        return chunk


class _WatchedTransport:
    """Our transport, with a clock beside its first bytes."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport
        self.last: _Watched | None = None

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
    ) -> AsyncIterator[_Watched]:
        async with self._transport.post(
            provider,
            url,
            headers=headers,
            body=body,
            timeouts=timeouts,
            allow_plain_keys=allow_plain_keys,
        ) as answer:
            self.last = _Watched(answer)
            yield self.last


@asynccontextmanager
async def _provider(
    reading: Reading, *, each: int = 32
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """All of it: gate, transport, decoder, dialect, builder."""
    request = CreateResponse(model="m", input=(user_message("Hi."),), store=False)
    context = ModelContext(run_id="r", deck="d", turn=1, pass_number=1)
    pace = Pace(most_at_once=_MOST, is_adaptive=False)

    async def ask() -> None:
        began, is_first = time.perf_counter(), True
        watched = _WatchedTransport(transport)

        def on_event(_event: Event) -> None:
            nonlocal is_first
            reading.events += 1
            if is_first:
                is_first = False
                now = time.perf_counter()
                reading.firsts.append(now - began)
                if watched.last is not None:
                    reading.shown.append(now - watched.last.began)

        provider = HttpProvider(endpoint, watched, gate)
        await provider.responses(request, context, on_event)

    endpoint = Endpoint(
        name="p",
        dialect=OpenResponsesDialect(),
        base_url=reading.url,
        timeouts=_TIMEOUTS,
        pace=pace,
    )
    gate = Gate(pace)
    async with HttpTransport(connections_per_pool=each) as transport:
        yield ask


def _one_pool(
    reading: Reading,
) -> AbstractAsyncContextManager[Callable[[], Awaitable[None]]]:
    """The same with all connections in one pool of the client."""
    return _provider(reading, each=_MOST)


if __name__ == "__main__":
    found = trio.run(main, msgspec.json.decode(sys.argv[1], type=Job))
    sys.stdout.buffer.write(msgspec.json.encode(found))
