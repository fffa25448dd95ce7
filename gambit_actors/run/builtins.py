"""The built-in tools, as a model sees them; what they do is the business of actors.

A deck is offered only those that its permissions can serve.
"""

from typing import Literal, TypeAlias

import msgspec

from gambit_actors.deck.permissions import Permissions
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.tools import FunctionTool

BuiltinName: TypeAlias = Literal[
    "read_file", "list_dir", "grep_files", "apply_patch", "exec"
]

_TEXT: dict[str, JSONValue] = {"type": "string"}
_FLAG: dict[str, JSONValue] = {"type": "boolean"}
_TEXTS: dict[str, JSONValue] = {"type": "array", "items": _TEXT}


def _whole(least: int, most: int | None = None) -> dict[str, JSONValue]:
    limit = {} if most is None else {"maximum": most}
    return {"type": "integer", "minimum": least, **limit}


class BuiltinTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the runtime carries out itself."""

    name: BuiltinName
    kind: Literal["read", "write", "run"]
    tool: FunctionTool


def _tool(
    name: BuiltinName,
    kind: Literal["read", "write", "run"],
    description: str,
    *,
    needed: dict[str, JSONValue],
    optional: dict[str, JSONValue],
) -> BuiltinTool:
    parameters = {
        "type": "object",
        "properties": needed | optional,
        "required": list(needed),
        "additionalProperties": False,
    }
    tool = FunctionTool(name=name, description=description, parameters=parameters)
    return BuiltinTool(name=name, kind=kind, tool=tool)


_EDIT: dict[str, JSONValue] = {
    "type": "object",
    "properties": {"old_text": _TEXT, "new_text": _TEXT, "replace_all": _FLAG},
    "required": ["old_text", "new_text"],
    "additionalProperties": False,
}

BUILTIN_TOOLS: tuple[BuiltinTool, ...] = (
    _tool(
        "read_file",
        "read",
        "Read lines of a text file, 400 at most unless you say which.",
        needed={"path": _TEXT},
        optional={"start_line": _whole(1), "end_line": _whole(1)},
    ),
    _tool(
        "list_dir",
        "read",
        "List what is in a folder.",
        needed={"path": _TEXT},
        optional={"recursive": _FLAG, "max_entries": _whole(1, 2000)},
    ),
    _tool(
        "grep_files",
        "read",
        "Find the lines of files that match a regular expression.",
        needed={"path": _TEXT, "query": _TEXT},
        optional={"max_matches": _whole(1, 2000)},
    ),
    _tool(
        "apply_patch",
        "write",
        "Replace text in a file, or create the file.",
        needed={"path": _TEXT, "edits": {"type": "array", "items": _EDIT}},
        optional={"create_if_missing": _FLAG},
    ),
    _tool(
        "exec",
        "run",
        "Run a program and get what it prints.",
        needed={"command": _TEXT},
        optional={"args": _TEXTS, "cwd": _TEXT, "timeout_ms": _whole(1, 30_000)},
    ),
)


def builtin_tools(permissions: Permissions) -> tuple[BuiltinTool, ...]:
    """The tools that a deck with these permissions is offered."""
    can_read = permissions.read is not False
    granted = {
        "read": can_read,
        # To change text one has to see it.
        "write": can_read and permissions.write is not False,
        "run": permissions.run is not False,
    }
    return tuple(tool for tool in BUILTIN_TOOLS if granted[tool.kind])
