"""What a server is asked at once and per minute, decided without a clock."""

import math

import pytest

from gambit_actors.providers.endpoints import Pace
from gambit_actors.providers.pacing import LONGEST_PAUSE_SECONDS, Tempo


def test_the_limit_doubles_until_the_first_refusal() -> None:
    """A round of answers doubles what may be open, as long as others wait."""
    tempo = Tempo(Pace(start_at_once=4, most_at_once=100))
    for expected in (8, 16, 32, 64, 100):
        for _ in range(tempo.limit):
            tempo.on_success(waiting=1000)
        assert tempo.limit == expected


def test_a_limit_that_nobody_needs_does_not_grow() -> None:
    """Answers to a few requests say nothing of what a server would stand."""
    tempo = Tempo(Pace(start_at_once=4))
    for _ in range(100):
        tempo.on_sent(0, 0.0)
        tempo.on_success(waiting=0)
        tempo.open -= 1
    assert tempo.limit == 4


def test_a_refusal_halves_once_for_all_that_were_on_their_way() -> None:
    """Of many refused together, one halves; one sent afterwards halves again."""
    tempo = Tempo(Pace(start_at_once=64))
    together = [tempo.on_sent(0, 1.0) for _ in range(64)]
    for sent in together:
        tempo.on_refused(sent, None, 2.0)
    assert tempo.limit == 32
    tempo.on_refused(tempo.on_sent(0, 3.0), None, 4.0)
    assert tempo.limit == 16


def test_after_a_refusal_the_limit_grows_by_one_a_round() -> None:
    """What was learnt is not forgotten: growth is slow from then on."""
    tempo = Tempo(Pace(start_at_once=8))
    tempo.on_refused(tempo.on_sent(0, 1.0), None, 1.0)
    for expected in (5, 6, 7):
        for _ in range(tempo.limit):
            tempo.on_success(waiting=100)
        assert tempo.limit == expected


def test_one_request_may_always_be_open() -> None:
    """However often a server refuses, somebody goes on asking."""
    tempo = Tempo(Pace(start_at_once=2, most_at_once=0))
    for at in range(10):
        tempo.on_refused(tempo.on_sent(0, at + 0.5), None, at + 0.5)
        tempo.open -= 1
    assert tempo.limit == 1
    assert tempo.free_at(0, 99.0) == 99.0


@pytest.mark.parametrize(
    ("asked", "until"),
    [(7.0, 17.0), (1e9, 10.0 + LONGEST_PAUSE_SECONDS), (0.0, 10.0), (None, 10.0)],
)
@pytest.mark.spec("PA-8")
def test_a_server_is_left_alone_as_long_as_it_asks(
    asked: float | None, until: float
) -> None:
    """No request goes before a server wants to be asked again, within a limit."""
    tempo = Tempo(Pace())
    sent = tempo.on_sent(0, 9.0)
    tempo.on_refused(sent, asked, 10.0)
    assert tempo.free_at(0, 10.0) == until
    tempo.on_refused(sent, 1.0, 10.0)
    assert tempo.free_at(0, 10.0) == max(until, 11.0)


def test_a_limit_that_is_not_adaptive_stays_and_pauses_are_kept() -> None:
    """Where the limit is settled, refusals change nothing but when one may ask."""
    tempo = Tempo(Pace(is_adaptive=False, most_at_once=5, start_at_once=1))
    sent = tempo.on_sent(0, 0.0)
    tempo.on_refused(sent, 30.0, 1.0)
    tempo.on_success(waiting=9)
    assert tempo.limit == 5
    assert tempo.free_at(0, 1.0) == 31.0


def test_the_requests_of_a_minute_are_counted_exactly() -> None:
    """With three a minute, the fourth goes when the first is a minute old."""
    tempo = Tempo(Pace(requests_per_minute=3))
    for at in (0.0, 1.0, 2.0):
        assert tempo.free_at(0, at) == at
        tempo.on_sent(0, at)
    assert tempo.free_at(0, 3.0) == 60.0
    assert tempo.free_at(0, 60.0) == 60.0
    tempo.on_sent(0, 60.0)
    assert tempo.free_at(0, 60.0) == 61.0


def test_the_tokens_of_a_minute_are_counted_as_they_become_known() -> None:
    """An answer that took less than thought lets others go sooner."""
    tempo = Tempo(Pace(tokens_per_minute=1000))
    first = tempo.on_sent(600, 0.0)
    tempo.on_sent(300, 10.0)
    assert tempo.free_at(500, 20.0) == 60.0
    assert tempo.free_at(900, 20.0) == 70.0
    tempo.on_used(first, 100)
    assert tempo.free_at(500, 20.0) == 20.0
    tempo.on_used(first, 900)
    assert tempo.free_at(500, 20.0) == 60.0


def test_a_request_larger_than_a_minutes_tokens_goes_alone() -> None:
    """It can never be within the rate, so it waits for an empty minute, not forever."""
    tempo = Tempo(Pace(tokens_per_minute=1000))
    tempo.on_sent(10, 0.0)
    assert tempo.free_at(5000, 1.0) == 60.0
    tempo.on_sent(5000, 60.0)
    assert tempo.free_at(1, 61.0) == 120.0


def test_a_full_house_is_left_by_somebody_first() -> None:
    """At the limit there is no time at which another may go."""
    tempo = Tempo(Pace(start_at_once=1))
    tempo.on_sent(0, 0.0)
    assert tempo.free_at(0, 0.0) == math.inf
    tempo.open -= 1
    assert tempo.free_at(0, 0.0) == 0.0


def test_an_answer_that_is_older_than_a_minute_counts_for_nothing() -> None:
    """What it took was in a minute that is over, and is not added to this one."""
    tempo = Tempo(Pace(tokens_per_minute=1000))
    slow = tempo.on_sent(600, 0.0)
    assert tempo.free_at(100, 61.0) == 61.0
    tempo.on_sent(100, 61.0)
    tempo.on_used(slow, 1000)
    assert tempo.free_at(900, 61.0) == 61.0
