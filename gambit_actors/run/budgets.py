"""What a tree of decks has spent, counted as it is spent."""

import msgspec

from gambit_actors.openresponses.responses import (
    InputTokensDetails,
    OutputTokensDetails,
    Usage,
)


class Spent(msgspec.Struct, kw_only=True):
    """What a part of a tree has used."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float = 0.0
    has_unknown_cost: bool = False
    passes: int = 0
    calls: int = 0
    decks: int = 0

    @property
    def total_tokens(self) -> int:
        """All tokens, in and out."""
        return self.input_tokens + self.output_tokens

    def add_usage(self, usage: Usage) -> None:
        """Count what one answer used."""
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.cached_tokens += usage.input_tokens_details.cached_tokens
        self.reasoning_tokens += usage.output_tokens_details.reasoning_tokens

    def as_usage(self) -> Usage:
        """The tokens in the form of a response."""
        return Usage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            total_tokens=self.total_tokens,
            input_tokens_details=InputTokensDetails(cached_tokens=self.cached_tokens),
            output_tokens_details=OutputTokensDetails(
                reasoning_tokens=self.reasoning_tokens
            ),
        )
