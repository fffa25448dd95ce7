"""The entries of a run's log: everything that has to be known to go on with it.

Entries are written before what they tell is shown to anybody. They only ever grow:
new fields have defaults, fields never change their type, and kinds are never reused.
"""

from typing import Literal, TypeAlias

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import Item
from gambit_actors.openresponses.responses import Usage

ItemSource: TypeAlias = Literal[
    "deck", "user", "model", "tool", "handler", "action", "runtime"
]
"""Who an item is from. The deck's are its prompt and its context; an action's are what
its code adds besides its result."""

RunStatus: TypeAlias = Literal["completed", "failed", "cancelled"]


class _Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What all entries have in common."""


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Why something did not work, for a person and for a program."""

    code: str
    message: str
    details: JSONValue = None


class RunStarted(_Entry, tag="run.started", frozen=True, kw_only=True):
    """A run began: which deck, and for whom.

    Attributes:
        deck: its path as it may be shown.
        path: where it was read from, to find it again.
        root_run_id: the run that the whole tree began with; None if it is this.
        branched_from: the run whose beginning it shares, if it does.
    """

    run_id: str
    deck: str
    path: str = ""
    root_run_id: str | None = None
    parent_run_id: str | None = None
    parent_call_id: str | None = None
    branched_from: str | None = None
    depth: int = 0


class RunResumed(_Entry, tag="run.resumed", frozen=True, kw_only=True):
    """Somebody goes on with the run, in a process that had not been at it."""


class TurnStarted(_Entry, tag="turn.started", frozen=True, kw_only=True):
    """The deck is asked for something: limits count from here.

    Attributes:
        max_passes: how often the model may be called, as whoever runs the deck limits
            it; None leaves that to the deck.
    """

    max_passes: int | None = None


class ItemAdded(_Entry, tag="item", frozen=True, kw_only=True):
    """The conversation is one item longer."""

    item: Item
    source: ItemSource


class ModelAnswered(_Entry, tag="model.answered", frozen=True, kw_only=True):
    """A model call ended; the items it gave come after this.

    Attributes:
        asked: how it was asked, as `Program.asked` of the deck; empty if nobody noted.
    """

    model: str
    status: str
    response_id: str = ""
    reason: str | None = None
    usage: Usage | None = None
    asked: str = ""


class ModelLost(_Entry, tag="model.lost", frozen=True, kw_only=True):
    """A model call ended that broke off, or for another reason never said what it used.

    It is taken to have used what had been set aside for it. Without a limit that is
    nothing, and all that is known is that something was.

    Attributes:
        tokens: in and out.
        cost: the same in money.
    """

    model: str
    tokens: int = 0
    cost: float = 0.0


class CallStarted(_Entry, tag="call.started", frozen=True, kw_only=True):
    """A call is about to have effects. Its output, if there is one, comes later.

    Attributes:
        attempt: more than 1 if one had begun before, and nobody knows how it ended.
        run_id: if it is answered by a deck, the run that has its log.
    """

    call_id: str
    name: str
    kind: Literal["action", "tool", "builtin"]
    attempt: int = 1
    run_id: str | None = None


class CallNoted(_Entry, tag="call.noted", frozen=True, kw_only=True):
    """Something was said while a call is under way.

    Attributes:
        item: what joins the conversation, behind the output of the call.
    """

    call_id: str
    item: Item
    source: ItemSource


class ChildStarted(_Entry, tag="child.started", frozen=True, kw_only=True):
    """A deck is about to be run below this one, with a log of its own.

    Attributes:
        run_id: whose log that is.
        call_id: the call that it is part of; None for what no call is waiting for.
        path: the deck.
        asked: what it is asked, as a digest: the same call asks the same again.
    """

    run_id: str
    call_id: str | None = None
    path: str = ""
    asked: str = ""


class CallEnded(_Entry, tag="call.ended", frozen=True, kw_only=True):
    """A call has its output. It joins the conversation when its whole turn has them.

    Attributes:
        after: what else joins it then, behind the output.
    """

    call_id: str
    output: str
    after: tuple[ItemAdded, ...] = ()


class MetaSet(_Entry, tag="meta.set", frozen=True, kw_only=True):
    """The session keeps a value under a name, or with None forgets it."""

    key: str
    value: JSONValue = None


class TurnEnded(_Entry, tag="turn.ended", frozen=True, kw_only=True):
    """The deck has answered, or failed to.

    Attributes:
        result: the answer, checked and filled in.
        text: the answer as words, where it has any.
        envelope: what a responding deck said besides: status, message, code, meta.
        is_end: whether the deck asked for the whole conversation to stop.
    """

    status: RunStatus
    result: JSONValue = None
    text: str = ""
    envelope: dict[str, JSONValue] = {}
    is_end: bool = False
    failure: Failure | None = None


class RunEnded(_Entry, tag="run.ended", frozen=True, kw_only=True):
    """Nothing more will come, unless it is resumed.

    Attributes:
        status: how its last turn ended.
        code: why that failed, in a word.
        turns: how many there were.
        usage: tokens of the run, with all decks below it.
        cost: the same in money; None where a price is not known.
    """

    status: RunStatus
    code: str | None = None
    turns: int = 0
    usage: Usage | None = None
    cost: float | None = None


Entry: TypeAlias = (
    RunStarted
    | RunResumed
    | TurnStarted
    | ItemAdded
    | ModelAnswered
    | ModelLost
    | CallStarted
    | CallNoted
    | ChildStarted
    | CallEnded
    | MetaSet
    | TurnEnded
    | RunEnded
)
