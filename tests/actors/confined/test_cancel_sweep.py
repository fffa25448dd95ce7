"""A run with processes and threads can be cancelled at any step: none is left.

The sweep in `tests/actors/test_cancellation.py` has a clock of its own, which real
processes and threads do not keep to. Here time is real, and steps come when they come.
"""

import tempfile
from pathlib import Path

import pytest
import trio

from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.memory_log import MemoryStore
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.runtime import open_runtime
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Call, Reply
from gambit_actors.store.deck_files import DiskReader
from gambit_actors.trace.sinks import MemorySink
from tests.actors.confined.test_confined_runs import GRANTED, action, write
from tests.actors.confined.trying import needs_landlock
from tests.actors.playing import TOOL, Stage, root
from tests.actors.test_cancellation import CancelAt, check_nothing_is_left

pytestmark = [needs_landlock, pytest.mark.slow]

CHILD = (
    'contextSchema = "../any.json"\nresponseSchema = "../any.json"\nrespond = true\n'
)
CHILD_ENTRY = '[[actions]]\nname = "a"\ndescription = "Do."\npath = "a/PROMPT.md"\n'
HANDLERS = """
[handlers.onBusy]
path = "h/PROMPT.md"
delayMs = 1
[handlers.onError]
path = "e/PROMPT.md"
"""
CODE = """
import time
def run(ctx):
    ctx.log("begun")
    time.sleep(0.01)
    return {"n": 1}
"""
BROKEN = "def run(ctx):\n    raise ValueError('no')\n"
NAMES = ("code", "broken", "a", "crm")


def write_decks(folder: Path) -> None:
    """A root that calls confined code, a child, and a tool; and has handlers."""
    entries = action() + action("broken") + CHILD_ENTRY + TOOL + HANDLERS
    write(folder, root(GRANTED + entries), code=CODE, broken=BROKEN)
    write(folder / "a", root(CHILD + action()), code=CODE)
    write(folder / "h", root())
    write(folder / "e", root(CHILD))


def script() -> list[Reply]:
    """All four calls at once, then an answer."""
    respond = (Call(name="gambit_respond", arguments={"payload": {}}),)
    return [
        Reply(deck="*a/PROMPT.md", pass_number=1, calls=(Call(name="code"),)),
        Reply(deck="*a/PROMPT.md", calls=respond),
        Reply(deck="*e/PROMPT.md", calls=respond),
        Reply(deck="*h/PROMPT.md", text="One moment.", times=0),
        Reply(pass_number=1, calls=tuple(Call(name=name) for name in NAMES)),
        Reply(text="Done."),
    ]


def in_a_thread(_call: ExternalCall) -> JSONValue:
    """A tool that is a plain function."""
    return "noted"


def our_processes() -> set[int]:
    """The processes that this one has started and that are still there."""
    pids: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        pids |= set(map(int, (task / "children").read_text().split()))
    return pids


def open_files() -> int:
    """How many descriptors this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def cancelled_at(step: int, folder: Path) -> tuple[bool, bool]:
    """Run, and cancel before the given step: whether it was, and whether it came."""
    sink, store = MemorySink(), MemoryStore(keep=True)
    async with open_runtime(
        ScriptedProvider(script()),
        reader=DiskReader(folder),
        store=store,
        sinks=[sink],
        options=RunOptions(on_tool=in_a_thread),
    ) as runtime:
        deck = await runtime.load("PROMPT.md")
        with trio.CancelScope() as scope:
            instrument = CancelAt(step, scope.cancel)
            trio.lowlevel.add_instrument(instrument)
            try:
                result = await runtime.run(deck, message="Hi.")
                assert result.text == "Done."
            finally:
                trio.lowlevel.remove_instrument(instrument)
        check_nothing_is_left(Stage(runtime, sink, store))
        # Some may wait for other calls, but none that nobody knows of.
        known = runtime._confinement.pids  # noqa: SLF001
        assert our_processes() - BEFORE <= known
    return scope.cancelled_caught, instrument.left <= 0


BEFORE: set[int] = set()


@pytest.mark.parametrize(
    "stride", [pytest.param(7), pytest.param(1, marks=pytest.mark.soak)]
)
async def test_processes_and_threads_end_with_a_cancel(
    stride: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Wherever a cancel comes: no process, file, descriptor or open trace is left."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    folder = tmp_path / "decks"
    write_decks(folder)
    BEFORE.update(our_processes())
    await cancelled_at(10**9, folder)  # Threads and caches are there from now on.
    files = open_files()
    step, cancelled, is_reached = 1, 0, True
    while is_reached:
        was_cancelled, is_reached = await cancelled_at(step, folder)
        cancelled += was_cancelled
        step += stride
        assert our_processes() <= BEFORE
        # A thread that was only reading may be left to finish its line.
        with trio.fail_after(5):  # noqa: ASYNC912  # it need not wait
            while open_files() != files:  # noqa: ASYNC110  # nobody tells of that
                await trio.sleep(0.01)
        assert list(scratch.iterdir()) == []
    assert cancelled * stride > 60
    with capsys.disabled():
        print(f"\n{cancelled} cancellations with processes and threads, none left")  # noqa: T201
