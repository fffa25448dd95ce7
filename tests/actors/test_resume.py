"""Runs that go on where another process left them: what is recorded stays done."""

import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import trio

from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.memory_log import MemoryLog, MemoryStore
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.runtime import Runtime, open_runtime
from gambit_actors.actors.sessions import RunResult
from gambit_actors.errors import InDoubt, NoSuchRun, RequestError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCallOutput, Message
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Call, Reply
from gambit_actors.run.budgets import Price
from gambit_actors.run.doubts import Happened
from gambit_actors.run.entries import (
    CallEnded,
    CallStarted,
    Entry,
    RunEnded,
    RunResumed,
    RunStarted,
    TurnEnded,
)
from gambit_actors.store.deck_files import DiskReader
from gambit_actors.trace.events import CallInDoubt
from gambit_actors.trace.sinks import MemorySink
from gambit_actors.trace.trees import unbalanced
from tests.actors.playing import ANYTHING, items_in, outputs_of, root
from tests.deck.reading import Texts

TOOLS = """
[[tools]]
name = "pay"
description = "Pay."
onDoubt = "{0}"
[[tools]]
name = "look"
description = "Look."
onDoubt = "retry"
"""
CHILD = 'contextSchema = "../s.json"\nresponseSchema = "../s.json"\nrespond = true\n'
ASK_CHILD = '[[actions]]\nname = "a"\ndescription = "Do."\npath = "a/PROMPT.md"\n'
CHILD_DECK = "*/a/PROMPT.md"


def files(on_doubt: str = "ask") -> dict[str, str]:
    """A root with a child, both with tools."""
    tools = TOOLS.format(on_doubt)
    return {
        "PROMPT.md": root(ASK_CHILD + tools),
        "a/PROMPT.md": root(CHILD + tools),
        "s.json": ANYTHING,
    }


def script() -> list[Reply]:
    """The root looks, then asks the child, which pays; then both answer."""
    respond = (Call(name="gambit_respond", arguments={"payload": {"paid": True}}),)
    return [
        Reply(deck=CHILD_DECK, pass_number=1, calls=(Call(name="pay"),), times=0),
        Reply(deck=CHILD_DECK, calls=respond, times=0),
        Reply(turn=2, text="Again.", times=0),
        Reply(pass_number=1, calls=(Call(name="look"),), times=0),
        Reply(pass_number=2, calls=(Call(name="a"), Call(name="look")), times=0),
        Reply(text="Done.", times=0),
    ]


class Counting:
    """Tools that note what they were asked for."""

    def __init__(self) -> None:
        self.asked: list[ExternalCall] = []

    async def __call__(self, call: ExternalCall) -> JSONValue:
        """Note it, and answer."""
        await trio.lowlevel.checkpoint()
        self.asked.append(call)
        return {"of": call.name}


def kept_until(logs: dict[str, MemoryLog], count: int) -> MemoryStore:
    """A store with what was there when so many entries, of all logs, were written."""
    store = MemoryStore(keep=True)
    for log in logs.values():
        kept = [e for index, e in WRITTEN[id(log)] if index < count]
        if kept:
            store.logs[log.run.run_id] = MemoryLog(log.run)
            store.logs[log.run.run_id].entries[:] = kept
            store.logs[log.run.run_id].is_open = False  # Its writer is no more.
    return store


WRITTEN: dict[int, list[tuple[int, Entry]]] = {}


class Recorder(MemoryStore):
    """Keeps logs, and the order in which all entries of all logs were written."""

    def __init__(self) -> None:
        super().__init__(keep=True)
        self.batches: list[int] = [0]

    async def open_log(self, run: RunStarted, /) -> MemoryLog:
        """Make a log whose appends are counted."""
        await trio.lowlevel.checkpoint()
        recorded = RecordedLog(run, self)
        self.logs[run.run_id] = recorded
        return recorded


class RecordedLog(MemoryLog):
    """A log that tells its store what was written when."""

    def __init__(self, run: RunStarted, store: Recorder) -> None:
        super().__init__(run)
        self._store = store
        # The start of a run is written with what comes first.
        self._first: list[Entry] = [run]
        WRITTEN[id(self)] = []

    async def append(self, entries: Sequence[Entry], /) -> None:
        """Write a batch, which is there whole or not at all."""
        await super().append(entries)
        batch = [*self._first, *entries]
        self._first = []
        start = self._store.batches[-1]
        WRITTEN[id(self)] += [(start, entry) for entry in batch]
        self._store.batches.append(start + 1)


async def whole_run(deck_files: dict[str, str], sent: Counting) -> Recorder:
    """Run it once to its end."""
    store = Recorder()
    async with open_runtime(
        ScriptedProvider(script()),
        reader=Texts(deck_files),
        store=store,
        options=RunOptions(on_tool=sent),
    ) as runtime:
        result = await runtime.run("PROMPT.md", message="Hi.")
    assert result.text == "Done."
    return store


async def resumed(
    store: MemoryStore,
    run_id: str,
    deck_files: dict[str, str],
    on_tool: Counting,
    answers: dict[str, Happened] | None = None,
) -> tuple[RunResult, MemorySink]:
    """Go on with a run in a runtime that knows nothing of it."""
    sink = MemorySink()
    async with open_runtime(
        ScriptedProvider(script()),
        reader=Texts(deck_files),
        store=store,
        sinks=[sink],
        options=RunOptions(on_tool=on_tool),
    ) as runtime:
        try:
            result = await runtime.resume(run_id)
        except InDoubt as problem:
            given = answers or {
                doubt.key: Happened(value="paid") for doubt in problem.doubts
            }
            result = await runtime.resume(run_id, answers=given)
        assert runtime.snapshot() == ()
    return result, sink


def answered_in(entries: Sequence[Entry]) -> set[str]:
    """The calls whose outputs are in the conversation."""
    items = items_in(entries)
    return {i.call_id for i in items if isinstance(i, FunctionCallOutput)}


@pytest.mark.slow
@pytest.mark.spec("CARD-7")
@pytest.mark.parametrize("on_doubt", ["retry", "fail", "ask"])
async def test_a_run_goes_on_from_wherever_it_was_cut(on_doubt: str) -> None:
    """After any number of writes: the same answer, and nothing recorded is redone."""
    deck_files = files(on_doubt)
    store = await whole_run(deck_files, Counting())
    run_id = next(iter(store.logs))
    batches = store.batches[-1]
    assert batches > 10
    for count in range(1, batches + 1):
        kept = kept_until(store.logs, count)
        entries = [e for log in kept.logs.values() for e in log.entries]
        has_output = {e.call_id for e in entries if isinstance(e, CallEnded)}
        has_output |= answered_in(entries)
        begun = {e.call_id for e in entries if isinstance(e, CallStarted)} - has_output
        sent = Counting()
        result, sink = await resumed(kept, run_id, deck_files, sent)
        assert result.text == "Done.", count
        assert unbalanced(sink.events) == []
        again = [call.action_call_id for call in sent.asked]
        assert not has_output & set(again), count
        assert len(again) == len(set(again))
        for call in sent.asked:
            assert call.attempt == (2 if call.action_call_id in begun else 1)
            assert call.idempotency_key.endswith(f":{call.action_call_id}")
        told = [e for e in sink.events if isinstance(e, CallInDoubt)]
        decks = {e.call_id for e in entries if isinstance(e, CallStarted) and e.run_id}
        assert {e.action_call_id for e in told} == begun - decks
        assert all(in_its_log(e, kept) for e in told)
        for log in kept.logs.values():
            outputs = outputs_of(items_in(log.entries))
            assert all(len(set(texts)) == len(texts) for texts in outputs.values())


def in_its_log(doubt: CallInDoubt, store: MemoryStore) -> bool:
    """Whether the log that an event names is the one with the call."""
    entries = store.logs[doubt.log_run_id].entries
    started = [e for e in entries if isinstance(e, CallStarted)]
    return any(e.call_id == doubt.action_call_id for e in started)


async def cut_in_a_payment(deck_files: dict[str, str]) -> tuple[MemoryStore, str]:
    """A store with a run whose child had begun to pay."""
    store = await whole_run(deck_files, Counting())
    run_id = next(iter(store.logs))
    for count in range(1, store.batches[-1]):
        kept = kept_until(store.logs, count)
        entries = [e for log in kept.logs.values() for e in log.entries]
        if any(isinstance(e, CallStarted) and e.name == "pay" for e in entries):
            return kept, run_id
    raise AssertionError("nobody pays")


async def test_whoever_has_to_be_asked_is_asked_before_anything_is_done() -> None:
    """The error names the call; nothing is written and no tool is asked meanwhile."""
    kept, run_id = await cut_in_a_payment(files("ask"))
    before = {key: list(log.entries) for key, log in kept.logs.items()}
    sent = Counting()
    async with open_runtime(
        ScriptedProvider(script()),
        reader=Texts(files("ask")),
        store=kept,
        options=RunOptions(on_tool=sent),
    ) as runtime:
        with pytest.raises(InDoubt, match="pay") as caught:
            await runtime.resume(run_id)
        assert {key: log.entries for key, log in kept.logs.items()} == before
        assert sent.asked == []
        (doubt,) = caught.value.doubts
        key = doubt.key
        with pytest.raises(RequestError, match="no call is in doubt"):
            await runtime.resume(run_id, answers={"other": "retry", key: "retry"})
        result = await runtime.resume(run_id, answers={key: Happened(value={"ok": 1})})
    assert result.text == "Done."
    assert "pay" not in [call.name for call in sent.asked]
    texts = [
        t
        for log in kept.logs.values()
        for t in outputs_of(items_in(log.entries)).get("pay", ())
    ]
    assert [json.loads(text)["payload"] for text in texts] == [{"ok": 1}]


@pytest.mark.parametrize("answer", ["retry", "fail"])
async def test_an_answer_may_be_to_retry_or_to_fail(answer: str) -> None:
    """Retried with the same key and the next attempt; or the model is told."""
    kept, run_id = await cut_in_a_payment(files("ask"))
    sent = Counting()
    async with open_runtime(
        ScriptedProvider(script()),
        reader=Texts(files("ask")),
        store=kept,
        options=RunOptions(on_tool=sent),
    ) as runtime:
        with pytest.raises(InDoubt) as caught:
            await runtime.resume(run_id)
        key = caught.value.doubts[0].key
        result = await runtime.resume(run_id, answers={key: answer})  # type: ignore[dict-item]
    assert result.text == "Done."
    paid = [call for call in sent.asked if call.name == "pay"]
    texts = [
        t
        for log in kept.logs.values()
        for t in outputs_of(items_in(log.entries)).get("pay", ())
    ]
    if answer == "retry":
        assert [(c.attempt, c.idempotency_key) for c in paid] == [(2, key)]
    else:
        assert paid == []
        assert [json.loads(text)["code"] for text in texts] == ["in_doubt"]


async def test_a_finished_run_gives_the_result_it_has() -> None:
    """Nobody is asked anything, and nothing is written."""
    store = await whole_run(files(), Counting())
    run_id = next(iter(store.logs))
    before = [list(log.entries) for log in store.logs.values()]
    sent = Counting()
    async with open_runtime(
        ScriptedProvider([]), reader=Texts(files()), store=store
    ) as runtime:
        result = await runtime.resume(run_id)
    assert (result.text, result.status, result.run_id) == ("Done.", "completed", run_id)
    assert result.usage.total_tokens > 0
    assert sent.asked == []
    assert [list(log.entries) for log in store.logs.values()] == before


async def test_a_run_that_only_lacks_its_end_is_given_one() -> None:
    """The answer is there, so nothing is asked again; the log is closed, once."""
    store = await whole_run(files(), Counting())
    run_id = next(iter(store.logs))
    entries = store.logs[run_id].entries
    whole = list(entries)
    assert isinstance(entries.pop(), RunEnded)
    async with open_runtime(
        ScriptedProvider([]), reader=Texts(files()), store=store
    ) as runtime:
        result = await runtime.resume(run_id)
    assert result.text == "Done."
    assert entries == [*whole[:-1], RunResumed(), whole[-1]]


async def test_what_was_spent_before_counts_afterwards() -> None:
    """Tokens and money are those of the whole run, whoever did which part."""
    price = Price(input=1, output=1)
    options = RunOptions(on_tool=Counting(), prices={"scripted/one": price})
    store = Recorder()
    async with open_runtime(
        ScriptedProvider(script()),
        reader=Texts(files("retry")),
        store=store,
        options=options,
    ) as runtime:
        whole = await runtime.run("PROMPT.md", message="Hi.")
        run_id = whole.run_id
    for count in range(1, store.batches[-1]):
        async with open_runtime(
            ScriptedProvider(script()),
            reader=Texts(files("retry")),
            store=kept_until(store.logs, count),
            options=options,
        ) as runtime:
            result = await runtime.resume(run_id)
        # Ids and attempts are in the texts, so they are not of the very same length.
        assert result.usage.output_tokens == whole.usage.output_tokens
        assert result.usage.input_tokens == pytest.approx(
            whole.usage.input_tokens, rel=0.05
        )
        assert result.cost == pytest.approx(whole.cost, rel=0.05)


async def test_a_session_is_taken_up_again() -> None:
    """The next turn knows what was said before; its log goes on in the same place."""
    store = await whole_run(files(), Counting())
    run_id = next(iter(store.logs))
    async with (
        open_runtime(
            ScriptedProvider(script()), reader=Texts(files()), store=store
        ) as runtime,
        runtime.reopen_session(run_id) as session,
    ):
        assert (session.run_id, session.is_unfinished) == (run_id, False)
        with pytest.raises(RequestError, match="not interrupted"):
            await session.go_on()
        result = await session.send("And now?")
    assert result.text == "Again."
    entries = store.logs[run_id].entries
    assert sum(isinstance(e, RunResumed) for e in entries) == 1
    assert [type(e) for e in entries[-2:]] == [TurnEnded, RunEnded]
    said = [i.text for i in items_in(entries) if isinstance(i, Message)]
    assert said == ["Be kind.", "Hi.", "Done.", "And now?", "Again."]


async def test_an_interrupted_session_is_brought_to_its_answer_first() -> None:
    """Nothing else can be said before; then it goes on as ever."""
    kept, run_id = await cut_in_a_payment(files("retry"))
    async with open_runtime(
        ScriptedProvider(script()),
        reader=Texts(files("retry")),
        store=kept,
        options=RunOptions(on_tool=Counting()),
    ) as runtime:
        with pytest.raises(RequestError, match="interrupted"):
            await runtime.resume(run_id, message="And now?")
        async with runtime.reopen_session(run_id) as session:
            assert session.is_unfinished
            with pytest.raises(RequestError, match="interrupted"):
                await session.send("And now?")
            assert (await session.go_on()).text == "Done."
            assert (await session.send("And now?")).text == "Again."


async def test_what_cannot_be_resumed_is_said_in_words() -> None:
    """No such run; a run that is part of another."""
    store = await whole_run(files(), Counting())
    run_id, child_id = store.logs
    async with open_runtime(
        ScriptedProvider([]), reader=Texts(files()), store=store
    ) as runtime:
        with pytest.raises(NoSuchRun, match="run-none"):
            await runtime.resume("run-none")
        with pytest.raises(RequestError, match=f"part of run {run_id}"):
            await runtime.resume(child_id)


CODE = """
from gambit_actors import define_deck

async def run(ctx):
    ones = await ctx.spawn_all([("a/PROMPT.md", {"n": n}) for n in (1, 2)])
    last = await ctx.spawn_and_wait("a/PROMPT.md", {"n": 3})
    return {"all": [*ones, last], "attempt": ctx.attempt, "key": ctx.idempotency_key}

deck = define_deck(run=run)
"""
CODE_ENTRY = """
[[actions]]
name = "code"
description = "Do."
execute = "code.py"
contextSchema = "s.json"
responseSchema = "s.json"
"""


def code_script() -> list[Reply]:
    """The root's model runs the code, and answers."""
    code = Reply(pass_number=1, calls=(Call(name="code"),), times=0)
    return [*script()[:2], code, Reply(text="Done.", times=0)]


def write_code(folder: Path) -> None:
    """A root whose only action is code that runs a deck three times."""
    (folder / "a").mkdir()
    for name, text in files("retry").items():
        (folder / name).write_text(text)
    (folder / "PROMPT.md").write_text(root(CODE_ENTRY))
    (folder / "code.py").write_text(CODE)


@pytest.mark.slow
async def test_decks_that_code_had_run_are_not_run_again(tmp_path: Path) -> None:
    """Code is begun again; what it had asked for goes on, or is there at once."""
    write_code(tmp_path)
    replies = code_script()

    def runtime_on(
        store: MemoryStore, on_tool: Counting
    ) -> AbstractAsyncContextManager[Runtime]:
        return open_runtime(
            ScriptedProvider(replies),
            reader=DiskReader(tmp_path),
            store=store,
            options=RunOptions(on_tool=on_tool),
        )

    store = Recorder()
    async with runtime_on(store, Counting()) as runtime:
        # Once is enough: to describe a module takes a process.
        deck = await runtime.load("PROMPT.md")
        run_id = (await runtime.run(deck, message="Hi.")).run_id
    paid: set[int] = set()
    for count in range(1, store.batches[-1] + 1):
        kept = kept_until(store.logs, count)
        entries = [e for log in kept.logs.values() for e in log.entries]
        had = answered_in(entries)
        ended = {log.run.run_id for log in kept.logs.values() if has_ended(log)}
        sent = Counting()
        async with runtime_on(kept, sent) as runtime:
            result = await runtime.resume(run_id, deck=deck)
        assert result.text == "Done.", count
        assert not had & {call.action_call_id for call in sent.asked}
        assert len(kept.logs) == 4
        assert all(kept.logs[key].entries == store.logs[key].entries for key in ended)
        paid.add(len(sent.asked))
        (output,) = outputs_of(result.items)["code"]
        payload = json.loads(output)["payload"]
        assert len(payload["all"]) == 3
        assert payload["key"].startswith(f"{run_id}:")
    assert paid == {0, 1, 2, 3}


def has_ended(log: MemoryLog) -> bool:
    """Whether a run below the root had come to its end."""
    return log.run.depth > 0 and isinstance(log.entries[-1], RunEnded)


async def test_code_knows_which_attempt_it_is(tmp_path: Path) -> None:
    """The attempt counts up and the key stays, in the process of the runtime."""
    write_code(tmp_path)
    replies = code_script()
    store = Recorder()

    def opened(store: MemoryStore) -> AbstractAsyncContextManager[Runtime]:
        return open_runtime(
            ScriptedProvider(replies),
            reader=DiskReader(tmp_path),
            store=store,
            options=RunOptions(on_tool=Counting()),
        )

    async with opened(store) as runtime:
        first = await runtime.run("PROMPT.md", message="Hi.")
    begun = next(
        count
        for count in range(1, store.batches[-1])
        if any(
            isinstance(e, CallStarted)
            for e in kept_until(store.logs, count).logs[first.run_id].entries
        )
    )
    async with opened(kept_until(store.logs, begun)) as runtime:
        again = await runtime.resume(first.run_id)
    told = [
        json.loads(outputs_of(result.items)["code"][0])["payload"]
        for result in (first, again)
    ]
    assert [payload["attempt"] for payload in told] == [1, 2]
    assert told[0]["key"] == told[1]["key"]
