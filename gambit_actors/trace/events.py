"""The vocabulary of traces, with the names that Gambit gave them.

An event is written once and never changed. ``time`` is in seconds since 1970.
``action_call_id`` names the span an event belongs to: for a deck it is an id of its
own, for a call the model's ``call_id``; ``parent_action_call_id`` is the span around.
A begin and its end have the same ``action_call_id``.
"""

from typing import Literal, TypeAlias

import msgspec

from gambit_actors.openresponses.base import JSONValue, written
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.items import Item
from gambit_actors.openresponses.responses import Usage

ToolKind: TypeAlias = Literal["action", "external", "internal", "builtin"]
DoubtChoice: TypeAlias = Literal["retry", "fail", "happened"]
Mode: TypeAlias = Literal["responses", "chat"]
EndStatus: TypeAlias = Literal["completed", "failed", "cancelled"]


class TraceError(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """Why something ended as it did."""

    code: str
    message: str


class _Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    tag_field="type",
    rename="camel",
    # Events hold values and lead nowhere else. The collector need not look at them,
    # and in a busy runtime there are more of them than of anything.
    gc=False,
):
    """What all events have."""

    run_id: str
    time: float
    action_call_id: str | None = None
    parent_action_call_id: str | None = None

    @property
    def type(self) -> str:
        """The name of the event."""
        return str(self.__struct_config__.tag)


class RunStart(_Event, tag="run.start", frozen=True, kw_only=True):
    """A run began, with all that is below it.

    Attributes:
        is_resumed: whether it goes on where another process had left it.
    """

    deck_path: str
    input: JSONValue = None
    initial_user_message: str | None = None
    permissions: JSONValue = None
    is_resumed: bool = False


class RunEnd(_Event, tag="run.end", frozen=True, kw_only=True):
    """A run ended. This one line tells the whole story.

    Attributes:
        usage: tokens of the whole tree.
        cost: of the whole tree; None where a price is not known.
        duration: in seconds.
    """

    deck_path: str
    status: EndStatus
    error: TraceError | None = None
    duration: float = 0.0
    passes: int = 0
    calls: int = 0
    decks: int = 0
    usage: Usage | None = None
    cost: float | None = None
    models: tuple[str, ...] = ()


class UserMessage(_Event, tag="message.user", frozen=True, kw_only=True):
    """Somebody said something to a deck."""

    deck_path: str
    message: str


class DeckStart(_Event, tag="deck.start", frozen=True, kw_only=True):
    """An actor began to work on a deck.

    Attributes:
        log_run_id: the id that its log has; that of a root is the run's own.
    """

    deck_path: str
    label: str | None = None
    depth: int = 0
    log_run_id: str | None = None
    permissions: JSONValue = None


class DeckEnd(_Event, tag="deck.end", frozen=True, kw_only=True):
    """An actor has ended a turn.

    Attributes:
        usage: tokens that the turn took, with all decks below.
        cost: the same in money; None where a price is not known.
    """

    deck_path: str
    status: EndStatus
    error: TraceError | None = None
    usage: Usage | None = None
    cost: float | None = None


class ActionStart(_Event, tag="action.start", frozen=True, kw_only=True):
    """An action of a deck began.

    Attributes:
        permissions: what its reference narrows those of the deck to, if it does.
    """

    name: str
    path: str
    permissions: JSONValue = None


class ActionEnd(_Event, tag="action.end", frozen=True, kw_only=True):
    """An action of a deck ended."""

    name: str
    path: str
    status: EndStatus = "completed"


class ToolCalled(_Event, tag="tool.call", frozen=True, kw_only=True):
    """The model asked for something."""

    name: str
    args: JSONValue
    tool_kind: ToolKind


class ToolResult(_Event, tag="tool.result", frozen=True, kw_only=True):
    """What it was given. ``result`` is the very text of the output."""

    name: str
    result: JSONValue
    tool_kind: ToolKind
    status: EndStatus = "completed"


class CallInDoubt(_Event, tag="call.in_doubt", frozen=True, kw_only=True):
    """A call had begun when a process ended, and nobody knows whether it happened.

    Attributes:
        log_run_id: the run in whose log the call is.
        attempt: which one it was.
        choice: what is done about it: ``retry``, ``fail``, or ``happened`` if somebody
            has said what it gave.
    """

    log_run_id: str
    deck_path: str
    name: str
    attempt: int
    choice: DoubtChoice


class ModelCall(_Event, tag="model.call", frozen=True, kw_only=True):
    """A model is asked.

    Attributes:
        response_items: what the model is told that it has not been told before in
            this run; the log has the rest.
        item_count: how many items it is told in all.
    """

    deck_path: str
    model: str
    pass_number: int
    stream: bool = True
    mode: Mode = written("responses")
    item_count: int = 0
    tool_count: int = 0
    response_items: tuple[Item, ...] = ()
    tools: tuple[str, ...] = ()


class ModelResult(_Event, tag="model.result", frozen=True, kw_only=True):
    """A model answered, or did not."""

    deck_path: str
    model: str
    pass_number: int
    status: str
    finish_reason: str
    mode: Mode = written("responses")
    message: str = ""
    response_items: tuple[Item, ...] = ()
    usage: Usage | None = None
    error: TraceError | None = None


class ModelFailover(_Event, tag="model.failover", frozen=True, kw_only=True):
    """A model could not be had, so the next one is asked."""

    deck_path: str
    model: str
    next_model: str
    error: TraceError


class ModelNotice(_Event, tag="model.notice", frozen=True, kw_only=True):
    """Something that happened on the way to an answer.

    Attributes:
        kind: ``left_out``, ``retry``, ``waited``, ``slowed``, ``whole_history`` or
            ``odd``.
        seconds: how long that took or takes, where that is of interest.
    """

    deck_path: str
    model: str
    kind: str
    message: str
    seconds: float | None = None


class StreamEvent(_Event, tag="model.stream.event", frozen=True, kw_only=True):
    """Something a model sent while it was answering, as it came."""

    deck_path: str
    model: str
    event: Event


class ItemLogged(_Event, tag="item.logged", frozen=True, kw_only=True):
    """An item is in the log, and may be shown."""

    deck_path: str
    item: Item
    source: str


class Log(_Event, tag="log", frozen=True, kw_only=True):
    """What a module had to say."""

    deck_path: str
    message: str
    level: str = "info"
    title: str | None = None
    body: JSONValue = None
    meta: JSONValue = None


class Monolog(_Event, tag="monolog", frozen=True, kw_only=True):
    """Words of a deck that only its parent's actions see."""

    deck_path: str
    content: str


class HandlerSaid(_Event, tag="handler.message", frozen=True, kw_only=True):
    """A handler had something to say to the user."""

    deck_path: str
    kind: Literal["busy", "idle", "error"]
    message: str
    elapsed_ms: int = 0


class Lagged(_Event, tag="trace.lagged", frozen=True, kw_only=True):
    """A subscriber was too slow, and has missed this many events; the log has them."""

    missed: int


TraceEvent: TypeAlias = (
    RunStart
    | RunEnd
    | UserMessage
    | DeckStart
    | DeckEnd
    | ActionStart
    | ActionEnd
    | ToolCalled
    | ToolResult
    | CallInDoubt
    | ModelCall
    | ModelResult
    | ModelFailover
    | ModelNotice
    | StreamEvent
    | ItemLogged
    | Log
    | Monolog
    | HandlerSaid
    | Lagged
)
