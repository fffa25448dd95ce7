"""Looks up one order by its number in ``data/orders.json``.

In a real shop this is where the order system is asked. The number is the only key, so
whoever has it sees the order; that is fine here, because an order says nothing about a
person. With personal data, ask for a second proof as well.

An unknown number is an answer, not an error. A broken data file is an error, which the
desk's ``onError`` handler turns into advice.
"""

from pathlib import Path
from typing import Annotated, Literal, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from gambit_actors import define_deck

ORDERS = Path(__file__).parent / "data" / "orders.json"

Days = Annotated[int, msgspec.Meta(ge=0)]
OrderNumber = Annotated[
    str, msgspec.Meta(pattern="^LL-[0-9]{4}$", description="Such as LL-1001.")
]


class Question(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Which order is asked about."""

    order_number: OrderNumber


class Item(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One thing that was bought."""

    title: str
    price_cents: Annotated[int, msgspec.Meta(ge=0)]


class Order(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the shop knows about an order. What has not happened is left out."""

    number: OrderNumber
    status: Literal["processing", "sent", "delivered"]
    items: list[Item]
    sent_days_ago: Days | UnsetType = UNSET
    delivered_days_ago: Days | UnsetType = UNSET


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The order, if there is one with that number."""

    found: bool
    order: Order | UnsetType = UNSET


class Call(Protocol):
    """The part of a call that is used here: what the model gave, already checked."""

    input: dict[str, str]


def run(ctx: Call) -> object:
    """Find the order; not finding it is an answer, not an error."""
    orders = msgspec.json.decode(ORDERS.read_bytes(), type=list[Order])
    number = ctx.input["orderNumber"]
    order = next((order for order in orders if order.number == number), UNSET)
    return msgspec.to_builtins(Answer(found=order is not UNSET, order=order))


deck = define_deck(
    label="Order lookup", context_schema=Question, response_schema=Answer, run=run
)
