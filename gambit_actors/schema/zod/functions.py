"""Helper functions: bound arguments, local constants, one returned expression.

A helper is read afresh for every call, with its parameters as names; nesting is bounded
by the session like any other nesting.
"""

from tree_sitter import Node

from gambit_actors.schema.zod.calls import Expressions
from gambit_actors.schema.zod.model import BAD, UNDEFINED, Function, Value
from gambit_actors.schema.zod.scopes import Binding, Scope, bound_names
from gambit_actors.schema.zod.syntax import field, has_token, parts_of, text_of

_TYPES_ONLY = {"type_alias_declaration", "interface_declaration", "empty_statement"}


def make_function(expressions: Expressions, node: Node, scope: Scope) -> Function:
    """A function or arrow of the source as a value."""

    def call(arguments: tuple[Value, ...], _at: Node) -> Value:
        spot = scope.spot(node)
        expressions.session.enter(spot)
        try:
            inner = Scope(scope.source, scope)
            _bind_parameters(expressions, node, inner, arguments)
            return _result(expressions, node, inner)
        finally:
            expressions.session.leave()

    return Function(node, call)


def declare(
    expressions: Expressions, declarator: Node, scope: Scope, *, is_constant: bool
) -> None:
    """Give the names of one ``name = value`` to a scope."""
    pattern, value = field(declarator, "name"), field(declarator, "value")
    if pattern is None:
        return

    def compute() -> Value:
        if value is None or not is_constant:
            expressions.refuse_construct(declarator.parent or declarator, scope)
        return expressions.evaluate(value, scope)

    if pattern.type == "identifier":
        name = text_of(pattern)
        scope.names[name] = Binding(f"The definition of {name!r}", compute)
    else:
        _bind_pattern(expressions, pattern, scope, Binding("the value", compute))


def _bind_parameters(
    expressions: Expressions, node: Node, scope: Scope, arguments: tuple[Value, ...]
) -> None:
    single = field(node, "parameter")
    listed = field(node, "parameters")
    parameters = [single] if single is not None else parts_of(listed) if listed else []
    for index, parameter in enumerate(parameters):
        pattern = field(parameter, "pattern") or parameter
        fallback = field(parameter, "value")
        value = arguments[index] if index < len(arguments) else UNDEFINED
        if pattern.type == "rest_pattern":
            value, pattern = arguments[index:], parts_of(pattern)[0]
        elif value is UNDEFINED and fallback is not None:
            value = expressions.evaluate(fallback, scope)
        binding = _ready(text_of(pattern), value)
        if pattern.type == "identifier":
            scope.names[text_of(pattern)] = binding
        else:
            _bind_pattern(expressions, pattern, scope, binding)


def _bind_pattern(
    expressions: Expressions, pattern: Node, scope: Scope, whole: Binding
) -> None:
    """Take an object apart; other patterns leave their names undefined."""
    if pattern.type != "object_pattern":
        expressions.refuse_construct(pattern, scope)
    for name, key, fallback in bound_names(pattern):

        def compute(key: str = key, fallback: Node | None = fallback) -> Value:
            value = whole.value(expressions.session, scope.spot(pattern))
            if value is BAD:
                return BAD
            if not isinstance(value, dict):
                expressions.refuse_construct(pattern, scope)
            part = value.get(key, UNDEFINED)
            if part is UNDEFINED and fallback is not None:
                return expressions.evaluate(fallback, scope)
            return part

        scope.names[name] = Binding(name, compute)


def _ready(name: str, value: Value) -> Binding:
    return Binding(name, lambda: value)


def _result(expressions: Expressions, node: Node, scope: Scope) -> Value:
    body = field(node, "body")
    if body is None or has_token(node, "async") or has_token(node, "*"):
        expressions.refuse_construct(node, scope)
    if body.type != "statement_block":
        return expressions.evaluate(body, scope)
    for statement in parts_of(body):
        if statement.type == "return_statement":
            returned = parts_of(statement)
            return expressions.evaluate(returned[0], scope) if returned else UNDEFINED
        _declare_local(expressions, statement, scope)
    return UNDEFINED


def _declare_local(expressions: Expressions, statement: Node, scope: Scope) -> None:
    """Take a statement of a helper that is not its return."""
    name = field(statement, "name")
    if statement.type == "lexical_declaration":
        is_constant = has_token(statement, "const")
        for declarator in parts_of(statement):
            declare(expressions, declarator, scope, is_constant=is_constant)
    elif statement.type == "function_declaration" and name is not None:
        function = make_function(expressions, statement, scope)
        scope.names[text_of(name)] = _ready(text_of(name), function)
    elif statement.type not in _TYPES_ONLY:
        expressions.refuse_construct(statement, scope)
