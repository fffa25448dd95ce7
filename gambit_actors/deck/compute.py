"""Compute decks: how an author writes a Python module that an action executes.

::

    from gambit_actors import define_deck

    async def run(ctx):
        return {"total": ctx.input["price"] * 2}

    deck = define_deck(run=run, context_schema=Order, response_schema=Total)

A module defines one deck and calls it ``deck``. Defining checks what costs nothing to
check; schemas are looked up, and types described, when a deck that uses it is loaded.
It imports next to nothing, since an author's module pays for it.
"""

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

__all__ = ["ComputeDeck", "Run", "SchemaSource", "define_deck"]

Run: TypeAlias = Callable[[Any], Any]
"""Takes the context of a call and gives its result, or an awaitable of that."""

SchemaSource: TypeAlias = Any
"""A reference such as ``./order.zod.ts``, a dict that is JSON Schema, or a Python type
that msgspec can describe, such as a Struct, a dataclass or ``list[Order]``."""


class ComputeDeck(msgspec.Struct, frozen=True, kw_only=True):
    """A deck that is a Python function; made by `define_deck`.

    Attributes:
        run: what is called, with the context of the call.
        label: what to call it where people read it.
        context_schema: what it takes; None if that is for the action to say.
        response_schema: what it gives; None if that is for the action to say.
    """

    run: Run
    label: str | None = None
    context_schema: SchemaSource = None
    response_schema: SchemaSource = None


def define_deck(
    *,
    run: Run,
    label: str | None = None,
    context_schema: SchemaSource = None,
    response_schema: SchemaSource = None,
) -> ComputeDeck:
    """Define a deck in Python; a module calls its deck ``deck``.

    Args:
        run: a function of one parameter, the context; plain or async.
        label: what to call it where people read it.
        context_schema: what it takes, in one of the forms of `SchemaSource`.
        response_schema: what it gives, in the same forms.

    Raises:
        TypeError: run is not a function that can be called with one argument.
    """
    problem = _problem_with(run)
    if problem is not None:
        msg = f"run must be a function of one parameter, the context, and {problem}"
        raise TypeError(msg)
    return ComputeDeck(
        run=run,
        label=label,
        context_schema=context_schema,
        response_schema=response_schema,
    )


def _problem_with(run: object) -> str | None:
    """What keeps something from being run, as the end of a sentence."""
    name = getattr(run, "__name__", repr(run))
    if not callable(run):
        return f"{name} cannot be called"
    if inspect.isgeneratorfunction(run) or inspect.isasyncgenfunction(run):
        return f"{name} yields, where it should return its result"
    try:
        parameters = inspect.signature(run)
    except ValueError:
        return f"{name} does not tell its parameters; wrap it in one that does"
    try:
        parameters.bind(None)
    except TypeError:
        return f"{name}{parameters} cannot be called with one"
    return None
