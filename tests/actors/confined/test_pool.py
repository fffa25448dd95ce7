"""Confined processes are kept warm, bounded, and never left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from gambit_actors.actors.confined.confinement import CannotConfine, Confinement
from gambit_actors.actors.confined.pool import WorkerPool
from gambit_actors.actors.confined.preparing import platform_here
from gambit_actors.actors.confined.rules import Platform
from gambit_actors.deck.permissions import Permissions, RunAccess
from gambit_actors.errors import ActionFailed
from tests.actors.confined.trying import (
    Bench,
    bench,
    is_there,
    needs_landlock,
    wait_gone,
)

pytestmark = [needs_landlock, pytest.mark.slow]

PID = "import os\ndef run(ctx):\n    return os.getpid()\n"
HANG = (
    "import os\n"
    "def run(ctx):\n"
    "    ctx.log(str(os.getpid()))\n"
    "    while True:\n"
    "        pass\n"
)
# Finds the pipe to the runtime, as code that means harm would.
PIPE = (
    "import gc, os\n"
    "from gambit_actors.actors.confined.worker import Pipe\n"
    "def run(ctx):\n"
    "    pipe = [one for one in gc.get_objects() if type(one).__name__ == 'Pipe'][0]\n"
    "    out = pipe._replies\n"
)
MANY = """
    for n in range(2000):
        pipe.send(Spawn(call=1, id=n, path='slow', input=0))
"""
# Nested more deeply than can be read.
DEEP = """
    os.write(out, b'\\0\\0\\x40\\0{"type":"done","result":' + b'[' * 16360)
"""


async def wait_logged(on: Bench) -> str:
    """Wait for the first thing that the code says."""
    with trio.fail_after(20):
        await on.asked.logged.wait()
    return str(on.asked.logs[0]["message"])


async def test_a_process_is_used_again(tmp_path: Path) -> None:
    """The same module with the same permissions has the same process twice."""
    async with bench(tmp_path) as on:
        first, second = await on.run(PID), await on.run(PID)
        other = await on.run(PID, Permissions(net=True))
    assert first == second
    assert other != first


async def test_a_failure_does_not_cost_the_process(tmp_path: Path) -> None:
    """Code that raises is told, and its process waits for the next call."""
    source = (
        "import os\ndef run(ctx):\n"
        "    if ctx.input:\n        raise ValueError(ctx.input)\n"
        "    return os.getpid()\n"
    )
    async with bench(tmp_path) as on:
        first = await on.run(source)
        with pytest.raises(ActionFailed, match="ValueError: Oh"):
            await on.run(source, given="Oh")
        assert await on.run(source) == first


async def test_an_edited_module_has_another_process(tmp_path: Path) -> None:
    """What is run is what the file says now, and so for the files beside it."""
    source = "import helper, os\ndef run(ctx):\n    return [helper.N, os.getpid()]\n"
    async with bench(tmp_path) as on:
        helper = on.folder / "helper.py"
        helper.write_text("N = 1\n")
        first = await on.run(source)
        helper.write_text("N = 20\n")
        second = await on.run(source)
        third = await on.run(source.replace("helper.N", "-helper.N"))
    said = [first, second, third]
    assert [one[0] for one in said] == [1, 20, -20]
    assert len({one[1] for one in said}) == 3


async def test_the_oldest_idle_process_gives_way(tmp_path: Path) -> None:
    """Only so many processes wait for another call."""
    pool = WorkerPool(max_idle=1)
    on = Bench(Confinement(pool, platform_here()), tmp_path)
    try:
        first = await on.run(PID)
        second = await on.run(PID, Permissions(net=True))
        assert not is_there(first)
        assert second in pool.pids
    finally:
        with trio.move_on_after(10, shield=True):
            await pool.close()
    assert not is_there(second)


async def test_calls_wait_for_a_place_and_those_that_wait_give_theirs(
    tmp_path: Path,
) -> None:
    """With one place, a call that waits for a deck lets another one run."""
    pool = WorkerPool(max_busy=1)
    on = Bench(Confinement(pool, platform_here()), tmp_path)
    source = (
        "async def run(ctx):\n"
        "    if ctx.input:\n        await ctx.spawn_and_wait('slow')\n"
        "    return 'quick'\n"
    )
    try:
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: on.run(source, given=True))
                await on.asked.waiting.wait()
                assert await on.run(source) == "quick"
                nursery.cancel_scope.cancel()
    finally:
        with trio.move_on_after(10, shield=True):
            await pool.close()


async def test_leaving_ends_every_process(tmp_path: Path) -> None:
    """Idle, ready or busy: none is there when the runtime has closed."""
    async with bench(tmp_path) as on:
        await on.run(PID)
        pids = on.confinement.pids
        assert len(pids) == 2  # One that waits for a call, and one for a purpose.
    assert not any(map(is_there, pids))


async def test_a_cancelled_call_leaves_no_process(tmp_path: Path) -> None:
    """When the cancel returns, the process is gone, though its code did not listen."""
    async with bench(tmp_path) as on:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(on.run, HANG)
            pid = int(await wait_logged(on))
            assert is_there(pid)
            nursery.cancel_scope.cancel()
        assert not is_there(pid)


async def test_a_deadline_ends_the_process_and_what_it_started(tmp_path: Path) -> None:
    """A program that outlives its call is killed along with it."""
    source = (
        "import subprocess, time\n"
        "def run(ctx):\n"
        "    child = subprocess.Popen(['sleep', '1000'])\n"
        "    ctx.log(str(child.pid))\n"
        "    time.sleep(1000)\n"
    )
    async with bench(tmp_path) as on:
        async with trio.open_nursery() as nursery:
            permissions = Permissions(run=RunAccess(commands=("sleep",)))
            nursery.start_soon(on.run, source, permissions)
            child = int(await wait_logged(on))
            nursery.cancel_scope.deadline = trio.current_time()
        await wait_gone(child)


async def test_a_program_left_running_costs_the_process(tmp_path: Path) -> None:
    """Nothing runs on between calls: what was left is killed with its process."""
    source = (
        "import os, subprocess\n"
        "def run(ctx):\n"
        "    child = subprocess.Popen(['sleep', '1000'])\n"
        "    return [os.getpid(), child.pid]\n"
    )
    async with bench(tmp_path) as on:
        permissions = Permissions(run=RunAccess(commands=("sleep",)))
        pid, child = await on.run(source, permissions)
        assert not is_there(pid)
        await wait_gone(child)


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("    os._exit(3)\n", "action_crashed", "ended with code 3"),
        ("    os.abort()\n", "action_crashed", "ended by SIGABRT"),
        ("    os.write(out, b'\\0\\0\\0\\2{]')\n", "action_crashed", "no message"),
        (DEEP, "action_crashed", "no message"),
        ("    os.write(out, b'\\xff' * 8)\n", "action_flooded", "more than is taken"),
        (
            "    while True:\n        pipe.send(Logged(call=1, message='x' * 2**20))\n",
            "action_flooded",
            "said more than",
        ),
        (
            MANY,
            "action_flooded",
            "more than 1000 things",
        ),
        ("    os.close(out)\n    time.sleep(99)\n", "action_crashed", "SIGKILL"),
        ("    return 'x' * 2**25\n", "result_too_large", "33,554"),
    ],
)
async def test_a_process_that_breaks_is_an_error_by_name(
    tmp_path: Path, body: str, code: str, words: str
) -> None:
    """Crash, garbage or flood: the call ends with a name for it, and the next works."""
    imports = "import time\nfrom gambit_actors.actors.confined.messages import *\n"
    async with bench(tmp_path) as on:
        with trio.fail_after(60):
            with pytest.raises(ActionFailed, match=words) as caught:
                await on.run(imports + PIPE + body)
            pid = await on.run(PID)
        assert caught.value.code == code
        assert isinstance(pid, int)


async def test_a_child_that_holds_the_pipe_does_not_hold_the_call(
    tmp_path: Path,
) -> None:
    """A process that ends is noticed though a fork of it has its pipes open."""
    source = (
        "import os, time\n"
        "def run(ctx):\n"
        "    if os.fork() == 0:\n        time.sleep(1000)\n"
        "    os._exit(0)\n"
    )
    async with bench(tmp_path) as on:
        with trio.fail_after(30), pytest.raises(ActionFailed, match="code 0"):
            await on.run(source, Permissions(run=True))


async def test_a_lie_about_confinement_is_not_passed_on(tmp_path: Path) -> None:
    """What the platform lacks is said by the runtime: no process is even started."""
    pool = WorkerPool()
    none = Platform(is_posix=True, landlock_abi=0, has_filter=True)
    on = Bench(Confinement(pool, none), tmp_path)
    with pytest.raises(CannotConfine, match="read cannot be restricted"):
        await on.run(PID)
    assert pool.pids == frozenset()


async def test_a_runtime_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    """Kill -9 of the runtime ends its processes, and what they have started."""
    (tmp_path / "tried.py").write_text(
        "from gambit_actors import define_deck\n"
        "import os, subprocess, time\n"
        "def run(ctx):\n"
        "    child = subprocess.Popen(['sleep', '1000'])\n"
        "    ctx.log(f'{os.getpid()} {child.pid}')\n"
        "    time.sleep(1000)\n"
        "deck = define_deck(run=run)\n"
    )
    program = (
        "import os, trio\n"
        "from gambit_actors.actors.confined.confinement import open_confinement\n"
        "from gambit_actors.actors.confined.messages import Call\n"
        "from gambit_actors.deck.permissions import Permissions, RunAccess\n"
        "class Host:\n"
        "    def log(self, fields):\n"
        "        pids = ' '.join(map(str, confinement.pids))\n"
        "        os.write(1, f'{fields[\"message\"]} {pids}'.encode())\n"
        "async def main():\n"
        "    global confinement\n"
        "    async with open_confinement() as confinement:\n"
        "        call = Call(input=0, run_id='', action_call_id='', depth=1, meta={})\n"
        "        run = RunAccess(commands=('sleep',))\n"
        f"        await confinement.run({str(tmp_path / 'tried.py')!r},\n"
        "            Permissions(run=run), call, Host())\n"
        "trio.run(main)\n"
    )
    parent = await trio.lowlevel.open_process(
        [sys.executable, "-c", program], stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    try:
        with trio.fail_after(30):
            said = bytes(await parent.stdout.receive_some())
        pids = set(map(int, said.split()))
        assert len(pids) == 3
        assert all(map(is_there, pids))
    finally:
        os.kill(parent.pid, signal.SIGKILL)
        with trio.move_on_after(10, shield=True):
            await parent.wait()
            await parent.stdout.aclose()
    for pid in pids:
        await wait_gone(pid)


async def test_what_the_code_asks_for_is_done_by_the_host(tmp_path: Path) -> None:
    """Logs, prints, decks, meta and messages cross the pipe, both ways, in order."""
    source = (
        "async def run(ctx):\n"
        "    ctx.log('Begun.', title='T', level='debug', body={'n': 1})\n"
        "    print('Printed.')\n"
        "    one = await ctx.spawn_and_wait('a', 1, message='Hi.')\n"
        "    rest = await ctx.spawn_all([('b', 2), ('c', 3)])\n"
        "    before = ctx.get_session_meta('seen')\n"
        "    await ctx.set_session_meta('seen', [before, 'again'])\n"
        "    await ctx.set_session_meta('gone', None)\n"
        "    await ctx.append_message('user', 'I said so.')\n"
        "    await ctx.append_message('assistant', '  ')\n"
        "    about = [ctx.label, ctx.run_id, ctx.action_call_id, ctx.depth]\n"
        "    return [one, *rest, ctx.get_session_meta('seen'), about, ctx.input]\n"
    )
    async with bench(tmp_path) as on:
        on.asked.meta["seen"] = "once"
        said = await on.run(source, given={"q": 1})
        asked = on.asked
    assert said[:3] == [["a", 1, "Hi."], ["b", 2, None], ["c", 3, None]]
    assert said[3:] == [
        ["once", "again"],
        ["Tried", "run-1", "call-1", 1],
        {"q": 1},
    ]
    assert [one["message"] for one in asked.logs] == ["Begun.", "Printed."]
    assert (asked.logs[0]["title"], asked.logs[0]["level"]) == ("T", "debug")
    assert asked.meta == {"seen": ["once", "again"], "gone": None}
    assert asked.said == [("user", "I said so.")]


async def test_a_plain_function_runs_in_a_thread_and_reaches_the_rest(
    tmp_path: Path,
) -> None:
    """In a thread, what is async is had by trio.from_thread."""
    source = (
        "import threading, trio\n"
        "def run(ctx):\n"
        "    ctx.log('From a thread.')\n"
        "    is_main = threading.current_thread() is threading.main_thread()\n"
        "    return [is_main, trio.from_thread.run(ctx.spawn_and_wait, 'a', 1)]\n"
    )
    async with bench(tmp_path) as on:
        assert await on.run(source) == [False, ["a", 1, None]]
        assert on.asked.logs[0]["message"] == "From a thread."


async def test_failures_keep_their_code_and_details(tmp_path: Path) -> None:
    """What the code says of its failure arrives, and so does that of a child."""
    source = (
        "async def run(ctx):\n"
        "    if ctx.input:\n        await ctx.spawn_and_wait('bad')\n"
        "    ctx.fail('Sold out.', code='sold_out', details={'left': 0})\n"
    )
    async with bench(tmp_path) as on:
        with pytest.raises(ActionFailed, match="Sold out") as own:
            await on.run(source)
        with pytest.raises(ActionFailed, match="bad failed") as child:
            await on.run(source, given=True)
    assert (own.value.code, own.value.details) == ("sold_out", {"left": 0})
    assert child.value.code == "child_failed"


async def test_code_that_stops_waiting_cancels_the_deck(tmp_path: Path) -> None:
    """A deck that the code does not wait for any more is cancelled."""
    source = (
        "import trio\n"
        "import trio.testing\n"
        "async def run(ctx):\n"
        "    async with trio.open_nursery() as nursery:\n"
        "        nursery.start_soon(ctx.spawn_and_wait, 'slow')\n"
        "        await trio.testing.wait_all_tasks_blocked()\n"
        # Asked for in order: when this one is here, the slow one has been asked.
        "        found = await ctx.spawn_and_wait('a')\n"
        "        nursery.cancel_scope.cancel()\n"
        "    return found\n"
    )
    async with bench(tmp_path) as on:
        assert await on.run(source) == ["a", None, None]
        with trio.fail_after(10):
            await on.asked.cancelled.wait()
