"""Where a model server is and how it is to be treated: settings, as plain values.

Whoever reads an environment or a file makes these; nobody below does. They are the same
for every dialect and every transport.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from gambit_actors.providers.dialects.dialect import Dialect

History: TypeAlias = Literal["sent", "kept"]
"""Who has the conversation: it is ``sent`` whole each time, or ``kept`` by the server
from one call of a run to the next."""


class Secret:
    """A key, which nothing shows by accident.

    Args:
        value: the key itself.
        source: where it comes from, for messages: the name of a variable.
    """

    __slots__ = ("_value", "source")

    def __init__(self, value: str, *, source: str = "") -> None:
        self._value = value
        self.source = source

    def reveal(self) -> str:
        """The key itself, for the one place that sends it."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret(source={self.source!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """How long a server may take, in seconds.

    Attributes:
        connect: to take a connection.
        first_byte: from the request to the beginning of the answer.
        idle: from one piece of the answer to the next; a comment counts as one.
        total: for one attempt, from the request to the end of the answer.
    """

    connect: float = 10.0
    first_byte: float = 120.0
    idle: float = 120.0
    total: float = 1800.0


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """How often a request is sent again that came to nothing, before its first event.

    Attributes:
        most: how many times it is sent again.
        base_seconds: the longest first wait; it doubles from one to the next.
        cap_seconds: the longest wait of all, also if the server asks for a longer one.
    """

    most: int = 3
    base_seconds: float = 0.5
    cap_seconds: float = 30.0


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How much a server is asked at once, by all runs together.

    Attributes:
        requests_per_minute: None for no limit.
        tokens_per_minute: in and out; None for no limit.
        most_at_once: no more requests than this are open.
        start_at_once: how many may be open before anything is known of the server; from
            there on it goes up as answers come, and down when the server refuses.
        is_adaptive: whether it does; if not, ``most_at_once`` is all there is.
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    most_at_once: int = 2000
    start_at_once: int = 64
    is_adaptive: bool = True


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One model server.

    Attributes:
        name: what it is called in settings, traces and messages, and what the names of
            its models begin with: ``openai`` for ``openai/gpt-5``.
        dialect: the language it speaks.
        base_url: what the dialect's paths are put behind.
        key: sent as the dialect has it; None if there is none.
        key_hint: what to set so that there is a key; None if it needs none.
        headers: sent with every request.
        history: who has the conversation inside a run.
        streams: whether answers are asked for as streams.
        sends_plain_key: whether the key may go to another machine without TLS, where
            everybody on the way can read it.
    """

    name: str
    dialect: Dialect
    base_url: str
    key: Secret | None = None
    key_hint: str | None = None
    headers: Mapping[str, str] = {}
    timeouts: Timeouts = Timeouts()
    retries: Retries = Retries()
    pace: Pace = Pace()
    history: History = "sent"
    streams: bool = True
    sends_plain_key: bool = False
