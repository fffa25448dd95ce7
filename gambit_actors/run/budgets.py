"""What a tree of decks has spent, and what it may still spend.

Every invocation has an `Account`, and the accounts of a tree are chained: what a deck
spends is spent by all that are above it. A limit is kept by setting aside, before a
model is asked, the most that the call may use, in every account up the chain or in
none. Calls that run side by side therefore never spend the same tokens twice. When the
call has ended, what it used is counted and the rest is given back. A call that broke
off, and so never said what it used, is taken to have used it all.

How many tokens a request will come to is not known before it is sent, so it is taken
for more than it is: a token for every three bytes of its JSON. The answer is known to
be no longer than it is told to be.
"""

from collections.abc import Iterator

import msgspec

from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import (
    InputTokensDetails,
    OutputTokensDetails,
    Usage,
)

LEAST_OUTPUT = 16
"""The shortest answer worth asking for, in tokens: the wire allows no less."""

_BYTES_PER_TOKEN = 3
_MILLION = 1_000_000
_MOST_TOKENS = 2**53  # No answer is as long; a float has whole numbers up to here.
_encode = msgspec.json.Encoder().encode


class Price(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a model costs, for a million tokens.

    Attributes:
        cached_input: for input that the provider had seen before; None if it costs
            what other input does.
    """

    input: float
    output: float
    cached_input: float | None = None

    def cost_of(self, usage: Usage) -> float:
        """What an answer cost."""
        cached = usage.input_tokens_details.cached_tokens
        rate = self.input if self.cached_input is None else self.cached_input
        fresh = usage.input_tokens - cached
        total = fresh * self.input + cached * rate + usage.output_tokens * self.output
        return total / _MILLION


class Spent(msgspec.Struct, kw_only=True, gc=False):
    """What a part of a tree has used.

    Attributes:
        cost: of what has a price.
        has_unknown_cost: whether a model was asked whose price nobody knows.
        lost_tokens: what was set aside for calls that did not say what they used. They
            may have used it up, so it counts as such, and in no sum of what was used.
        lost_cost: the same in money.
        models: those that answered, in the order in which they first did.
        usage: the tokens as they were last asked for; None if they are others by now.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float = 0.0
    has_unknown_cost: bool = False
    passes: int = 0
    calls: int = 0
    decks: int = 0
    lost_tokens: int = 0
    lost_cost: float = 0.0
    models: dict[str, None] = {}
    usage: Usage | None = None

    @property
    def total_tokens(self) -> int:
        """All tokens, in and out."""
        return self.input_tokens + self.output_tokens

    @property
    def known_cost(self) -> float | None:
        """What it cost; None if a part of it is not known."""
        return None if self.has_unknown_cost else self.cost

    def add_answer(self, model: str, usage: Usage | None, price: Price | None) -> None:
        """Count what one answer used."""
        self.passes += 1
        self.models[model] = None
        if usage is None or price is None:
            self.has_unknown_cost = True
        else:
            self.cost += price.cost_of(usage)
        if usage is not None:
            self.usage = None
            self.input_tokens += usage.input_tokens
            self.output_tokens += usage.output_tokens
            self.cached_tokens += usage.input_tokens_details.cached_tokens
            self.reasoning_tokens += usage.output_tokens_details.reasoning_tokens

    def add_lost(self, tokens: int, cost: float) -> None:
        """Count a call that did not say what it used."""
        self.has_unknown_cost = True
        self.lost_tokens += tokens
        self.lost_cost += cost

    def add(self, other: "Spent") -> None:
        """Count what a part below has used."""
        self.usage = None
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cached_tokens += other.cached_tokens
        self.reasoning_tokens += other.reasoning_tokens
        self.cost += other.cost
        self.has_unknown_cost |= other.has_unknown_cost
        self.passes += other.passes
        self.calls += other.calls
        self.decks += other.decks
        self.lost_tokens += other.lost_tokens
        self.lost_cost += other.lost_cost
        self.models |= other.models

    def as_usage(self) -> Usage:
        """The tokens in the form of a response."""
        if self.usage is None:
            cached, reasoning = self.cached_tokens, self.reasoning_tokens
            self.usage = Usage(
                input_tokens=self.input_tokens,
                output_tokens=self.output_tokens,
                total_tokens=self.total_tokens,
                input_tokens_details=InputTokensDetails(cached_tokens=cached),
                output_tokens_details=OutputTokensDetails(reasoning_tokens=reasoning),
            )
        return self.usage


class Wanted(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a call of a model is about to need.

    Attributes:
        input_tokens: the most that the request can come to.
        output_tokens: how long the answer may be; None if nobody said.
        price: of the model; None if it is not known.
    """

    model: str
    input_tokens: int
    output_tokens: int | None
    price: Price | None


class Reserved(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What has been set aside for a call.

    Attributes:
        output_tokens: how long the answer may be, now.
    """

    output_tokens: int
    tokens: int
    cost: float


class Short(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """There is not enough left.

    Attributes:
        is_final: whether there never will be; else calls that are under way may
            give something back.
    """

    code: str
    message: str
    is_final: bool


class Account(msgspec.Struct, eq=False, gc=False):
    """What an invocation, with all below it, has spent and may spend.

    Attributes:
        above: the account of whoever asked for it.
        max_tokens: in and out; None for as many as those above allow.
        max_cost: the same for money.
        spent: what it has used.
        is_limited: whether this or one above has a limit.
        expecting: how many of those below will want a share and have none yet.
    """

    # It leads up to other accounts and nowhere else, so the collector need not look.

    above: "Account | None" = None
    max_tokens: int | None = None
    max_cost: float | None = None
    spent: Spent = msgspec.field(default_factory=Spent)
    expecting: int = 0
    is_limited: bool = False
    _held: int = 0
    _held_tokens: int = 0
    _held_cost: float = 0.0

    def __post_init__(self) -> None:
        above = self.above
        self.is_limited = (
            self.max_tokens is not None
            or self.max_cost is not None
            or (above is not None and above.is_limited)
        )

    def chain(self) -> "Iterator[Account]":
        """This account and all above it."""
        account: Account | None = self
        while account is not None:
            yield account
            account = account.above

    def count_deck(self) -> None:
        """Count an invocation."""
        # A loop and no generator here and below: every run comes by several times.
        account: Account | None = self
        while account is not None:
            account.spent.decks += 1
            account = account.above

    def count_call(self) -> None:
        """Count a call of an action or a tool."""
        account: Account | None = self
        while account is not None:
            account.spent.calls += 1
            account = account.above

    def count_answer(
        self, model: str, usage: Usage | None, price: Price | None
    ) -> None:
        """Count what an answer used."""
        account: Account | None = self
        while account is not None:
            account.spent.add_answer(model, usage, price)
            account = account.above

    def count_lost(self, reserved: Reserved | None) -> None:
        """Count a call that did not say what it used; None if nothing was set aside."""
        tokens, cost = (reserved.tokens, reserved.cost) if reserved else (0, 0.0)
        for account in self.chain():
            account.spent.add_lost(tokens, cost)

    def expect(self, more: int) -> None:
        """Say that so many more below will want a share, or fewer."""
        for account in self.chain():
            account.expecting += more

    def reserve(self, wanted: Wanted) -> Reserved | Short:
        """Set aside what a call may use, in all accounts of the chain or in none."""
        room: int | None = wanted.output_tokens
        for account in self.chain():
            found = account.room_for(wanted)
            if isinstance(found, Short):
                return found
            if found is not None:
                room = found if room is None else min(room, found)
        # A chain in which nothing is limited is not asked.
        output = LEAST_OUTPUT if room is None else room
        price = wanted.price
        cost = _cost(wanted.input_tokens, output, price) if price else 0.0
        reserved = Reserved(
            output_tokens=output, tokens=wanted.input_tokens + output, cost=cost
        )
        for account in self.chain():
            account.hold(reserved, 1)
        return reserved

    def give_back(self, reserved: Reserved) -> None:
        """Take back what was set aside: the call is over, and counted for itself."""
        for account in self.chain():
            account.hold(reserved, -1)

    def hold(self, reserved: Reserved, sign: int) -> None:
        """Set aside in this account alone, or with -1 take back."""
        self._held += sign
        self._held_tokens += sign * reserved.tokens
        self._held_cost += sign * reserved.cost
        if not self._held:
            self._held_cost = 0.0  # Sums of fractions do not come back to nothing.

    def room_for(self, wanted: Wanted) -> int | Short | None:
        """How long an answer this account has room for; None for any length."""
        rooms = [
            room
            for room in (self._room_in_tokens(wanted), self._room_in_cost(wanted))
            if room is not None
        ]
        for room in rooms:
            if isinstance(room, Short):
                return room
        whole = [room for room in rooms if isinstance(room, int)]
        return min(whole) if whole else None

    def _room_in_tokens(self, wanted: Wanted) -> int | Short | None:
        if self.max_tokens is None:
            return None
        used = self.spent.total_tokens + self.spent.lost_tokens
        left = self.max_tokens - used - self._held_tokens
        room = left - wanted.input_tokens
        if room >= LEAST_OUTPUT:
            return self._share(room, wanted)
        lost = self.spent.lost_tokens
        for_lost = f" ({lost} count for answers that did not say)" if lost else ""
        return Short(
            code="max_tokens",
            message=f"of {self.max_tokens} tokens {max(left, 0)} are left{for_lost}, "
            f"and the next call of {wanted.model} may need "
            f"{wanted.input_tokens + LEAST_OUTPUT}",
            is_final=not self._held,
        )

    def _room_in_cost(self, wanted: Wanted) -> int | Short | None:
        if self.max_cost is None:
            return None
        price = wanted.price
        if price is None:
            message = f"maxCost is set, and the price of {wanted.model} is not known"
            return Short(code="unknown_price", message=message, is_final=True)
        used = self.spent.cost + self.spent.lost_cost
        left = self.max_cost - used - self._held_cost
        needed = _cost(wanted.input_tokens, LEAST_OUTPUT, price)
        if left >= needed:
            if not price.output:
                return None
            rest = left - _cost(wanted.input_tokens, 0, price)
            # Of a price next to nothing there may be more than can be counted.
            tokens = min(rest * _MILLION / price.output, _MOST_TOKENS)
            return self._share(int(tokens), wanted)
        return Short(
            code="max_cost",
            message=f"of {self.max_cost:g} {max(left, 0.0):.6g} is left, and the next "
            f"call of {wanted.model} may cost {needed:.6g}",
            is_final=not self._held,
        )

    def _share(self, room: int, wanted: Wanted) -> int:
        """How much of the room one call takes: what it is told to, or its share."""
        if wanted.output_tokens is not None:
            return min(room, wanted.output_tokens)
        # Those who run side by side and have nothing yet get as much each.
        return max(room // max(self.expecting - self._held, 1), LEAST_OUTPUT)


def wanted_by(request: CreateResponse, model: str, price: Price | None) -> Wanted:
    """What a request may need."""
    size = len(_encode(request))
    return Wanted(
        model=model,
        input_tokens=size // _BYTES_PER_TOKEN + 1,
        output_tokens=request.max_output_tokens,
        price=price,
    )


def _cost(input_tokens: int, output_tokens: int, price: Price) -> float:
    return (input_tokens * price.input + output_tokens * price.output) / _MILLION
