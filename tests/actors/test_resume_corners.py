"""Corners of resuming that were wrong once."""

import hashlib
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec
import pytest
from trio.testing import MockClock

from gambit_actors.actors.memory_log import MemoryLog, MemoryStore, ReopenedMemoryLog
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.runtime import Runtime, open_runtime
from gambit_actors.actors.sessions import RunResult
from gambit_actors.errors import InDoubt, LogGrown, LogInUse, RequestError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall, FunctionCallOutput, Message
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Call, Reply, TokenCount
from gambit_actors.run.budgets import Price
from gambit_actors.run.doubts import Doubt, Happened
from gambit_actors.run.entries import (
    CallStarted,
    ChildStarted,
    ItemAdded,
    RunEnded,
    RunResumed,
)
from gambit_actors.run.ports import ModelContext
from gambit_actors.run.states import state_from_entries
from gambit_actors.store.deck_files import DiskReader
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.trace.events import CallInDoubt, HandlerSaid, Log, TraceEvent
from gambit_actors.trace.sinks import MemorySink
from gambit_actors.trace.trees import unbalanced
from tests.actors.playing import (
    ANYTHING,
    TOOL,
    coded,
    execute,
    items_in,
    outputs_of,
    root,
)
from tests.actors.test_resume import (
    ASK_CHILD,
    Counting,
    Recorder,
    code_script,
    cut_in_a_payment,
    files,
    kept_until,
    script,
    whole_run,
    write_code,
)
from tests.deck.reading import Texts


@pytest.mark.parametrize("message", [5, b"x", {"a": 1}, True, "\ud800"])
async def test_a_message_that_is_no_text_harms_no_log(message: object) -> None:
    """It is refused before anything is written."""
    store = await whole_run(files(), Counting())
    run_id = next(iter(store.logs))
    before = list(store.logs[run_id].entries)
    async with open_runtime(
        ScriptedProvider(script()), reader=Texts(files()), store=store
    ) as runtime:
        with pytest.raises(RequestError, match="message"):
            await runtime.resume(run_id, message=message)  # type: ignore[arg-type]  # on purpose
    assert store.logs[run_id].entries == before


async def test_a_tool_that_is_gone_is_still_asked_about() -> None:
    """What had begun is in doubt whatever the deck says now; the answer counts."""
    kept, run_id = await cut_in_a_payment(files("ask"))
    without = files("ask")
    without["a/PROMPT.md"] = without["a/PROMPT.md"].replace(
        'name = "pay"', 'name = "p"'
    )
    async with open_runtime(
        ScriptedProvider(script()),
        reader=Texts(without),
        store=kept,
        options=RunOptions(on_tool=Counting()),
    ) as runtime:
        with pytest.raises(InDoubt, match="pay") as caught:
            await runtime.resume(run_id)
        key = caught.value.doubts[0].key
        await runtime.resume(run_id, answers={key: Happened(value="paid")})
    texts = [
        text
        for log in kept.logs.values()
        for text in outputs_of(items_in(log.entries)).get("pay", ())
    ]
    assert [json.loads(text)["payload"] for text in texts] == ["paid"]


async def test_a_call_that_was_given_up_is_not_asked_about_again() -> None:
    """A finished run has no doubts, though a deck below it was left in one."""
    kept, run_id = await cut_in_a_payment(files("ask"))
    failing = files("ask")
    failing["PROMPT.md"] = failing["PROMPT.md"].replace(
        'path = "a/PROMPT.md"\n', 'path = "a/PROMPT.md"\nonDoubt = "fail"\n'
    )
    options = RunOptions(on_tool=Counting())
    async with open_runtime(
        ScriptedProvider(script()), reader=Texts(failing), store=kept, options=options
    ) as runtime:
        assert (await runtime.resume(run_id)).text == "Done."
        assert (await runtime.resume(run_id)).text == "Done."
        assert (await runtime.resume(run_id, message="And now?")).text == "Again."


CODE = """
from gambit_actors import define_deck

async def run(ctx):
    return {"all": await ctx.spawn_all([("a/PROMPT.md", {"n": 1})] * 3)}

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
CHILD = 'contextSchema = "../s.json"\nresponseSchema = "../s.json"\nrespond = true\n'


@pytest.mark.slow
async def test_equal_decks_side_by_side_each_have_their_own_log(tmp_path: Path) -> None:
    """Code that asks the same thing three times takes each of three runs up once."""
    (tmp_path / "a").mkdir()
    retried = TOOL + 'onDoubt = "retry"\n'
    (tmp_path / "a" / "PROMPT.md").write_text(root(CHILD + retried))
    (tmp_path / "s.json").write_text(ANYTHING)
    (tmp_path / "PROMPT.md").write_text(root(CODE_ENTRY))
    (tmp_path / "code.py").write_text(CODE)
    respond = (Call(name="gambit_respond", arguments={"payload": {}}),)
    replies = [
        Reply(deck="*/a/PROMPT.md", pass_number=1, calls=(Call(name="crm"),), times=0),
        Reply(deck="*/a/PROMPT.md", calls=respond, times=0),
        Reply(pass_number=1, calls=(Call(name="code"),), times=0),
        Reply(text="Done.", times=0),
    ]

    def opened(store: MemoryStore) -> AbstractAsyncContextManager[Runtime]:
        return open_runtime(
            ScriptedProvider(replies),
            reader=DiskReader(tmp_path),
            store=store,
            options=RunOptions(on_tool=Counting()),
        )

    store = Recorder()
    async with opened(store) as runtime:
        deck = await runtime.load("PROMPT.md")
        run_id = (await runtime.run(deck, message="Hi.")).run_id
    for count in range(1, store.batches[-1] + 1):
        kept = kept_until(store.logs, count)
        async with opened(kept) as runtime:
            result = await runtime.resume(run_id, deck=deck)
        (output,) = outputs_of(result.items)["code"]
        assert json.loads(output)["payload"] == {"all": [{}, {}, {}]}, count
        assert len(kept.logs) == 4


@pytest.mark.parametrize("left", [b"", b'{"seq":0,"ts":1.0,"form'])
async def test_a_log_that_was_only_being_made_is_begun_anew(
    left: bytes, tmp_path: Path
) -> None:
    """A kill while a file is made leaves it empty or torn, and costs no run."""
    async with DiskStore(tmp_path / "first") as store:
        async with open_runtime(
            ScriptedProvider(script()),
            reader=Texts(files()),
            store=store,
            options=RunOptions(on_tool=Counting()),
        ) as runtime:
            run_id = (await runtime.run("PROMPT.md", message="Hi.")).run_id
        entries = (await store.read_log(run_id)).entries
        begun = next(
            n
            for n, e in enumerate(entries, 1)
            if isinstance(e, CallStarted) and e.run_id
        )
        child = entries[begun - 1]
        assert isinstance(child, CallStarted)
        lines = store.path_of(run_id).read_bytes().splitlines(keepends=True)
    # The other call of that turn was noted in the same write.
    folder = tmp_path / "second"
    folder.mkdir()
    (folder / f"{run_id}.jsonl").write_bytes(b"".join(lines[: begun + 1]))
    (folder / f"{child.run_id}.jsonl").write_bytes(left)
    async with (
        DiskStore(folder) as store,
        open_runtime(
            ScriptedProvider(script()),
            reader=Texts(files()),
            store=store,
            options=RunOptions(on_tool=Counting()),
        ) as runtime,
    ):
        result = await runtime.resume(run_id)
        assert result.text == "Done."
        assert isinstance((await store.read_log(run_id)).entries[-1], RunEnded)


async def test_a_run_is_resumed_by_one_at_a_time() -> None:
    """Whoever comes second is told, also where logs are in memory."""
    store = await whole_run(files(), Counting())
    run_id = next(iter(store.logs))
    async with open_runtime(
        ScriptedProvider([Reply(text="Again.")]),
        reader=Texts(files()),
        store=store,
    ) as runtime:
        async with runtime.reopen_session(run_id) as session:
            assert session.last is not None
            assert session.last.status == "completed"
            with pytest.raises(LogInUse):
                await runtime.resume(run_id, message="And now?")
        ended = store.logs[run_id].entries[-1]
    assert isinstance(ended, RunEnded)
    assert ended.status == "completed"


RESPOND = (Call(name="gambit_respond", arguments={"payload": {}}),)
HANDLERS = """
[handlers.onBusy]
path = "h/PROMPT.md"
delayMs = 1000
[handlers.onIdle]
path = "h/PROMPT.md"
delayMs = 1000
[handlers.onError]
path = "h/PROMPT.md"
"""


def handled() -> dict[str, str]:
    """A deck whose handlers leave a note before they speak."""
    decks = files("retry")
    decks["PROMPT.md"] = root(ASK_CHILD + HANDLERS)
    decks["h/PROMPT.md"] = root(TOOL + 'onDoubt = "retry"\n')
    return decks


def handled_script() -> list[Reply]:
    """The root is slow, then its child is slow and fails; the handlers speak."""
    return [
        Reply(deck="*h/PROMPT.md", pass_number=1, calls=(Call(name="crm"),), times=0),
        Reply(deck="*h/PROMPT.md", text="One moment.", times=0),
        Reply(deck="*/a/PROMPT.md", latency_seconds=2, fault="error", times=0),
        Reply(pass_number=1, latency_seconds=2, calls=(Call(name="a"),), times=0),
        Reply(text="Done.", times=0),
    ]


async def test_no_handler_is_left_under_way(autojump_clock: MockClock) -> None:
    """Cut off at any write, each log has its end, and what was in doubt is told."""

    def opened(
        store: MemoryStore, sink: MemorySink, script: list[Reply]
    ) -> AbstractAsyncContextManager[Runtime]:
        return open_runtime(
            ScriptedProvider(script),
            reader=Texts(handled()),
            store=store,
            sinks=[sink],
            options=RunOptions(on_tool=Counting()),
        )

    store = Recorder()
    async with opened(store, MemorySink(), handled_script()) as runtime:
        deck = await runtime.load("PROMPT.md")
        run_id = (await runtime.run(deck, message="Hi.")).run_id
    assert sum(log.run.deck.endswith("h/PROMPT.md") for log in store.logs.values()) == 3
    abandoned = 0
    for count in range(1, store.batches[-1] + 1):
        for is_slow in (True, False):
            # With a child that works by now there is no error to ask a handler about.
            script = handled_script()
            if not is_slow:
                script[2] = Reply(deck="*/a/PROMPT.md", calls=RESPOND, times=0)
            kept, sink = kept_until(store.logs, count), MemorySink()
            begun = {
                (log.run.run_id, e.call_id)
                for log in kept.logs.values()
                for e in log.entries
                if isinstance(e, CallStarted) and e.name == "crm"
            }
            async with opened(kept, sink, script) as runtime:
                result = await runtime.resume(run_id, deck=deck)
            assert result.text == "Done."
            assert unbalanced(sink.events) == []
            for log in kept.logs.values():
                assert isinstance(log.entries[-1], RunEnded), count
                state = state_from_entries(log.entries)
                assert not state.pending
                assert state.ended is not None
                failure = state.ended.failure
                if failure is not None and failure.code == "abandoned":
                    abandoned += 1
            told = {(e.log_run_id, e.action_call_id) for e in sink.of(CallInDoubt)}
            unknown = {
                (log.run.run_id, item.call_id)
                for log in kept.logs.values()
                for item in items_in(log.entries)
                if isinstance(item, FunctionCallOutput)
                and '"in_doubt"' in str(item.output)
            }
            assert unknown <= told
            assert unknown <= begun
    assert abandoned > 10


@pytest.mark.slow
async def test_decks_that_code_had_run_are_found_where_they_have_moved(
    tmp_path: Path,
) -> None:
    """A folder that was moved takes along what code in it runs: it is gone on with."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    write_code(old)

    def opened(store: MemoryStore) -> AbstractAsyncContextManager[Runtime]:
        return open_runtime(
            ScriptedProvider(code_script()),
            reader=DiskReader(tmp_path),
            store=store,
            options=RunOptions(on_tool=Counting()),
        )

    store = Recorder()
    async with opened(store) as runtime:
        run_id = (await runtime.run("old/PROMPT.md", message="Hi.")).run_id
    old.rename(new)
    cuts = [
        count
        for count in range(1, store.batches[-1])
        if len(kept_until(store.logs, count).logs) == 4
    ]
    async with opened(kept_until(store.logs, 1)) as runtime:
        deck = await runtime.load("new/PROMPT.md")
    for count in (cuts[0], cuts[-1]):
        kept = kept_until(store.logs, count)
        async with opened(kept) as runtime:
            result = await runtime.resume(run_id, deck=deck)
        assert result.text == "Done."
        assert kept.logs.keys() == store.logs.keys()


class StaleStore(MemoryStore):
    """A store in which others go on with a run right after somebody looked."""

    def __init__(self, logs: dict[str, MemoryLog], times: int) -> None:
        super().__init__(keep=True)
        self.logs.update(logs)
        self._left = times

    async def read_log(self, run_id: str, /) -> MemoryLog:
        """Read what there is, just before there is more."""
        log = await super().read_log(run_id)
        if not self._left:
            return log
        self._left -= 1
        found = MemoryLog(log.run)
        found.entries[:] = log.entries
        log.entries.append(RunResumed())
        return found

    async def reopen_log(self, run_id: str, /) -> ReopenedMemoryLog:
        """Take over what is there by now."""
        left, self._left = self._left, 0
        try:
            return await super().reopen_log(run_id)
        finally:
            self._left = left


@pytest.mark.parametrize("is_session", [True, False])
@pytest.mark.parametrize("times", [1, 50])
async def test_a_run_that_grew_since_somebody_looked_is_looked_at_again(
    times: int, is_session: bool
) -> None:
    """Twice; who is overtaken each time is told."""
    whole = await whole_run(files("retry"), Counting())
    run_id = next(iter(whole.logs))
    kept = kept_until(whole.logs, 4)
    async with open_runtime(
        ScriptedProvider(script()),
        reader=Texts(files("retry")),
        # Asking for its result is a look, too, when it is not a session.
        store=StaleStore(kept.logs, times + (not is_session)),
        options=RunOptions(on_tool=Counting()),
    ) as runtime:

        async def go_on() -> RunResult:
            if not is_session:
                return await runtime.resume(run_id)
            async with runtime.reopen_session(run_id) as session:
                return await session.go_on()

        if times == 1:
            assert (await go_on()).text == "Done."
        else:
            with pytest.raises(LogGrown):
                await go_on()


STRUCK = '{"pin":"[redacted]"}'


def strike_out(store: MemoryStore, name: str) -> None:
    """Have the calls of that name in the logs lack a secret, as on a disk they do."""
    for log in store.logs.values():
        for index, entry in enumerate(log.entries):
            item = entry.item if isinstance(entry, ItemAdded) else None
            if isinstance(item, FunctionCall) and item.name == name:
                struck = msgspec.structs.replace(item, arguments=STRUCK)
                log.entries[index] = ItemAdded(item=struck, source="model")


def opened_on(
    store: MemoryStore, on_tool: Counting
) -> AbstractAsyncContextManager[Runtime]:
    """A runtime whose tools would all be retried."""
    return open_runtime(
        ScriptedProvider(script()),
        reader=Texts(files("retry")),
        store=store,
        options=RunOptions(on_tool=on_tool),
    )


async def test_a_call_whose_secrets_are_lost_is_not_made_again() -> None:
    """It is asked about, whatever the author wants, and a retry is no answer."""
    kept, run_id = await cut_in_a_payment(files("retry"))
    strike_out(kept, "pay")
    sent = Counting()
    async with opened_on(kept, sent) as runtime:
        with pytest.raises(InDoubt, match="pay") as caught:
            await runtime.resume(run_id)
        (doubt,) = caught.value.doubts
        assert isinstance(doubt, Doubt)
        assert (doubt.choice, doubt.lacks_secrets) == ("ask", True)
        with pytest.raises(RequestError, match="had secrets"):
            await runtime.resume(run_id, answers={doubt.key: "retry"})
        result = await runtime.resume(run_id, answers={doubt.key: "fail"})
    assert result.text == "Done."
    assert "pay" not in [call.name for call in sent.asked]


async def test_a_deck_whose_secrets_are_lost_is_not_begun() -> None:
    """One that had not begun is failed; one that had goes on from its own log."""
    whole = await whole_run(files("retry"), Counting())
    run_id = next(iter(whole.logs))
    told: list[set[str]] = []
    for count in range(1, whole.batches[-1]):
        kept = kept_until(whole.logs, count)
        strike_out(kept, "a")
        async with opened_on(kept, Counting()) as runtime:
            result = await runtime.resume(run_id)
        (output,) = outputs_of(result.items)["a"]
        is_lost = json.loads(output).get("code") == "secret_lost"
        had_begun = len(kept_until(whole.logs, count).logs) > 1
        is_there = STRUCK in [
            i.arguments for i in result.items if isinstance(i, FunctionCall)
        ]
        assert is_lost == (is_there and not had_begun)
        told.append({"lost"} if is_lost else {"done"})
    assert {"lost"} in told


async def test_a_branch_makes_no_call_whose_secrets_are_lost() -> None:
    """What the other run had carried out is not carried out with other arguments."""
    whole = await whole_run(files("retry"), Counting())
    run_id = next(iter(whole.logs))
    strike_out(whole, "look")
    count = 1 + next(
        index
        for index, item in enumerate(items_in(whole.logs[run_id].entries))
        if isinstance(item, FunctionCall)
    )
    sent = Counting()
    async with opened_on(whole, sent) as runtime:
        branch_id = await runtime.history.branch(run_id, items=count)
        result = await runtime.resume(branch_id)
    first = outputs_of(result.items)["look"][0]
    assert json.loads(first)["code"] == "secret_lost"
    lacking = [call for call in sent.asked if "[redacted]" in str(call.args)]
    assert lacking == []


async def test_what_a_deck_is_asked_leaves_nothing_to_guess_from(
    tmp_path: Path,
) -> None:
    """A digest in a log does not depend on a secret, and is another in each run."""
    schema = '{"type": "object", "properties": {"pin": {"x-secret": true}}}'
    code = """
from gambit_actors import define_deck

async def run(ctx):
    return await ctx.spawn_and_wait("a/PROMPT.md", {{"pin": {pin!r}}})

deck = define_deck(run=run)
"""
    found: list[str] = []
    for pin in ("1234", "5678"):
        folder = tmp_path / pin
        folder.mkdir()
        write_code(folder)
        (folder / "pin.json").write_text(schema)
        prompt = folder / "a" / "PROMPT.md"
        prompt.write_text(prompt.read_text().replace("../s.json", "../pin.json", 1))
        (folder / "code.py").write_text(code.format(pin=pin))
        store = MemoryStore(keep=True)
        async with open_runtime(
            ScriptedProvider(code_script()),
            reader=DiskReader(folder),
            store=store,
            options=RunOptions(on_tool=Counting()),
        ) as runtime:
            run_id = (await runtime.run("PROMPT.md", message="Hi.")).run_id
        for entry in store.logs[run_id].entries:
            if isinstance(entry, ChildStarted):
                salted = f'{run_id}\0[{{"pin":"[redacted]"}},null]'.encode()
                digest = hashlib.sha256(salted).hexdigest()[:16]
                assert entry.asked == digest
                found.append(entry.asked)
    assert len(set(found)) == 2


async def test_what_a_busy_handler_said_is_in_the_log_before_it_is_told(
    autojump_clock: MockClock,
) -> None:
    """Cut off at any write, what was said is in the conversation as often as told."""
    decks = files("retry")
    busy = '[handlers.onBusy]\npath = "h/PROMPT.md"\ndelayMs = 500\nrepeatMs = 500\n'
    decks["PROMPT.md"] = root(ASK_CHILD + busy)
    decks["h/PROMPT.md"] = root()
    replies = [
        Reply(deck="*h/PROMPT.md", text="One moment.", times=0),
        Reply(deck="*/a/PROMPT.md", latency_seconds=1.2, calls=RESPOND, times=0),
        Reply(pass_number=1, calls=(Call(name="a"),), times=0),
        Reply(text="Done.", times=0),
    ]
    told: list[tuple[int, str]] = []
    store = Recorder()

    def listen(event: TraceEvent) -> None:
        if isinstance(event, HandlerSaid):
            told.append((store.batches[-1], f"(elapsed {event.elapsed_ms}ms)"))

    def opened(
        store: MemoryStore, sink: Callable[[TraceEvent], None]
    ) -> AbstractAsyncContextManager[Runtime]:
        return open_runtime(
            ScriptedProvider(replies), reader=Texts(decks), store=store, sinks=[sink]
        )

    async with opened(store, listen) as runtime:
        deck = await runtime.load("PROMPT.md")
        run_id = (await runtime.run(deck, message="Hi.")).run_id
    assert [words for _, words in told] == ["(elapsed 500ms)", "(elapsed 1000ms)"]
    twice = 0
    for count in range(1, store.batches[-1] + 1):
        sink = MemorySink()
        async with opened(kept_until(store.logs, count), sink) as runtime:
            result = await runtime.resume(run_id, deck=deck)
        said = [i.text for i in result.items if isinstance(i, Message)]
        # An action that is gone on with may keep somebody waiting once more.
        heard = [words for written, words in told if written <= count]
        heard += [f"(elapsed {e.elapsed_ms}ms)" for e in sink.of(HandlerSaid)]
        for words in {words for _, words in told}:
            found = sum(text.endswith(words) for text in said)
            assert found == heard.count(words), count
            twice += found > 1
    assert twice


async def test_a_log_that_is_lost_is_told() -> None:
    """A deck whose log is not there is begun anew, and whoever watches knows that."""
    kept, run_id = await cut_in_a_payment(files("retry"))
    (lost,) = [key for key in kept.logs if key != run_id]
    del kept.logs[lost]
    sink, sent = MemorySink(), Counting()
    async with open_runtime(
        ScriptedProvider(script()),
        reader=Texts(files("retry")),
        store=kept,
        sinks=[sink],
        options=RunOptions(on_tool=sent),
    ) as runtime:
        assert (await runtime.resume(run_id)).text == "Done."
    (told,) = sink.of(Log)
    assert (told.level, told.title) == ("warning", "resume")
    assert lost in told.message
    assert [call.attempt for call in sent.asked if call.name == "pay"] == [1]


async def test_what_a_lost_log_cost_is_not_known() -> None:
    """A sum without it would be too low, and is not given."""
    whole = await whole_run(files(), Counting())
    run_id, child_id = whole.logs
    prices = {"scripted/one": Price(input=1, output=1)}
    options = RunOptions(on_tool=Counting(), prices=prices)
    for is_lost in (False, True):
        if is_lost:
            del whole.logs[child_id]
        async with open_runtime(
            ScriptedProvider(script()),
            reader=Texts(files()),
            store=whole,
            options=options,
        ) as runtime:
            result = await runtime.resume(run_id, message="And now?")
        assert (result.cost is None) == is_lost


async def test_a_turn_s_budget_goes_on_where_it_was() -> None:
    """What a turn had used before a crash is gone for the rest of that turn."""
    decks = {
        "PROMPT.md": root("[guardrails]\nmaxTokens = 5000\n" + TOOL + 'onDoubt="retry"')
    }
    used = TokenCount(input_tokens=1000, output_tokens=3000)
    said: list[int] = []

    def model(request: CreateResponse, context: ModelContext) -> Reply:
        said.append(request.max_output_tokens or 0)
        if context.pass_number == 1:
            return Reply(calls=(Call(name="crm"),), usage=used)
        return Reply(text="Done.", usage=used)

    def opened(store: MemoryStore) -> AbstractAsyncContextManager[Runtime]:
        return open_runtime(
            ScriptedProvider(model),
            reader=Texts(decks),
            store=store,
            options=RunOptions(on_tool=Counting()),
        )

    store = Recorder()
    async with opened(store) as runtime:
        run_id = (await runtime.run("PROMPT.md", message="Hi.")).run_id
    first, second = said
    assert second < 1000 < first
    for count in range(1, store.batches[-1]):
        said.clear()
        kept = kept_until(store.logs, count)
        begun = state_from_entries(kept.logs[run_id].entries).passes
        async with opened(kept) as runtime:
            await runtime.resume(run_id)
            assert [most < 1000 for most in said] == [False, True][begun:], count
            # The next turn has a budget of its own.
            await runtime.resume(run_id, message="And now?")
            assert said[-2] > 1000


async def test_what_a_session_keeps_is_there_after_a_restart(tmp_path: Path) -> None:
    """Code finds what it kept before, and not what it forgot."""
    code = (
        "from gambit_actors import define_deck\n\n"
        "async def run(ctx):\n"
        "    found = [ctx.get_session_meta(k) for k in ('seen', 'gone')]\n"
        "    await ctx.set_session_meta('seen', 'yes')\n"
        "    await ctx.set_session_meta('gone', 'yes')\n"
        "    await ctx.set_session_meta('gone', None)\n"
        "    return {'found': found}\n\n"
        "deck = define_deck(run=run)\n"
    )
    decks = {"PROMPT.md": root(execute("note")), "any.json": ANYTHING}
    reader = coded(tmp_path, decks, note=code)
    replies = [
        Reply(pass_number=1, calls=(Call(name="note"),), times=0),
        Reply(text="Done.", times=0),
    ]
    store = MemoryStore(keep=True)
    found: list[JSONValue] = []
    run_id = ""
    for _ in range(3):
        async with open_runtime(
            ScriptedProvider(replies), reader=reader, store=store
        ) as runtime:
            if run_id:
                result = await runtime.resume(run_id, message="And now?")
            else:
                result = await runtime.run("PROMPT.md", message="Hi.")
        run_id = result.run_id
        output = outputs_of(result.items)["note"][-1]
        found.append(json.loads(output)["payload"]["found"])
    assert found == [[None, None], ["yes", None], ["yes", None]]


async def test_what_comes_behind_an_output_is_kept_with_it() -> None:
    """An action that had ended before a cut is followed by its completion, once."""
    whole = await whole_run(files("retry"), Counting())
    run_id = next(iter(whole.logs))
    waiting = 0
    for count in range(1, whole.batches[-1]):
        kept = kept_until(whole.logs, count)
        ended = state_from_entries(kept.logs[run_id].entries).finished.values()
        waiting += any(entry.after for entry in ended)
        async with opened_on(kept, Counting()) as runtime:
            result = await runtime.resume(run_id)
        names = [i.name for i in result.items if isinstance(i, FunctionCall)]
        assert names.count("gambit_complete") == 1, count
        output = next(
            index
            for index, item in enumerate(result.items)
            if isinstance(item, FunctionCallOutput)
            and item.output == outputs_of(result.items)["a"][0]
        )
        behind = result.items[output + 1]
        assert isinstance(behind, FunctionCall)
        assert behind.name == "gambit_complete"
    assert waiting
