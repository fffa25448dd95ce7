"""Turns at one server, on a clock that jumps."""

import math

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from gambit_actors.providers.endpoints import Pace
from gambit_actors.providers.gate import Gate
from gambit_actors.providers.pacing import WINDOW_SECONDS


async def test_a_turn_that_is_free_is_not_waited_for(autojump_clock: MockClock) -> None:
    """Who finds the gate open has waited for nothing, and is seen to be inside."""
    gate = Gate(Pace(start_at_once=2, most_at_once=2))
    async with gate.admitted() as admission:
        assert admission.waited_seconds == 0.0
        assert (gate.snapshot().open, gate.snapshot().limit) == (1, 2)
    assert gate.snapshot().open == 0


async def test_turns_come_in_order(autojump_clock: MockClock) -> None:
    """Those who wait go in the order of their coming, the large ones too."""
    gate = Gate(Pace(start_at_once=1, most_at_once=1, tokens_per_minute=100))
    order: list[int] = []

    async def ask(number: int) -> None:
        async with gate.admitted(tokens=80 if number == 1 else 1):
            order.append(number)
            await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(ask, number)
            await wait_all_tasks_blocked()
        assert gate.snapshot().waiting == 4
    assert order == [0, 1, 2, 3, 4]


@pytest.mark.spec("PA-8")
async def test_nobody_asks_while_a_server_wants_to_be_left_alone(
    autojump_clock: MockClock,
) -> None:
    """A refusal with a time stops all who share the gate until exactly then."""
    gate = Gate(Pace())
    began = trio.current_time()
    async with gate.admitted() as admission:
        admission.refused(12.5)
    assert gate.snapshot().paused_seconds == 12.5
    assert gate.snapshot().limit == 32

    async def ask() -> None:
        async with gate.admitted() as late:
            assert late.waited_seconds == 12.5
            assert trio.current_time() == began + 12.5

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(ask)
    assert gate.snapshot().paused_seconds == 0.0


async def test_a_rate_is_kept_to_the_second(autojump_clock: MockClock) -> None:
    """Two a minute are two a minute."""
    gate = Gate(Pace(requests_per_minute=2))
    began = trio.current_time()
    times: list[float] = []
    for _ in range(6):
        async with gate.admitted():
            times.append(trio.current_time() - began)
    assert times == [0, 0, 60, 60, 120, 120]


async def test_tokens_that_were_not_used_are_given_back(
    autojump_clock: MockClock,
) -> None:
    """A smaller answer than thought lets the next one go at once."""
    gate = Gate(Pace(tokens_per_minute=100))
    began = trio.current_time()
    waited: list[float] = []

    async def ask() -> None:
        async with gate.admitted(tokens=90) as second:
            waited.append(second.waited_seconds)

    async with trio.open_nursery() as nursery, gate.admitted(tokens=90) as first:
        nursery.start_soon(ask)
        await trio.sleep(5)
        first.used(10)
        await wait_all_tasks_blocked()
    assert waited == [5.0]
    assert trio.current_time() == began + 5


async def test_a_cancelled_wait_leaves_nothing(autojump_clock: MockClock) -> None:
    """Who gives up is not waited for, first or not, and those behind move up."""
    gate = Gate(Pace(start_at_once=1, most_at_once=1))
    went: list[str] = []

    async def ask(name: str, scope: trio.CancelScope) -> None:
        with scope:
            async with gate.admitted():
                went.append(name)

    scopes = {name: trio.CancelScope() for name in "abcd"}
    async with trio.open_nursery() as nursery, gate.admitted():
        for name, scope in scopes.items():
            nursery.start_soon(ask, name, scope)
            await wait_all_tasks_blocked()
        scopes["a"].cancel()
        scopes["c"].cancel()
        await wait_all_tasks_blocked()
        assert gate.snapshot().waiting == 2
        # It is b's turn in the moment in which b gives up.
        scopes["b"].cancel()
    assert went == ["d"]
    assert (gate.snapshot().open, gate.snapshot().waiting) == (0, 0)


async def test_a_turn_that_fails_is_given_back(autojump_clock: MockClock) -> None:
    """An error inside, or a cancel, ends the turn like anything else."""
    gate = Gate(Pace(start_at_once=1, most_at_once=1))
    with pytest.raises(ValueError, match="inside"):
        async with gate.admitted():
            raise ValueError("inside")
    with trio.move_on_after(1):
        async with gate.admitted():
            await trio.sleep_forever()
    with trio.CancelScope() as scope:
        scope.cancel()
        async with gate.admitted():
            pytest.fail("was cancelled before")
    assert gate.snapshot().open == 0


async def test_a_crowd_settles_at_what_a_server_stands(
    autojump_clock: MockClock,
) -> None:
    """2,000 requests at a server that stands 50: all answered, and few refused."""
    gate = Gate(Pace())
    busy = refusals = 0

    async def ask() -> None:
        nonlocal busy, refusals
        while True:
            async with gate.admitted() as admission:
                if busy >= 50:
                    refusals += 1
                    admission.refused(0.5)
                    continue
                busy += 1
                await trio.sleep(1)
                busy -= 1
                admission.succeeded()
                return

    async with trio.open_nursery() as nursery:
        for _ in range(2000):
            nursery.start_soon(ask)
    assert refusals < 200
    assert gate.snapshot().limit <= 64


# A crowd of requests: when each comes, its tokens, how long it takes, what it comes
# to, and after which time its asker gives up.
_CROWD = st.lists(
    st.tuples(
        st.integers(0, 100),
        st.integers(0, 60),
        st.integers(0, 90),
        st.sampled_from(["ok", "ok", "refused", "asked to wait", "silent"]),
        st.sampled_from([math.inf, math.inf, 0, 1, 30, 300]),
    ),
    max_size=25,
)


@given(
    crowd=_CROWD,
    requests=st.none() | st.integers(1, 6),
    tokens=st.none() | st.integers(60, 200),
    most=st.integers(1, 5),
    is_adaptive=st.booleans(),
)
def test_no_crowd_gets_past(
    crowd: list[tuple[int, int, int, str, float]],
    requests: int | None,
    tokens: int | None,
    most: int,
    *,
    is_adaptive: bool,
) -> None:
    """Never more open than the limit, never more in 60 seconds; all have their turn."""
    pace = Pace(
        requests_per_minute=requests,
        tokens_per_minute=tokens,
        most_at_once=most,
        start_at_once=2,
        is_adaptive=is_adaptive,
    )
    went: list[tuple[float, int]] = []
    ends: list[str] = []

    async def ask(gate: Gate, request: tuple[int, int, int, str, float]) -> None:
        comes, size, takes, result, patience = request
        await trio.sleep(comes)
        with trio.move_on_after(patience):
            async with gate.admitted(tokens=size) as admission:
                went.append((trio.current_time(), size))
                assert gate.snapshot().open <= min(most, gate.snapshot().limit)
                await trio.sleep(takes)
                if result == "ok":
                    admission.succeeded()
                elif result != "silent":
                    admission.refused(7.0 if result == "asked to wait" else None)
        ends.append(result)

    async def play() -> None:
        gate = Gate(pace)
        with trio.fail_after(1_000_000):
            async with trio.open_nursery() as nursery:
                for request in crowd:
                    nursery.start_soon(ask, gate, request)
        assert (gate.snapshot().open, gate.snapshot().waiting) == (0, 0)

    trio.run(play, clock=MockClock(autojump_threshold=0))
    assert len(ends) == len(crowd)
    patient = [request for request in crowd if math.isinf(request[4])]
    assert len(went) >= len(patient)
    for at, _ in went:
        window = [size for when, size in went if at <= when < at + WINDOW_SECONDS]
        assert requests is None or len(window) <= requests
        assert tokens is None or sum(window) <= tokens
