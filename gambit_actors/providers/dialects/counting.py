"""Token counts as servers send them: a number that can be trusted, or none.

Servers leave counts out, send them as text, negative, as fractions, or as totals that
are less than their parts. A count is never made up, and never spoils an answer.
"""

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.responses import (
    InputTokensDetails,
    OutputTokensDetails,
    Usage,
)

MOST_TOKENS = 1_000_000_000
"""More than any one answer can cost; a count beyond it is an error of the server's."""


def token_count(value: JSONValue) -> int | None:
    """Read a count; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Also false for what is not a number at all.
    if not 0 <= value <= MOST_TOKENS:
        return None
    return int(value)


def usage_of(
    *,
    input_tokens: JSONValue,
    output_tokens: JSONValue,
    total_tokens: JSONValue = None,
    cached_tokens: JSONValue = None,
    reasoning_tokens: JSONValue = None,
) -> Usage | None:
    """Put counts together; None if the two that matter are not both there.

    Input includes what came from a cache, output what was thought.
    """
    spent, made = token_count(input_tokens), token_count(output_tokens)
    if spent is None or made is None:
        return None
    return Usage(
        input_tokens=spent,
        output_tokens=made,
        total_tokens=max(token_count(total_tokens) or 0, spent + made),
        input_tokens_details=InputTokensDetails(
            cached_tokens=min(token_count(cached_tokens) or 0, spent)
        ),
        output_tokens_details=OutputTokensDetails(
            reasoning_tokens=min(token_count(reasoning_tokens) or 0, made)
        ),
    )
