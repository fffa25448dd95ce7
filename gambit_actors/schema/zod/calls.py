"""One call in the source, and its arguments as the callee wants them.

Arguments are worked out only when asked for, because most of what authors pass to Zod
besides the first argument is error messages and functions nobody will run. An argument
that does not fit is reported at its own place.
"""

import math
from typing import NoReturn, Protocol

from tree_sitter import Node

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.schema.zod.model import (
    ANY,
    BAD,
    UNDEFINED,
    Dynamic,
    Function,
    Mark,
    Thunk,
    Value,
    ZodType,
)
from gambit_actors.schema.zod.scopes import Scope
from gambit_actors.schema.zod.session import MAX_SCHEMA_DEPTH, Refused, Session, Spot
from gambit_actors.schema.zod.syntax import (
    field,
    parts_of,
    shown,
    string_value,
    text_of,
)


class Expressions(Protocol):
    """What calls need of the evaluator."""

    session: Session

    def evaluate(self, node: Node, scope: Scope) -> Value:
        """The value of an expression."""

    def refuse_construct(self, node: Node, scope: Scope) -> NoReturn:
        """Report code that cannot be read."""


class Call:
    """A call: where it stands, what it calls, what it passes."""

    def __init__(
        self,
        expressions: Expressions,
        scope: Scope,
        node: Node,
        arguments: Node,
        *,
        name: Value,
    ) -> None:
        self.expressions = expressions
        self.session = expressions.session
        self.scope = scope
        self.node = node
        self.nodes = parts_of(arguments)
        self.name = name if isinstance(name, str) else shown(text_of(node))

    @property
    def spot(self) -> Spot:
        """Where to point: at the method's name rather than at the chain's start."""
        callee = field(self.node, "function")
        if callee is not None and callee.type == "member_expression":
            name = field(callee, "property")
            if name is not None:
                return self.scope.spot(name)
        return self.scope.spot(self.node)

    def at(self, index: int) -> Spot:
        """The place of an argument, or of the call if it is not there."""
        if index < len(self.nodes):
            return self.scope.spot(self.nodes[index])
        return self.spot

    def argument(self, index: int) -> Value:
        """The value of an argument; undefined if it is not there."""
        if index >= len(self.nodes):
            return UNDEFINED
        node = self.nodes[index]
        if node.type == "spread_element":
            self.expressions.refuse_construct(node, self.scope)
        return self.expressions.evaluate(node, self.scope)

    def arguments(self) -> tuple[Value, ...]:
        """All arguments, spreads included."""
        values: list[Value] = []
        for index, node in enumerate(self.nodes):
            if node.type != "spread_element":
                values.append(self.argument(index))
                continue
            spread = self.expressions.evaluate(parts_of(node)[0], self.scope)
            if not isinstance(spread, tuple):
                self.refuse_argument(index, "an array to spread")
            values += spread
        return tuple(values)

    def refuse_argument(self, index: int, wanted: str) -> NoReturn:
        """Report an argument that does not fit.

        Raises:
            Refused: always.
        """
        given = shown(text_of(self.nodes[index])) if index < len(self.nodes) else "none"
        message = f"{self.name} needs {wanted} here, not {given}; write it out."
        self.session.error("GS008", message, self.at(index))
        raise Refused

    def number(self, index: int = 0) -> float:
        """An argument that is a number, infinite at most."""
        value = self.argument(index)
        if isinstance(value, int | float) and not isinstance(value, bool):
            if not math.isnan(value):
                return value
        elif value is BAD:
            raise Refused
        return self.refuse_argument(index, "a constant number")

    def string(self, index: int = 0) -> str:
        """An argument that is a string."""
        value = self.argument(index)
        if isinstance(value, str):
            return value
        if value is BAD:
            raise Refused
        return self.refuse_argument(index, "a constant string")

    def mapping(self, index: int = 0) -> dict[str, Value]:
        """An argument that is an object literal, or something that spreads to one."""
        value = self.argument(index)
        if isinstance(value, dict):
            return value
        if value is BAD:
            raise Refused
        return self.refuse_argument(index, "an object")

    def sequence(self, index: int = 0) -> tuple[Value, ...]:
        """An argument that is an array."""
        value = self.argument(index)
        if isinstance(value, tuple):
            return value
        if value is BAD:
            raise Refused
        return self.refuse_argument(index, "an array")

    def schema(self, index: int = 0) -> ZodType:
        """An argument that is a schema."""
        return self.as_schema(self.argument(index), index)

    def schemas(self, index: int = 0) -> tuple[ZodType, ...]:
        """An argument that is an array of schemas."""
        return tuple(self.as_schema(value, index) for value in self.sequence(index))

    def as_schema(self, value: Value, index: int) -> ZodType:
        """A value that came with an argument, as a schema."""
        if isinstance(value, ZodType):
            return value
        if value is BAD:
            return self._stand_in()
        return self.refuse_argument(index, "a Zod schema")

    def shape(self, index: int = 0) -> dict[str, ZodType]:
        """An argument that maps keys to schemas, every wrong one reported."""
        shape: dict[str, ZodType] = {}
        for key, value in self.mapping(index).items():
            if isinstance(value, ZodType):
                shape[key] = value
                continue
            shape[key] = self._stand_in()
            if value is not BAD:
                message = f"The property {key!r} is not a Zod schema; give it one."
                self.session.error("GS008", message, self._property(index, key))
        self.session.charge(len(shape), self.spot)
        return shape

    def _stand_in(self) -> ZodType:
        """For what was reported where it went wrong; the rest is still read."""
        self.session.has_errors = True
        return ANY

    def _property(self, index: int, key: str) -> Spot:
        """The place of one property of an object literal."""
        for part in parts_of(self.nodes[index]):
            name = field(part, "key") or part
            plain = string_value(name) if name.type == "string" else text_of(name)
            if plain == key:
                return self.scope.spot(part)
        return self.at(index)

    def function(self, index: int = 0) -> Function:
        """An argument that is a function."""
        value = self.argument(index)
        if isinstance(value, Function):
            return value
        if value is BAD:
            raise Refused
        return self.refuse_argument(index, "a function")

    def lazy(self, index: int = 0) -> ZodType:
        """An argument that is a function giving a schema, not called before needed."""
        function = self.function(index)
        body = field(function.node, "body")
        return self._deferred(function, _first_name(body) or "Lazy")

    def getter(self, function: Function) -> ZodType:
        """The schema behind a getter, not asked for before needed."""
        return self._deferred(function, str(self.name))

    def _deferred(self, function: Function, name: str) -> ZodType:
        def compute() -> ZodType:
            try:
                value = function.call((), self.node)
            except Refused:
                return self._stand_in()
            if isinstance(value, ZodType):
                return value
            if value is not BAD:
                message = f"{shown(text_of(function.node))} does not give a Zod schema."
                self.session.error("GS008", message, self.spot)
            return self._stand_in()

        return ZodType(kind="lazy", thunk=Thunk(name, self.spot, compute))

    def json(self, value: Value, index: int = 0) -> JSONValue | Dynamic | Mark:
        """A value as JSON; what is not JSON is reported."""
        return self._json(value, index, MAX_SCHEMA_DEPTH)

    def _json(self, value: Value, index: int, room: int) -> JSONValue | Dynamic | Mark:
        self.session.charge(1, self.spot)
        if value is BAD:
            raise Refused
        if value is None or isinstance(value, str | Mark | Dynamic):
            return value
        if isinstance(value, int | float) and math.isfinite(value):
            return value
        if room and isinstance(value, tuple):
            return [self._json(entry, index, room - 1) for entry in value]
        if room and isinstance(value, dict):
            pairs = ((k, self._json(v, index, room - 1)) for k, v in value.items())
            return {key: entry for key, entry in pairs if entry is not UNDEFINED}
        return self.refuse_argument(index, "a value that JSON has")


def _first_name(body: Node | None) -> str | None:
    """The name a lazy's body starts with: ``Node`` of ``() => Node.array()``."""
    while body is not None and body.type != "identifier":
        body = field(body, "function") or field(body, "object")
    return text_of(body) if body is not None else None
