"""Running something that a signal can end in order."""

import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import trio

from gambit_actors.cli.starting import leave


def run_until_stopped(work: Callable[[], Awaitable[None]]) -> int:
    """Run something to its end, or until Ctrl-C, SIGTERM or the end of the terminal.

    It is cancelled where it waits, and not interrupted where it happens to be: what it
    has to put in order, it can. A second signal is not that patient. What it raises
    comes out as it is, and not in a group.

    Returns:
        What a shell calls a command that ended in this way: 0 if it came to its end,
        130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.
    """
    stopped_by = int(signal.SIGINT)
    try:
        with _impatient():
            stopped_by = trio.run(_stoppable, work)
    except* KeyboardInterrupt:
        stopped_by = int(signal.SIGINT)
    return 128 + stopped_by if stopped_by else 0


@contextmanager
def _impatient() -> Iterator[None]:
    """Have SIGTERM end the process at once where nobody waits for it, or again.

    An exception out of nowhere, as elsewhere, is nothing that Trio could put in order.
    """
    before = signal.getsignal(signal.SIGTERM)
    if before == signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


async def _stoppable(work: Callable[[], Awaitable[None]]) -> int:
    """Run something; gives the signal that ended it, and 0 if none did."""
    stopped_by: list[int] = []
    is_done = False
    problem: Exception | None = None
    async with trio.open_nursery() as nursery:
        await nursery.start(_cancel_on_signal, nursery.cancel_scope, stopped_by)
        try:
            await work()
            is_done = True
        except Exception as raised:  # noqa: BLE001  # raised again below
            problem = raised
        nursery.cancel_scope.cancel()
    if problem is not None:
        raise problem
    return 0 if is_done else stopped_by[0]


async def _cancel_on_signal(  # noqa: ASYNC114  # no context manager starts it
    scope: trio.CancelScope,
    stopped_by: list[int],
    task_status: trio.TaskStatus[None],
) -> None:
    with trio.open_signal_receiver(*_stopping_signals()) as signals:
        task_status.started()
        async for number in signals:
            stopped_by.append(number)
            scope.cancel()
            return


def _stopping_signals() -> Iterator[signal.Signals]:
    """The signals that end a command in order."""
    yield signal.SIGINT
    yield signal.SIGTERM
    # Sent when a terminal is closed. Under nohup it is ignored, and stays so.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        yield signal.SIGHUP
