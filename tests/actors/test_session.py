"""A session can be watched while it answers, left early, and closed at any time."""

from collections.abc import Sequence

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from gambit_actors.actors.memory_log import MemoryLog, MemoryStore
from gambit_actors.actors.runtime import Runtime, open_runtime
from gambit_actors.errors import RequestError
from gambit_actors.openresponses.events import OutputTextDelta
from gambit_actors.openresponses.items import Message
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Reply
from gambit_actors.run.entries import Entry, RunEnded, RunStarted, TurnEnded
from gambit_actors.run.ports import ModelContext
from gambit_actors.trace.events import (
    DeckEnd,
    DeckStart,
    ItemLogged,
    Lagged,
    RunEnd,
    StreamEvent,
    TraceEvent,
)
from gambit_actors.trace.trees import trees_from_events, unbalanced, walk
from tests.actors.playing import ANYTHING, calls, outputs_of, root, stage
from tests.deck.reading import Texts

ONE = {"PROMPT.md": root()}
CHILD = 'contextSchema = "a.json"\nresponseSchema = "a.json"\nrespond = true\n'
TREE = {
    "PROMPT.md": root(
        '[[actions]]\nname = "a"\ndescription = "Do it."\npath = "a/PROMPT.md"\n'
    ),
    "a/PROMPT.md": root(CHILD),
    "a/a.json": ANYTHING,
}
TREE_SCRIPT = [
    Reply(text="One moment. ", calls=calls("a").calls),
    Reply(
        deck="*a/PROMPT.md",
        text="To myself.",
        calls=calls("gambit_respond", payload={}).calls,
    ),
    Reply(text="All is well."),
]


class HeldStore(MemoryStore):
    """A store whose disk takes items only when told to."""

    def __init__(self) -> None:
        super().__init__(keep=True)
        self.gate = trio.Event()

    async def open_log(self, run: RunStarted, /) -> MemoryLog:
        """Make a log that waits before it appends."""
        gate = self.gate

        class HeldLog(MemoryLog):
            async def append(self, entries: Sequence[Entry], /) -> None:
                await gate.wait()
                await super().append(entries)

        log = HeldLog(run)
        await trio.lowlevel.checkpoint()
        self.logs[run.run_id] = log
        return log


async def test_a_turn_is_watched_with_everything_below_it() -> None:
    """Events of the root and its child come in order; the result is there at the end.

    What a runtime's own sinks are told is the same, and the run's start and end.
    """
    seen: list[TraceEvent] = []
    async with stage(TREE, TREE_SCRIPT) as on:
        async with (
            on.runtime.open_session("PROMPT.md") as session,
            session.stream("Hi.") as stream,
        ):
            async for event in stream:
                seen.append(event)  # noqa: PERF401  # as a reader would write it
        told = on.sink.events
    assert stream.result.text == "All is well."
    assert seen == told[1:-1]
    assert isinstance(seen[0], DeckStart)
    assert isinstance(seen[-1], DeckEnd)
    assert [e.depth for e in seen if isinstance(e, DeckStart)] == [0, 1]
    assert {event.run_id for event in told} == {stream.result.run_id}
    assert unbalanced(told) == []
    (run,) = trees_from_events(told)
    (deck,) = run.children
    (call,) = [span for span in deck.children if span.kind == "action"]
    (child,) = [span for span in walk([call]) if span.kind == "deck"]
    assert child.name == "a/PROMPT.md"


async def test_text_is_what_the_root_says() -> None:
    """Pieces of the root's words come as they are sent; a child's are not shown."""
    async with (
        stage(TREE, TREE_SCRIPT) as on,
        on.runtime.open_session("PROMPT.md") as session,
        session.stream("Hi.") as stream,
    ):
        pieces = [piece async for piece in stream.text()]
    assert "".join(pieces) == "One moment. All is well."
    assert len(pieces) > 2


async def test_a_session_streams_turn_after_turn() -> None:
    """Each stream has its own turn, and sending goes on beside it."""
    script = [Reply(text="One."), Reply(text="Two."), Reply(text="Three.")]
    async with (
        stage(ONE, script) as on,
        on.runtime.open_session("PROMPT.md") as session,
    ):
        said = []
        for _ in range(2):
            async with session.stream("Go on.") as stream:
                said.append([piece async for piece in stream.text()])
        assert said == [["One."], ["Two."]]
        assert (await session.send("Go on.")).text == "Three."


async def test_an_item_is_shown_when_the_log_has_it(
    autojump_clock: MockClock,
) -> None:
    """Nobody hears of an item before it is kept."""
    store = HeldStore()
    seen: list[TraceEvent] = []
    async with (
        open_runtime(
            ScriptedProvider([Reply(text="Hello.")]), reader=Texts(ONE), store=store
        ) as runtime,
        runtime.open_session("PROMPT.md") as session,
        session.stream("Hi.") as stream,
        trio.open_nursery() as nursery,
    ):

        async def watch() -> None:
            async for event in stream:
                if isinstance(event, ItemLogged):
                    (log,) = store.logs.values()
                    kept = [getattr(entry, "item", None) for entry in log.entries]
                    assert event.item in kept
                seen.append(event)

        nursery.start_soon(watch)
        await trio.sleep(1)
        assert [event.type for event in seen] == ["deck.start"]
        store.gate.set()
    items = [e.item for e in seen if isinstance(e, ItemLogged)]
    assert [i.text for i in items if isinstance(i, Message)] == [
        "Be kind.",
        "Hi.",
        "Hello.",
    ]


async def test_words_are_shown_before_the_answer_is_whole(
    autojump_clock: MockClock,
) -> None:
    """The first piece is there while the model still has most of it to say."""
    reply = Reply(text="one two three four", per_delta_seconds=1)
    async with (
        stage(ONE, [reply]) as on,
        on.runtime.open_session("PROMPT.md") as session,
        session.stream("Hi.") as stream,
    ):
        times = [(piece, trio.current_time()) async for piece in stream.text()]
    assert [time for _, time in times] == [1, 2, 3, 4]


async def test_leaving_a_stream_cancels_its_turn(autojump_clock: MockClock) -> None:
    """Nothing is left behind: the log and the trace have their endings."""
    script = [
        calls("a"),
        Reply(deck="*a/PROMPT.md", text="a b c d e f", fault="hang"),
    ]
    async with stage(TREE, script) as on:
        async with on.runtime.open_session("PROMPT.md") as session:
            async with session.stream("Hi.") as stream:
                async for event in stream:
                    if isinstance(event, StreamEvent) and isinstance(
                        event.event, OutputTextDelta
                    ):
                        (actor,) = on.runtime.snapshot()
                        assert len(actor.children) == 1
                        break
            (actor,) = on.runtime.snapshot()
            assert (actor.doing, actor.children) == ("waiting", ())
            with pytest.raises(RequestError, match="has no result"):
                _ = stream.result
        assert unbalanced(on.sink.events) == []
        (end,) = on.sink.of(RunEnd)
        assert end.status == "cancelled"
        for log in on.store.logs.values():
            ended, closed = log.entries[-2:]
            assert isinstance(ended, TurnEnded)
            assert isinstance(closed, RunEnded)
            assert (ended.status, closed.status) == ("cancelled", "cancelled")


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_a_session_goes_on_after_a_turn_that_was_cancelled(
    is_streamed: bool, autojump_clock: MockClock
) -> None:
    """Calls of the cut turn have outputs, half words are kept, and more can be said."""
    script = [
        Reply(text="Let me see. ", calls=calls("a").calls),
        Reply(deck="*a/PROMPT.md", text="a b c d e f", fault="hang"),
        Reply(text="one two three four", fault="hang"),
        Reply(text="All is well."),
    ]
    async with stage(TREE, script) as on:
        async with on.runtime.open_session("PROMPT.md") as session:
            for _ in range(2):
                with trio.move_on_after(1) as scope:
                    if is_streamed:
                        async with session.stream("Hi.") as stream:
                            async for _event in stream:
                                pass
                    else:
                        await session.send("Hi.")
                assert scope.cancelled_caught
                assert session.last is not None
                assert session.last.status == "cancelled"
            result = await session.send("And now?")
        assert unbalanced(on.sink.events) == []
    assert (result.status, result.text) == ("completed", "All is well.")
    said = [i.text for i in result.items if isinstance(i, Message)]
    assert said == [
        "Be kind.",
        "Hi.",
        "Let me see. ",
        "Hi.",
        "one two ",
        "And now?",
        "All is well.",
    ]
    (output,) = outputs_of(result.items)["a"]
    assert '"code":"not_carried_out"' in output


async def test_a_send_that_is_not_waited_for_is_cancelled(
    autojump_clock: MockClock,
) -> None:
    """A caller's own deadline stops the turn before the caller goes on."""
    async with stage(ONE, [Reply(fault="hang")]) as on:
        async with on.runtime.open_session("PROMPT.md") as session:
            with trio.move_on_after(1) as scope:
                await session.send("Hi.")
            assert scope.cancelled_caught
            assert [actor.doing for actor in on.runtime.snapshot()] == ["waiting"]
            assert isinstance(on.entries()[-1], TurnEnded)
        assert isinstance(on.entries()[-1], RunEnded)
        assert unbalanced(on.sink.events) == []


async def test_a_slow_reader_is_told_what_it_missed() -> None:
    """The run does not wait for a reader; a gap is told, and the end is seen."""
    reply = Reply(text="word " * 500)
    async with (
        stage(ONE, [reply]) as on,
        on.runtime.open_session("PROMPT.md") as session,
        session.stream("Hi.", max_events=10) as stream,
    ):
        await wait_all_tasks_blocked()
        assert stream.ended is not None  # before anything was read
        seen = [event async for event in stream]
    first, *rest = seen
    assert isinstance(first, Lagged)
    assert first.missed > 480
    assert len(rest) == 10
    assert isinstance(rest[-1], DeckEnd)
    assert stream.result.text == reply.text


async def test_a_reader_that_only_reads_misses_nothing() -> None:
    """A long answer that comes all at once arrives whole, piece by piece."""
    words = "word " * 20_000
    async with (
        stage({"PROMPT.md": root()}, [Reply(text=words)]) as on,
        on.runtime.open_session("PROMPT.md") as session,
        session.stream("Hi.") as stream,
    ):
        pieces = [piece async for piece in stream.text()]
        assert stream.result.text == words
    assert "".join(pieces) == words


async def test_two_sessions_do_not_see_each_other(autojump_clock: MockClock) -> None:
    """Each stream has its own session's events, in one runtime or in two."""

    async def watch(stage_: str, seen: dict[str, set[str]]) -> None:
        async with (
            runtimes[stage_[0]].open_session("PROMPT.md") as session,
            session.stream("Hi.") as stream,
        ):
            seen[stage_] = {event.run_id async for event in stream}
            assert seen[stage_] == {stream.result.run_id}

    seen: dict[str, set[str]] = {}
    script = [Reply(text="a b c", per_delta_seconds=1)]
    async with stage(ONE, script) as one, stage(ONE, script) as two:
        runtimes = {"1": one.runtime, "2": two.runtime}
        async with trio.open_nursery() as nursery:
            for name in ("1a", "1b", "2a"):
                nursery.start_soon(watch, name, seen)
        assert {event.run_id for event in one.sink.events} == seen["1a"] | seen["1b"]
        assert {event.run_id for event in two.sink.events} == seen["2a"]


async def test_a_stream_needs_no_sinks() -> None:
    """Where nobody traces, a stream is told all the same, and only while it lasts."""
    async with (
        open_runtime(
            ScriptedProvider([Reply(text="Hi.", times=0)]), reader=Texts(ONE)
        ) as runtime,
        runtime.open_session("PROMPT.md") as session,
    ):
        tracer = session._tree.tracer  # noqa: SLF001
        told = [tracer.is_on]
        async with session.stream("Hi.") as stream:
            told.append(tracer.is_on)
            kinds = [event.type async for event in stream]
        told.append(tracer.is_on)
    assert kinds[-1] == "deck.end"
    assert told == [False, True, False]


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_what_is_asked_wrongly_comes_out_plain(is_streamed: bool) -> None:
    """A caller's mistake is the error itself, and not a group with it inside."""

    async def ask(runtime: Runtime) -> None:
        async with runtime.open_session("PROMPT.md") as session:
            if is_streamed:
                async with session.stream():
                    pass
            else:
                await session.send()

    files = {"PROMPT.md": root('startMode = "user"')}
    async with stage(files, [Reply(text="Hi.")]) as on:
        with pytest.raises(RequestError, match="waits for the user"):
            await ask(on.runtime)
        assert on.runtime.snapshot() == ()


async def test_what_a_reader_raises_comes_out_plain() -> None:
    """An error in the block of a stream cancels the turn and leaves as it is."""
    async with stage(ONE, [Reply(fault="hang")]) as on:
        with pytest.raises(ValueError, match="mine"):
            async with (
                on.runtime.open_session("PROMPT.md") as session,
                session.stream("Hi."),
            ):
                raise ValueError("mine")
        assert on.runtime.snapshot() == ()
        assert unbalanced(on.sink.events) == []


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("is_streamed", [True, False])
@pytest.mark.parametrize("is_cancelled", [True, False])
def test_what_ends_the_program_comes_out_plain(
    kind: type[BaseException], *, is_streamed: bool, is_cancelled: bool
) -> None:
    """Raised in a block of ours, it is in no group: ``sys.exit(3)`` ends with 3."""
    problem = kind(3)

    async def ask() -> None:
        async with stage(ONE, [Reply(text="Hi."), Reply(fault="hang")]) as on:
            with trio.CancelScope() as scope:
                async with on.runtime.open_session("PROMPT.md") as session:
                    await session.send("Hi.")
                    if is_cancelled:
                        scope.cancel()
                    if not is_streamed:
                        raise problem
                    async with session.stream("And now?"):
                        raise problem

    with pytest.raises(kind) as caught:
        trio.run(ask)
    assert caught.value is problem


async def test_a_cancelled_block_is_cancelled() -> None:
    """Nothing that is kept apart keeps a scope from ending the blocks inside it."""
    async with stage(ONE, [Reply(text="Hi."), Reply(fault="hang")]) as on:
        with trio.CancelScope() as scope:
            async with on.runtime.open_session("PROMPT.md") as session:
                await session.send("Hi.")
                async with session.stream("And now?"):
                    scope.cancel()
                    await trio.lowlevel.checkpoint()
        assert scope.cancelled_caught
        assert on.runtime.snapshot() == ()


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_a_provider_that_breaks_the_rules_hangs_nobody(is_streamed: bool) -> None:
    """What only a bug raises ends the session, in a group, and leaves nothing alive."""

    def fail(_request: CreateResponse, _context: ModelContext) -> Reply:
        raise ZeroDivisionError

    async def ask(runtime: Runtime) -> None:
        async with runtime.open_session("PROMPT.md") as session:
            if is_streamed:
                async with session.stream("Hi.") as stream:
                    async for _ in stream:
                        pass
            else:
                await session.send("Hi.")

    async with open_runtime(ScriptedProvider(fail), reader=Texts(ONE)) as runtime:
        with pytest.RaisesGroup(ZeroDivisionError):
            await ask(runtime)
        assert runtime.snapshot() == ()


async def test_a_session_does_one_thing_at_a_time() -> None:
    """While a turn is watched there is no other."""
    async with (
        stage(ONE, [Reply(text="Hi.", times=0)]) as on,
        on.runtime.open_session("PROMPT.md") as session,
    ):
        async with session.stream("Hi.") as stream:
            with pytest.raises(RequestError, match="still busy"):
                await session.send("And?")
            assert [piece async for piece in stream.text()] == ["Hi."]
        assert (await session.send("And now?")).text == "Hi."


@pytest.mark.parametrize("turns", [0, 1])
async def test_an_idle_session_closes_by_being_left(turns: int) -> None:
    """Nothing has to be cancelled for it, and a log that was begun gets its ending."""
    async with stage(ONE, [Reply(text="Hi.")]) as on:
        async with on.runtime.open_session("PROMPT.md") as session:
            for _ in range(turns):
                await session.send("Hi.")
            await wait_all_tasks_blocked()
        assert on.runtime.snapshot() == ()
        assert [type(log.entries[-1]) for log in on.store.logs.values()] == (
            [RunEnded] * turns  # Where nothing was said, there is nothing to keep.
        )
        with pytest.raises(RequestError, match="the session is over"):
            await session.send("Hi.")
