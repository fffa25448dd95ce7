"""The dialect of servers that speak Open Responses: OpenAI, OpenRouter, any other.

Most of a request goes out as it is. What is decided here: how much of the standard the
server takes (its profile), that no request goes out which the standard forbids, and
that a conversation that is sent whole needs nothing of the server's memory: no ids of
items, reasoning in its sealed form.
"""

from collections.abc import Mapping

import msgspec

from gambit_actors.errors import BadRequest, BadResponse
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.builder import build_response
from gambit_actors.openresponses.codec import (
    decode_response,
    request_from_json,
    response_from_json,
)
from gambit_actors.openresponses.endings import Terminal
from gambit_actors.openresponses.events import (
    ResponseCompleted,
    ResponseFailed,
    ResponseIncomplete,
)
from gambit_actors.openresponses.reading import Mismatch, parse_json
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import IncompleteDetails, Response
from gambit_actors.openresponses.writing import to_builtins
from gambit_actors.providers.dialects.complaints import (
    complaint_in,
    complaint_of,
)
from gambit_actors.providers.dialects.dialect import Complaint, Rendered, Unsent
from gambit_actors.providers.dialects.extras import without_ways_around
from gambit_actors.providers.dialects.open_responses_limits import checked
from gambit_actors.providers.dialects.open_responses_profiles import (
    OPEN_RESPONSES,
    OpenResponsesProfile,
)
from gambit_actors.providers.dialects.open_responses_reader import (
    OpenResponsesReader,
    sane_usage,
    with_countable_usage,
)
from gambit_actors.providers.dialects.open_responses_request import RequestWriter

_NAMED = frozenset(
    field.encode_name for field in msgspec.structs.fields(CreateResponse)
)
_SEALED = "reasoning.encrypted_content"

_ENDINGS: dict[str, type[Terminal]] = {
    "completed": ResponseCompleted,
    "failed": ResponseFailed,
    "incomplete": ResponseIncomplete,
    "cancelled": ResponseIncomplete,
}


class OpenResponsesDialect(msgspec.Struct, frozen=True, kw_only=True):
    """Open Responses, as the servers of a profile speak it."""

    profile: OpenResponsesProfile = OPEN_RESPONSES

    @property
    def name(self) -> str:
        """The profile's name."""
        return self.profile.name

    @property
    def keeps_responses(self) -> bool:
        """Whether a request may refer to an earlier response by its id."""
        return self.profile.keeps_responses

    def auth_headers(self, key: str, /) -> Mapping[str, str]:
        """The headers that carry a key."""
        return {"authorization": f"Bearer {key}"}

    def render(self, request: CreateResponse, /, *, stream: bool) -> Rendered:
        """Say a request in this dialect.

        Raises:
            BadRequest: the standard forbids it; with the path, and what is wrong there.
        """
        unsent: list[Unsent] = []
        request = _lifted(without_ways_around(request, unsent))
        if request.previous_response_id is not None and not self.keeps_responses:
            raise BadRequest(
                "previous_response_id", f"{self.name} does not keep responses"
            )
        writer = RequestWriter(self.profile, is_stateless=self._is_stateless(request))
        sent = msgspec.structs.replace(
            writer.written(request),
            stream=stream,
            stream_options=request.stream_options if stream else None,
        )
        sent = self._about_memory(sent, writer.unsent)
        body: dict[str, JSONValue] = to_builtins(
            checked(sent, is_exact=self.profile.is_exact)
        )
        return Rendered(path="/responses", body=body, unsent=(*unsent, *writer.unsent))

    def reader(self, started: Response, /) -> OpenResponsesReader:
        """Read a streamed answer."""
        return OpenResponsesReader(started)

    def read_whole(self, body: bytes, started: Response, /) -> Response:
        """Read an answer that came in one piece.

        Raises:
            BadResponse: the body is no response, or one that has not ended.
        """
        del started
        response = _decoded(body)
        ending = _ENDINGS.get(response.status)
        if ending is None:
            raise BadResponse("status", f"a response that is {response.status!r}")
        if response.status == "cancelled":
            details = response.incomplete_details or IncompleteDetails(
                reason="cancelled"
            )
            response = msgspec.structs.replace(response, incomplete_details=details)
        response = msgspec.structs.replace(response, usage=sane_usage(response.usage))
        # What holds for a final event holds here: ids, statuses, no false success.
        return build_response([ending(response=response)])

    def read_error(self, body: bytes, /) -> Complaint:
        """Read the body of an error."""
        return complaint_in(body)

    def _is_stateless(self, request: CreateResponse) -> bool:
        """Whether the whole conversation is in the request."""
        return not self.keeps_responses or (
            request.previous_response_id is None and request.store is not True
        )

    def _about_memory(
        self, request: CreateResponse, unsent: list[Unsent]
    ) -> CreateResponse:
        """Say what the server is to remember, and what it is to seal."""
        if not self._is_stateless(request):
            return request
        if request.store and not self.profile.takes_store:
            unsent.append(Unsent("store", f"{self.name} does not keep responses"))
        store = False if self.profile.takes_store else None
        include = request.include or ()
        if self._seals_reasoning(request) and _SEALED not in include:
            include = (*include, _SEALED)
        return msgspec.structs.replace(request, store=store, include=include or None)

    def _seals_reasoning(self, request: CreateResponse) -> bool:
        """Whether to ask for reasoning in a form that can be sent back."""
        if not self.profile.seals_reasoning:
            return False
        # A model that never reasons refuses to be asked, unless it is told to reason.
        model = request.model or ""
        return request.reasoning is not None or not model.startswith(
            self.profile.plain_models
        )


def _lifted(request: CreateResponse) -> CreateResponse:
    """A request whose further keys are none that the standard names.

    A deck's additional parameters may name such keys; then they count as if they had
    been given in their place, and are held to the same bounds.
    """
    if not request.extra.keys() & _NAMED:
        return request
    return request_from_json(to_builtins(request))


def _decoded(body: bytes) -> Response:
    try:
        return decode_response(body)
    except BadResponse as problem:
        value = _parsed(body)
        if not isinstance(value, dict):
            raise
        complaint = complaint_of(value)
        if "error" in value and "status" not in value and complaint != Complaint():
            words = complaint.message or complaint.code
            raise BadResponse("error", words) from problem
        if not problem.path.startswith("usage"):
            raise
        return response_from_json(with_countable_usage(value))


def _parsed(body: bytes) -> JSONValue:
    try:
        return parse_json(body)
    except Mismatch:
        return None
