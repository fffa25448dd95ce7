"""What the suites share: a check, what it found, and a table of that."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

Verdict: TypeAlias = Literal["passed", "failed", "left out"]


class CheckFailed(AssertionError):
    """What was checked does not do what it has to."""


class LeftOut(Exception):
    """What was checked has no such thing, and says so."""


class Found(msgspec.Struct, frozen=True):
    """What came of one check.

    Attributes:
        check: its name.
        verdict: how it went.
        problem: what is wrong, or why it was left out.
    """

    check: str
    verdict: Verdict
    problem: str = ""


def require(condition: object, problem: str) -> None:
    """Fail a check unless something holds."""
    if not condition:
        raise CheckFailed(problem)


def table(found: Sequence[Found]) -> str:
    """What came of checks, a line for each."""
    width = max((len(line.check) for line in found), default=0)
    return "\n".join(
        f"{line.check:{width}}  {line.verdict:8}  {line.problem}".rstrip()
        for line in found
    )
