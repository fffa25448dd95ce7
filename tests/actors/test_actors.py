"""What makes a deck that is run an actor: a task, a mailbox, and one way to tools."""

import json
import threading

import msgspec
import pytest
import trio
from trio.testing import MockClock

from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.mailboxes import Turn, ask_once
from gambit_actors.actors.options import RunOptions
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall, FunctionCallOutput, Message
from gambit_actors.providers.scripts import Call, Reply
from gambit_actors.run.entries import TurnEnded
from gambit_actors.trace.codec import encode_event
from gambit_actors.trace.events import ModelCall, ModelResult
from tests.actors.playing import ANYTHING, TOOL, calls, outputs_of, root, stage

CHILD = 'contextSchema = "../s.json"\nresponseSchema = "../s.json"\nrespond = true\n'
RESPOND = (Call(name="gambit_respond", arguments={"payload": {}}),)
BELOW = ("*/a/PROMPT.md", "*/b/PROMPT.md")


def files(*names: str) -> dict[str, str]:
    """A root with a tool, and with children that have the same tool."""
    action = '[[actions]]\nname = "{0}"\ndescription = "Do."\npath = "{0}/PROMPT.md"\n'
    decks = {f"{name}/PROMPT.md": root(CHILD + TOOL) for name in names}
    entries = "".join(map(action.format, names))
    return {"PROMPT.md": root(entries + TOOL), "s.json": ANYTHING, **decks}


class Spawned(trio.abc.Instrument):
    """Notes the tasks that are started."""

    def __init__(self) -> None:
        self.tasks: list[trio.lowlevel.Task] = []

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        """Keep those of actors."""
        if task.name.endswith("DeckActor.run"):
            self.tasks.append(task)


def tasks_above(task: trio.lowlevel.Task) -> list[trio.lowlevel.Task]:
    """Those in whose nurseries a task is, the nearest first."""
    found: list[trio.lowlevel.Task] = []
    nursery = task.parent_nursery
    while nursery is not None:
        found.append(nursery.parent_task)
        nursery = nursery.parent_task.parent_nursery
    return found


@pytest.mark.spec("CARD-3", "CARD-5")
async def test_each_deck_is_a_task_in_a_nursery_below_its_parents() -> None:
    """A root and two children are three tasks; the children live below the root."""
    spawned = Spawned()
    parents: list[list[trio.lowlevel.Task]] = []

    async def on_tool(_call: ExternalCall) -> JSONValue:
        # While all are alive: a task that has ended is in no nursery.
        parents.extend(tasks_above(task) for task in spawned.tasks)
        await trio.lowlevel.checkpoint()
        return None

    script = [
        *(Reply(deck=deck, calls=RESPOND) for deck in BELOW),
        calls("a", "b", "crm"),
        Reply(text="Done."),
    ]
    options = RunOptions(on_tool=on_tool)
    async with stage(files("a", "b"), script, options) as on:
        trio.lowlevel.add_instrument(spawned)
        try:
            await on.runtime.run("PROMPT.md", message="Hi.")
        finally:
            trio.lowlevel.remove_instrument(spawned)
    assert len(spawned.tasks) == 3
    top = spawned.tasks[0]
    assert [top in above for above in parents] == [False, True, True]


class Echo:
    """An actor that says what it is told, and notes that its mailbox was closed."""

    def __init__(self) -> None:
        self.task: trio.lowlevel.Task | None = None
        self.is_closed = False

    async def run(
        self,
        inbox: trio.MemoryReceiveChannel[Turn],
        outbox: trio.MemorySendChannel[TurnEnded],
    ) -> None:
        """Answer until there is nobody to ask."""
        self.task = trio.lowlevel.current_task()
        async for turn in inbox:
            ended = TurnEnded(status="completed", text=str(turn.message))
            await outbox.send(ended)
        self.is_closed = True


@pytest.mark.spec("CARD-3", "CARD-5")
async def test_an_actor_is_asked_through_its_mailbox() -> None:
    """A typed message goes in and one comes out; closing the mailbox is the end."""
    actor = Echo()
    ended = await ask_once(actor, Turn(message="Hi."))
    assert ended.text == "Hi."
    assert actor.is_closed
    assert actor.task is not trio.lowlevel.current_task()


@pytest.mark.spec("CARD-6")
async def test_all_tools_of_a_run_go_through_one_hook(
    autojump_clock: MockClock,
) -> None:
    """Its limit holds for the calls of all decks of a run together."""
    out, most, asked = 0, 0, 0

    async def on_tool(_call: ExternalCall) -> JSONValue:
        nonlocal out, most, asked
        out, asked = out + 1, asked + 1
        most = max(most, out)
        await trio.sleep(1)
        out -= 1
        return None

    script = [
        *(Reply(deck=d, pass_number=1, calls=(Call(name="crm"),)) for d in BELOW),
        *(Reply(deck=deck, calls=RESPOND) for deck in BELOW),
        calls("a", "b", "crm", "crm"),
        Reply(text="Done."),
    ]
    options = RunOptions(on_tool=on_tool, max_tool_calls=2)
    async with stage(files("a", "b"), script, options) as on:
        loaded = await on.runtime.load("PROMPT.md")
        before = trio.current_time()
        result = await on.runtime.run(loaded, message="Hi.")
        taken = trio.current_time() - before
    assert (most, asked) == (2, 4)
    assert taken == pytest.approx(2)
    assert len(outputs_of(result.items)["crm"]) == 2


async def test_plain_functions_are_asked_side_by_side() -> None:
    """Each has a thread of its own: two that wait for each other both answer."""
    together = threading.Barrier(2, timeout=5)

    def on_tool(call: ExternalCall) -> JSONValue:
        together.wait()
        return call.args

    options = RunOptions(on_tool=on_tool)
    both = (Call(name="crm", arguments={"n": 1}), Call(name="crm", arguments={"n": 2}))
    script = [Reply(calls=both), Reply(text="Done.")]
    async with stage(files(), script, options) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
    outputs = outputs_of(result.items)["crm"]
    assert [json.loads(output).get("payload") for output in outputs] == [
        {"n": 1},
        {"n": 2},
    ]


@pytest.mark.spec("OR-11")
async def test_model_events_say_their_mode_and_their_items() -> None:
    """What went in and came out are items; the text is there as a message, too."""
    options = RunOptions(on_tool=lambda _call: "noted")
    script = [calls("crm"), Reply(text="Done.")]
    async with stage(files(), script, options) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        told = [e for e in on.sink.events if isinstance(e, ModelCall | ModelResult)]
    written = [msgspec.json.decode(encode_event(event)) for event in told]
    kinds = ["model.call", "model.result"]
    assert [event["type"] for event in written] == [*kinds, *kinds]
    assert {event["mode"] for event in written} == {"responses"}
    sent, answered, sent_again, answered_again = told
    assert [type(item) for item in sent.response_items] == [Message, Message]
    assert [type(item) for item in answered.response_items] == [FunctionCall]
    # Only what is new: a log has the rest.
    assert FunctionCallOutput in map(type, sent_again.response_items)
    assert isinstance(answered_again, ModelResult)
    assert answered_again.message == "Done."
