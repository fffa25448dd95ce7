"""The process that looks at an author's Python module: import it, describe it, end.

`python_modules` runs this as a program, says what it wants to know on stdin, and reads
one answer from stdout. The author's code is handed neither: before it is imported,
stdin, stdout and stderr lead nowhere, and the answer leaves by a descriptor of our own,
after a token that came with the question. So a module that writes where it should not
spoils its answer and does not change it. One that means to can: see `guarding`.

A module that loops, waits or raises is described by a reason in plain words. What this
process cannot say any more, because it was ended, `python_modules` does.
"""

import importlib.util
import os
import sys
import traceback
from contextlib import suppress
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import NoReturn, Self, TypeAlias

import msgspec

from gambit_actors.deck.compute import ComputeDeck, SchemaSource
from gambit_actors.errors import SchemaError
from gambit_actors.schema.keywords import Schema
from gambit_actors.schema.python_types import schema_from_type
from gambit_actors.store.guarding import (
    TimeUp,
    allow_no_changes,
    limit_memory,
    limit_time,
    stop_clock,
)

_MAX_REASON_CHARACTERS = 500
_STDLIB = Path(os.__file__).parent
_OURS = Path(__file__).parent.parent

Told: TypeAlias = str | Schema | None
"""A JSON Schema, or for a deck also a reference to one, or that it has none."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be described.

    Attributes:
        file: the absolute path of a module.
        name: of a type in it; None for the deck it defines.
        time_limit: in seconds.
    """

    file: str
    name: str | None
    time_limit: float


class Found(msgspec.Struct, frozen=True, kw_only=True, tag="found"):
    """The schema of a type, or the context and response schemas of a deck.

    Attributes:
        schemas: those, as JSON; a deck may also have references and None.
        files: further files it was made from, relative to the folder of the module.
    """

    schemas: tuple[Told, ...]
    files: tuple[str, ...]


class NotFound(msgspec.Struct, frozen=True, kw_only=True, tag="not_found"):
    """There is no such thing, or the module cannot be imported."""

    reason: str


class NoSchema(msgspec.Struct, frozen=True, kw_only=True, tag="no_schema"):
    """There is such a type, and it has no JSON form."""

    reason: str


Reply: TypeAlias = Found | NotFound | NoSchema


def main() -> NoReturn:
    """Answer one request, and end whatever the module has left running."""
    channel = os.dup(sys.stdout.fileno())
    token, _, question = sys.stdin.buffer.read().partition(b"\n")
    request = msgspec.json.decode(question, type=Request)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    try:
        allow_no_changes()
        limit_memory()
        limit_time(request.time_limit)
        answer = _answer(request)
        with open(channel, "wb") as out:  # noqa: PTH123  (a descriptor, not a path)
            out.write(token + answer + b"\n")
    finally:
        os._exit(0)  # Threads and exit handlers of the module are not waited for.


def is_stdlib(entry: str) -> bool:
    """Whether an entry of sys.path is Python's own."""
    return Path(entry) in (_STDLIB, _STDLIB / "lib-dynload")


def import_file(file: Path) -> ModuleType:
    """Import a module by its path; what stands beside it can be imported by name.

    A file beside it comes before an installed package of its name, but never before
    Python's own: a deck may well have a ``calendar.py``.

    Raises:
        ImportError: the file does not have the name of a module; or what it raises.
    """
    sys.path.insert(sum(map(is_stdlib, sys.path)), str(file.parent))
    is_taken = file.stem in sys.stdlib_module_names or file.stem in sys.modules
    name = f"{file.stem}_deck" if is_taken else file.stem
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        msg = f"{file.name} is not named like a Python module"
        raise ImportError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Where dataclasses and msgspec look names up.
    spec.loader.exec_module(module)
    return module


def plain(words: str) -> str:
    """One line of text that can be sent, not too long, to be put in a sentence."""
    line = " ".join(words.encode("utf-8", "replace").decode().split())
    if len(line) > _MAX_REASON_CHARACTERS:
        line = line[:_MAX_REASON_CHARACTERS] + "…"
    return line.rstrip(".: ")


class _Trial:
    """Runs a block in which the author's code may raise anything, and keeps it."""

    # No task runs in this process, so nothing here can be a cancellation.
    def __init__(self) -> None:
        self.problem: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, problem: BaseException | None, __: object) -> bool:
        self.problem = problem
        return True


def _answer(request: Request) -> bytes:
    file = Path(request.file)
    with _Trial() as trial:
        answer = msgspec.json.encode(_described(file, request.name))
        stop_clock()
    if trial.problem is not None:
        reason = _reason(trial.problem, file.parent, request.time_limit)
        words = f"{file.name} cannot be imported: {reason}"
        answer = msgspec.json.encode(NotFound(reason=plain(words)))
    return answer


def _described(file: Path, name: str | None) -> Reply:
    before = set(sys.modules)
    module = import_file(file)
    schemas: tuple[Told, ...]
    try:
        if name is None:
            schemas = _deck_schemas(module, file.name)
        else:
            schemas = (schema_from_type(_type_in(module, name, file.name)),)
    except LookupError as problem:
        return NotFound(reason=plain(str(problem.args[0])))
    except SchemaError as problem:
        return NoSchema(reason=plain(str(problem)))
    loaded = [sys.modules[key] for key in sys.modules.keys() - before]
    files = (_near(getattr(other, "__file__", None), file.parent) for other in loaded)
    near = {path for path in files if path is not None and path != file.name}
    return Found(schemas=schemas, files=tuple(sorted(near)))


def _type_in(module: ModuleType, name: str, file: str) -> object:
    try:
        return reduce(getattr, name.split("."), module)
    except AttributeError as problem:
        msg = f"{file} defines no {name or 'type without a name'}"
        raise LookupError(msg) from problem


def _deck_schemas(module: ModuleType, file: str) -> tuple[Told, Told]:
    deck = getattr(module, "deck", None)
    if isinstance(deck, ComputeDeck):
        return (
            _schema("context_schema", deck.context_schema, file),
            _schema("response_schema", deck.response_schema, file),
        )
    msg = f"{file} defines no deck; write deck = define_deck(...) in it"
    if deck is not None:
        msg = f"the deck in {file} was not made by define_deck"
    raise LookupError(msg)


def _schema(key: str, source: SchemaSource, file: str) -> Told:
    try:
        if source is not None and not isinstance(source, str | dict):
            return schema_from_type(source)
        msgspec.json.encode(source)
    except SchemaError as problem:
        msg = f"the {key} of {file} cannot be used: {problem}"
        raise LookupError(msg) from problem
    except (TypeError, ValueError, RecursionError) as problem:
        msg = f"the {key} of {file} is not JSON: {problem}"
        raise LookupError(msg) from problem
    return source


def _near(file: str | None, folder: Path) -> str | None:
    """The path of a source file from a folder; None if it is not the author's."""
    if file is None or not file.endswith(".py"):
        return None
    path = Path(file)
    if not path.is_relative_to(folder):
        return None
    if path.is_relative_to(_STDLIB) or path.is_relative_to(_OURS):
        return None
    near = path.relative_to(folder)
    is_installed = {"site-packages", "dist-packages"} & set(near.parts)
    return None if is_installed else near.as_posix()


def _reason(problem: BaseException, folder: Path, time_limit: float) -> str:
    """Why an import ended as it did, with the author's line where that is known."""
    place = _place(problem, folder)
    match problem:
        case TimeUp():
            at = f"; it was at {place}" if place else ""
            return f"it did not end within {time_limit:g} seconds{at}"
        case SystemExit():
            return f"{place or 'it'} ends the program"
        case SyntaxError(msg=words) if place:
            return f"{place} is not Python: {words}"
    words = ""
    with suppress(BaseException):  # Which may be the author's, too.
        words = str(problem)
    return f"{place or 'it'} raises {type(problem).__name__}: {words}"


def _place(problem: BaseException, folder: Path) -> str | None:
    """The innermost line that the author wrote."""
    lines = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(problem.__traceback__)
    ]
    if isinstance(problem, SyntaxError):
        lines.append((problem.filename or "", problem.lineno or 1))
    for file, line in reversed(lines):
        near = _near(file, folder)
        if near is not None:
            return f"line {line} of {near}"
    return None


if __name__ == "__main__":
    main()
