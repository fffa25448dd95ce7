"""How much a server is asked at once, and how fast: decisions, with no clock in them.

A `Tempo` is told what happened and when, and says whether, and if not when, the next
request may go. Two rules work together:

- **At once.** The number of open requests goes up by one for each answer until the
  server refuses for the first time, as TCP begins. A refusal halves it, but those that
  were sent before the last halving tell nothing new. From then on it goes up by one for
  each round of answers. It only goes up while it is what holds requests back.
- **Per minute.** In no 60 seconds are there more requests, or tokens, than allowed.
"""

import math
from collections import deque

from gambit_actors.providers.endpoints import Pace

WINDOW_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 60.0
"""However long a server asks to be left alone, it is asked again after this."""

_WHOLE_ROUND = 1 - 1e-9  # Fractions are added up, with errors.


class Sent:
    """A request that may go, or went.

    Attributes:
        at: when it was let go.
        tokens: what it takes; an estimate until the answer is here.
    """

    __slots__ = ("at", "is_counted", "tokens")

    def __init__(self, at: float, tokens: int, *, is_counted: bool) -> None:
        self.at = at
        self.tokens = tokens
        self.is_counted = is_counted  # Whether it is in the minute that is counted.


class Tempo:
    """The state of what one server stands, for all who ask it.

    Attributes:
        open: how many requests are open; whoever ends one takes it off.
        limit: how many may be.
        paused_until: before then no request may go.
    """

    def __init__(self, pace: Pace) -> None:
        self.open = 0
        self.paused_until = -math.inf
        self._most = max(1, pace.most_at_once)
        self._is_adaptive = pace.is_adaptive
        start = pace.start_at_once if pace.is_adaptive else self._most
        self.limit = min(max(1, start), self._most)
        self._rounds = 0.0  # How far the limit is on its way to the next.
        self._was_refused = False
        self._halved_at = -math.inf
        self._most_requests = _from_one(pace.requests_per_minute)
        self._most_tokens = _from_one(pace.tokens_per_minute)
        self._has_rate = (self._most_requests or self._most_tokens) is not None
        self._sent: deque[Sent] = deque()
        self._tokens = 0

    def free_at(self, tokens: int, now: float) -> float:
        """When the next request may go: now or later, or infinity.

        Infinity is for one that has to wait until another has ended.
        """
        if self.open >= self.limit:
            return math.inf
        free_at = self._within_rate_at(tokens, now) if self._has_rate else now
        return max(self.paused_until, free_at)

    def on_sent(self, tokens: int, now: float) -> Sent:
        """A request goes, which `free_at` has said it may."""
        sent = Sent(now, tokens, is_counted=self._has_rate)
        self.open += 1
        if self._has_rate:
            self._sent.append(sent)
            self._tokens += tokens
        return sent

    def on_used(self, sent: Sent, tokens: int) -> None:
        """An answer says how many tokens it took."""
        if sent.is_counted:
            self._tokens += tokens - sent.tokens
        sent.tokens = tokens

    def on_success(self, waiting: int) -> None:
        """The server has answered; so many others wait for their turn."""
        if self.limit >= self._most or self.open + waiting < self.limit:
            return
        if self._is_adaptive:
            self._rounds += 1.0 / self.limit if self._was_refused else 1.0
            if self._rounds >= _WHOLE_ROUND:
                self._rounds = 0.0
                self.limit += 1

    def on_refused(self, sent: Sent, asked: float | None, now: float) -> None:
        """The server has more than it can do, and may have asked for a pause."""
        if asked is not None and asked > 0:
            # Also at a fixed pace: who asks for a pause counts what comes in it.
            until = now + min(asked, LONGEST_PAUSE_SECONDS)
            self.paused_until = max(self.paused_until, until)
        if not self._is_adaptive:
            return
        self._was_refused = True
        if sent.at > self._halved_at:
            self._halved_at = now
            self.limit = max(1, self.limit // 2)
            self._rounds = 0.0

    def _within_rate_at(self, tokens: int, now: float) -> float:
        """When a request keeps within what is allowed in a minute."""
        sent = self._sent
        while sent and sent[0].at + WINDOW_SECONDS <= now:
            self._tokens -= sent[0].tokens
            sent.popleft().is_counted = False
        free_at = now
        if self._most_requests is not None and len(sent) >= self._most_requests:
            first = len(sent) - self._most_requests
            free_at = sent[first].at + WINDOW_SECONDS
        if self._most_tokens is not None:
            over = self._tokens + tokens - self._most_tokens
            free_at = max(free_at, self._without_at(over, now))
        return free_at

    def _without_at(self, over: int, now: float) -> float:
        """When so many tokens will have been sent more than a minute ago."""
        # One that alone is more than a minute's worth goes when it is alone.
        free_at = now
        for sent in self._sent:
            if over <= 0:
                break
            over -= sent.tokens
            free_at = sent.at + WINDOW_SECONDS
        return free_at


def _from_one(most: int | None) -> int | None:
    """A rate. Of a rate of nothing, nobody would ever see the end."""
    return None if most is None else max(1, most)
