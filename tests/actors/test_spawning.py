"""An author's code runs decks, fails in every way, and is told what it did wrong."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from gambit_actors.actors.compute import ComputeContext
from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.options import RunOptions
from gambit_actors.errors import ActionFailed
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.providers.scripts import Reply
from gambit_actors.run.ports import ModelContext
from gambit_actors.run.states import state_from_entries
from gambit_actors.trace.trees import unbalanced
from tests.actors.playing import (
    ANYTHING,
    TOOL,
    Stage,
    action,
    calls,
    child,
    coded,
    execute,
    outputs_of,
    root,
    stage,
)
from tests.deck.reading import Texts

pytestmark = pytest.mark.spec("DK-30")

RESPOND = calls("gambit_respond", payload={"n": 1}).calls
MODULE = """
from gambit_actors import define_deck
from gambit_actors.errors import ActionFailed
{0}
deck = define_deck(run=run)
"""
CAREFUL = """
async def run(ctx):
    try:
        return {"given": await REACH}
    except ActionFailed as problem:
        return {"code": problem.code, "words": str(problem)}
"""


def decks(
    folder: Path, code: str, more: Mapping[str, str] | None = None, *names: str
) -> Texts:
    """A deck whose action is code, beside decks that the code can ask for."""
    files = {"PROMPT.md": root(execute("code")), "any.json": ANYTHING}
    files |= {f"{name}/PROMPT.md": child() for name in names}
    return coded(folder, files | dict(more or {}), code=MODULE.format(code))


def reaching(expression: str) -> str:
    """Code that gives what an expression does, or the code of its failure."""
    return CAREFUL.replace("REACH", expression)


def given(on: Stage) -> dict[str, JSONValue]:
    """The envelope of the one call of the code."""
    items = state_from_entries(on.entries()).items
    (output,) = outputs_of(items)["code"]
    envelope: dict[str, JSONValue] = json.loads(output)
    return envelope


DONE = Reply(text="Done.")
FAILED = Reply(deck="*/b/PROMPT.md", fault="error", message="Overloaded.")


@pytest.mark.parametrize(
    "expression",
    [
        "ctx.spawn_and_wait('b/PROMPT.md', {})",
        "ctx.spawn_all([('a/PROMPT.md', {}), ('b/PROMPT.md', {})])",
        # What is under way when one has failed is not waited for.
        "ctx.spawn_all([('c/PROMPT.md', {}), ('b/PROMPT.md', {})])",
    ],
)
async def test_a_deck_that_fails_is_an_error_with_its_code(
    expression: str, tmp_path: Path
) -> None:
    """Code catches the failure itself, and not a group that it is in."""
    script = [
        FAILED,
        Reply(deck="*/c/PROMPT.md", fault="hang"),
        Reply(deck="*/a/PROMPT.md", calls=RESPOND),
        calls("code"),
        DONE,
    ]
    reader = decks(tmp_path, reaching(expression), None, "a", "b", "c")
    async with stage(reader, script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        assert unbalanced(on.sink.events) == []
        payload = given(on)["payload"]
    assert result.text == "Done."
    assert payload["code"] == "model_unavailable"
    assert "Overloaded." in payload["words"]


class Host:
    """Runs decks that fail after some seconds, and that take no notice of a cancel."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self._seconds = seconds

    async def spawn(
        self, path: str, input: JSONValue, *, message: str | None = None
    ) -> JSONValue:
        """Fail, later."""
        del input, message
        with trio.CancelScope(shield=True):
            await trio.sleep(self._seconds[path])
        raise ActionFailed(f"{path} failed", code=path)


async def test_of_several_failures_the_first_call_s_is_told(
    autojump_clock: MockClock,
) -> None:
    """It is the same one each time, whichever came first."""
    host = Host({"late": 2, "early": 1})
    context = ComputeContext(
        host,  # type: ignore[arg-type]  # as much of one as is asked for here
        input={},
        run_id="run-1",
        action_call_id="call-1",
        depth=1,
    )
    with pytest.raises(ActionFailed) as caught:
        await context.spawn_all([("late", None), ("early", None)])
    assert caught.value.code == "late"


async def test_a_failure_that_code_lets_pass_is_the_action_s(tmp_path: Path) -> None:
    """The model reads the code and the words of the deck that failed below."""
    code = "async def run(ctx):\n    await ctx.spawn_all([('b/PROMPT.md', {})])\n"
    script = [FAILED, calls("code"), DONE]
    async with stage(decks(tmp_path, code, None, "b"), script) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        envelope = given(on)
    assert (envelope["status"], envelope["code"]) == (500, "model_unavailable")
    assert "Overloaded." in envelope["message"]


async def test_decks_are_spawned_side_by_side(
    mock_clock: MockClock, tmp_path: Path
) -> None:
    """Three take as long as the slowest, and come back in the order of the calls."""
    seconds = {"a/PROMPT.md": 3, "b/PROMPT.md": 1, "c/PROMPT.md": 2}
    begun: list[str] = []

    async def model(_request: CreateResponse, context: ModelContext) -> Reply:
        if context.deck == "PROMPT.md":
            await trio.lowlevel.checkpoint()
            return calls("code") if context.pass_number == 1 else DONE
        begun.append(context.deck)
        if len(begun) == 3:
            # Only now: the clock does not wait for the threads that load decks.
            mock_clock.autojump_threshold = 0
        await trio.sleep(seconds[context.deck])
        return calls("gambit_respond", payload={"deck": context.deck})

    expression = f"ctx.spawn_all([(path, {{}}) for path in {list(seconds)}])"
    reader = decks(tmp_path, reaching(expression), None, "a", "b", "c")
    async with stage(reader, model) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        assert trio.current_time() == 3
        payload = given(on)["payload"]
    assert payload == {"given": [{"deck": path} for path in seconds]}


NEEDS = (
    '{"type": "object", "required": ["n"], "additionalProperties": false,'
    ' "properties": {"n": {"type": "integer"}, "unit": {"default": "kg"}}}'
)


@pytest.mark.parametrize(
    ("asked", "fits"), [({"n": 7}, True), ({"n": "x"}, False), ({}, False)]
)
@pytest.mark.parametrize("is_one", [True, False])
async def test_what_code_gives_a_deck_is_checked(
    asked: JSONValue, fits: bool, is_one: bool, tmp_path: Path
) -> None:
    """It is held against the deck's contextSchema and filled in, as a call's is."""
    path = "b/PROMPT.md"
    one, several = f"{path!r}, {asked}", f"[({path!r}, {asked})]"
    expression = f"ctx.spawn_and_wait({one})" if is_one else f"ctx.spawn_all({several})"
    schemas = (
        'contextSchema = "n.json"\nresponseSchema = "../any.json"\nrespond = true\n'
    )
    files = {path: root(schemas), "b/n.json": NEEDS}
    script = [Reply(deck="*/b/PROMPT.md", calls=RESPOND), calls("code"), DONE]
    async with stage(decks(tmp_path, reaching(expression), files), script) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        payload = given(on)["payload"]
        logs = on.entries_of(path)
    if fits:
        assert payload == {"given": {"n": 1} if is_one else [{"n": 1}]}
        items = state_from_entries(logs[0]).items
        (context,) = outputs_of(items)["gambit_context"]
        assert json.loads(context) == {"n": 7, "unit": "kg"}
    else:
        assert payload["code"] == "invalid_input"
        assert "n" in payload["words"]
        assert logs == []


@pytest.mark.parametrize("is_compiled", [True, False])
async def test_code_that_was_edited_is_what_runs_next(
    is_compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service need not be started again for a module that has changed.

    Python may keep the compiled code, and takes it for current if the text is as long
    as before and was written in the same second.
    """
    monkeypatch.setattr(sys, "dont_write_bytecode", not is_compiled)
    code = "async def run(ctx):\n    return {'version': 1}\n"
    reader = decks(tmp_path, code)
    script = [calls("code"), DONE]
    async with stage(reader, script) as on:
        found = []
        for version in (1, 2):
            text = MODULE.format(code).replace("1", str(version))
            (tmp_path / "code.py").write_text(text)
            reader.files["code.py"] = text
            result = await on.runtime.run("PROMPT.md", message="Hi.")
            (output,) = outputs_of(result.items)["code"]
            found.append(json.loads(output)["payload"])
    assert found == [{"version": 1}, {"version": 2}]


POSTPONED = """
from __future__ import annotations
from dataclasses import dataclass, field
from gambit_actors import define_deck

@dataclass
class Order:
    names: list[str] = field(default_factory=list)
    count: int = 0

async def run(ctx):
    order = Order(count=ctx.input["n"])
    return {"count": order.count, "names": order.names}

deck = define_deck(run=run)
"""


async def test_a_module_may_postpone_its_annotations(tmp_path: Path) -> None:
    """A dataclass looks its module up by name, and finds it."""
    files = {"PROMPT.md": root(execute("code")), "any.json": ANYTHING}
    reader = coded(tmp_path, files, code=POSTPONED)
    async with stage(reader, [calls("code", n=7), DONE]) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        envelope = given(on)
    assert envelope.get("payload") == {"count": 7, "names": []}


MUTE = """
class Mute(Exception):
    def __str__(self):
        raise RuntimeError("not even that")
"""


class Mute(Exception):
    """Says nothing, not even what it is."""

    def __str__(self) -> str:
        raise RuntimeError("not even that")


@pytest.mark.parametrize("start", ["async def", "def"])
@pytest.mark.parametrize("raised", ["SystemExit(3)", "Mute()"])
async def test_whatever_code_raises_is_an_envelope(
    raised: str, start: str, tmp_path: Path
) -> None:
    """To exit, or to raise what cannot be shown, ends the action and nothing else."""
    code = f"{MUTE}\n{start} run(ctx):\n    raise {raised}\n"
    async with stage(decks(tmp_path, code), [calls("code"), DONE]) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        assert unbalanced(on.sink.events) == []
        envelope = given(on)
    assert envelope["status"] == 500
    assert raised.partition("(")[0] in envelope["message"]
    assert result.text == "Done."


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("problem", [SystemExit, Mute])
async def test_whatever_a_tool_raises_is_an_envelope(
    problem: type[BaseException], is_async: bool
) -> None:
    """The program around a run is no more trusted than the code of a deck."""

    def fail(_call: ExternalCall) -> JSONValue:
        raise problem

    async def fail_later(call: ExternalCall) -> JSONValue:
        await trio.lowlevel.checkpoint()
        return fail(call)

    options = RunOptions(on_tool=fail_later if is_async else fail)
    files = {"PROMPT.md": root(TOOL)}
    async with stage(files, [calls("crm"), DONE], options) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        assert unbalanced(on.sink.events) == []
    envelope = json.loads(outputs_of(result.items)["crm"][0])
    assert (envelope["status"], envelope["code"]) == (500, "tool_handler_error")
    assert problem.__name__ in envelope["message"]
    assert result.text == "Done."


@pytest.mark.slow
async def test_threads_that_wait_for_decks_leave_room_for_those(tmp_path: Path) -> None:
    """Sixty plain functions wait at once, more than there are threads for others."""
    code = (
        "import trio\n"
        "def run(ctx):\n"
        "    return trio.from_thread.run(ctx.spawn_and_wait, 'b/PROMPT.md', {})\n"
    )
    waiting = 0
    together = trio.Event()

    async def model(_request: CreateResponse, context: ModelContext) -> Reply:
        nonlocal waiting
        if context.deck == "PROMPT.md":
            await trio.lowlevel.checkpoint()
            return calls("code") if context.pass_number == 1 else DONE
        waiting += 1
        if waiting == 60:
            together.set()
        await together.wait()
        return Reply(calls=RESPOND)

    texts: list[str] = []
    async with stage(decks(tmp_path, code, None, "b"), model) as on:
        loaded = await on.runtime.load("PROMPT.md")

        async def run_one() -> None:
            texts.append((await on.runtime.run(loaded, message="Hi.")).text)

        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                for _ in range(60):
                    nursery.start_soon(run_one)
    assert texts == ["Done."] * 60


async def test_what_code_keeps_is_in_the_log_of_the_root(tmp_path: Path) -> None:
    """A child's code keeps it for the session: whoever takes that up has it."""
    keeps = MODULE.format(
        "async def run(ctx):\n"
        "    await ctx.set_session_meta('seen', ctx.input)\n"
        "    await ctx.set_session_meta('gone', 1)\n"
        "    await ctx.set_session_meta('gone', None)\n"
        "    return {'seen': ctx.get_session_meta('seen')}\n"
    )
    below = child(execute("code").replace("any.json", "../any.json"))
    files = {
        "PROMPT.md": root(action("a")),
        "a/PROMPT.md": below.replace("code.py", "../code.py"),
        "any.json": ANYTHING,
    }
    script = [
        Reply(deck="*/a/PROMPT.md", pass_number=1, calls=calls("code", n=7).calls),
        Reply(deck="*/a/PROMPT.md", calls=RESPOND),
        calls("a"),
        DONE,
    ]
    async with stage(coded(tmp_path, files, code=keeps), script) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        assert state_from_entries(on.entries()).meta == {"seen": {"n": 7}}
        assert state_from_entries(on.entries(1)).meta == {}


async def test_what_the_session_cannot_keep_is_told_to_the_code(
    tmp_path: Path,
) -> None:
    """A value that is nested too deep for a log is refused, and the run goes on."""
    keeps = MODULE.format(
        "async def run(ctx):\n"
        "    value = 1\n"
        "    for _ in range(450):\n"
        "        value = [value]\n"
        "    await ctx.set_session_meta('deep', value)\n"
    )
    files = {"PROMPT.md": root(execute("code")), "any.json": ANYTHING}
    async with stage(coded(tmp_path, files, code=keeps), [calls("code"), DONE]) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        assert state_from_entries(on.entries()).meta == {}
    envelope = json.loads(outputs_of(result.items)["code"][0])
    assert envelope["code"] == "invalid_meta"
    assert "nested deeper than 200 levels" in envelope["message"]
