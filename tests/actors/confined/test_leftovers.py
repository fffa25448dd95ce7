"""What a call leaves running, or keeps, speaks for no call but its own."""

from pathlib import Path

import pytest
import trio

from gambit_actors.errors import ActionFailed
from tests.actors.confined.trying import bench, is_there, needs_landlock

pytestmark = [needs_landlock, pytest.mark.slow]

HEAD = "import os, threading, time, trio\nKEPT = []\n"
THREAD = """
def later(ctx):
    time.sleep(0.2)
    ctx.log('late')
    trio.from_thread.run(ctx.set_session_meta, 'late', True)
    trio.from_thread.run(ctx.append_message, 'user', 'late')

def run(ctx):
    if ctx.input:
        threading.Thread(target=later, args=(ctx,), daemon=True).start()
    else:
        time.sleep(0.5)
    return os.getpid()
"""
FROM_THREAD = """
def later(ctx, token):
    trio.from_thread.run(trio.sleep, 0.2, trio_token=token)
    trio.from_thread.run(ctx.append_message, 'user', 'late', trio_token=token)

async def run(ctx):
    token = trio.lowlevel.current_trio_token()
    if ctx.input:
        threading.Thread(target=later, args=(ctx, token), daemon=True).start()
    else:
        await trio.sleep(0.5)
    return os.getpid()
"""
TASK = """
async def later(ctx):
    await trio.sleep(0.2)
    await ctx.append_message('user', 'late')

async def run(ctx):
    if ctx.input:
        trio.lowlevel.spawn_system_task(later, ctx)
    else:
        await trio.sleep(0.5)
    return os.getpid()
"""
ABANDONED = """
async def run(ctx):
    if ctx.input:
        with trio.move_on_after(0.05):
            await trio.to_thread.run_sync(time.sleep, 60, abandon_on_cancel=True)
    return os.getpid()
"""
KEPT = """
async def run(ctx):
    KEPT.append(ctx)
    said = []
    for ask in (
        lambda: KEPT[0].append_message('user', 'mine'),
        lambda: KEPT[0].set_session_meta('key', 'mine'),
        lambda: KEPT[0].spawn_and_wait('a'),
    ):
        try:
            await ask()
        except RuntimeError as problem:
            said.append(str(problem))
    return [os.getpid(), said]
"""
FORGED = """
import gc
from gambit_actors.actors.confined.messages import *
from gambit_actors.actors.confined.worker import Pipe
def run(ctx):
    pipe = [one for one in gc.get_objects() if type(one).__name__ == 'Pipe'][0]
    for number in (0, 2, 99):
        pipe.send(Logged(call=number, message='forged'))
        pipe.send(Say(call=number, role='user', content='forged'))
        pipe.send(Done(call=number, result='forged'))
    return 'own'
"""


@pytest.mark.parametrize("source", [THREAD, FROM_THREAD, TASK])
async def test_what_runs_on_is_not_credited_to_the_next_call(
    tmp_path: Path, source: str
) -> None:
    """Its process is gone when the call is over, and with it all that it would say."""
    async with bench(tmp_path) as on:
        first = await on.run(HEAD + source, given=True)
        assert not is_there(first)
        second = await on.run(HEAD + source, given=False)
        third = await on.run(HEAD + source, given=False)
        asked = on.asked
    assert first != second
    assert second == third  # Who leaves nothing keeps its process.
    assert (asked.logs, asked.meta, asked.said) == ([], {}, [])


async def test_a_thread_that_was_abandoned_costs_the_process(tmp_path: Path) -> None:
    """Also one of Trio's own that nobody waits for any more."""
    async with bench(tmp_path) as on:
        first = await on.run(HEAD + ABANDONED, given=True)
        assert not is_there(first)


async def test_a_failure_that_leaves_a_thread_costs_the_process(tmp_path: Path) -> None:
    """How the call ended makes no difference."""
    source = (
        "def run(ctx):\n"
        "    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "    ctx.fail(str(os.getpid()))\n"
    )
    async with bench(tmp_path) as on:
        with pytest.raises(ActionFailed) as caught:
            await on.run(HEAD + source)
        assert not is_there(int(str(caught.value)))


async def test_a_context_is_over_with_its_call(tmp_path: Path) -> None:
    """A context that was kept is refused, in the code that uses it."""
    async with bench(tmp_path) as on:
        first, said_first = await on.run(HEAD + KEPT)
        assert said_first == []
        on.asked.meta.clear()
        on.asked.said.clear()
        second, said = await on.run(HEAD + KEPT)
        asked = on.asked
    assert first == second
    assert said == ["the call that this context was given to is over"] * 3
    assert (asked.meta, asked.said) == ({}, [])


async def test_messages_of_other_calls_are_dropped(tmp_path: Path) -> None:
    """Whatever a process says for another call, the runtime does not heed."""
    async with bench(tmp_path) as on:
        with trio.fail_after(30):
            assert await on.run(FORGED) == "own"
        assert (on.asked.logs, on.asked.said) == ([], [])
