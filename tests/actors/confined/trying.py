"""What the tests of confined code share: modules to confine, and a host to ask."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trio

from gambit_actors.actors.compute import Speaker
from gambit_actors.actors.confined.confinement import Confinement, open_confinement
from gambit_actors.actors.confined.messages import Call
from gambit_actors.actors.confined.preparing import platform_here
from gambit_actors.deck.permissions import NOTHING, Permissions
from gambit_actors.errors import ActionFailed
from gambit_actors.openresponses.base import JSONValue

_SCOPES_ABI = 6

needs_landlock = pytest.mark.skipif(
    platform_here().landlock_abi < _SCOPES_ABI or not platform_here().has_filter,
    reason="nothing here can confine code",
)

# Does what its input says, each line on its own, and tells how that went.
TRIALS = """
import ctypes, mmap, os, shutil, socket, subprocess, sys, threading
from pathlib import Path
from gambit_actors import define_deck

def attempt(line):
    try:
        return repr(eval(line))
    except Exception as problem:
        return type(problem).__name__

def run(ctx):
    return [attempt(line) for line in ctx.input]

deck = define_deck(run=run)
"""

REFUSED = "PermissionError"


class Asked:
    """A host that writes down what it is asked, and answers spawns in a fixed way."""

    def __init__(self) -> None:
        self.logs: list[dict[str, JSONValue]] = []
        self.meta: dict[str, JSONValue] = {}
        self.said: list[tuple[str, str]] = []
        self.spawned: list[tuple[str, JSONValue]] = []
        self.logged = trio.Event()
        self.waiting = trio.Event()
        self.cancelled = trio.Event()

    def log(self, fields: dict[str, JSONValue]) -> None:
        """Keep a line."""
        self.logs.append(fields)
        self.logged.set()

    async def spawn(
        self, path: str, input: JSONValue, *, message: str | None = None
    ) -> JSONValue:
        """Answer with the path and the input; some paths fail, or take for ever."""
        await trio.lowlevel.checkpoint()
        self.spawned.append((path, input))
        if path == "bad":
            raise ActionFailed("bad failed", code="child_failed")
        if path == "slow":
            self.waiting.set()
            try:
                await trio.sleep_forever()
            finally:
                self.cancelled.set()
        return [path, input, message]

    def get_meta(self, key: str) -> JSONValue:
        """Look up what is kept."""
        return self.meta.get(key)

    async def set_meta(self, key: str, value: JSONValue) -> None:
        """Keep something."""
        await trio.lowlevel.checkpoint()
        self.meta[key] = value

    async def append_message(self, role: Speaker, content: str) -> None:
        """Keep a message."""
        await trio.lowlevel.checkpoint()
        self.said.append((role, content))


class Bench:
    """Runs modules of one folder."""

    def __init__(self, confinement: Confinement, folder: Path) -> None:
        self.confinement = confinement
        self.folder = folder
        self.asked = Asked()

    def write(self, source: str) -> Path:
        """Write a module with the text, unless it is there."""
        if "define_deck" not in source:
            source = (
                "from gambit_actors import define_deck\n"
                f"{source}\ndeck = define_deck(run=run, label='Tried')\n"
            )
        file = self.folder / "tried.py"
        if not file.exists() or file.read_text() != source:
            file.write_text(source)
        return file

    async def run(
        self,
        source: str,
        permissions: Permissions = NOTHING,
        *,
        given: JSONValue = None,
    ) -> JSONValue:
        """Run a module with the text, which defines a deck or a function ``run``."""
        file = self.write(source)
        call = Call(
            input=given,
            run_id="run-1",
            action_call_id="call-1",
            depth=1,
            meta=self.asked.meta,
        )
        real = str(self.folder.resolve() / file.name)  # noqa: ASYNC240  # no wait
        return await self.confinement.run(real, permissions, call, self.asked)

    async def try_all(self, permissions: Permissions, *lines: str) -> list[str]:
        """Have expressions evaluated, and hear what each came to."""
        found = await self.run(TRIALS, permissions, given=list(lines))
        assert isinstance(found, list)
        return found


@asynccontextmanager
async def bench(folder: Path) -> AsyncIterator[Bench]:
    """Confined processes for the modules of a folder."""
    place = folder / "deck"
    place.mkdir(exist_ok=True)
    async with open_confinement() as confinement:
        yield Bench(confinement, place)


def is_there(pid: int) -> bool:
    """Whether there is such a process; one that has ended and is not reaped is."""
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


async def wait_gone(pid: int) -> None:
    """Wait for the end of a process that is not ours."""
    with trio.fail_after(10):
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            await trio.lowlevel.checkpoint()
            return
        try:
            await trio.lowlevel.wait_readable(process)
        finally:
            os.close(process)
