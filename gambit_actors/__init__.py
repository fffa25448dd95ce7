"""Run prompt-folder agents (decks) as Trio actors, Open Responses on both sides."""

from typing import TYPE_CHECKING

__all__ = ["DeckCache", "DiskReader", "define_deck", "load_deck"]

if TYPE_CHECKING:
    from gambit_actors.deck.compute import define_deck
    from gambit_actors.deck.loader import DeckCache, load_deck
    from gambit_actors.store.deck_files import DiskReader
else:
    # Hidden from type checkers, who would take any name for one that exists.
    _HOMES = {
        "DeckCache": "gambit_actors.deck.loader",
        "DiskReader": "gambit_actors.store.deck_files",
        "define_deck": "gambit_actors.deck.compute",
        "load_deck": "gambit_actors.deck.loader",
    }

    def __getattr__(name: str) -> object:
        """Import a public name when it is first asked for: importing us is cheap."""
        if name not in _HOMES:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module(_HOMES[name]), name)
