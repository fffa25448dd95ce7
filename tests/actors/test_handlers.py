"""Handlers speak while a deck waits, and when something went wrong."""

import json
from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock

from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.options import RunOptions
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.items import FunctionCallOutput, Message
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Reply
from gambit_actors.run.ports import ModelContext
from gambit_actors.trace.events import HandlerSaid
from gambit_actors.trace.trees import unbalanced
from tests.actors.playing import (
    ANYTHING,
    TOOL,
    Stage,
    calls,
    items_in,
    outputs_of,
    root,
    stage,
)

pytestmark = pytest.mark.spec("DK-35")

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


def given_to(on: Stage, deck: str = "h/PROMPT.md") -> list[JSONValue]:
    """What each run of a handler was told."""
    outputs = [
        next(item for item in items_in(log) if isinstance(item, FunctionCallOutput))
        for log in on.entries_of(deck)
    ]
    return [json.loads(str(output.output)) for output in outputs]


def busy(**more: int) -> str:
    """A busy handler with these keys."""
    keys = "".join(f"{key} = {value}\n" for key, value in more.items())
    return f'[handlers.onBusy]\npath = "h/PROMPT.md"\n{keys}'


SPEAKS = Reply(deck="*h/PROMPT.md", text="One moment.", times=0)


def slow(seconds: float) -> Reply:
    """A child that takes its time."""
    answer = calls("gambit_respond", payload={"n": 1}).calls
    return Reply(deck="*a/PROMPT.md", latency_seconds=seconds, calls=answer)


async def test_a_busy_handler_speaks_on_its_schedule(autojump_clock: MockClock) -> None:
    """First after the delay, then at each repeat, as long as the action takes."""
    script = [calls("a", q=1), slow(6), SPEAKS, Reply(text="Done.")]
    async with stage(files(busy(delayMs=1000, repeatMs=2000)), script) as on:
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


async def test_a_busy_handler_is_not_asked_for_quick_actions(
    autojump_clock: MockClock,
) -> None:
    """An action that is done before the delay needs no words."""
    script = [calls("a"), slow(0.5), Reply(text="Done.")]
    async with stage(files(busy()), script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
    assert result.text == "Done."


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


@pytest.mark.parametrize("label", ["Looking it up", None])
async def test_a_busy_handler_is_told_what_keeps_it_waiting(
    label: str | None, autojump_clock: MockClock
) -> None:
    """It knows the action, its input and the time; the label is the action's first."""
    decks = files(busy(delayMs=1000, repeatMs=500))
    if label is not None:
        text = decks["PROMPT.md"]
        decks["PROMPT.md"] = text.replace(ACTION, f'{ACTION}label = "{label}"\n')
    script = [calls("a", q=7), slow(1.8), SPEAKS, Reply(text="Done.")]
    async with stage(decks, script) as on:
        loaded = await on.runtime.load("PROMPT.md")
        await on.runtime.run(loaded, message="Hi.")
        told = given_to(on)
    assert told == [
        {
            "kind": "busy",
            "label": label or "Desk",
            "source": {"deckPath": "PROMPT.md", "actionName": "a"},
            "trigger": {"reason": "timeout", "elapsedMs": elapsed},
            "childInput": {"q": 7},
        }
        for elapsed in (1000, 1500)
    ]


async def test_an_idle_handler_is_told_how_long_nothing_happened(
    autojump_clock: MockClock,
) -> None:
    """It knows the deck and the time; there is no action and no input."""
    idle = '[handlers.onIdle]\npath = "h/PROMPT.md"\ndelayMs = 1500\n'
    script = [Reply(deck="PROMPT.md", latency_seconds=2, text="Hello."), SPEAKS]
    async with stage(files(idle), script) as on:
        loaded = await on.runtime.load("PROMPT.md")
        await on.runtime.run(loaded, message="Hi.")
        (told,) = given_to(on)
    assert told == {
        "kind": "idle",
        "label": "Desk",
        "source": {"deckPath": "PROMPT.md"},
        "trigger": {"reason": "idle_timeout", "elapsedMs": 1500},
    }


@pytest.mark.parametrize("label", ["Looking it up", None])
async def test_an_error_handler_is_told_what_went_wrong(label: str | None) -> None:
    """It knows the action, its input, and the error with its code."""
    decks = files('[handlers.onError]\npath = "h/PROMPT.md"\n', CHILD)
    if label is not None:
        text = decks["PROMPT.md"]
        decks["PROMPT.md"] = text.replace(ACTION, f'{ACTION}label = "{label}"\n')
    answer = {"payload": {}, "status": 500, "code": "no_room", "message": "Full."}
    script = [
        calls("a", q=7),
        Reply(deck="*a/PROMPT.md", calls=calls("gambit_respond", **answer).calls),
        Reply(deck="*h/PROMPT.md", calls=calls("gambit_respond", payload={}).calls),
        Reply(text="Done."),
    ]
    async with stage(decks, script) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        (told,) = given_to(on)
    assert told == {
        "kind": "error",
        "label": label or "Desk",
        "source": {"deckPath": "PROMPT.md", "actionName": "a"},
        "error": {"message": "Full.", "code": "no_room"},
        "childInput": {"q": 7},
    }


@pytest.mark.parametrize(("seconds", "said"), [(0.7, []), (0.9, [800])])
@pytest.mark.parametrize("kind", ["onBusy", "onIdle"])
async def test_a_handler_waits_for_800_milliseconds_where_nobody_says(
    kind: str, seconds: float, said: list[int], autojump_clock: MockClock
) -> None:
    """What is done within that time needs no words."""
    handler = f'[handlers.{kind}]\npath = "h/PROMPT.md"\n'
    first = (
        calls("a") if kind == "onBusy" else Reply(text="Hm.", latency_seconds=seconds)
    )
    script = [SPEAKS, slow(seconds), first, Reply(text="Done.")]
    async with stage(files(handler), script) as on:
        loaded = await on.runtime.load("PROMPT.md")
        await on.runtime.run(loaded, message="Hi.")
        found = [e.elapsed_ms for e in on.sink.of(HandlerSaid)]
    assert found == said


async def test_a_busy_handler_that_is_slow_leaves_out_what_it_missed(
    autojump_clock: MockClock,
) -> None:
    """The schedule stays: it speaks at the next whole repeat, and never in a rush."""
    late = Reply(deck="*h/PROMPT.md", text="Still.", latency_seconds=2.5, times=0)
    script = [calls("a"), slow(9.8), late, Reply(text="Done.")]
    async with stage(files(busy(delayMs=1000, repeatMs=1000)), script) as on:
        loaded = await on.runtime.load("PROMPT.md")
        await on.runtime.run(loaded, message="Hi.")
        said = [e.elapsed_ms for e in on.sink.of(HandlerSaid)]
        begun = [told["trigger"]["elapsedMs"] for told in given_to(on)]
    assert said == [1000, 4000, 7000]
    assert begun == said


async def test_an_idle_handler_starts_over_when_something_has_happened(
    autojump_clock: MockClock,
) -> None:
    """Its repeats belong to one silence; the next silence begins with the delay."""
    idle = '[handlers.onIdle]\npath = "h/PROMPT.md"\ndelayMs = 1000\nrepeatMs = 1000\n'
    decks = files(idle)
    decks["PROMPT.md"] = decks["PROMPT.md"].replace("[handlers", f"{TOOL}[handlers")
    script = [
        SPEAKS,
        Reply(pass_number=1, latency_seconds=2.5, calls=calls("crm").calls),
        Reply(pass_number=2, latency_seconds=2.9, text="Done."),
    ]
    async with stage(decks, script, RunOptions(on_tool=note)) as on:
        loaded = await on.runtime.load("PROMPT.md")
        await on.runtime.run(loaded, message="Hi.")
        said = [e.elapsed_ms for e in on.sink.of(HandlerSaid)]
    assert said == [1000, 2000, 1000, 2000]


async def note(_call: ExternalCall) -> JSONValue:
    """A tool that answers at once."""
    await trio.lowlevel.checkpoint()
    return "noted"


@pytest.mark.parametrize("fault", ["error", "failed", "cut"])
async def test_an_error_handler_speaks_for_a_model_that_failed(fault: str) -> None:
    """The run has failed, and the user is told in the handler's words."""
    error = '[handlers.onError]\npath = "h/PROMPT.md"\n'
    script = [
        Reply(deck="*h/PROMPT.md", text="Please call us."),
        Reply(fault=fault),  # type: ignore[arg-type]  # a parameter
    ]
    async with stage(files(error), script) as on:
        result = await on.runtime.try_run("PROMPT.md", message="Hi.")
        (told,) = given_to(on)
        (said,) = on.sink.of(HandlerSaid)
    assert result.failure is not None
    assert (result.status, result.text) == ("failed", "Please call us.")
    assert told == {
        "kind": "error",
        "label": "Desk",
        "source": {"deckPath": "PROMPT.md"},
        "error": {"message": result.failure.message, "code": result.failure.code},
    }
    assert (said.kind, said.message) == ("error", "Please call us.")
    assert [i.text for i in result.items if isinstance(i, Message)][-1] == said.message


@pytest.mark.parametrize(
    "said",
    [
        {"status": 503, "code": "closed", "message": "Come back.", "meta": {"n": 1}},
        {"status": 200},
        {},
    ],
)
async def test_what_an_error_handler_leaves_open_is_the_error_s(
    said: dict[str, JSONValue],
) -> None:
    """Its status, code and message win; else it is 500 and what went wrong."""
    error = '[handlers.onError]\npath = "h/PROMPT.md"\n'
    words = calls("gambit_respond", payload={"seen": True}, **said).calls
    script = [
        calls("a"),
        Reply(deck="*a/PROMPT.md", fault="error", message="Overloaded."),
        Reply(deck="*h/PROMPT.md", calls=words),
        Reply(text="Done."),
    ]
    async with stage(files(error, CHILD), script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
    envelope = json.loads(outputs_of(result.items)["a"][0])
    usual = {"status": 500, "code": "model_unavailable", "message": "Overloaded."}
    expected = {"payload": {"seen": True}} | usual | said
    assert {key: envelope.get(key) for key in expected} == expected


async def test_a_tool_that_takes_long_is_idling(autojump_clock: MockClock) -> None:
    """Nobody speaks for an external tool but the idle handler."""
    idle = f'[handlers.onIdle]\npath = "h/PROMPT.md"\ndelayMs = 100\n{TOOL}'

    async def on_tool(_call: ExternalCall) -> JSONValue:
        await trio.sleep(5)
        return None

    del autojump_clock
    script = [SPEAKS, calls("crm"), Reply(text="Done.")]
    async with stage(files(idle), script, RunOptions(on_tool=on_tool)) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        (said,) = [e for e in on.sink.events if isinstance(e, HandlerSaid)]
    assert (said.kind, said.elapsed_ms) == ("idle", 100)


@pytest.mark.parametrize("has_payload", [True, False])
async def test_an_error_handler_may_answer_in_words(has_payload: bool) -> None:
    """JSON that it writes says the same as a call of gambit_respond."""
    error = '[handlers.onError]\npath = "h/PROMPT.md"\n'
    said = {"status": 503, "code": "SORRY", "message": "Later.", "meta": {"a": 1}}
    answer = {**said, "payload": {"z": 1}} if has_payload else said
    plain = CHILD.replace("respond = true\n", "")
    script = [
        calls("a"),
        Reply(deck="*a/PROMPT.md", fault="error", message="Overloaded."),
        Reply(deck="*h/PROMPT.md", text=json.dumps(answer)),
        Reply(text="Done."),
    ]
    async with stage(files(error, plain), script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
    envelope = json.loads(outputs_of(result.items)["a"][0])
    assert {key: envelope[key] for key in said} == said
    assert envelope["payload"] == ({"z": 1} if has_payload else said)


async def test_an_error_handler_is_not_asked_about_what_callers_did_wrong() -> None:
    """An action or a tool that answers with 4xx has worked: the model reads it."""

    async def on_tool(_call: ExternalCall) -> JSONValue:
        await trio.lowlevel.checkpoint()
        return {"status": 404, "message": "No such note."}

    error = f'[handlers.onError]\npath = "h/PROMPT.md"\n{TOOL}'
    script = [
        calls("a", "crm"),
        Reply(
            deck="*a/PROMPT.md",
            calls=calls("gambit_respond", payload={}, status=499, message="No.").calls,
        ),
        Reply(text="Done."),
    ]
    options = RunOptions(on_tool=on_tool)
    async with stage(files(error, CHILD), script, options) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        assert on.entries_of("h/PROMPT.md") == []
    outputs = outputs_of(result.items)
    found = {name: json.loads(outputs[name][0]) for name in ("a", "crm")}
    assert (found["a"]["status"], found["a"]["message"]) == (499, "No.")
    assert (found["crm"]["status"], found["crm"]["message"]) == (404, "No such note.")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"payload": {"message": "One moment.", "n": 1}}, "One moment."),
        ({"payload": "Words.", "message": "Others."}, "Words."),
        ({"payload": {"n": 1}, "message": "Still at it."}, "Still at it."),
        ({"payload": {"n": 1}}, '{"n":1}'),
    ],
)
async def test_a_handler_speaks_by_its_result_or_by_what_it_says_of_that(
    answer: dict[str, JSONValue], said: str, autojump_clock: MockClock
) -> None:
    """Words, or the message in an object, or that beside it; else all of the object."""
    decks = files(busy(delayMs=1000), CHILD.replace("../s.json", "../any.json"))
    decks["any.json"] = "{}"
    speaks = Reply(deck="*h/PROMPT.md", calls=calls("gambit_respond", **answer).calls)
    script = [calls("a"), slow(2), speaks, Reply(text="Done.")]
    async with stage(decks, script) as on:
        loaded = await on.runtime.load("PROMPT.md")
        result = await on.runtime.run(loaded, message="Hi.")
        (told,) = on.sink.of(HandlerSaid)
    assert told.message == said
    texts = [i.text for i in result.items if isinstance(i, Message)]
    assert f"{said} (elapsed 1000ms)" in texts


async def test_busy_words_outlive_a_cut_of_what_kept_it_busy(
    autojump_clock: MockClock,
) -> None:
    """They were told, so they stand behind the output that says it was cut."""
    decks = files(f"[guardrails]\ntimeoutMs = 3000\n{busy(delayMs=1000)}")
    script = [calls("a"), slow(100), SPEAKS]
    async with stage(decks, script) as on:
        loaded = await on.runtime.load("PROMPT.md")
        result = await on.runtime.try_run(loaded, message="Hi.")
    assert result.failure is not None
    assert result.failure.code == "timeout"
    output, words = result.items[-2:]
    assert isinstance(output, FunctionCallOutput)
    assert json.loads(str(output.output))["code"] == "not_carried_out"
    assert isinstance(words, Message)
    assert words.text == "One moment. (elapsed 1000ms)"


async def test_an_error_handler_is_told_the_arguments_of_a_tool() -> None:
    """They are the input of a call to a tool, as the tool was given them."""
    error = f'[handlers.onError]\npath = "h/PROMPT.md"\n{TOOL}'
    script = [
        calls("crm", note="Call back."),
        Reply(deck="*h/PROMPT.md", calls=calls("gambit_respond", payload={}).calls),
        Reply(text="Done."),
    ]
    async with stage(files(error, CHILD), script) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        (told,) = given_to(on)
    assert isinstance(told, dict)
    assert told["childInput"] == {"note": "Call back."}


class WithoutPieces:
    """A model whose answers come whole: nobody hears of a piece."""

    def __init__(self, script: list[Reply]) -> None:
        self._provider = ScriptedProvider(script)

    async def responses(
        self,
        request: CreateResponse,
        context: ModelContext,
        _on_event: Callable[[Event], None],
        /,
    ) -> Response:
        """Answer, and keep the pieces to itself."""
        return await self._provider.responses(request, context, lambda _event: None)


async def test_what_is_written_down_is_a_sign_of_life(
    autojump_clock: MockClock,
) -> None:
    """An answer that has to be given again is one, though no piece of it was seen."""
    idle = '[handlers.onIdle]\npath = "h/PROMPT.md"\ndelayMs = 2000\n'
    decks = files(idle)
    count = 'responseSchema = "n.json"\n[guardrails]\nmaxPasses = 5\n'
    decks["PROMPT.md"] = root(f"{count}{idle}")
    decks["n.json"] = '{"type": "integer"}'
    script = [
        SPEAKS,
        Reply(pass_number=1, text="One.", latency_seconds=1.5),
        Reply(pass_number=2, text="1", latency_seconds=1.5),
    ]
    async with stage(decks, WithoutPieces(script)) as on:
        loaded = await on.runtime.load("PROMPT.md")
        began = trio.current_time()
        result = await on.runtime.run(loaded, message="Hi.")
        assert trio.current_time() - began == 3
        assert on.sink.of(HandlerSaid) == []
    assert result.value == 1
