"""The front of the package: a reference in a deck becomes a JSON Schema.

A reference is a ``.zod.ts`` or ``.json`` file beside the file that names it, a type
in a Python module (``module.py:Name``), or a built-in ``gambit://schemas/...``. What
is wrong with it is a diagnostic; nothing here raises for what an author wrote.

Files are read by a function the caller hands in, and types are described by another,
so this module stays free of I/O. A `SchemaCache` compares texts, not times: a schema is
read again when its file, or a file that it imports, has another text than before.
"""

import json
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NoReturn, TypeAlias

import msgspec

from gambit_actors.errors import SchemaError
from gambit_actors.schema.builtin import (
    SCHEME,
    builtin_name,
    builtin_schema,
    closest_uri,
)
from gambit_actors.schema.diagnostics import Diagnostic, Severity
from gambit_actors.schema.keywords import Schema, walk
from gambit_actors.schema.positions import position_of
from gambit_actors.schema.python_types import DescribeType
from gambit_actors.schema.spelling import unheard_keywords
from gambit_actors.schema.validation import Validator

ReadFile: TypeAlias = Callable[[str], str | None]
"""Gives the text of a file, or None if there is none."""

CACHED_SCHEMAS = 4096
"""How many references a `SchemaCache` remembers unless told otherwise."""


class LoadedSchema(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What a reference turned out to be.

    Attributes:
        schema: JSON Schema 2020-12; None if there is an error among the diagnostics.
        diagnostics: what was found on the way.
        source: the file or the canonical built-in URI the schema is from.
    """

    schema: Schema | None
    diagnostics: tuple[Diagnostic, ...] = ()
    source: str

    @cached_property
    def validator(self) -> Validator:
        """Checks values; compiled when first asked for, and one for all who ask.

        Raises:
            SchemaError: there is no schema, or it is not one to check values against.
        """
        if self.schema is None:
            raise SchemaError("", f"{self.source} has no schema that can be used")
        return Validator(self.schema)


class SchemaCache:
    """Remembers what references turned out to be, for as long as that is true.

    Args:
        max_schemas: how many; past that, the one not asked for longest is forgotten.
    """

    def __init__(self, *, max_schemas: int = CACHED_SCHEMAS) -> None:
        self._max_schemas = max_schemas
        # The one asked for last comes last.
        self._known: dict[
            tuple[str, str], tuple[dict[str, str | None], LoadedSchema]
        ] = {}

    def load(
        self,
        reference: str,
        *,
        base: str,
        read_file: ReadFile,
        describe_type: DescribeType | None = None,
    ) -> LoadedSchema:
        """Load a schema, parsing only what has changed; see `load_schema`.

        As long as nothing has changed the very same object is returned.
        """
        # Diagnostics for a reference point into the file with the reference.
        key = (reference, base)
        texts, loaded = self._known.pop(key, ({}, None))
        if loaded is None or any(read_file(f) != text for f, text in texts.items()):
            texts = {}

            def read(file: str) -> str | None:
                if file not in texts:  # One loading sees one state of a file.
                    texts[file] = read_file(file)
                return texts[file]

            loaded = load_schema(
                reference, base=base, read_file=read, describe_type=describe_type
            )
        # Why a Python type could not be had may lie in any file, or in none: in a
        # sibling of its module, in a package not installed. So it is asked for again.
        if loaded.schema is not None or not loaded.source.endswith(".py"):
            self._known[key] = (texts, loaded)
        if len(self._known) > self._max_schemas:
            del self._known[next(iter(self._known))]
        return loaded


def load_schema(
    reference: str,
    *,
    base: str,
    read_file: ReadFile,
    describe_type: DescribeType | None = None,
) -> LoadedSchema:
    """Load the schema that a file refers to.

    Args:
        reference: as written, such as ``./order.zod.ts`` or ``types.py:Order``.
        base: the file it is written in.
        read_file: gives the text of a file, by its path.
        describe_type: describes Python types; without it they are not to be had.
    """
    if reference.startswith("gambit://"):
        return _builtin(reference, base)
    path, colon, name = reference.rpartition(":")
    if colon and path.endswith(".py"):
        return _from_python(
            joined(base, path),
            name,
            base,
            read_file=read_file,
            describe_type=describe_type,
        )
    file = joined(base, reference)
    if not reference.endswith((".zod.ts", ".ts", ".json")):
        hint = "Schemas are .zod.ts or .json files, or types such as module.py:Name."
        words = f"{reference} is not a schema that can be read."
        return _failed("GS041", words, file=base, source=file, hint=hint)
    text = read_file(file)
    if text is None:
        words = f"The schema file {file} does not exist."
        return _failed("GS040", words, file=base, source=file)
    if reference.endswith(".json"):
        return _from_json(text, file)
    return _from_zod(text, file, read_file)


def joined(base: str, reference: str) -> str:
    """The path of a file that is named relative to another file."""
    if reference.startswith("/"):
        return reference
    folder = base.split("/")[:-1]
    for part in reference.split("/"):
        if part == ".." and folder and folder[-1] not in ("", ".", ".."):
            folder.pop()
        elif part not in ("", "."):
            folder.append(part)
    return "/".join(folder)


def _builtin(reference: str, base: str) -> LoadedSchema:
    name = builtin_name(reference)
    schema = builtin_schema(name.uri) if reference.startswith(SCHEME) else None
    if schema is None:
        closest = closest_uri(name.uri)
        hint = None if closest is None else f"Did you mean {closest}?"
        words = f"There is no built-in schema {reference}."
        return _failed("GS042", words, file=base, source=name.uri, hint=hint)
    notes = []
    if name.is_deprecated:
        words = f"{reference} is an old spelling; write {name.uri}."
        notes.append(_note("GS043", words, file=base, severity="warning"))
    return LoadedSchema(schema=schema, diagnostics=tuple(notes), source=name.uri)


def _from_zod(text: str, file: str, read_file: ReadFile) -> LoadedSchema:
    # Late, because it loads a parser that most processes never need.
    from gambit_actors.schema.zod import read_zod  # noqa: PLC0415

    module = read_zod(text, file=file, read_file=read_file)
    loaded = LoadedSchema(
        schema=module.schema, diagnostics=tuple(module.diagnostics), source=file
    )
    if loaded.schema is None:
        return loaded
    try:
        _compiled = loaded.validator
    except SchemaError as problem:
        # A regular expression that is too large, or not one to the validator.
        words = f"Values cannot be checked against this schema: {problem}."
        return _failed("GS049", words, file=file, source=file)
    return loaded


def _from_python(
    file: str,
    name: str,
    base: str,
    *,
    read_file: ReadFile,
    describe_type: DescribeType | None,
) -> LoadedSchema:
    # No text is used here, but asking for it lets a cache see that it changed.
    if read_file(file) is None:
        words = f"The Python module {file} does not exist."
        return _failed("GS040", words, file=base, source=file)
    if describe_type is None:
        words = f"{file}:{name} is a Python type, and none can be imported here."
        return _failed("GS046", words, file=base, source=file)
    try:
        described = describe_type(file, name)
        for other in described.files:
            read_file(other)
        loaded = LoadedSchema(schema=described.schema, source=file)
        _compiled = loaded.validator  # A pattern in it may be one we do not run.
    except LookupError as problem:
        words = f"{file}:{name} cannot be found: {problem.args[0]}."
        return _failed("GS046", words, file=base, source=file)
    except SchemaError as problem:
        return _failed("GS047", f"{problem}.", file=base, source=file)
    return loaded


def _from_json(text: str, file: str) -> LoadedSchema:
    text = text.removeprefix("\ufeff")
    try:
        schema = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as problem:
        return _bad_json(problem.msg, file, (problem.lineno, problem.colno))
    except RecursionError:
        return _bad_json("it is nested too deeply", file, (1, 1))
    except ValueError as problem:
        # NaN, or a number of more digits than Python reads.
        return _bad_json(str(problem), file, (1, 1))
    if not isinstance(schema, dict):
        words = "A JSON Schema is an object here, in braces."
        return _failed("GS045", words, file=file, source=file, at=position_of(text, ()))
    notes = tuple(_spelling_notes(schema, text, file))
    loaded = LoadedSchema(schema=schema, diagnostics=notes, source=file)
    try:
        _compiled = loaded.validator  # Which is how a schema is checked itself.
    except SchemaError as problem:
        at = position_of(text, problem.steps)
        words = _bad_schema(schema, problem)
        return _failed("GS045", words, file=file, source=file, at=at)
    return loaded


def _spelling_notes(schema: Schema, text: str, file: str) -> Iterator[Diagnostic]:
    for step, word, guess in unheard_keywords(schema):
        at = position_of(text, step)
        words = "This schema has no keyword of JSON Schema, so it allows everything."
        if word:
            words = f"{word} is not a keyword of JSON Schema, and is ignored."
        hint = None if guess is None else f"Did you mean {guess}?"
        yield _note("GS048", words, file=file, severity="warning", at=at, hint=hint)


def _bad_schema(schema: Schema, problem: SchemaError) -> str:
    is_old_tuple = any(
        (*step, "items") == problem.steps and isinstance(part.get("items"), list)
        for step, part in walk(schema)
    )
    if not is_old_tuple:
        return f"This is not a valid JSON Schema: {problem}."
    return (
        f"{problem.path} is a list, as it was before JSON Schema 2020-12; write"
        " prefixItems instead, and items for what was additionalItems."
    )


def _refuse(name: str) -> NoReturn:
    msg = f"{name} is not a JSON number"
    raise ValueError(msg)


def _bad_json(reason: str, file: str, at: tuple[int, int]) -> LoadedSchema:
    words = f"This is not JSON: {reason[:1].lower()}{reason[1:]}."
    return _failed("GS044", words, file=file, source=file, at=at)


def _failed(
    code: str,
    message: str,
    *,
    file: str,
    source: str,
    at: tuple[int, int] = (1, 1),
    hint: str | None = None,
) -> LoadedSchema:
    note = _note(code, message, file=file, at=at, hint=hint)
    return LoadedSchema(schema=None, diagnostics=(note,), source=source)


def _note(
    code: str,
    message: str,
    *,
    file: str,
    severity: Severity = "error",
    at: tuple[int, int] = (1, 1),
    hint: str | None = None,
) -> Diagnostic:
    line, column = at
    return Diagnostic(
        code=code,
        severity=severity,
        message=message,
        file=file,
        line=line,
        column=column,
        hint=hint,
    )
