"""A runtime in a thread of a program that runs on asyncio."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
import trio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from gambit_actors import Reply, RunResult, ScriptedProvider, open_runtime, run_sync
from gambit_actors.actors.memory_log import MemoryStore
from gambit_actors.actors.runtime import Runtime
from gambit_actors.errors import RequestError
from gambit_actors.run.entries import RunEnded


@pytest.fixture
def deck(tmp_path: Path) -> str:
    """A deck that names no model."""
    (tmp_path / "PROMPT.md").write_text("Be kind.\n")
    return str(tmp_path)


async def ask(portal: BlockingPortal, runtime: Runtime, deck: str) -> RunResult:
    """Have the runtime run a deck, and wait for that in asyncio."""
    run = partial(runtime.run, deck, message="Hi.")
    return await asyncio.wrap_future(portal.start_task_soon(run))


@pytest.mark.spec("CARD-8")
@pytest.mark.slow
def test_what_asyncio_cancels_is_cancelled_in_trio(deck: str) -> None:
    """A run that is given up there ends here, with an ending in its log."""
    store = MemoryStore(keep=True)

    async def main() -> None:
        opened = open_runtime(ScriptedProvider([Reply(fault="hang")]), store=store)
        with (
            start_blocking_portal(backend="trio") as portal,
            portal.wrap_async_context_manager(opened) as runtime,
        ):
            task = asyncio.create_task(ask(portal, runtime, deck))
            while not portal.call(runtime.snapshot):  # noqa: ASYNC110  # it is elsewhere
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    (log,) = store.logs.values()
    ended = log.entries[-1]
    assert isinstance(ended, RunEnded)
    assert ended.status == "cancelled"


def test_without_trio_no_runtime_is_opened(deck: str) -> None:
    """In asyncio itself it says what is missing, and how to have it."""

    async def main() -> None:
        async with open_runtime(ScriptedProvider([])) as runtime:
            await runtime.run(deck, message="Hi.")

    with pytest.raises(RequestError, match="needs Trio"):
        asyncio.run(main())


async def test_run_sync_is_not_for_where_trio_runs(deck: str) -> None:
    """There is an event loop already, and something better than another."""
    await trio.lowlevel.checkpoint()
    with pytest.raises(RequestError, match=r"await Runtime\.run here"):
        run_sync(deck, models=ScriptedProvider([]), message="Hi.")
