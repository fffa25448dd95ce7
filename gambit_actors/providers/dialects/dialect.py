"""What a dialect is: how to ask a server of its kind, and how to read the answer.

::

    CreateResponse --render--> Rendered          a path, a body, what found no place
    SSEFrame --Reader.feed--> events             of Open Responses, in legal order
    body --read_whole--> Response                for a server that does not stream
    body --read_error--> Complaint               for a status that is not 200

A reader never makes an ending up. If the server did not say how its answer went, no
terminal event is given, and whoever folds the events finds that the stream was cut.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.openresponses.sse import SSEFrame


class Unsent(msgspec.Struct, frozen=True):
    """Something of a request that the dialect has no words for, and so was left out.

    Attributes:
        path: where it stands in the request, such as ``input[2].content[0]``.
        reason: a sentence for the author of a deck.
    """

    path: str
    reason: str


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    """A request as a server of the dialect takes it.

    Attributes:
        path: below the server's base URL, with a slash in front.
        body: the JSON document to post.
        headers: those that the dialect wants, in lower case; never a key.
        unsent: what found no place in it.
    """

    path: str
    body: dict[str, JSONValue]
    headers: Mapping[str, str] = {}
    unsent: tuple[Unsent, ...] = ()


class Complaint(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says of a request that it did not answer.

    Attributes:
        code: for a program; empty if the server gave none.
        message: in the server's words; empty if there are none to be found.
    """

    code: str = ""
    message: str = ""


class Reader(Protocol):
    """Reads one streamed answer, frame by frame."""

    @property
    def is_done(self) -> bool:
        """Whether nothing more can come, so that reading can stop."""

    @property
    def problems(self) -> Sequence[str]:
        """What the server did against its own dialect, one sentence each."""

    def feed(self, frame: SSEFrame, /) -> Sequence[Event]:
        """Take the next frame, give the events it comes to. Raises nothing for it.

        A frame that is not JSON is a `MalformedEvent`, one of a kind that is not known
        an `UnknownEvent` that keeps it whole.
        """

    def close(self) -> Sequence[Event]:
        """The body has ended: give the events that waited for that, if any.

        There is a terminal event among all those given if, and only if, the server
        said, one way or the other, how its answer went.
        """


class Dialect(Protocol):
    """A language that model servers speak. Instances hold settings and no state."""

    @property
    def name(self) -> str:
        """What it is called in settings and in messages."""

    @property
    def keeps_responses(self) -> bool:
        """Whether a request may refer to an earlier response by its id."""

    def auth_headers(self, key: str, /) -> Mapping[str, str]:
        """The headers that carry a key, in lower case."""

    def render(self, request: CreateResponse, /, *, stream: bool) -> Rendered:
        """Say a request in this dialect.

        Its ``model`` is the server's own name for the model, without a prefix. A key in
        its ``extra`` is passed on as it is; a key that the dialect sets itself wins.

        Raises:
            RequestError: it cannot be said, not even in part.
        """

    def reader(self, started: Response, /) -> Reader:
        """Read a streamed answer.

        Args:
            started: what the response starts as: its id, its time, its settings.
        """

    def read_whole(self, body: bytes, started: Response, /) -> Response:
        """Read an answer that came in one piece.

        Raises:
            BadResponse: the body is no answer of this dialect.
        """

    def read_error(self, body: bytes, /) -> Complaint:
        """Read the body of an error. Never raises: a body may be anything at all."""
