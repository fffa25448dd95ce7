"""What can be different from run to run, checked before anything runs."""

import math

import msgspec

from gambit_actors.actors.hook import MAX_CALLS, OnTool
from gambit_actors.actors.trees import Limits
from gambit_actors.deck.permissions import Permissions
from gambit_actors.errors import RequestError
from gambit_actors.run.budgets import Price
from gambit_actors.run.programs import RuntimeTool
from gambit_actors.trace.events import Mode


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
        _check_number("max_tool_calls", self.max_tool_calls, least=1, is_whole=True)
        _check_number("tool_seconds", self.tool_seconds, least=0)
        self._check_limits()
        if self.forces_models and not self.models:
            raise RequestError("forces_models needs models to be asked")
        self._check_names()
        for name, price in self.prices.items():
            if not isinstance(price, Price):
                kind = type(price).__name__  # type: ignore[unreachable]  # who calls us may not be checked
                msg = f"the price of {name} is a {kind}, and has to be Price(...)"
                raise RequestError(msg)
            _check_number(f"the price of {name}: input", price.input, least=0)
            _check_number(f"the price of {name}: output", price.output, least=0)
            if price.cached_input is not None:
                what = f"the price of {name}: cached_input"
                _check_number(what, price.cached_input, least=0)

    def _check_names(self) -> None:
        """Refuse a text where several are wanted: it is one of letters, too."""
        models: object = self.models
        if isinstance(models, str | bytes):
            msg = f"models is a tuple of names: write ({models!r},)"
            raise RequestError(msg)
        names: object = self.unconfined
        if isinstance(names, str | bytes):
            msg = f"unconfined is a set of names: write {{{names!r}}}"
            raise RequestError(msg)

    def _check_limits(self) -> None:
        limits = self.limits
        if not isinstance(limits, Limits):
            msg = f"limits is a {type(limits).__name__}, and has to be Limits(...)"  # type: ignore[unreachable]  # who calls us may not be checked
            raise RequestError(msg)
        for name in ("max_depth", "max_passes", "max_tokens"):
            value = getattr(limits, name)
            if value is not None:
                _check_number(f"limits.{name}", value, least=1, is_whole=True)
        for name in ("timeout_seconds", "max_cost"):
            value = getattr(limits, name)
            if value is not None:
                _check_number(f"limits.{name}", value, least=0)


def _check_number(
    name: str, value: object, *, least: float, is_whole: bool = False
) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    kind = "a whole number" if is_whole else "a number"
    if not is_number or (is_whole and not isinstance(value, int)):
        msg = f"{name} has to be {kind}, and is {value!r}"
        raise RequestError(msg)
    if math.isnan(value) or value < least:  # type: ignore[arg-type, operator]  # it is a number
        msg = f"{name} has to be {least:g} or more, and is {value!r}"
        raise RequestError(msg)
