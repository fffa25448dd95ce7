"""A list of events becomes a tree, cut anywhere, and says what is out of balance."""

import typing

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from gambit_actors.openresponses.events import OutputTextDelta
from gambit_actors.openresponses.responses import Usage
from gambit_actors.trace.events import (
    ActionEnd,
    ActionStart,
    DeckEnd,
    DeckStart,
    Lagged,
    Log,
    ModelCall,
    ModelResult,
    RunEnd,
    RunStart,
    StreamEvent,
    ToolCalled,
    ToolResult,
    TraceEvent,
)
from gambit_actors.trace.sinks import MemorySink
from gambit_actors.trace.tracer import Tracer
from gambit_actors.trace.trees import Span, trees_from_events, unbalanced, walk
from tests.trace import strategies
from tests.trace.strategies import legal_traces

BEGINS = (RunStart, DeckStart, ModelCall, ActionStart, ToolCalled)
ENDS = (RunEnd, DeckEnd, ModelResult, ActionEnd, ToolResult)


def ids(
    id_: str | None, parent: str | None = None, time: float = 0
) -> dict[str, typing.Any]:
    """What says where an event belongs."""
    return {
        "run_id": "r",
        "time": time,
        "action_call_id": id_,
        "parent_action_call_id": parent,
    }


def deck(id_: str, parent: str | None, *inner: TraceEvent) -> list[TraceEvent]:
    """A deck with something in it."""
    begin = DeckStart(**ids(id_, parent), deck_path=id_)
    end = DeckEnd(**ids(id_, parent), deck_path=id_, status="completed")
    return [begin, *inner, end]


def model(
    id_: str, parent: str | None, *inner: TraceEvent, tokens: int, pass_number: int = 1
) -> list[TraceEvent]:
    """A model call of a deck, which has the deck's ids."""
    what: dict[str, typing.Any] = {"deck_path": id_, "model": "m"}
    usage = Usage(input_tokens=tokens, output_tokens=1, total_tokens=tokens + 1)
    end = ModelResult(
        **ids(id_, parent),
        **what,
        pass_number=pass_number,
        status="completed",
        finish_reason="stop",
        usage=usage,
    )
    begin = ModelCall(**ids(id_, parent), **what, pass_number=pass_number)
    return [begin, *inner, end]


def action(id_: str, parent: str, *inner: TraceEvent) -> list[TraceEvent]:
    """A call of a model for an action, and the action."""
    return [
        ToolCalled(**ids(id_, parent), name="look", args={}, tool_kind="action"),
        ActionStart(**ids(id_, parent), name="look", path="p"),
        *inner,
        ActionEnd(**ids(id_, parent), name="look", path="p"),
        ToolResult(**ids(id_, parent), name="look", result="", tool_kind="action"),
    ]


def run(*inner: TraceEvent) -> list[TraceEvent]:
    """A run with something in it."""
    end = RunEnd(run_id="r", time=9, deck_path="root", status="completed")
    return [RunStart(run_id="r", time=1, deck_path="root"), *inner, end]


def outline(span: Span) -> typing.Any:  # noqa: ANN401  (as deep as the tree)
    """A tree as kinds and ids."""
    return (span.kind, span.id, [outline(child) for child in span.children])


NESTED = run(
    *deck(
        "d1",
        None,
        *model("d1", None, tokens=10),
        *action("c1", "d1", *deck("d2", "c1", *model("d2", "c1", tokens=5))),
        *model("d1", None, tokens=20, pass_number=2),
    )
)


def test_spans_nest_as_the_calls_did() -> None:
    """A run holds a deck, that a model call and a tool, that an action, that a deck."""
    (root,) = trees_from_events(NESTED)

    assert outline(root) == (
        "run",
        None,
        [
            (
                "deck",
                "d1",
                [
                    ("model", "d1", []),
                    (
                        "tool",
                        "c1",
                        [
                            (
                                "action",
                                "c1",
                                [("deck", "d2", [("model", "d2", [])])],
                            )
                        ],
                    ),
                    ("model", "d1", []),
                ],
            )
        ],
    )


def test_usage_is_summed_for_every_subtree() -> None:
    """Each span has the tokens of all model calls in it, and no others."""
    (root,) = trees_from_events(NESTED)
    (top,) = root.children
    tool = top.children[1]

    inputs = [span.usage and span.usage.input_tokens for span in (root, top, tool)]

    assert inputs == [35, 35, 5]
    assert root.usage is not None
    assert root.usage.total_tokens == 38


def test_a_span_tells_its_name_status_and_duration() -> None:
    """What a view shows of a span is there without looking into its events."""
    (root,) = trees_from_events(NESTED)
    tool = root.children[0].children[1]

    assert (root.name, root.status, root.duration) == ("root", "completed", 8)
    assert (tool.name, tool.is_open) == ("look", False)


def test_model_calls_may_have_ids_of_their_own() -> None:
    """A model call that names its deck as its parent is in that deck."""
    call = ModelCall(**ids("m1", "d1"), deck_path="d", model="m", pass_number=1)

    (root,) = trees_from_events(run(*deck("d1", None, call)))

    assert outline(root.children[0]) == ("deck", "d1", [("model", "m1", [])])


def test_streamed_events_are_in_the_model_call_and_logs_in_the_deck() -> None:
    """What has the ids of both goes where it belongs."""
    delta = OutputTextDelta(output_index=0, delta="x")
    streamed = StreamEvent(**ids("d1"), deck_path="d", model="m", event=delta)
    log = Log(**ids("d1"), deck_path="d", message="hm")
    stray = Log(**ids("nobody"), deck_path="d", message="hm")
    inner = model("d1", None, streamed, log, stray, tokens=1)

    (root,) = trees_from_events(run(*deck("d1", None, *inner)))

    (top,) = root.children
    assert top.children[0].events == (streamed,)
    assert top.events == (log,)
    assert root.events == (stray,)


@pytest.mark.parametrize("ends", [(1, 2), (2, 1)])
def test_passes_that_are_told_side_by_side_have_their_own_ends(
    ends: tuple[int, int],
) -> None:
    """Calls of a model may all have the deck's id; the pass tells which one ended."""
    calls = {n: model("d1", None, tokens=n * 10, pass_number=n) for n in (1, 2)}
    begins = [calls[n][0] for n in (1, 2)]
    events = run(*deck("d1", None, *begins, *(calls[n][1] for n in ends)))

    (root,) = trees_from_events(events)

    spans = root.children[0].children
    assert [span.usage and span.usage.input_tokens for span in spans] == [10, 20]
    assert unbalanced(events) == []


def test_an_end_of_another_pass_ends_nothing() -> None:
    """The call that had begun stays open, and the end is a call of its own."""
    begin, _ = model("d1", None, tokens=1, pass_number=1)
    _, end = model("d1", None, tokens=2, pass_number=2)
    events = run(*deck("d1", None, begin, end))

    (root,) = trees_from_events(events)

    assert [span.is_open for span in root.children[0].children] == [True, False]
    assert len(unbalanced(events)) == 2


def test_the_same_call_id_in_two_decks_is_two_calls() -> None:
    """Models number their calls alike; parents keep them apart while both are open."""
    first, second = action("c1", "d1"), action("c1", "d2")
    mixed = [event for pair in zip(first, second, strict=True) for event in pair]
    decks = [deck("d1", None), deck("d2", None)]
    events = run(decks[0][0], decks[1][0], *mixed, decks[0][1], decks[1][1])

    (root,) = trees_from_events(events)

    assert [outline(span) for span in root.children] == [
        ("deck", id_, [("tool", "c1", [("action", "c1", [])])]) for id_ in ("d1", "d2")
    ]
    assert unbalanced(events) == []


def test_a_child_that_outlives_its_parent_is_still_its_child() -> None:
    """A deck that begins after its caller's end hangs where it was called."""
    (root,) = trees_from_events(run(*deck("d1", None), *deck("d2", "d1")))

    assert outline(root.children[0]) == ("deck", "d1", [("deck", "d2", [])])


def test_a_cut_list_has_open_spans() -> None:
    """What had not ended when the list was cut is open, and has its tokens so far."""
    (root,) = trees_from_events(NESTED[:6])

    open_spans = [(span.kind, span.status) for span in walk([root]) if span.is_open]

    assert open_spans == [
        *(("run", "open"), ("deck", "open"), ("tool", "open"), ("action", "open")),
    ]
    assert root.duration is None
    assert root.usage is not None
    assert root.usage.input_tokens == 10


def test_a_list_without_its_beginning_has_spans_that_only_ended() -> None:
    """A watcher who came late still gets a tree; the run is made up to hold it."""
    lagged = Lagged(run_id="r", time=1, missed=3)

    (root,) = trees_from_events([lagged, *NESTED[-2:-1]])

    assert (root.kind, root.start, root.end, root.name) == ("run", None, None, "")
    (ended,) = root.children
    assert (ended.start, ended.status, ended.name) == (None, "completed", "d1")
    assert root.events == (lagged,)


def test_events_before_the_start_of_a_run_are_in_it() -> None:
    """A start that comes late is the start of the tree that is there already."""
    early = Log(**ids(None), deck_path="d", message="loading")

    (root,) = trees_from_events([early, *run()])

    assert root.events == (early,)
    assert unbalanced([early, *run()]) == []


def test_a_run_told_twice_is_two_trees() -> None:
    """A run id that is used again does not mix the two."""
    assert [root.status for root in trees_from_events([*run(), *run()])] == [
        "completed",
        "completed",
    ]
    assert unbalanced([*run(), *run()[1:]]) == ["run.end of r has no run.start"]


def test_very_deep_trees_need_no_deep_stack() -> None:
    """A chain of ten thousand decks is put together like any other."""
    chain = [DeckStart(**ids(str(n), str(n - 1)), deck_path="d") for n in range(10_000)]

    assert len(list(walk(trees_from_events(chain)))) == 10_001


@pytest.mark.parametrize(
    ("index", "fault"),
    [
        (0, "run.end of r has no run.start"),
        (1, "deck.end of d1 in run r has no deck.start"),
        (2, "model.result of d1 in run r (pass 1) has no model.call"),
        (3, "model.call of d1 in run r (pass 1) has no model.result"),
        (4, "tool.result of c1 in run r has no tool.call"),
        (5, "action.end of c1 in run r has no action.start"),
        (10, "action.start of c1 in run r has no action.end"),
        (11, "tool.call of c1 in run r has no tool.result"),
        (14, "deck.start of d1 in run r has no deck.end"),
        (15, "run.start of r has no run.end"),
    ],
)
def test_the_one_that_is_missing_is_named(index: int, fault: str) -> None:
    """Taking one begin or end out of a trace is found, and nothing else is."""
    events = [*NESTED[:index], *NESTED[index + 1 :]]

    assert unbalanced(events) == [fault]


def test_an_end_before_its_begin_is_two_faults() -> None:
    """Order counts: an end cannot close what has not begun."""
    begin, end = deck("d1", None)

    assert len(unbalanced(run(end, begin))) == 2


@pytest.mark.slow
@given(legal_traces())
def test_a_legal_trace_is_balanced_and_whole(events: list[TraceEvent]) -> None:
    """Each begin is one closed span, each other event is in exactly one span."""
    spans = list(walk(trees_from_events(events)))

    assert unbalanced(events) == []
    assert len(spans) == sum(isinstance(event, BEGINS) for event in events)
    held = sum(len(span.events) for span in spans)
    assert held + 2 * len(spans) == len(events)


@pytest.mark.slow
@given(legal_traces())
def test_children_lie_within_their_parents(events: list[TraceEvent]) -> None:
    """In a legal trace no span begins before or ends after the one around it."""
    for span in walk(trees_from_events(events)):
        assert span.start is not None
        assert span.end is not None
        for child in span.children:
            assert child.start is not None
            assert child.end is not None
            assert span.start.time < child.start.time
            assert child.end.time < span.end.time


@pytest.mark.slow
@given(legal_traces(), st.data())
def test_any_part_of_a_legal_trace_is_a_tree(
    events: list[TraceEvent], data: st.DataObject
) -> None:
    """Cut at either end, a trace has exactly the open and the ended spans it shows."""
    start = data.draw(st.integers(0, len(events)))
    part = events[start : data.draw(st.integers(start, len(events)))]

    spans = list(walk(trees_from_events(part)))

    starts = [span.start for span in spans if span.start is not None]
    ends = [span.end for span in spans if span.end is not None]
    assert len(starts) == sum(isinstance(event, BEGINS) for event in part)
    assert len(ends) == sum(isinstance(event, ENDS) for event in part)
    halves = sum((span.start is None) != (span.end is None) for span in spans)
    assert len(unbalanced(part)) == halves


@pytest.mark.slow
@given(legal_traces(), st.data())
def test_any_missing_event_of_a_pair_is_found(
    events: list[TraceEvent], data: st.DataObject
) -> None:
    """A legal trace without one begin or end has exactly that fault."""
    paired = [n for n, event in enumerate(events) if isinstance(event, BEGINS + ENDS)]
    missing = data.draw(st.sampled_from(paired))

    (fault,) = unbalanced([*events[:missing], *events[missing + 1 :]])

    assert events[missing].type in fault


@pytest.mark.slow
@given(st.lists(strategies.events(), max_size=8))
def test_no_list_of_events_is_too_strange(events: list[TraceEvent]) -> None:
    """Any events in any order give trees that hold each of them once."""
    events = [msgspec.structs.replace(event, run_id="r") for event in events]
    spans = list(walk(trees_from_events(events)))

    held = [event for span in spans for event in span.events]
    held += [span.start for span in spans if span.start is not None]
    held += [span.end for span in spans if span.end is not None]
    assert sorted(map(id, held)) == sorted(map(id, events))


async def test_a_step_that_ends_in_finally_is_balanced_after_cancel() -> None:
    """Emitting needs no checkpoint, so an end is told on the way out of a cancel."""
    sink = MemorySink()
    tracer = Tracer(sink, clock=trio.current_time)

    async def work() -> None:
        where = ids("d1") | {"time": tracer.stamp(), "deck_path": "d"}
        tracer.emit(DeckStart(**where))
        try:
            await trio.sleep_forever()
        finally:
            tracer.emit(DeckEnd(**where, status="cancelled"))

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work)
            await wait_all_tasks_blocked()
            assert unbalanced(sink.events) != []
            scope.cancel()

    assert unbalanced(sink.events) == []
