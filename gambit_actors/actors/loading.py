"""Decks for runs: read when they are asked for, and again only what has changed."""

import os
from typing import TypeAlias

import trio

from gambit_actors.actors.confined.own_files import OwnFiles
from gambit_actors.deck.loader import DeckCache
from gambit_actors.deck.model import Deck
from gambit_actors.deck.reader import DeckReader
from gambit_actors.errors import RequestError

DeckLike: TypeAlias = str | os.PathLike[str] | Deck
"""Where a deck is, or a deck that was loaded."""


class DeckLoader:
    """Loads decks, each once as long as it stays as it is.

    Args:
        reader: where they are read from.
    """

    def __init__(self, reader: DeckReader) -> None:
        self._reader = reader
        self._cache = DeckCache()
        # What decks are made from, which their code must not write.
        self.own_files = OwnFiles(reader.real_path)

    async def load(self, deck: DeckLike) -> Deck:
        """Load a deck, reading again only what has changed.

        Raises:
            InvalidDeck: it has mistakes.
            RequestError: it is not the path of one.
        """
        if isinstance(deck, Deck):
            self.own_files.add(deck)
            return deck  # noqa: ASYNC910  # there is nothing to wait for
        path = _path_of(deck)
        loaded = await trio.to_thread.run_sync(self._cache.load, self._reader, path)
        found = loaded.usable()
        self.own_files.add(found)
        return found

    def real_path(self, path: str) -> str:
        """The absolute path of a file of a deck."""
        return self._reader.real_path(path)


def _path_of(deck: object) -> str:
    """The path of a deck; who calls us may not be checked."""
    if isinstance(deck, str | os.PathLike):
        path = os.fspath(deck)
        if isinstance(path, str):
            return path
    msg = f"a deck is given by its path or as it was loaded, not as {deck!r:.100}"
    raise RequestError(msg)
