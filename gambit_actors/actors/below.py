"""What a run below another is a run of, by what the log of the other says."""

import posixpath
from collections.abc import Awaitable, Callable, Sequence

from gambit_actors.actors.program_cache import ProgramCache
from gambit_actors.deck.model import Action, Deck, Link, Module
from gambit_actors.errors import DeckError
from gambit_actors.openresponses.items import FunctionCall, Item
from gambit_actors.run.entries import CallStarted, ChildStarted
from gambit_actors.run.programs import Program


class BelowFinder:
    """Finds the programs of the runs below a root.

    Args:
        programs: what decks come to.
        load: loads a deck that code had asked for.
        was_at: where the deck of the root was when its log was begun.
        is_at: where it is now.
    """

    def __init__(
        self,
        programs: ProgramCache,
        load: Callable[[str], Awaitable[Deck]],
        *,
        was_at: str,
        is_at: str,
    ) -> None:
        self._programs = programs
        self._load = load
        self._was_at = was_at
        self._is_at = is_at

    async def find(
        self, above: Program, items: Sequence[Item], entry: CallStarted | ChildStarted
    ) -> Program | None:
        """The program of a run; None if its deck is not there any more.

        Args:
            above: the deck that it is below.
            items: the conversation of that one, with the call that it is part of.
            entry: how it began.
        """
        if isinstance(entry, CallStarted):
            offer = above.offers.get(entry.name)
            if isinstance(offer, Action) and isinstance(offer.target, Link):
                return self._programs.below(  # noqa: ASYNC910  # nothing to load
                    above, offer.target.deck, offer.permissions
                )
            return None  # noqa: ASYNC910  # the deck has changed, and it is a tool now
        places = self._places_of(entry.path)
        on_error = above.deck.handlers.on_error
        is_handler = on_error is not None and on_error.link.deck.path in places
        code = None if is_handler else _code_of(above, items, entry)
        reference = None if code is None else code.permissions
        for path in places:
            try:
                deck = await self._load(path)
            except DeckError:
                continue
            return self._programs.below(above, deck, reference)  # noqa: ASYNC910  # it has loaded
        return None  # noqa: ASYNC910  # it has tried to load one

    def _places_of(self, path: str) -> list[str]:
        """Where a deck may be: as far from its root as it was, or where it was."""
        places = [moved(path, was_at=self._was_at, is_at=self._is_at), path]
        return places[1:] if places[0] == path else places


def moved(path: str, *, was_at: str, is_at: str) -> str:
    """Where a deck is now if it has moved along with the root of its tree."""
    kinds = {one.startswith("/") for one in (path, was_at)}
    if was_at == is_at or len(kinds) > 1 or "://" in path or "://" in was_at:
        return path
    old_folder = posixpath.dirname(f"/{was_at.lstrip('/')}")
    way = posixpath.relpath(f"/{path.lstrip('/')}", old_folder)
    return posixpath.normpath(posixpath.join(posixpath.dirname(is_at), way))


def _code_of(
    above: Program, items: Sequence[Item], entry: ChildStarted
) -> Action | None:
    """The action whose code had asked for a deck; None if it is a handler."""
    for item in items:
        if isinstance(item, FunctionCall) and item.call_id == entry.call_id:
            offer = above.offers.get(item.name)
            if isinstance(offer, Action) and isinstance(offer.target, Module):
                return offer
    return None
