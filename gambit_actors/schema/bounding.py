"""How much work a value is for a schema, counted before the work is done.

A schema of a few lines can ask for years of work: each union in a union, or a union
that refers to itself, multiplies the ways to try. The count here follows every
way, and is cheap, because a schema that meets the same value
again costs what it cost before.

A validator that only has to say yes or no leaves an alternative as soon as its type or
its tag is wrong; one that has to say why goes through all of them. Hence two counts.
"""

from collections.abc import Iterable

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.schema.keywords import (
    UNIONS,
    Schema,
    Step,
    inner_parts,
    may_fit,
    resolve,
    same_value_parts,
)

# A validator takes about 15 ns for a step, and 100 µs to tell a failed one in a
# union in a union.
TRY_LIMIT = 10_000_000
TELL_LIMIT = 200_000

# Complaints in a union are copied once for each union around them.
_UNION_WEIGHT = 1.5

_FOR_LISTS = frozenset({"contains", "items", "prefixItems", "unevaluatedItems"})


class WorkCount:
    """Counts the steps that values are for one schema document."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._targets: dict[str, JSONValue] = {}
        self.is_bounded = self._static_cost(root, {}, frozenset()) <= TELL_LIMIT / 10
        """Whether no value can be much work; then the others need not be asked."""

    def cost_to_try(self, value: JSONValue) -> float:
        """How many steps to a yes or no; infinite for a reference that never ends."""
        return self._cost(self._root, value, {}, tells=False)

    def cost_to_tell(self, value: JSONValue) -> float:
        """How many steps to a list of all that is wrong."""
        return self._cost(self._root, value, {}, tells=True)

    def _static_cost(
        self, schema: JSONValue, known: dict[int, float], above: frozenset[int]
    ) -> float:
        if not isinstance(schema, dict):
            return 1
        if id(schema) in above:
            return float("inf")  # A schema inside itself: it depends on the value.
        if id(schema) not in known:
            above |= {id(schema)}
            parts = [part for _, part in same_value_parts(schema)]
            parts += [part for _, part in inner_parts(schema)]
            parts += self._target(schema)
            total = 1 + sum(self._static_cost(part, known, above) for part in parts)
            known[id(schema)] = total * _weight(schema)
        return known[id(schema)]

    def _cost(
        self,
        schema: JSONValue,
        value: JSONValue,
        known: dict[tuple[int, int], float],
        *,
        tells: bool,
    ) -> float:
        if not isinstance(schema, dict):
            return 1
        key = (id(schema), id(value))
        if key not in known:
            known[key] = float("inf")  # Met again on the way down: no end.
            pairs = [
                (part, value)
                for step, part in same_value_parts(schema)
                if tells or step[0] not in UNIONS or self._may_fit(part, value)
            ]
            pairs += [(part, value) for part in self._target(schema)]
            pairs += _inner_pairs(schema, value)
            total = 1 + sum(
                self._cost(part, entry, known, tells=tells) for part, entry in pairs
            )
            known[key] = total * _weight(schema)
        return known[key]

    def _may_fit(self, schema: JSONValue, value: JSONValue) -> bool:
        targets = self._target(schema) if isinstance(schema, dict) else []
        return all(may_fit(part, value) for part in [schema, *targets])

    def _target(self, schema: Schema) -> list[JSONValue]:
        reference = schema.get("$ref", schema.get("$dynamicRef"))
        if not isinstance(reference, str):
            return []
        if reference not in self._targets:
            self._targets[reference] = resolve(self._root, reference)
        return [self._targets[reference]]


def _weight(schema: Schema) -> float:
    return _UNION_WEIGHT if any(key in schema for key in UNIONS) else 1


def _inner_pairs(schema: Schema, value: JSONValue) -> list[tuple[JSONValue, JSONValue]]:
    """Which part of a schema meets which entry; too many rather than too few."""
    if not isinstance(value, (dict, list)):
        return []
    return [
        (part, entry)
        for step, part in inner_parts(schema)
        if isinstance(part, dict)
        for entry in _entries(step, value)
    ]


def _entries(step: Step, value: JSONValue) -> Iterable[JSONValue]:
    """The entries of a list or an object that one keyword looks at."""
    is_for_lists = step[0] in _FOR_LISTS
    if is_for_lists != isinstance(value, list):
        return ()
    match step:
        case ("properties", name):
            return (value[name],) if name in value else ()
        case ("prefixItems", int(index)):
            return value[index : index + 1]  # type: ignore[no-any-return]  # a list
    return value if is_for_lists else value.values()  # type: ignore[no-any-return]  # JSON
