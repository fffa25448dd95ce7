"""The door to confined code: what a runtime opens, and what an action is run by.

It refuses what cannot be enforced on this machine, rather than pretend.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import trio

from gambit_actors.actors.compute import ComputeHost
from gambit_actors.actors.confined.messages import (
    Call,
    Confine,
    Done,
    Failed,
    TooLarge,
)
from gambit_actors.actors.confined.own_files import Sources, own_writable, words_for
from gambit_actors.actors.confined.pool import Crashed, Outcome, WorkerPool
from gambit_actors.actors.confined.preparing import platform_here, prepare
from gambit_actors.actors.confined.rules import Platform, gaps
from gambit_actors.deck.permissions import Permissions
from gambit_actors.errors import ActionFailed

# Killed processes are gone in no time, unless the kernel keeps them.
_CLOSE_SECONDS = 30


class CannotConfine(ActionFailed):
    """A permission cannot be enforced here, and so the code was not run."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="cannot_confine")


class WritesItself(ActionFailed):
    """The code may write what says how much it may do, and so it was not run."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"the action is not run: {words_for(found)}", code="writes_itself"
        )


class NoProcess(ActionFailed):
    """The system has no process for the code now, whatever its permissions are."""

    def __init__(self, problem: OSError) -> None:
        super().__init__(
            f"no process could be started for the action: {problem.strerror}; "
            "it has not run, and may be tried again",
            code="no_process",
        )


class Confinement:
    """Runs code that is kept to its permissions; made by `open_confinement`."""

    def __init__(self, pool: WorkerPool, platform: Platform) -> None:
        self._pool = pool
        self._platform = platform

    @property
    def pids(self) -> frozenset[int]:
        """The processes that there are."""
        return self._pool.pids

    def expect_calls(self) -> None:
        """Have a process ready, because there will be a call for it."""
        # Where little can be enforced, there will hardly be one.
        if self._platform.landlock_abi:
            with suppress(OSError):  # The call itself will say what is wrong.
                self._pool.expect_calls()

    async def run(
        self,
        file: str,
        permissions: Permissions,
        call: Call,
        host: ComputeHost,
        *,
        sources: Sources = frozenset,
    ) -> object:
        """Run the code of a module, and give what it returned.

        Args:
            file: the module, as an absolute path with links followed.
            permissions: what it may do.
            call: what it is given.
            host: does what it asks for.
            sources: what its deck and those around it are made from; see `OwnFiles`.

        Raises:
            CannotConfine: a permission cannot be enforced here.
            WritesItself: the permissions allow the code to lift them.
            NoProcess: the system has none to give.
            ActionFailed: the code said so, or raised something, or its process ended.
            DeckError: the module cannot be read.
        """
        found = gaps(permissions, self._platform)
        if found:
            await trio.lowlevel.checkpoint()
            raise CannotConfine("; ".join(found))
        confine, writable = await trio.to_thread.run_sync(
            _prepared, file, permissions, sources, abandon_on_cancel=True
        )
        if writable is not None:
            raise WritesItself(writable)
        match await self._outcome(confine, call, host):
            case Done(result=result):
                return result
            case Crashed(code=code, message=message):
                raise ActionFailed(message, code=code)
            case Failed(code=code, message=message, details=details):
                raise ActionFailed(message, code=code, details=details)

    async def _outcome(
        self, confine: Confine, call: Call, host: ComputeHost
    ) -> Outcome:
        try:
            return await self._pool.run(confine, call, host)
        except TooLarge as problem:
            words = f"what the action is given is too large: {problem}"
            raise ActionFailed(words, code="input_too_large") from problem
        except UnicodeError as problem:
            words = "what the action is given has text in it that is none"
            raise ActionFailed(words, code="invalid_input") from problem
        except OSError as problem:
            raise NoProcess(problem) from problem


def _prepared(
    file: str, permissions: Permissions, sources: Sources
) -> tuple[Confine, str | None]:
    """What a process needs, and what of its own deck it could write. Blocks."""
    confine = prepare(file, permissions)
    folder = os.path.dirname(file)  # noqa: PTH120
    modules = (file, *confine.modules.values())
    found = own_writable(permissions, folder, modules=modules, sources=sources)
    return confine, found


@asynccontextmanager
async def open_confinement(
    platform: Platform | None = None,
) -> AsyncIterator[Confinement]:
    """Have confined processes until the block is left; then they are ended."""
    pool = WorkerPool()
    try:
        yield Confinement(pool, platform or platform_here())
    finally:
        # None outlives the runtime, however that is left.
        with trio.move_on_after(_CLOSE_SECONDS, shield=True):
            await pool.close()
