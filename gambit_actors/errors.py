"""The exceptions of gambit_actors, in one tree, split by whose fault it is.

::

    GambitError
    ├── DeckError             the author of a deck wrote something that cannot be
    │   ├── ActionFailed      the code of an action said, or showed, that it failed
    │   ├── InvalidDeck       a deck has errors, which it lists
    │   └── SchemaError       a schema is not one that values can be checked against
    ├── RequestError          the caller asked for something that cannot be
    │   ├── BadRequest        a request document has the wrong form
    │   └── BadScript         a script for a model is not one
    ├── ProviderError         the other side of the wire broke a promise
    │   ├── BadResponse       a response document has the wrong form
    │   ├── EventTooLarge     one streamed event is larger than we agreed to hold
    │   ├── ScriptExhausted   a scripted model has no reply for what it was asked
    │   └── StreamTruncated   a stream ended before it said how it went
    ├── RunFailed             a run came to no result, and says why
    ├── WireError             a JSON document has the wrong form; what BadRequest
    │                         and BadResponse have in common
    └── GambitBug             our own code, or a plugin's, was used wrongly
        └── WriterMisuse      an event was asked for that has no legal place

Messages are one sentence: what happened, to what. Facts are attributes, so nobody
has to read a message to decide what to do.
"""

from collections.abc import Sequence
from typing import Protocol

__all__ = [
    "ActionFailed",
    "BadRequest",
    "BadResponse",
    "BadScript",
    "DeckError",
    "EventTooLarge",
    "GambitBug",
    "GambitError",
    "InvalidDeck",
    "ProviderError",
    "RequestError",
    "RunFailed",
    "SchemaError",
    "ScriptExhausted",
    "StreamTruncated",
    "WireError",
    "WriterMisuse",
]


class Finding(Protocol):
    """As much of a diagnostic as an error needs to know; this module imports none."""

    @property
    def code(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


class GambitError(Exception):
    """Anything gambit_actors raises on purpose."""


class DeckError(GambitError):
    """The author of a deck wrote something that cannot be used."""


class ActionFailed(DeckError):
    """The code of an action said that it failed, or raised something.

    Attributes:
        code: for a program to tell failures apart.
        details: whatever the code had to add; JSON.
    """

    def __init__(self, message: str, *, code: str, details: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.details = details


class InvalidDeck(DeckError):
    """A deck has errors and cannot be used.

    Attributes:
        diagnostics: the errors, each with its place; at least one.
    """

    def __init__(self, diagnostics: Sequence[Finding]) -> None:
        first, *others = diagnostics
        place = f"{first.file}:{first.line}:{first.column}"
        more = f" (and {len(others)} more)" if others else ""
        super().__init__(f"{place}: {first.message} [{first.code}]{more}")
        self.diagnostics = tuple(diagnostics)


class SchemaError(DeckError):
    """A schema is not one that values can be checked against.

    Attributes:
        path: where in the schema, such as ``properties.age.minimum``.
        problem: what is wrong there, without the path.
        steps: the path key by key.
    """

    def __init__(
        self, path: str, problem: str, *, steps: Sequence[str | int] = ()
    ) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem
        self.steps = tuple(steps)


class RequestError(GambitError):
    """The caller asked for something that cannot be done as asked."""


class ProviderError(GambitError):
    """The remote side answered with something that cannot be used."""


class RunFailed(GambitError):
    """A run came to no result.

    Attributes:
        code: why, for a program.
        result: what it came to all the same: its items, and what it spent.
    """

    def __init__(self, code: str, message: str, result: object) -> None:
        super().__init__(message)
        self.code = code
        self.result = result


class GambitBug(GambitError):
    """A part of this library, or a plugin of it, broke the library's own rules."""


class WireError(GambitError):
    """A JSON document is not of the form that Open Responses gives it.

    Attributes:
        path: where in the document, such as ``input[2].content``; empty for the whole.
        problem: what is wrong there, without the path.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem


class BadRequest(WireError, RequestError):
    """A request document has the wrong form."""


class BadResponse(WireError, ProviderError):
    """A response document has the wrong form."""


class BadScript(RequestError):
    """A script for a model that is not there cannot be used.

    Attributes:
        problem: what is wrong, without the line.
        line: where in the text, from 1; None for a script that has none.
    """

    def __init__(self, problem: str, *, line: int | None = None) -> None:
        super().__init__(problem if line is None else f"line {line}: {problem}")
        self.problem = problem
        self.line = line


class EventTooLarge(ProviderError):
    """One server-sent event grew past the limit of the decoder that reads it."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            f"a streamed event is larger than the limit of {limit_bytes} bytes; "
            "raise max_event_bytes if that is expected"
        )
        self.limit_bytes = limit_bytes


class ScriptExhausted(ProviderError):
    """A scripted model has no reply, or none left, for what it was asked.

    Attributes:
        deck: the path of the deck that asked.
        turn: its turn.
        pass_number: which call of the model that was in the turn.
        last_message: what the model was told last, cut short.
    """

    def __init__(
        self, deck: str, *, turn: int, pass_number: int, last_message: str
    ) -> None:
        super().__init__(
            f"the script has no reply left for {deck} in turn {turn}, "
            f"pass {pass_number}; the last message was {last_message!r}"
        )
        self.deck = deck
        self.turn = turn
        self.pass_number = pass_number
        self.last_message = last_message


class StreamTruncated(ProviderError):
    """A stream ended without response.completed, .failed or .incomplete.

    What had arrived is kept by the builder: ``ResponseBuilder.partial()``.
    """

    def __init__(self, events_seen: int) -> None:
        super().__init__(
            f"the stream ended early: {events_seen} events and no "
            "response.completed, response.failed or response.incomplete among them"
        )
        self.events_seen = events_seen


class WriterMisuse(GambitBug):
    """ResponseWriter was asked for an event that has no legal place here."""
