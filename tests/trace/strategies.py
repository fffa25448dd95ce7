"""Hypothesis strategies for traces: any single event, and whole legal runs."""

import functools
import itertools
import typing

import msgspec
from hypothesis import strategies as st

from gambit_actors.openresponses.events import (
    Event,
    MalformedEvent,
    OutputItemDone,
    OutputTextDelta,
    ResponseCompleted,
    UnknownEvent,
)
from gambit_actors.openresponses.responses import Usage
from gambit_actors.trace.events import (
    ActionEnd,
    ActionStart,
    DeckEnd,
    DeckStart,
    Log,
    ModelCall,
    ModelResult,
    RunEnd,
    RunStart,
    StreamEvent,
    ToolCalled,
    ToolResult,
    TraceError,
    TraceEvent,
)
from tests.openresponses.strategies import (
    extras,
    items,
    json_values,
    legal_responses,
    texts,
    usages,
    words,
)

Steps = list[TraceEvent]

# --- single events ---------------------------------------------------------


@functools.cache
def malformed_events() -> st.SearchStrategy[MalformedEvent]:
    """Bytes that were no event, also such as claim to be one."""
    return st.builds(
        MalformedEvent,
        reason=st.sampled_from(["invalid_json", "invalid_shape"]),
        problem=texts(),
        raw=texts(),
        type=st.one_of(st.none(), st.just("response.output_text.delta"), texts()),
    )


@functools.cache
def stream_events() -> st.SearchStrategy[Event]:
    """What a model sends: plain, with keys of a vendor, unknown, or broken."""
    index = st.integers(0, 9)
    return st.one_of(
        st.builds(OutputTextDelta, output_index=index, delta=texts(), extra=extras()),
        st.builds(OutputItemDone, output_index=index, item=items(), extra=extras()),
        st.builds(ResponseCompleted, response=legal_responses(), extra=extras()),
        st.builds(
            UnknownEvent, type_name=words().map("acme:{}".format), extra=extras()
        ),
        malformed_events(),
    )


def _values_for(name: str, annotation: object) -> st.SearchStrategy[object] | None:
    if annotation is typing.Any:
        return json_values()
    few = st.sampled_from([None, "a", "b"])  # Few, so that events meet.
    by_name: dict[str, st.SearchStrategy[object]] = {
        "action_call_id": few,
        "parent_action_call_id": few,
        "event": stream_events(),
        "item": items(),
        "response_items": st.lists(items(), max_size=2).map(tuple),
        "usage": st.one_of(st.none(), usages()),
        "error": st.builds(TraceError, code=words(), message=texts()),
    }
    if name in by_name:
        return by_name[name]
    if annotation is str:
        return texts()
    if annotation in (float, float | None):
        return st.floats(0, 2e9, allow_nan=False)
    return None


@functools.cache
def events() -> st.SearchStrategy[TraceEvent]:
    """Events of every kind, with anything in them that JSON can carry."""
    kinds = []
    for kind in typing.get_args(TraceEvent):
        fields = {
            field.name: values
            for field in msgspec.structs.fields(kind)
            if (values := _values_for(field.name, field.type)) is not None
        }
        kinds.append(st.builds(kind, **fields))
    return st.one_of(kinds)


# --- whole runs ------------------------------------------------------------


class _Run:
    """Makes the events of a run, each with the next time and a fresh id."""

    def __init__(self, draw: st.DrawFn, run_id: str) -> None:
        self._draw = draw
        self._numbers = itertools.count(1)
        self.run_id = run_id

    def events(self) -> Steps:
        """A whole run."""
        begin = RunStart(run_id=self.run_id, time=0, deck_path="root")
        end = RunEnd(
            run_id=self.run_id, time=0, deck_path="root", status=self._status()
        )
        return [begin, *self._deck(None, 0), end]

    def _status(self) -> typing.Literal["completed", "failed", "cancelled"]:
        return self._draw(st.sampled_from(["completed", "failed", "cancelled"]))

    def _ids(self, id_: str, parent: str | None) -> dict[str, typing.Any]:
        ids = {"action_call_id": id_, "parent_action_call_id": parent}
        return {"run_id": self.run_id, "time": 0, **ids}

    def _deck(self, parent: str | None, depth: int) -> Steps:
        id_ = f"deck_{next(self._numbers)}"
        ids = self._ids(id_, parent)
        steps: Steps = [DeckStart(**ids, deck_path="d", depth=depth)]
        for pass_number in range(self._draw(st.integers(0, 2))):
            steps += self._model(ids, pass_number)
            calls = self._draw(st.integers(0, 2))
            steps += self._side_by_side([self._tool(id_, depth) for _ in range(calls)])
            steps.append(Log(**ids, deck_path="d", message="hm"))
        return [*steps, DeckEnd(**ids, deck_path="d", status=self._status())]

    def _model(self, ids: dict[str, typing.Any], pass_number: int) -> Steps:
        what: dict[str, typing.Any] = {"deck_path": "d", "model": "m"}
        delta = OutputTextDelta(output_index=0, delta="x")
        result = ModelResult(
            **ids,
            **what,
            pass_number=pass_number,
            status="completed",
            finish_reason="stop",
            usage=self._usage(),
        )
        return [
            ModelCall(**ids, **what, pass_number=pass_number),
            StreamEvent(**ids, **what, event=delta),
            result,
        ]

    def _usage(self) -> Usage | None:
        tokens = self._draw(st.integers(-1, 9))
        return (
            Usage(input_tokens=tokens, output_tokens=1, total_tokens=tokens + 1)
            if tokens >= 0
            else None
        )

    def _tool(self, deck_id: str, depth: int) -> Steps:
        id_ = f"call_{next(self._numbers)}"
        ids = self._ids(id_, deck_id)
        inner: Steps = []
        if self._draw(st.booleans()):
            decks = [self._deck(id_, depth + 1)] if depth < 2 else []
            inner = [
                ActionStart(**ids, name="t", path="p"),
                *itertools.chain(*decks),
                ActionEnd(**ids, name="t", path="p", status=self._status()),
            ]
        return [
            ToolCalled(**ids, name="t", args={}, tool_kind="action"),
            *inner,
            ToolResult(**ids, name="t", result="", tool_kind="action"),
        ]

    def _side_by_side(self, tasks: list[Steps]) -> Steps:
        return interleaved(self._draw, tasks)


def interleaved(draw: st.DrawFn, tasks: list[Steps]) -> Steps:
    """Mix the events of several tasks, each in its own order."""
    waiting = [list(task) for task in tasks if task]
    mixed: Steps = []
    while waiting:
        task = draw(st.sampled_from(waiting))
        mixed.append(task.pop(0))
        waiting = [task for task in waiting if task]
    return mixed


@st.composite
def legal_traces(draw: st.DrawFn) -> Steps:
    """One or two runs at once: nested, side by side, and every begin has its end."""
    runs = [_Run(draw, f"run_{n}").events() for n in range(draw(st.integers(1, 2)))]
    steps = interleaved(draw, runs)
    return [
        msgspec.structs.replace(step, time=float(time))
        for time, step in enumerate(steps)
    ]
