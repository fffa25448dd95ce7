"""The beginning of a run as the beginning of another."""

from collections.abc import Sequence

import msgspec

from gambit_actors.errors import RequestError
from gambit_actors.openresponses.items import FunctionCall, FunctionCallOutput
from gambit_actors.run.entries import (
    CallEnded,
    CallNoted,
    CallStarted,
    ChildStarted,
    Entry,
    ItemAdded,
    RunEnded,
    RunResumed,
    RunStarted,
    TurnEnded,
)


def branch_entries(
    entries: Sequence[Entry], run: RunStarted, *, items: int
) -> list[Entry]:
    """A log that shares what another begins with, for a run of its own.

    What belongs to the last item is shared, too: an end of a turn, or the output of a
    call that the runtime made and answered itself. A call that the other run had begun
    and whose output is not shared is made anew: the runs part before it.

    Args:
        entries: the log of the other run.
        run: how the new log begins.
        items: how much of the conversation is shared.

    Raises:
        RequestError: the conversation is not that long.
    """
    end = _end_of(entries, items)
    kept = [e for e in entries[:end] if not isinstance(e, _OF_THE_OTHER)]
    answered = {
        e.item.call_id
        for e in kept
        if isinstance(e, ItemAdded) and isinstance(e.item, FunctionCallOutput)
    }
    answered |= {e.call_id for e in kept if isinstance(e, CallEnded)}
    shared = [e for e in kept if not _is_unanswered(e, answered)]
    return [run, *shared]


def begin_branch(recorded: RunStarted, run_id: str, *, items: int) -> RunStarted:
    """How the log of a branch begins."""
    return msgspec.structs.replace(
        recorded, run_id=run_id, branched_from=f"{recorded.run_id}@{items}"
    )


_OF_THE_OTHER = (RunStarted, RunResumed, RunEnded)


def _end_of(entries: Sequence[Entry], items: int) -> int:
    """Where what is shared ends."""
    _check_items(items, whole=sum(isinstance(entry, ItemAdded) for entry in entries))
    count, end = 0, 0
    is_half = False
    for index, entry in enumerate(entries):
        is_item = isinstance(entry, ItemAdded)
        if is_item and count >= items and not is_half:
            break
        count += is_item
        if isinstance(entry, ItemAdded):
            is_call = isinstance(entry.item, FunctionCall)
            is_half = is_call and entry.source != "model"
        if is_item or (isinstance(entry, TurnEnded) and count >= items):
            end = index + 1
    return end


def _check_items(items: object, *, whole: int) -> None:
    """Refuse a place to branch at that a conversation does not have."""
    if not isinstance(items, int) or isinstance(items, bool):
        raise RequestError(f"items has to be a whole number, and is {items!r}")
    if not whole:
        raise RequestError("the conversation has no items yet: there is no branching")
    if not 1 <= items <= whole:
        msg = f"the conversation has {whole} items: branch at 1 to {whole}, not {items}"
        raise RequestError(msg)


def _is_unanswered(entry: Entry, answered: set[str]) -> bool:
    match entry:
        case CallStarted(call_id=call_id) | CallNoted(call_id=call_id):
            return call_id not in answered
        case ChildStarted(call_id=str() as call_id):
            return call_id not in answered
        case _:
            return False
