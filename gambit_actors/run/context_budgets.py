"""How much of a conversation goes into a context bundle: the end of it that fits.

A conversation is cut where a user speaks, and nowhere else: what is kept is whole
exchanges, each with its calls and their outputs. What stands before the first user
message (a prompt, a context) is kept in any case and counts. Tokens are estimated from
characters alone, so the same log with the same budget gives the same bundle, always.
"""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from gambit_actors.errors import RequestError
from gambit_actors.openresponses.base import Open
from gambit_actors.openresponses.writing import encode

CHARACTERS_PER_TOKEN = 4

_Item = TypeVar("_Item", bound=Open)


class ContextBudget(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a conversation there may be.

    Attributes:
        user_messages: the last so many things that a user said, with what followed
            each; None for all.
        tokens: for everything that is kept, roughly; None for any number.

    Raises:
        RequestError: a limit is less than one.
    """

    user_messages: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("user_messages", "tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                msg = f"{name} of a context budget has to be 1 or more, and is {value}"
                raise RequestError(msg)

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit at all."""
        return self.user_messages is not None or self.tokens is not None


def within_budget(items: Sequence[_Item], budget: ContextBudget) -> tuple[_Item, ...]:
    """The opening of a conversation and as many of its last exchanges as fit.

    Raises:
        RequestError: not even the last exchange does.
    """
    starts = [place for place, item in enumerate(items) if _is_said_by_user(item)]
    if not budget.is_limited or not starts:
        return tuple(items)
    opening, kept = items[: starts[0]], len(items)
    room = budget.tokens
    if room is not None:
        room -= sum(map(rough_tokens, opening))
    for place in reversed(starts[-(budget.user_messages or len(starts)) :]):
        if room is not None:
            room -= sum(map(rough_tokens, items[place:kept]))
            if room < 0:
                break
        kept = place
    if kept == len(items):
        msg = (
            f"the last exchange with what the conversation opens with is more than "
            f"{budget.tokens} tokens: allow more"
        )
        raise RequestError(msg)
    return (*opening, *items[kept:])


def rough_tokens(item: Open) -> int:
    """What an item may cost a model, by the length of its JSON."""
    return -(-len(encode(item)) // CHARACTERS_PER_TOKEN)


def _is_said_by_user(item: Open) -> bool:
    return getattr(item, "role", None) == "user"
