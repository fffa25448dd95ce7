"""What the tests of actors share: decks as texts, a scripted model, a trace."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from gambit_actors.actors.memory_log import MemoryLog, MemoryStore
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.runtime import Runtime, open_runtime
from gambit_actors.deck.reader import DeckReader, DescribedModule
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall, FunctionCallOutput, Item
from gambit_actors.providers.scripted import ReplyFunction, ScriptedProvider
from gambit_actors.providers.scripts import Call, Reply
from gambit_actors.run.entries import Entry, ItemAdded, RunStarted
from gambit_actors.run.ports import ModelProvider
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

    def entries_of(self, deck: str) -> list[list[Entry]]:
        """The logs of all runs of a deck, by the path that is shown."""
        logs = self.store.logs.values()
        return [log.entries for log in logs if log.run.deck == deck]


@asynccontextmanager
async def stage(
    files: Mapping[str, str] | DeckReader,
    replies: Sequence[Reply] | ReplyFunction | ModelProvider,
    options: RunOptions | None = None,
    *,
    store: MemoryStore | None = None,
) -> AsyncIterator[Stage]:
    """Open a runtime on decks that are texts and a model that is a script."""
    sink, store = MemorySink(), store or MemoryStore(keep=True)
    is_script = callable(replies) or isinstance(replies, Sequence)
    provider = ScriptedProvider(replies) if is_script else replies  # type: ignore[arg-type]  # one of the two
    async with open_runtime(
        provider,  # type: ignore[arg-type]  # as above
        reader=Texts(files) if isinstance(files, Mapping) else files,
        store=store,
        sinks=[sink],
        options=options,
    ) as runtime:
        yield Stage(runtime, sink, store)


class WaitingStore(MemoryStore):
    """A store that waits, once, before it takes an entry that is looked for.

    Attributes:
        reached: set when it waits.
        go_on: what it waits for.
    """

    def __init__(self, is_looked_for: Callable[[Entry], bool]) -> None:
        super().__init__(keep=True)
        self.reached, self.go_on = trio.Event(), trio.Event()
        self._is_looked_for = is_looked_for

    async def open_log(self, run: RunStarted, /) -> MemoryLog:
        """Make a log that may wait before it appends."""
        store = self

        class WaitingLog(MemoryLog):
            async def append(self, entries: Sequence[Entry], /) -> None:
                await store.wait(entries)
                await super().append(entries)

        await trio.lowlevel.checkpoint()
        self.logs[run.run_id] = WaitingLog(run)
        return self.logs[run.run_id]

    async def wait(self, entries: Sequence[Entry]) -> None:
        """Wait if this is the first time that an entry is looked for."""
        if self.reached.is_set() or not any(map(self._is_looked_for, entries)):
            return
        self.reached.set()
        await self.go_on.wait()


def coded(folder: Path, files: Mapping[str, str], **modules: str) -> Texts:
    """Decks that are texts, beside modules that are files: code is imported."""
    texts, links = dict(files), {}
    for name, code in modules.items():
        (folder / f"{name}.py").write_text(code)
        texts[f"{name}.py"] = code
        links[f"/home/{name}.py"] = str(folder / f"{name}.py")
    described = {f"{name}.py": DescribedModule() for name in modules}
    return Texts(texts, modules=described, links=links)


def execute(name: str) -> str:
    """An action that is the module of that name."""
    return (
        f'[[actions]]\nname = "{name}"\ndescription = "Do it."\n'
        f'execute = "{name}.py"\n'
        'contextSchema = "any.json"\nresponseSchema = "any.json"\n'
    )


def action(name: str, *, path: str | None = None, more: str = "") -> str:
    """An action that is a deck, mostly the one in the folder of that name."""
    return (
        f'[[actions]]\nname = "{name}"\ndescription = "Do it."\n'
        f'path = "{path or f"{name}/PROMPT.md"}"\n{more}'
    )


def child(more: str = "") -> str:
    """The text of a deck that can be an action: ``any.json`` is in the folder above."""
    return root(
        'contextSchema = "../any.json"\nresponseSchema = "../any.json"\n'
        f"respond = true\n{more}"
    )


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
