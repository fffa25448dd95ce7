"""What any model provider has to do, as checks that its author can run.

A check makes the provider answer in a certain way and looks at what comes out. How it
is made to do that, only its author knows: an adapter takes an `Exchange` and opens a
provider that answers every request with it, or raises `LeftOut` if it has no such
thing::

    @asynccontextmanager
    async def adapter(exchange: Exchange) -> AsyncIterator[ModelProvider]:
        async with my_fake_server(exchange) as url:
            yield MyProvider(url)

    print(table(trio.run(run_all, adapter)))

    @pytest.mark.parametrize("check", checks(), ids=lambda check: check.__name__)
    async def test_my_provider(check):
        await check(adapter)
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Literal, TypeAlias

import msgspec
import trio

from gambit_actors.errors import ProviderError
from gambit_actors.openresponses.builder import build_response
from gambit_actors.openresponses.events import (
    Event,
    MalformedEvent,
    ResponseCompleted,
    ResponseCreated,
    ResponseFailed,
    ResponseIncomplete,
    UnknownEvent,
)
from gambit_actors.openresponses.items import FunctionCall, Message, Reasoning
from gambit_actors.openresponses.responses import Response
from gambit_actors.openresponses.writing import to_builtins
from gambit_actors.run.ports import ModelContext, ModelProvider
from gambit_actors.testing.checks import CheckFailed, Found, LeftOut, require
from gambit_actors.testing.requests import plain_request

Kind: TypeAlias = Literal[
    "text", "two_calls", "reasoning", "refusal", "length", "failure", "cut", "hang"
]

TEXT = "It is 20 °C in Oslo."
THOUGHT = "They ask for the weather."
CALLS = (("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"}))

_TOLD: tuple[Kind, ...] = ("text", "two_calls", "reasoning", "refusal", "length")
_ENDS = (ResponseCompleted, ResponseFailed, ResponseIncomplete)
_AT_ONCE = 10
_SECONDS_TO_WAIT = 0.2
_SECONDS_TO_LEAVE = 1.0


class Exchange(msgspec.Struct, frozen=True):
    """How a provider is to answer every request.

    ==========  ======================================================================
    text        says `TEXT`, and is done
    two_calls   makes the two `CALLS` side by side
    reasoning   thinks `THOUGHT`, then says `TEXT`
    refusal     refuses with `TEXT`, or is stopped by a filter where there are no
                refusals
    length      says `TEXT`, and is stopped because it is too long
    failure     the server does not answer but fails
    cut         says half of `TEXT`, and breaks off without a word
    hang        says half of `TEXT`, and nothing more
    ==========  ======================================================================
    """

    kind: Kind


Adapter: TypeAlias = Callable[[Exchange], AbstractAsyncContextManager[ModelProvider]]
ProviderCheck: TypeAlias = Callable[[Adapter], Awaitable[None]]


def checks() -> tuple[ProviderCheck, ...]:
    """All checks there are."""
    return (
        text_comes_whole,
        calls_of_one_turn_stay_apart,
        reasoning_is_an_item,
        a_refusal_is_no_answer,
        a_cut_by_length_is_incomplete,
        events_come_in_legal_order,
        the_response_is_what_the_events_come_to,
        a_failure_is_an_error,
        a_broken_stream_is_no_response,
        a_cancelled_call_leaves_at_once,
        calls_at_once_do_not_mix,
    )


async def run_all(adapter: Adapter) -> list[Found]:
    """Run all checks, and go on after one that fails; `table` shows the result."""
    found = []
    for check in checks():
        name = getattr(check, "__name__", str(check))
        try:
            await check(adapter)
        except LeftOut as reason:
            found.append(Found(name, "left out", str(reason)))
        except CheckFailed as problem:
            found.append(Found(name, "failed", str(problem)))
        except Exception as problem:  # noqa: BLE001  (what it raises is the finding)
            words = f"raised {type(problem).__name__}: {problem}"
            found.append(Found(name, "failed", words))
        else:
            found.append(Found(name, "passed"))
    await trio.lowlevel.checkpoint()
    return found


async def text_comes_whole(adapter: Adapter) -> None:
    """A text is one completed response, with its items settled."""
    response, _ = await _ask(adapter, "text")
    require(response.status == "completed", f"the response is {response.status}")
    require(response.output_text == TEXT, f"another text: {response.output_text!r}")
    _check_settled(response, "completed")


async def calls_of_one_turn_stay_apart(adapter: Adapter) -> None:
    """Two calls to one tool come in order, each whole and with an id of its own."""
    response, _ = await _ask(adapter, "two_calls")
    calls = [item for item in response.output if isinstance(item, FunctionCall)]
    made = [(call.name, msgspec.json.decode(call.arguments)) for call in calls]
    require(made == list(CALLS), f"other calls: {made}")
    ids = {call.call_id for call in calls}
    require(len(ids) == len(calls) and all(ids), f"ids that are not unique: {ids}")
    require(response.status == "completed", f"the response is {response.status}")
    _check_settled(response, "completed")


async def reasoning_is_an_item(adapter: Adapter) -> None:
    """Thoughts are an item before the answer, and no part of its text."""
    response, _ = await _ask(adapter, "reasoning")
    items = response.output
    require(any(isinstance(item, Reasoning) for item in items), "there are no thoughts")
    require(isinstance(items[0], Reasoning), "the thoughts do not come first")
    told = str(to_builtins(items[0]))
    require(THOUGHT in told, "the thoughts are not in their item")
    require(response.output_text == TEXT, f"another text: {response.output_text!r}")


async def a_refusal_is_no_answer(adapter: Adapter) -> None:
    """A refusal is told as one, or as the work of a filter."""
    response, _ = await _ask(adapter, "refusal")
    words = [item.refusal for item in response.output if isinstance(item, Message)]
    details = response.incomplete_details
    is_filtered = details is not None and details.reason == "content_filter"
    require("".join(words) == TEXT or is_filtered, "the refusal looks like an answer")


async def a_cut_by_length_is_incomplete(adapter: Adapter) -> None:
    """An answer that got too long is incomplete, says why, and keeps what was said."""
    response, _ = await _ask(adapter, "length")
    details = response.incomplete_details
    reason = None if details is None else details.reason
    require(response.status == "incomplete", f"the response is {response.status}")
    require(reason == "max_output_tokens", f"the reason is {reason}")
    require(response.output_text == TEXT, f"another text: {response.output_text!r}")


async def events_come_in_legal_order(adapter: Adapter) -> None:
    """Created comes first, one ending last, and the numbers rise."""
    for kind in _TOLD:
        _, events = await _ask_if_there(adapter, kind)
        told = [e for e in events if not isinstance(e, UnknownEvent | MalformedEvent)]
        if not told:
            continue  # It does not stream.
        require(isinstance(told[0], ResponseCreated), f"{kind}: created is not first")
        created = sum(isinstance(event, ResponseCreated) for event in told)
        require(created == 1, f"{kind}: created {created} times")
        ends = [place for place, event in enumerate(told) if isinstance(event, _ENDS)]
        require(ends == [len(told) - 1], f"{kind}: not one ending, at the end")
        numbers = [to_builtins(event).get("sequence_number") for event in told]
        real = [number for number in numbers if number is not None]
        require(real == sorted(set(real)), f"{kind}: numbers that do not rise")
    await trio.lowlevel.checkpoint()


async def the_response_is_what_the_events_come_to(adapter: Adapter) -> None:
    """Who folds the events has the response that is returned."""
    for kind in _TOLD:
        response, events = await _ask_if_there(adapter, kind)
        if response is not None and events:
            _check_folded(kind, response, events)
    await trio.lowlevel.checkpoint()


async def a_failure_is_an_error(adapter: Adapter) -> None:
    """A server that fails is a `ProviderError`, or a response that failed."""
    await _fail(adapter, "failure")


async def a_broken_stream_is_no_response(adapter: Adapter) -> None:
    """A stream that breaks off never becomes a completed response."""
    await _fail(adapter, "cut")


async def a_cancelled_call_leaves_at_once(adapter: Adapter) -> None:
    """A call that hangs ends when it is cancelled, and not a second later."""
    async with adapter(Exchange("hang")) as provider:
        started = trio.current_time()
        with trio.move_on_after(_SECONDS_TO_WAIT) as scope:
            await provider.responses(plain_request(), _context(0), lambda _event: None)
        seconds = trio.current_time() - started - _SECONDS_TO_WAIT
    require(scope.cancelled_caught, "it did not hang, or swallowed the cancellation")
    require(seconds < _SECONDS_TO_LEAVE, f"it took {seconds:.1f} s to leave")


async def calls_at_once_do_not_mix(adapter: Adapter) -> None:
    """Of ten calls at once, each gets its own events and its own response."""
    found: list[tuple[Response, list[Event]]] = []

    async def ask(provider: ModelProvider, number: int) -> None:
        events: list[Event] = []
        request, context = plain_request(f"Question {number}"), _context(number)
        response = await provider.responses(request, context, events.append)
        found.append((response, events))

    async with adapter(Exchange("text")) as provider, trio.open_nursery() as nursery:
        for number in range(_AT_ONCE):
            nursery.start_soon(ask, provider, number)
    require(len(found) == _AT_ONCE, f"{len(found)} of {_AT_ONCE} were answered")
    ids = {response.id for response, _ in found}
    require(len(ids) == _AT_ONCE, "responses that share an id")
    for response, events in found:
        require(response.output_text == TEXT, f"another text: {response.output_text!r}")
        if events:
            _check_folded("text", response, events)


async def _ask(adapter: Adapter, kind: Kind) -> tuple[Response, list[Event]]:
    events: list[Event] = []
    async with adapter(Exchange(kind)) as provider:
        request, context = plain_request(), _context(0)
        try:
            response = await provider.responses(request, context, events.append)
        except Exception as raised:  # noqa: BLE001  (raised again, below)
            problem: Exception | None = raised
        else:
            problem = None
    if problem is not None:
        # Not inside: an adapter with a nursery would put it into a group.
        raise problem
    return response, events


async def _ask_if_there(
    adapter: Adapter, kind: Kind
) -> tuple[Response | None, list[Event]]:
    try:
        return await _ask(adapter, kind)
    except LeftOut:
        return None, []  # noqa: ASYNC910  # the adapter was asked


async def _fail(adapter: Adapter, kind: Kind) -> None:
    try:
        response, _ = await _ask(adapter, kind)
    except ProviderError:
        return  # noqa: ASYNC910  # the provider was asked
    require(response.status == "failed", f"the response is {response.status}")
    require(response.error is not None, "a response that failed does not say why")


def _check_settled(response: Response, status: str) -> None:
    for item in response.output:
        if isinstance(item, Message | FunctionCall):
            require(item.id, f"an item without an id: {item.type}")
            require(item.status == status, f"{item.type} is {item.status}")


def _check_folded(kind: Kind, response: Response, events: list[Event]) -> None:
    folded = build_response(events)
    for key in ("id", "status", "output", "usage", "error", "incomplete_details"):
        is_same = getattr(folded, key) == getattr(response, key)
        require(is_same, f"{kind}: the events come to another {key}")


def _context(number: int) -> ModelContext:
    return ModelContext(run_id=f"run_{number}", deck="deck", turn=1, pass_number=1)
