"""What code keeps for a session: small values by name, written to the root's log."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from gambit_actors.errors import RequestError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.entries import Entry, MetaSet
from gambit_actors.run.nesting import TOO_DEEP, is_too_deep


class SessionMeta:
    """The values of one session, shared by all code that runs in it.

    The root's actor lends it its log and its state, so that a session that is taken up
    again has what it had.
    """

    __slots__ = ("_append", "_values")

    def __init__(self) -> None:
        self._values: Mapping[str, JSONValue] = {}
        self._append: Callable[[Sequence[Entry]], Awaitable[None]] | None = None

    def bind(
        self,
        values: Mapping[str, JSONValue],
        append: Callable[[Sequence[Entry]], Awaitable[None]],
    ) -> None:
        """Take what the root's state has, and write to the root's log."""
        self._values = values
        self._append = append

    def release(self) -> None:
        """Write to the log no more: its actor is gone.

        A log leads to all that its run shares, and so to this. Without the circle a
        run that is over is freed at once, and not by the collector.
        """
        self._append = None

    def get(self, key: str) -> JSONValue:
        """What is kept under a name; None for nothing."""
        return self._values.get(key)

    def all(self) -> dict[str, JSONValue]:
        """Everything that is kept."""
        return dict(self._values)

    async def set(self, key: str, value: JSONValue) -> None:
        """Keep a value under a name; None forgets it.

        Raises:
            RequestError: it has no JSON form, or is nested too deep.
        """
        name: object = key  # Code may give anything.
        if not isinstance(name, str):
            msg = f"the session keeps values under texts, not under {key!r:.100}"
            raise RequestError(msg)
        try:
            key.encode()
            # As JSON has it, so that it is the same after it was stored.
            plain = None if value is msgspec.UNSET else msgspec.to_builtins(value)
            is_deep = is_too_deep(msgspec.json.encode(plain).decode())
        except (TypeError, ValueError, RecursionError) as problem:
            msg = f"the session cannot keep {key!r}: {problem}"
            raise RequestError(msg) from problem
        if is_deep:
            msg = f"the session cannot keep {key!r}: {TOO_DEEP}"
            raise RequestError(msg)
        assert self._append is not None  # noqa: S101  # bound before anything runs
        await self._append([MetaSet(key=key, value=plain)])
