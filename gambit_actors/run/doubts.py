"""Calls that nobody knows the outcome of, and what is to be done about them.

A call is noted before it begins. If the process ends before its output is noted, the
call may have had its effect or not: it is in doubt. Whoever goes on with the run does
what the author of the deck chose, or what somebody who has looked says:

    retry   do it again, with the same idempotency key and ``attempt`` + 1
    fail    tell the model that nobody knows
    ask     do nothing before somebody has said what happened
"""

from typing import Literal, TypeAlias

import msgspec

from gambit_actors.deck.model import Action, Link, OnDoubt, Tool
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall
from gambit_actors.run.builtins import BuiltinTool
from gambit_actors.run.entries import CallStarted
from gambit_actors.run.envelopes import Envelope, refusal
from gambit_actors.run.programs import Program, RuntimeTool
from gambit_actors.run.secrets import lacks_secrets
from gambit_actors.run.states import RunState


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody has looked: the call did happen, and this is what it gave.

    Attributes:
        value: the payload, or a whole envelope.
    """

    value: JSONValue = None


Answer: TypeAlias = Literal["retry", "fail"] | Happened
"""What is to be done about a call in doubt."""


class Doubt(msgspec.Struct, frozen=True, kw_only=True):
    """A call that had begun, and of whose outcome nothing is known.

    Attributes:
        key: its idempotency key; the same in every attempt, and no other call's.
        deck: whose call it is, by the path that is shown.
        arguments: as the model gave them.
        attempt: which one it was, counted from 1.
        choice: what the author of the deck wants done; ``ask`` where that cannot be.
        lacks_secrets: whether there were secrets in the arguments, which the log does
            not have. Then it cannot be made again.
    """

    key: str
    run_id: str
    call_id: str
    name: str
    deck: str
    arguments: str
    attempt: int
    choice: OnDoubt
    lacks_secrets: bool = False


def idempotency_key(run_id: str, call_id: str) -> str:
    """What names a call to whoever carries it out, in all its attempts."""
    return f"{run_id}:{call_id}"


def doubts_of(program: Program, state: RunState, *, run_id: str) -> list[Doubt]:
    """The calls of one run that are in doubt, in the order in which they were made.

    A deck that was to be asked again is not among them: it has a log of its own, which
    says how far it came.
    """
    found = []
    for call_id, started in state.started.items():
        call = state.pending.get(call_id)
        if call is None or call_id in state.finished or is_taken_up(program, started):
            continue
        found.append(
            Doubt(
                key=idempotency_key(run_id, call_id),
                run_id=run_id,
                call_id=call_id,
                name=call.name,
                deck=program.name,
                arguments=call.arguments,
                attempt=started.attempt,
                choice=choice_about(program, started, call),
                lacks_secrets=lacks_secrets(call.arguments),
            )
        )
    return found


def choice_for(program: Program, started: CallStarted) -> OnDoubt:
    """What the author wants done about a call that had begun.

    If the name stands for something else by now, nobody has said, and is asked.
    """
    offer = program.offers.get(started.name)
    match offer:
        case Action() if started.kind == "action":
            is_deck = isinstance(offer.target, Link)
            return offer.on_doubt if is_deck == (started.run_id is not None) else "ask"
        case Tool() | RuntimeTool() if started.kind == "tool":
            return offer.on_doubt
        case BuiltinTool(kind="read"):
            return "retry"
        case BuiltinTool():
            # The model can look whether it happened.
            return "fail"
        case _:
            return "ask"


def choice_about(program: Program, started: CallStarted, call: FunctionCall) -> OnDoubt:
    """What is done about a call in doubt: what the author wants, if that can be."""
    choice = choice_for(program, started)
    if choice != "retry" or not lacks_secrets(call.arguments):
        return choice
    return "fail" if started.kind == "builtin" else "ask"


def is_taken_up(program: Program, started: CallStarted) -> bool:
    """Whether a call that had begun is a deck, which goes on from its own log."""
    return started.run_id is not None and choice_for(program, started) == "retry"


def secret_lost(name: str) -> Envelope:
    """What a model is told of a call that could only be made with other arguments."""
    message = (
        f"{name} was not carried out: its arguments had secrets, which were not kept "
        "when the process ended"
    )
    return refusal(500, "secret_lost", message)


def in_doubt(name: str, attempt: int) -> Envelope:
    """What a model is told of a call that nobody knows the outcome of."""
    message = (
        f"the process ended while {name} was under way (attempt {attempt}), and "
        "it is not known whether it happened"
    )
    return refusal(500, "in_doubt", message)
