"""The exceptions of gambit_actors, in one tree, split by whose fault it is.

::

    GambitError
    ├── DeckError             the author of a deck wrote something that cannot be
    │   ├── ActionFailed      the code of an action said, or showed, that it failed
    │   ├── InvalidDeck       a deck has errors, which it lists
    │   └── SchemaError       a schema is not one that values can be checked against
    ├── RequestError          the caller asked for something that cannot be
    │   ├── BadRequest        a request document has the wrong form
    │   ├── BadScript         a script for a model is not one
    │   ├── InDoubt           a run cannot go on before somebody has said something
    │   └── InvalidSettings   gambit.toml or the environment says what cannot be
    ├── ProviderError         the other side of the wire broke a promise
    │   ├── BadResponse       a response document has the wrong form
    │   ├── EventTooLarge     one streamed event is larger than we agreed to hold
    │   ├── ScriptExhausted   a scripted model has no reply for what it was asked
    │   ├── StreamTruncated   a stream ended before it said how it went
    │   └── ...               what goes wrong on the way: gambit_actors.providers.errors
    ├── RunFailed             a run came to no result, and says why
    ├── StoreError            what was to be kept could not be
    │   ├── CorruptLog        a log is damaged, at a place that is told
    │   ├── LogBroken         the disk does not take or give what belongs in a log
    │   ├── LogGrown          somebody else went on with a run that was looked at
    │   ├── LogInUse          somebody else is writing the log
    │   ├── LogLost           the file of a log was taken away or changed meanwhile
    │   ├── NoSuchRun         there is no log of a run
    │   └── NotWritable       something has no form in which a log could keep it
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
    "CorruptLog",
    "DeckError",
    "EventTooLarge",
    "GambitBug",
    "GambitError",
    "InDoubt",
    "InvalidDeck",
    "InvalidSettings",
    "LogBroken",
    "LogGrown",
    "LogInUse",
    "LogLost",
    "NoSuchRun",
    "NotWritable",
    "ProviderError",
    "RequestError",
    "RunFailed",
    "SchemaError",
    "ScriptExhausted",
    "StoreError",
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


class DoubtfulCall(Protocol):
    """As much of a call in doubt as an error needs to know."""

    @property
    def key(self) -> str: ...
    @property
    def name(self) -> str: ...


class InDoubt(RequestError):
    """A run was interrupted in a call that may have happened, and it asks about that.

    Attributes:
        doubts: the calls to be asked about; at least one.
    """

    def __init__(self, doubts: Sequence[DoubtfulCall]) -> None:
        names = ", ".join(f"{doubt.name} ({doubt.key})" for doubt in doubts)
        super().__init__(
            f"nobody knows whether this has happened: {names}; resume the run with an "
            "answer for each: retry, fail, or what it gave"
        )
        self.doubts = tuple(doubts)


class InvalidSettings(RequestError):
    """What a settings file or the environment says cannot be.

    Attributes:
        diagnostics: what is wrong with a file, each with its place; empty if it is the
            environment that is wrong.
    """

    def __init__(self, message: str, diagnostics: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)


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


class StoreError(GambitError):
    """What was to be kept could not be, or cannot be had back."""


class CorruptLog(StoreError):
    """A log is damaged, and nothing after the damage can be relied on.

    Attributes:
        path: the file.
        line: which line is wrong, from 1.
        offset: where that line begins, in bytes.
        reason: what is wrong with it.
    """

    def __init__(self, path: str, *, line: int, offset: int, reason: str) -> None:
        where = f"line {line} of the log {path}" if path else f"line {line} of the log"
        super().__init__(f"{where}, at byte {offset}, is damaged: {reason}")
        self.path = path
        self.line = line
        self.offset = offset
        self.reason = reason


class LogBroken(StoreError):
    """The disk does not take, or does not give, what belongs in a log.

    Attributes:
        path: the file, or the folder it was to be in.
        errno: the number of the system's error.
        reason: the system's words for it.
    """

    def __init__(
        self, path: str, *, errno: int, reason: str, deed: str, advice: str
    ) -> None:
        super().__init__(f"{path} cannot be {deed} ({reason}); {advice}")
        self.path = path
        self.errno = errno
        self.reason = reason


class LogGrown(StoreError):
    """Somebody else went on with a run between a look at its log and its taking over.

    Attributes:
        run_id: the run.
    """

    def __init__(self, run_id: str) -> None:
        super().__init__(
            f"somebody else went on with run {run_id} meanwhile: try again"
        )
        self.run_id = run_id


class LogInUse(StoreError):
    """Somebody else is writing the log of a run.

    Attributes:
        run_id: the run.
        host: the machine of who writes it.
        pid: the process there.
        since: when that process opened its store, in UTC.
    """

    def __init__(self, run_id: str, *, host: str, pid: int, since: str) -> None:
        super().__init__(
            f"the log of run {run_id} is in use by process {pid} on {host}, "
            f"which has been there since {since}"
        )
        self.run_id = run_id
        self.host = host
        self.pid = pid
        self.since = since


class LogLost(StoreError):
    """The file of a log is not what its writer left there.

    Attributes:
        path: the file.
        reason: what became of it, as far as can be told.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"the log {path} {reason}; nothing more is written to it")
        self.path = path
        self.reason = reason


class NoSuchRun(StoreError):
    """There is no log of a run, or no entry in it.

    Attributes:
        run_id: the run.
        folder: where it was looked for.
    """

    def __init__(self, run_id: str, folder: str) -> None:
        super().__init__(f"there is no log of run {run_id} in {folder}")
        self.run_id = run_id
        self.folder = folder


class NotWritable(StoreError):
    """Something has no form in which a log could keep it; the log is as it was.

    Attributes:
        run_id: the run whose log it is.
    """

    def __init__(self, run_id: str, reason: str) -> None:
        super().__init__(f"the log of run {run_id} cannot keep this: {reason}")
        self.run_id = run_id


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
