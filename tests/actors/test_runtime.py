"""A runtime runs decks: what comes out, what is logged, what is told."""

import json
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.runtime import open_runtime
from gambit_actors.actors.trees import Limits
from gambit_actors.deck.reader import DescribedModule
from gambit_actors.errors import InvalidDeck, RequestError, RunFailed
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall, FunctionCallOutput, Message
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Reply
from gambit_actors.run.entries import CallEnded, CallStarted, RunEnded, TurnEnded
from gambit_actors.run.ports import ModelContext
from gambit_actors.store.deck_files import DiskReader
from gambit_actors.trace.events import ModelCall
from gambit_actors.trace.sinks import MemorySink
from gambit_actors.trace.trees import unbalanced
from tests.actors.playing import (
    ANYTHING,
    TOOL,
    calls,
    items_in,
    outputs_of,
    root,
    stage,
)
from tests.deck.reading import Texts, deck_text

ACTION = """
contextSchema = "a.json"
responseSchema = "a.json"
respond = true
"""


def child(frontmatter: str = "") -> str:
    """The text of a deck that can be an action."""
    return root(ACTION + frontmatter)


def parent(*names: str, more: str = "") -> str:
    """The text of a deck with these actions."""
    entry = (
        '[[actions]]\nname = "{0}"\ndescription = "Do it."\npath = "{0}/PROMPT.md"\n'
    )
    return root(more + "\n".join(entry.format(name) for name in names))


def tree(*names: str, more: str = "", own: str = "") -> dict[str, str]:
    """A deck with children, each in its folder."""
    files = {"PROMPT.md": parent(*names, more=more)}
    for name in names:
        files |= {f"{name}/PROMPT.md": child(own), f"{name}/a.json": ANYTHING}
    return files


async def test_a_deck_answers() -> None:
    """A message goes in, the model's words come out, with what they cost."""
    async with stage({"PROMPT.md": root()}, [Reply(text="Hello there.")]) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        assert (result.text, result.value, result.status) == (
            "Hello there.",
            "Hello there.",
            "completed",
        )
        assert result.usage.total_tokens > 0
        assert [i.text for i in result.items if isinstance(i, Message)] == [
            "Be kind.",
            "Hi.",
            "Hello there.",
        ]
        assert on.runtime.snapshot() == ()
        assert unbalanced(on.sink.events) == []


@pytest.mark.spec("DK-8", "DK-28")
async def test_an_external_tool_goes_through_the_hook() -> None:
    """The hook is told what was called and for whom, and its payload goes back."""
    asked: list[ExternalCall] = []

    async def on_tool(call: ExternalCall) -> JSONValue:
        await trio.lowlevel.checkpoint()
        asked.append(call)
        return {"saved": True}

    script = [calls("crm", note="Hi."), Reply(text="Saved.")]
    options = RunOptions(on_tool=on_tool)
    async with stage({"PROMPT.md": root(TOOL)}, script, options) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
    (call,) = asked
    assert (call.name, call.args) == ("crm", {"note": "Hi."})
    assert (call.run_id, call.deck_path) == (result.run_id, "PROMPT.md")
    assert call.parent_action_call_id is not None
    (output,) = outputs_of(result.items)["crm"]
    envelope = json.loads(output)
    assert envelope["payload"] == {"saved": True}
    assert envelope["actionCallId"] == call.action_call_id
    assert "status" not in envelope


@pytest.mark.spec("DK-29")
async def test_without_a_hook_the_call_fails_and_the_run_goes_on() -> None:
    """Nobody to carry out a tool is an error the model can read, and go on from."""
    script = [calls("crm"), Reply(text="Never mind.")]
    async with stage({"PROMPT.md": root(TOOL)}, script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
    (output,) = outputs_of(result.items)["crm"]
    assert json.loads(output)["code"] == "missing_on_tool"
    assert result.text == "Never mind."


@pytest.mark.spec("DK-29")
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_hook_that_raises_is_an_envelope(is_async: bool) -> None:
    """What a hook raises ends as an error envelope; trace and run go on."""

    def fail(call: ExternalCall) -> JSONValue:
        raise ValueError(call.name)

    async def fail_later(call: ExternalCall) -> JSONValue:
        await trio.lowlevel.checkpoint()
        return fail(call)

    options = RunOptions(on_tool=fail_later if is_async else fail)
    script = [calls("crm"), Reply(text="Sorry.")]
    async with stage({"PROMPT.md": root(TOOL)}, script, options) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        assert unbalanced(on.sink.events) == []
    (output,) = outputs_of(result.items)["crm"]
    envelope = json.loads(output)
    assert (envelope["status"], envelope["code"]) == (500, "tool_handler_error")
    assert envelope["message"] == "crm raised ValueError: crm"
    assert result.text == "Sorry."


@pytest.mark.spec("DK-27")
async def test_an_action_is_a_child_and_its_answer_an_envelope() -> None:
    """What a child responds comes back with its status, message, code and meta."""
    said = {"payload": {"n": 1}, "status": 201, "message": "Made.", "code": "made"}
    script = [
        calls("a", q=1),
        Reply(deck="*a/PROMPT.md", calls=calls("gambit_respond", **said).calls),
        Reply(text="Done."),
    ]
    async with stage(tree("a"), script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        assert unbalanced(on.sink.events) == []
        first, second = on.store.logs.values()
    envelope = json.loads(outputs_of(result.items)["a"][0])
    assert {key: envelope[key] for key in said} == said
    assert envelope["source"]["actionName"] == "a"
    assert second.run.parent_run_id == first.run.run_id
    context = [i for i in items_in(second.entries) if isinstance(i, FunctionCallOutput)]
    assert context[0].output == '{"q":1}'
    # The action's end is in the conversation as a call of its own.
    assert outputs_of(result.items)["gambit_complete"] == outputs_of(result.items)["a"]


@pytest.mark.spec("DK-27")
async def test_an_envelope_may_be_written_out_by_a_child() -> None:
    """What a child that does not respond says in JSON is lifted like anybody's."""
    said = {"status": 404, "code": "NOPE", "message": "No such.", "n": 1}
    files = tree("a")
    files["a/PROMPT.md"] = files["a/PROMPT.md"].replace("respond = true\n", "")
    assert files != tree("a")
    script = [
        calls("a"),
        Reply(deck="*a/PROMPT.md", text=json.dumps(said)),
        Reply(text="Done."),
    ]
    async with stage(files, script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
    envelope = json.loads(outputs_of(result.items)["a"][0])
    lifted = {key: envelope[key] for key in ("status", "code", "message")}
    assert lifted == {"status": 404, "code": "NOPE", "message": "No such."}
    assert envelope["payload"] == said


@pytest.mark.spec("CARD-5")
async def test_calls_of_a_turn_run_side_by_side_and_answer_in_order(
    autojump_clock: MockClock,
) -> None:
    """Three calls take as long as the slowest; outputs stand in the order of calls."""

    async def on_tool(call: ExternalCall) -> JSONValue:
        seconds = {"crm": 3, "two": 1, "three": 2}[call.name]
        await trio.sleep(seconds)
        return seconds

    tools = "".join(f'[[tools]]\nname = "{n}"\n' for n in ("crm", "two", "three"))
    script = [calls("crm", "two", "three"), Reply(text="Done.")]
    options = RunOptions(on_tool=on_tool)
    async with stage({"PROMPT.md": root(tools)}, script, options) as on:
        began = trio.current_time()
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        assert trio.current_time() - began == 3
        log = on.entries()
    outputs = [i for i in result.items if isinstance(i, FunctionCallOutput)]
    said = [json.loads(str(output.output))["payload"] for output in outputs]
    assert said == [3, 1, 2]
    # In the log each end is noted when it comes, so that none is lost in a crash.
    kinds = [type(e) for e in log if isinstance(e, CallStarted | CallEnded)]
    assert kinds == [CallStarted] * 3 + [CallEnded] * 3


@pytest.mark.spec("CARD-4")
async def test_a_hung_model_is_cut_at_the_deadline(autojump_clock: MockClock) -> None:
    """A deck that has 0.1 seconds is cut at 0.1 seconds, and says so."""
    text = root("[guardrails]\ntimeoutMs = 100\n")
    async with stage({"PROMPT.md": text}, [Reply(fault="hang")]) as on:
        began = trio.current_time()
        with pytest.raises(RunFailed, match=r"within 0\.1 seconds") as caught:
            await on.runtime.run("PROMPT.md", message="Hi.")
        assert trio.current_time() - began == pytest.approx(0.1)
        assert caught.value.code == "timeout"
        assert unbalanced(on.sink.events) == []
        last = on.entries()[-2:]
    assert isinstance(last[0], TurnEnded)
    assert isinstance(last[1], RunEnded)


@pytest.mark.spec("CARD-4")
async def test_a_hung_tool_is_cut_at_the_deadline(autojump_clock: MockClock) -> None:
    """A call that was under way gets an output all the same."""

    async def on_tool(_call: ExternalCall) -> JSONValue:
        await trio.sleep_forever()

    text = root(f"[guardrails]\ntimeoutMs = 500\n{TOOL}")
    options = RunOptions(on_tool=on_tool)
    async with stage({"PROMPT.md": text}, [calls("crm")], options) as on:
        result = await on.runtime.try_run("PROMPT.md", message="Hi.")
        assert trio.current_time() == pytest.approx(0.5)
        assert unbalanced(on.sink.events) == []
        (output,) = outputs_of(items_in(on.entries()))["crm"]
    assert result.failure is not None
    assert result.failure.code == "timeout"
    assert json.loads(output)["code"] == "not_carried_out"


async def test_a_child_has_no_more_time_than_its_parent(
    autojump_clock: MockClock,
) -> None:
    """A child may ask for an hour; it is cut with its parent."""
    files = tree(
        "a",
        more="[guardrails]\ntimeoutMs = 1000\n",
        own="[guardrails]\ntimeoutMs = 3600000\n",
    )
    script = [calls("a"), Reply(deck="*a/PROMPT.md", fault="hang")]
    async with stage(files, script) as on:
        result = await on.runtime.try_run("PROMPT.md", message="Hi.")
        assert trio.current_time() == pytest.approx(1)
        assert unbalanced(on.sink.events) == []
        assert len(on.store.logs) == 2
        for log in on.store.logs.values():
            assert isinstance(log.entries[-1], RunEnded)
    assert result.status == "failed"


async def test_a_child_that_is_out_of_time_is_an_envelope(
    autojump_clock: MockClock,
) -> None:
    """A child's own deadline is its parent's news, and not its end."""
    files = tree("a", own="[guardrails]\ntimeoutMs = 200\n")
    script = [
        calls("a"),
        Reply(deck="*a/PROMPT.md", fault="hang"),
        Reply(text="It takes too long."),
    ]
    async with stage(files, script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
    envelope = json.loads(outputs_of(result.items)["a"][0])
    assert (envelope["status"], envelope["code"]) == (504, "timeout")
    assert result.text == "It takes too long."


async def test_decks_may_be_only_so_deep() -> None:
    """One level too many is an envelope to the one who asked for it."""
    script = [calls("a"), Reply(text="Then not.")]
    options = RunOptions(limits=Limits(max_depth=1))
    async with stage(tree("a"), script, options) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        assert len(on.store.logs) == 1
    assert json.loads(outputs_of(result.items)["a"][0])["code"] == "max_depth"


async def test_passes_are_counted() -> None:
    """A deck that never comes to an answer is stopped, with what it has said."""
    text = root(f"[guardrails]\nmaxPasses = 2\n{TOOL}")
    script = [calls("crm").__class__(calls=calls("crm").calls, times=0)]
    async with stage({"PROMPT.md": text}, script) as on:
        with pytest.raises(RunFailed, match="in 2 passes") as caught:
            await on.runtime.run("PROMPT.md", message="Hi.")
    result = caught.value.result
    assert len([i for i in result.items if isinstance(i, FunctionCall)]) == 2  # type: ignore[attr-defined]


@pytest.mark.spec("DK-32")
async def test_the_next_model_is_asked_when_one_fails() -> None:
    """A list of models is gone through on real errors, and each hop is told."""
    text = deck_text('[modelParams]\nmodel = ["scripted/a", "scripted/b"]')
    script = [Reply(fault="error", message="Overloaded."), Reply(text="From b.")]
    async with stage({"PROMPT.md": text}, script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        hops = [e for e in on.sink.events if e.type == "model.failover"]
        assert unbalanced(on.sink.events) == []
        asked = [e.action_call_id for e in on.sink.of(ModelCall)]
    assert result.text == "From b."
    assert len(hops) == 1
    assert len(set(asked)) == 2  # Two calls, and nothing said of one is of the other.


async def test_a_deck_that_names_no_model_says_what_to_do() -> None:
    """Unless what answers knows which model is meant: a script answers for all."""

    class Nameless(ScriptedProvider):
        default_model = None

    files = {"PROMPT.md": deck_text()}
    async with stage(files, [Reply(text="Hello.")]) as on:
        assert (await on.runtime.run("PROMPT.md", message="Hi.")).text == "Hello."
    async with stage(files, Nameless([Reply(text="Hello.")])) as on:
        with pytest.raises(RunFailed, match=r"set model under \[modelParams\]"):
            await on.runtime.run("PROMPT.md", message="Hi.")


@pytest.mark.parametrize("fault", ["error", "cut", "failed", "malformed"])
async def test_a_model_that_breaks_fails_the_run_with_a_reason(fault: str) -> None:
    """Whatever a model does wrong, the run ends, says why and keeps what it spent."""
    script = [calls("crm"), Reply(fault=fault)]  # type: ignore[arg-type]  # a parameter
    async with stage({"PROMPT.md": root(TOOL)}, script) as on:
        result = await on.runtime.try_run("PROMPT.md", message="Hi.")
        assert unbalanced(on.sink.events) == []
    assert result.status == "failed"
    assert result.failure is not None
    assert result.failure.message
    assert result.usage.total_tokens > 0
    assert len(outputs_of(result.items)["crm"]) == 1


async def test_an_answer_that_does_not_fit_is_asked_for_again() -> None:
    """The model is told what is wrong, and what it gives then counts."""
    schema = '{"type": "object", "properties": {"n": {"type": "integer"}}}'
    files = {"PROMPT.md": root('responseSchema = "s.json"'), "s.json": schema}
    script = [Reply(text='{"n": "x"}'), Reply(text='```json\n{"n": 1}\n```')]
    async with stage(files, script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
    assert result.value == {"n": 1}
    told = [i.text for i in result.items if isinstance(i, Message) and i.role == "user"]
    assert "n: expected a whole number" in told[1]


async def test_context_is_checked_filled_in_and_given() -> None:
    """Context goes in as a call that has been answered; bad context is refused."""
    schema = (
        '{"type": "object", "properties": {"n": {"type": "integer"}},'
        ' "required": ["n"]}'
    )
    files = {"PROMPT.md": root('contextSchema = "s.json"'), "s.json": schema}
    async with stage(files, [Reply(text="Seven.")]) as on:
        with pytest.raises(RequestError, match="the key 'n' is missing"):
            await on.runtime.run("PROMPT.md", message="Hi.")
        result = await on.runtime.run("PROMPT.md", message="Hi.", context={"n": 7})
    assert outputs_of(result.items)["gambit_context"] == ['{"n":7}']


async def test_a_session_goes_on_from_turn_to_turn() -> None:
    """The conversation grows, the prompt and context are there once."""
    script = [Reply(text="One."), Reply(text="Two.", contains="again")]
    async with (
        stage({"PROMPT.md": root()}, script) as on,
        on.runtime.open_session("PROMPT.md") as session,
    ):
        assert (await session.send("Hi.")).text == "One."
        assert [live.doing for live in on.runtime.snapshot()] == ["waiting"]
        result = await session.send("And again.")
    assert [i.text for i in result.items if isinstance(i, Message)] == [
        "Be kind.",
        "Hi.",
        "One.",
        "And again.",
        "Two.",
    ]
    assert on.runtime.snapshot() == ()


async def test_who_speaks_first_is_honoured() -> None:
    """A deck that waits for the user is not asked to speak; others are."""
    script = [Reply(text="Welcome.", times=0)]
    files = {"PROMPT.md": root('startMode = "user"'), "b/PROMPT.md": root()}
    async with stage(files, script) as on:
        with pytest.raises(RequestError, match="waits for the user"):
            await on.runtime.run("PROMPT.md")
        assert (await on.runtime.run("b")).text == "Welcome."


async def test_a_deck_with_mistakes_is_not_run() -> None:
    """Mistakes are listed instead."""
    async with stage({"PROMPT.md": deck_text("label = 1")}, []) as on:
        with pytest.raises(InvalidDeck, match="GD011"):
            await on.runtime.run("PROMPT.md", message="Hi.")


@pytest.mark.spec("DK-30")
async def test_code_is_run_as_an_action(tmp_path: Path) -> None:
    """A module gets its checked input, logs, and what it returns goes back."""
    module = tmp_path / "lookup.py"
    module.write_text(
        "from gambit_actors import define_deck\n"
        "def run(ctx):\n"
        "    ctx.log('looking', level='debug')\n"
        "    if ctx.input['n'] < 0:\n"
        "        ctx.fail('no such order', code='not_found', details={'n': -1})\n"
        "    return {'n': ctx.input['n'] + 1}\n"
        "deck = define_deck(run=run)\n"
    )
    schema = '{"type": "object", "properties": {"n": {"type": "integer"}}}'
    action = (
        '[[actions]]\nname = "look"\ndescription = "Look."\n'
        f'execute = "{module}"\ncontextSchema = "s.json"\nresponseSchema = "s.json"\n'
    )
    files = {
        "PROMPT.md": root(action),
        "s.json": schema,
        str(module): module.read_text(),
    }
    script = [calls("look", n=1), calls("look", n=-1), Reply(text="Done.")]
    async with stage(files, script) as on:
        on.runtime._decks._reader.modules[str(module)] = DescribedModule()  # type: ignore[attr-defined]  # noqa: SLF001
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        logs = [e for e in on.sink.events if e.type == "log"]
    good, bad = map(json.loads, outputs_of(result.items)["look"])
    assert good["payload"] == {"n": 2}
    assert (bad["status"], bad["code"], bad["message"]) == (
        500,
        "not_found",
        "no such order",
    )
    assert bad["meta"] == {"details": {"n": -1}}
    assert len(logs) == 2


async def test_nothing_of_a_cancelled_tool_happens_afterwards() -> None:
    """Cleanup and threads are waited for; what had finished is in the log."""
    happened: list[str] = []
    started = trio.Event()

    async def on_tool(call: ExternalCall) -> JSONValue:
        if call.name == "crm":
            return "quick"
        if call.name == "slow":
            try:
                started.set()
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.lowlevel.checkpoint()
                    happened.append("cleaned up")
        return await trio.to_thread.run_sync(_thread, happened)

    tools = "".join(f'[[tools]]\nname = "{n}"\n' for n in ("crm", "slow", "thread"))
    script = [calls("crm", "slow", "thread")]
    options = RunOptions(on_tool=on_tool)
    async with stage({"PROMPT.md": root(tools)}, script, options) as on:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:

                async def cancel_when_started() -> None:
                    await started.wait()
                    await trio.testing.wait_all_tasks_blocked(0.05)
                    scope.cancel()

                nursery.start_soon(cancel_when_started)
                await on.runtime.run("PROMPT.md", message="Hi.")
        assert scope.cancelled_caught
        before = list(happened)
        log = on.entries()
        assert unbalanced(on.sink.events) == []
        assert on.runtime.snapshot() == ()
    assert sorted(before) == ["cleaned up", "thread"]
    assert happened == before
    outputs = outputs_of(items_in(log))
    assert json.loads(outputs["crm"][0])["payload"] == "quick"
    assert json.loads(outputs["slow"][0])["code"] == "not_carried_out"
    assert [len(found) for found in outputs.values()] == [1, 1, 1]
    assert isinstance(log[-1], RunEnded)


def _thread(happened: list[str]) -> str:
    happened.append("thread")
    return "done"


@pytest.mark.spec("DK-34")
async def test_a_deck_uses_the_tools_its_permissions_bring(tmp_path: Path) -> None:
    """What is granted can be read, what is not is refused with a named error."""
    (tmp_path / "desk" / "data").mkdir(parents=True)
    (tmp_path / "desk" / "data" / "a.txt").write_text("Alpha.")
    (tmp_path / "desk" / "secret.txt").write_text("Beta.")
    permissions = '[permissions]\nread = ["./data"]\n'
    (tmp_path / "desk" / "PROMPT.md").write_text(root(permissions))
    script = [
        calls("read_file", path="data/a.txt"),
        calls("read_file", path="secret.txt"),
        calls("apply_patch", path="data/a.txt", edits=[]),
        Reply(text="Done."),
    ]
    provider = ScriptedProvider(script)
    async with open_runtime(provider, reader=DiskReader(tmp_path)) as runtime:
        result = await runtime.run("desk", message="Hi.")
    outputs = outputs_of(result.items)
    good, bad = map(json.loads, outputs["read_file"])
    assert good["payload"]["content"] == "Alpha."
    assert (bad["status"], bad["code"]) == (403, "permission_denied")
    assert json.loads(outputs["apply_patch"][0])["status"] == 404  # Not even offered.


@pytest.mark.spec("DK-30")
async def test_code_may_run_other_decks(tmp_path: Path) -> None:
    """Decks that code asks for run below it, side by side, and come back in order."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "PROMPT.md").write_text(root())
    (tmp_path / "s.json").write_text("{}")
    (tmp_path / "both.py").write_text(
        "from gambit_actors import define_deck\n"
        "async def run(ctx):\n"
        "    one = await ctx.spawn_and_wait('./a/PROMPT.md', {'n': 1})\n"
        "    rest = await ctx.spawn_all([('./a/PROMPT.md', 2), ('./a/PROMPT.md', 3)])\n"
        "    return [one, *rest]\n"
        "deck = define_deck(run=run)\n"
    )
    (tmp_path / "PROMPT.md").write_text(
        root(
            '[[actions]]\nname = "both"\ndescription = "Do."\nexecute = "both.py"\n'
            'contextSchema = "s.json"\nresponseSchema = "s.json"\n'
        )
    )
    script = [
        calls("both"),
        Reply(deck="*a/PROMPT.md", text="Child.", times=0),
        Reply(text="Done."),
    ]
    sink = MemorySink()
    provider = ScriptedProvider(script)
    reader = DiskReader(tmp_path)
    async with open_runtime(provider, reader=reader, sinks=[sink]) as runtime:
        result = await runtime.run("PROMPT.md", message="Hi.")
        assert unbalanced(sink.events) == []
    (output,) = outputs_of(result.items)["both"]
    assert json.loads(output)["payload"] == ["Child."] * 3


@pytest.mark.spec("DK-22")
async def test_a_model_is_sent_the_prompt_and_the_parameters() -> None:
    """The body with its snippets comes first, and every parameter is in the request."""
    asked: list[CreateResponse] = []

    def answer(request: CreateResponse, _context: ModelContext) -> Reply:
        asked.append(request)
        return Reply(text="Hello.")

    params = (
        "temperature = 0.5\ntop_p = 0.9\nmax_tokens = 100\n"
        'reasoning = { effort = "low" }\nadditionalParams = { seed = 7 }\n'
    )
    text = deck_text(
        f'[modelParams]\nmodel = "scripted/one"\n{params}', "Be kind. ![](s.md)"
    )
    reader = Texts({"PROMPT.md": text, "s.md": "And brief."})
    async with open_runtime(ScriptedProvider(answer), reader=reader) as runtime:
        await runtime.run("PROMPT.md", message="Hi.")
    (request,) = asked
    assert isinstance(request.input, tuple)
    first = request.input[0]
    assert isinstance(first, Message)
    assert (first.role, first.text) == ("system", "Be kind. And brief.")
    assert (request.model, request.temperature, request.top_p) == (
        "scripted/one",
        0.5,
        0.9,
    )
    assert request.max_output_tokens == 100
    assert request.reasoning is not None
    assert request.reasoning.effort == "low"
    assert request.extra == {"seed": 7}


@pytest.mark.spec("DK-26")
async def test_code_must_return_what_it_promised(tmp_path: Path) -> None:
    """A result that its responseSchema does not allow is an error, and told as one."""
    (tmp_path / "in.json").write_text("{}")
    (tmp_path / "out.json").write_text('{"type": "integer"}')
    (tmp_path / "wrong.py").write_text(
        "from gambit_actors import define_deck\n"
        "async def run(ctx):\n    return 'seven'\n"
        "deck = define_deck(run=run)\n"
    )
    (tmp_path / "PROMPT.md").write_text(
        root(
            '[[actions]]\nname = "wrong"\ndescription = "Do."\nexecute = "wrong.py"\n'
            'contextSchema = "in.json"\nresponseSchema = "out.json"\n'
        )
    )
    provider = ScriptedProvider([calls("wrong"), Reply(text="Sorry.")])
    async with open_runtime(provider, reader=DiskReader(tmp_path)) as runtime:
        result = await runtime.run("PROMPT.md", message="Hi.")
    envelope = json.loads(outputs_of(result.items)["wrong"][0])
    assert (envelope["status"], envelope["code"]) == (500, "invalid_result")
    assert 'expected a whole number, got "seven"' in envelope["message"]


@pytest.mark.spec("DK-26")
async def test_a_child_must_respond_with_what_it_promised() -> None:
    """A result that does not fit is given back to the child, which puts it right."""
    files = tree("a") | {"a/a.json": '{"type": "object", "required": ["n"]}'}
    bad, good = (
        calls("gambit_respond", payload={}),
        calls("gambit_respond", payload={"n": 1}),
    )
    script = [
        calls("a", n=0),
        Reply(deck="*a/PROMPT.md", calls=bad.calls),
        Reply(deck="*a/PROMPT.md", calls=good.calls),
        Reply(text="Done."),
    ]
    async with stage(files, script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        refused, _ = outputs_of(items_in(on.entries(1)))["gambit_respond"]
    assert json.loads(refused)["status"] == 400
    assert json.loads(outputs_of(result.items)["a"][0])["payload"] == {"n": 1}
