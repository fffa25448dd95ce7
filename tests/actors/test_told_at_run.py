"""What a trace tells of a run, and a result of a session: true, and in time."""

import json
from collections.abc import Callable

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.memory_log import MemoryLog, MemoryStore
from gambit_actors.actors.options import RunOptions
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall, FunctionCallOutput, Message
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.providers.scripts import Call, Fault, Reply, TokenCount
from gambit_actors.run.entries import (
    CallEnded,
    Entry,
    ItemAdded,
    ModelAnswered,
    RunStarted,
    TurnEnded,
)
from gambit_actors.run.ports import ModelContext
from gambit_actors.run.programs import RuntimeTool
from gambit_actors.trace.events import (
    ActionEnd,
    DeckEnd,
    DeckStart,
    ItemLogged,
    ModelCall,
    ModelFailover,
    ModelResult,
    RunEnd,
    StreamEvent,
    ToolCalled,
    ToolResult,
)
from gambit_actors.trace.trees import unbalanced
from tests.actors.playing import (
    ANYTHING,
    TOOL,
    WaitingStore,
    action,
    calls,
    child,
    items_in,
    outputs_of,
    root,
    stage,
)
from tests.deck.reading import deck_text

RESPOND = calls("gambit_respond", payload={"n": 1}).calls
TWO_MODELS = '[modelParams]\nmodel = ["scripted/a", "scripted/b"]\n'
ALL = "one two three four"
USED = TokenCount(input_tokens=10, output_tokens=5)


def tree(*names: str, more: str = "") -> dict[str, str]:
    """A deck with a tool, and with children."""
    files = {f"{name}/PROMPT.md": child(more) for name in names}
    entries = "".join(map(action, names))
    return {"PROMPT.md": root(entries + TOOL), "any.json": ANYTHING, **files}


async def note(_call: ExternalCall) -> JSONValue:
    """A tool that answers at once."""
    await trio.lowlevel.checkpoint()
    return "noted"


def is_output(entry: Entry) -> bool:
    """Whether an entry says what a call gave."""
    if isinstance(entry, ItemAdded):
        return isinstance(entry.item, FunctionCallOutput)
    return isinstance(entry, CallEnded)


@pytest.mark.parametrize(
    ("is_looked_for", "untold"),
    [
        (lambda e: isinstance(e, ModelAnswered), {"model.result", "tool.call"}),
        (is_output, {"tool.result"}),
        (lambda e: isinstance(e, TurnEnded), {"deck.end", "run.end"}),
    ],
)
@pytest.mark.parametrize("names", [("crm",), ("crm", "crm")])
async def test_the_log_has_it_before_anybody_is_told(
    is_looked_for: Callable[[Entry], bool], untold: set[str], names: tuple[str, ...]
) -> None:
    """A log that is slow keeps the trace waiting; only pieces come as they are sent."""
    store = WaitingStore(is_looked_for)
    script = [calls(*names, note="Hi."), Reply(text="Done.")]
    options = RunOptions(on_tool=note)
    async with (
        stage({"PROMPT.md": root(TOOL)}, script, options, store=store) as on,
        trio.open_nursery() as nursery,
    ):
        loaded = await on.runtime.load("PROMPT.md")

        async def run() -> None:
            await on.runtime.run(loaded, message="Hi.")

        nursery.start_soon(run)
        await store.reached.wait()
        await wait_all_tasks_blocked()
        told = list(on.sink.events)
        kept = items_in(on.entries())
        store.go_on.set()
    kinds = [event.type for event in told]
    if "tool.result" in untold and len(names) > 1:
        # The one that has to wait for nobody is told.
        assert kinds.count("tool.result") <= 1
    else:
        assert untold.isdisjoint(kinds)
    assert [e.item for e in told if isinstance(e, ItemLogged)] == kept
    assert any(isinstance(event, StreamEvent) for event in told)
    assert untold <= {event.type for event in on.sink.events}


@pytest.mark.parametrize("cut", ["tool", "model"])
async def test_what_was_cut_is_told_as_cancelled(
    cut: str, autojump_clock: MockClock
) -> None:
    """A model, a call, an action and the decks around them end as cancelled."""

    async def on_tool(_call: ExternalCall) -> JSONValue:
        await trio.sleep_forever()

    below = Reply(deck="*/a/PROMPT.md", fault="hang", text="Well, I think")
    tool = Reply(deck="*/a/PROMPT.md", calls=calls("crm").calls)
    script = [tool if cut == "tool" else below, calls("a")]
    options = RunOptions(on_tool=on_tool)
    async with stage(tree("a", more=TOOL), script, options) as on:
        loaded = await on.runtime.load("PROMPT.md")
        with trio.move_on_after(1) as scope:
            await on.runtime.run(loaded, message="Hi.")
        assert scope.cancelled_caught
        assert unbalanced(on.sink.events) == []
        models = [e.status for e in on.sink.of(ModelResult)]
        tools = {
            e.name: (e.status, e.result)
            for e in on.sink.of(ToolResult)
            if e.tool_kind != "internal"
        }
        ends = [e.status for e in on.sink.of(ActionEnd)]
        ends += [e.status for e in on.sink.of(DeckEnd)]
        ends += [e.status for e in on.sink.of(RunEnd)]
    assert models == ["completed", "completed" if cut == "tool" else "cancelled"]
    names = ["a", "crm"] if cut == "tool" else ["a"]
    assert tools == dict.fromkeys(names, ("cancelled", None))
    assert ends == ["cancelled"] * 4


async def test_calls_that_are_answered_on_the_spot_are_told_as_well() -> None:
    """What was refused, and a result that was given, have a begin and an end."""
    script = [
        Reply(deck="*/a/PROMPT.md", pass_number=1, calls=calls("nothing").calls),
        Reply(deck="*/a/PROMPT.md", calls=RESPOND),
        calls("a"),
        Reply(text="Done."),
    ]
    async with stage(tree("a"), script) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        asked = {e.name: e for e in on.sink.of(ToolCalled) if e.tool_kind == "internal"}
        given = {e.name: e for e in on.sink.of(ToolResult) if e.tool_kind == "internal"}
        outputs = outputs_of(items_in(on.entries(1)))
        assert unbalanced(on.sink.events) == []
    assert {"nothing", "gambit_respond"} <= asked.keys()
    for name in ("nothing", "gambit_respond"):
        assert given[name].result == outputs[name][0]
        assert given[name].action_call_id == asked[name].action_call_id
    assert given["nothing"].status == "failed"
    assert given["gambit_respond"].status == "completed"
    assert json.loads(outputs["nothing"][0])["status"] == 404


async def test_a_provider_is_told_which_pass_of_which_turn_it_is() -> None:
    """Both are counted from one, and passes begin anew with each turn."""
    asked: list[tuple[int, int]] = []

    def model(_request: CreateResponse, context: ModelContext) -> Reply:
        asked.append((context.turn, context.pass_number))
        return calls("crm") if context.pass_number < 3 else Reply(text="Done.")

    async with (
        stage({"PROMPT.md": root(TOOL)}, model, RunOptions(on_tool=note)) as on,
        on.runtime.open_session("PROMPT.md") as session,
    ):
        await session.send("Hi.")
        await session.send("Again.")
        told = [event.pass_number for event in on.sink.of(ModelCall)]
    assert asked == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    assert told == [1, 2, 3, 1, 2, 3]


async def test_a_refusal_is_a_failure_with_its_words() -> None:
    """A model that declines has not answered, and the run says so."""
    script = [Reply(refusal="I will not do that.")]
    async with stage({"PROMPT.md": root()}, script) as on:
        result = await on.runtime.try_run("PROMPT.md", message="Hi.")
    assert result.failure is not None
    assert result.failure.code == "refusal"
    assert "I will not do that." in result.failure.message


async def test_what_is_kept_of_a_cut_answer_is_the_last_model_s(
    autojump_clock: MockClock,
) -> None:
    """The first was cut and is forgotten; the second hung, and what it said stays."""
    text = deck_text(f"[guardrails]\ntimeoutMs = 1000\n{TWO_MODELS}")
    script = [
        Reply(text="one two three four", fault="cut"),
        Reply(text="five six seven eight", fault="hang"),
    ]
    async with stage({"PROMPT.md": text}, script) as on:
        loaded = await on.runtime.load("PROMPT.md")
        result = await on.runtime.try_run(loaded, message="Hi.")
    assert result.failure is not None
    assert (result.failure.code, result.text) == ("timeout", "five six ")
    said = [i.text for i in result.items if isinstance(i, Message)]
    assert said[-1] == "five six "
    assert "one two " not in said


@pytest.mark.parametrize(
    ("fault", "said"), [("cut", "one two "), ("error", "one two "), ("failed", ALL)]
)
async def test_half_said_words_of_a_model_that_failed_are_kept(
    fault: Fault, said: str
) -> None:
    """Once, as unfinished, in the conversation and as the text of the turn."""
    script = [Reply(text=ALL, fault=fault), Reply(text="Hello.", turn=2)]
    async with (
        stage({"PROMPT.md": root()}, script) as on,
        on.runtime.open_session("PROMPT.md") as session,
    ):
        result = await session.send("Hi.")
        assert (result.status, result.text) == ("failed", said)
        last = result.items[-1]
        assert isinstance(last, Message)
        assert (last.text, last.status) == (said, "incomplete")
        result = await session.send("Again.")
    words = [i.text for i in result.items if isinstance(i, Message)]
    assert words == ["Be kind.", "Hi.", said, "Again.", "Hello."]


@pytest.mark.spec("DK-32")
async def test_the_next_model_is_asked_when_one_answers_that_it_failed() -> None:
    """An answer with status failed is none; what it cost is counted all the same."""
    script = [
        Reply(fault="failed", message="Out of order.", text="Hm.", usage=USED),
        Reply(text="From b.", usage=USED),
    ]
    async with stage({"PROMPT.md": deck_text(TWO_MODELS)}, script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        (hop,) = on.sink.of(ModelFailover)
        assert unbalanced(on.sink.events) == []
    assert (result.status, result.text) == ("completed", "From b.")
    assert (hop.model, hop.next_model) == ("scripted/a", "scripted/b")
    assert "Out of order." in hop.error.message
    assert result.usage.total_tokens == 30


@pytest.mark.spec("DK-32")
async def test_when_all_models_fail_the_last_one_s_reason_is_told() -> None:
    """A run has one failure, however many models there were."""
    script = [Reply(fault="error"), Reply(fault="failed", message="Out of order.")]
    async with stage({"PROMPT.md": deck_text(TWO_MODELS)}, script) as on:
        result = await on.runtime.try_run("PROMPT.md", message="Hi.")
    assert result.failure is not None
    assert result.failure.code == "model_failed"
    assert "Out of order." in result.failure.message


async def test_usage_in_a_session_is_that_of_the_whole_run() -> None:
    """The result of a later turn counts all turns; the end of a turn only its own."""
    script = [Reply(text="Hello.", usage=USED, times=0)]
    async with (
        stage({"PROMPT.md": root()}, script) as on,
        on.runtime.open_session("PROMPT.md") as session,
    ):
        results = [await session.send("Hi.") for _ in range(3)]
        ends = [event.usage for event in on.sink.of(DeckEnd)]
    assert [result.usage.total_tokens for result in results] == [15, 30, 45]
    assert [usage.total_tokens for usage in ends if usage] == [15, 15, 15]


class SlowToOpen(MemoryStore):
    """A store that makes a log only when it is told to."""

    def __init__(self) -> None:
        super().__init__(keep=True)
        self.go_on = trio.Event()

    async def open_log(self, run: RunStarted, /) -> MemoryLog:
        """Make a log, later."""
        await self.go_on.wait()
        return await super().open_log(run)


async def test_a_turn_that_was_called_off_before_it_began_never_runs() -> None:
    """No model is asked and nothing was said; the session takes the next message."""
    asked: list[str] = []

    def model(request: CreateResponse, _context: ModelContext) -> Reply:
        asked.append(msgspec.json.encode(request.input).decode())
        return Reply(text="Hello.")

    store = SlowToOpen()
    async with (
        stage({"PROMPT.md": root()}, model, store=store) as on,
        on.runtime.open_session("PROMPT.md") as session,
    ):
        scope = trio.CancelScope()

        async def send() -> None:
            with scope:
                await session.send("Never said.")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            await wait_all_tasks_blocked()
            scope.cancel()
            await wait_all_tasks_blocked()
            store.go_on.set()
        assert asked == []
        result = await session.send("Hi.")
    assert result.text == "Hello."
    said = [i.text for i in result.items if isinstance(i, Message)]
    assert said == ["Be kind.", "Hi.", "Hello."]


async def test_a_model_that_numbers_its_calls_anew_confuses_nobody() -> None:
    """Each call has an id of its own, for the conversation and for the tool."""
    seen: list[tuple[str, str]] = []

    async def on_tool(call: ExternalCall) -> JSONValue:
        await trio.lowlevel.checkpoint()
        seen.append((call.action_call_id, call.idempotency_key))
        return len(seen)

    one = (Call(name="crm", call_id="call_1"),)
    script = [Reply(calls=one), Reply(calls=one * 2), Reply(text="Done.")]
    options = RunOptions(on_tool=on_tool)
    async with stage({"PROMPT.md": root(TOOL)}, script, options) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        assert unbalanced(on.sink.events) == []
    ids = [item.call_id for item in result.items if isinstance(item, FunctionCall)]
    assert ids[0] == "call_1"
    assert len(set(ids)) == 3
    assert sorted(call_id for call_id, _ in seen) == sorted(ids)
    assert len({key for _, key in seen}) == 3
    answered = [i.call_id for i in result.items if isinstance(i, FunctionCallOutput)]
    assert answered == ids


async def test_tools_of_the_program_around_a_run_are_every_deck_s() -> None:
    """A child is offered them too, and they are carried out in its name."""
    asked: list[ExternalCall] = []

    async def on_tool(call: ExternalCall) -> JSONValue:
        await trio.lowlevel.checkpoint()
        asked.append(call)
        return "noon"

    script = [
        Reply(deck="*/a/PROMPT.md", pass_number=1, calls=calls("clock").calls),
        Reply(deck="*/a/PROMPT.md", calls=RESPOND),
        calls("a"),
        Reply(text="Done."),
    ]
    clock = RuntimeTool(name="clock", description="Tell the time.")
    options = RunOptions(on_tool=on_tool, runtime_tools=(clock,))
    async with stage(tree("a"), script, options) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        offered = {event.deck_path: event.tools for event in on.sink.of(ModelCall)}
        (output,) = outputs_of(items_in(on.entries(1)))["clock"]
    assert all("clock" in tools for tools in offered.values())
    assert [(call.name, call.deck_path) for call in asked] == [("clock", "a/PROMPT.md")]
    assert json.loads(output)["payload"] == "noon"


@pytest.mark.spec("CARD-5")
async def test_decks_that_are_called_together_run_side_by_side(
    autojump_clock: MockClock,
) -> None:
    """Three children take as long as the slowest, and are alive at the same time."""
    seconds = {"a": 3, "b": 5, "c": 4}
    script = [
        *(
            Reply(deck=f"*/{name}/PROMPT.md", latency_seconds=needed, calls=RESPOND)
            for name, needed in seconds.items()
        ),
        calls(*seconds),
        Reply(text="Done."),
    ]
    async with stage(tree(*seconds), script) as on, trio.open_nursery() as nursery:
        loaded = await on.runtime.load("PROMPT.md")
        began = trio.current_time()

        async def look() -> None:
            await trio.sleep(2)
            (actor,) = on.runtime.snapshot()
            assert [below.depth for below in actor.children] == [1, 1, 1]

        nursery.start_soon(look)
        result = await on.runtime.run(loaded, message="Hi.")
        assert trio.current_time() - began == 5
        begun = [event.depth for event in on.sink.of(DeckStart)]
    assert begun == [0, 1, 1, 1]
    assert len(outputs_of(result.items)["gambit_complete"]) == 3
