"""One runtime for very many runs of all kinds: nothing of them stays behind.

The short version is part of all tests, the long one of ``make soak``. What is compared
is memory, tasks and file handles after a warm-up and at the end. Resident memory is
what a service pays, but it jumps in pages; blocks are every object that Python has
allocated, and see one that is left behind by each run after a few hundred.
"""

import gc
import itertools
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import trio

from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.memory_log import MemoryStore
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.runtime import Runtime, open_runtime
from gambit_actors.deck.model import Deck
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Call, Reply
from gambit_actors.run.ports import LogStore
from gambit_actors.store.deck_files import DiskReader
from tests.actors.playing import ANYTHING, TOOL, root

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="memory is read from /proc"
)

AT_ONCE = 40
BATCH = 200
# Free lists and the like go on filling for some thousand runs, ever more slowly; a run
# that leaves one object behind would add a block each time, for ever.
MOST_BLOCKS = 700
MOST_BLOCKS_PER_RUN = 0.03
MOST_RESIDENT_KB = 2048

ACTIONS = """
[[actions]]
name = "ask"
description = "Ask a colleague."
path = "child/PROMPT.md"
[[actions]]
name = "compute"
description = "Compute."
execute = "compute.py"
contextSchema = "s.json"
responseSchema = "s.json"
"""
CHILD = 'contextSchema = "../s.json"\nresponseSchema = "../s.json"\nrespond = true\n'
COMPUTE = """\
from gambit_actors import define_deck

async def run(ctx):
    return {"n": 1}

deck = define_deck(run=run)
"""


def script() -> list[Reply]:
    """A model that does as it is told, for ever."""
    respond = (Call(name="gambit_respond", arguments={"payload": {}}),)
    note = (Call(name="crm", arguments={"note": "Hi."}),)
    return [
        Reply(deck="*child*", pass_number=1, calls=note, times=0),
        Reply(deck="*child*", calls=respond, times=0),
        Reply(contains="note", pass_number=1, calls=note, times=0),
        Reply(contains="ask", pass_number=1, calls=(Call(name="ask"),), times=0),
        Reply(
            contains="compute", pass_number=1, calls=(Call(name="compute"),), times=0
        ),
        Reply(contains="break", text="Well, I", fault="error", times=0),
        Reply(contains="hang", text="One moment", fault="hang", times=0),
        Reply(text="All done.", times=0),
    ]


async def on_tool(_call: ExternalCall) -> JSONValue:
    """A tool that gives an object of three keys."""
    await trio.lowlevel.checkpoint()
    return {"city": "Bergen", "sky": "rain", "celsius": 9}


class Soak:
    """Runs of all kinds, in one runtime."""

    def __init__(self, runtime: Runtime, deck: Deck) -> None:
        self._runtime = runtime
        self._deck = deck
        self._steps = itertools.cycle(range(60))
        # One thread at a time: how many wait to be used again would be counted, too.
        self._thread = trio.Lock()
        self.done = 0

    async def run(self, count: int) -> None:
        """Run so many, some of them at a time, each kind in its turn."""
        kinds = itertools.cycle(self._kinds())
        while count > 0:
            limiter = trio.CapacityLimiter(AT_ONCE)
            async with trio.open_nursery() as nursery:
                for kind in itertools.islice(kinds, min(count, BATCH)):
                    nursery.start_soon(self._one, kind, limiter)
            count -= BATCH

    async def _one(
        self, kind: Callable[[], Awaitable[None]], limiter: trio.CapacityLimiter
    ) -> None:
        async with limiter:
            await kind()
        self.done += 1

    def _kinds(self) -> Iterator[Callable[[], Awaitable[None]]]:
        for _ in range(2):
            yield self.use_tool
            yield self.ask_child
            yield self.talk_twice
            yield self.watch
            yield self.break_down
            yield self.cancel
        yield self.stop_watching
        yield self.compute
        yield self.load_again

    async def use_tool(self) -> None:
        """Call a tool of the program around."""
        result = await self._runtime.run(self._deck, message="note")
        assert result.text == "All done."

    async def ask_child(self) -> None:
        """Call another deck, which calls a tool."""
        result = await self._runtime.run(self._deck, message="ask")
        assert result.text == "All done."

    async def compute(self) -> None:
        """Call code."""
        async with self._thread:
            result = await self._runtime.run(self._deck, message="compute")
        assert result.text == "All done."

    async def load_again(self) -> None:
        """Name the deck by its path, so that its files are looked at again."""
        async with self._thread:
            result = await self._runtime.run("PROMPT.md", message="Hi.")
        assert result.text == "All done."

    async def talk_twice(self) -> None:
        """Hold a conversation of two turns."""
        async with self._runtime.open_session(self._deck) as session:
            await session.send("note")
            result = await session.send("Hi.")
        assert result.text == "All done."

    async def watch(self) -> None:
        """Follow a stream to its end."""
        async with (
            self._runtime.open_session(self._deck) as session,
            session.stream("note") as stream,
        ):
            seen = [event async for event in stream]
        assert len(seen) > 10
        assert stream.result.text == "All done."

    async def stop_watching(self) -> None:
        """Leave a stream whose model hangs."""
        async with (
            self._runtime.open_session(self._deck) as session,
            session.stream("hang") as stream,
        ):
            async for piece in stream.text():
                assert piece
                break

    async def break_down(self) -> None:
        """Fail, because the model does."""
        result = await self._runtime.try_run(self._deck, message="break")
        assert result.failure is not None
        assert result.failure.code == "model_unavailable"

    async def cancel(self) -> None:
        """Cancel a run that would never end, each time a little later."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_ask_in_vain, self._runtime, self._deck)
            for _ in range(next(self._steps)):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()


async def _ask_in_vain(runtime: Runtime, deck: Deck) -> None:
    await runtime.run(deck, message="hang")


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What a process has at one moment."""

    resident_kb: int
    blocks: int
    tasks: int
    handles: int

    @classmethod
    def now(cls) -> "Figures":
        """Count, with nothing about that waits to be collected."""
        for _ in range(3):  # What is freed by a finalizer may free more.
            gc.collect()
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        resident = status.partition("VmRSS:")[2].split(maxsplit=1)[0]
        return cls(
            resident_kb=int(resident),
            blocks=sys.getallocatedblocks(),
            tasks=trio.lowlevel.current_statistics().tasks_living,
            handles=len(os.listdir("/proc/self/fd")),  # noqa: PTH208  # not by its path
        )


class Soaked(msgspec.Struct, frozen=True, kw_only=True):
    """A soak: what there was when it was warm, and at the end."""

    runs: int
    first: Figures
    last: Figures

    def tell(self) -> str:
        """The first and the last of everything, in words."""
        first, last = self.first, self.last
        return (
            f"{self.runs} runs: resident {first.resident_kb} to {last.resident_kb} KB,"
            f" blocks {first.blocks} to {last.blocks},"
            f" tasks {first.tasks} to {last.tasks},"
            f" file handles {first.handles} to {last.handles}"
        )

    def check(self) -> None:
        """Make sure that nothing has grown."""
        assert self.last.tasks == self.first.tasks, self.tell()
        assert self.last.handles <= self.first.handles, self.tell()
        most_blocks = self.first.blocks + MOST_BLOCKS + MOST_BLOCKS_PER_RUN * self.runs
        assert self.last.blocks < most_blocks, self.tell()
        most_kb = self.first.resident_kb + MOST_RESIDENT_KB
        assert self.last.resident_kb < most_kb, self.tell()


async def soak(
    folder: Path, *, warm_up: int, runs: int, store: LogStore | None = None
) -> Soaked:
    """Open a runtime, let it run warm, and then for long."""
    (folder / "child").mkdir()
    (folder / "PROMPT.md").write_text(root(ACTIONS + TOOL))
    (folder / "child" / "PROMPT.md").write_text(root(CHILD + TOOL))
    (folder / "s.json").write_text(ANYTHING)
    (folder / "compute.py").write_text(COMPUTE)
    async with open_runtime(
        ScriptedProvider(script()),
        reader=DiskReader(folder),
        store=store,
        sinks=[lambda _event: None],  # Traces are on, and nothing of them is kept.
        options=RunOptions(on_tool=on_tool),
    ) as runtime:
        everything = Soak(runtime, await runtime.load("PROMPT.md"))
        await everything.run(warm_up)
        first = Figures.now()
        await everything.run(runs)
        last = Figures.now()
        assert everything.done == warm_up + runs
        assert runtime.snapshot() == ()
    return Soaked(runs=runs, first=first, last=last)


@pytest.mark.slow
@pytest.mark.spec("CARD-8")
async def test_many_runs_leave_nothing_behind(tmp_path: Path) -> None:
    """After some hundred runs of all kinds there is no more of anything than before."""
    soaked = await soak(tmp_path, warm_up=600, runs=1500)
    soaked.check()


@pytest.mark.slow
async def test_what_is_left_behind_is_seen(tmp_path: Path) -> None:
    """A store that keeps every log is caught: the check can fail."""
    store = MemoryStore(keep=True)
    soaked = await soak(tmp_path, warm_up=200, runs=200, store=store)
    with pytest.raises(AssertionError, match="200 runs: resident"):
        soaked.check()


@pytest.mark.slow
@pytest.mark.soak
async def test_fifty_thousand_runs_leave_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A runtime that has run for long is no larger than one that is just warm."""
    soaked = await soak(tmp_path, warm_up=2_000, runs=50_000)
    with capsys.disabled():
        print(f"\n{soaked.tell()}")  # noqa: T201
    soaked.check()
