"""What a run does next, as a function of its state and of nothing else.

::

    a turn ended                     -> Finish, as it did
    the answer was cut or failed     -> Finish, failed
    calls without outputs            -> RunTools
    a result or an end was given     -> Finish with it
    an answer in text                -> Finish with it, if it fits the schema; else
                                        CallModel, having told it what is wrong
    passes left                      -> CallModel
    none left                        -> Finish, failed
"""

import contextlib
import re
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall, user_message
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.run.calls import RespondCall, plan_call, problem_words
from gambit_actors.run.entries import (
    Entry,
    Failure,
    ItemAdded,
    ModelAnswered,
    TurnEnded,
)
from gambit_actors.run.envelopes import Envelope
from gambit_actors.run.nesting import TOO_DEEP, is_too_deep
from gambit_actors.run.programs import Program
from gambit_actors.run.states import RunState

MAX_PASSES = 10
MAX_REPAIRS = 2

_decode = msgspec.json.Decoder().decode
_FENCED = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL | re.IGNORECASE)


class CallModel(msgspec.Struct, frozen=True, gc=False):
    """The model is to be asked. First these entries are to be logged."""

    request: CreateResponse
    first: tuple[Entry, ...] = ()


class RunTools(msgspec.Struct, frozen=True, gc=False):
    """These calls are to be carried out, side by side."""

    calls: tuple[FunctionCall, ...]


class Finish(msgspec.Struct, frozen=True, gc=False):
    """The turn is over; this is how."""

    ended: TurnEnded


Step: TypeAlias = CallModel | RunTools | Finish


_RESPOND = "call gambit_respond to finish"


def next_step(program: Program, state: RunState, *, max_passes: int) -> Step:
    """Say what to do next."""
    if state.ended is not None:
        return Finish(state.ended)
    answer = state.answer
    if answer is not None and answer.status != "completed":
        return Finish(_cut_short(answer, state.said))
    if state.pending:
        return RunTools(tuple(state.pending.values()))
    if state.responses:
        return Finish(_responded(program, state.responses))
    if answer is None:
        return _ask(program, state, max_passes)
    return _after_text(program, state, max_passes)


def _after_text(program: Program, state: RunState, max_passes: int) -> Step:
    if state.refused:
        message = f"the model refused: {state.refused}"
        return Finish(_failed("refusal", message, text=state.said))
    ended, complaint = _checked_answer(program, state.said)
    if complaint is None:
        return Finish(ended)
    if state.repairs >= MAX_REPAIRS and not program.deck.respond:
        return Finish(_failed("invalid_answer", complaint, text=ended.text))
    return _ask(program, state, max_passes, complaint)


def _ask(
    program: Program, state: RunState, max_passes: int, complaint: str | None = None
) -> Step:
    if state.passes >= max_passes:
        passes = "1 pass" if max_passes == 1 else f"{max_passes} passes"
        message = f"the deck did not come to an answer in {passes}"
        if complaint == _RESPOND:  # That is for the model; a person reads this.
            message += ": it never called gambit_respond"
        elif complaint is not None:
            message += f": {complaint}"
        return Finish(_failed("max_passes", message, text=state.said))
    first: tuple[Entry, ...] = ()
    sent = state.sent
    if complaint is not None:
        item = user_message(_asking_again(complaint))
        first = (ItemAdded(item=item, source="runtime"),)
        sent = [*sent, item]
    request = msgspec.structs.replace(program.template, input=tuple(sent))
    return CallModel(request, first)


def _asking_again(complaint: str) -> str:
    return f"Your answer cannot be used: {complaint}. Give it again, put right."


def _checked_answer(program: Program, text: str) -> tuple[TurnEnded, str | None]:
    """An answer in words as a result, and what keeps it from being one."""
    deck = program.deck
    if deck.respond:
        return TurnEnded(status="failed", text=text), _RESPOND
    if deck.response_schema is None:
        return _completed(text, text), None
    readings = [text]  # A schema may allow plain words besides other things.
    complaint = "it must be JSON that fits the schema, and is not JSON"
    if not program.answers_in_text and is_too_deep(text):
        return TurnEnded(status="failed", text=text), TOO_DEEP
    if not program.answers_in_text:
        with contextlib.suppress(msgspec.DecodeError, ValueError, RecursionError):
            readings = [_decode(_unfenced(text)), text]
    checks = [deck.response_schema.validator.check(value) for value in readings]
    for checked in checks:
        if checked.is_valid:
            return _completed(checked.value, text), None
    if program.answers_in_text or len(readings) > 1:
        complaint = problem_words(checks[0].problems)
    return TurnEnded(status="failed", text=text), complaint


def _completed(result: JSONValue, text: str) -> TurnEnded:
    return TurnEnded(status="completed", result=result, text=text)


def _unfenced(text: str) -> str:
    """JSON without the code fence that models like to put around it."""
    stripped = text.strip().removeprefix("\ufeff")
    fenced = _FENCED.fullmatch(stripped)
    return fenced[1] if fenced else stripped


def _responded(program: Program, calls: Sequence[FunctionCall]) -> TurnEnded:
    """The result that was given: an end before any response, else the last of them."""
    planned = [
        plan
        for call in calls
        if isinstance(plan := plan_call(program, call), RespondCall)
    ]
    if not planned:
        # Accepted once, and not any more: the deck has changed since.
        return _failed("deck_changed", "the deck no longer accepts its own result")
    chosen = next((plan for plan in planned if plan.is_end), planned[-1])
    envelope = chosen.envelope
    result = None if envelope.payload is msgspec.UNSET else envelope.payload
    return TurnEnded(
        status="completed",
        result=result,
        text=_as_text(envelope),
        envelope=_said_about(envelope),
        is_end=chosen.is_end,
    )


def _as_text(envelope: Envelope) -> str:
    if isinstance(envelope.payload, str):
        return envelope.payload
    if envelope.message is not None:
        return envelope.message
    if envelope.payload is msgspec.UNSET:
        return ""
    return msgspec.json.encode(envelope.payload).decode()


def _said_about(envelope: Envelope) -> dict[str, JSONValue]:
    said = {
        "status": envelope.status,
        "message": envelope.message,
        "code": envelope.code,
        "meta": envelope.meta,
    }
    return {key: value for key, value in said.items() if value is not None}


def _cut_short(answer: ModelAnswered, said: str) -> TurnEnded:
    reason = answer.reason or "no reason given"
    code = "model_failed" if answer.status == "failed" else "model_incomplete"
    message = f"{answer.model} did not finish its answer: {reason}"
    return _failed(code, message, text=said)


def _failed(code: str, message: str, *, text: str = "") -> TurnEnded:
    failure = Failure(code=code, message=message)
    return TurnEnded(status="failed", text=text, failure=failure)
