"""Property access and calls, by what they are done to.

Schemas go on to the Zod tables; everything else JavaScript offers is the little that
schema modules use: properties of constants, `Object.keys`, joining a list.
"""

from gambit_actors.schema.zod.calls import Call, Expressions
from gambit_actors.schema.zod.constructors import construct
from gambit_actors.schema.zod.methods import apply_method, schema_property
from gambit_actors.schema.zod.model import (
    BAD,
    UNDEFINED,
    Dynamic,
    Function,
    Global,
    Namespace,
    Value,
    ZodPath,
    ZodType,
)
from gambit_actors.schema.zod.operators import is_truthy, joined
from gambit_actors.schema.zod.session import Refused, Spot
from gambit_actors.schema.zod.syntax import shown, text_of

_NUMBERS: dict[str, Value] = {
    "Number.MAX_SAFE_INTEGER": 2**53 - 1,
    "Number.MIN_SAFE_INTEGER": 1 - 2**53,
    "Number.MAX_VALUE": 1.7976931348623157e308,
    "Number.POSITIVE_INFINITY": float("inf"),
    "Number.NEGATIVE_INFINITY": float("-inf"),
}


def member(expressions: Expressions, value: Value, name: Value, spot: Spot) -> Value:
    """The value of ``value.name`` or ``value[name]``."""
    if name is BAD or isinstance(value, Dynamic):
        return value if isinstance(value, Dynamic) else BAD
    if isinstance(value, ZodPath):
        return ZodPath((*value.path, str(name))) if name != "z" else value
    if isinstance(value, ZodType):
        return schema_property(expressions.session, value, str(name), spot)
    if isinstance(value, Namespace):
        return value.find(str(name), spot.node)
    if isinstance(value, Global):
        full = f"{value.name}.{name}"
        return _NUMBERS.get(full, Global(full))
    return _constant_member(expressions, value, name, spot)


def apply_call(call: Call, callee: Value, receiver: Value) -> Value:
    """Call a function, a Zod constructor, or the method ``callee`` of a receiver."""
    if receiver is not UNDEFINED:
        return _call_method(call, receiver)
    if isinstance(callee, ZodPath):
        return construct(call, callee)
    if isinstance(callee, Function):
        return callee.call(call.arguments(), call.node)
    if isinstance(callee, Global):
        return _call_global(call, callee)
    if isinstance(callee, Dynamic):
        return Dynamic(shown(text_of(call.node)))
    message = f"{call.name} does not call a function that can be read; write it out."
    call.session.error("GS004", message, call.spot)
    return BAD


def _call_method(call: Call, receiver: Value) -> Value:
    if isinstance(receiver, ZodType):
        return apply_method(call, receiver)
    return _constant_method(call, receiver)


def _constant_member(
    expressions: Expressions, value: Value, name: Value, spot: Spot
) -> Value:
    if isinstance(value, dict):
        return value.get(str(name), UNDEFINED)
    if isinstance(value, tuple | str) and name == "length":
        return len(value)
    if isinstance(value, tuple) and isinstance(name, int):
        return value[name] if 0 <= name < len(value) else UNDEFINED
    message = (
        f"{shown(text_of(spot.node))} has no value that can be read; write it out."
    )
    expressions.session.error("GS008", message, spot)
    return BAD


def _constant_method(call: Call, receiver: Value) -> Value:
    """Methods of arrays and strings."""
    if isinstance(receiver, tuple):
        call.session.charge(len(receiver), call.spot)
        if call.name in {"map", "filter"}:
            return _mapped(call, receiver)
        if call.name == "concat":
            return receiver + call.sequence()
        if call.name == "join":
            separator = call.string() if call.nodes else ","
            pieces = [p for entry in receiver for p in (separator, entry)]
            return joined(call.session, pieces[1:], call.spot)
    elif isinstance(receiver, str) and not call.nodes:
        change = {
            "toUpperCase": receiver.upper,
            "toLowerCase": receiver.lower,
            "trim": receiver.strip,
        }.get(call.name)
        if change is not None:
            return change()
    message = f"The method {call.name!r} cannot be read here; write the result out."
    call.session.error("GS004", message, call.spot)
    raise Refused


def _mapped(call: Call, receiver: tuple[Value, ...]) -> Value:
    function = call.function()
    results = tuple(
        function.call((entry, index), call.node) for index, entry in enumerate(receiver)
    )
    if call.name == "map":
        return results
    return tuple(
        e for e, keep in zip(receiver, results, strict=True) if is_truthy(keep)
    )


def _call_global(call: Call, callee: Global) -> Value:
    if callee.name == "Object.freeze":
        return call.argument(0)
    if callee.name in {"Object.keys", "Object.values"}:
        mapping = call.mapping()
        call.session.charge(len(mapping), call.spot)
        return tuple(mapping if callee.name.endswith("keys") else mapping.values())
    if callee.name.split(".")[0] in {"Object", "Number"}:
        call.expressions.refuse_construct(call.node, call.scope)
    return Dynamic(shown(text_of(call.node)))
