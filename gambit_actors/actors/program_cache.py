"""What decks come to, worked out once and kept for all runs of a runtime.

A program depends on the deck, on what it may do and on what the runtime adds, so that
is what it is kept by. Decks are told apart by identity: one that was read anew is
another. Each entry keeps alive what its key is made of.
"""

from pathlib import PurePath
from typing import TypeAlias, TypeVar

from gambit_actors.deck.model import Deck
from gambit_actors.deck.permissions import (
    Permissions,
    child_permissions,
    root_permissions,
)
from gambit_actors.run.programs import Program, RuntimeTool, program_from_deck

_MOST = 1000

_RootKey: TypeAlias = tuple[int, Permissions | None, int]
_ChildKey: TypeAlias = tuple[int, int, int]
_Key = TypeVar("_Key", _RootKey, _ChildKey)


class ProgramCache:
    """Programs by what they are made from."""

    def __init__(self) -> None:
        self._roots: dict[_RootKey, tuple[Program, object]] = {}
        self._children: dict[_ChildKey, tuple[Program, object]] = {}

    def root(
        self,
        deck: Deck,
        *,
        permissions: Permissions | None,
        runtime_tools: tuple[RuntimeTool, ...],
    ) -> Program:
        """What a deck comes to that a run begins with.

        Args:
            deck: the deck.
            permissions: what narrows its own.
            runtime_tools: what the program around it adds.
        """
        key = (id(deck), permissions, id(runtime_tools))
        known = self._roots.get(key)
        if known is not None:
            return known[0]
        program = program_from_deck(
            deck,
            name=_shown_path(deck.path, root=deck.path),
            root=deck.path,
            permissions=root_permissions(deck.permissions, run=permissions).effective,
            runtime_tools=runtime_tools,
            is_declared=(deck.permissions or permissions) is not None,
        )
        _keep(self._roots, key, (program, runtime_tools))
        return program

    def below(
        self, parent: Program, deck: Deck, reference: Permissions | None
    ) -> Program:
        """What a deck comes to below another: never more than that may do."""
        key = (id(parent), id(deck), id(reference))
        known = self._children.get(key)
        if known is not None:
            return known[0]
        allowed = child_permissions(
            parent.permissions, declaration=deck.permissions, reference=reference
        )
        program = program_from_deck(
            deck,
            name=_shown_path(deck.path, root=parent.root),
            root=parent.root,
            permissions=allowed.effective,
            runtime_tools=parent.runtime_tools,
            is_declared=parent.is_declared
            or deck.permissions is not None
            or reference is not None,
        )
        _keep(self._children, key, (program, (parent, deck, reference)))
        return program


def _keep(
    programs: dict[_Key, tuple[Program, object]],
    key: _Key,
    entry: tuple[Program, object],
) -> None:
    if len(programs) >= _MOST:
        programs.clear()  # Decks that were loaded anew leave theirs behind.
    programs[key] = entry


def without_folders(text: str, *, root: str) -> str:
    """A text about decks as it may be shown: without the folders above the root's."""
    folder = PurePath(root).parent.parent.as_posix()
    return text.replace(f"{folder}/", "") if folder.strip("./") else text


def _shown_path(path: str, *, root: str) -> str:
    """A deck's path as it may be shown: without the folders above the root's."""
    if path.startswith("gambit://"):
        return path
    try:
        return PurePath(path).relative_to(PurePath(root).parent.parent).as_posix()
    except ValueError:
        return PurePath(path).name
