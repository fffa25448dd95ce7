"""Calls that had begun when a process ended, and the least that names one of them.

A key is long, so it may be given by its end, or by the name of the tool or action where
only one call of that is open.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

from gambit_actors.cli.flow import printable
from gambit_actors.cli.refusing import Refused
from gambit_actors.errors import RequestError, StoreError
from gambit_actors.run.doubts import idempotency_key
from gambit_actors.run.states import RunState, state_from_entries
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.store.log_reading import read_file

_LEAST_CHARACTERS = 4
"""Of a key, or nobody would see in a digit that it is the end of one."""


class OpenCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call without an output, by its idempotency key."""

    key: str
    name: str


def open_calls(store: str, run_id: str) -> list[OpenCall]:
    """The calls without an output of a run, and of all runs below it.

    Among them are all that are in doubt. Logs that cannot be read have none; who goes
    on with the run will say so.
    """
    found: list[OpenCall] = []
    waiting, seen = [run_id], {run_id}
    while waiting:
        current = waiting.pop()
        state = _state_of(store, current)
        for call_id, started in state.started.items():
            call = state.pending.get(call_id)
            if call is None or call_id in state.finished:
                continue
            key = idempotency_key(current, call_id)
            found.append(OpenCall(key=key, name=call.name))
            if started.run_id is not None and started.run_id not in seen:
                seen.add(started.run_id)
                waiting.append(started.run_id)
    return found


def key_named(calls: Sequence[OpenCall], name: str) -> str:
    """The key of the call that is meant; the name itself if none is.

    Raises:
        Refused: several may be.
    """
    if any(call.key == name for call in calls):
        return name
    for meant in (
        [call for call in calls if call.name == name],
        [call for call in calls if call.key.endswith(name)],
    ):
        if len(meant) > 1:
            names = ", ".join(short_name(calls, call.key) for call in meant)
            words = f"--answer {name}=... may be about several calls: {names}"
            raise Refused(printable(words))
        if meant:
            return meant[0].key
    return name


def short_name(calls: Sequence[OpenCall], key: str) -> str:
    """The least that names a call: that of its tool, or the end of its key."""
    names = [call.name for call in calls if call.key == key]
    for name in (*names, *_ends_of(key)):
        meant = [call for call in calls if call.name == name]
        meant = meant or [call for call in calls if call.key.endswith(name)]
        if len(meant) == 1 and meant[0].key == key:
            return name
    return key


def _ends_of(key: str) -> Iterator[str]:
    """The ends of a key that begin where a part of it does, the shortest first."""
    starts = [found.end() for found in re.finditer(r"[^A-Za-z0-9]", key)]
    for start in reversed(starts):
        if len(key) - start >= _LEAST_CHARACTERS:
            yield key[start:]


def _state_of(store: str, run_id: str) -> RunState:
    try:
        path = DiskStore(store).path_of(run_id)
        return state_from_entries(list(read_file(path)[0].entries))
    except (OSError, RequestError, StoreError):
        return state_from_entries([])
