"""How long each phase of an attempt is waited for, by a clock of the test's own."""

import pytest
import trio
from trio.testing import MockClock

from gambit_actors.providers.endpoints import Timeouts
from gambit_actors.providers.errors import Phase
from gambit_actors.providers.http_phases import Phases


@pytest.mark.parametrize(
    ("entered", "timeouts", "phase", "after"),
    [
        ("connect", Timeouts(connect=2.0, total=9.0), "connect", 2.0),
        ("connect", Timeouts(connect=20.0, total=9.0), "total", 9.0),
        ("first_byte", Timeouts(first_byte=3.0, total=9.0), "first_byte", 4.0),
        ("first_byte", Timeouts(first_byte=30.0, total=9.0), "total", 9.0),
    ],
)
async def test_nothing_is_waited_for_beyond_the_total(
    entered: Phase,
    timeouts: Timeouts,
    phase: str,
    after: float,
    autojump_clock: MockClock,
) -> None:
    """A phase ends when its own time is over, or the total, whichever comes first."""
    del autojump_clock
    began = trio.current_time()
    phases = Phases("acme", timeouts)

    with trio.fail_after(100), phases.begin():
        if entered != "connect":
            await trio.sleep(1.0)
            phases.enter(entered)
        await trio.sleep_forever()

    assert trio.current_time() - began == pytest.approx(after)
    assert phases.timeout().phase == phase


async def test_a_second_beginning_has_what_is_left_of_the_total(
    autojump_clock: MockClock,
) -> None:
    """A request that is sent again does not get all of the time again."""
    del autojump_clock
    began = trio.current_time()
    phases = Phases("acme", Timeouts(connect=6.0, total=9.0))

    for _ in range(2):
        with trio.fail_after(100), phases.begin():
            await trio.sleep_forever()

    assert trio.current_time() - began == pytest.approx(9.0)
    assert phases.seconds_left() <= 0
