"""A key that is planted is found nowhere, whatever goes wrong.

Each case is a whole run: a deck, a provider with a key, a log on disk, a trace in every
form, a recording. Afterwards every byte that was written is searched, and every error
that was raised.
"""

import io
import json
import re
import traceback
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
import trio
from trio.testing import MockClock

from gambit_actors.actors.runtime import open_runtime
from gambit_actors.errors import GambitError, ProviderError
from gambit_actors.openresponses import DONE_FRAME, Event, encode
from gambit_actors.openresponses.items import Reasoning
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.writing import to_builtins
from gambit_actors.providers.concealing import Concealer
from gambit_actors.providers.dialects.anthropic import AnthropicDialect
from gambit_actors.providers.dialects.chat import ChatDialect
from gambit_actors.providers.dialects.dialect import Dialect
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
from tests.providers.spoken import SPOKEN, Spoken
from tests.providers.wires import JSON, Exchange, WrittenTransport, refused

KEY = "sk-planted-0123456789abcdef"
SAYS_IT = f"The key is {KEY}."
DECK = deck_text('[modelParams]\nmodel = "acme/m-1"\n[[tools]]\nname = "crm"\n')
PIECES = [KEY[at : at + 3] for at in range(0, len(KEY), 3)]
ARGUMENTS = f'{{"a":"{KEY}"}}'
SEALED = re.compile(rb"gambit-sealed:[a-z]+:([A-Za-z0-9+/]+={0,2})")


def escaped(exchange: Exchange) -> Exchange:
    """The same exchange with the key spelled out in escapes, as JSON may have it."""
    spelled = "".join(f"\\u{ord(character):04X}" for character in KEY).encode()
    pieces = [
        piece.replace(KEY.encode(), spelled) if isinstance(piece, bytes) else piece
        for piece in exchange.pieces
    ]
    return msgspec.structs.replace(exchange, pieces=tuple(pieces))


def stream(*frames: bytes | float | Exception) -> Exchange:
    """An exchange that answers with these frames."""
    return Exchange(pieces=frames)


def whole(body: bytes) -> Exchange:
    """An exchange that answers in one piece."""
    return Exchange(headers=JSON, pieces=(body,))


# What any server may do, and does again each time it is asked.
GENERIC: dict[str, list[Exchange]] = {
    "refused": [refused(401, SAYS_IT, KEY)],
    "again and again": [refused(500, SAYS_IT, KEY)] * 9,
    "too much": [refused(429, SAYS_IT, retry_after=KEY)] * 9,
    "html": [Exchange(headers={"content-type": "text/html"}, pieces=(KEY.encode(),))],
    "a type": [Exchange(headers={"content-type": f"text/{KEY}"})],
    "a charset": [
        Exchange(headers={"content-type": f"text/event-stream;charset={KEY}"})
    ],
    "no json": [stream(f"data: {KEY}\n\n".encode(), DONE_FRAME)],
    "an event name": [stream(f"event: {KEY}\ndata: {{}}\n\n".encode())],
    "a strange event": [stream(f'data: {{"type":"{KEY}","a":"{KEY}"}}\n\n'.encode())],
    "a strange value": [stream(f'data: {{"type":7,"{KEY}":"{KEY}"}}\n\n'.encode())],
    "an error alone": [stream(f'data: {{"error":"{KEY}"}}\n\n'.encode())],
    "not a response": [whole(f'{{"a":"{KEY}"}}'.encode())],
    "an error in one piece": [refused(200, SAYS_IT, KEY)],
    "not json in one piece": [whole(KEY.encode())],
    "slow": [Exchange(refusal=ProviderTimeout("acme", "first_byte", 1.0))] * 9,
    "gone": [Exchange(refusal=ProviderUnreachable("acme", "refused"))] * 9,
    "redirected": [Exchange(status=302, headers={"location": f"https://{KEY}/"})],
    "escaped in a failure": [escaped(refused(401, "." * 290 + KEY, KEY))],
}


def spoken_cases(spoken: Spoken) -> dict[str, list[Exchange]]:
    """What a server of one dialect may say, with the key in it."""
    text, pieces = spoken.text([SAYS_IT]), spoken.text(PIECES)
    lost = ConnectionLost("acme", "reset")
    done = stream(*spoken.text(["Done."]))
    strange = f'data: {{"type":"{KEY}","a":"{KEY}"}}\n\n'.encode()
    call = stream(*spoken.call([ARGUMENTS]))
    call_in_pieces = stream(*spoken.call(['{"a":"', *PIECES, '"}']))
    begun, begun_in_pieces = text[: -spoken.endings], pieces[: -spoken.endings]
    return {
        "an answer": [stream(*text)],
        "an answer in pieces": [stream(*pieces)],
        "a thought": [stream(*spoken.thought([SAYS_IT]))],
        "a thought in pieces": [stream(*spoken.thought(PIECES))],
        "a call": [call, stream(*text)],
        "a call in pieces": [call_in_pieces, done],
        "an error": [stream(*spoken.failure(["So"], SAYS_IT))],
        "an error behind pieces": [stream(*spoken.failure(PIECES, "No."))],
        "whole": [whole(spoken.whole(SAYS_IT))],
        "a strange event in between": [stream(text[0], strange, *text[1:])],
        "cut": [stream(*begun)],
        "lost": [stream(*begun, lost)],
        "cut behind pieces": [stream(*begun_in_pieces)],
        "lost behind pieces": [stream(*begun_in_pieces, lost)],
        "given up behind pieces": [stream(*begun_in_pieces, 3600.0)],
        "escaped in a stream": [escaped(stream(*text))],
        "escaped in a call": [escaped(call), done],
        "escaped in an error": [escaped(stream(*spoken.failure(["So"], SAYS_IT)))],
        "escaped in one piece": [escaped(whole(spoken.whole(SAYS_IT)))],
    }


CASES = {
    (name, case): exchanges
    for name, spoken in SPOKEN.items()
    for case, exchanges in (GENERIC | spoken_cases(spoken)).items()
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


def opened(data: bytes) -> bytes:
    """The same with what is sealed in it, of any dialect, opened behind it."""
    return data + b"".join(b64decode(seal[1]) for seal in SEALED.finditer(data))


async def everything_of(
    exchanges: Sequence[Exchange], dialect: Dialect, key: str, folder: Path
) -> tuple[WrittenTransport, bytes]:
    """Run a deck, and give all that was written, shown and raised on the way."""
    endpoint = Endpoint(
        name="acme",
        dialect=dialect,
        base_url="https://llm.acme.example/v1",
        key=Secret(key, source="ACME_API_KEY"),
        key_hint="set ACME_API_KEY",
    )
    wire = WrittenTransport(exchanges)
    provider = HttpProvider(endpoint, wire, Gate(endpoint.pace))
    recording = (folder / "recording.jsonl").open("wb")
    console, told = io.StringIO(), [repr(provider), repr(endpoint)]
    with recording, JsonlSink(folder / "trace.jsonl") as trace:
        recorder = Recorder(
            Router({"acme": provider}),
            lambda line: told.append(str(recording.write(line))),
            conceal=Concealer(endpoint.key).bytes,
        )
        try:
            async with (
                DiskStore(folder / "runs") as store,
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

    written = contents(folder)
    assert sum(map(len, written)) > 500
    everything = [*written, console.getvalue().encode(), *map(str.encode, told)]
    return wire, opened(b"".join(everything))


@pytest.mark.parametrize(("name", "case"), CASES)
async def test_a_planted_key_is_found_nowhere(
    name: str, case: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Log, traces, recording, result and errors of a run are without the key."""
    del autojump_clock

    wire, everything = await everything_of(
        CASES[name, case], SPOKEN[name].dialect, KEY, tmp_path
    )

    assert any(KEY in value for value in wire.posted[0].headers.values())
    assert KEY.encode() not in everything


@pytest.mark.parametrize(
    ("name", "case"), [place for place in CASES if place[1] not in GENERIC]
)
async def test_the_search_finds_what_is_there(
    name: str, case: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """What the cases say is written somewhere: of another key it would be found."""
    del autojump_clock

    _, everything = await everything_of(
        CASES[name, case], SPOKEN[name].dialect, "sk-another-key-altogether", tmp_path
    )

    assert KEY.encode() in everything


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
