"""The request after a response: tool results go in, what was said comes along.

A tool result is never output. It is an input item of the next request, for the call
with the same ``call_id``.
"""

from collections.abc import Iterable

import msgspec

from gambit_actors.openresponses.items import (
    Item,
    Reasoning,
    user_message,
)
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response


def follow_up(
    request: CreateResponse, response: Response, new_items: Iterable[Item]
) -> CreateResponse:
    """The next request, with the whole conversation in it.

    Args:
        request: what was asked.
        response: what came of it.
        new_items: tool results, and whatever else is to be said next.
    """
    items = (
        *items_of_input(request),
        *(in_input_form(item) for item in response.output),
        *new_items,
    )
    return msgspec.structs.replace(request, input=items)


def follow_up_by_id(
    request: CreateResponse, response: Response, new_items: Iterable[Item]
) -> CreateResponse:
    """The next request to a server that remembers the response: only what is new."""
    return msgspec.structs.replace(
        request, input=tuple(new_items), previous_response_id=response.id
    )


def items_of_input(request: CreateResponse) -> tuple[Item, ...]:
    """The input as items: a plain string is one message of the user's."""
    if request.input is None:
        return ()
    if isinstance(request.input, str):
        return (user_message(request.input),)
    return request.input


def in_input_form(item: Item) -> Item:
    """Give an item of a response the form in which it may be sent back.

    The standard takes everything back but raw reasoning: a server may show it, and
    refuses it as input. Its summary and its sealed form do go back.
    """
    if isinstance(item, Reasoning) and item.content is not None:
        return msgspec.structs.replace(item, content=None)
    return item
