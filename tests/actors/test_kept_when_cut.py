"""What has happened is in the log, and what was cancelled does not happen later."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.runtime import Runtime
from gambit_actors.deck.model import Deck
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCallOutput, Item, Message
from gambit_actors.providers.scripts import Call, Reply
from gambit_actors.run.entries import CallEnded, Entry, ItemAdded, RunEnded, TurnEnded
from gambit_actors.run.states import state_from_entries
from gambit_actors.trace.trees import unbalanced
from tests.actors.playing import (
    ANYTHING,
    TOOL,
    WaitingStore,
    action,
    calls,
    child,
    coded,
    execute,
    items_in,
    outputs_of,
    root,
    stage,
)

pytestmark = pytest.mark.spec("CARD-10")

TWO = f'{TOOL}[[tools]]\nname = "two"\n'
RESPOND = calls("gambit_respond", payload={"n": 1}).calls


def limit(milliseconds: int) -> str:
    """Guardrails that leave so much time."""
    return f"[guardrails]\ntimeoutMs = {milliseconds}\n"


def outputs_in(entries: Sequence[Entry]) -> dict[str, list[JSONValue]]:
    """The envelopes that each call has, by its name."""
    found = outputs_of(items_in(entries))
    return {name: [json.loads(text) for text in texts] for name, texts in found.items()}


async def run_until(event: trio.Event, runtime: Runtime, deck: str | Deck) -> None:
    """Run a deck, and cancel when the event comes."""
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:

            async def cancel() -> None:
                await event.wait()
                scope.cancel()

            nursery.start_soon(cancel)
            await runtime.run(deck, message="Hi.")
    assert scope.cancelled_caught


async def test_a_thread_is_waited_for_and_what_it_gave_is_kept() -> None:
    """A plain function cannot be stopped: a cancel returns when it has returned."""
    started, asked = trio.Event(), threading.Event()
    happened: list[str] = []

    def on_tool(_call: ExternalCall) -> JSONValue:
        trio.from_thread.run_sync(started.set)
        assert asked.wait(10)
        happened.append("noted")
        return "noted"

    async def let_go() -> None:
        await started.wait()
        # All that a cancel can do without the thread is done.
        await wait_all_tasks_blocked(0.01)
        happened.append("asked")
        asked.set()

    options = RunOptions(on_tool=on_tool)
    async with stage({"PROMPT.md": root(TOOL)}, [calls("crm")], options) as on:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(let_go)
            await run_until(started, on.runtime, "PROMPT.md")
            happened.append("returned")
        assert unbalanced(on.sink.events) == []
        entries = on.entries()
    assert happened == ["asked", "noted", "returned"]
    assert outputs_in(entries)["crm"][0]["payload"] == "noted"
    assert isinstance(entries[-1], RunEnded)


async def test_nothing_happens_after_a_turn_that_was_called_off(
    autojump_clock: MockClock,
) -> None:
    """Cleanup is waited for when a turn is cancelled and the session lives on."""
    happened: list[tuple[str, float]] = []

    async def on_tool(_call: ExternalCall) -> JSONValue:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(3)
            happened.append(("cleaned up", trio.current_time()))

    script = [calls("crm"), Reply(text="Hello again.")]
    options = RunOptions(on_tool=on_tool)
    async with stage({"PROMPT.md": root(TOOL)}, script, options) as on:
        loaded = await on.runtime.load("PROMPT.md")
        began = trio.current_time()
        async with on.runtime.open_session(loaded) as session:
            with trio.move_on_after(1):
                await session.send("Hi.")
            happened.append(("returned", trio.current_time()))
            await trio.sleep(100)
            result = await session.send("And now?")
    assert happened == [("cleaned up", began + 4), ("returned", began + 4)]
    assert result.text == "Hello again."


async def test_a_call_that_waits_for_its_turn_never_begins_when_cancelled(
    autojump_clock: MockClock,
) -> None:
    """Cancelled means that it did not happen; and the place is free for others."""
    begun: list[str] = []

    async def on_tool(call: ExternalCall) -> JSONValue:
        begun.append(call.name)
        await trio.sleep_forever() if len(begun) == 1 else await trio.sleep(1)
        return call.name

    script = [calls("crm", "two"), calls("two"), Reply(text="Done.")]
    options = RunOptions(on_tool=on_tool, max_tool_calls=1)
    async with stage({"PROMPT.md": root(TWO)}, script, options) as on:
        loaded = await on.runtime.load("PROMPT.md")
        async with on.runtime.open_session(loaded) as session:
            with trio.move_on_after(10):
                await session.send("Hi.")
            await trio.sleep(100)
            (first,) = begun  # Either may be.
            result = await session.send("Again.")
    assert result.text == "Done."
    assert begun == [first, "two"]
    cut, made = outputs_in(on.entries())["two"]
    assert (cut["code"], made["payload"]) == ("not_carried_out", "two")


async def test_a_tool_that_hangs_is_cut_when_its_time_is_up(
    autojump_clock: MockClock,
) -> None:
    """It gives an error that says so; the call beside it and the run go on."""

    async def on_tool(call: ExternalCall) -> JSONValue:
        await trio.sleep(3600 if call.name == "crm" else 2)
        return "in time"

    script = [calls("crm", "two"), Reply(text="Done.")]
    options = RunOptions(on_tool=on_tool, tool_seconds=3)
    async with stage({"PROMPT.md": root(TWO)}, script, options) as on:
        loaded = await on.runtime.load("PROMPT.md")
        began = trio.current_time()
        result = await on.runtime.run(loaded, message="Hi.")
        assert trio.current_time() - began == 3
        found = outputs_in(on.entries())
    assert (found["crm"][0]["status"], found["crm"][0]["code"]) == (504, "tool_timeout")
    assert found["two"][0]["payload"] == "in time"
    assert result.text == "Done."


def is_output(entry: Entry) -> bool:
    """Whether an entry says what a call gave."""
    is_item = isinstance(entry, ItemAdded) and isinstance(
        entry.item, FunctionCallOutput
    )
    return isinstance(entry, CallEnded) or is_item


@pytest.mark.parametrize("names", [["crm"], ["crm", "two"]])
@pytest.mark.parametrize("by_deadline", [True, False])
async def test_an_output_that_is_being_written_when_a_cancel_comes_is_kept(
    names: list[str], by_deadline: bool, autojump_clock: MockClock
) -> None:
    """The log is slow, and the run is cut just then: the tool has been used."""
    store = WaitingStore(is_output)
    options = RunOptions(on_tool=give_name)
    files = {"PROMPT.md": root(limit(1000) + TWO)}
    async with stage(files, [calls(*names)], options, store=store) as on:
        loaded = await on.runtime.load("PROMPT.md")
        if by_deadline:
            await on.runtime.try_run(loaded, message="Hi.")
        else:
            await run_until(store.reached, on.runtime, loaded)
        entries = on.entries()
    assert store.reached.is_set()
    found = outputs_in(entries)
    assert {name: found[name][0].get("payload") for name in names} == {
        name: name for name in names
    }
    assert [len(outputs) for outputs in found.values()] == [1] * len(names)


async def give_name(call: ExternalCall) -> JSONValue:
    """A tool that gives its own name."""
    await trio.lowlevel.checkpoint()
    return call.name


@pytest.mark.parametrize("names", [["crm"], ["crm", "two"]])
async def test_an_error_is_kept_though_its_handler_never_came_to_an_end(
    names: list[str], autojump_clock: MockClock
) -> None:
    """The tool has failed, which is known, whatever was to be made of it."""

    async def on_tool(call: ExternalCall) -> JSONValue:
        if call.name == "two":
            await trio.sleep_forever()
        await trio.lowlevel.checkpoint()
        raise ValueError("lost it")

    files = {
        "PROMPT.md": root(
            limit(1000) + TWO + '[handlers.onError]\npath = "h/PROMPT.md"\n'
        ),
        "h/PROMPT.md": child(),
        "any.json": ANYTHING,
    }
    script = [Reply(deck="*h/PROMPT.md", fault="hang"), calls(*names)]
    options = RunOptions(on_tool=on_tool)
    async with stage(files, script, options) as on:
        loaded = await on.runtime.load("PROMPT.md")
        result = await on.runtime.try_run(loaded, message="Hi.")
        assert unbalanced(on.sink.events) == []
        found = outputs_in(on.entries())
    assert result.failure is not None
    assert result.failure.code == "timeout"
    (crm,) = found["crm"]
    assert (crm["status"], crm["code"]) == (500, "tool_handler_error")
    assert "lost it" in crm["message"]
    if "two" in names:
        assert found["two"][0]["code"] == "not_carried_out"


async def test_a_result_is_kept_though_the_busy_handler_takes_long_to_leave(
    autojump_clock: MockClock,
) -> None:
    """The action is done, its handler still tidies up, and then time is up."""

    async def on_tool(_call: ExternalCall) -> JSONValue:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(5)

    busy = '[handlers.onBusy]\npath = "h/PROMPT.md"\ndelayMs = 1000\n'
    files = {
        "PROMPT.md": root(limit(4000) + action("a") + busy),
        "a/PROMPT.md": child(),
        "h/PROMPT.md": root(TOOL),
        "any.json": ANYTHING,
    }
    script = [
        Reply(deck="*h/PROMPT.md", calls=(Call(name="crm"),)),
        Reply(deck="*a/PROMPT.md", latency_seconds=2, calls=RESPOND),
        calls("a"),
    ]
    options = RunOptions(on_tool=on_tool)
    async with stage(files, script, options) as on:
        loaded = await on.runtime.load("PROMPT.md")
        began = trio.current_time()
        result = await on.runtime.try_run(loaded, message="Hi.")
        assert trio.current_time() - began == 7
        assert unbalanced(on.sink.events) == []
        (envelope,) = outputs_in(on.entries())["a"]
    assert result.failure is not None
    assert result.failure.code == "timeout"
    assert envelope.get("payload") == {"n": 1}


def words_in(items: Sequence[Item]) -> list[str]:
    """A conversation in short: words, and the calls that have outputs."""
    found = []
    for item in items:
        if isinstance(item, Message):
            found.append(item.text)
        elif isinstance(item, FunctionCallOutput):
            is_event = item.call_id.startswith("event")
            found.append("complete" if is_event else "output")
    return found


SPEAKS = """
from gambit_actors import define_deck
async def run(ctx):
    await ctx.append_message("user", "Look here.")
    await ctx.append_message("assistant", "I see.")
    return {"n": 1}
deck = define_deck(run=run)
"""


async def test_what_code_has_added_outlives_a_cut_of_the_turn(tmp_path: Path) -> None:
    """Its words stand behind its output, though the call beside it never ended."""
    store = WaitingStore(lambda _entry: False)
    ended = trio.Event()

    async def on_tool(_call: ExternalCall) -> JSONValue:
        while not any(isinstance(e, CallEnded) for e in on.entries()):
            await wait_all_tasks_blocked(0.001)
        ended.set()
        await trio.sleep_forever()

    files = {"PROMPT.md": root(execute("code") + TOOL), "any.json": ANYTHING}
    reader = coded(tmp_path, files, code=SPEAKS)
    options = RunOptions(on_tool=on_tool)
    async with stage(reader, [calls("code", "crm")], options, store=store) as on:
        await run_until(ended, on.runtime, "PROMPT.md")
        entries = on.entries()
    spoken = ["Look here.", "I see."]
    said = words_in(items_in(entries))
    assert said == ["Be kind.", "Hi.", "output", "complete", *spoken, "output"]
    check_kept_with_its_call(entries, ["complete", *spoken])


def check_kept_with_its_call(entries: list[Entry], behind: list[str]) -> None:
    """What joins a conversation later is written down with the end of the call."""
    (end,) = [place for place, e in enumerate(entries) if isinstance(e, CallEnded)]
    entry = entries[end]
    assert isinstance(entry, CallEnded)
    after = [added.item for added in entry.after]
    assert words_in(after) == behind
    # A process that ends right there leaves it for the next one to find.
    state = state_from_entries(entries[: end + 1])
    assert state.finished[entry.call_id] == entry
    assert words_in(state_from_entries(entries).items) == words_in(items_in(entries))


@pytest.mark.parametrize("by_deadline", [True, False])
async def test_what_a_handler_has_said_outlives_a_cut_of_the_turn(
    by_deadline: bool, autojump_clock: MockClock
) -> None:
    """Busy words, and the end of an action, stand behind its output after a cut."""
    busy = '[handlers.onBusy]\npath = "h/PROMPT.md"\ndelayMs = 1000\n'
    files = {
        "PROMPT.md": root(limit(5000) + action("a") + TOOL + busy),
        "a/PROMPT.md": child(),
        "h/PROMPT.md": root(),
        "any.json": ANYTHING,
    }
    script = [
        Reply(deck="*h/PROMPT.md", text="One moment."),
        Reply(deck="*a/PROMPT.md", latency_seconds=2, calls=RESPOND),
        calls("a", "crm"),
    ]
    options = RunOptions(on_tool=hang)
    async with stage(files, script, options) as on:
        loaded = await on.runtime.load("PROMPT.md")
        with trio.move_on_after(100 if by_deadline else 3):
            await on.runtime.try_run(loaded, message="Hi.")
        entries = on.entries()
    behind = ["complete", "One moment. (elapsed 1000ms)"]
    said = words_in(items_in(entries))
    assert said == ["Be kind.", "Hi.", "output", *behind, "output"]
    check_kept_with_its_call(entries, behind)


async def hang(_call: ExternalCall) -> JSONValue:
    """A tool that never answers."""
    await trio.sleep_forever()


async def test_half_said_words_outlive_a_cut_of_the_ending_itself(
    autojump_clock: MockClock,
) -> None:
    """Time was up, the log is slow, and then the caller cancels as well."""
    store = WaitingStore(lambda entry: isinstance(entry, TurnEnded))
    script = [Reply(text="one two three four", fault="hang")]
    files = {"PROMPT.md": root(limit(1000))}
    async with stage(files, script, store=store) as on:
        loaded = await on.runtime.load("PROMPT.md")
        with trio.move_on_after(2) as scope:
            await on.runtime.try_run(loaded, message="Hi.")
        assert scope.cancelled_caught
        assert store.reached.is_set()
        entries = on.entries()
    assert words_in(items_in(entries)) == ["Be kind.", "Hi.", "one two "]
    ended = entries[-2]
    assert isinstance(ended, TurnEnded)
    assert ended.text == "one two "
    assert isinstance(entries[-1], RunEnded)
