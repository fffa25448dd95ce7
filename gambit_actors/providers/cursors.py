"""Where servers are in conversations that they keep: a cache, and never the truth.

A server that keeps responses can be told ``previous_response_id`` and only what is new.
The log has the conversation in any case, so a cursor may be lost at any time: then
everything is sent. It counts only inside a run: what a fresh run knows comes from its
log and from nobody's memory.
"""

from collections import OrderedDict
from collections.abc import Callable

import msgspec

from gambit_actors.openresponses.events import (
    ErrorEvent,
    Event,
    ResponseCreated,
    ResponseFailed,
    ResponseInProgress,
    ResponseQueued,
)
from gambit_actors.openresponses.followup import in_input_form, items_of_input
from gambit_actors.openresponses.items import Item
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.run.ports import ModelContext

MOST_CURSORS = 10_000

_SAYS_NOTHING = (
    ErrorEvent,
    ResponseCreated,
    ResponseFailed,
    ResponseInProgress,
    ResponseQueued,
)


class Cursors:
    """Remembers, for runs that asked lately, what a server has of their conversation.

    Args:
        most: of how many runs; the one that has not asked for longest is forgotten.
    """

    def __init__(self, most: int = MOST_CURSORS) -> None:
        self._most = most
        self._known: OrderedDict[tuple[str, str], tuple[str, tuple[Item, ...]]] = (
            OrderedDict()
        )

    def shortened(
        self, request: CreateResponse, context: ModelContext
    ) -> CreateResponse | None:
        """The request without what the server has; None if it has to have it all.

        It has to if the conversation is not what the server was told and has said,
        item by item: the runtime may have changed an id, or cut an answer short.
        """
        found = self._known.get(_key(request, context))
        if found is None:
            return None
        response_id, known = found
        items = items_of_input(request)
        if len(items) <= len(known) or items[: len(known)] != known:
            return None
        return msgspec.structs.replace(
            request, input=items[len(known) :], previous_response_id=response_id
        )

    def remember(
        self, request: CreateResponse, context: ModelContext, response: Response
    ) -> None:
        """Note what a server has now: all that it was told, and what it said."""
        key = _key(request, context)
        if response.status != "completed":
            # What the conversation keeps of it is not what the server said.
            self.forget(request, context)
            return
        said = tuple(in_input_form(item) for item in response.output)
        self._known[key] = (response.id, (*items_of_input(request), *said))
        self._known.move_to_end(key)
        if len(self._known) > self._most:
            self._known.popitem(last=False)

    def forget(self, request: CreateResponse, context: ModelContext) -> None:
        """The server has lost it, or may have something else."""
        self._known.pop(_key(request, context), None)


class Beginning:
    """Holds back how an answer begins, as long as there may have to be another.

    A server may say in a stream that it has lost the conversation. Then it is told all
    of it, and who asked sees the one answer that there is.

    Args:
        on_event: takes the events that are shown.

    Attributes:
        is_shown: whether something was shown, and there can be no other answer.
    """

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        self.is_shown = False
        self._on_event = on_event
        self._held: list[Event] = []

    def take(self, event: Event) -> None:
        """Show an event, unless it says nothing yet."""
        if not self.is_shown and isinstance(event, _SAYS_NOTHING):
            self._held.append(event)
            return
        self.show()
        self._on_event(event)

    def show(self) -> None:
        """Show what was held back."""
        self.is_shown = True
        held, self._held = self._held, []
        for event in held:
            self._on_event(event)


def _key(request: CreateResponse, context: ModelContext) -> tuple[str, str]:
    return context.run_id, request.model or ""
