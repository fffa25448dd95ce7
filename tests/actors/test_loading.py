"""Decks are read when they are asked for, by one for all who ask together."""

import threading

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from gambit_actors.actors.loading import DeckLoader
from gambit_actors.errors import InvalidDeck
from tests.deck.reading import Texts, deck_text

PATH = "PROMPT.md"


class Counting(Texts):
    """A folder that counts how often its deck is read, and waits when it is told to.

    Attributes:
        readings: how many there were.
        most_at_once: how many of them there were side by side, at the most.
    """

    def __init__(self, text: str) -> None:
        super().__init__({PATH: text})
        self.readings = 0
        self.most_at_once = 0
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self._now = 0

    def read_text(self, path: str) -> str | None:
        """Give the text, as it is when the wait is over."""
        if path != PATH:
            return super().read_text(path)
        self.readings += 1
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        self.may_go_on.wait()
        self._now -= 1
        return super().read_text(path)


async def test_many_who_ask_together_have_it_read_once() -> None:
    """The reading that begins after all of them have asked is good for each."""
    reader = Counting(deck_text("", "Be kind."))
    loader = DeckLoader(reader)

    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(loader.load, PATH)

    assert reader.most_at_once == 1
    assert reader.readings == 1


async def test_who_asks_gets_the_deck_as_it_is_then() -> None:
    """A reading that began before is not good enough for who asks afterwards."""
    reader = Counting(deck_text("", "Be kind."))
    loader = DeckLoader(reader)
    prompts: list[str] = []
    reader.may_go_on.clear()

    async def ask() -> None:
        prompts.append((await loader.load(PATH)).prompt)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        while not reader.readings:  # noqa: ASYNC110  # the thread has no other way
            await trio.sleep(0.001)
        reader.files[PATH] = deck_text("", "Be brief.")
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        reader.may_go_on.set()

    assert prompts[-1].strip() == "Be brief."
    assert reader.readings == 2


async def test_a_deck_with_mistakes_is_refused_for_everybody() -> None:
    """Each of those who wait is told, and the next reading is another."""
    reader = Counting("+++\nnonsense\n+++\n")
    loader = DeckLoader(reader)
    refused = 0

    async def ask() -> None:
        nonlocal refused
        with pytest.raises(InvalidDeck):
            await loader.load(PATH)
        refused += 1

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(ask)

    assert refused == 5
    reader.files[PATH] = deck_text("", "Be kind.")
    assert (await loader.load(PATH)).prompt.strip() == "Be kind."
