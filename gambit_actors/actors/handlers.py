"""What a deck does while it waits, and after something went wrong.

A handler is a deck. It is run as a child, with a payload that says what happened, and
what it has to say goes to the user and into the conversation. A handler that fails has
nothing to say; it never makes things worse.
"""

from collections.abc import Awaitable, Callable, Sequence

import msgspec
import trio

from gambit_actors.actors.children import Asker, answer_envelope, run_deck
from gambit_actors.actors.mailboxes import Turn
from gambit_actors.deck.model import Handler
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.calls import (
    ActionCall,
    BuiltinCall,
    PlannedCall,
    ToolCall,
)
from gambit_actors.run.entries import (
    CallNoted,
    ChildStarted,
    Entry,
    Failure,
    ItemAdded,
    TurnEnded,
)
from gambit_actors.run.envelopes import Envelope

DELAY_SECONDS = 0.8
"""How long a handler waits if its deck does not say."""

_MILLISECONDS = 1000


async def after_error(
    asker: Asker, handler: Handler, plan: PlannedCall, failed: Envelope
) -> Envelope:
    """Ask the error handler what to make of a call that failed."""
    payload = {
        "kind": "error",
        "label": _label(asker, plan),
        "source": _source(asker, plan),
        "error": {"message": failed.message or "", "code": failed.code},
        "childInput": _input(plan),
    }
    ended = await _run(asker, handler, payload, call_id=plan.call.call_id)
    message = failed.message or "the call failed"
    if ended is None or ended.failure is not None:
        return Envelope(
            status=500,
            code="HANDLER_FALLBACK",
            message=f"Handled error: {message}",
            payload=payload,
            meta={"handlerFailed": True},
        )
    said = answer_envelope(handler.link.deck, ended)
    return Envelope(
        status=500 if said.status is None else said.status,
        code=failed.code if said.code is None else said.code,
        message=message if said.message is None else said.message,
        meta=said.meta,
        payload=said.payload,
    )


async def after_model_error(asker: Asker, handler: Handler, failure: Failure) -> str:
    """Ask the error handler what to say when the deck's own model has failed."""
    payload = {
        "kind": "error",
        "label": asker.program.deck.label,
        "source": {"deckPath": asker.program.name},
        "error": {"message": failure.message, "code": failure.code},
    }
    return _words(await _run(asker, handler, payload))


async def while_busy(
    asker: Asker,
    handler: Handler,
    plan: ActionCall,
    say: Callable[[str, int], Awaitable[None]],
) -> None:
    """Run the busy handler as long as an action takes; whoever starts it cancels it.

    Args:
        asker: the actor whose action it is.
        handler: what to run.
        plan: the action.
        say: takes what the handler said, and after how many milliseconds.
    """
    began = trio.current_time()
    fires_at = began + _delay(handler)
    while True:
        await trio.sleep_until(fires_at)
        elapsed = round((trio.current_time() - began) * _MILLISECONDS)
        payload = {
            "kind": "busy",
            "label": _label(asker, plan),
            "source": _source(asker, plan),
            "trigger": {"reason": "timeout", "elapsedMs": elapsed},
            "childInput": plan.input,
        }
        words = _words(await _run(asker, handler, payload))
        if words:
            await say(words, elapsed)
        if not handler.repeat_seconds:
            return
        # On a fixed schedule, and not behind it: what is late is left out.
        while fires_at <= trio.current_time():
            fires_at += handler.repeat_seconds


class IdleWatch:
    """Runs the idle handler when nothing has happened for a while.

    Args:
        handler: what to run.
        say: takes what the handler said, and after how many milliseconds.
    """

    def __init__(
        self, handler: Handler, say: Callable[[str, int], Awaitable[None]]
    ) -> None:
        self._handler = handler
        self._say = say
        self._last = trio.current_time()
        # How long it has to be quiet before the handler is run.
        self._wait = _delay(handler)
        self._paused = False
        self._touched = trio.Event()

    def touch(self) -> None:
        """Something happened: the wait begins anew."""
        self._last = trio.current_time()
        self._wait = _delay(self._handler)
        self._touched.set()
        self._touched = trio.Event()

    def pause(self) -> None:
        """An action runs: waiting for it is not idling."""
        self._paused = True
        self.touch()

    def go_on(self) -> None:
        """The action is over."""
        self._paused = False
        self.touch()

    async def run(self, asker: Asker) -> None:
        """Watch until cancelled."""
        while True:
            await self._wait_quiet()
            touched = self._touched
            if self._handler.repeat_seconds:
                self._wait += self._handler.repeat_seconds
            elapsed = round((trio.current_time() - self._last) * _MILLISECONDS)
            payload = {
                "kind": "idle",
                "label": asker.program.deck.label,
                "source": {"deckPath": asker.program.name},
                "trigger": {"reason": "idle_timeout", "elapsedMs": elapsed},
            }
            words = _words(await _run(asker, self._handler, payload))
            if words:
                await self._say(words, elapsed)
            if not self._handler.repeat_seconds:
                await touched.wait()

    async def _wait_quiet(self) -> None:
        """Wait until nothing has happened for long enough."""
        while True:
            touched = self._touched
            if self._paused:
                await touched.wait()
                continue
            left = self._last + self._wait - trio.current_time()
            with trio.move_on_after(max(0, left)):
                await touched.wait()
            if not touched.is_set():
                return


def _words(ended: TurnEnded | None) -> str:
    """What a handler has to say to the user."""
    if ended is None or ended.failure is not None:
        return ""
    result = ended.result
    if isinstance(result, str):
        return result
    if isinstance(result, dict) and isinstance(result.get("message"), str):
        return str(result["message"])
    if ended.envelope.get("message"):
        return str(ended.envelope["message"])
    return "" if result is None else msgspec.json.encode(result).decode()


async def _run(
    asker: Asker,
    handler: Handler,
    payload: dict[str, JSONValue],
    *,
    call_id: str | None = None,
) -> TurnEnded | None:
    """Run a handler; None if it cannot be run on this."""
    await trio.lowlevel.checkpoint()
    schema = handler.link.deck.context_schema
    if schema is not None:
        checked = schema.validator.check(payload)
        if not checked.is_valid:
            return None
        payload = checked.value
    return await run_deck(
        asker, handler.link.deck, Turn(context=payload), call_id=call_id
    )


def _delay(handler: Handler) -> float:
    return DELAY_SECONDS if handler.delay_seconds is None else handler.delay_seconds


def _label(asker: Asker, plan: PlannedCall) -> str | None:
    label = plan.action.label if isinstance(plan, ActionCall) else None
    return label or asker.program.deck.label


def _source(asker: Asker, plan: PlannedCall) -> dict[str, JSONValue]:
    return {"deckPath": asker.program.name, "actionName": plan.call.name}


def _input(plan: PlannedCall) -> JSONValue:
    match plan:
        case ActionCall(input=given):
            return given
        case ToolCall(arguments=arguments) | BuiltinCall(arguments=arguments):
            return arguments
        case _:
            return None


def is_of_handler(entries: Sequence[Entry]) -> bool:
    """Whether entries are about what a handler does, which is no sign of life."""
    return all(
        isinstance(e, ChildStarted | CallNoted)
        or (isinstance(e, ItemAdded) and e.source == "handler")
        for e in entries
    )
