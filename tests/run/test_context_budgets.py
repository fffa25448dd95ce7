"""A context bundle within a budget: the end of the conversation that fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import RequestError
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    assistant_message,
    system_message,
    user_message,
)
from gambit_actors.run.context_budgets import (
    ContextBudget,
    rough_tokens,
    within_budget,
)
from gambit_actors.run.context_bundles import compile_context, encode_bundle
from gambit_actors.run.entries import Entry, ItemAdded, RunStarted

OPENING = [system_message("Be kind."), assistant_message("What can I do?")]


def exchange(number: int, calls: int = 1) -> list[Item]:
    """One thing a user said and what followed."""
    items: list[Item] = [user_message(f"Question {number}.")]
    for call in range(calls):
        call_id = f"c{number}.{call}"
        items.append(FunctionCall(call_id=call_id, name="crm", arguments="{}"))
        items.append(FunctionCallOutput(call_id=call_id, output="ok"))
    return [*items, assistant_message(f"Answer {number}.")]


def log_of(items: list[Item]) -> list[Entry]:
    """A log with nothing in it but items."""
    run = RunStarted(run_id="run-1", deck="PROMPT.md")
    return [run, *(ItemAdded(item=item, source="user") for item in items)]


@pytest.mark.spec("PA-6")
def test_the_last_exchanges_are_kept_whole() -> None:
    """So many things that a user said, with calls and outputs, behind the opening."""
    items = [*OPENING, *exchange(1), *exchange(2), *exchange(3)]

    kept = within_budget(items, ContextBudget(user_messages=2))

    assert kept == (*OPENING, *exchange(2), *exchange(3))


@pytest.mark.spec("PA-6")
def test_tokens_are_kept_to_and_used() -> None:
    """Exchanges are added from the end for as long as all of it fits."""
    items = [*OPENING, *exchange(1), *exchange(2), *exchange(3)]
    needed = sum(map(rough_tokens, [*OPENING, *exchange(2), *exchange(3)]))

    assert within_budget(items, ContextBudget(tokens=needed)) == (
        *OPENING,
        *exchange(2),
        *exchange(3),
    )
    assert within_budget(items, ContextBudget(tokens=needed - 1)) == (
        *OPENING,
        *exchange(3),
    )


def test_a_budget_that_is_too_small_says_so() -> None:
    """An exchange is never cut in two: if not even the last one fits, that is told."""
    with pytest.raises(RequestError, match="more than 5 tokens"):
        within_budget([*OPENING, *exchange(1)], ContextBudget(tokens=5))


@pytest.mark.parametrize("name", ["user_messages", "tokens"])
def test_a_limit_of_nothing_makes_no_sense(name: str) -> None:
    """Zero and less are refused with the name of the limit."""
    with pytest.raises(RequestError, match=name):
        ContextBudget(**{name: 0})


def test_a_conversation_without_a_user_is_kept() -> None:
    """Where nobody has spoken there is no place to cut."""
    assert within_budget(OPENING, ContextBudget(tokens=1)) == tuple(OPENING)


@pytest.mark.spec("PA-6")
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=8),
    st.none() | st.integers(1, 10),
    st.none() | st.integers(1, 2000),
)
def test_any_budget_gives_the_longest_end_that_fits(
    shape: list[int], messages: int | None, tokens: int | None
) -> None:
    """What is kept is within both limits, ends as the log does, and could not grow."""
    parts = [exchange(number, calls) for number, calls in enumerate(shape)]
    items: list[Item] = [*OPENING, *(item for part in parts for item in part)]
    budget = ContextBudget(user_messages=messages, tokens=tokens)

    def fits(count: int) -> bool:
        end = [item for part in parts[len(parts) - count :] for item in part]
        cost = sum(map(rough_tokens, [*OPENING, *end]))
        return (messages is None or count <= messages) and (
            tokens is None or cost <= tokens
        )

    most = max((n for n in range(1, len(parts) + 1) if fits(n)), default=0)
    if not most:
        with pytest.raises(RequestError):
            within_budget(items, budget)
        return
    kept = within_budget(items, budget)
    said = [i for i in kept if isinstance(i, Message) and i.role == "user"]
    assert kept[:2] == tuple(OPENING)
    assert len(said) == most
    assert list(kept[2:]) == items[len(items) - len(kept) + 2 :]


@pytest.mark.spec("PA-6")
def test_the_same_log_and_budget_are_the_same_bytes() -> None:
    """A bundle says by which rules it was made, and is made the same way each time."""
    log = log_of([*OPENING, *exchange(1), *exchange(2)])
    budget = ContextBudget(user_messages=1)

    bundle = compile_context(log, budget=budget)

    assert bundle.compiler.strategy == "recent_exchanges_v1"
    assert encode_bundle(bundle) == encode_bundle(compile_context(log, budget=budget))
    assert len(bundle.items) == len([*OPENING, *exchange(2)])
    # What is kept still says where in the log it stands.
    assert bundle.items[-1].thread_seq == len(log) - 1  # type: ignore[union-attr]  # a message
