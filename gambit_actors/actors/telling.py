"""What an actor tells the trace, each kind of event in one place.

Nothing is made if nobody listens. A `Teller` knows the span of its actor, so that every
event has its place in the tree. All events of a tree have the run id of its root.
"""

from typing import Literal

import msgspec

from gambit_actors.actors.failing import error_of
from gambit_actors.deck.permissions import Permissions
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.items import FunctionCall, Item, Message
from gambit_actors.openresponses.responses import Response
from gambit_actors.run.budgets import Spent
from gambit_actors.run.entries import ItemAdded, RunStarted, TurnEnded
from gambit_actors.run.envelopes import CallSource
from gambit_actors.run.ports import Notice
from gambit_actors.run.programs import Program
from gambit_actors.trace import events
from gambit_actors.trace.tracer import Tracer

# Events are made with every keyword written out: passing on a dict of those that all
# have in common took twice as long, and there are dozens in every run.


class Teller:
    """Tells of one actor.

    Attributes:
        run_id: of the whole tree.
        deck: its deck, as it may be shown.
        span: the actor's own id in the tree.
        parent: the span that it is in; None for a root.
    """

    __slots__ = (
        "_mode",
        "_program",
        "_run",
        "deck",
        "parent",
        "run_id",
        "span",
        "tracer",
    )

    def __init__(
        self,
        tracer: Tracer,
        run: RunStarted,
        program: Program,
        span: str,
        *,
        mode: events.Mode = "responses",
    ) -> None:
        self._mode = mode
        self.tracer = tracer
        self.run_id = run.root_run_id or run.run_id
        self.deck = program.name
        self.span = span
        self.parent = run.parent_call_id
        self._program = program
        self._run = run

    @property
    def source(self) -> CallSource:
        """How the calls of the actor are told apart from those of others."""
        return CallSource(
            run_id=self.run_id, parent_call_id=self.span, deck_path=self.deck
        )

    def deck_start(self) -> None:
        """The actor begins a turn."""
        tracer = self.tracer
        if tracer.is_on:
            tracer.emit(
                events.DeckStart(
                    run_id=self.run_id,
                    time=tracer.stamp(),
                    action_call_id=self.span,
                    parent_action_call_id=self.parent,
                    deck_path=self.deck,
                    label=self._program.deck.label,
                    depth=self._run.depth,
                    log_run_id=self._run.run_id,
                    permissions=self._program.told_permissions,
                )
            )

    def deck_end(self, ended: TurnEnded, spent: Spent) -> None:
        """The actor ends a turn, which used so much."""
        tracer = self.tracer
        if tracer.is_on:
            tracer.emit(
                events.DeckEnd(
                    run_id=self.run_id,
                    time=tracer.stamp(),
                    action_call_id=self.span,
                    parent_action_call_id=self.parent,
                    deck_path=self.deck,
                    status=ended.status,
                    error=error_of(ended),
                    usage=spent.as_usage(),
                    cost=spent.known_cost,
                )
            )

    def user_message(self, message: str) -> None:
        """The user said something."""
        tracer = self.tracer
        if tracer.is_on:
            tracer.emit(
                events.UserMessage(
                    run_id=self.run_id,
                    time=tracer.stamp(),
                    action_call_id=self.span,
                    deck_path=self.deck,
                    message=message,
                )
            )

    def model_call(
        self, span: str, model: str, *, pass_number: int, items: list[Item], new: int
    ) -> None:
        """A model is asked; the last ``new`` items it has not been told before."""
        tracer, tools = self.tracer, self._program.template.tools or ()
        if tracer.is_on:
            tracer.emit(
                events.ModelCall(
                    run_id=self.run_id,
                    time=tracer.stamp(),
                    action_call_id=span,
                    parent_action_call_id=self.span,
                    deck_path=self.deck,
                    model=model,
                    pass_number=pass_number,
                    mode=self._mode,
                    item_count=len(items),
                    tool_count=len(tools),
                    response_items=tuple(items[len(items) - new :]),
                    tools=self._program.tool_names,
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
        tracer = self.tracer
        if not tracer.is_on:
            return
        unanswered = "failed" if error else "cancelled"
        tracer.emit(
            events.ModelResult(
                run_id=self.run_id,
                time=tracer.stamp(),
                action_call_id=span,
                parent_action_call_id=self.span,
                deck_path=self.deck,
                model=model,
                pass_number=pass_number,
                status=response.status if response else unanswered,
                finish_reason=_finish_reason(response),
                mode=self._mode,
                message=response.output_text if response else "",
                response_items=response.output if response else (),
                usage=response.usage if response else None,
                error=error,
            )
        )

    def failover(self, model: str, next_model: str, error: events.TraceError) -> None:
        """The next model is asked instead."""
        tracer = self.tracer
        if tracer.is_on:
            tracer.emit(
                events.ModelFailover(
                    run_id=self.run_id,
                    time=tracer.stamp(),
                    action_call_id=self.span,
                    deck_path=self.deck,
                    model=model,
                    next_model=next_model,
                    error=error,
                )
            )

    def notice(self, span: str, model: str, notice: Notice) -> None:
        """Something happened on the way to an answer."""
        tracer = self.tracer
        if tracer.is_on:
            tracer.emit(
                events.ModelNotice(
                    run_id=self.run_id,
                    time=tracer.stamp(),
                    action_call_id=span,
                    parent_action_call_id=self.span,
                    deck_path=self.deck,
                    model=model,
                    kind=notice.kind,
                    message=notice.message,
                    seconds=notice.seconds,
                )
            )

    def stream_event(self, span: str, model: str, event: Event) -> None:
        """A piece of a model's answer has come."""
        tracer = self.tracer
        if tracer.is_on:
            tracer.emit(
                events.StreamEvent(
                    run_id=self.run_id,
                    time=tracer.stamp(),
                    action_call_id=span,
                    parent_action_call_id=self.span,
                    deck_path=self.deck,
                    model=model,
                    event=event,
                )
            )

    def item_logged(self, entry: ItemAdded) -> None:
        """An item of the conversation is in the log, and may be shown now."""
        tracer = self.tracer
        if not tracer.is_on:
            return
        item = entry.item
        tracer.emit(
            events.ItemLogged(
                run_id=self.run_id,
                time=tracer.stamp(),
                action_call_id=self.span,
                deck_path=self.deck,
                item=item,
                source=entry.source,
            )
        )
        # What a child says besides its result is between it and whoever watches.
        if (
            entry.source == "model"
            and self._run.depth
            and isinstance(item, Message)
            and item.text
        ):
            tracer.emit(
                events.Monolog(
                    run_id=self.run_id,
                    time=tracer.stamp(),
                    action_call_id=self.span,
                    parent_action_call_id=self.parent,
                    deck_path=self.deck,
                    content=item.text,
                )
            )

    def call_start(
        self,
        call: FunctionCall,
        kind: events.ToolKind,
        *,
        permissions: Permissions | None = None,
    ) -> None:
        """A call begins; one to an action begins that, too, with what it may do."""
        tracer = self.tracer
        if not tracer.is_on:
            return
        if kind == "action":
            tracer.emit(
                events.ActionStart(
                    run_id=self.run_id,
                    time=tracer.stamp(),
                    action_call_id=call.call_id,
                    parent_action_call_id=self.span,
                    name=call.name,
                    path=call.name,
                    permissions=msgspec.to_builtins(permissions),
                )
            )
        tracer.emit(
            events.ToolCalled(
                run_id=self.run_id,
                time=tracer.stamp(),
                action_call_id=call.call_id,
                parent_action_call_id=self.span,
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
        is_error: bool = False,
    ) -> None:
        """A call has its output, which may be an error; None if it was cut."""
        tracer = self.tracer
        if not tracer.is_on:
            return
        status: events.EndStatus = "failed" if is_error else "completed"
        status = "cancelled" if output is None else status
        tracer.emit(
            events.ToolResult(
                run_id=self.run_id,
                time=tracer.stamp(),
                action_call_id=call.call_id,
                parent_action_call_id=self.span,
                name=call.name,
                result=output,
                tool_kind=kind,
                status=status,
            )
        )
        if kind == "action":
            tracer.emit(
                events.ActionEnd(
                    run_id=self.run_id,
                    time=tracer.stamp(),
                    action_call_id=call.call_id,
                    parent_action_call_id=self.span,
                    name=call.name,
                    path=call.name,
                    status=status,
                )
            )

    def in_doubt(
        self, call: FunctionCall, *, attempt: int, choice: events.DoubtChoice
    ) -> None:
        """Nobody knows whether a call has happened; this is done about it."""
        tracer = self.tracer
        if tracer.is_on:
            tracer.emit(
                events.CallInDoubt(
                    run_id=self.run_id,
                    time=tracer.stamp(),
                    action_call_id=call.call_id,
                    parent_action_call_id=self.span,
                    log_run_id=self._run.run_id,
                    deck_path=self.deck,
                    name=call.name,
                    attempt=attempt,
                    choice=choice,
                )
            )

    def internal_call(
        self, call: FunctionCall, output: str, *, is_refused: bool = False
    ) -> None:
        """A call that the runtime answers itself was made and answered."""
        self.call_start(call, "internal")
        self.call_end(call, "internal", output=output, is_error=is_refused)

    def handler_said(
        self, kind: Literal["busy", "idle", "error"], message: str, elapsed_ms: int
    ) -> None:
        """A handler had something to say to the user."""
        tracer = self.tracer
        if tracer.is_on:
            tracer.emit(
                events.HandlerSaid(
                    run_id=self.run_id,
                    time=tracer.stamp(),
                    action_call_id=self.span,
                    deck_path=self.deck,
                    kind=kind,
                    message=message,
                    elapsed_ms=elapsed_ms,
                )
            )

    def log(self, call_id: str, fields: dict[str, JSONValue]) -> None:
        """An author's code said something."""
        tracer = self.tracer
        if tracer.is_on:
            tracer.emit(
                events.Log(
                    run_id=self.run_id,
                    time=tracer.stamp(),
                    action_call_id=call_id,
                    parent_action_call_id=self.span,
                    deck_path=self.deck,
                    **fields,
                )
            )


def _finish_reason(response: Response | None) -> str:
    if response is None:
        return "error"
    if response.status != "completed":
        return "length" if response.status == "incomplete" else "error"
    for item in response.output:
        if isinstance(item, FunctionCall):
            return "tool_calls"
    return "stop"
