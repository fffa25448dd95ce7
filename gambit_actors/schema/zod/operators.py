"""Operators on constants, with JavaScript's results for the types they are used on."""

import math
import operator
from collections.abc import Callable, Sequence

from gambit_actors.schema.zod.model import BAD, UNDEFINED, Dynamic, Value
from gambit_actors.schema.zod.session import Session, Spot
from gambit_actors.schema.zod.syntax import as_number

_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_CHARACTERS_PER_STEP = 10


def is_truthy(value: Value) -> bool:
    """JavaScript's idea of true: empty arrays and objects are."""
    if value is None or value is UNDEFINED or value is False or value == "":
        return False
    return not (is_number(value) and (value == 0 or value != value))  # noqa: PLR0124


def is_number(value: Value) -> bool:
    """Whether a value is a number and not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def binary(session: Session, sign: str, left: Value, right: Value, spot: Spot) -> Value:
    """Apply an operator to two operands."""
    for operand in (left, right):
        if operand is BAD or isinstance(operand, Dynamic):
            return operand
    if sign in {"===", "==", "!==", "!="} and _is_plain(left) and _is_plain(right):
        is_same = left == right and isinstance(left, bool) == isinstance(right, bool)
        return is_same == (sign[0] == "=")
    if sign == "+" and (isinstance(left, str) or isinstance(right, str)):
        return joined(session, (left, right), spot)
    if sign in _ARITHMETIC and is_number(left) and is_number(right):
        return _calculated(sign, left, right)
    message = f"The operator {sign!r} cannot be read here; write the result out."
    session.error("GS004", message, spot)
    return BAD


def unary(session: Session, sign: str, value: Value, spot: Spot) -> Value:
    """Apply an operator to one operand."""
    if value is BAD or isinstance(value, Dynamic):
        return value
    if sign == "!":
        return not is_truthy(value)
    if sign in {"-", "+"} and isinstance(value, int | float) and is_number(value):
        return -value if sign == "-" else value
    message = f"The operator {sign!r} cannot be read here; write the result out."
    session.error("GS004", message, spot)
    return BAD


def joined(session: Session, pieces: Sequence[Value], spot: Spot) -> Value:
    """Join pieces of text, numbers and booleans as ``+`` and templates do."""
    texts: list[str] = []
    for piece in pieces:
        if piece is BAD or isinstance(piece, Dynamic):
            return piece
        if isinstance(piece, str):
            texts.append(piece)
        elif _is_plain(piece):
            texts.append(_written(piece))
        else:
            message = "Only constants can become part of a text; write the text out."
            session.error("GS008", message, spot)
            return BAD
    text = "".join(texts)
    # Doubling a constant a few dozen times must not fill the memory.
    session.charge(1 + len(text) // _CHARACTERS_PER_STEP, spot)
    return text


def _calculated(sign: str, left: Value, right: Value) -> Value:
    try:
        return as_number(_ARITHMETIC[sign](float(str(left)), float(str(right))))
    except ZeroDivisionError:
        return math.nan


def _is_plain(value: Value) -> bool:
    return value is None or value is UNDEFINED or isinstance(value, str | int | float)


def _written(value: Value) -> str:
    if value is None:
        return "null"
    if value is UNDEFINED:
        return "undefined"
    return str(value).lower() if isinstance(value, bool) else str(value)
