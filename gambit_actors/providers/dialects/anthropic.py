"""The dialect of Anthropic Messages.

Requests are put together from turns (`anthropic_turns`) and settings
(`anthropic_request`); streams are read by `anthropic_stream`. An answer in one piece is
read as the stream that would have told it.
"""

from collections.abc import Iterator, Mapping

import msgspec

from gambit_actors.errors import BadRequest, BadResponse, StreamTruncated
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.builder import ResponseBuilder
from gambit_actors.openresponses.events import MalformedEvent
from gambit_actors.openresponses.followup import items_of_input
from gambit_actors.openresponses.reading import Mismatch, parse_json
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.openresponses.sse import SSEFrame
from gambit_actors.providers.dialects.anthropic_blocks import NAME
from gambit_actors.providers.dialects.anthropic_request import (
    SettingsWriter,
    ThinkingMode,
)
from gambit_actors.providers.dialects.anthropic_stream import AnthropicReader
from gambit_actors.providers.dialects.anthropic_turns import (
    TurnWriter,
    misses_thinking,
)
from gambit_actors.providers.dialects.complaints import complaint_in, complaint_of
from gambit_actors.providers.dialects.dialect import Complaint, Rendered, Unsent
from gambit_actors.providers.dialects.extras import without_ways_around


class AnthropicDialect(msgspec.Struct, frozen=True, kw_only=True):
    """Anthropic Messages.

    Attributes:
        version: of the API.
        default_max_tokens: the most to be said where a request does not say; the API
            insists on a number. What is thought in comes on top of it.
        thinking: how an effort is said: as a ``budget`` of tokens, or, for models that
            are ``adaptive``, as it is.
        betas: features to ask for in the header ``anthropic-beta``.
    """

    version: str = "2023-06-01"
    default_max_tokens: int = 8192
    thinking: ThinkingMode = "budget"
    betas: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What it is called."""
        return NAME

    @property
    def keeps_responses(self) -> bool:
        """Never: each request has the whole conversation."""
        return False

    def auth_headers(self, key: str, /) -> Mapping[str, str]:
        """The headers that carry a key."""
        return {"x-api-key": key}

    def render(self, request: CreateResponse, /, *, stream: bool) -> Rendered:
        """Say a request in this dialect.

        Raises:
            BadRequest: it refers to a response, and none are kept.
        """
        if request.previous_response_id is not None:
            raise BadRequest("previous_response_id", f"{NAME} does not keep responses")
        unsent: list[Unsent] = []
        request = without_ways_around(request, unsent)
        turns = TurnWriter(unsent)
        turns.instruct(request.instructions or "")
        turns.write(items_of_input(request))
        settings = SettingsWriter(
            unsent, mode=self.thinking, default_max_tokens=self.default_max_tokens
        )
        settings.write(request, may_think=not misses_thinking(turns.messages))
        body = _further_keys(request.extra)
        for key, value in settings.body.items():
            before = body.get(key)
            both = isinstance(before, dict) and key == "output_config"
            body[key] = before | value if both else value
        body |= {"messages": turns.messages, "stream": stream}
        if request.model is not None:
            body["model"] = request.model
        if turns.system:
            body["system"] = turns.system
        return Rendered(
            path="/messages", body=body, headers=self._headers(), unsent=tuple(unsent)
        )

    def reader(self, started: Response, /) -> AnthropicReader:
        """Read a streamed answer."""
        return AnthropicReader(started)

    def read_whole(self, body: bytes, started: Response, /) -> Response:
        """Read an answer that came in one piece.

        Raises:
            BadResponse: the body is no message, or one that has not ended.
        """
        try:
            message = parse_json(body)
        except Mismatch as problem:
            raise BadResponse(problem.path, problem.problem) from problem
        if not isinstance(message, dict):
            raise BadResponse("", "expected an object")
        if not isinstance(message.get("content"), list):
            complaint = complaint_of(message)
            words = complaint.message or complaint.code or "the key is missing"
            is_error = complaint != Complaint() and "error" in message
            raise BadResponse("error" if is_error else "content", words)
        reader, builder = self.reader(started), ResponseBuilder()
        for frame in _frames_of(message):
            for event in reader.feed(frame):
                if isinstance(event, MalformedEvent):
                    raise BadResponse("content", event.problem)
                builder.feed(event)
        try:
            return builder.close()
        except StreamTruncated as problem:
            raise BadResponse("stop_reason", "the message has not ended") from problem

    def read_error(self, body: bytes, /) -> Complaint:
        """Read the body of an error."""
        return complaint_in(body)

    def _headers(self) -> dict[str, str]:
        headers = {"anthropic-version": self.version}
        if self.betas:
            headers["anthropic-beta"] = ",".join(self.betas)
        return headers


def _further_keys(extra: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    """Keys that go out as they are; ``stop`` has a name of its own here."""
    body = dict(extra)
    stop = body.pop("stop", None)
    if stop is not None:
        body.setdefault("stop_sequences", [stop] if isinstance(stop, str) else stop)
    return body


def _frames_of(message: dict[str, JSONValue]) -> Iterator[SSEFrame]:
    """The stream that would have told a message."""
    usage = message.get("usage")
    head = {"model": message.get("model"), "usage": usage}
    yield _frame("message_start", message=head)
    for index, block in enumerate(message["content"]):
        yield _frame("content_block_start", index=index, content_block=block)
        yield _frame("content_block_stop", index=index)
    delta = {key: message.get(key) for key in ("stop_reason", "stop_details")}
    yield _frame("message_delta", delta=delta, usage=usage)
    yield _frame("message_stop")


def _frame(kind: str, **fields: JSONValue) -> SSEFrame:
    return SSEFrame(kind, msgspec.json.encode({"type": kind} | fields))
