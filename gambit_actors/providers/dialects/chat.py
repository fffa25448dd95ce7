"""Chat Completions: the language that nearly every model server speaks.

What servers do differently is in a `ChatFlavour`. A reader takes what any of them
sends.
"""

from collections.abc import Mapping

import msgspec

from gambit_actors.errors import BadResponse, StreamTruncated
from gambit_actors.openresponses.builder import build_response
from gambit_actors.openresponses.events import MalformedEvent
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.openresponses.sse import SSEFrame
from gambit_actors.providers.dialects.chat_flavours import (
    FLAVOURS,
    GENERIC,
    LLAMA_CPP,
    LM_STUDIO,
    OLLAMA,
    OPENAI,
    OPENROUTER,
    VLLM,
    ChatFlavour,
)
from gambit_actors.providers.dialects.chat_request import body_of
from gambit_actors.providers.dialects.chat_stream import ChatReader
from gambit_actors.providers.dialects.complaints import complaint_in
from gambit_actors.providers.dialects.dialect import Complaint, Rendered

__all__ = [
    "FLAVOURS",
    "GENERIC",
    "LLAMA_CPP",
    "LM_STUDIO",
    "OLLAMA",
    "OPENAI",
    "OPENROUTER",
    "VLLM",
    "ChatDialect",
    "ChatFlavour",
]

PATH = "/chat/completions"


class ChatDialect(msgspec.Struct, frozen=True, kw_only=True):
    """Chat Completions, as one flavour of server speaks it.

    Attributes:
        flavour: what the server takes.
    """

    flavour: ChatFlavour = GENERIC

    @property
    def name(self) -> str:
        """What it is called in settings and in messages."""
        return "chat"

    @property
    def keeps_responses(self) -> bool:
        """Never: the whole conversation is sent every time."""
        return False

    def auth_headers(self, key: str, /) -> Mapping[str, str]:
        """The header that carries a key."""
        return {"authorization": f"Bearer {key}"}

    def render(self, request: CreateResponse, /, *, stream: bool) -> Rendered:
        """Say a request in this dialect."""
        body, unsent = body_of(request, self.flavour, stream=stream)
        return Rendered(path=PATH, body=body, unsent=tuple(unsent))

    def reader(self, started: Response, /) -> ChatReader:
        """Read a streamed answer."""
        return ChatReader(started, self.flavour)

    def read_whole(self, body: bytes, started: Response, /) -> Response:
        """Read an answer that came in one piece.

        An error that came with success is a response that failed.

        Raises:
            BadResponse: the body is no answer of this dialect.
        """
        reader = ChatReader(started, self.flavour)
        events = [*reader.feed(SSEFrame("message", body))]
        malformed = next((e for e in events if isinstance(e, MalformedEvent)), None)
        if malformed is not None:
            raise BadResponse("", malformed.problem)
        if not reader.is_done:
            events += reader.end()
        try:
            return build_response(events)
        except StreamTruncated as problem:
            raise BadResponse("", "there is no answer in it") from problem

    def read_error(self, body: bytes, /) -> Complaint:
        """Read the body of an error, in any of the forms that servers have for it."""
        return complaint_in(body)
