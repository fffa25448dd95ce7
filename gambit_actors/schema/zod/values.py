"""What an expression is worth, worked out without running anything.

The evaluator knows the part of JavaScript that schema modules are written in: literals,
names, property access, calls of helper functions, and a few operators. A node it does
not know is a finding that names it, and the value `BAD`, so that everything around it
is still read. Of Zod it knows only that chains of calls end up in `zod_calls`.
"""

from collections.abc import Callable
from typing import NoReturn

from tree_sitter import Node

from gambit_actors.schema.zod.calls import Call
from gambit_actors.schema.zod.functions import make_function
from gambit_actors.schema.zod.members import apply_call, member
from gambit_actors.schema.zod.model import (
    BAD,
    UNDEFINED,
    Dynamic,
    Global,
    Regex,
    Value,
    ZodType,
)
from gambit_actors.schema.zod.operators import binary, is_truthy, joined, unary
from gambit_actors.schema.zod.scopes import Scope
from gambit_actors.schema.zod.session import MAX_SCHEMA_DEPTH, Refused, Session
from gambit_actors.schema.zod.syntax import (
    field,
    has_token,
    number_value,
    parts_of,
    piece_value,
    regex_parts,
    shown,
    string_value,
    text_of,
)

_CHAIN = {"call_expression", "member_expression", "subscript_expression"}
# Around a value, these say something about its type only.
_TRANSPARENT = {
    "as_expression",
    "non_null_expression",
    "parenthesized_expression",
    "satisfies_expression",
}
_FUNCTIONS = {"arrow_function", "function_expression", "function_declaration"}
_CONSTANTS: dict[str, Value] = {
    "true": True,
    "false": False,
    "null": None,
    "undefined": UNDEFINED,
}
# Their results depend on when and where the code runs.
RUN_TIME_GLOBALS = {"Date", "Math", "crypto", "Deno", "process", "performance", "Intl"}
_GLOBALS = RUN_TIME_GLOBALS | {"Object", "Number"}
_GLOBAL_NUMBERS: dict[str, Value] = {"Infinity": float("inf"), "NaN": float("nan")}


class Evaluator:
    """Works out expressions, within the bounds of a session."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def evaluate(self, node: Node, scope: Scope) -> Value:
        """The value of an expression; `BAD` if it has none."""
        if node.type in _CONSTANTS:
            return _CONSTANTS[node.type]
        self.session.enter(scope.spot(node))
        try:
            return self._value(node, scope)
        except Refused:
            return BAD
        finally:
            self.session.leave()

    def _value(self, node: Node, scope: Scope) -> Value:
        while node.type in _TRANSPARENT:
            node = parts_of(node)[0]
        if node.type in _CONSTANTS:
            return _CONSTANTS[node.type]
        if node.type in _CHAIN:
            return self._chain(node, scope)
        if node.type in _FUNCTIONS:
            return make_function(self, node, scope)
        handler = _HANDLERS.get(node.type)
        if handler is None:
            self.refuse_construct(node, scope)
        return handler(self, node, scope)

    def refuse_construct(self, node: Node, scope: Scope) -> NoReturn:
        """Report code that cannot be read, by its name.

        Raises:
            Refused: always.
        """
        name = node.type.replace("_", " ")
        message = (
            f"The {name} {shown(text_of(node))} cannot be read without running it;"
            " write the value out."
        )
        self.session.error("GS004", message, scope.spot(node))
        raise Refused

    def _chain(self, node: Node, scope: Scope) -> Value:
        """Follow ``a.b(c).d`` from its root; chains may be long, so in a loop."""
        node, links = self._unwound(node, scope)
        value = self.evaluate(node, scope)
        receiver: Value = UNDEFINED
        while links and value is not BAD:
            link = links.pop()
            if link.type == "call_expression":
                value, receiver = self._call(value, receiver, link, scope), UNDEFINED
                continue
            if value is UNDEFINED and has_token(link, "optional_chain"):
                return UNDEFINED
            name = self._member_name(link, scope)
            if links and links[-1].type == "call_expression" and _has_methods(value):
                receiver, value = value, name
            else:
                value = member(self, value, name, scope.spot(link))
        return value

    def _unwound(self, node: Node, scope: Scope) -> tuple[Node, list[Node]]:
        """The root of a chain, and its links, the last one first."""
        links: list[Node] = []
        while True:
            if node.type in _CHAIN:
                links.append(node)
                inner = field(
                    node, "function" if node.type == "call_expression" else "object"
                )
            elif node.type in _TRANSPARENT and links:
                inner = parts_of(node)[0]
            else:
                break
            if inner is None:
                self.refuse_construct(node, scope)
            node = inner
        return node, links

    def _member_name(self, link: Node, scope: Scope) -> Value:
        if link.type == "member_expression":
            name = field(link, "property")
            return text_of(name) if name is not None else ""
        index = field(link, "index")
        return BAD if index is None else self.evaluate(index, scope)

    def _call(self, callee: Value, receiver: Value, link: Node, scope: Scope) -> Value:
        arguments = field(link, "arguments")
        if arguments is None or arguments.type != "arguments":
            self.refuse_construct(link, scope)
        call = Call(self, scope, link, arguments, name=callee)
        value = apply_call(call, callee, receiver)
        if isinstance(value, ZodType):
            self.session.charge(value.width, call.spot)
            if value.depth > MAX_SCHEMA_DEPTH:
                message = (
                    f"The schema nests more than {MAX_SCHEMA_DEPTH} deep; flatten it."
                )
                self.session.error("GS012", message, call.spot)
                return BAD
        return value

    def name(self, node: Node, scope: Scope) -> Value:
        """What an identifier stands for."""
        name = text_of(node)
        binding = scope.find(name)
        if binding is not None:
            return binding.value(self.session, scope.spot(node))
        if name in _GLOBALS:
            return Global(name)
        if name in _GLOBAL_NUMBERS:
            return _GLOBAL_NUMBERS[name]
        message = f"The name {name!r} is not defined here; define or import it."
        hint = 'Add: import { z } from "npm:zod";' if name == "z" else None
        self.session.error("GS007", message, scope.spot(node), hint=hint)
        return BAD

    def _number(self, node: Node, scope: Scope) -> Value:
        value = number_value(text_of(node))
        if value is None:
            self.refuse_construct(node, scope)
        return value

    def _template(self, node: Node, scope: Scope) -> Value:
        pieces: list[Value] = []
        for part in parts_of(node):
            if part.type == "template_substitution":
                pieces.append(self.evaluate(parts_of(part)[0], scope))
            else:
                pieces.append(piece_value(part))
        return joined(self.session, pieces, scope.spot(node))

    def _array(self, node: Node, scope: Scope) -> Value:
        entries: list[Value] = []
        for part in parts_of(node):
            if part.type != "spread_element":
                entries.append(self.evaluate(part, scope))
                continue
            value = self.evaluate(parts_of(part)[0], scope)
            if isinstance(value, tuple):
                self.session.charge(len(value), scope.spot(part))
                entries += value
            elif value is not BAD:
                self._refuse_spread(part, scope, "an array")
        return tuple(entries)

    def _object(self, node: Node, scope: Scope) -> Value:
        entries: dict[str, Value] = {}
        for part in parts_of(node):
            if part.type == "spread_element":
                value = self.evaluate(parts_of(part)[0], scope)
                if isinstance(value, dict):
                    self.session.charge(len(value), scope.spot(part))
                    entries |= value
                elif value is not BAD and value is not UNDEFINED and value is not None:
                    self._refuse_spread(part, scope, "an object")
            elif part.type == "shorthand_property_identifier":
                entries[text_of(part)] = self.name(part, scope)
            else:
                self._property(part, scope, entries)
        return entries

    def _property(self, part: Node, scope: Scope, entries: dict[str, Value]) -> None:
        """One ``key: value``, or the getter Zod 4 has for recursive schemas."""
        key = field(part, "name" if part.type == "method_definition" else "key")
        name = self._key(key, scope) if key is not None else BAD
        value = field(part, "value")
        if part.type == "method_definition" and has_token(part, "get"):
            function = make_function(self, part, scope)
            result: Value = Call(self, scope, part, part, name=name).getter(function)
        elif part.type == "pair" and value is not None:
            result = self.evaluate(value, scope)
        else:
            # A method next to the properties: of no use to a schema until called.
            result = BAD
            self.session.error(
                "GS004",
                f"The method {shown(text_of(part))} cannot be part of a schema;"
                " take it out.",
                scope.spot(part),
            )
        if isinstance(name, str):
            entries[name] = result

    def _key(self, key: Node, scope: Scope) -> Value:
        if key.type == "computed_property_name":
            value = self.evaluate(parts_of(key)[0], scope)
        elif key.type == "string":
            value = string_value(key)
        elif key.type == "number":
            value = number_value(text_of(key))
        else:
            value = text_of(key)
        if isinstance(value, str) or value is BAD:
            return value
        if isinstance(value, int | float):
            return str(value)
        return self.refuse_construct(key, scope)

    def _refuse_spread(self, part: Node, scope: Scope, wanted: str) -> None:
        message = (
            f"{shown(text_of(part))} does not spread {wanted} that can be read;"
            " write the entries out."
        )
        self.session.error("GS008", message, scope.spot(part))

    def _binary(self, node: Node, scope: Scope) -> Value:
        """Operators, the left operand in a loop: ``a + b + c`` leans to the left."""
        rights: list[Node] = []
        while node.type == "binary_expression":
            rights.append(node)
            left = field(node, "left")
            if left is None:
                break
            node = left
        value = self.evaluate(node, scope)
        for at in reversed(rights):
            value = self._operate(value, at, scope)
        return value

    def _operate(self, left: Value, at: Node, scope: Scope) -> Value:
        operator, right = field(at, "operator"), field(at, "right")
        sign = text_of(operator) if operator is not None else ""
        if right is None or left is BAD:
            return BAD
        is_absent = left is None or left is UNDEFINED
        if sign == "??":
            return self.evaluate(right, scope) if is_absent else left
        if sign in {"||", "&&"} and not isinstance(left, Dynamic):
            wants_right = is_truthy(left) == (sign == "&&")
            return self.evaluate(right, scope) if wants_right else left
        return binary(
            self.session, sign, left, self.evaluate(right, scope), scope.spot(at)
        )

    def _unary(self, node: Node, scope: Scope) -> Value:
        operator, operand = field(node, "operator"), field(node, "argument")
        if operator is None or operand is None:
            return BAD
        value = self.evaluate(operand, scope)
        return unary(self.session, text_of(operator), value, scope.spot(node))

    def _ternary(self, node: Node, scope: Scope) -> Value:
        condition = field(node, "condition")
        value = BAD if condition is None else self.evaluate(condition, scope)
        if isinstance(value, Dynamic):
            self.refuse_construct(node, scope)
        branch = field(node, "consequence" if is_truthy(value) else "alternative")
        return BAD if value is BAD or branch is None else self.evaluate(branch, scope)

    def _new(self, node: Node, scope: Scope) -> Value:
        constructor, arguments = field(node, "constructor"), field(node, "arguments")
        name = text_of(constructor) if constructor is not None else ""
        if name in RUN_TIME_GLOBALS and scope.find(name) is None:
            return Dynamic(shown(text_of(node)))
        if name == "RegExp" and arguments is not None:
            values = [self.evaluate(part, scope) for part in parts_of(arguments)]
            if values and all(isinstance(value, str) for value in values):
                return Regex(str(values[0]), "".join(str(v) for v in values[1:]))
        return self.refuse_construct(node, scope)


def _has_methods(value: Value) -> bool:
    """Whether a call on a member is a method, and the member alone is nothing."""
    return isinstance(value, ZodType | tuple | str)


def _regex(_evaluator: Evaluator, node: Node, _scope: Scope) -> Value:
    return Regex(*regex_parts(node))


def _string(_evaluator: Evaluator, node: Node, _scope: Scope) -> Value:
    return string_value(node)


def _assertion(evaluator: Evaluator, node: Node, scope: Scope) -> Value:
    """``<const>x``: the type first, the value last."""
    return evaluator.evaluate(parts_of(node)[-1], scope)


_HANDLERS: dict[str, Callable[[Evaluator, Node, Scope], Value]] = {
    "array": Evaluator._array,  # noqa: SLF001
    "binary_expression": Evaluator._binary,  # noqa: SLF001
    "identifier": Evaluator.name,
    "new_expression": Evaluator._new,  # noqa: SLF001
    "number": Evaluator._number,  # noqa: SLF001
    "object": Evaluator._object,  # noqa: SLF001
    "regex": _regex,
    "string": _string,
    "template_string": Evaluator._template,  # noqa: SLF001
    "ternary_expression": Evaluator._ternary,  # noqa: SLF001
    "type_assertion": _assertion,
    "unary_expression": Evaluator._unary,  # noqa: SLF001
}
