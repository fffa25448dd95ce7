"""Where ``gambit run`` keeps a run: in a store, in a state file, in both or nowhere."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from gambit_actors.actors.memory_log import MemoryStore
from gambit_actors.actors.runtime import Runtime
from gambit_actors.actors.sessions import Session
from gambit_actors.cli.asking import Asked
from gambit_actors.cli.flow import printable
from gambit_actors.cli.refusing import Refused
from gambit_actors.cli.stored_runs import refuse_a_file_as_store
from gambit_actors.errors import NoSuchRun
from gambit_actors.run.entries import Entry, RunResumed, RunStarted
from gambit_actors.run.saved_state_entries import (
    entries_from_saved_state,
    saved_state_from,
)
from gambit_actors.run.saved_states import Mode, SavedState
from gambit_actors.run.states import state_from_entries
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.store.log_reading import read_file
from gambit_actors.store.state_files import load_state, new_id, save_state


class Keeping:
    """Keeps one run as it was asked for.

    Args:
        asked: says where.

    Raises:
        Refused: the store is a file.
        StateFileBroken: the state cannot be gone on with.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._memory = MemoryStore(keep=asked.state is not None)
        self._disk: DiskStore | None = None
        if asked.store is not None:
            refuse_a_file_as_store(asked.store)
            self._disk = DiskStore(asked.store, durability=asked.durability)
        self._previous: SavedState | None = None
        if asked.state is not None:
            self._previous = load_state(asked.state)

    @property
    def is_chat(self) -> bool:
        """Whether the conversation that is gone on with is kept as a chat."""
        return self._previous is not None and self._previous.mode == "chat"

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[DiskStore | MemoryStore]:
        """Have the store that the runtime is to use."""
        if self._disk is None:
            yield self._memory
            return
        async with self._disk as store:
            yield store

    @asynccontextmanager
    async def session(self, runtime: Runtime) -> AsyncIterator[Session]:
        """A conversation with the deck; the one in the state file, if there is one."""
        async with await self._session(runtime) as session:
            yield session

    def save(self, run_id: str | None, *, mode: Mode) -> None:
        """Save the conversation, if that was asked for and there is one.

        Args:
            run_id: the run; None if it has not begun.
            mode: the form of a new file. One that is there keeps its own, but a chat
                becomes items in responses mode.

        Raises:
            StateNotSaved: it could not be.
        """
        path = self._asked.state
        if path is None or run_id is None:
            return
        state = state_from_entries(self._entries(run_id))
        if state.items:
            saved = saved_state_from(state, self._previous, new_id, format=mode)
            save_state(path, saved)

    async def _session(self, runtime: Runtime) -> AbstractAsyncContextManager[Session]:
        deck = self._deck()
        if self._previous is None:
            return runtime.open_session(deck)  # noqa: ASYNC910  # it waits on entering
        loaded = await runtime.load(deck)
        name = _shown_path(loaded.path)
        run = RunStarted(run_id=self._previous.run_id, deck=name, path=loaded.path)
        await self._begin(run, self._previous)
        return runtime.reopen_session(run.run_id, deck=loaded)

    def _deck(self) -> str:
        """The deck; if the run is to be found again, from wherever that is."""
        deck = self._asked.deck
        is_kept = self._disk is not None and not deck.startswith("gambit://")
        return str(Path(deck).absolute()) if is_kept else deck

    async def _begin(self, run: RunStarted, previous: SavedState) -> None:
        """Put a saved conversation into the store, unless it is there."""
        store = self._disk or self._memory
        try:
            read = await store.read_log(run.run_id)
        except NoSuchRun:
            pass
        else:
            self._refuse_another(run.run_id, read.entries, previous)
            return
        entries = entries_from_saved_state(previous, run=run)[1:]
        log = await store.open_log(run)
        # A log with nothing in it but its beginning would not be made.
        await log.append(entries or [RunResumed()])
        await log.aclose()

    def _refuse_another(
        self, run_id: str, entries: Sequence[Entry], previous: SavedState
    ) -> None:
        recorded = saved_state_from(state_from_entries(list(entries)), previous, new_id)
        is_same = recorded.items == previous.items
        if previous.mode == "chat":
            is_same = is_same and recorded.messages == previous.messages
        if not is_same:
            words = (
                f"--store {self._asked.store} has a run {run_id} that says something"
                f" else than --state {self._asked.state}: see gambit log {run_id}"
            )
            raise Refused(printable(words))

    def _entries(self, run_id: str) -> list[Entry]:
        """What there is of a run; nothing if it has not begun."""
        if self._disk is None:
            log = self._memory.logs.get(run_id)
            return list(log.entries) if log else []
        with contextlib.suppress(FileNotFoundError):
            contents, _ = read_file(self._disk.path_of(run_id))
            return contents.entries
        return []


def _shown_path(path: str) -> str:
    """A deck's path as it is shown: its folder and its file."""
    return path if path.startswith("gambit://") else "/".join(Path(path).parts[-2:])
