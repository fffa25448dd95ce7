"""The files that decks are made from, and whether a deck may write its own.

Who may write them decides what the deck may do the next time: its permissions are in
its PROMPT.md, and its modules are imported when it is loaded.
"""

from collections.abc import Callable

from gambit_actors.deck.model import Deck
from gambit_actors.deck.references import links

_ENTRYPOINT = "prompt.md"
_OLD_ENDING = ".deck.md"


def tree_sources(deck: Deck) -> tuple[str, ...]:
    """All files that a deck, and the decks it leads to, were made from."""
    found: dict[str, None] = {}
    waiting, seen = [deck], {deck.path}
    while waiting:
        one = waiting.pop()
        found |= dict.fromkeys(one.sources)
        for link in links(one):
            if link.path in seen:
                continue
            seen.add(link.path)
            if link.is_usable:
                waiting.append(link.deck)
            elif not link.path.startswith("gambit://"):
                found[link.path] = None
    return tuple(found)


def is_deck_file(path: str) -> bool:
    """Whether a file has a name that makes it a deck, on some system or other."""
    name = path.rpartition("/")[2].casefold()
    return name == _ENTRYPOINT or name.endswith(_OLD_ENDING)


def writable_source(deck: Deck, real_path: Callable[[str], str]) -> str | None:
    """The first of its own files that a deck declares to write; None if there is none.

    Args:
        deck: the deck.
        real_path: gives the absolute path of a file, with links followed.
    """
    if deck.permissions is None:
        return None
    for source in deck.sources:
        above, _, name = source.rpartition("/")
        # Where the file is, and where its name is: a link there can be changed.
        places = (real_path(source), f"{real_path(above or '.').rstrip('/')}/{name}")
        if any(map(deck.permissions.can_write, places)):
            return source
    return None
