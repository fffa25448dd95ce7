"""Handlers speak while a deck waits, and when something went wrong."""

import json

import pytest
import trio
from trio.testing import MockClock

from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.runtime import RunOptions
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import Message
from gambit_actors.providers.scripts import Reply
from gambit_actors.trace.events import HandlerSaid
from gambit_actors.trace.trees import unbalanced
from tests.actors.playing import ANYTHING, TOOL, calls, outputs_of, root, stage

CHILD = 'contextSchema = "../s.json"\nresponseSchema = "../s.json"\nrespond = true\n'
ACTION = '[[actions]]\nname = "a"\ndescription = "Do it."\npath = "a/PROMPT.md"\n'


def files(handlers: str, handler: str = "") -> dict[str, str]:
    """A deck with an action and handlers, which are all one deck."""
    return {
        "PROMPT.md": root(f'label = "Desk"\n{ACTION}\n{handlers}'),
        "a/PROMPT.md": root(CHILD),
        "h/PROMPT.md": root(handler),
        "s.json": ANYTHING,
    }


def slow(seconds: float) -> Reply:
    """A child that takes its time."""
    answer = calls("gambit_respond", payload={"n": 1}).calls
    return Reply(deck="*a/PROMPT.md", latency_seconds=seconds, calls=answer)


@pytest.mark.spec("DK-35")
async def test_a_busy_handler_speaks_on_its_schedule(autojump_clock: MockClock) -> None:
    """First after the delay, then at each repeat, as long as the action takes."""
    busy = '[handlers.onBusy]\npath = "h/PROMPT.md"\ndelayMs = 1000\nrepeatMs = 2000\n'
    script = [
        calls("a", q=1),
        slow(6),
        Reply(deck="*h/PROMPT.md", text="One moment.", times=0),
        Reply(text="Done."),
    ]
    async with stage(files(busy), script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        said = [e for e in on.sink.events if isinstance(e, HandlerSaid)]
        assert unbalanced(on.sink.events) == []
    assert [(e.message, e.elapsed_ms) for e in said] == [
        ("One moment.", 1000),
        ("One moment.", 3000),
        ("One moment.", 5000),
    ]
    texts = [i.text for i in result.items if isinstance(i, Message)]
    assert texts[2:] == [
        "One moment. (elapsed 1000ms)",
        "One moment. (elapsed 3000ms)",
        "One moment. (elapsed 5000ms)",
        "Done.",
    ]


@pytest.mark.spec("DK-35")
async def test_a_busy_handler_is_not_asked_for_quick_actions(
    autojump_clock: MockClock,
) -> None:
    """An action that is done before the delay needs no words."""
    busy = '[handlers.onBusy]\npath = "h/PROMPT.md"\n'
    script = [calls("a"), slow(0.5), Reply(text="Done.")]
    async with stage(files(busy), script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
    assert result.text == "Done."


@pytest.mark.spec("DK-35")
async def test_an_idle_handler_speaks_when_nothing_happens(
    autojump_clock: MockClock,
) -> None:
    """A model that is silent for the delay is made up for, once without a repeat."""
    idle = '[handlers.onIdle]\npath = "h/PROMPT.md"\ndelayMs = 2000\n'
    script = [
        Reply(deck="PROMPT.md", latency_seconds=10, text="Sorry for the wait."),
        Reply(deck="*h/PROMPT.md", text="Still thinking.", times=0),
    ]
    async with stage(files(idle), script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        said = [e for e in on.sink.events if isinstance(e, HandlerSaid)]
        assert unbalanced(on.sink.events) == []
    assert [(e.kind, e.message, e.elapsed_ms) for e in said] == [
        ("idle", "Still thinking.", 2000)
    ]
    assert result.text == "Sorry for the wait."


async def test_an_action_is_not_idling(autojump_clock: MockClock) -> None:
    """While an action runs the idle handler holds its tongue."""
    idle = '[handlers.onIdle]\npath = "h/PROMPT.md"\ndelayMs = 2000\n'
    script = [
        calls("a"),
        slow(10),
        Reply(deck="*h/PROMPT.md", text="Still here.", times=0),
        Reply(text="Done."),
    ]
    async with stage(files(idle), script) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        assert [e for e in on.sink.events if isinstance(e, HandlerSaid)] == []


@pytest.mark.spec("DK-35")
async def test_an_error_handler_decides_what_the_model_is_told() -> None:
    """A failed action becomes what the handler made of it; it knew what happened."""
    error = '[handlers.onError]\npath = "h/PROMPT.md"\n'
    answer = {"payload": {"advice": "try later"}, "status": 503, "message": "Down."}
    script = [
        calls("a", q=7),
        Reply(deck="*a/PROMPT.md", fault="error", message="Overloaded."),
        Reply(deck="*h/PROMPT.md", calls=calls("gambit_respond", **answer).calls),
        Reply(text="Later, then."),
    ]
    async with stage(files(error, CHILD), script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        (handler,) = [log for log in on.store.logs.values() if "h/" in log.run.deck]
        assert unbalanced(on.sink.events) == []
    envelope = json.loads(outputs_of(result.items)["a"][0])
    assert {key: envelope[key] for key in answer} == answer
    given = str(handler.entries)
    assert "Overloaded." in given
    assert '\\"childInput\\":{\\"q\\":7}' in given or '"childInput":{"q":7}' in given


async def test_an_error_handler_that_fails_falls_back() -> None:
    """Then the model reads the first error, and that the handler did not help."""
    error = '[handlers.onError]\npath = "h/PROMPT.md"\n'
    script = [
        calls("a"),
        Reply(deck="*a/PROMPT.md", fault="error", message="Overloaded."),
        Reply(deck="*h/PROMPT.md", fault="error", message="Me too."),
        Reply(text="Sorry."),
    ]
    async with stage(files(error, CHILD), script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
    envelope = json.loads(outputs_of(result.items)["a"][0])
    assert (envelope["status"], envelope["code"]) == (500, "HANDLER_FALLBACK")
    assert envelope["message"] == "Handled error: Overloaded."
    assert envelope["meta"] == {"handlerFailed": True}


async def test_an_error_handler_sees_external_tools_and_not_the_models_mistakes() -> (
    None
):
    """A tool that raised is handled; arguments that do not fit are the model's own."""

    async def on_tool(_call: ExternalCall) -> JSONValue:
        await trio.lowlevel.checkpoint()
        raise ValueError

    error = f'[handlers.onError]\npath = "h/PROMPT.md"\n{TOOL}'
    answer = calls("gambit_respond", payload={"seen": True}).calls
    script = [
        calls("crm"),
        Reply(deck="*h/PROMPT.md", calls=answer),
        calls("nothing"),
        Reply(text="Done."),
    ]
    options = RunOptions(on_tool=on_tool)
    async with stage(files(error, CHILD), script, options) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
    outputs = outputs_of(result.items)
    assert json.loads(outputs["crm"][0])["payload"] == {"seen": True}
    assert json.loads(outputs["nothing"][0])["status"] == 404
