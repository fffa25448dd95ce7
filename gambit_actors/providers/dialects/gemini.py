"""Gemini's ``generateContent``, as a dialect."""

import re
from collections.abc import Mapping

import msgspec

from gambit_actors.errors import BadResponse, RequestError, StreamTruncated
from gambit_actors.openresponses.builder import build_response
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.followup import items_of_input
from gambit_actors.openresponses.reading import Mismatch, parse_json
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.openresponses.sse import SSEFrame
from gambit_actors.providers.dialects.complaints import complaint_in
from gambit_actors.providers.dialects.dialect import Complaint, Rendered
from gambit_actors.providers.dialects.gemini_input import Conversation
from gambit_actors.providers.dialects.gemini_request import Settings, version_of
from gambit_actors.providers.dialects.gemini_stream import (
    NAME,
    GeminiReader,
)

_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]*(/[A-Za-z0-9._@-]+)*")


class GeminiDialect(msgspec.Struct, frozen=True, kw_only=True):
    """Gemini, as Google's API for developers has it.

    Attributes:
        json_schemas: whether the server takes JSON Schema as it is. Older versions of
            the API take a piece of OpenAPI 3.0, and what that cannot say is left out.
    """

    json_schemas: bool = True

    @property
    def name(self) -> str:
        """What it is called in settings and in messages."""
        return NAME

    @property
    def keeps_responses(self) -> bool:
        """It remembers nothing."""
        return False

    def auth_headers(self, key: str, /) -> Mapping[str, str]:
        """In a header: a key in a URL ends up in logs."""
        return {"x-goog-api-key": key}

    def render(self, request: CreateResponse, /, *, stream: bool) -> Rendered:
        """Say a request.

        Raises:
            RequestError: it names no model, or says nothing.
        """
        model = request.model or ""
        if not _MODEL.fullmatch(model) or ".." in model:
            raise RequestError(f"{model!r} is not the name of a model of Gemini's")
        settings = Settings(request, json_schemas=self.json_schemas)
        conversation = Conversation(
            items_of_input(request), nests_media=version_of(model) >= (3, 0)
        )
        contents, system = conversation.contents, conversation.system
        if request.instructions:
            system = [request.instructions, *system]
        if not contents:
            contents = [{"role": "user", "parts": [{"text": text} for text in system]}]
            system = []
        if not contents[0]["parts"]:
            raise RequestError("Gemini has to be told something, and there is nothing")
        body = settings.fields | {"contents": contents}
        if system:
            parts = [{"text": text} for text in system]
            body["systemInstruction"] = {"parts": parts}
        place = model if "/" in model else f"models/{model}"
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return Rendered(
            path=f"/{place}:{method}",
            body=body,
            unsent=(*conversation.unsent, *settings.unsent),
        )

    def reader(self, started: Response, /) -> GeminiReader:
        """Read a streamed answer."""
        return GeminiReader(started)

    def read_whole(self, body: bytes, started: Response, /) -> Response:
        """Read an answer in one piece: one document as streams have many.

        Raises:
            BadResponse: it is none, or does not say how the answer went.
        """
        reader = GeminiReader(started)
        try:
            found = parse_json(body)
        except Mismatch as problem:
            raise BadResponse("", problem.problem) from problem
        events: list[Event] = []
        # A stream without frames is a list of all that would be in them.
        for document in found if isinstance(found, list) else [found]:
            events += reader.feed(SSEFrame("message", msgspec.json.encode(document)))
        events += reader.close()
        try:
            return build_response(events)
        except StreamTruncated as problem:
            words = "it does not say how the answer went"
            raise BadResponse("", words) from problem

    def read_error(self, body: bytes, /) -> Complaint:
        """Read the body of an error, whatever it is."""
        return complaint_in(body)
