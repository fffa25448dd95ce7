"""How an actor is talked to: what goes into its mailbox, and asking it just once."""

from typing import Protocol, cast

import msgspec
import trio

from gambit_actors.actors.hook import ToolHook
from gambit_actors.errors import GambitBug
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.entries import TurnEnded


class Turn(msgspec.Struct, kw_only=True, eq=False, gc=False):
    """A message in a mailbox: what a deck is asked for.

    Attributes:
        context: what the deck is given to know; UNSET for nothing.
        message: what the user says; None if the deck is to speak first.
        is_continued: whether it was begun before, and its log says how far it came.
        is_last: whether nothing more will be asked.
        scope: what the work on it is done in; None until it has begun.
        is_cancelled: whether whoever asked has called it off.
    """

    context: JSONValue = msgspec.UNSET
    message: str | None = None
    is_continued: bool = False
    is_last: bool = False
    scope: trio.CancelScope | None = None
    is_cancelled: bool = False

    def cancel(self) -> None:
        """Call it off. What is under way for it stops, and it ends as cancelled."""
        self.is_cancelled = True
        if self.scope is not None:
            self.scope.cancel()

    def begin(self, deadline: float) -> trio.CancelScope:
        """Give the scope to work on it in, which ends at the deadline."""
        self.scope = trio.CancelScope(deadline=deadline)
        if self.is_cancelled:
            self.scope.cancel()
        return self.scope


# Called without their type, which costs as much again as the channel does.
open_turns = cast(type[trio.open_memory_channel[Turn]], trio.open_memory_channel)
open_answers = cast(type[trio.open_memory_channel[TurnEnded]], trio.open_memory_channel)


class Actor(Protocol):
    """Takes turns from a mailbox, one at a time, until that is closed."""

    async def run(
        self,
        inbox: trio.MemoryReceiveChannel[Turn],
        outbox: trio.MemorySendChannel[TurnEnded],
    ) -> None:
        """Answer each turn with the one end it comes to; close both when done."""


async def next_turn(inbox: trio.MemoryReceiveChannel[Turn]) -> Turn | None:
    """Wait for a turn; None when there will be no more.

    One that is there is taken at once: an actor is mostly started with its only one,
    and gives way soon enough in what it does for it.
    """
    try:
        return inbox.receive_nowait()  # noqa: ASYNC910  # see above
    except trio.WouldBlock:
        pass
    except trio.EndOfChannel:
        return None  # noqa: ASYNC910  # see above
    try:
        return await inbox.receive()
    except trio.EndOfChannel:
        return None  # noqa: ASYNC910  # it has waited


async def ask_once(
    actor: Actor, turn: Turn, *, hook: ToolHook | None = None
) -> TurnEnded:
    """Have an actor answer once, and wait until it is gone.

    Args:
        actor: who to ask.
        turn: what it is asked for.
        hook: what is to live as long as the actor does, if it is a root.
    """
    outbox, answers = open_answers(1)
    async with trio.open_nursery() as nursery:
        if hook is not None:
            hook.start(nursery)
        nursery.start_soon(actor.run, _mailbox_with(turn), outbox)
    try:
        return answers.receive_nowait()
    except trio.EndOfChannel:
        # Somebody raised a `trio.Cancelled` that was not for this run.
        msg = "the run was cut off by a cancel that was not for it"
        raise GambitBug(msg) from None


def _mailbox_with(turn: Turn) -> trio.MemoryReceiveChannel[Turn]:
    """A mailbox with one turn in it, and nobody to put in another."""
    turn.is_last = True
    mailbox, inbox = open_turns(1)
    with mailbox:
        mailbox.send_nowait(turn)
    return inbox
