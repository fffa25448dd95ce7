"""Check values against a JSON Schema, the way Zod would.

A `Validator` is compiled once and used for any number of values. `Validator.check`
first does on a copy what Zod does besides checking (see `filling`), then lists
everything that is wrong, in words.

Schemas and values may come from anybody, so nothing here can be made to fetch or to
hang. References lead nowhere but into the schema. Patterns run on an engine that
takes time linear in the text, which costs look-around and back-references. Unions
that multiply are counted before they are tried (see `bounding`).
"""

from collections.abc import Sequence
from typing import cast

import msgspec
from jsonschema_rs import (
    Draft202012,
    Draft202012Validator,
    RegexOptions,
    Registry,
    ValidationError,
    ValidationErrorKind,
)

from gambit_actors.errors import SchemaError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.schema.bounding import TELL_LIMIT, TRY_LIMIT, WorkCount
from gambit_actors.schema.explaining import Problem, path_from, problems_from
from gambit_actors.schema.filling import FillerCompiler, Fits, needs_filling
from gambit_actors.schema.keywords import (
    UNKNOWN_KEYS,
    Schema,
    Step,
    all_parts,
    fragment,
    walk,
)

__all__ = ["Checked", "Problem", "Validator"]

# Patterns larger than this, compiled, are refused; \p{L}{1,100} still fits.
_PATTERNS = RegexOptions(size_limit=10_000_000, dfa_size_limit=10_000_000)
_DOCUMENT = "urn:gambit:schema"
_TOO_DEEP = "nested too deeply"
# On the way to a part of a schema. The validator gives up long before.
_MAX_KEYS = 2000


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """A value after the check: filled and stripped, with all that is wrong with it."""

    value: JSONValue
    problems: tuple[Problem, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


class Validator:
    """Checks values against one schema.

    Args:
        schema: JSON Schema 2020-12; it must not be changed afterwards.

    Raises:
        SchemaError: the schema is not valid, or leads outside itself.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        try:
            self._lenient = _without_strip_refusals(schema)
            self._compiled = _compiled(self._lenient)
            self._work = WorkCount(self._lenient)
            self._registry: Registry | None = None
            self._fill = None
            if needs_filling(self._lenient):
                self._fill = FillerCompiler(self._lenient, self._fits).compile()
        except RecursionError as problem:
            raise SchemaError("", _TOO_DEEP) from problem

    def check(self, value: JSONValue) -> Checked:
        """Fill in, strip and check a value; the value itself is left as it is."""
        try:
            return self._check(value)
        except RecursionError:
            problem = _TOO_DEEP
        except UnicodeEncodeError:
            problem = "has text with half a surrogate pair in it, which is not text"
        except (ValueError, TypeError) as error:
            # The validator met what JSON does not have, or its own depth limit.
            is_depth = "ecursion" in str(error)
            problem = _TOO_DEEP if is_depth else f"not a JSON value: {error}"
        return Checked(value=value, problems=(Problem(path="", message=problem),))

    def _check(self, value: JSONValue) -> Checked:
        is_bounded = self._work.is_bounded
        if not is_bounded and self._work.cost_to_try(value) > TRY_LIMIT:
            message = "the schema has too many ways to read this value to try them all"
            return Checked(value=value, problems=(Problem(path="", message=message),))
        filled = value if self._fill is None else self._fill(value)
        if self._compiled.is_valid(filled):
            return Checked(value=filled)
        if not is_bounded and self._work.cost_to_tell(filled) > TELL_LIMIT:
            message = "fits none of the forms of the schema, which are too many to list"
            return Checked(value=filled, problems=(Problem(path="", message=message),))
        problems = problems_from(self._compiled.iter_errors(filled))
        return Checked(value=filled, problems=problems)

    def _fits(self, step: Step) -> Fits:
        """Make the test for one part of the schema."""
        if self._registry is None:
            resources = [(_DOCUMENT, self._lenient)]
            self._registry = Registry(resources, Draft202012, _refuse)
        part = {"$ref": _DOCUMENT + fragment(step)}
        return _compiled(part, self._registry).is_valid


def _compiled(schema: Schema, registry: Registry | None = None) -> Draft202012Validator:
    try:
        return Draft202012Validator(
            schema,
            validate_formats=True,
            retriever=_refuse,
            registry=registry,
            pattern_options=_PATTERNS,
        )
    except ValidationError as problem:
        if isinstance(problem.kind, ValidationErrorKind.Referencing):
            raise _reference_error(schema, str(problem.kind.error)) from problem
        first, *_ = problems_from([problem])
        raise _error_at(problem.instance_path, first.message) from problem
    except ValueError as problem:
        is_depth = "ecursion" in str(problem)
        words = _TOO_DEEP if is_depth else f"not a JSON document: {problem}"
        raise SchemaError("", words) from problem


def _error_at(steps: Sequence[str | int], problem: str) -> SchemaError:
    return SchemaError(path_from(steps), problem, steps=steps)


def _refuse(uri: str) -> JSONValue:
    """Stand where the validator would fetch what a reference names."""
    msg = f"{uri} is outside the schema"
    raise ValueError(msg)


def _reference_error(schema: Schema, reason: str) -> SchemaError:
    """Find the reference that the validator could not follow."""
    for step, part in walk(schema):
        reference = part.get("$ref", part.get("$dynamicRef"))
        if not isinstance(reference, str):
            continue
        if not reference.startswith("#"):
            # An embedded $id could make it local; then the validator's words are
            # about another reference, and that one is looked for.
            if reference.partition("#")[0] in reason:
                return _error_at(
                    (*step, "$ref"),
                    f"{reference} is outside the schema, and is not fetched",
                )
        elif reference[1:] in reason:
            return _error_at((*step, "$ref"), f"{reference} points at nothing")
    return SchemaError("", reason)


def _without_strip_refusals(schema: Schema) -> Schema:
    """The schema as it holds after stripping: a key that is dropped is no mistake.

    In a union this matters also before stripping: the alternative that was not
    followed must not be held against the value for a key that it would have dropped.
    """
    if not any(part.get(UNKNOWN_KEYS) == "strip" for _, part in _walk_once(schema)):
        return schema
    return cast(Schema, _copied(schema))


def _walk_once(schema: Schema) -> list[tuple[Step, Schema]]:
    """All schemas in a schema; a document that contains itself is refused."""
    found = []
    for step, part in walk(schema):
        if len(step) > _MAX_KEYS:
            raise RecursionError
        found.append((step, part))
    return found


def _copied(schema: JSONValue) -> JSONValue:
    if not isinstance(schema, dict):
        return schema
    copied = dict(schema)
    if schema.get(UNKNOWN_KEYS) == "strip":
        for key in ("additionalProperties", "unevaluatedProperties"):
            if schema.get(key) is False:
                del copied[key]
    for step, part in all_parts(schema):
        if isinstance(part, dict):
            _put(copied, schema, step, _copied(part))
    return copied


def _put(copied: Schema, original: Schema, step: Step, part: JSONValue) -> None:
    """Set a part of a copy, copying the list or table that holds it first."""
    key = str(step[0])
    if len(step) == 1:
        copied[key] = part
        return
    if copied[key] is original[key]:
        copied[key] = original[key].copy()
    copied[key][step[1]] = part
