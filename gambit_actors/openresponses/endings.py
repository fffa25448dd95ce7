"""How a response ends: which terminal event tells it, and with what reason."""

from typing import Literal, TypeAlias

from gambit_actors.openresponses.events import (
    ResponseCompleted,
    ResponseFailed,
    ResponseIncomplete,
)
from gambit_actors.openresponses.responses import (
    IncompleteDetails,
    Response,
    ResponseError,
)

StopReason: TypeAlias = Literal[
    "end_turn", "stop_sequence", "tool_use", "max_tokens", "content_filter"
]
Terminal: TypeAlias = ResponseCompleted | ResponseFailed | ResponseIncomplete

INCOMPLETE_ITEM = "incomplete_item"
"""The reason of a response that is incomplete because one of its items is."""

UNEXPLAINED = ResponseError(code="unknown", message="no reason was given")
"""The error of a response that failed and does not say why."""

# Why a response is incomplete, for the stop reasons that make it so.
CUT_SHORT = {"max_tokens": "max_output_tokens", "content_filter": "content_filter"}


def ending_of(
    ended: Response, *, has_incomplete_item: bool
) -> tuple[type[Terminal], IncompleteDetails | None]:
    """The terminal event for a response that has ended elsewhere, and its details.

    One that calls itself completed and names an error has failed, and one with an
    incomplete item is incomplete.
    """
    details = ended.incomplete_details
    if ended.status == "incomplete" and details is None:
        details = IncompleteDetails(reason="unknown")
    if ended.status == "failed" or ended.error is not None:
        return ResponseFailed, details
    if ended.status == "completed" and details is None and has_incomplete_item:
        details = IncompleteDetails(reason=INCOMPLETE_ITEM)
    if ended.status == "incomplete" or details is not None:
        return ResponseIncomplete, details
    return ResponseCompleted, None
