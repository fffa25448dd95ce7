"""Who is at work in a run: which deck, how deep below the first, and for which call.

It is told of events in their order, and remembers as much of them as one turn has.
"""

from typing import Literal

import msgspec

from gambit_actors.run.synthetic import CONTEXT_NAMES, RESPOND
from gambit_actors.trace.events import DeckStart, ToolCalled, ToolResult

_BAD = 400
"""From here on a status says that something went wrong, as in HTTP."""


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """As much of an envelope as it takes to see that a call failed."""

    status: int | None = None
    code: str | None = None
    message: str | None = None

    @property
    def problem(self) -> str | None:
        """What it says went wrong; None if nothing did."""
        if self.status is None or self.status < _BAD:
            return None
        return self.message or self.code or str(self.status)


class _Reason(msgspec.Struct, frozen=True, kw_only=True):
    message: str


class _Source(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    action_name: str


class _Failed(msgspec.Struct, frozen=True, kw_only=True):
    """What an error handler is given to know."""

    kind: Literal["error"]
    source: _Source
    error: _Reason


_envelope = msgspec.json.Decoder(Envelope)
_failed = msgspec.json.Decoder(_Failed)


class Speakers:
    """The decks and calls of one turn."""

    def __init__(self) -> None:
        # By the span of the deck.
        self._decks: dict[str | None, DeckStart] = {}
        self._handlers: set[str | None] = set()
        # By the id of the call.
        self._calls: dict[str | None, ToolCalled] = {}
        self._handled: dict[str | None, str] = {}

    def began(self, event: DeckStart) -> None:
        """A deck is at work."""
        self._decks[event.action_call_id] = event

    def called(self, event: ToolCalled) -> None:
        """A deck has called something."""
        self._calls[event.action_call_id] = event

    def depth_of(self, span: str | None) -> int:
        """How many decks are above one."""
        deck = self._decks.get(span)
        return 0 if deck is None else deck.depth

    def failure_handled(self, event: ToolResult) -> tuple[str, str] | None:
        """The call that an error handler is asked about, and what went wrong with it.

        None if the event does not begin an error handler.
        """
        deck = self._decks.get(event.parent_action_call_id)
        call = None if deck is None else self._calls.get(deck.parent_action_call_id)
        if call is None or event.name not in CONTEXT_NAMES:
            return None
        try:
            failed = _failed.decode(str(event.result))
        except msgspec.DecodeError:
            return None
        if failed.source.action_name != call.name:
            return None
        self._handlers.add(event.parent_action_call_id)
        self._handled[call.action_call_id] = failed.error.message
        return call.name, failed.error.message

    def was_told(self, event: ToolResult, problem: str) -> bool:
        """Whether what went wrong with a call was told when its handler began."""
        return self._handled.get(event.action_call_id) == problem

    def answerer(self, event: ToolResult) -> str | None:
        """Who answers in a result: a deck that says itself that something is wrong.

        None for all other results, and for an answer of a deck that was refused.
        """
        call, deck = self._calls.get(event.action_call_id), event.parent_action_call_id
        if event.name != RESPOND or call is None or deck not in self._decks:
            return None
        said, given = envelope_in(str(call.args)), envelope_in(str(event.result))
        if said != given or given.problem is None:
            return None
        path = self._decks[deck].deck_path.removesuffix("/PROMPT.md")
        return f"its error handler, {path}," if deck in self._handlers else path


def envelope_in(output: str) -> Envelope:
    """The envelope that an output is; an empty one if it is none."""
    try:
        return _envelope.decode(output)
    except msgspec.DecodeError:
        return Envelope()
