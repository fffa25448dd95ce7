"""What an actor tells the trace, each kind of event in one place.

Nothing is made if nobody listens. A `Teller` knows the span of its actor, so that every
event has its place in the tree.
"""

from collections.abc import Callable
from typing import Literal

import msgspec

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.items import FunctionCall
from gambit_actors.openresponses.responses import Response
from gambit_actors.run.entries import Entry, ItemAdded, RunStarted, TurnEnded
from gambit_actors.trace import events
from gambit_actors.trace.tracer import Tracer


class Teller(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Tells of one actor.

    Attributes:
        deck: its deck, as it may be shown.
        span: the actor's own id in the tree.
    """

    tracer: Tracer
    run: RunStarted
    deck: str
    span: str

    def _at(self, span: str, parent: str | None = None) -> dict[str, JSONValue]:
        """When an event happens, and where in the tree."""
        return {
            "run_id": self.run.run_id,
            "time": self.tracer.stamp(),
            "action_call_id": span,
            "parent_action_call_id": parent,
        }

    def deck_start(self, label: str | None) -> None:
        """The actor begins a turn."""
        if self.tracer.is_on:
            self.tracer.emit(
                events.DeckStart(
                    **self._at(self.span, self.run.parent_call_id),
                    deck_path=self.deck,
                    label=label,
                    depth=self.run.depth,
                )
            )

    def deck_end(self, ended: TurnEnded) -> None:
        """The actor ends a turn."""
        if self.tracer.is_on:
            self.tracer.emit(
                events.DeckEnd(
                    **self._at(self.span, self.run.parent_call_id),
                    deck_path=self.deck,
                    status=ended.status,
                    error=error_of(ended),
                )
            )

    def user_message(self, message: str) -> None:
        """The user said something."""
        if self.tracer.is_on:
            self.tracer.emit(
                events.UserMessage(
                    **self._at(self.span),
                    deck_path=self.deck,
                    message=message,
                )
            )

    def model_call(
        self, span: str, model: str, *, pass_number: int, items: int, tools: int
    ) -> None:
        """A model is asked."""
        if self.tracer.is_on:
            self.tracer.emit(
                events.ModelCall(
                    **self._at(span, self.span),
                    deck_path=self.deck,
                    model=model,
                    pass_number=pass_number,
                    item_count=items,
                    tool_count=tools,
                )
            )

    def model_result(
        self,
        span: str,
        model: str,
        *,
        pass_number: int,
        response: Response | None,
        error: events.TraceError | None,
    ) -> None:
        """A model answered, failed, or was not waited for."""
        if not self.tracer.is_on:
            return
        unanswered = "failed" if error else "cancelled"
        self.tracer.emit(
            events.ModelResult(
                **self._at(span, self.span),
                deck_path=self.deck,
                model=model,
                pass_number=pass_number,
                status=response.status if response else unanswered,
                finish_reason=_finish_reason(response),
                message=response.output_text if response else "",
                response_items=response.output if response else (),
                usage=response.usage if response else None,
                error=error,
            )
        )

    def failover(self, model: str, next_model: str, error: events.TraceError) -> None:
        """The next model is asked instead."""
        if self.tracer.is_on:
            self.tracer.emit(
                events.ModelFailover(
                    **self._at(self.span),
                    deck_path=self.deck,
                    model=model,
                    next_model=next_model,
                    error=error,
                )
            )

    def stream_of(self, model: str) -> Callable[[Event], None]:
        """What tells of the events of one answer, as they come."""
        tracer = self.tracer

        def show(event: Event) -> None:
            if tracer.is_on:
                tracer.emit(
                    events.StreamEvent(
                        **self._at(self.span),
                        deck_path=self.deck,
                        model=model,
                        event=event,
                    )
                )

        return show

    def logged(self, entry: Entry) -> None:
        """An entry is in the log; an item of the conversation may be shown now."""
        if self.tracer.is_on and isinstance(entry, ItemAdded):
            self.tracer.emit(
                events.ItemLogged(
                    **self._at(self.span),
                    deck_path=self.deck,
                    item=entry.item,
                    source=entry.source,
                )
            )

    def call_start(self, call: FunctionCall, kind: events.ToolKind) -> None:
        """A call begins; one to an action begins that, too."""
        if not self.tracer.is_on:
            return
        if kind == "action":
            self.tracer.emit(
                events.ActionStart(
                    **self._at(call.call_id, self.span),
                    name=call.name,
                    path=call.name,
                )
            )
        self.tracer.emit(
            events.ToolCalled(
                **self._at(call.call_id, self.span),
                name=call.name,
                args=call.arguments,
                tool_kind=kind,
            )
        )

    def call_end(
        self,
        call: FunctionCall,
        kind: events.ToolKind,
        *,
        output: str | None,
    ) -> None:
        """A call has its output; None if it was not waited for."""
        if not self.tracer.is_on:
            return
        status: events.EndStatus = "cancelled" if output is None else "completed"
        self.tracer.emit(
            events.ToolResult(
                **self._at(call.call_id, self.span),
                name=call.name,
                result=output,
                tool_kind=kind,
                status=status,
            )
        )
        if kind == "action":
            self.tracer.emit(
                events.ActionEnd(
                    **self._at(call.call_id, self.span),
                    name=call.name,
                    path=call.name,
                    status=status,
                )
            )

    def handler_said(
        self, kind: Literal["busy", "idle", "error"], message: str, elapsed_ms: int
    ) -> None:
        """A handler had something to say to the user."""
        if self.tracer.is_on:
            self.tracer.emit(
                events.HandlerSaid(
                    **self._at(self.span),
                    deck_path=self.deck,
                    kind=kind,
                    message=message,
                    elapsed_ms=elapsed_ms,
                )
            )

    def log(self, call_id: str, fields: dict[str, JSONValue]) -> None:
        """An author's code said something."""
        if self.tracer.is_on:
            self.tracer.emit(
                events.Log(
                    **self._at(call_id, self.span),
                    deck_path=self.deck,
                    **fields,
                )
            )


def error_of(ended: TurnEnded) -> events.TraceError | None:
    """Why a turn did not work, if it did not."""
    failure = ended.failure
    if failure is None:
        return None
    return events.TraceError(code=failure.code, message=failure.message)


def _finish_reason(response: Response | None) -> str:
    if response is None:
        return "error"
    if response.status != "completed":
        return "length" if response.status == "incomplete" else "error"
    has_calls = any(isinstance(item, FunctionCall) for item in response.output)
    return "tool_calls" if has_calls else "stop"
