"""Depth, passes and time: what holds where nobody says, and who may say otherwise."""

import json
import time
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.trees import Limits
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall
from gambit_actors.providers.scripts import Call, Reply
from gambit_actors.trace.events import DeckStart, ModelCall
from gambit_actors.trace.trees import unbalanced
from tests.actors.playing import (
    ANYTHING,
    TOOL,
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

pytestmark = pytest.mark.spec("DK-33", "CARD-4")

RESPOND = (Call(name="gambit_respond", arguments={"payload": {}}),)


def rails(**keys: int) -> str:
    """Guardrails of a deck."""
    lines = [f"{key} = {value}\n" for key, value in keys.items()]
    return f"[guardrails]\n{''.join(lines)}" if lines else ""


def chain(depth: int, **at: str) -> dict[str, str]:
    """Decks below each other, ``d0`` on top; some have more to them."""
    files = {"any.json": ANYTHING}
    for level in range(depth):
        own = at.get(f"d{level}", "")
        name = f"d{level + 1}"
        if level + 1 < depth:
            own += action(name, path=f"../{name}/PROMPT.md")
        files[f"d{level}/PROMPT.md"] = child(own) if level else root(own)
    return files


def deeper(depth: int) -> list[Reply]:
    """Each deck calls the one below it, and then says that it is done."""
    script = [
        Reply(deck=f"*d{level}/PROMPT.md", pass_number=1, calls=calls(below).calls)
        for level in range(depth - 1)
        for below in [f"d{level + 1}"]
    ]
    ends = [Reply(deck="*d0/PROMPT.md", text="Done.", times=0)]
    return [*script, *ends, Reply(calls=RESPOND, times=0)]


async def depth_reached(
    files: dict[str, str], depth: int, limits: Limits | None = None
) -> int:
    """How many decks there were below each other, before one was refused."""
    options = RunOptions(limits=limits or Limits())
    async with stage(files, deeper(depth), options) as on:
        result = await on.runtime.run("d0", message="Hi.")
        assert result.text == "Done."
        begun = on.sink.of(DeckStart)
        if len(begun) < depth:
            lowest = items_in(on.entries(len(begun) - 1))
            (refused,) = outputs_of(lowest)[f"d{len(begun)}"]
            envelope = json.loads(refused)
            assert (envelope["status"], envelope["code"]) == (508, "max_depth")
    assert [start.depth for start in begun] == list(range(len(begun)))
    return len(begun)


@pytest.mark.parametrize(
    ("at", "limit", "reached"),
    [
        ({}, None, 3),
        ({"d0": rails(maxDepth=1)}, None, 1),
        ({"d0": rails(maxDepth=5)}, None, 5),
        # Limits and the deck: the smaller counts.
        ({"d0": rails(maxDepth=5)}, 2, 2),
        ({"d0": rails(maxDepth=2)}, 5, 2),
        # A child may say less than those above it.
        ({"d1": rails(maxDepth=2)}, None, 2),
        ({"d0": rails(maxDepth=5), "d2": rails(maxDepth=3)}, None, 3),
        # It may say more where none of them has said anything, and nowhere else.
        ({"d1": rails(maxDepth=5)}, None, 5),
        ({"d0": rails(maxDepth=2), "d1": rails(maxDepth=9)}, None, 2),
        ({"d0": rails(maxDepth=4), "d1": rails(maxDepth=9)}, None, 4),
        ({"d0": rails(maxDepth=4), "d2": rails(maxDepth=9)}, None, 4),
        ({"d1": rails(maxDepth=9)}, 2, 2),
        ({"d2": rails(maxDepth=9)}, 4, 4),
    ],
)
async def test_decks_may_be_only_so_deep(
    at: dict[str, str], limit: int | None, reached: int
) -> None:
    """Three deep unless somebody says; what was said above is not to be raised."""
    limits = Limits(max_depth=limit)
    assert await depth_reached(chain(6, **at), 6, limits) == reached


SPAWNS = """
from gambit_actors import define_deck
from gambit_actors.errors import ActionFailed
async def run(ctx):
    try:
        return await ctx.spawn_and_wait("b/PROMPT.md", {"depth": ctx.depth})
    except ActionFailed as problem:
        return {"code": problem.code, "depth": ctx.depth}
deck = define_deck(run=run)
"""


@pytest.mark.parametrize(
    ("most", "given"),
    [(2, {"code": "max_depth", "depth": 1}), (3, {})],
)
async def test_code_is_a_level_of_its_own(
    most: int, given: JSONValue, tmp_path: Path
) -> None:
    """A deck that an action's code asks for is one deeper than the action."""
    files = {
        "PROMPT.md": root(rails(maxDepth=most) + execute("code")),
        "b/PROMPT.md": child(),
        "any.json": ANYTHING,
    }
    script = [
        calls("code"),
        Reply(deck="*/b/PROMPT.md", calls=RESPOND),
        Reply(text="Done."),
    ]
    async with stage(coded(tmp_path, files, code=SPAWNS), script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        depths = [start.depth for start in on.sink.of(DeckStart)]
    (output,) = outputs_of(result.items)["code"]
    assert json.loads(output)["payload"] == given
    assert depths == [0, 2][: most - 1]


async def test_there_is_no_room_for_code_in_a_deck_that_may_have_nothing_below(
    tmp_path: Path,
) -> None:
    """With a depth of one an action is refused, whether it is a deck or code."""
    files = {
        "PROMPT.md": root(rails(maxDepth=1) + execute("code")),
        "any.json": ANYTHING,
    }
    script = [calls("code"), Reply(text="Then not.")]
    async with stage(coded(tmp_path, files, code=SPAWNS), script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
    envelope = json.loads(outputs_of(result.items)["code"][0])
    assert (envelope["status"], envelope["code"]) == (508, "max_depth")


@pytest.mark.parametrize(
    ("own", "limit", "made"),
    [
        ({}, None, 10),
        ({"maxPasses": 12}, None, 12),
        ({"maxPasses": 12}, 3, 3),
        ({"maxPasses": 2}, 3, 2),
        ({}, 3, 3),
    ],
)
async def test_passes_are_counted(
    own: dict[str, int], limit: int | None, made: int
) -> None:
    """Ten unless the deck says otherwise, and never more than the run's limit."""
    options = RunOptions(limits=Limits(max_passes=limit))
    script = [Reply(calls=(Call(name="crm"),), times=0)]
    files = {"PROMPT.md": root(rails(**own) + TOOL)}
    async with stage(files, script, options) as on:
        result = await on.runtime.try_run("PROMPT.md", message="Hi.")
    assert result.failure is not None
    assert result.failure.code == "max_passes"
    assert sum(isinstance(item, FunctionCall) for item in result.items) == made


@pytest.mark.parametrize(
    ("above", "own", "made"),
    [(12, {}, 12), (2, {}, 2), (2, {"maxPasses": 4}, 4), (4, {"maxPasses": 2}, 2)],
)
async def test_a_child_has_as_many_passes_as_its_parent_unless_it_says(
    above: int, own: dict[str, int], made: int
) -> None:
    """Passes are inherited as a number: each invocation counts for itself."""
    files = {
        "PROMPT.md": root(rails(maxPasses=above) + action("a")),
        "a/PROMPT.md": child(rails(**own) + TOOL),
        "any.json": ANYTHING,
    }
    script = [
        Reply(deck="*/a/PROMPT.md", calls=(Call(name="crm"),), times=0),
        calls("a"),
        Reply(text="Done."),
    ]
    async with stage(files, script) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        told = [e for e in on.sink.of(ModelCall) if e.deck_path == "a/PROMPT.md"]
    assert json.loads(outputs_of(result.items)["a"][0])["code"] == "max_passes"
    assert [event.pass_number for event in told] == list(range(1, made + 1))


@pytest.mark.parametrize(
    ("own", "limit", "seconds"),
    [
        ({}, None, 120),
        ({"timeoutMs": 5000}, None, 5),
        ({"timeoutMs": 5000}, 1, 1),
        ({"timeoutMs": 1000}, 5, 1),
        ({"timeoutMs": 0}, 7, 7),
        ({}, 7, 7),
        ({"timeoutMs": 0}, None, None),
    ],
)
async def test_a_deck_has_only_so_much_time(
    own: dict[str, int],
    limit: float | None,
    seconds: float | None,
    autojump_clock: MockClock,
) -> None:
    """Two minutes unless somebody says; 0 is no limit, and a run's limit holds."""
    options = RunOptions(limits=Limits(timeout_seconds=limit))
    script = [Reply(text="At last.", latency_seconds=10_000)]
    async with stage({"PROMPT.md": root(rails(**own))}, script, options) as on:
        loaded = await on.runtime.load("PROMPT.md")
        began = trio.current_time()
        result = await on.runtime.try_run(loaded, message="Hi.")
        taken = trio.current_time() - began
    if seconds is None:
        assert (taken, result.text) == (10_000, "At last.")
    else:
        assert result.failure is not None
        assert (taken, result.failure.code) == (seconds, "timeout")


@pytest.mark.parametrize(
    ("above", "own", "needed", "taken"),
    [
        # What the parent has is what its child has.
        ({"timeoutMs": 600_000}, {}, 300, 300),
        ({"timeoutMs": 0}, {}, 5000, 5000),
        # The child's own time begins with the child.
        ({"timeoutMs": 0}, {"timeoutMs": 2000}, 5000, 2 + 10),
        # It is never later than the parent's, however much the child asks for.
        ({"timeoutMs": 15_000}, {"timeoutMs": 60_000}, 5000, 15),
        ({"timeoutMs": 15_000}, {"timeoutMs": 0}, 5000, 15),
        ({"timeoutMs": 15_000}, {}, 5000, 15),
    ],
)
async def test_a_child_has_its_parents_time_and_never_more(
    above: dict[str, int],
    own: dict[str, int],
    needed: float,
    taken: float,
    autojump_clock: MockClock,
) -> None:
    """A child that begins late, or asks for more, is cut with its parent."""
    files = {
        "PROMPT.md": root(rails(**above) + action("a")),
        "a/PROMPT.md": child(rails(**own)),
        "any.json": ANYTHING,
    }
    first = 10 if needed > 300 else 0
    script = [
        Reply(deck="*/a/PROMPT.md", calls=RESPOND, latency_seconds=needed - first),
        Reply(pass_number=1, calls=(Call(name="a"),), latency_seconds=first),
        Reply(text="Done."),
    ]
    async with stage(files, script) as on:
        loaded = await on.runtime.load("PROMPT.md")
        began = trio.current_time()
        result = await on.runtime.try_run(loaded, message="Hi.")
        assert trio.current_time() - began == taken
        assert unbalanced(on.sink.events) == []
    is_cut = taken == above["timeoutMs"] / 1000
    assert result.text == ("" if is_cut else "Done.")
    if not is_cut:
        said = json.loads(outputs_of(result.items)["a"][0])
        assert said.get("code") == (None if taken == needed else "timeout")


WAITS = """
import trio
from gambit_actors import define_deck
async def run(ctx):
    # Only now: the clock does not wait for the thread that imports this.
    trio.lowlevel.current_clock().autojump_threshold = 0
    await trio.sleep_forever()
deck = define_deck(run=run)
"""


async def test_code_that_hangs_is_cut_at_the_deadline(
    mock_clock: MockClock, tmp_path: Path
) -> None:
    """A coroutine of an author's is stopped like a model, to the moment."""
    files = {"PROMPT.md": root(rails(timeoutMs=700) + execute("code"))}
    reader = coded(tmp_path, files | {"any.json": ANYTHING}, code=WAITS)
    async with stage(reader, [calls("code")]) as on:
        result = await on.runtime.try_run("PROMPT.md", message="Hi.")
        assert trio.current_time() == pytest.approx(0.7)
        assert unbalanced(on.sink.events) == []
        (output,) = outputs_of(items_in(on.entries()))["code"]
    assert result.failure is not None
    assert result.failure.code == "timeout"
    assert json.loads(output)["code"] == "not_carried_out"


@pytest.mark.slow
async def test_a_deadline_is_kept_in_real_time() -> None:
    """A tenth of a second is that, and at most a tenth of it more."""
    taken = []
    text = root(rails(timeoutMs=100))
    async with stage({"PROMPT.md": text}, [Reply(fault="hang")]) as on:
        loaded = await on.runtime.load("PROMPT.md")
        for _ in range(3):
            began = time.perf_counter()
            result = await on.runtime.try_run(loaded, message="Hi.")
            taken.append(time.perf_counter() - began)
            assert result.status == "failed"
    assert 0.1 <= min(taken) <= 0.11
