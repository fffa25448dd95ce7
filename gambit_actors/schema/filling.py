"""What Zod does to a value besides checking it: fill in defaults, drop unknown keys.

A filler is compiled once per schema, and only for the parts of it that can change a
value; where nothing can change there is no filler, and the value itself is passed on.
A filler never edits what it is given. In a union it follows the first alternative
that the filled value fits; when there is none the value stays as it is, for the
validator to complain about.

Not followed: ``not``, ``if``, ``contains`` and the like, which Zod does not have.
"""

import copy
from collections.abc import Callable
from typing import TypeAlias

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.schema.keywords import (
    UNIONS,
    UNKNOWN_KEYS,
    Schema,
    Step,
    may_fit,
    resolve,
    steps_to,
    table,
    walk,
)

Fits: TypeAlias = Callable[[JSONValue], bool]
"""Whether a value is valid for one alternative of a union."""

_Filler: TypeAlias = Callable[[JSONValue, "_Seen"], JSONValue]
_Seen: TypeAlias = dict[tuple[int, int], tuple[JSONValue, JSONValue]]

_ABSENT = object()
_MAX_REFERENCES = 16


def needs_filling(root: Schema) -> bool:
    """Whether any value could be changed by filling."""
    return any(
        "default" in part or part.get(UNKNOWN_KEYS) == "strip" for _, part in walk(root)
    )


class FillerCompiler:
    """Makes the filler of one schema document.

    Args:
        root: the document.
        fits: makes the test for the part of the document at some keys.
    """

    def __init__(self, root: Schema, fits: Callable[[Step], Fits]) -> None:
        self._root = root
        self._fits = fits
        self._targets: dict[str, _Filler | None] = {}

    def compile(self) -> Callable[[JSONValue], JSONValue]:
        """Make the filler of the whole document."""
        fill = self._filler(self._root, ())
        if fill is None:
            return lambda value: value
        return lambda value: fill(value, {})

    def _filler(
        self, schema: JSONValue, step: Step, *, strips: bool = True
    ) -> _Filler | None:
        if not isinstance(schema, dict):
            return None
        stages = [
            self._target_filler(schema),
            self._all_filler(schema, step),
            self._object_filler(schema, step),
            self._list_filler(schema, step),
            *(self._union_filler(schema, step, key) for key in UNIONS),
            self._stripper(schema) if strips else None,
        ]
        present = [stage for stage in stages if stage is not None]
        if len(present) <= 1:
            return present[0] if present else None

        def fill(value: JSONValue, seen: _Seen) -> JSONValue:
            for stage in present:
                value = stage(value, seen)
            return value

        return fill

    def _target_filler(self, schema: Schema) -> _Filler | None:
        reference = schema.get("$ref")
        target = resolve(self._root, reference)
        if not isinstance(reference, str) or not isinstance(target, dict):
            return None
        if reference not in self._targets:
            # The schema may refer to itself, so its filler is looked up when used.
            self._targets[reference] = None
            self._targets[reference] = self._filler(
                target, steps_to(self._root, reference)
            )

        def fill(value: JSONValue, seen: _Seen) -> JSONValue:
            found = self._targets[reference]
            return _once(found, target, value, seen)

        return fill

    def _all_filler(self, schema: Schema, step: Step) -> _Filler | None:
        """Every part fills; what is unknown to one part may be known to another."""
        parts = schema.get("allOf")
        if not isinstance(parts, list):
            return None
        fillers = [
            filler
            for index, part in enumerate(parts)
            if (filler := self._filler(part, (*step, "allOf", index), strips=False))
        ]

        def fill(value: JSONValue, seen: _Seen) -> JSONValue:
            for filler in fillers:
                value = filler(value, seen)
            return value

        return fill if fillers else None

    def _object_filler(self, schema: Schema, step: Step) -> _Filler | None:
        declared = table(schema, "properties")
        fillers = {
            key: self._filler(part, (*step, "properties", key))
            for key, part in declared.items()
        }
        defaults = {
            key: default
            for key, part in declared.items()
            if (default := self._default(part)) is not _ABSENT
        }
        rest = self._filler(
            schema.get("additionalProperties"), (*step, "additionalProperties")
        )
        if not any(fillers.values()) and not defaults and rest is None:
            return None

        def fill(value: JSONValue, seen: _Seen) -> JSONValue:
            if not isinstance(value, dict):
                return value
            missing = {
                k: copy.deepcopy(d) for k, d in defaults.items() if k not in value
            }
            filled = value | missing
            for key, entry in filled.items():
                filler = fillers.get(key, rest)
                if filler is not None:
                    filled[key] = filler(entry, seen)
            return filled

        return fill

    def _list_filler(self, schema: Schema, step: Step) -> _Filler | None:
        first = schema.get("prefixItems")
        first = first if isinstance(first, list) else []
        fillers = [
            self._filler(part, (*step, "prefixItems", index))
            for index, part in enumerate(first)
        ]
        rest = self._filler(schema.get("items"), (*step, "items"))
        if rest is None and not any(fillers):
            return None

        def fill(value: JSONValue, seen: _Seen) -> JSONValue:
            if not isinstance(value, list):
                return value
            filled = list(value)
            for index, entry in enumerate(filled):
                filler = fillers[index] if index < len(fillers) else rest
                if filler is not None:
                    filled[index] = filler(entry, seen)
            return filled

        return fill

    def _union_filler(self, schema: Schema, step: Step, key: str) -> _Filler | None:
        parts = schema.get(key)
        if not isinstance(parts, list):
            return None
        branches = [
            (
                self._resolved(part),
                self._filler(part, (*step, key, index)),
                self._test((*step, key, index)),
            )
            for index, part in enumerate(parts)
        ]

        def fill(value: JSONValue, seen: _Seen) -> JSONValue:
            for form, filler, fits in branches:
                if may_fit(form, value):
                    filled = _once(filler, form, value, seen)
                    if fits(filled):
                        return filled
            return value

        return fill if any(filler for _, filler, _ in branches) else None

    def _test(self, step: Step) -> Fits:
        """Make a test when it is first wanted: most alternatives are never tried."""
        made: list[Fits] = []

        def fits(value: JSONValue) -> bool:
            if not made:
                made.append(self._fits(step))
            return made[0](value)

        return fits

    def _stripper(self, schema: Schema) -> _Filler | None:
        parts = schema.get("allOf")
        joined = parts if isinstance(parts, list) and parts else [schema]
        # An intersection drops keys if it says so, or if all that it joins do.
        if not _strips(schema) and not all(map(_strips, joined)):
            return None
        known = self._declared(schema, set())

        def strip(value: JSONValue, _seen: _Seen) -> JSONValue:
            if known is None or not isinstance(value, dict) or value.keys() <= known:
                return value
            return {key: entry for key, entry in value.items() if key in known}

        return strip

    def _declared(self, schema: JSONValue, met: set[int]) -> frozenset[str] | None:
        """The keys that a schema, or a part of it, has a name for; None if all."""
        if not isinstance(schema, dict) or id(schema) in met:
            return frozenset()
        met.add(id(schema))
        others = schema.get("additionalProperties", False)
        if others is not False or "patternProperties" in schema:
            return None
        known = frozenset(table(schema, "properties"))
        parts = [part for key in ("allOf", *UNIONS) for part in schema.get(key, ())]
        for part in [*parts, resolve(self._root, schema.get("$ref"))]:
            inner = self._declared(part, met)
            if inner is None:
                return None
            known |= inner
        return known

    def _resolved(self, schema: JSONValue) -> JSONValue:
        if isinstance(schema, dict) and schema.keys() == {"$ref"}:
            return resolve(self._root, schema["$ref"])
        return schema

    def _default(self, schema: JSONValue) -> JSONValue:
        """The default of a property, its own or that of what it refers to."""
        for _ in range(_MAX_REFERENCES):  # A reference may lead back to itself.
            if not isinstance(schema, dict):
                break
            if "default" in schema:
                return schema["default"]
            schema = resolve(self._root, schema.get("$ref"))
        return _ABSENT


def _once(
    filler: _Filler | None, schema: JSONValue, value: JSONValue, seen: _Seen
) -> JSONValue:
    """Fill a value by a schema; unions that try it again get the same answer."""
    if filler is None:
        return value
    key = (id(schema), id(value))
    if key not in seen:
        # The value is kept with the answer: its id must not be given away.
        seen[key] = (value, filler(value, seen))
    return seen[key][1]


def _strips(schema: JSONValue) -> bool:
    return isinstance(schema, dict) and schema.get(UNKNOWN_KEYS) == "strip"
