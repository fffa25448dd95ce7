"""A compute deck is defined in one call, which refuses what could never be run."""

import functools
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import gambit_actors
from gambit_actors import define_deck
from gambit_actors.deck.compute import ComputeDeck


def plain(ctx: object) -> object:
    """Run at once."""
    return ctx


async def later(ctx: object) -> object:
    """Run when awaited."""
    return await Runner().run(ctx)


def with_more(ctx: object, more: int = 1, *rest: int) -> object:
    """Run with one argument, though more are possible."""
    return ctx, more, rest


class Runner:
    """An object that can be called."""

    def __call__(self, ctx: object) -> object:
        """Run at once."""
        return ctx

    async def run(self, ctx: object) -> object:
        """Run as a method."""
        return ctx


@pytest.mark.parametrize(
    "run",
    [
        plain,
        later,
        with_more,
        Runner(),
        Runner().run,
        functools.partial(with_more, more=2),
        lambda ctx: ctx,
    ],
)
def test_run_is_anything_that_takes_a_context(run: Any) -> None:  # noqa: ANN401
    """Functions plain and async, methods, partials and callable objects are taken."""
    deck = define_deck(run=run)
    assert deck == ComputeDeck(run=run)


def no_parameters() -> None:
    """Take nothing."""


def two_parameters(_ctx: object, _more: object) -> None:
    """Take too much."""


def only_keyword(*, ctx: object) -> object:
    """Take the context by name only."""
    return ctx


def yields(ctx: object) -> Iterator[object]:
    """Give one result after the other."""
    yield ctx


def async_yields() -> object:
    """Make what our own code may not have: an async function that yields."""
    names: dict[str, object] = {}
    exec("async def async_yields(ctx):\n    yield ctx", names)  # noqa: S102
    return names["async_yields"]


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (None, "None cannot be called"),
        ("run", "'run' cannot be called"),
        (no_parameters, "no_parameters() -> None cannot be called with one"),
        (two_parameters, "cannot be called with one"),
        (only_keyword, "cannot be called with one"),
        (yields, "yields yields, where it should return its result"),
        (async_yields(), "async_yields yields"),
        (dict, "dict does not tell its parameters"),
    ],
)
def test_what_cannot_be_run_is_refused_in_a_sentence(
    run: Any,  # noqa: ANN401
    reason: str,
) -> None:
    """Anything not callable with the context alone is a TypeError that says why."""
    with pytest.raises(TypeError) as caught:
        define_deck(run=run)
    message = str(caught.value)
    assert message.startswith("run must be a function of one parameter, the context, ")
    assert reason in message


@pytest.mark.parametrize(
    "schema", ["./order.zod.ts", {"type": "object"}, Runner, list[int], None]
)
def test_schemas_are_kept_as_they_are_written(schema: Any) -> None:  # noqa: ANN401
    """References, JSON Schemas and types are not looked at before a deck is loaded."""
    deck = define_deck(
        run=plain, label="Orders", context_schema=schema, response_schema=schema
    )
    assert (deck.label, deck.context_schema, deck.response_schema) == (
        "Orders",
        schema,
        schema,
    )


def test_a_deck_does_not_change() -> None:
    """What a module defined stays as it was defined."""
    deck = define_deck(run=plain)
    with pytest.raises(AttributeError):
        deck.label = "other"  # type: ignore[misc]  # That it is frozen is the point.
    assert msgspec.structs.replace(deck, label="other").run is plain


def test_the_package_has_no_other_names() -> None:
    """A misspelt name of the package is an AttributeError, as of any module."""
    assert gambit_actors.define_deck is define_deck
    with pytest.raises(AttributeError, match="no attribute 'define_decks'"):
        _ = gambit_actors.define_decks  # type: ignore[attr-defined]  # The point.


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import gambit_actors", {"msgspec", "gambit_actors.deck"}),
        (
            "from gambit_actors import define_deck",
            {"tree_sitter", "trio"},
        ),
    ],
)
def test_importing_the_package_is_cheap(code: str, unwanted: set[str]) -> None:
    """The package imports nothing until asked, and then nothing to parse or run."""
    program = f"import sys; {code}; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not unwanted & set(done.stdout.split())
