"""A key that is planted is found nowhere, whatever goes wrong.

Each case is a whole run: a deck, a provider with a key, a log on disk, a trace in every
form, a recording. Afterwards every byte that was written is searched, and every error
that was raised.
"""

import io
import json
import traceback
from pathlib import Path

import msgspec
import pytest
import trio
from trio.testing import MockClock

from gambit_actors.actors.runtime import open_runtime
from gambit_actors.errors import GambitError, ProviderError
from gambit_actors.openresponses import DONE_FRAME, Event, encode
from gambit_actors.openresponses.items import FunctionCall, Reasoning
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.writing import to_builtins
from gambit_actors.providers.concealing import Concealer
from gambit_actors.providers.dialects.anthropic import AnthropicDialect
from gambit_actors.providers.dialects.chat import ChatDialect
from gambit_actors.providers.dialects.open_responses import OpenResponsesDialect
from gambit_actors.providers.dialects.open_responses_profiles import OPENAI
from gambit_actors.providers.dialects.sealing import unseal
from gambit_actors.providers.endpoints import Endpoint, Retries, Secret
from gambit_actors.providers.errors import (
    ConnectionLost,
    ProviderTimeout,
    ProviderUnreachable,
)
from gambit_actors.providers.gate import Gate
from gambit_actors.providers.http import HttpTransport
from gambit_actors.providers.http_provider import HttpProvider
from gambit_actors.providers.http_rules import causes
from gambit_actors.providers.recording import Recorder
from gambit_actors.providers.router import Router
from gambit_actors.run.ports import ModelContext
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.testing.fake_server import Answer, Asked, serve
from gambit_actors.trace.log_lines import StructlogSink
from gambit_actors.trace.sinks import JsonlSink
from tests.deck.reading import Texts, deck_text
from tests.providers.wires import (
    JSON,
    Exchange,
    WrittenTransport,
    answer,
    frames_of,
    refused,
    streamed,
)

KEY = "sk-planted-0123456789abcdef"
SAYS_IT = f"The key is {KEY}."
DECK = deck_text('[modelParams]\nmodel = "acme/m-1"\n[[tools]]\nname = "crm"\n')
CALL = FunctionCall(id="fc_1", call_id="c1", name="crm", arguments=f'{{"a":"{KEY}"}}')
FRAMES = tuple(frames_of(answer(SAYS_IT)))


def escaped(exchange: Exchange) -> Exchange:
    """The same exchange with the key spelled out in escapes, as JSON may have it."""
    spelled = "".join(f"\\u{ord(character):04X}" for character in KEY).encode()
    pieces = [
        piece.replace(KEY.encode(), spelled) if isinstance(piece, bytes) else piece
        for piece in exchange.pieces
    ]
    return msgspec.structs.replace(exchange, pieces=tuple(pieces))


CASES = {
    "an answer": [streamed(SAYS_IT)],
    "a call": [streamed(CALL), streamed(SAYS_IT)],
    "whole": [Exchange(headers=JSON, pieces=(encode(answer(SAYS_IT)),))],
    "refused": [refused(401, SAYS_IT, KEY)],
    "again and again": [refused(500, SAYS_IT, KEY)] * 9,
    "too much": [refused(429, SAYS_IT, retry_after=KEY)] * 9,
    "html": [Exchange(headers={"content-type": "text/html"}, pieces=(KEY.encode(),))],
    "a type": [Exchange(headers={"content-type": f"text/{KEY}"})],
    "a charset": [
        Exchange(headers={"content-type": f"text/event-stream;charset={KEY}"})
    ],
    "no json": [Exchange(pieces=(f"data: {KEY}\n\n".encode(), DONE_FRAME))],
    "an event name": [Exchange(pieces=(f"event: {KEY}\ndata: {{}}\n\n".encode(),))],
    "a strange event": [
        Exchange(pieces=(f'data: {{"type":"{KEY}","a":"{KEY}"}}\n\n'.encode(), *FRAMES))
    ],
    "not a response": [Exchange(headers=JSON, pieces=(f'{{"a":"{KEY}"}}'.encode(),))],
    "cut": [Exchange(pieces=FRAMES[:-1])],
    "lost": [Exchange(pieces=(*FRAMES[:3], ConnectionLost("acme", "reset")))],
    "slow": [Exchange(refusal=ProviderTimeout("acme", "first_byte", 1.0))] * 9,
    "gone": [Exchange(refusal=ProviderUnreachable("acme", "refused"))] * 9,
    "redirected": [Exchange(status=302, headers={"location": f"https://{KEY}/"})],
    "escaped in a stream": [escaped(streamed(SAYS_IT))],
    "escaped in a call": [escaped(streamed(CALL)), escaped(streamed(SAYS_IT))],
    "escaped in one piece": [
        escaped(Exchange(headers=JSON, pieces=(encode(answer(SAYS_IT)),)))
    ],
    "escaped in a failure": [escaped(refused(401, "." * 290 + KEY, KEY))],
}

# What a server sends that is no HTTP, or no answer, with the key in it.
BABBLE = {
    "a status line": f"{KEY} hello\r\n\r\n",
    "a long status line": f"{'.' * 230}{KEY}\r\n\r\n",
    "a header": f"HTTP/1.1 200 OK\r\n{KEY} x\r\n\r\n",
    "a length": f"HTTP/1.1 200 OK\r\ncontent-length: {KEY}\r\n\r\n",
    "a framing": f"HTTP/1.1 200 OK\r\ntransfer-encoding: {KEY}\r\n\r\n",
    "an encoding": f"HTTP/1.1 200 OK\r\ncontent-encoding: {KEY}\r\n\r\n",
    "a chunk": f"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{KEY}\r\n",
    "a reason": f"HTTP/1.1 500 {KEY}\r\ncontent-length: 0\r\n\r\n",
}


def contents(folder: Path) -> list[bytes]:
    """What is in all files below a folder."""
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("case", CASES)
async def test_a_planted_key_is_found_nowhere(
    case: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Log, traces, recording, result and errors of a run are without the key."""
    del autojump_clock
    endpoint = Endpoint(
        name="acme",
        dialect=OpenResponsesDialect(profile=OPENAI),
        base_url="https://llm.acme.example/v1",
        key=Secret(KEY, source="ACME_API_KEY"),
        key_hint="set ACME_API_KEY",
    )
    wire = WrittenTransport(CASES[case])
    provider = HttpProvider(endpoint, wire, Gate(endpoint.pace))
    recording = (tmp_path / "recording.jsonl").open("wb")
    console, told = io.StringIO(), [repr(provider), repr(endpoint)]
    with recording, JsonlSink(tmp_path / "trace.jsonl") as trace:
        recorder = Recorder(
            Router({"acme": provider}),
            lambda line: told.append(str(recording.write(line))),
            conceal=Concealer(endpoint.key).bytes,
        )
        try:
            async with (
                DiskStore(tmp_path / "runs") as store,
                open_runtime(
                    recorder,
                    reader=Texts({"PROMPT.md": DECK}),
                    store=store,
                    sinks=[trace, StructlogSink(file=console, verbose=True)],
                ) as runtime,
            ):
                result = await runtime.try_run("PROMPT.md", message="Hi.")
                told.append(repr(result))
        except GambitError as problem:
            told += traceback.format_exception(problem)

    assert any(KEY in value for value in wire.posted[0].headers.values())
    written = contents(tmp_path)
    assert sum(map(len, written)) > 500
    everything = b"".join(
        [*written, console.getvalue().encode(), *map(str.encode, told)]
    )
    assert KEY.encode() not in everything


@pytest.mark.parametrize("case", BABBLE)
async def test_a_key_in_what_is_no_answer_is_found_nowhere(case: str) -> None:
    """Errors of the network, and what they come from, are without the key."""

    async def handler(_asked: Asked, said: Answer) -> None:
        await said.raw(BABBLE[case].encode())
        await said.close()

    with trio.fail_after(10):
        async with serve(handler) as server, HttpTransport() as transport:
            endpoint = Endpoint(
                name="acme",
                dialect=OpenResponsesDialect(profile=OPENAI),
                base_url=server.base_url,
                key=Secret(KEY, source="ACME_API_KEY"),
                retries=Retries(most=0),
            )
            provider = HttpProvider(endpoint, transport, Gate(endpoint.pace))
            context = ModelContext(run_id="r", deck="d", turn=1, pass_number=1)
            with pytest.raises(ProviderError) as caught:
                await provider.responses(
                    CreateResponse(model="m", input="Hi."), context, lambda _: None
                )

    told = "".join(traceback.format_exception(caught.value))
    assert KEY[:10] not in told
    # What is not shown may be all the same, by whoever logs an error his own way.
    for cause in causes(caught.value):
        assert KEY[:10] not in f"{cause!r} {cause.args}"


def _spelled(delta: str, *ends: dict[str, object]) -> Exchange:
    """An answer of Chat Completions with the key in pieces, at a place of a delta."""
    pieces = [KEY[at : at + 3] for at in range(0, len(KEY), 3)]
    said = [json.loads(delta.replace("KEY", piece)) for piece in pieces]
    chunks = [{"choices": [{"delta": one}]} for one in said] + [*ends]
    frames = [b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks]
    return Exchange(pieces=(*frames, DONE_FRAME))


@pytest.mark.parametrize(
    "delta",
    [
        '{"content": "KEY"}',
        '{"refusal": "KEY"}',
        '{"reasoning": "KEY"}',
        '{"tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": "KEY"}}]}',
    ],
    ids=["text", "refusal", "reasoning", "arguments"],
)
async def test_a_key_spelled_out_over_several_deltas_is_in_no_result(
    delta: str,
) -> None:
    """What is put together from deltas is without the key, as events and as a whole."""
    endpoint = Endpoint(
        name="acme",
        dialect=ChatDialect(),
        base_url="https://llm.acme.example/v1",
        key=Secret(KEY, source="ACME_API_KEY"),
    )
    said = _spelled(delta, {"choices": [{"delta": {}, "finish_reason": "stop"}]})
    provider = HttpProvider(endpoint, WrittenTransport([said]), Gate(endpoint.pace))
    context = ModelContext(run_id="r", deck="d", turn=1, pass_number=1)
    events: list[Event] = []

    response = await provider.responses(
        CreateResponse(model="m", input="Hi."), context, events.append
    )

    assert b"[key]" in encode(response)
    assert KEY[:10].encode() not in encode(response)
    for event in events:
        assert KEY[:10] not in json.dumps(to_builtins(event))


async def test_a_key_in_sealed_reasoning_is_struck_out() -> None:
    """What a dialect wraps up to send back later is no hiding place."""
    endpoint = Endpoint(
        name="acme",
        dialect=AnthropicDialect(),
        base_url="https://llm.acme.example/v1",
        key=Secret(KEY, source="ACME_API_KEY"),
    )
    block = {"index": 0, "content_block": {"type": "thinking", "signature": "s"}}
    frames = [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start"} | block,
        *(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "thinking_delta", "thinking": piece},
            }
            for piece in (KEY[:9], KEY[9:])
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    said = tuple(b"data: " + msgspec.json.encode(one) + b"\n\n" for one in frames)
    wire = WrittenTransport([Exchange(pieces=said)])
    provider = HttpProvider(endpoint, wire, Gate(endpoint.pace))
    context = ModelContext(run_id="r", deck="d", turn=1, pass_number=1)

    response = await provider.responses(
        CreateResponse(model="m", input="Hi."), context, lambda _: None
    )

    (item,) = response.output
    assert isinstance(item, Reasoning)
    sealed = unseal("anthropic", item.encrypted_content)
    assert sealed == {"type": "thinking", "thinking": "[key]", "signature": "s"}


def test_the_search_finds_what_is_there() -> None:
    """The cases do bring the key along; without concealing it would be found."""
    spoken = [
        piece
        for exchanges in CASES.values()
        for exchange in exchanges
        for piece in (*exchange.pieces, msgspec.json.encode(exchange.headers))
        if isinstance(piece, bytes) and KEY.encode() in piece
    ]
    assert len(spoken) > len(CASES) / 2
