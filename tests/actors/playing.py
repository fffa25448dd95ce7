"""What the tests of actors share: decks as texts, a scripted model, a trace."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from gambit_actors.actors.memory_log import MemoryStore
from gambit_actors.actors.runtime import RunOptions, Runtime, open_runtime
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall, FunctionCallOutput, Item
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Call, Reply
from gambit_actors.run.entries import Entry, ItemAdded
from gambit_actors.trace.sinks import MemorySink
from tests.deck.reading import Texts, deck_text

MODEL = '[modelParams]\nmodel = "scripted/one"\n'
TOOL = '[[tools]]\nname = "crm"\ndescription = "Leave a note."\n'
ANYTHING = '{"type": "object"}'


class Stage:
    """A runtime with everything that happened in it."""

    def __init__(self, runtime: Runtime, sink: MemorySink, store: MemoryStore) -> None:
        self.runtime = runtime
        self.sink = sink
        self.store = store

    def entries(self, index: int = 0) -> list[Entry]:
        """The log of the first run, or of a later one."""
        return list(self.store.logs.values())[index].entries


@asynccontextmanager
async def stage(
    files: Mapping[str, str],
    replies: Sequence[Reply],
    options: RunOptions | None = None,
) -> AsyncIterator[Stage]:
    """Open a runtime on decks that are texts and a model that is a script."""
    sink, store = MemorySink(), MemoryStore(keep=True)
    async with open_runtime(
        ScriptedProvider(list(replies)),
        reader=Texts(files),
        store=store,
        sinks=[sink],
        options=options,
    ) as runtime:
        yield Stage(runtime, sink, store)


def root(frontmatter: str = "", body: str = "Be kind.") -> str:
    """The text of a deck with a model."""
    return deck_text(f"{frontmatter}\n{MODEL}", body)


def calls(*names: str, **arguments: JSONValue) -> Reply:
    """A model that calls tools."""
    return Reply(calls=tuple(Call(name=name, arguments=arguments) for name in names))


def items_in(entries: Sequence[Entry]) -> list[Item]:
    """The conversation in a log."""
    return [entry.item for entry in entries if isinstance(entry, ItemAdded)]


def outputs_of(items: Sequence[Item]) -> dict[str, list[str]]:
    """The outputs that each call has, by its name."""
    names = {i.call_id: i.name for i in items if isinstance(i, FunctionCall)}
    found: dict[str, list[str]] = {name: [] for name in names.values()}
    for item in items:
        if isinstance(item, FunctionCallOutput) and isinstance(item.output, str):
            found[names[item.call_id]].append(item.output)
    return found
