"""How long each phase of one attempt may take, kept by one cancel scope."""

import trio

from gambit_actors.providers.endpoints import Timeouts
from gambit_actors.providers.errors import Phase, ProviderTimeout


class Phases:
    """The deadlines of an attempt, which begins when this is made.

    Args:
        provider: who is asked, for messages.
        timeouts: how long it may take.
    """

    def __init__(self, provider: str, timeouts: Timeouts) -> None:
        self._provider = provider
        self._timeouts = timeouts
        self._total_at = trio.current_time() + timeouts.total
        self._scope = trio.CancelScope()
        self._phase: Phase = "connect"

    def begin(self) -> trio.CancelScope:
        """The scope in which a connection and the head are waited for."""
        self._scope = trio.CancelScope()
        self.enter("connect")
        return self._scope

    def enter(self, phase: Phase) -> None:
        """Let another phase begin now."""
        seconds: float = getattr(self._timeouts, phase)
        deadline = trio.current_time() + seconds
        self._phase = phase if deadline < self._total_at else "total"
        self._scope.deadline = min(deadline, self._total_at)

    def seconds_left(self) -> float:
        """What is left of the time for the whole attempt; below 0 if it is over."""
        return self._total_at - trio.current_time()

    def timeout(self, phase: Phase | None = None) -> ProviderTimeout:
        """The error for a phase that took too long; without one, the present one."""
        phase = phase or self._phase
        seconds: float = getattr(self._timeouts, phase)
        return ProviderTimeout(self._provider, phase, seconds)
