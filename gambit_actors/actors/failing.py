"""What went wrong, as far as it decides what happens next."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import trio

from gambit_actors.errors import StoreError
from gambit_actors.run.entries import Failure, TurnEnded
from gambit_actors.trace import events

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


def error_of(ended: TurnEnded) -> events.TraceError | None:
    """Why a turn did not work, if it did not."""
    failure = ended.failure
    if failure is None:
        return None
    return events.TraceError(code=failure.code, message=failure.message)


class CallersOwn:
    """Keeps what a caller's block raises out of the nursery around it.

    It leaves the block as it is, then, and not in a group with what the actors had to
    say. That holds for the wish to end the program as well, of which Python takes no
    notice inside of a group.
    """

    _Kept = (Exception, KeyboardInterrupt, SystemExit)

    def __init__(self) -> None:
        self._problem: BaseException | None = None

    def __enter__(self) -> Self:
        """Go around the nursery."""
        return self

    def __exit__(
        self, _kind: object, raised: BaseException | None, _traceback: object
    ) -> None:
        """Raise what was kept."""
        problem = self._problem
        if problem is None:
            return
        # A mistake of ours comes first, unless the program is to end. That the block
        # was cancelled as well does not: the caller had raised before it noticed.
        if not (_is_mistake(raised) and isinstance(problem, Exception)):
            raise problem

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep what is raised in this block, inside of the nursery's."""
        try:
            yield
        except self._Kept as problem:
            self._problem = problem


def _is_mistake(raised: BaseException | None) -> bool:
    """Whether tasks came to anything but being cancelled."""
    if not isinstance(raised, BaseExceptionGroup):
        return False
    _cancels, others = raised.split(trio.Cancelled)
    return others is not None
