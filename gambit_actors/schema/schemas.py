"""The front of the package: a reference in a deck becomes a JSON Schema.

A reference is a ``.zod.ts`` or ``.json`` file beside the file that names it, a type
in a Python module (``module.py:Name``), or a built-in ``gambit://schemas/...``. What
is wrong with it is a diagnostic; nothing here raises for what an author wrote.

Files are read by a function the caller hands in, and types are found by another, so
this module stays free of I/O. A `SchemaCache` compares texts, not times: a schema is
read again when its file, or a file that it imports, has another text than before.
"""

import json
from collections.abc import Callable
from typing import NoReturn, Protocol, TypeAlias

import msgspec

from gambit_actors.errors import SchemaError
from gambit_actors.schema.builtin import (
    SCHEME,
    builtin_name,
    builtin_schema,
    closest_uri,
)
from gambit_actors.schema.diagnostics import Diagnostic, Severity
from gambit_actors.schema.keywords import Schema
from gambit_actors.schema.positions import position_of
from gambit_actors.schema.python_types import PythonType, schema_from_type
from gambit_actors.schema.validation import Validator

ReadFile: TypeAlias = Callable[[str], str | None]
"""Gives the text of a file, or None if there is none."""


class FindType(Protocol):
    """Imports a module and gives a type in it."""

    def __call__(self, path: str, name: str, /) -> PythonType:
        """Find a type.

        Raises:
            LookupError: there is no such type, or its module cannot be imported; the
                message says why.
        """


class LoadedSchema(msgspec.Struct, frozen=True, kw_only=True):
    """What a reference turned out to be.

    Attributes:
        schema: JSON Schema 2020-12; None if there is an error among the diagnostics.
        diagnostics: what was found on the way.
        source: the file or the canonical built-in URI the schema is from.
    """

    schema: Schema | None
    diagnostics: tuple[Diagnostic, ...] = ()
    source: str


class SchemaCache:
    """Remembers what references turned out to be, for as long as that is true."""

    def __init__(self) -> None:
        self._known: dict[
            tuple[str, str], tuple[dict[str, str | None], LoadedSchema]
        ] = {}

    def load(
        self,
        reference: str,
        *,
        base: str,
        read_file: ReadFile,
        find_type: FindType | None = None,
    ) -> LoadedSchema:
        """Load a schema, parsing only what has changed; see `load_schema`.

        As long as nothing has changed the very same object is returned.
        """
        # Diagnostics for a reference point into the file with the reference.
        key = (reference, base)
        if key in self._known:
            texts, loaded = self._known[key]
            if all(read_file(file) == text for file, text in texts.items()):
                return loaded
        seen: dict[str, str | None] = {}

        def read(file: str) -> str | None:
            if file not in seen:  # One loading sees one state of a file.
                seen[file] = read_file(file)
            return seen[file]

        loaded = load_schema(reference, base=base, read_file=read, find_type=find_type)
        self._known[key] = (seen, loaded)
        return loaded


def load_schema(
    reference: str,
    *,
    base: str,
    read_file: ReadFile,
    find_type: FindType | None = None,
) -> LoadedSchema:
    """Load the schema that a file refers to.

    Args:
        reference: as written, such as ``./order.zod.ts`` or ``types.py:Order``.
        base: the file it is written in.
        read_file: gives the text of a file, by its path.
        find_type: imports Python types; without it they are not to be had.
    """
    if reference.startswith("gambit://"):
        return _builtin(reference, base)
    path, colon, name = reference.rpartition(":")
    if colon and path.endswith(".py"):
        return _from_python(
            joined(base, path), name, base, read_file=read_file, find_type=find_type
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
    folder = base.replace("\\", "/").split("/")[:-1]
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
    return LoadedSchema(
        schema=module.schema, diagnostics=tuple(module.diagnostics), source=file
    )


def _from_python(
    file: str,
    name: str,
    base: str,
    *,
    read_file: ReadFile,
    find_type: FindType | None,
) -> LoadedSchema:
    # The text is not used, but asking for it lets a cache see that it changed.
    if read_file(file) is None:
        words = f"The Python module {file} does not exist."
        return _failed("GS040", words, file=base, source=file)
    if find_type is None:
        words = f"{file}:{name} is a Python type, and none can be imported here."
        return _failed("GS046", words, file=base, source=file)
    try:
        kind = find_type(file, name)
    except LookupError as problem:
        words = f"{file}:{name} cannot be found: {problem.args[0]}."
        return _failed("GS046", words, file=base, source=file)
    try:
        return LoadedSchema(schema=schema_from_type(kind), source=file)
    except SchemaError as problem:
        return _failed("GS047", f"{problem}.", file=base, source=file)


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
    try:
        Validator(schema)
    except SchemaError as problem:
        at = position_of(text, problem.steps)
        words = f"This is not a valid JSON Schema: {problem}."
        return _failed("GS045", words, file=file, source=file, at=at)
    return LoadedSchema(schema=schema, source=file)


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
