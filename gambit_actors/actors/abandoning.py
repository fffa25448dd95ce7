"""Runs below another that nobody goes on with: their logs are given an end.

When a process ends, what is below a run ends with it. Most of that is taken up again.
A handler is not: what kept it busy is over. Nor is a deck whose call was given up, or
that code does not ask for a second time. Their logs would look for ever as if somebody
was still at work, so they are closed by whoever goes on with the run above. What had
begun in them is told: nobody knows whether it happened, and nobody will ask.
"""

from collections.abc import Iterable

from gambit_actors.actors.trees import PastRun
from gambit_actors.errors import StoreError
from gambit_actors.run.endings import outputs_when_abandoned, run_ended, turn_failed
from gambit_actors.run.entries import CallStarted, Entry, RunStarted
from gambit_actors.run.envelopes import CallSource
from gambit_actors.run.ports import LogReopened, LogStore
from gambit_actors.run.states import RunState, state_from_entries
from gambit_actors.trace import events
from gambit_actors.trace.tracer import Tracer, complain

ABANDONED = "abandoned"
"""The code of a turn that was cut off, and that nobody goes on with."""


async def abandon_left(  # noqa: ASYNC910  # mostly there is nothing to close
    store: LogStore, left: dict[str, PastRun], run_id: str, tracer: Tracer
) -> None:
    """Close what is below a run and was not taken up until its turn ended.

    Args:
        store: where the logs are.
        left: the runs that could have been taken up, by their ids; those that are
            closed are taken out.
        run_id: the run.
        tracer: told what was in doubt.
    """
    below = [past for past in left.values() if past.run.parent_run_id == run_id]
    for past in below:
        await abandon_left(store, left, past.run.run_id, tracer)
        await abandon(store, [past], tracer)
        del left[past.run.run_id]


async def abandon(  # noqa: ASYNC910  # as above
    store: LogStore, runs: Iterable[PastRun], tracer: Tracer
) -> None:
    """Close the logs of runs that nobody goes on with.

    One that cannot be written to is left as it is: it must not keep the run above it
    from going on.
    """
    for past in runs:
        if past.state.is_over:
            continue
        run = past.run
        try:
            reopened = await store.reopen_log(run.run_id)
            await _close(reopened, past, tracer)
        except StoreError as problem:
            complain(
                "a run that nobody goes on with has no end in its log",
                run=run.run_id,
                why=str(problem),
            )


async def _close(reopened: LogReopened, past: PastRun, tracer: Tracer) -> None:
    # As it is now: an earlier try may have been cut off in the middle.
    state = state_from_entries(reopened.entries)
    entries: list[Entry] = []
    if state.turns and state.ended is None:
        why = "the process that was at it has ended, and nobody goes on with it"
        ended = turn_failed("cancelled", ABANDONED, why)
        entries += outputs_when_abandoned(state, why, _source_of(past.run))
        entries.append(ended)
        _tell(past.run, state, tracer)
    else:
        ended = state.ended or turn_failed("cancelled", ABANDONED, "it never began")
    entries.append(
        run_ended(ended, turns=state.turns, status=ended.status, spent=past.spent)
    )
    try:
        await reopened.log.append(entries)
    finally:
        await reopened.log.aclose()  # noqa: ASYNC102  # a log that is let go waits for nothing


def _source_of(run: RunStarted) -> CallSource:
    return CallSource(
        run_id=run.root_run_id or run.run_id,
        parent_call_id=run.parent_call_id,
        deck_path=run.deck,
    )


def _tell(run: RunStarted, state: RunState, tracer: Tracer) -> None:
    """Tell of a run that is closed, and of what was in doubt in it."""
    if not tracer.is_on:
        return
    root = run.root_run_id or run.run_id
    for started in state.started.values():
        if started.call_id in state.pending and _is_in_doubt(started, state):
            tracer.emit(
                events.CallInDoubt(
                    run_id=root,
                    time=tracer.stamp(),
                    action_call_id=started.call_id,
                    log_run_id=run.run_id,
                    deck_path=run.deck,
                    name=started.name,
                    attempt=started.attempt,
                    choice="fail",
                )
            )
    tracer.emit(
        events.Log(
            run_id=root,
            time=tracer.stamp(),
            action_call_id=run.parent_call_id,
            deck_path=run.deck,
            level="warning",
            title=ABANDONED,
            message=f"{run.deck} was cut off as {run.run_id}, and is not gone on with",
        )
    )


def _is_in_doubt(started: CallStarted, state: RunState) -> bool:
    """Whether nobody knows what became of a call; a deck has a log that says so."""
    return started.call_id not in state.finished and started.run_id is None
