"""Decks for runs: read when they are asked for, and again only what has changed.

Who asks while a deck is being read waits, and then shares one reading with all others
who waited: each gets the deck as it was after they had asked.
"""

import os
from typing import TypeAlias

import trio

from gambit_actors.actors.confined.own_files import OwnFiles
from gambit_actors.deck.loader import DeckCache, Loaded
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
        self._readings: dict[str, _Readings] = {}
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
        found = (await self._read(path)).usable()
        self.own_files.add(found)
        return found

    def real_path(self, path: str) -> str:
        """The absolute path of a file of a deck."""
        return self._reader.real_path(path)

    async def _read(self, path: str) -> Loaded:
        """Read a deck, or wait for somebody who begins to after this was called."""
        readings = self._readings.get(path)
        if readings is None:
            readings = self._readings[path] = _Readings()
        asked_after = readings.begun
        readings.asking += 1
        try:
            async with readings.turn:
                if readings.latest is None or readings.begun == asked_after:
                    readings.begun += 1
                    readings.latest = None
                    readings.latest = await trio.to_thread.run_sync(
                        self._cache.load, self._reader, path
                    )
                return readings.latest
        finally:
            readings.asking -= 1
            if not readings.asking:
                del self._readings[path]


class _Readings:
    """The readings of one deck, as long as somebody waits for one.

    Attributes:
        turn: held by who reads.
        begun: how many there were.
        latest: what the last one gave; None if it gave nothing.
        asking: how many wait for one.
    """

    __slots__ = ("asking", "begun", "latest", "turn")

    def __init__(self) -> None:
        self.turn = trio.Lock()
        self.begun = 0
        self.latest: Loaded | None = None
        self.asking = 0


def _path_of(deck: object) -> str:
    """The path of a deck; who calls us may not be checked."""
    if isinstance(deck, str | os.PathLike):
        path = os.fspath(deck)
        if isinstance(path, str):
            return path
    msg = f"a deck is given by its path or as it was loaded, not as {deck!r:.100}"
    raise RequestError(msg)
