"""The built-in tools at work: a call in, an envelope out.

Whatever the model asked for, it is answered: what is refused, missing or broken is an
envelope, so a file that is not there does not end a run. Only what is wrong with us is
raised. Files are read and written in threads; searches and programs are processes.
"""

import json
import sys
from functools import partial
from pathlib import Path
from typing import TypeVar, assert_never

import msgspec
import trio

from gambit_actors.actors import searching
from gambit_actors.actors.confined.own_files import Sources
from gambit_actors.actors.exec_tool import PATH, Exec, Kept, run_group, run_program
from gambit_actors.actors.file_tools import (
    ApplyPatch,
    ListDir,
    Reach,
    ReadFile,
    Refused,
    apply_patch,
    beneath,
    envelope_from_problem,
    list_dir,
    read_file,
)
from gambit_actors.deck.permissions import Permissions
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.calls import BuiltinCall
from gambit_actors.run.envelopes import Envelope, refusal

SEARCH_SECONDS = 10.0
MAX_MATCHES = 2000

# As JSON, in which a character may take six, with a path for each of the matches.
_MAX_ANSWER = 8 * searching.MAX_TEXT + 256 * MAX_MATCHES
_MAX_WORDS = 4096
# Isolated, without the packages that are installed: it needs none, and starts sooner.
_SEARCHER = ("-I", "-S", "-B", str(Path(searching.__file__).resolve()))

Asked = TypeVar("Asked")


class GrepFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of ``grep_files``."""

    path: str
    query: str
    max_matches: int = 200


async def use_builtin(
    call: BuiltinCall,
    permissions: Permissions,
    *,
    folder: str,
    sources: Sources = frozenset,
) -> Envelope:
    """Use a built-in tool for a model.

    Args:
        call: what it asked for, held against the tool's schema.
        permissions: what its deck may do.
        folder: where its relative paths start; absolute.
        sources: what the deck and those around it are made from; see `OwnFiles`.

    Returns:
        The answer, or why there is none.
    """
    await trio.lowlevel.checkpoint()
    reach = Reach(permissions=permissions, folder=folder, sources=sources)
    subject = call.arguments.get("cwd" if call.tool.name == "exec" else "path", ".")
    try:
        return await _used(call, reach)
    except Refused as problem:
        return problem.envelope
    except msgspec.ValidationError as problem:
        return refusal(400, "invalid_input", str(problem))
    except OSError as problem:
        is_change = call.tool.name == "apply_patch"
        code = "write_failed" if is_change else "read_failed"
        return envelope_from_problem(subject, problem, code=code)


async def _used(call: BuiltinCall, reach: Reach) -> Envelope:
    name, arguments = call.tool.name, call.arguments
    match name:
        case "exec":
            return await run_program(_asked(arguments, Exec), reach)
        case "grep_files":
            return await _grep_files(_asked(arguments, GrepFiles), reach)
        case "read_file":
            work = partial(read_file, _asked(arguments, ReadFile), reach)
        case "list_dir":
            work = partial(list_dir, _asked(arguments, ListDir), reach)
        case "apply_patch":
            work = partial(apply_patch, _asked(arguments, ApplyPatch), reach)
        case _:
            assert_never(name)
    # To read is nothing that must be seen through; a change is made or it is not.
    can_leave = name != "apply_patch"
    payload = await trio.to_thread.run_sync(work, abandon_on_cancel=can_leave)
    return Envelope(payload=payload)


def _asked(arguments: dict[str, JSONValue], kind: type[Asked]) -> Asked:
    # Not strict, because 1.0 is an integer to a schema and none to Python.
    return msgspec.convert(arguments, kind, strict=False)


async def _grep_files(asked: GrepFiles, reach: Reach) -> Envelope:
    real, is_folder = await trio.to_thread.run_sync(
        _searchable, asked, reach, abandon_on_cancel=True
    )
    request = {
        "root": real,
        "query": asked.query,
        "is_folder": is_folder,
        "most": min(asked.max_matches, MAX_MATCHES),
    }
    stdout, stderr = Kept(_MAX_ANSWER), Kept(_MAX_WORDS)
    code: int | None = None
    try:
        with trio.move_on_after(SEARCH_SECONDS):
            code = await run_group(
                [sys.executable, *_SEARCHER],
                cwd="/",
                env={"PATH": PATH},
                given=json.dumps(request).encode(),
                stdout=stdout,
                stderr=stderr,
            )
    except OSError as problem:
        words = problem.strerror or "no reason given"
        return refusal(500, "search_failed", f"the search cannot be started: {words}")
    if code is None:
        message = f"the search took longer than {SEARCH_SECONDS:g} s and was stopped"
        return refusal(504, "timeout", message)
    if code != 0 or stdout.is_cut:
        return refusal(500, "search_failed", "the search ended without an answer")
    return _found(asked, json.loads(stdout.text), is_folder=is_folder)


def _searchable(asked: GrepFiles, reach: Reach) -> tuple[str, bool]:
    real = reach.readable(asked.path)
    return real, searching.kind_of(real) == "dir"


def _found(
    asked: GrepFiles, answer: dict[str, JSONValue], *, is_folder: bool
) -> Envelope:
    if "invalid_regex" in answer:
        message = f"the query is no regular expression: {answer['invalid_regex']}"
        return refusal(400, "invalid_regex", message)
    if not is_folder:
        for key, problem in _PROBLEMS.items():
            if answer[key]:
                status, code, words = problem
                return refusal(status, code, f"{asked.path} {words}")
    payload: dict[str, JSONValue] = {
        "path": asked.path,
        "query": asked.query,
        "matches": [
            {
                "path": beneath(asked.path, path) if is_folder else asked.path,
                "line": line,
                "text": text,
            }
            for path, line, text in answer["matches"]
        ],
        "truncated": answer["truncated"],
    }
    if skipped := answer["large"] + answer["unreadable"]:
        payload["skipped"] = skipped
    return Envelope(payload=payload)


_PROBLEMS = {
    "large": (413, "too_large", f"is larger than {searching.MAX_FILE_BYTES} bytes"),
    "binary": (415, "not_text", "is not text in UTF-8"),
    "unreadable": (400, "invalid_input", "is no regular file that can be read"),
}
