"""A run can be cancelled at any moment: nothing is left, and the log has its ending."""

import json
from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock

from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.options import RunOptions
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall, FunctionCallOutput
from gambit_actors.providers.scripts import Call, Reply, TokenCount
from gambit_actors.run.entries import RunEnded, TurnEnded, TurnStarted
from gambit_actors.run.states import state_from_entries
from gambit_actors.trace.trees import unbalanced
from tests.actors.playing import (
    ANYTHING,
    TOOL,
    Stage,
    items_in,
    outputs_of,
    root,
    stage,
)

CHILD = 'contextSchema = "../s.json"\nresponseSchema = "../s.json"\nrespond = true\n'
HANDLERS = """
[handlers.onBusy]
path = "h/PROMPT.md"
delayMs = 100
[handlers.onIdle]
path = "h/PROMPT.md"
delayMs = 100
[handlers.onError]
path = "e/PROMPT.md"
"""


def files() -> dict[str, str]:
    """A desk with two actions, a tool and every kind of handler."""
    action = '[[actions]]\nname = "{0}"\ndescription = "Do."\npath = "{0}/PROMPT.md"\n'
    return {
        "PROMPT.md": root(action.format("a") + action.format("b") + TOOL + HANDLERS),
        "a/PROMPT.md": root(CHILD + TOOL),
        "b/PROMPT.md": root(CHILD),
        "h/PROMPT.md": root(),
        "e/PROMPT.md": root(CHILD),
        "s.json": ANYTHING,
    }


def script() -> list[Reply]:
    """Three calls at once, one fails, one makes two of its own; then an answer."""
    respond = (Call(name="gambit_respond", arguments={"payload": {}}),)
    names = ("a", "b", "crm")
    return [
        Reply(
            deck="PROMPT.md",
            latency_seconds=0.3,
            calls=tuple(Call(name=name, arguments={}) for name in names),
        ),
        Reply(
            deck="*a/PROMPT.md",
            latency_seconds=0.3,
            calls=(Call(name="crm", arguments={}), Call(name="crm", arguments={})),
        ),
        Reply(deck="*a/PROMPT.md", calls=respond),
        Reply(deck="*b/PROMPT.md", fault="error", message="Down."),
        Reply(deck="*e/PROMPT.md", calls=respond),
        Reply(deck="*h/PROMPT.md", text="One moment.", times=0),
        Reply(deck="PROMPT.md", text="Done."),
    ]


class Tool:
    """A tool with something to tidy up, which knows the calls it has carried out."""

    def __init__(self) -> None:
        self.carried_out: list[str] = []

    async def __call__(self, call: ExternalCall) -> JSONValue:
        """Take some time; what was not cancelled has happened."""
        try:
            await trio.sleep(0.2)
        finally:
            with trio.CancelScope(shield=True):
                await trio.lowlevel.checkpoint()
        self.carried_out.append(call.action_call_id)
        return f"noted {call.action_call_id}"


async def on_tool(call: ExternalCall) -> JSONValue:
    """Carry out one call."""
    return await Tool()(call)


class CancelAt(trio.abc.Instrument):
    """Cancels a scope before the given step of any task."""

    def __init__(self, step: int, cancel: Callable[[], None]) -> None:
        self.left = step
        self._cancel = cancel

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count, and cancel when it is time."""
        del task
        self.left -= 1
        if self.left == 0:
            self._cancel()


def check_nothing_is_left(on: Stage) -> None:
    """Check the trace, the actors and every log."""
    assert unbalanced(on.sink.events) == []
    assert on.runtime.snapshot() == ()
    for log in on.store.logs.values():
        entries = log.entries
        assert isinstance(entries[-1], RunEnded)
        kinds = [type(entry) for entry in entries]
        assert kinds.count(TurnStarted) <= kinds.count(TurnEnded) <= 1
        items = items_in(entries)
        calls = [item for item in items if isinstance(item, FunctionCall)]
        assert len({call.call_id for call in calls}) == len(calls)
        outputs = outputs_of(items)
        assert sum(map(len, outputs.values())) == len(calls)
        assert state_from_entries(entries).pending == {}


def check_what_happened_is_known(on: Stage, carried_out: list[str]) -> None:
    """Check that a log has the real output of every call that was carried out."""
    told = {
        item.call_id: item.output
        for log in on.store.logs.values()
        for item in items_in(log.entries)
        if isinstance(item, FunctionCallOutput) and isinstance(item.output, str)
    }
    payloads = {call_id: json.loads(told[call_id]) for call_id in carried_out}
    found = {call_id: said.get("payload") for call_id, said in payloads.items()}
    assert found == {call_id: f"noted {call_id}" for call_id in carried_out}


@pytest.mark.slow
@pytest.mark.spec("CARD-10")
async def test_a_run_can_be_cancelled_at_every_step(
    autojump_clock: MockClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wherever a cancel comes: no task, no open trace, and one output for each call.

    Where a tool has been used that output is the real one, whoever was cancelled then.
    """
    step, cancelled, known = 0, 0, 0
    while True:
        step += 1
        tool = Tool()
        options = RunOptions(on_tool=tool)
        tasks = trio.lowlevel.current_statistics().tasks_living
        async with stage(files(), script(), options) as on:
            deck = await on.runtime.load("PROMPT.md")
            with trio.CancelScope() as scope:
                instrument = CancelAt(step, scope.cancel)
                trio.lowlevel.add_instrument(instrument)
                try:
                    result = await on.runtime.run(deck, message="Hi.")
                finally:
                    trio.lowlevel.remove_instrument(instrument)
            check_nothing_is_left(on)
            check_what_happened_is_known(on, tool.carried_out)
        assert trio.lowlevel.current_statistics().tasks_living == tasks
        cancelled += scope.cancelled_caught
        known += scope.cancelled_caught * len(tool.carried_out)
        if instrument.left > 0:
            break
    assert result.text == "Done."
    assert cancelled > 60
    assert known > 30
    assert len(tool.carried_out) == 3
    with capsys.disabled():
        print(f"\n{cancelled} cancellations, nothing left behind")  # noqa: T201


def nested_files() -> dict[str, str]:
    """A deck that calls one below it, which calls one below that; each has a tool."""
    action = (
        '[[actions]]\nname = "below"\ndescription = "Do."\npath = "{0}/PROMPT.md"\n'
    )
    return {
        "PROMPT.md": root(action.format("a") + TOOL),
        "a/PROMPT.md": root(CHILD + LIMIT.format(60) + action.format("b") + TOOL),
        "a/b/PROMPT.md": root(CHILD.replace("../", "../../") + LIMIT.format(30) + TOOL),
        "s.json": ANYTHING,
    }


LIMIT = "[guardrails]\ntimeoutMs = {0}_000\n"
DEPTHS = {0: "PROMPT.md", 1: "*/a/PROMPT.md", 2: "*/a/b/PROMPT.md"}
# What each fault comes to; an endless flood is cut by the time there is for it.
CODES = {
    "error": "model_unavailable",
    "hang": "timeout",
    "cut": "model_unavailable",
    "failed": "model_failed",
    "malformed": "model_unavailable",
    "flood": "timeout",
}


def nested_script() -> list[Reply]:
    """Every deck uses its tool, then the deck below it, and then answers."""
    respond = (Call(name="gambit_respond", arguments={"payload": {}}),)
    crm, below = (Call(name="crm"),), (Call(name="below"),)
    used = TokenCount(input_tokens=5, output_tokens=2)
    return [
        Reply(deck="*", pass_number=1, calls=crm, usage=used, times=0),
        Reply(deck=DEPTHS[2], pass_number=2, calls=respond, usage=used),
        Reply(deck=DEPTHS[1], pass_number=2, calls=below, usage=used),
        Reply(deck=DEPTHS[1], pass_number=3, calls=respond, usage=used),
        Reply(deck=DEPTHS[0], pass_number=2, calls=below, usage=used),
        Reply(deck=DEPTHS[0], pass_number=3, text="Done.", usage=used),
    ]


@pytest.mark.parametrize("fault", CODES)
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("pass_number", [1, 2, 3])
async def test_a_model_may_fail_at_any_pass_and_depth(
    fault: str, depth: int, pass_number: int, autojump_clock: MockClock
) -> None:
    """The parent is told what happened, and what was spent and said is kept."""
    if (depth, pass_number) == (2, 3):
        return  # The lowest deck has answered in its second pass.
    broken = Reply(
        deck=DEPTHS[depth],
        pass_number=pass_number,
        fault=fault,  # type: ignore[arg-type]  # a parameter
        text=None if fault == "malformed" else "Well, I think",
        per_delta_seconds=1.0 if fault == "flood" else 0.0,
        count=10**9 if fault == "flood" else None,
        times=0,
    )
    options = RunOptions(on_tool=on_tool)
    async with stage(nested_files(), [broken, *nested_script()], options) as on:
        # Before the clock runs: it does not wait for a thread.
        loaded = await on.runtime.load("PROMPT.md")
        with trio.fail_after(200):
            result = await on.runtime.try_run(loaded, message="Hi.")
        check_nothing_is_left(on)
    spent = result.usage.total_tokens
    assert spent >= 7 * (pass_number - 1 + depth)
    if depth == 0:
        assert result.failure is not None
        assert result.failure.code == CODES[fault]
        assert len(result.failure.message) > 10
        assert result.text.startswith("Well,") == (fault != "malformed")
        kept = outputs_of(result.items)
        assert len(kept.get("crm", ())) == (pass_number > 1)
        assert len(kept.get("below", ())) == (pass_number > 2)
        return
    # The child's failure is an envelope to its parent, which goes on.
    (said,) = outputs_of(result.items)["below"]
    if depth == 1:
        envelope = json.loads(said)
        assert (envelope["code"], envelope["status"] >= 500) == (CODES[fault], True)
        assert len(envelope["message"]) > 10
    assert result.text == "Done."
