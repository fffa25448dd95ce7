"""What a deck is made from, kept from those who could lift its permissions by it.

Permissions stand in a PROMPT.md, and modules are imported, unconfined, when a deck is
loaded to be described. Whoever may write such a file has all rights from the next run
on. So code that may do that is not run, nor is a program; a tool does not change such a
file. A deck that may do everything has nothing to lift.

Paths are compared where they lead and at every link on the way: who can change a link
decides what is found behind it.
"""

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import PurePosixPath
from typing import TypeAlias

from gambit_actors.deck.model import Deck
from gambit_actors.deck.own_files import is_deck_file, tree_sources
from gambit_actors.deck.permissions import EVERYTHING, Permissions

Sources: TypeAlias = Callable[[], Collection[str]]
"""Gives the files that decks are made from. Asked in a thread, and only if need be."""

_MAX_LINKS = 40
_MOST = 1000


class OwnFiles:
    """The files that the decks of a runtime are made from.

    Args:
        real_path: gives the absolute path of a deck's file, with links followed.
    """

    def __init__(self, real_path: Callable[[str], str]) -> None:
        self._real_path = real_path
        # Decks are told apart by identity, so each is kept alive.
        self._known: dict[int, Deck] = {}
        self._new: set[str] = set()
        self._found: set[str] = set()
        self._lock = threading.Lock()

    def add(self, deck: Deck) -> None:
        """Have a deck, and all that it leads to, among them."""
        if id(deck) not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[id(deck)] = deck
            self._new.update(tree_sources(deck))

    def find(self) -> frozenset[str]:
        """The files, and the links on the way to them. From any thread; blocks."""
        with self._lock:
            while self._new:
                path = os.path.join(self._real_path("."), self._new.pop())  # noqa: PTH118
                self._found.update(places(path))
            return frozenset(self._found)


def places(path: str) -> Iterator[str]:
    """Where an absolute path leads, and where the links are that it leads through."""
    here, waiting, links = "/", path.split("/")[::-1], 0
    while waiting:
        step = waiting.pop()
        if step in {"", "."}:
            continue
        if step == "..":
            here = os.path.dirname(here)  # noqa: PTH120
            continue
        there = f"{here.rstrip('/')}/{step}"
        target = _target(there) if links < _MAX_LINKS else None
        if target is None:
            here = there
            continue
        links += 1
        yield there
        here = "/" if target.startswith("/") else here
        waiting += target.split("/")[::-1]
    yield here


def own_writable(
    permissions: Permissions,
    folder: str,
    *,
    modules: Iterable[str] = (),
    sources: Sources = frozenset,
) -> str | None:
    """Say what of its own a deck may write, from its folder; None if nothing.

    Args:
        permissions: what may be done.
        folder: where the deck, or a module of it, is; absolute, with links followed.
        modules: files that its code imports.
        sources: what it and those around it are made from.
    """
    write = permissions.write
    if write is False or permissions == EVERYTHING:
        return None
    if write is True:
        return "every file, with its own among them"
    decks = (path for path in write if is_deck_file(path))
    grants = tuple(f"{grant.rstrip('/')}/" for grant in write)
    for path in (*decks, *_prompts_above(folder), *modules, *sources()):
        if f"{path}/".startswith(grants):
            return os.path.relpath(path, folder)
    return None


def words_for(found: str) -> str:
    """Why something is not run, with what to do about it."""
    return (
        f"its permissions let it write {found}, and by that lift them; grant a folder"
        " below the deck's own instead, such as ./data"
    )


def is_own(path: str, sources: Collection[str]) -> bool:
    """Whether a file is one that no tool may change.

    Args:
        path: the file, absolute and with links followed.
        sources: what the deck and those around it are made from.
    """
    # Where capitals make no difference, another spelling is the same file.
    folded = path.casefold()
    known = {source.casefold() for source in sources}
    if is_deck_file(path) or folded in known:
        return True
    homes = {source.rpartition("/")[0] for source in known if source.endswith(".py")}
    return folded.endswith(".py") and any(_is_imported(path, home) for home in homes)


def _is_imported(path: str, home: str) -> bool:
    """Whether modules of a folder find a Python file beside them, or in a package."""
    file = PurePosixPath(path)
    folders = [str(folder) for folder in file.parents]
    folded = [folder.casefold() for folder in folders]
    if home not in folded:
        return False
    below = folders[: folded.index(home)]
    # One that is new makes a package of a folder, in front of any that is installed.
    if file.name.casefold() == "__init__.py" and len(below) == 1:
        return True
    return all(os.path.lexists(f"{folder}/__init__.py") for folder in below)


def _prompts_above(folder: str) -> Iterator[str]:
    for above in (PurePosixPath(folder), *PurePosixPath(folder).parents):
        prompt = str(above / "PROMPT.md")
        yield prompt
        if _target(prompt) is not None:
            yield from places(prompt)


def _target(path: str) -> str | None:
    try:
        return os.readlink(path)  # noqa: PTH115  # the text of it, as it is
    except (OSError, ValueError):
        return None
