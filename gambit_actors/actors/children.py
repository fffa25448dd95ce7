"""Actions: a deck as a child actor, or an author's code.

A child lives in the nursery of the call that asked for it, talks to it over a channel,
and cannot outlive it. Whatever goes wrong in it is an envelope to its parent.
"""

import msgspec
import trio

from gambit_actors.actors.compute import ComputeContext, run_compute
from gambit_actors.actors.mailboxes import ask_once
from gambit_actors.actors.telling import Teller
from gambit_actors.actors.trees import Bounds, RunTree, new_id
from gambit_actors.deck.model import Deck, Module
from gambit_actors.deck.permissions import Permissions
from gambit_actors.errors import ActionFailed, DeckError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.budgets import Account
from gambit_actors.run.calls import ActionCall, problem_words
from gambit_actors.run.entries import Failure, RunStarted, TurnEnded
from gambit_actors.run.envelopes import Envelope, envelope_from, refusal
from gambit_actors.run.programs import Program
from gambit_actors.schema.schemas import joined


class Asker(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """An actor, as those below it know it."""

    tree: RunTree
    program: Program
    bounds: Bounds
    run: RunStarted
    teller: Teller
    account: Account


async def run_deck(
    asker: Asker,
    deck: Deck,
    context: JSONValue,
    *,
    message: str | None = None,
    call_id: str | None = None,
    permissions: Permissions | None = None,
) -> TurnEnded:
    """Run a deck as a child, for one answer.

    Args:
        asker: whose child it is.
        deck: what to run.
        context: what it is given.
        message: what it is told as if by a user.
        call_id: the call it answers; None if no model asked for it.
        permissions: what narrows those that the asker leaves it.
    """
    # Late, because an actor runs its children and a child is an actor.
    from gambit_actors.actors.actor import DeckActor  # noqa: PLC0415

    depth = asker.run.depth + 1
    if depth >= asker.bounds.max_depth:
        await trio.lowlevel.checkpoint()
        words = f"decks may be {asker.bounds.max_depth} deep, and this is one more"
        return TurnEnded(
            status="failed", failure=Failure(code="max_depth", message=words)
        )
    program = asker.tree.programs.below(asker.program, deck, permissions)
    run = RunStarted(
        run_id=new_id("run"),
        deck=program.name,
        root_run_id=asker.teller.run_id,
        parent_run_id=asker.run.run_id,
        parent_call_id=call_id or asker.teller.span,
        depth=depth,
    )
    actor = DeckActor(
        asker.tree, program, run, bounds=asker.bounds, account=asker.account
    )
    return await ask_once(actor, context, message)


async def run_child(asker: Asker, plan: ActionCall, deck: Deck) -> Envelope:
    """Run a deck as an action, and give what it came to."""
    ended = await run_deck(
        asker,
        deck,
        plan.input,
        call_id=plan.call.call_id,
        permissions=plan.action.permissions,
    )
    failure = ended.failure
    if failure is None:
        return Envelope(payload=ended.result, **ended.envelope)
    statuses = {"timeout": 504, "max_depth": 508}
    return refusal(statuses.get(failure.code, 500), failure.code, failure.message)


async def run_module(asker: Asker, plan: ActionCall, module: Module) -> Envelope:
    """Run an author's code, and give what it returned."""
    await trio.lowlevel.checkpoint()
    action = plan.action
    if action.permissions is not None and action.name not in asker.tree.unconfined:
        message = (
            f"{action.name} declares permissions, and nothing here can keep it to them"
        )
        return refusal(501, "cannot_confine", message)
    try:
        file = asker.tree.real_path(module.path)
        deck = await trio.to_thread.run_sync(asker.tree.modules.load, file)
        result = await run_compute(deck, _context(asker, plan, module))
    except ActionFailed as problem:
        details = {"details": problem.details} if problem.details is not None else None
        return Envelope(
            status=500, code=problem.code, message=str(problem), meta=details
        )
    except DeckError as problem:
        return refusal(500, "module_error", str(problem))
    return _checked(module, envelope_from(result))


def _checked(module: Module, envelope: Envelope) -> Envelope:
    """Hold what code returned against what it said it would."""
    if envelope.is_error:
        return envelope
    payload = None if envelope.payload is msgspec.UNSET else envelope.payload
    checked = module.response_schema.validator.check(payload)
    if checked.is_valid:
        return msgspec.structs.replace(envelope, payload=checked.value)
    words = problem_words(checked.problems)
    message = f"it returned what its responseSchema does not allow: {words}"
    return refusal(500, "invalid_result", message)


def _context(asker: Asker, plan: ActionCall, module: Module) -> ComputeContext:
    call_id = plan.call.call_id

    def log(fields: dict[str, JSONValue]) -> None:
        asker.teller.log(call_id, fields)

    async def spawn(
        path: str, input: JSONValue, *, message: str | None = None
    ) -> JSONValue:
        deck = await asker.tree.load(joined(module.path, path))
        ended = await run_deck(asker, deck, input, message=message, call_id=call_id)
        if ended.failure is not None:
            words = f"{path} failed: {ended.failure.message}"
            raise ActionFailed(words, code=ended.failure.code)
        return ended.result

    return ComputeContext(
        input=plan.input,
        run_id=asker.run.run_id,
        action_call_id=call_id,
        depth=asker.run.depth + 1,
        on_log=log,
        spawn=spawn,
    )
