"""Actions: a deck as a child actor, or an author's code.

A child lives in the nursery of the call that asked for it, talks to it over a channel,
and cannot outlive it. Whatever goes wrong in it is an envelope to its parent.
"""

import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import msgspec
import trio

from gambit_actors.actors.mailboxes import Turn, ask_once
from gambit_actors.actors.telling import Teller
from gambit_actors.actors.trees import Bounds, PastRun, RunTree, new_id
from gambit_actors.deck.model import Deck
from gambit_actors.deck.permissions import Permissions
from gambit_actors.run.budgets import Account
from gambit_actors.run.calls import ActionCall
from gambit_actors.run.entries import (
    ChildStarted,
    Entry,
    Failure,
    RunStarted,
    TurnEnded,
)
from gambit_actors.run.envelopes import Envelope, envelope_from, refusal
from gambit_actors.run.programs import Program
from gambit_actors.run.secrets import secrets_in, without_secrets
from gambit_actors.run.states import RunState

Append: TypeAlias = Callable[[Sequence[Entry]], Awaitable[None]]
"""Writes entries down, counts them, and shows them."""


_encode = msgspec.json.Encoder().encode


class Asker(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """An actor, or code in one of its actions, as those below know it."""

    tree: RunTree
    program: Program
    bounds: Bounds
    run: RunStarted
    state: RunState
    append: Append
    teller: Teller
    account: Account
    is_code: bool = False

    @property
    def depth_below(self) -> int:
        """How deep what it asks for is. Code is a level of its own."""
        return self.run.depth + 1 + self.is_code


async def run_deck(
    asker: Asker,
    deck: Deck,
    turn: Turn,
    *,
    call_id: str | None = None,
    permissions: Permissions | None = None,
    run_id: str | None = None,
) -> TurnEnded:
    """Run a deck as a child, for one answer.

    What a process that is no more had begun is gone on with, and what it had finished
    is not done again.

    Args:
        asker: whose child it is.
        deck: what to run.
        turn: what it is asked for.
        call_id: the call it answers; None if no model asked for it.
        permissions: what narrows those that the asker leaves it.
        run_id: where its log is, if that is in the asker's log already.
    """
    depth = asker.depth_below
    too_deep = too_deep_for(asker)
    if too_deep is not None:
        await trio.lowlevel.checkpoint()
        return TurnEnded(status="failed", failure=too_deep)
    past = None if run_id is None else asker.tree.past.pop(run_id, None)
    if run_id is None:
        # Claimed before anything is waited for: others may ask for the same.
        past = _claimed(asker, deck, turn, call_id=call_id)
        run_id = past.run.run_id if past else await _noted(asker, deck, turn, call_id)
    if past is not None and past.state.ended is not None:
        await trio.lowlevel.checkpoint()
        return past.state.ended
    program = asker.tree.programs.below(asker.program, deck, permissions)
    asker.tree.expect_code(program)
    run = RunStarted(
        run_id=run_id,
        deck=program.name,
        path=deck.path,
        root_run_id=asker.teller.run_id,
        parent_run_id=asker.run.run_id,
        parent_call_id=call_id or asker.teller.span,
        depth=depth,
    )
    return await _ask_child(asker, program, run, turn, past)


def too_deep_for(asker: Asker) -> Failure | None:
    """Why nothing may be run below an actor any more; None if it may."""
    if asker.depth_below < asker.bounds.max_depth:
        return None
    words = f"decks may be {asker.bounds.max_depth} deep, and this is one more"
    return Failure(code="max_depth", message=words)


async def _ask_child(
    asker: Asker, program: Program, run: RunStarted, turn: Turn, past: PastRun | None
) -> TurnEnded:
    # Late, because an actor runs its children and a child is an actor.
    from gambit_actors.actors.actor import DeckActor  # noqa: PLC0415

    tree = asker.tree
    reopened = None if past is None else await tree.store.reopen_log(run.run_id)
    actor = DeckActor(
        tree,
        program,
        run if past is None else past.run,
        bounds=asker.bounds,
        account=asker.account,
        reopened=reopened,
    )
    if past is not None and past.is_open:
        actor.spent_before = past.spent_in_turn
        turn = Turn(is_continued=True)
    return await ask_once(actor, turn)


def _claimed(
    asker: Asker, deck: Deck, turn: Turn, *, call_id: str | None
) -> PastRun | None:
    """What code asked for before, if its call is made again and it asks again."""
    past = asker.tree.past
    if not past or call_id is None:
        return None
    digests = (_digest(asker, deck, turn), _old_digest(turn))
    for child in asker.state.children:
        found = past.get(child.run_id)
        if found is None or found.is_cancelled:
            continue
        same = (child.call_id, found.deck_path) == (call_id, deck.path)
        if same and child.asked in digests:
            return past.pop(child.run_id)
    return None


async def _noted(asker: Asker, deck: Deck, turn: Turn, call_id: str | None) -> str:
    """Note that a deck is going to be run; gives the run that has its log."""
    digest = _digest(asker, deck, turn)
    started = ChildStarted(
        run_id=new_id("run"), call_id=call_id, path=deck.path, asked=digest
    )
    await asker.append([started])
    return started.run_id


def _digest(asker: Asker, deck: Deck, turn: Turn) -> str:
    """What a deck is asked, in short, for a log: no secret is to be guessed from it.

    Secrets are struck out before, as they are from all that a log has; what is left is
    told apart from the same in other runs.
    """
    secrets = asker.tree.secrets | secrets_in(turn.context, deck.context_schema)
    text = _as_text(turn)
    with contextlib.suppress(msgspec.DecodeError, ValueError, RecursionError):
        text = without_secrets(text, secrets)
    salt = asker.run.run_id.encode()
    return hashlib.sha256(salt + b"\0" + text).hexdigest()[:16]


def _old_digest(turn: Turn) -> str:
    """The same in a log that is older than that."""
    return hashlib.sha256(_as_text(turn)).hexdigest()[:16]


def _as_text(turn: Turn) -> bytes:
    """What a deck is asked; anything at all may be in there."""
    context = None if turn.context is msgspec.UNSET else turn.context
    try:
        return _encode([context, turn.message])
    except (TypeError, ValueError, RecursionError):
        return repr((context, turn.message)).encode(errors="replace")


async def run_child(
    asker: Asker, plan: ActionCall, deck: Deck, *, run_id: str | None
) -> Envelope:
    """Run a deck as an action, and give what it came to."""
    ended = await run_deck(
        asker,
        deck,
        Turn(context=plan.input),
        call_id=plan.call.call_id,
        permissions=plan.action.permissions,
        run_id=run_id,
    )
    if ended.failure is None:
        return answer_envelope(deck, ended)
    return failure_envelope(ended.failure)


def answer_envelope(deck: Deck, ended: TurnEnded) -> Envelope:
    """An answer as whoever had asked gets it.

    What was given by ``gambit_respond`` has said what is result and what is about it.
    Any other answer is looked through for that, like what code or a tool returns.
    """
    if deck.respond or ended.is_end or ended.envelope:
        return Envelope(payload=ended.result, **ended.envelope)
    return envelope_from(ended.result)


def failure_envelope(failure: Failure) -> Envelope:
    """A failure as the model that had asked reads it."""
    statuses = {"timeout": 504, "max_depth": 508}
    return refusal(statuses.get(failure.code, 500), failure.code, failure.message)
