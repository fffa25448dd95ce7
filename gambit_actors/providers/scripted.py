"""A model without a network: it answers from a script, and fails when told to.

It keeps the promises of a `ModelProvider` and no others, so what works with it works
with a real one. It is also exact: no randomness and no date. A response's id is made
from the run, the turn and the pass, every time in it is 0, and tokens that a reply does
not state are its characters, and those of the request, divided by four.

What a fault does; with the first five, half of the deltas go out before it, if the
reply says something at all:

==============  =======================================================================
error           raises `RehearsedError` with the message, the code and the status
refuse_model    raises `RehearsedError`: 404, ``model_not_found``
hang            nothing more comes, ever
cut             the stream ends: raises `StreamTruncated`
malformed       bytes that are no event; then it goes on, or ends as ``cut`` does if
                the reply says nothing
flood           the text, again and again, in ``count`` deltas
failed          all that is said, then ``response.failed``
==============  =======================================================================

Uses are counted per run, so that runs side by side do not take each other's replies. A
provider is not told when a run ends; it remembers the runs that asked last, up to
``max_runs``, and one that is forgotten and comes back finds the script unused. A script
whose replies all may be used for ever (``times = 0``) remembers nothing.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

import trio

from gambit_actors.errors import ProviderError, ScriptExhausted, StreamTruncated
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.events import (
    Event,
    FunctionCallArgumentsDelta,
    MalformedEvent,
    OutputTextDelta,
    ReasoningSummaryTextDelta,
    RefusalDelta,
    StandardEvent,
)
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response, Usage, response_for
from gambit_actors.openresponses.writer import ResponseWriter
from gambit_actors.providers.scripts import (
    Reply,
    Script,
    Told,
    check_reply,
    find_reply,
    last_told,
)
from gambit_actors.providers.telling import PreparedReply, write_reply
from gambit_actors.run.ports import ModelContext

ReplyFunction: TypeAlias = Callable[
    [CreateResponse, ModelContext], Reply | Awaitable[Reply]
]

_DELTAS = (
    FunctionCallArgumentsDelta,
    OutputTextDelta,
    ReasoningSummaryTextDelta,
    RefusalDelta,
)
_BREAKING = frozenset({"cut", "error", "hang", "malformed", "refuse_model"})
_SHOWN_CHARACTERS = 120
_MOST_PREPARED = 256
_DELTAS_BETWEEN_CHECKPOINTS = 100


class RehearsedError(ProviderError):
    """The script wanted an error where an answer was asked for.

    Attributes:
        status: the HTTP status it would have come with.
        code: the provider's word for it.
    """

    def __init__(self, message: str, *, status: int | None, code: str | None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class ScriptedProvider:
    """Answers requests from a script.

    Args:
        script: replies, or a function that is asked for each.
        max_runs: how many runs it remembers the used replies of.

    Attributes:
        default_model: what is asked where a deck names no model: the script answers
            for all of them.

    Raises:
        BadScript: a reply is not one. One that a function gives raises when it does.
    """

    default_model: str | None = "scripted/model"

    def __init__(
        self,
        script: Script | Sequence[Reply] | ReplyFunction,
        *,
        max_runs: int = 100_000,
    ) -> None:
        if callable(script):
            self._choose = script
            self._most_prepared = _MOST_PREPARED
        else:
            known = script if isinstance(script, Script) else Script(tuple(script))
            self._choose = _Cursor(known.replies, max_runs).next_reply
            self._most_prepared = len(known.replies)
        self._prepared: dict[int, PreparedReply] = {}

    async def responses(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
        /,
    ) -> Response:
        """Answer a request with the first reply that fits.

        A request that is cancelled before it was looked at uses up nothing; from then
        on its reply is used, as a real model's would be.

        Raises:
            ScriptExhausted: no reply fits, or those that do are used up.
            ProviderError: the script wanted one.
        """
        await trio.lowlevel.checkpoint()
        chosen = self._choose(request, context)
        # An instance check first: asking whether something is awaitable is slow.
        reply = chosen if isinstance(chosen, Reply) else await _awaited(chosen)
        prepared = self._prepare(reply)
        started = response_for(
            request,
            id=f"resp_{context.run_id}_{context.turn}_{context.pass_number}",
            created_at=0,
        )
        usage = prepared.usage(request)
        if prepared.template is None:
            return await _act_out(reply, started, usage=usage, on_event=on_event)
        events, response = prepared.template.fill(started, usage)
        for event in events:
            on_event(event)
        return response

    def _prepare(self, reply: Reply) -> PreparedReply:
        # By identity: replies hold dicts and have no hash. The entry keeps its reply
        # alive, so no other can take its id.
        prepared = self._prepared.get(id(reply))
        if prepared is None:
            check_reply(reply)
            if len(self._prepared) >= self._most_prepared:
                self._prepared.clear()
            prepared = self._prepared[id(reply)] = PreparedReply(reply)
        return prepared


# What it gives is checked by who prepares it.
async def _awaited(chosen: Awaitable[Reply] | JSONValue) -> Reply:
    await trio.lowlevel.checkpoint()
    return await chosen if isinstance(chosen, Awaitable) else chosen


async def _act_out(
    reply: Reply,
    started: Response,
    *,
    usage: Usage,
    on_event: Callable[[Event], None],
) -> Response:
    """Tell a reply that takes its time or goes wrong."""
    await trio.sleep(reply.latency_seconds)
    writer = ResponseWriter(started)
    events: Iterable[StandardEvent] = write_reply(reply, writer, usage=usage)
    if reply.fault in _BREAKING:
        sent, events = _halves(reply, list(events))
        await _send(sent, reply, on_event)
        if reply.fault == "hang":
            await trio.sleep_forever()
        if reply.fault != "malformed":
            raise _error(reply, started.model, len(sent))
        on_event(_malformed(reply))
        if not reply.says_something:
            raise StreamTruncated(len(sent) + 1)
    await _send(events, reply, on_event)
    return writer.response


async def _send(
    events: Iterable[StandardEvent], reply: Reply, on_event: Callable[[Event], None]
) -> None:
    await trio.lowlevel.checkpoint()
    deltas = 0
    for event in events:
        if isinstance(event, _DELTAS):
            deltas += 1
            if reply.per_delta_seconds:
                await trio.sleep(reply.per_delta_seconds)
            elif deltas % _DELTAS_BETWEEN_CHECKPOINTS == 0:
                await trio.lowlevel.checkpoint()
        on_event(event)


def _halves(
    reply: Reply, events: list[StandardEvent]
) -> tuple[list[StandardEvent], list[StandardEvent]]:
    """Divide a stream where it breaks: after half of its deltas, the larger half."""
    deltas = [place for place, e in enumerate(events) if isinstance(e, _DELTAS)]
    if deltas:
        cut = deltas[(len(deltas) - 1) // 2] + 1
    elif reply.says_something or reply.fault in ("cut", "malformed"):
        cut = 2  # created and in_progress
    else:
        cut = 0
    return events[:cut], events[cut:]


def _malformed(reply: Reply) -> MalformedEvent:
    return MalformedEvent(
        reason="invalid_json",
        problem=reply.message or "not JSON: the script says so",
        raw='{"type":"response.output_te',
    )


def _error(reply: Reply, model: str, events_seen: int) -> ProviderError:
    match reply.fault:
        case "refuse_model":
            message = reply.message or f"there is no model {model!r}"
            return RehearsedError(message, status=404, code="model_not_found")
        case "error":
            message = reply.message or "the scripted model answered with an error"
            return RehearsedError(message, status=reply.status, code=reply.code)
        case _:
            return StreamTruncated(events_seen)


class _Cursor:
    """Which replies each run has used."""

    def __init__(self, replies: tuple[Reply, ...], max_runs: int) -> None:
        self._replies = replies
        self._max_runs = max_runs
        self._listens = any(
            reply.contains is not None or reply.after is not None for reply in replies
        )
        self._used: OrderedDict[str, dict[int, int]] = OrderedDict()

    def next_reply(self, request: CreateResponse, context: ModelContext) -> Reply:
        used = self._used.get(context.run_id, _UNUSED)
        told = last_told(request) if self._listens else _UNHEARD
        place = find_reply(self._replies, used, context=context, told=told)
        if place is None:
            raise ScriptExhausted(
                context.deck,
                turn=context.turn,
                pass_number=context.pass_number,
                last_message=_cut(last_told(request).text),
            )
        reply = self._replies[place]
        if reply.times:
            self._count(context.run_id, place)
        return reply

    def _count(self, run_id: str, place: int) -> None:
        used = self._used.get(run_id)
        if used is None:
            used = self._used[run_id] = {}
            if len(self._used) > self._max_runs:
                self._used.popitem(last=False)
        else:
            self._used.move_to_end(run_id)
        used[place] = used.get(place, 0) + 1


_UNUSED: dict[int, int] = {}
_UNHEARD = Told()


def _cut(text: str) -> str:
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return text[: _SHOWN_CHARACTERS - 1] + "…"
