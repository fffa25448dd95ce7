"""What is written down when a turn begins, and when a model has answered."""

from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    user_message,
)
from gambit_actors.openresponses.responses import Response
from gambit_actors.run.entries import Entry, ItemAdded, ModelAnswered, TurnStarted
from gambit_actors.run.programs import Program
from gambit_actors.run.states import RunState


def opening_entries(
    program: Program,
    state: RunState,
    context: tuple[FunctionCall, FunctionCallOutput] | None,
    message: str | None,
    *,
    max_passes: int | None = None,
) -> list[Entry]:
    """What a turn begins with; prompt and context only the first time.

    Args:
        program: the deck.
        state: the run before the turn.
        context: the pair of items that gives it; None for none.
        message: what the user says; None if the deck speaks first.
        max_passes: what the run allows at most; None for what the deck does.
    """
    entries: list[Entry] = [TurnStarted(max_passes=max_passes)]
    if not state.turns and program.opening is not None:
        entries.append(ItemAdded(item=program.opening, source="deck"))
    entries += [ItemAdded(item=item, source="deck") for item in context or ()]
    if message is not None:
        entries.append(ItemAdded(item=user_message(message), source="user"))
    return entries


def answer_entry(model: str, response: Response, asked: str = "") -> ModelAnswered:
    """What is noted of an answer, before its items; and how the model was asked."""
    return ModelAnswered(
        model=model,
        status=response.status,
        response_id=response.id,
        reason=_reason(response),
        usage=response.usage,
        asked=asked,
    )


def _reason(response: Response) -> str | None:
    if response.error is not None:
        return response.error.message
    details = response.incomplete_details
    return details.reason if details is not None else None
