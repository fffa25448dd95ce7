"""What a call of the model's comes to: something to do, or a reason not to.

Bad arguments are the model's mistake, and it gets to read what was wrong: an envelope
with status 400 and every problem in it. Nothing here runs anything.
"""

from collections.abc import Collection, Sequence
from typing import Literal, TypeAlias

import msgspec

from gambit_actors.deck.model import Action, Tool
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall, Item
from gambit_actors.run.builtins import BUILTIN_TOOLS, BuiltinTool
from gambit_actors.run.envelopes import Envelope, envelope_from, refusal
from gambit_actors.run.nesting import TOO_DEEP, is_too_deep
from gambit_actors.run.programs import WRAPPED, Program, RuntimeTool
from gambit_actors.schema.explaining import Problem
from gambit_actors.schema.validation import Validator

_decode = msgspec.json.Decoder().decode
_MOST_PROBLEMS = 20


class ActionCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A deck or a module is to be run."""

    call: FunctionCall
    action: Action
    input: JSONValue


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The program around the run is to be asked."""

    call: FunctionCall
    name: str
    arguments: dict[str, JSONValue]


class BuiltinCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A built-in tool is to be used."""

    call: FunctionCall
    tool: BuiltinTool
    arguments: dict[str, JSONValue]


class RespondCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The deck has its result, or wants the conversation to end."""

    call: FunctionCall
    envelope: Envelope
    is_end: bool = False


class RefusedCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Nothing is to be done; this is what the model is told."""

    call: FunctionCall
    envelope: Envelope


PlannedCall: TypeAlias = ActionCall | ToolCall | BuiltinCall | RespondCall | RefusedCall


CALL_KINDS: dict[type[PlannedCall], Literal["action", "tool", "builtin"]] = {
    ActionCall: "action",
    ToolCall: "tool",
    BuiltinCall: "builtin",
}
"""What calls that are carried out are called in a log."""


def plan_call(program: Program, call: FunctionCall) -> PlannedCall:
    """Look at one call of the model's."""
    offer = program.offers.get(call.name)
    if offer is None:
        message = f"there is no tool {call.name}"
        return RefusedCall(call=call, envelope=refusal(404, "unknown_action", message))
    arguments, problem = _arguments(call.arguments)
    if problem is not None:
        return _refused(call, problem)
    if isinstance(offer, Action):
        return _plan_action(program, call, offer, arguments)
    if isinstance(offer, BuiltinTool):
        return _plan_builtin(call, offer, arguments)
    if isinstance(offer, Tool | RuntimeTool):
        return _plan_tool(program, call, arguments)
    return _plan_answer(program, call, arguments, is_end=offer == "end")


def _plan_builtin(
    call: FunctionCall, tool: BuiltinTool, arguments: dict[str, JSONValue]
) -> PlannedCall:
    checked, problem = _checked(_BUILTIN_VALIDATORS[tool.name], arguments)
    if problem is not None:
        return _refused(call, problem)
    return BuiltinCall(call=call, tool=tool, arguments=checked)


def _plan_answer(
    program: Program,
    call: FunctionCall,
    arguments: dict[str, JSONValue],
    *,
    is_end: bool,
) -> PlannedCall:
    envelope = _answer(arguments)
    schema = program.deck.response_schema
    if is_end or schema is None:
        # An end may come at any point, also where there is no result to give.
        return RespondCall(call=call, envelope=envelope, is_end=is_end)
    payload, problem = _checked(schema.validator, envelope.payload)
    if problem is not None and "payload" not in arguments:
        # Without a payload the arguments as a whole may be it.
        payload, problem = _checked(schema.validator, arguments)
    if problem is not None:
        return _refused(call, f"the payload does not fit: {problem}")
    envelope = msgspec.structs.replace(envelope, payload=payload)
    return RespondCall(call=call, envelope=envelope)


def _plan_action(
    program: Program,
    call: FunctionCall,
    action: Action,
    arguments: dict[str, JSONValue],
) -> PlannedCall:
    given: JSONValue = arguments
    if call.name in program.wrapped:
        if WRAPPED not in arguments:
            return _refused(call, f"the required key {WRAPPED!r} is missing")
        given = arguments[WRAPPED]
    value, problem = _checked(action.context_schema.validator, given)
    if problem is not None:
        return _refused(call, problem)
    return ActionCall(call=call, action=action, input=value)


def _plan_tool(
    program: Program, call: FunctionCall, arguments: dict[str, JSONValue]
) -> PlannedCall:
    validator = program.input_validators.get(call.name)
    if validator is None:
        return ToolCall(call=call, name=call.name, arguments=arguments)
    wraps = call.name in program.wrapped
    if wraps and WRAPPED not in arguments:
        return _refused(call, f"the required key {WRAPPED!r} is missing")
    given = arguments[WRAPPED] if wraps else arguments
    value, problem = _checked(validator, given)
    if problem is not None:
        return _refused(call, problem)
    checked = {WRAPPED: value} if wraps else value
    return ToolCall(call=call, name=call.name, arguments=checked)


def with_unique_calls(items: Sequence[Item], used: Collection[str]) -> list[Item]:
    """The items of an answer; a call with an id that was used gets another.

    Some models number their calls from the start in every answer. An output must lead
    to one call and no other.
    """
    found: list[Item] = []
    taken: set[str] = set()
    for item in items:
        if isinstance(item, FunctionCall):
            call_id, count = item.call_id, 1
            while call_id in used or call_id in taken:
                count += 1
                call_id = f"{item.call_id}_{count}"
            taken.add(call_id)
            if call_id != item.call_id:
                found.append(msgspec.structs.replace(item, call_id=call_id))
                continue
        found.append(item)
    return found


def _arguments(text: str) -> tuple[dict[str, JSONValue], str | None]:
    """Arguments as an object; some models write nothing where there are none."""
    if not text.strip():
        return {}, None
    if is_too_deep(text):
        return {}, f"the arguments are JSON that cannot be used: {TOO_DEEP}"
    try:
        value = _decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as problem:
        return {}, f"the arguments are not JSON: {problem}"
    if not isinstance(value, dict):
        return {}, "the arguments are not a JSON object"
    return value, None


def _answer(arguments: dict[str, JSONValue]) -> Envelope:
    envelope = envelope_from(arguments)
    # What is said about a result and nothing else is no result.
    if "payload" not in arguments and arguments.keys() <= _ABOUT:
        return msgspec.structs.replace(envelope, payload=msgspec.UNSET)
    return envelope


_ABOUT = frozenset({"status", "message", "code", "meta"})


def _checked(validator: Validator, value: JSONValue) -> tuple[JSONValue, str | None]:
    if value is msgspec.UNSET:
        value = None
    checked = validator.check(value)
    if checked.is_valid:
        return checked.value, None
    return value, problem_words(checked.problems)


def problem_words(problems: tuple[Problem, ...]) -> str:
    """All that is wrong with a value, in one line."""
    words = "; ".join(map(str, problems[:_MOST_PROBLEMS]))
    more = len(problems) - _MOST_PROBLEMS
    return f"{words}; and {more} more" if more > 0 else words


def _refused(call: FunctionCall, problem: str) -> RefusedCall:
    return RefusedCall(call=call, envelope=refusal(400, "invalid_input", problem))


_BUILTIN_VALIDATORS = {
    tool.name: Validator(tool.tool.parameters or {}) for tool in BUILTIN_TOOLS
}
