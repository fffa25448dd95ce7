"""The built-in tools: which a deck is offered, and what a model is shown of them."""

import pytest

from gambit_actors.deck.permissions import (
    EVERYTHING,
    NOTHING,
    Permissions,
    RunAccess,
)
from gambit_actors.deck.references import BUILTIN_TOOLS as TAKEN_NAMES
from gambit_actors.run.builtins import BUILTIN_TOOLS, builtin_tools
from gambit_actors.schema.validation import Validator

READING = ["read_file", "list_dir", "grep_files"]


def names(permissions: Permissions) -> list[str]:
    """The names of the tools offered."""
    return [tool.name for tool in builtin_tools(permissions)]


@pytest.mark.parametrize(
    ("permissions", "expected"),
    [
        (NOTHING, []),
        (Permissions(read=True), READING),
        (Permissions(read=("/data",)), READING),
        (Permissions(write=True), []),
        (Permissions(read=("/a",), write=("/data",)), [*READING, "apply_patch"]),
        (Permissions(run=True), ["exec"]),
        (Permissions(run=RunAccess(commands=("git",))), ["exec"]),
        (Permissions(run=RunAccess(paths=("/bin/ls",))), ["exec"]),
        (Permissions(net=True, env=True), []),
        (EVERYTHING, [*READING, "apply_patch", "exec"]),
    ],
)
def test_a_permission_brings_its_tools(
    permissions: Permissions, expected: list[str]
) -> None:
    """Read, write and run each bring their tools, in one order; others bring none."""
    assert names(permissions) == expected


@pytest.mark.parametrize(
    "permissions",
    [Permissions(read=()), Permissions(write=()), Permissions(run=RunAccess())],
)
def test_an_empty_list_grants_nothing(permissions: Permissions) -> None:
    """A permission with nothing in it brings no tool."""
    assert names(permissions) == []


@pytest.mark.parametrize(
    ("name", "required", "optional"),
    [
        ("read_file", {"path"}, {"start_line", "end_line"}),
        ("list_dir", {"path"}, {"recursive", "max_entries"}),
        ("grep_files", {"path", "query"}, {"max_matches"}),
        ("apply_patch", {"path", "edits"}, {"create_if_missing"}),
        ("exec", {"command"}, {"args", "cwd", "timeout_ms"}),
    ],
)
def test_what_a_tool_takes(name: str, required: set[str], optional: set[str]) -> None:
    """Each tool takes the keys it is known for, and no others."""
    tool = next(tool.tool for tool in BUILTIN_TOOLS if tool.name == name)
    shown = tool.parameters or {}
    assert set(shown["required"]) == required
    assert set(shown["properties"]) == required | optional
    assert shown["additionalProperties"] is False
    assert tool.description


def test_an_edit_takes_the_old_text_and_the_new() -> None:
    """An edit of a patch has both texts, and may be for all places."""
    tool = next(tool.tool for tool in BUILTIN_TOOLS if tool.name == "apply_patch")
    edit = (tool.parameters or {})["properties"]["edits"]["items"]
    assert edit["required"] == ["old_text", "new_text"]
    assert set(edit["properties"]) == {"old_text", "new_text", "replace_all"}
    assert edit["additionalProperties"] is False


def test_all_parameters_are_schemas() -> None:
    """What a model is shown can be checked against."""
    for tool in BUILTIN_TOOLS:
        assert tool.tool.parameters is not None
        Validator(tool.tool.parameters)


def test_their_names_cannot_be_given_to_anything_else() -> None:
    """The loader keeps exactly these names from decks."""
    assert {tool.name for tool in BUILTIN_TOOLS} == set(TAKEN_NAMES)


def test_the_tool_is_shown_under_its_own_name() -> None:
    """The name that is dispatched is the name that is offered."""
    assert [tool.name for tool in BUILTIN_TOOLS] == [
        tool.tool.name for tool in BUILTIN_TOOLS
    ]
