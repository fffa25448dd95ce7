"""Runs that are over: replayed without a model, and branched."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.memory_log import MemoryStore
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.runtime import Runtime, open_runtime
from gambit_actors.errors import NoSuchRun, RequestError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall, FunctionCallOutput, Message
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Call, Reply
from gambit_actors.run.entries import RunStarted, TurnEnded
from gambit_actors.run.entry_codec import encode_entry
from tests.actors.playing import ANYTHING, TOOL, items_in, root
from tests.deck.reading import Texts

CHILD = 'contextSchema = "../s.json"\nresponseSchema = "../s.json"\nrespond = true\n'
ASK_CHILD = '[[actions]]\nname = "a"\ndescription = "Do."\npath = "a/PROMPT.md"\n'
ANSWER = 'responseSchema = "answer.json"\n'
NUMBER = (
    '{"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}'
)


def files(**changed: str) -> dict[str, str]:
    """A root with a tool, a child and a schema for its answer."""
    decks = {
        "PROMPT.md": root(ANSWER + ASK_CHILD + TOOL),
        "a/PROMPT.md": root(CHILD + TOOL),
        "s.json": ANYTHING,
        "answer.json": NUMBER,
    }
    return decks | {name.replace("__", "/"): text for name, text in changed.items()}


def script() -> list[Reply]:
    """Bad calls, good calls, a bad answer that is put right; then a second turn."""
    respond = (Call(name="gambit_respond", arguments={"payload": {}}),)
    crm = Call(name="crm")
    return [
        Reply(deck="*/a/PROMPT.md", pass_number=1, calls=(crm,), times=0),
        Reply(deck="*/a/PROMPT.md", calls=respond, times=0),
        Reply(turn=2, text='{"n": 2}', times=0),
        Reply(pass_number=1, calls=(crm, Call(name="nobody")), times=0),
        Reply(pass_number=2, calls=(Call(name="a"), Call(name="crm")), times=0),
        Reply(pass_number=3, text="no number", times=0),
        Reply(text='{"n": 1}', times=0),
    ]


async def note(_call: ExternalCall) -> JSONValue:
    """The tool."""
    await trio.lowlevel.checkpoint()
    return "noted"


@asynccontextmanager
async def opened(
    store: MemoryStore, decks: dict[str, str], replies: list[Reply] | None = None
) -> AsyncIterator[Runtime]:
    """A runtime on a store; without replies it has no model."""
    async with open_runtime(
        ScriptedProvider(replies or []),
        reader=Texts(decks),
        store=store,
        options=RunOptions(on_tool=note),
    ) as runtime:
        yield runtime


async def played() -> tuple[MemoryStore, str]:
    """A store with a session of two turns."""
    store = MemoryStore(keep=True)
    async with (
        opened(store, files(), script()) as runtime,
        runtime.open_session("PROMPT.md") as session,
    ):
        assert (await session.send("Hi.")).value == {"n": 1}
        assert (await session.send("And now?")).value == {"n": 2}
    return store, session.run_id


@pytest.mark.spec("CARD-7")
async def test_a_run_replays_without_a_model() -> None:
    """All that the decks decided comes out byte for byte, in the run and below it."""
    store, run_id = await played()
    async with opened(store, files()) as runtime:
        root_run, child = await runtime.history.replay(run_id)
    assert (root_run.run_id, child.depth) == (run_id, 1)
    for run in (root_run, child):
        assert run.replayed.difference is None
        assert run.replayed.decided >= 4
        log = store.logs[run.run_id]
        assert run.replayed.decided + run.replayed.taken == len(log.entries)
    ended = root_run.replayed.ended
    assert ended is not None
    assert ended.result == {"n": 2}


STRICT = NUMBER.replace('"number"', '"string"')


@pytest.mark.parametrize(
    ("changed", "words", "depth"),
    [
        ({"PROMPT.md": root(ANSWER + ASK_CHILD + TOOL, "Be rude.")}, "prompt", 0),
        ({"answer.json": STRICT}, "put right|put its answer right|something else", 0),
        ({"PROMPT.md": root(ANSWER + ASK_CHILD)}, "crm was carried out", 0),
        ({"a__PROMPT.md": root(CHILD + TOOL, "Be rude.")}, "prompt", 1),
        ({"PROMPT.md": root(ASK_CHILD + TOOL)}, "asked to put its answer right", 0),
    ],
)
async def test_a_changed_deck_shows_where_it_parts(
    changed: dict[str, str], words: str, depth: int
) -> None:
    """The first difference has its place, what is recorded, and what would be now."""
    store, run_id = await played()
    async with opened(store, files(**changed)) as runtime:
        runs = await runtime.history.replay(run_id)
    (parted,) = [run for run in runs if run.replayed.difference is not None]
    difference = parted.replayed.difference
    assert difference is not None
    assert parted.depth == depth
    assert any(word in difference.words for word in words.split("|"))
    entry = store.logs[parted.run_id].entries[difference.index]
    assert difference.recorded == encode_entry(entry).decode()
    assert difference.now != difference.recorded


async def test_every_item_can_be_branched_at() -> None:
    """The branch has the same beginning, an id of its own, and goes on to an end."""
    store, run_id = await played()
    items = items_in(store.logs[run_id].entries)
    for count in range(1, len(items) + 1):
        async with opened(store, files(), script()) as runtime:
            branch_id = await runtime.history.branch(run_id, items=count)
            result = await runtime.resume(branch_id)
            (replayed, *_) = await runtime.history.replay(branch_id)
        first = store.logs[branch_id].entries[0]
        assert isinstance(first, RunStarted)
        assert first.branched_from == f"{run_id}@{count}"
        assert result.items[:count] == tuple(items[:count])
        assert result.status == "completed"
        assert replayed.replayed.difference is None
        made = [i for i in result.items if isinstance(i, FunctionCall)]
        given = [i for i in result.items if isinstance(i, FunctionCallOutput)]
        assert {i.call_id for i in made} == {i.call_id for i in given}


async def test_a_conversation_can_take_another_turn() -> None:
    """Behind its first answer something else is said; the first run is as it was."""
    store, run_id = await played()
    before = list(store.logs[run_id].entries)
    items = items_in(before)
    answer = next(
        n
        for n, i in enumerate(items, 1)
        if isinstance(i, Message) and i.text == '{"n": 1}'
    )
    async with opened(store, files(), script()) as runtime:
        branch_id = await runtime.history.branch(run_id, items=answer)
        async with runtime.reopen_session(branch_id) as session:
            assert not session.is_unfinished
            await session.send("Something else.")
    said = [
        i.text
        for i in items_in(store.logs[branch_id].entries)
        if isinstance(i, Message)
    ]
    assert "And now?" not in said
    assert "Something else." in said
    assert store.logs[run_id].entries == before
    ends = [e for e in store.logs[branch_id].entries if isinstance(e, TurnEnded)]
    assert len(ends) == 2


async def test_what_cannot_be_branched_is_said_in_words() -> None:
    """There is no such run, or its conversation is shorter."""
    store, run_id = await played()
    length = len(items_in(store.logs[run_id].entries))
    async with opened(store, files()) as runtime:
        for count in (0, -1, length + 1):
            with pytest.raises(RequestError, match=f"has {length} items|branch at 1"):
                await runtime.history.branch(run_id, items=count)
        with pytest.raises(NoSuchRun):
            await runtime.history.branch("run-none", items=1)
