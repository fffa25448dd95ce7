"""Actions: a deck as a child actor, or an author's code.

A child lives in the nursery of the call that asked for it, talks to it over a channel,
and cannot outlive it. Whatever goes wrong in it is an envelope to its parent.
"""

from typing import TYPE_CHECKING

import msgspec
import trio

from gambit_actors.actors.compute import ComputeContext, run_compute
from gambit_actors.actors.trees import new_id
from gambit_actors.deck.model import Link, Module
from gambit_actors.errors import ActionFailed, DeckError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.calls import ActionCall, problem_words
from gambit_actors.run.entries import RunStarted, TurnEnded
from gambit_actors.run.envelopes import Envelope, envelope_from, refusal

if TYPE_CHECKING:
    from gambit_actors.actors.carrying_out import CallRunner


async def run_child(runner: "CallRunner", plan: ActionCall, link: Link) -> Envelope:
    """Run a deck as a child, and give what it came to."""
    # Late, because an actor carries out calls and a call may be an actor.
    from gambit_actors.actors.actor import DeckActor, Turn  # noqa: PLC0415

    depth = runner.run.depth + 1
    if depth >= runner.limits.max_depth:
        await trio.lowlevel.checkpoint()
        message = f"decks may be {runner.limits.max_depth} deep, and this is one more"
        return refusal(508, "max_depth", message)
    program = runner.tree.child_program(
        runner.program, link.deck, plan.action.permissions
    )
    run = RunStarted(
        run_id=new_id("run"),
        deck=program.name,
        parent_run_id=runner.run.run_id,
        parent_call_id=plan.call.call_id,
        depth=depth,
    )
    actor = DeckActor(runner.tree, program, runner.limits, run)
    mailbox, inbox = trio.open_memory_channel[Turn](1)
    answer, answers = trio.open_memory_channel[TurnEnded](1)
    with answer, answers:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(actor.run, inbox)
            with mailbox:
                mailbox.send_nowait(Turn(context=plan.input, answer=answer))
        return envelope_from_turn(answers.receive_nowait())


def envelope_from_turn(ended: TurnEnded) -> Envelope:
    """What a parent is told of a child's turn."""
    failure = ended.failure
    if failure is not None:
        status = 504 if failure.code == "timeout" else 500
        return refusal(status, failure.code, failure.message)
    return Envelope(payload=ended.result, **ended.envelope)


async def run_module(runner: "CallRunner", plan: ActionCall) -> Envelope:
    """Run an author's code, and give what it returned."""
    await trio.lowlevel.checkpoint()
    module = plan.action.target
    assert isinstance(module, Module)  # noqa: S101  # `carrying_out` has looked
    if plan.action.permissions is not None:
        needed = plan.action.name not in runner.tree.unconfined
        if needed:
            message = (
                f"{plan.action.name} declares permissions, and nothing here can keep it"
                " to them"
            )
            return refusal(501, "cannot_confine", message)
    try:
        deck = await trio.to_thread.run_sync(runner.tree.modules.load, module.path)
        result = await run_compute(deck, _context(runner, plan))
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


def _context(runner: "CallRunner", plan: ActionCall) -> ComputeContext:
    call_id = plan.call.call_id

    def log(fields: dict[str, JSONValue]) -> None:
        runner.teller.log(call_id, fields)

    async def spawn(
        path: str, input: JSONValue, *, message: str | None = None
    ) -> JSONValue:
        await trio.lowlevel.checkpoint()
        del input, message
        msg = f"{path} cannot be started from code in this release"
        raise ActionFailed(msg, code="unsupported")

    return ComputeContext(
        input=plan.input,
        run_id=runner.run.run_id,
        action_call_id=call_id,
        depth=runner.run.depth + 1,
        on_log=log,
        spawn=spawn,
    )
