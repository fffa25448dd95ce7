"""Events as they happen, for whoever watches; a slow watcher never slows a run.

Each subscriber has a bounded queue of its own. When it is full the *oldest* event
goes, for three reasons: who watches wants to know what is happening now; who watches
one run always learns how it ended, because that comes last; and the gap is always in
front of what is left, so `Lagged` stands exactly where the missing events would.

The producer's side is plain code: no checkpoint, and the same small amount of work per
subscriber whatever its state.
"""

import contextlib
from collections import deque
from collections.abc import Iterator

import trio

from gambit_actors.trace.events import Lagged, TraceEvent

_TAKEN_BETWEEN_CHECKPOINTS = 200


class Subscription:
    """The events one subscriber has yet to see. Iterate over it.

    Ends when the feed is closed and all that was waiting has been taken, or when its
    ``with`` block is left. Several tasks may share one; each event goes to one of them.
    """

    def __init__(self, *, max_events: int, run_id: str | None) -> None:
        self._max_events = max_events
        self._run_id = run_id
        self._waiting: deque[TraceEvent] = deque()
        self._missed = 0
        self._taken = 0
        self._is_closed = False
        self._readers = trio.lowlevel.ParkingLot()

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> TraceEvent:
        # Nothing is taken until the last checkpoint is past: cancelled means that no
        # event was lost. What waits is taken mostly without giving way, so that who
        # does nothing but read keeps up with whoever tells a hundred events at a time.
        self._taken += 1
        if self._taken % _TAKEN_BETWEEN_CHECKPOINTS:
            await trio.lowlevel.checkpoint_if_cancelled()
        else:
            await trio.lowlevel.checkpoint()
        while not self._waiting:
            if self._is_closed:
                raise StopAsyncIteration
            await self._readers.park()
        if self._missed:
            return self._take_lagged()
        return self._waiting.popleft()

    def _offer(self, event: TraceEvent) -> None:
        if self._run_id is not None and event.run_id != self._run_id:
            return
        if len(self._waiting) == self._max_events:
            self._waiting.popleft()
            self._missed += 1
        self._waiting.append(event)
        if self._readers:
            self._readers.unpark()

    def _take_lagged(self) -> Lagged:
        # What comes after the gap says when, and in which run, it ended. Without a
        # run_id of the subscriber's own, the events missed may be of any run.
        after = self._waiting[0]
        missed, self._missed = self._missed, 0
        return Lagged(run_id=after.run_id, time=after.time, missed=missed)

    def _close(self) -> None:
        self._is_closed = True
        self._readers.unpark_all()

    def _discard(self) -> None:
        self._waiting.clear()
        self._missed = 0
        self._close()


class LiveFeed:
    """A sink that any number of subscribers can watch, each at its own pace.

    Give it to a `Tracer`. Belongs to the thread of the Trio run that reads from it.
    """

    def __init__(self) -> None:
        self._subscriptions: dict[Subscription, None] = {}
        self._is_closed = False

    @property
    def subscriber_count(self) -> int:
        """How many are watching."""
        return len(self._subscriptions)

    def __call__(self, event: TraceEvent) -> None:
        """Offer an event to everybody who watches. Never waits."""
        for subscription in self._subscriptions:
            subscription._offer(event)  # noqa: SLF001  (two halves of one thing)

    @contextlib.contextmanager
    def subscribe(
        self, *, max_events: int = 1000, run_id: str | None = None
    ) -> Iterator[Subscription]:
        """Watch from now on, until the block is left. Neither end of it can block.

        Args:
            max_events: how many may wait. More than that, and the oldest are missed.
            run_id: watch this run alone.
        """
        if max_events < 1:
            raise ValueError(f"max_events is at least 1, not {max_events}")
        subscription = Subscription(max_events=max_events, run_id=run_id)
        if self._is_closed:
            subscription._close()  # noqa: SLF001
        else:
            self._subscriptions[subscription] = None
        try:
            yield subscription
        finally:
            self._subscriptions.pop(subscription, None)
            subscription._discard()  # noqa: SLF001

    def close(self) -> None:
        """End every iteration once it has given what was waiting. Again is harmless."""
        self._is_closed = True
        for subscription in self._subscriptions:
            subscription._close()  # noqa: SLF001
        self._subscriptions.clear()
