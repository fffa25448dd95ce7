"""Whether two schemas describe the same thing, and where they do not.

Two questions are asked. An action with an inline and a module schema needs both to be
the *same*: objects with the same fields, types and requiredness all the way down,
anything else of the same type at the top. A grader's schemas may *extend* a built-in
one: all its fields are there, the same way, and further fields are optional.

Types are those of JSON Schema, so a whole number and a number are two. What a
schema asks of a value beyond its type (lengths, limits, patterns, choices) does not
count, nor does what it does with unknown keys.
"""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.schema.builtin import SCHEME, builtin_schema, grader_contexts
from gambit_actors.schema.explaining import type_words
from gambit_actors.schema.forms import ANYTHING, Form, Unfolder, properties, required
from gambit_actors.schema.keywords import Schema

_GRADER_OUTPUT = f"{SCHEME}graders/grader_output.zod.ts"
# More alternatives than this are compared in the order they are written in.
_MANY_FORMS = 32
# Unions in unions multiply the ways to pair their alternatives up.
_MAX_TRIES = 20_000


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing in which two schemas differ.

    Attributes:
        path: the field, such as ``session.messages[].role``; empty for the whole.
        message: how it differs, seen from the first schema.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class GraderProblem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that keeps a deck from being a grader.

    Attributes:
        key: which of the deck's schemas.
        base: the built-in schema that came closest.
        path: the field in it; empty for the whole.
        message: how it differs.
    """

    key: Literal["contextSchema", "responseSchema"]
    base: str
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def differences(left: Schema, right: Schema) -> list[Difference]:
    """Compare two schemas deeply; nothing means that they match."""
    first, second = Unfolder(left).form(left), Unfolder(right).form(right)
    if first.objects or second.objects:
        return _Comparison(left, right, extends=False).run()
    return list(_type_difference(first, second, ""))


def extension_problems(base: Schema, schema: Schema) -> list[Difference]:
    """What keeps a schema from being a base schema with optional additions."""
    return _Comparison(base, schema, extends=True).run()


def grader_problems(context: Schema, response: Schema) -> list[GraderProblem]:
    """What keeps a deck with these two schemas from being a grader."""
    found = {
        uri: extension_problems(base, context)
        for uri, base in grader_contexts().items()
        # A schema that names the message it grades is one for turns.
        if ("messageToGrade" in properties(base)) == _grades_turns(context)
    }
    closest = min(found, key=lambda uri: len(found[uri]))
    output = extension_problems(builtin_schema(_GRADER_OUTPUT) or {}, response)
    return [
        GraderProblem(key="contextSchema", base=closest, path=d.path, message=d.message)
        for d in found[closest]
    ] + [
        GraderProblem(
            key="responseSchema", base=_GRADER_OUTPUT, path=d.path, message=d.message
        )
        for d in output
    ]


_Pair: TypeAlias = tuple[int, int]


class _Comparison:
    """One comparison of two documents."""

    def __init__(self, left: Schema, right: Schema, *, extends: bool) -> None:
        self._roots = (left, right)
        self._left, self._right = Unfolder(left), Unfolder(right)
        self._extends = extends
        # A pair met again is taken to match: either it did, or it has been told.
        self._met: set[_Pair] = set()
        self._tries = 0

    def run(self) -> list[Difference]:
        left, right = self._roots
        return list(dict.fromkeys(self._schemas(left, right, "")))

    def _schemas(
        self, left: JSONValue, right: JSONValue, path: str
    ) -> Iterator[Difference]:
        if (id(left), id(right)) in self._met:
            return
        self._met.add((id(left), id(right)))
        first, second = self._left.form(left), self._right.form(right)
        if first.types != second.types:
            yield from _type_difference(first, second, path)
            return
        yield from self._all_forms(first.objects, second.objects, path)
        yield from self._all_forms(first.lists, second.lists, path)

    def _all_forms(
        self, left: tuple[Schema, ...], right: tuple[Schema, ...], path: str
    ) -> Iterator[Difference]:
        """Compare the objects, or the lists, that a place can hold."""
        if len(left) != len(right):
            words = f"expected {len(left)} forms to choose from, has {len(right)}"
            yield Difference(path=path, message=words)
        elif len(left) == 1 or len(left) > _MANY_FORMS:
            for first, second in zip(left, right, strict=True):
                yield from self._form_pair(first, second, path)
        elif not self._pair_up(left, list(right)):
            words = f"the {len(left)} forms to choose from are "
            is_known = self._tries <= _MAX_TRIES
            words += "not the same" if is_known else "too many to compare"
            yield Difference(path=path, message=words)

    def _pair_up(self, left: tuple[Schema, ...], right: list[Schema]) -> bool:
        for first in left:
            same = (s for s in right if self._is_pair(first, s))
            found = next(same, None)
            if found is None:
                return False
            right = [schema for schema in right if schema is not found]
        return True

    def _is_pair(self, first: Schema, second: Schema) -> bool:
        self._tries += 1
        if self._tries > _MAX_TRIES:
            return False
        # What is met while trying has been compared for this attempt only.
        met = set(self._met)
        matches = not any(True for _ in self._form_pair(first, second, ""))
        self._met = met
        return matches

    def _form_pair(
        self, left: Schema, right: Schema, path: str
    ) -> Iterator[Difference]:
        yield from self._fields(left, right, path)
        yield from self._open_fields(left, right, path)
        yield from self._entries(left, right, path)

    def _fields(self, left: Schema, right: Schema, path: str) -> Iterator[Difference]:
        expected, present = properties(left), properties(right)
        needed, given = required(left), required(right)
        for key, part in expected.items():
            place = f"{path}.{key}" if path else key
            if key not in present:
                yield Difference(path=path, message=f"the field {key!r} is missing")
                continue
            if (key in needed) != (key in given):
                words = ("optional", "required")
                message = f"expected to be {words[key in needed]}, is "
                yield Difference(path=place, message=message + words[key in given])
            yield from self._schemas(part, present[key], place)
        for key in present.keys() - expected.keys():
            if not self._extends:
                message = f"the field {key!r} is not expected"
                yield Difference(path=path, message=message)
            elif key in given:
                message = f"extra field {key!r} must be optional"
                yield Difference(path=path, message=message)

    def _open_fields(
        self, left: Schema, right: Schema, path: str
    ) -> Iterator[Difference]:
        """Compare what any other key may hold, where either side says so."""
        first, second = _others(left), _others(right)
        if first is not second:
            place = f"{path}.*" if path else "*"
            yield from self._schemas(first or ANYTHING, second or ANYTHING, place)

    def _entries(self, left: Schema, right: Schema, path: str) -> Iterator[Difference]:
        first, second = _listed(left), _listed(right)
        if len(first) != len(second):
            words = f"expected {len(first)} fixed entries, has {len(second)}"
            yield Difference(path=path, message=words)
            return
        for index, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from self._schemas(one, other, f"{path}[{index}]")
        rest = left.get("items", ANYTHING), right.get("items", ANYTHING)
        yield from self._schemas(*rest, f"{path}[]")


def _type_difference(first: Form, second: Form, path: str) -> Iterator[Difference]:
    if first.types != second.types:
        words = f"expected {_words(first)}, is {_words(second)}"
        yield Difference(path=path, message=words)


def _words(form: Form) -> str:
    return type_words(form.types) if form.types else "anything"


def _grades_turns(context: Schema) -> bool:
    form = Unfolder(context).form(context)
    return any("messageToGrade" in properties(schema) for schema in form.objects)


def _others(schema: Schema) -> Schema | None:
    """What undeclared keys hold, if the schema has something to say about it."""
    found = schema.get("additionalProperties")
    return found if isinstance(found, dict) and found else None


def _listed(schema: Schema) -> list[JSONValue]:
    found = schema.get("prefixItems")
    return found if isinstance(found, list) else []
