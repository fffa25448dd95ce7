"""Names and what they stand for, worked out when first asked for.

A binding is computed at most once, so a schema named twice is one object; and a
binding that is asked for while it is being computed leads back to itself.
"""

from collections.abc import Callable, Iterator

from tree_sitter import Node

from gambit_actors.schema.zod.model import BAD, Value
from gambit_actors.schema.zod.session import Session, Spot
from gambit_actors.schema.zod.syntax import (
    Source,
    field,
    parts_of,
    string_value,
    text_of,
)


class Binding:
    """One name, its value still to come."""

    def __init__(self, name: str, compute: Callable[[], Value]) -> None:
        self._name = name
        self._compute = compute
        self._is_busy = False
        self._value: Value = None
        self._is_done = False

    def value(self, session: Session, spot: Spot) -> Value:
        """What the name stands for, as seen from a place that uses it."""
        if self._is_done:
            return self._value
        if self._is_busy:
            message = (
                f"{self._name} leads back to itself;"
                " put z.lazy(() => ...) around the recursive part,"
                " or take the definition out of the circle."
            )
            session.error("GS011", message, spot)
            return BAD
        self._is_busy = True
        try:
            self._value = self._compute()
        finally:
            self._is_busy = False
        self._is_done = True
        return self._value


class Scope:
    """The names of a file, a function call or a block."""

    def __init__(self, source: Source, parent: "Scope | None" = None) -> None:
        self.source = source
        self.names: dict[str, Binding] = {}
        self._parent = parent

    def find(self, name: str) -> Binding | None:
        """The innermost binding of a name."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope._parent  # noqa: SLF001
        return None

    def spot(self, node: Node) -> Spot:
        """A node's place, for a finding."""
        return Spot(self.source, node)


def bound_names(pattern: Node) -> Iterator[tuple[str, str, Node | None]]:
    """The names an object pattern binds: name, key, and the node of its default."""
    for part in parts_of(pattern):
        if part.type == "shorthand_property_identifier_pattern":
            yield text_of(part), text_of(part), None
        elif part.type == "object_assignment_pattern":
            left, right = field(part, "left"), field(part, "right")
            if left is not None:
                yield text_of(left), text_of(left), right
        elif part.type == "pair_pattern":
            key, name = field(part, "key"), field(part, "value")
            if key is not None and name is not None and name.type == "identifier":
                plain = string_value(key) if key.type == "string" else text_of(key)
                yield text_of(name), plain, None
