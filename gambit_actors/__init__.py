"""Run prompt-folder agents (decks) as Trio actors, on models of any provider.

What most programs need is here, and imported when it is first asked for.
"""

from typing import TYPE_CHECKING

__all__ = [
    "DeckCache",
    "DiskReader",
    "DiskStore",
    "ExternalCall",
    "Failure",
    "Happened",
    "Limits",
    "Permissions",
    "Price",
    "Reply",
    "RunOptions",
    "RunResult",
    "RuntimeTool",
    "ScriptedProvider",
    "collect_rarely",
    "define_deck",
    "load_deck",
    "open_runtime",
    "run_sync",
]

if TYPE_CHECKING:
    from os import PathLike

    from gambit_actors.actors.collector import collect_rarely
    from gambit_actors.actors.hook import ExternalCall
    from gambit_actors.actors.options import RunOptions
    from gambit_actors.actors.sessions import RunResult
    from gambit_actors.actors.trees import Limits
    from gambit_actors.deck.compute import define_deck
    from gambit_actors.deck.loader import DeckCache, load_deck
    from gambit_actors.deck.model import Deck
    from gambit_actors.deck.permissions import Permissions
    from gambit_actors.openresponses.base import JSONValue
    from gambit_actors.providers.scripted import ScriptedProvider
    from gambit_actors.providers.scripts import Reply
    from gambit_actors.run.budgets import Price
    from gambit_actors.run.doubts import Happened
    from gambit_actors.run.entries import Failure
    from gambit_actors.run.ports import ModelProvider
    from gambit_actors.run.programs import RuntimeTool
    from gambit_actors.store.deck_files import DiskReader
    from gambit_actors.store.disk_store import DiskStore
    from gambit_actors.wiring.runtime import open_runtime
else:
    # Hidden from type checkers, who would take any name for one that exists.
    _HOMES = {
        "DeckCache": "gambit_actors.deck.loader",
        "DiskReader": "gambit_actors.store.deck_files",
        "DiskStore": "gambit_actors.store.disk_store",
        "ExternalCall": "gambit_actors.actors.hook",
        "Failure": "gambit_actors.run.entries",
        "Happened": "gambit_actors.run.doubts",
        "Limits": "gambit_actors.actors.trees",
        "Permissions": "gambit_actors.deck.permissions",
        "Price": "gambit_actors.run.budgets",
        "Reply": "gambit_actors.providers.scripts",
        "RunOptions": "gambit_actors.actors.options",
        "RunResult": "gambit_actors.actors.sessions",
        "RuntimeTool": "gambit_actors.run.programs",
        "ScriptedProvider": "gambit_actors.providers.scripted",
        "collect_rarely": "gambit_actors.actors.collector",
        "define_deck": "gambit_actors.deck.compute",
        "load_deck": "gambit_actors.deck.loader",
        "open_runtime": "gambit_actors.wiring.runtime",
    }

    def __getattr__(name: str) -> object:
        """Import a public name when it is first asked for: importing us is cheap."""
        if name not in _HOMES:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module(_HOMES[name]), name)


def run_sync(
    deck: "str | PathLike[str] | Deck",
    *,
    models: "ModelProvider | str | None" = None,
    message: str | None = None,
    context: "JSONValue" = None,
    options: "RunOptions | None" = None,
) -> "RunResult":
    """Run a deck for one answer, in a script that has no event loop of its own.

    Args:
        deck: where it is on disk, or a deck that was loaded.
        models: what answers for models, as for `open_runtime`.
        message: what the user says; None lets the deck speak first.
        context: what the deck is given to know; None for nothing.
        options: what is different from other runs.

    Raises:
        InvalidDeck: the deck has mistakes.
        RequestError: the context does not fit the deck, or somebody has to speak first;
            or settings have mistakes.
        RunFailed: there is no answer.
    """
    # Late, as all of this module: whoever imports us may want none of it.
    import msgspec  # noqa: PLC0415
    import trio  # noqa: PLC0415

    from gambit_actors.errors import RequestError  # noqa: PLC0415
    from gambit_actors.wiring.runtime import open_runtime  # noqa: PLC0415

    if trio.lowlevel.in_trio_run():
        msg = "run_sync begins an event loop, and there is one: await Runtime.run here"
        raise RequestError(msg)
    given = msgspec.UNSET if context is None else context

    async def run() -> "RunResult":
        async with open_runtime(models, options=options) as runtime:
            return await runtime.run(deck, message=message, context=given)

    return trio.run(run)
