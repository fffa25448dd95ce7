"""Where everybody who asks one server waits for a turn.

::

    async with gate.admitted(tokens=estimate) as admission:
        ...                                # ask; admission.waited_seconds is in here
        admission.succeeded()              # or .refused(retry_after_seconds)
        admission.used(tokens)

Turns come in the order in which they were asked for, and a large request is not passed
by small ones: nobody starves. What may go when is decided in
`gambit_actors.providers.pacing`; here is the waiting. A cancelled wait leaves nothing.
"""

import math
from collections import OrderedDict
from collections.abc import Callable
from types import TracebackType
from typing import Self

import trio

from gambit_actors.providers.endpoints import Pace
from gambit_actors.providers.pacing import Sent, Tempo
from gambit_actors.run.ports import ServerPace

_LEAST_WAIT_SECONDS = 1e-6


class Admission:
    """One turn. Entering waits for it; leaving gives it back and waits for nobody.

    Attributes:
        waited_seconds: how long it took to get it.
    """

    __slots__ = ("_gate", "_sent", "_tokens", "waited_seconds")

    def __init__(self, gate: "Gate", tokens: int) -> None:
        self._gate = gate
        self._tokens = tokens
        self._sent: Sent | None = None
        self.waited_seconds = 0.0

    def succeeded(self) -> None:
        """The server has answered: it may stand more."""
        self._gate.on_success()

    def refused(self, retry_after_seconds: float | None = None) -> int | None:
        """The server has more than it can do; it may have said for how long.

        Returns:
            How many requests may be open from now on, if that is fewer than before.
        """
        if self._sent is None:
            return None
        return self._gate.on_refused(self._sent, retry_after_seconds)

    def used(self, tokens: int) -> None:
        """The answer took so many tokens, in and out."""
        if self._sent is not None:
            self._gate.on_used(self._sent, tokens)

    async def __aenter__(self) -> Self:
        # Who is let in at once is about to wait for a server: no checkpoint besides.
        await trio.lowlevel.checkpoint_if_cancelled()
        gate = self._gate
        began = gate.clock()
        self._sent = gate.enter_nowait(self._tokens, began)
        if self._sent is None:
            self._sent = await gate.wait_turn(self._tokens)
            self.waited_seconds = self._sent.at - began
        return self

    async def __aexit__(  # noqa: ASYNC910  # giving back waits for nobody
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._gate.leave()


class Gate:
    """Lets requests to one server go at the pace that it stands.

    Args:
        pace: what is allowed.
        clock: seconds that do not go back. Waiting is done on trio's own clock.
    """

    def __init__(
        self, pace: Pace, *, clock: Callable[[], float] = trio.current_time
    ) -> None:
        self.clock = clock
        self._tempo = Tempo(pace)
        # In the order of their coming. Only the first looks whether it may go.
        self._waiting: OrderedDict[_Waiter, None] = OrderedDict()

    def admitted(self, *, tokens: int = 0) -> Admission:
        """A turn, to be waited for with ``async with``.

        Args:
            tokens: what the request is thought to take, in and out.
        """
        return Admission(self, max(0, tokens))

    def snapshot(self) -> ServerPace:
        """What it is doing now."""
        return ServerPace(
            open=self._tempo.open,
            waiting=len(self._waiting),
            limit=self._tempo.limit,
            paused_seconds=max(0.0, self._tempo.paused_until - self.clock()),
        )

    def enter_nowait(self, tokens: int, now: float) -> Sent | None:
        """Let a request go if it may go at once and nobody waits; else give None."""
        if self._waiting or self._tempo.free_at(tokens, now) > now:
            return None
        return self._tempo.on_sent(tokens, now)

    async def wait_turn(self, tokens: int) -> Sent:
        """Wait until all who came before have gone, and this one may."""
        waiter = _Waiter()
        self._waiting[waiter] = None
        try:
            while True:
                now = self.clock()
                free_at = math.inf
                if self._is_first(waiter):
                    free_at = self._tempo.free_at(tokens, now)
                if free_at <= now:
                    return self._tempo.on_sent(tokens, now)  # noqa: ASYNC910  # it waited
                # Rounding may wake it a hair too early: then it waits for a little.
                await waiter.wait(max(free_at - now, _LEAST_WAIT_SECONDS))
        finally:
            # Gone or given up: the one behind it is first now, and has to look.
            del self._waiting[waiter]
            self._wake_first()

    def leave(self) -> None:
        """A request is over."""
        self._tempo.open -= 1
        if self._waiting:
            self._wake_first()

    def on_success(self) -> None:
        """The server has answered."""
        self._tempo.on_success(len(self._waiting))
        if self._waiting:
            self._wake_first()

    def on_refused(self, sent: Sent, asked: float | None) -> int | None:
        """The server has refused; give the limit if that has lowered it."""
        before = self._tempo.limit
        self._tempo.on_refused(sent, asked, self.clock())
        return self._tempo.limit if self._tempo.limit < before else None

    def on_used(self, sent: Sent, tokens: int) -> None:
        """The server has said what a request took."""
        self._tempo.on_used(sent, max(0, tokens))
        self._wake_first()

    def _is_first(self, waiter: "_Waiter") -> bool:
        return next(iter(self._waiting)) is waiter

    def _wake_first(self) -> None:
        if self._waiting:
            next(iter(self._waiting)).wake()


class _Waiter:
    """One who waits."""

    __slots__ = ("_woken",)

    def __init__(self) -> None:
        self._woken = trio.Event()

    def wake(self) -> None:
        self._woken.set()

    async def wait(self, most_seconds: float) -> None:
        """Wait to be woken, or for so long."""
        with trio.move_on_after(most_seconds):
            await self._woken.wait()
        self._woken = trio.Event()
