"""Watchers see events as they happen, at their own pace and at nobody's cost."""

import gc
import weakref

import pytest
import trio
from trio.testing import (
    MockClock,
    assert_checkpoints,
    assert_no_checkpoints,
    wait_all_tasks_blocked,
)

from gambit_actors.trace.events import Lagged, Monolog, RunEnd, TraceEvent
from gambit_actors.trace.live import LiveFeed, Subscription
from gambit_actors.trace.tracer import Tracer


def said(content: object, run_id: str = "r") -> Monolog:
    """An event with some words in it."""
    return Monolog(run_id=run_id, time=1, deck_path="d", content=str(content))


async def collect(subscription: Subscription, into: list[TraceEvent]) -> None:
    """Read to the end."""
    into += [event async for event in subscription]


async def test_every_subscriber_sees_every_event() -> None:
    """Two watchers each get all events in order, and end with the feed."""
    feed = LiveFeed()
    tracer = Tracer(feed)
    seen: list[list[TraceEvent]] = [[], []]
    with feed.subscribe() as first, feed.subscribe() as second:
        async with trio.open_nursery() as watchers:
            watchers.start_soon(collect, first, seen[0])
            watchers.start_soon(collect, second, seen[1])
            for number in range(3):
                await wait_all_tasks_blocked()
                tracer.emit(said(number))
            feed.close()

    assert seen[0] == seen[1] == [said(0), said(1), said(2)]


async def test_an_event_wakes_who_waits_for_it(autojump_clock: MockClock) -> None:
    """A watcher gets an event when it happens, not at the next look."""
    feed = LiveFeed()
    times: list[float] = []

    async def watch(subscription: Subscription) -> None:
        times.extend([trio.current_time() async for _ in subscription])

    started = autojump_clock.current_time()
    with feed.subscribe() as events:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch, events)
            for _ in range(2):
                await trio.sleep(10)
                feed(said(0))
            await trio.sleep(10)
            feed.close()

    assert [time - started for time in times] == [10, 20]


async def test_a_slow_subscriber_loses_the_oldest_and_is_told() -> None:
    """What does not fit is missed from the front, and counted where it was."""
    feed = LiveFeed()
    with feed.subscribe(max_events=3) as events:
        for number in range(10):
            feed(said(number))
        feed.close()
        seen = [event async for event in events]

    lagged = Lagged(run_id="r", time=1, missed=7)
    assert seen == [lagged, said(7), said(8), said(9)]


async def test_the_end_of_a_run_is_never_what_is_lost() -> None:
    """Even a queue of one has how it ended."""
    feed = LiveFeed()
    end = RunEnd(run_id="r", time=9, deck_path="d", status="failed")
    with feed.subscribe(max_events=1) as events:
        feed(said(1))
        feed(end)
        feed.close()
        seen = [event async for event in events]

    assert seen == [Lagged(run_id="r", time=9, missed=1), end]


async def test_each_gap_is_counted_by_itself() -> None:
    """Who catches up and lags again is told of each time, and the sum is right."""
    feed = LiveFeed()
    seen: list[TraceEvent] = []
    with feed.subscribe(max_events=2) as events:
        for number in range(3):
            feed(said(number))
        seen += [await anext(events), await anext(events)]
        for number in range(3, 7):
            feed(said(number))
        feed.close()
        seen += [event async for event in events]

    assert [getattr(event, "missed", None) for event in seen] == [
        *(1, None),
        *(3, None, None),
    ]
    assert sum(getattr(event, "missed", 1) for event in seen) == 7


async def test_a_slow_subscriber_costs_the_others_nothing() -> None:
    """One that reads sees all, next to one that never reads."""
    feed = LiveFeed()
    with feed.subscribe(max_events=1), feed.subscribe() as events:
        for number in range(5):
            feed(said(number))
        feed.close()
        seen = [event async for event in events]

    assert seen == [said(number) for number in range(5)]


async def test_one_run_can_be_watched_alone() -> None:
    """Events of other runs neither arrive nor take up room."""
    feed = LiveFeed()
    with feed.subscribe(run_id="b", max_events=1) as events:
        feed(said(1, "b"))
        feed(said(2, "a"))
        feed.close()
        seen = [event async for event in events]

    assert seen == [said(1, "b")]


async def test_emitting_is_no_checkpoint(nursery: trio.Nursery) -> None:
    """A run that is watched takes its turns exactly as one that is not."""
    feed = LiveFeed()
    with feed.subscribe(max_events=2) as events:
        nursery.start_soon(collect, events, [])
        await wait_all_tasks_blocked()
        with assert_no_checkpoints():
            for number in range(5):
                feed(said(number))
            feed.close()


async def test_taking_many_events_is_a_checkpoint() -> None:
    """Also a watcher with plenty waiting lets others run, though not for each event."""
    feed = LiveFeed()
    with feed.subscribe() as events:
        for number in range(500):
            feed(said(number))
        with assert_checkpoints():
            for _ in range(300):
                await anext(events)


async def test_cancelled_means_no_event_was_taken() -> None:
    """An event offered to a cancelled watcher is there for the next look."""
    feed = LiveFeed()
    with feed.subscribe() as events:
        feed(said(0))
        with trio.CancelScope() as scope:
            scope.cancel()
            await anext(events)

        assert scope.cancelled_caught
        assert await anext(events) == said(0)


async def test_a_cancelled_subscriber_leaves_nothing_behind() -> None:
    """After cancel the feed knows nobody, and holds neither queue nor event."""
    feed = LiveFeed()
    kept: list[weakref.ref[Subscription]] = []

    async def watch() -> None:
        with feed.subscribe() as events:
            kept.append(weakref.ref(events))
            async for _ in events:
                pass

    async with trio.open_nursery() as inner:
        inner.start_soon(watch)
        await wait_all_tasks_blocked()
        assert feed.subscriber_count == 1
        inner.cancel_scope.cancel()

    feed(said(0))
    gc.collect()
    assert feed.subscriber_count == 0
    assert kept[0]() is None


async def test_leaving_the_block_ends_the_iteration() -> None:
    """A subscription that outlives its block gives nothing and waits for nothing."""
    feed = LiveFeed()
    with feed.subscribe() as events:
        feed(said(0))

    assert [event async for event in events] == []


async def test_a_closed_feed_can_still_be_asked() -> None:
    """Who comes too late gets an end at once; to close or emit again does no harm."""
    feed = LiveFeed()
    feed.close()
    feed.close()
    feed(said(0))

    with feed.subscribe() as events:
        assert [event async for event in events] == []
    assert feed.subscriber_count == 0


async def test_tasks_can_share_a_subscription() -> None:
    """Each event goes to one of two tasks, and both end."""
    feed = LiveFeed()
    seen: list[TraceEvent] = []
    with feed.subscribe() as events:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(collect, events, seen)
            nursery.start_soon(collect, events, seen)
            await wait_all_tasks_blocked()
            for number in range(4):
                feed(said(number))
            await wait_all_tasks_blocked()
            feed.close()

    assert sorted(seen, key=repr) == [said(number) for number in range(4)]


def test_a_queue_has_room_for_something() -> None:
    """No room at all is a mistake of the caller, said at once."""
    with (
        pytest.raises(ValueError, match="at least 1"),
        LiveFeed().subscribe(max_events=0),
    ):
        pass
