"""What a tree may spend is set aside before it is spent, and never twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.openresponses.items import user_message
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import InputTokensDetails, Usage
from gambit_actors.run.budgets import (
    LEAST_OUTPUT,
    Account,
    Price,
    Reserved,
    Short,
    Wanted,
    wanted_by,
)

PRICE = Price(input=2.0, output=10.0, cached_input=0.5)


def want(
    input_tokens: int = 100, output: int | None = None, price: Price | None = None
) -> Wanted:
    """A call that is about to be made."""
    return Wanted(
        model="m", input_tokens=input_tokens, output_tokens=output, price=price
    )


def used(input_tokens: int, output_tokens: int, cached: int = 0) -> Usage:
    """What an answer says it took."""
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=input_tokens + output_tokens,
        input_tokens_details=InputTokensDetails(cached_tokens=cached),
    )


def room(found: Reserved | Short) -> int:
    """How long an answer may be; there must be room for one."""
    assert isinstance(found, Reserved)
    return found.output_tokens


def short(found: Reserved | Short) -> Short:
    """Why there is no room; there must be none."""
    assert isinstance(found, Short)
    return found


def test_a_call_gets_what_is_left_after_its_own_words() -> None:
    """One who is alone may use the rest of the budget for its answer."""
    account = Account(max_tokens=1000)
    assert room(account.reserve(want(100))) == 900


def test_a_deck_s_own_limit_on_answers_is_kept() -> None:
    """Where the deck says how long an answer may be, no more is set aside."""
    account = Account(max_tokens=1000)
    assert room(account.reserve(want(100, output=50))) == 50
    assert room(account.reserve(want(100, output=5000))) == 750


def test_what_is_set_aside_is_gone_until_it_is_given_back() -> None:
    """A second call does not get what the first may still use, and waits for it."""
    account = Account(max_tokens=1000)
    first = account.reserve(want(100, output=800))
    assert isinstance(first, Reserved)
    problem = short(account.reserve(want(100)))
    assert (problem.code, problem.is_final) == ("max_tokens", False)
    account.count_answer("m", used(90, 10), None)
    account.give_back(first)
    assert room(account.reserve(want(100))) == 800


def test_a_budget_that_is_spent_is_a_clear_end() -> None:
    """Who finds too little left, and nobody to wait for, is told how much it is."""
    account = Account(max_tokens=1000)
    account.count_answer("m", used(500, 450), None)
    problem = short(account.reserve(want(100)))
    assert problem.is_final
    assert problem.message == (
        "of 1000 tokens 50 are left, and the next call of m may need 116"
    )


def test_a_child_spends_what_is_its_parent_s() -> None:
    """Usage goes up the chain, and a limit above holds below."""
    root = Account(max_tokens=1000)
    child = Account(root, max_tokens=100_000)
    grandchild = Account(child)
    grandchild.count_answer("m", used(300, 100), PRICE)
    grandchild.count_call()
    grandchild.count_deck()
    for account in (root, child, grandchild):
        spent = account.spent
        assert (spent.total_tokens, spent.passes, spent.calls, spent.decks) == (
            *(400, 1),
            *(1, 1),
        )
        assert list(spent.models) == ["m"]
    assert room(grandchild.reserve(want(100))) == 500
    assert grandchild.is_limited
    assert not Account(Account()).is_limited


def test_a_sibling_s_spending_is_not_in_ours() -> None:
    """An account has what it and those below used, and nothing else."""
    root = Account()
    one, two = Account(root), Account(root)
    one.count_answer("m", used(10, 0), None)
    assert (two.spent.total_tokens, root.spent.total_tokens) == (0, 10)


def test_those_side_by_side_get_the_same_share() -> None:
    """Three who were expected share what is left; a lone one gets all of it."""
    root = Account(max_tokens=3300)
    root.expect(3)
    children = [Account(root) for _ in range(3)]
    rooms = [room(child.reserve(want(100))) for child in children]
    assert rooms == [1066, 1017, 917]
    assert sum(rooms) + 300 <= 3300


def test_money_is_set_aside_like_tokens() -> None:
    """With a price, what a call may cost limits how long its answer may be."""
    account = Account(max_cost=0.01)
    # 1,000 tokens in cost 0.002, and the rest is worth 800 tokens out.
    first = account.reserve(want(1000, price=PRICE))
    assert room(first) == 800
    problem = short(account.reserve(want(1000, price=PRICE)))
    assert (problem.code, problem.is_final) == ("max_cost", False)
    assert isinstance(first, Reserved)
    account.give_back(first)
    account.count_answer("m", used(1000, 790), PRICE)
    problem = short(account.reserve(want(1000, price=PRICE)))
    assert problem.is_final
    assert problem.message.startswith("of 0.01 0.0001 is left, and the next call of m")


def test_a_model_without_a_price_has_no_place_under_a_cost_limit() -> None:
    """What it costs is not known, so it is not asked."""
    problem = short(Account(max_cost=1.0).reserve(want()))
    assert (problem.code, problem.is_final) == ("unknown_price", True)


def test_free_answers_are_as_long_as_they_like() -> None:
    """Where only input costs, a cost limit says nothing about output."""
    free = Price(input=1.0, output=0.0)
    account = Account(max_cost=1.0, max_tokens=500)
    assert room(account.reserve(want(100, price=free))) == 400


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (used(1_000_000, 0), 2.0),
        (used(0, 1_000_000), 10.0),
        (used(1_000_000, 0, cached=1_000_000), 0.5),
    ],
)
def test_costs_are_by_the_million(usage: Usage, cost: float) -> None:
    """Input, output and cached input each have their price."""
    account = Account()
    account.count_answer("m", usage, PRICE)
    assert account.spent.known_cost == pytest.approx(cost)


def test_an_unknown_price_is_not_taken_for_nothing() -> None:
    """One answer without a price, or without usage, and the cost is unknown."""
    for usage, price in ((used(1, 1), None), (None, PRICE)):
        account = Account()
        account.count_answer("m", used(1, 1), PRICE)
        assert account.spent.known_cost is not None
        account.count_answer("m", usage, price)
        assert account.spent.known_cost is None


def test_a_request_is_taken_for_more_than_it_is() -> None:
    """A third of its bytes as tokens; the deck's own limit on output goes along."""
    request = CreateResponse(
        model="m", input=(user_message("word " * 300),), max_output_tokens=64
    )
    wanted = wanted_by(request, "m", None)
    assert wanted.input_tokens > 500
    assert wanted.output_tokens == 64


_CALLS = st.lists(
    st.tuples(
        st.integers(1, 400),  # how much goes in
        st.one_of(st.none(), st.integers(16, 600)),  # what the deck says of output
        st.floats(0, 1),  # how much of what it may it uses
        st.integers(0, 2),  # which of three children asks
        st.booleans(),  # whether an older call ends first
    ),
    max_size=40,
)


@pytest.mark.spec("CARD-4")
@given(calls=_CALLS, most=st.integers(50, 5000), own=st.integers(50, 5000))
def test_no_budget_is_ever_overshot(
    calls: list[tuple[int, int | None, float, int, bool]], most: int, own: int
) -> None:
    """However calls overlap, what is spent and held stays within every limit."""
    root = Account(max_tokens=most, max_cost=most / 100_000)
    children = [Account(root, max_tokens=own) for _ in range(3)]
    root.expect(3)
    running: list[tuple[Account, Reserved, Usage]] = []

    def end_one() -> None:
        account, reserved, usage = running.pop(0)
        account.count_answer("m", usage, PRICE)
        account.give_back(reserved)

    for input_tokens, output, share, which, ends in calls:
        if ends and running:
            end_one()
        child = children[which]
        found = child.reserve(want(input_tokens, output, PRICE))
        if isinstance(found, Reserved):
            assert found.output_tokens >= min(LEAST_OUTPUT, output or LEAST_OUTPUT)
            used_up = used(input_tokens, int(found.output_tokens * share))
            running.append((child, found, used_up))
        else:
            # Whoever is to wait has somebody to wait for.
            assert found.is_final or running
    while running:
        end_one()
    assert root.spent.total_tokens <= most
    assert root.spent.cost <= most / 100_000 * (1 + 1e-9)
    assert all(child.spent.total_tokens <= own for child in children)


@pytest.mark.parametrize(
    ("most", "rate"), [(1.0, 1e-320), (1e300, 1e-9), (float("inf"), 1.0)]
)
def test_a_price_next_to_nothing_leaves_room_that_can_be_counted(
    most: float, rate: float
) -> None:
    """There is more than any answer needs, and what is set aside is a plain number."""
    account = Account(max_cost=most)
    found = account.reserve(want(price=Price(input=0.0, output=rate)))
    assert LEAST_OUTPUT < room(found) <= 2**53
