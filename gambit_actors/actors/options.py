"""What can be different from run to run, checked before anything runs."""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import get_args

import msgspec

from gambit_actors.actors.hook import MAX_CALLS, OnTool
from gambit_actors.actors.trees import Limits
from gambit_actors.deck.permissions import Permissions
from gambit_actors.errors import RequestError
from gambit_actors.run.budgets import Price
from gambit_actors.run.programs import RuntimeTool
from gambit_actors.trace.events import Mode

_MOST = 2**63 - 1
"""The largest number: decks, logs and the wire have no larger ones."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What can be different from run to run.

    Options that are given to a run take the place of the runtime's as a whole; change
    some of them with ``msgspec.structs.replace(runtime.options, ...)``.

    Attributes:
        on_tool: carries out external tools.
        max_tool_calls: how many of those are out at once.
        tool_seconds: how long one may take.
        limits: beyond which no deck of the run can go.
        permissions: what narrows those of the deck; None leaves them.
        models: asked where a deck names none.
        forces_models: whether they are asked also where a deck names others.
        mode: what traces say of model calls, ``responses`` or ``chat``.
        prices: what models cost, by name; without one, what a run costs is unknown.
        runtime_tools: external tools that every deck of the run is offered.
        unconfined: actions that may run without the confinement that their
            permissions ask for.

    Raises:
        RequestError: one of them makes no sense.
    """

    on_tool: OnTool | None = None
    max_tool_calls: int = MAX_CALLS
    tool_seconds: float = float("inf")
    limits: Limits = Limits()
    permissions: Permissions | None = None
    models: tuple[str, ...] = ()
    forces_models: bool = False
    mode: Mode = "responses"
    prices: dict[str, Price] = {}
    runtime_tools: tuple[RuntimeTool, ...] = ()
    unconfined: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.on_tool is not None and not callable(self.on_tool):
            raise RequestError("on_tool is not something that can be called")
        check_whole("max_tool_calls", self.max_tool_calls)
        _check_number("tool_seconds", self.tool_seconds, may_be_endless=True)
        _check_limits(self.limits)
        _check_prices(self.prices)
        permissions: object = self.permissions
        if not isinstance(permissions, Permissions | None):
            raise _wrong_kind("permissions", permissions, "Permissions(...)")
        _check_several("models", self.models, of=str, words="a tuple of names")
        _check_several("unconfined", self.unconfined, of=str, words="a set of names")
        tools, words = self.runtime_tools, "a tuple of RuntimeTool(...)"
        _check_several("runtime_tools", tools, of=RuntimeTool, words=words)
        if self.forces_models and not self.models:
            raise RequestError("forces_models needs models to be asked")
        if self.mode not in get_args(Mode):
            known = " or ".join(get_args(Mode))
            raise RequestError(f"mode has to be {known}, and is {self.mode!r}")


def check_whole(name: str, value: object) -> None:
    """Refuse what is no whole number of 1 or more, or too large to be kept.

    Raises:
        RequestError: it is one of those.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise RequestError(f"{name} has to be a whole number, and is {value!r}")
    if value > _MOST:  # Not shown: it may be thousands of digits long.
        raise RequestError(f"{name} has to be {_MOST} or less, and is more")
    if value < 1:
        raise RequestError(f"{name} has to be 1 or more, and is less")


# Who calls us may not be checked: so all of these take any value.


def _check_limits(limits: object) -> None:
    if not isinstance(limits, Limits):
        raise _wrong_kind("limits", limits, "Limits(...)")
    for name in ("max_depth", "max_passes", "max_tokens"):
        value = getattr(limits, name)
        if value is not None:
            check_whole(f"limits.{name}", value)
    if limits.timeout_seconds is not None:
        seconds = limits.timeout_seconds
        _check_number("limits.timeout_seconds", seconds, may_be_endless=True)
    if limits.max_cost is not None:
        _check_number("limits.max_cost", limits.max_cost)


def _check_prices(prices: object) -> None:
    if not isinstance(prices, Mapping):
        raise _wrong_kind("prices", prices, "a dict of Price(...) by model")
    for name, price in prices.items():
        if not isinstance(price, Price):
            raise _wrong_kind(f"the price of {name}", price, "Price(...)")
        _check_number(f"the price of {name}: input", price.input)
        _check_number(f"the price of {name}: output", price.output)
        if price.cached_input is not None:
            _check_number(f"the price of {name}: cached_input", price.cached_input)


def _check_several(name: str, values: object, *, of: type, words: str) -> None:
    """Refuse one where several are wanted: a text is one of letters, too."""
    if isinstance(values, str | bytes):
        written = f"({values!r},)" if "tuple" in words else f"{{{values!r}}}"
        raise RequestError(f"{name} is {words}: write {written}")
    if not isinstance(values, Sequence | AbstractSet):
        raise _wrong_kind(name, values, words)
    for value in values:
        if not isinstance(value, of):
            raise _wrong_kind(f"one of {name}", value, f"a {of.__name__}")


def _check_number(name: str, value: object, *, may_be_endless: bool = False) -> None:
    """Refuse what is no number, or none that can be counted with.

    What adds up to inf or nan would be found much later, as a log that cannot be kept.
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise RequestError(f"{name} has to be a number, and is {value!r}")
    if value == math.inf and may_be_endless:
        return
    if value > _MOST:
        raise RequestError(f"{name} has to be {_MOST} or less, and is more")
    if not value >= 0:  # Which nan is not, either.
        raise RequestError(f"{name} has to be 0 or more, and is not")


def _wrong_kind(name: str, value: object, wanted: str) -> RequestError:
    kind = type(value).__name__
    return RequestError(f"{name} is a {kind}, and has to be {wanted}")
