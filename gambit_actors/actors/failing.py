"""What went wrong, as far as it decides what happens next."""

from gambit_actors.errors import StoreError
from gambit_actors.run.entries import Failure

MODEL_FAILURES = frozenset(
    {"model_failed", "model_incomplete", "model_unavailable", "refusal"}
)
"""What an error handler is told of besides calls: the deck's own model let it down."""


def is_of_model(failure: Failure | None) -> bool:
    """Whether a turn failed because of the deck's own model."""
    return failure is not None and failure.code in MODEL_FAILURES


def store_error_in(problem: BaseException) -> StoreError | None:
    """The reason why something could not be stored, if that is what went wrong.

    It may come in groups, from calls that ran side by side and were cancelled for it.
    """
    if isinstance(problem, StoreError):
        return problem
    if isinstance(problem, BaseExceptionGroup):
        for inner in problem.exceptions:
            found = store_error_in(inner)
            if found is not None:
                return found
    return None
