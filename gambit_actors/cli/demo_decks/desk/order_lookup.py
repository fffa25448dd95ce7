# ruff: noqa: INP001  (a deck's folder, not a package)
"""Looks up one order of the demo's shop."""

from typing import Protocol

import msgspec

from gambit_actors import define_deck


class Question(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Which order is asked about."""

    order_number: str


class Order(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the shop knows about an order."""

    number: str
    item: str
    price_cents: int
    delivered_days_ago: int


ORDERS = {
    "LL-1003": Order(
        number="LL-1003", item="Headlamp", price_cents=3900, delivered_days_ago=5
    )
}


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The order, if there is one with that number."""

    order: Order | None


class Call(Protocol):
    """The part of a call that is used here."""

    input: dict[str, str]


def run(ctx: Call) -> object:
    """Find the order; not finding it is an answer, not an error."""
    return msgspec.to_builtins(Answer(order=ORDERS.get(ctx.input["orderNumber"])))


deck = define_deck(
    label="Order lookup", context_schema=Question, response_schema=Answer, run=run
)
