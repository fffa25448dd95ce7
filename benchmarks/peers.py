"""The other libraries, looked up by name so that each of them may be missing.

They are installed by ``make bench`` and not by ``make test``. Importing them by name
also keeps the type checker's answer the same in both environments.
"""

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from typing import Any, get_args

import msgspec


class HttpxSse(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured of httpx-sse.

    Attributes:
        new_line_decoder: makes what cuts text into lines.
        new_decoder: makes what turns lines into events.
    """

    new_line_decoder: Callable[[], Any]
    new_decoder: Callable[[], Any]


class OpenAI(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured of the OpenAI SDK.

    Attributes:
        new_decoder: makes what turns bytes into server-sent events.
        open_stream: opens the SDK's own ``Stream`` of response events on chunks.
        accepts: whether the SDK's models validate a payload. What they refuse the SDK
            builds without validation, by a slower way.
    """

    new_decoder: Callable[[], Any]
    open_stream: Callable[[Sequence[bytes]], Iterator[Any]]
    accepts: Callable[[object], bool]


class Jsonschema(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured of jsonschema, the one in Python.

    Attributes:
        new_validator: makes a validator of a schema, with an ``iter_errors``.
    """

    new_validator: Callable[[dict[str, Any]], Any]


def load_httpx_sse() -> HttpxSse | None:
    """The decoders of httpx-sse, or None if it is not installed."""
    if importlib.util.find_spec("httpx_sse") is None:
        return None
    decoders = importlib.import_module("httpx_sse._decoders")
    return HttpxSse(
        new_line_decoder=decoders.SSELineDecoder, new_decoder=decoders.SSEDecoder
    )


def load_openai() -> OpenAI | None:
    """The streaming half of the OpenAI SDK, or None if it is not installed."""
    if importlib.util.find_spec("openai") is None:
        return None
    openai = importlib.import_module("openai")
    streaming = importlib.import_module("openai._streaming")
    models = importlib.import_module("openai._models")
    responses = importlib.import_module("openai.types.responses")
    client = openai.OpenAI(api_key="never sent")
    # As the SDK's `responses.create(stream=True)` derives it from its return type.
    event_type = streaming.extract_stream_chunk_type(
        openai.Stream[responses.ResponseStreamEvent]
    )
    union = get_args(event_type)[0]

    def open_stream(chunks: Sequence[bytes]) -> Iterator[Any]:
        stream = openai.Stream(
            cast_to=event_type, response=_Body(chunks), client=client
        )
        return iter(stream)

    def accepts(payload: object) -> bool:
        try:
            models.validate_type(type_=union, value=payload)
        except ValueError:
            return False
        return True

    return OpenAI(
        new_decoder=streaming.SSEDecoder, open_stream=open_stream, accepts=accepts
    )


def load_jsonschema() -> Jsonschema | None:
    """The validator of jsonschema, or None if it is not installed."""
    if importlib.util.find_spec("jsonschema") is None:
        return None
    jsonschema = importlib.import_module("jsonschema")
    return Jsonschema(new_validator=jsonschema.Draft202012Validator)


class _Body:
    """As much of an HTTP response as the SDK's stream uses."""

    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks = chunks

    def iter_bytes(self) -> Iterator[bytes]:
        """The chunks."""
        return iter(self._chunks)

    def close(self) -> None:
        """Do nothing: there is no connection."""
