"""The decoders that are compared: chunks of bytes in, a list of events out.

Each is written the way its library is meant to be used, in one plain loop.
"""

import codecs
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from benchmarks.peers import HttpxSse, OpenAI
from gambit_actors.openresponses import (
    Event,
    SSEDecoder,
    StandardEvent,
    decode_event,
)
from gambit_actors.openresponses.base import refuse_reserved

Chunks: TypeAlias = Sequence[bytes]
DecodeAll: TypeAlias = Callable[[Chunks], list[Any]]

FLOOR = "floor"
OURS = "ours"
HTTPX_SSE = "httpx-sse + json"
OPENAI = "openai SDK"


def all_contenders(
    httpx_sse: HttpxSse | None, openai: OpenAI | None
) -> dict[str, DecodeAll]:
    """Every decoder there is on this machine, by name."""
    found: dict[str, DecodeAll] = {FLOOR: decode_floor, OURS: decode_ours}
    if httpx_sse is not None:
        found[HTTPX_SSE] = httpx_sse_decoder(httpx_sse)
    if openai is not None:
        found[OPENAI] = openai_decoder(openai)
    return found


_decode_struct = msgspec.json.Decoder(StandardEvent, dec_hook=refuse_reserved).decode


def decode_floor(chunks: Chunks) -> list[Any]:
    r"""The least that gives the same structs: split at blank lines, cut, decode.

    This is no SSE decoder. It knows one line ending, no comment, no id, no data of
    several lines, no limit, and not even which line it cuts at.
    """
    events: list[Any] = []
    buffered = b""
    for chunk in chunks:
        *blocks, buffered = (buffered + chunk).split(b"\n\n")
        for block in blocks:
            data = block[block.index(b"data: ") + 6 :]
            if data != b"[DONE]":
                try:
                    events.append(_decode_struct(data))
                except msgspec.ValidationError:
                    # Keys of a vendor's own: a dict is the least there is then.
                    events.append(msgspec.json.decode(data))
    return events


def decode_ours(chunks: Chunks) -> list[Event]:
    """This package, as its README shows it."""
    events: list[Event] = []
    decoder = SSEDecoder()
    for chunk in chunks:
        for frame in decoder.feed(chunk):
            if not frame.is_done:
                events.append(decode_event(frame.data))  # noqa: PERF401  (alike in all)
    return events


def httpx_sse_decoder(peer: HttpxSse) -> DecodeAll:
    """The loop of httpx-sse's ``EventSource.iter_sse``, and JSON to dicts."""

    def decode_all(chunks: Chunks) -> list[Any]:
        events: list[Any] = []
        # What httpx makes of a UTF-8 response in `iter_text`.
        text_decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        line_decoder, decoder = peer.new_line_decoder(), peer.new_decoder()
        for chunk in chunks:
            text = text_decoder.decode(chunk)
            if not text:
                continue
            for line in line_decoder.decode(text):
                sse = decoder.decode(line.rstrip("\n"))
                if sse is not None and sse.data != "[DONE]":
                    events.append(json.loads(sse.data))
        return events

    return decode_all


def openai_decoder(peer: OpenAI) -> DecodeAll:
    """The SDK's own ``Stream``, from bytes to its typed events."""

    def decode_all(chunks: Chunks) -> list[Any]:
        return list(peer.open_stream(chunks))

    return decode_all
