"""Reading no more of a body than is of use, and not for longer."""

from contextlib import suppress
from typing import Protocol

import trio

from gambit_actors.errors import ProviderError

_WITHIN_SECONDS = 5.0


class HasChunks(Protocol):
    """An answer whose body is still coming."""

    async def next_chunk(self) -> bytes:
        """More of the body; empty at its end."""


async def read_limited(
    answer: HasChunks, most_bytes: int, *, within_seconds: float = _WITHIN_SECONDS
) -> bytes:
    """The beginning of a body that explains an error, or as much as comes in time.

    Nothing is raised for a body that breaks off: there is something worse to tell.
    """
    body = bytearray()
    with trio.move_on_after(within_seconds), suppress(ProviderError):  # noqa: ASYNC912  # see next_chunk
        while len(body) < most_bytes and (chunk := await answer.next_chunk()):
            body += chunk
    return bytes(body[:most_bytes])  # noqa: ASYNC910
