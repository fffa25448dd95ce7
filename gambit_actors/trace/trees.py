"""A flat list of events as trees of spans, and what is out of balance in it.

A run holds decks, a deck holds model calls and tool calls, a tool call the action
behind it, an action the decks it started. Pure, and it takes any list: one that was
cut off at the end has open spans, one that was cut off at the start has spans that
only ended, and a span whose parent is not there hangs directly under its run.

How a place is found. ``action_call_id`` and ``parent_action_call_id`` are looked up
among the spans of the same run. A tool call and its action have the same two ids, and
a model call may have those of its deck: the later one goes inside the earlier. Models
number their calls as they please, so a ``call_id`` is only trusted together with its
parent's where there is a choice.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import msgspec

from gambit_actors.openresponses.responses import (
    InputTokensDetails,
    OutputTokensDetails,
    Usage,
)
from gambit_actors.trace.events import (
    ActionEnd,
    ActionStart,
    DeckEnd,
    DeckStart,
    ModelCall,
    ModelResult,
    RunEnd,
    RunStart,
    StreamEvent,
    ToolCalled,
    ToolResult,
    TraceEvent,
)

SpanKind: TypeAlias = Literal["run", "deck", "model", "action", "tool"]

_PAIRS: dict[SpanKind, tuple[type[TraceEvent], type[TraceEvent]]] = {
    "run": (RunStart, RunEnd),
    "deck": (DeckStart, DeckEnd),
    "model": (ModelCall, ModelResult),
    "action": (ActionStart, ActionEnd),
    "tool": (ToolCalled, ToolResult),
}
_BEGINS = {begin: kind for kind, (begin, _) in _PAIRS.items()}
_ENDS = {end: kind for kind, (_, end) in _PAIRS.items()}


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Something that took time, with what happened in it.

    Attributes:
        id: its ``action_call_id``.
        start: None where the list has only the end, or for a run neither.
        end: None where it is open.
        children: the spans in it, in the order in which they began.
        events: what happened in it and is neither a begin nor an end.
        usage: tokens of all model calls in it, at any depth, that told; None where
            none has. Counted here and not taken from an end, so an open span has it.
    """

    kind: SpanKind
    run_id: str
    id: str | None
    start: TraceEvent | None
    end: TraceEvent | None
    children: tuple["Span", ...] = ()
    events: tuple[TraceEvent, ...] = ()
    usage: Usage | None = None

    @property
    def name(self) -> str:
        """The deck's path, the model, or the name of the action or tool."""
        match self.start or self.end:
            case RunStart() | RunEnd() | DeckStart() | DeckEnd() as event:
                return event.deck_path
            case ModelCall() | ModelResult() as event:
                return event.model
            case ActionStart() | ActionEnd() | ToolCalled() | ToolResult() as event:
                return event.name
            case _:
                return ""

    @property
    def is_open(self) -> bool:
        """Whether it has no end."""
        return self.end is None

    @property
    def status(self) -> str:
        """How it ended: the end's own word, or ``open``."""
        match self.end:
            case (
                RunEnd(status=status)
                | DeckEnd(status=status)
                | ModelResult(status=status)
                | ActionEnd(status=status)
                | ToolResult(status=status)
            ):
                return status
            case _:
                return "open"

    @property
    def duration(self) -> float | None:
        """Seconds from begin to end; None unless both are there."""
        if self.start is None or self.end is None:
            return None
        return self.end.time - self.start.time


def trees_from_events(events: Iterable[TraceEvent]) -> tuple[Span, ...]:
    """Make one tree per run, in the order in which the runs appear. Never raises."""
    builder = _Builder()
    for event in events:
        builder.feed(event)
    return builder.finish()


def walk(spans: Iterable[Span]) -> Iterator[Span]:
    """Go through trees from the top down, each span before its children."""
    stack = [*spans][::-1]
    while stack:
        span = stack.pop()
        yield span
        stack.extend(reversed(span.children))


def unbalanced(events: Iterable[TraceEvent]) -> list[str]:
    """Say which begin has no end and which end no begin; empty when all is well."""
    return [
        fault
        for span in walk(trees_from_events(events))
        if (fault := _fault_of(span)) is not None
    ]


def _fault_of(span: Span) -> str | None:
    begin, end = (str(kind.__struct_config__.tag) for kind in _PAIRS[span.kind])
    if (span.start is None) == (span.end is None):
        return None  # A run with neither was only made to hold the rest.
    there, missing = (begin, end) if span.end is None else (end, begin)
    where = span.run_id if span.kind == "run" else f"{span.id} in run {span.run_id}"
    which = _pass_of(span.start or span.end)
    number = "" if which is None else f" (pass {which})"
    return f"{there} of {where}{number} has no {missing}"


def _pass_of(event: TraceEvent | None) -> int | None:
    # Model calls of a deck may all have the deck's id; the pass tells them apart.
    return event.pass_number if isinstance(event, ModelCall | ModelResult) else None


_Key: TypeAlias = tuple[str, str | None]


class _Node:
    """A span that is being put together."""

    def __init__(self, kind: SpanKind, event: TraceEvent) -> None:
        self.kind: SpanKind = kind
        self.run_id = event.run_id
        self.id = event.action_call_id
        self.parent_id = event.parent_action_call_id
        self.start: TraceEvent | None = None
        self.end: TraceEvent | None = None
        self.children: list[_Node] = []
        self.events: list[TraceEvent] = []


class _Builder:
    """Puts events in their places. A node's parent is always older than the node."""

    def __init__(self) -> None:
        self._nodes: list[_Node] = []
        self._runs: dict[str, _Node] = {}
        self._roots: list[_Node] = []
        # By run and id. The open ones in the order they began; the last that could
        # hold others, because a child may outlive its parent.
        self._open: dict[_Key, list[_Node]] = {}
        self._last: dict[_Key, _Node] = {}

    def feed(self, event: TraceEvent) -> None:
        match event:
            case RunStart():
                self._begin_run(event)
            case RunEnd():
                self._end_run(event)
            case _ if (kind := _BEGINS.get(type(event))) is not None:
                self._begin(kind, event)
            case _ if (kind := _ENDS.get(type(event))) is not None:
                self._end(kind, event)
            case _:
                self._place_of(event).events.append(event)

    def finish(self) -> tuple[Span, ...]:
        spans: dict[_Node, Span] = {}
        # Youngest first: the children of a node are done before it, at any depth.
        for node in reversed(self._nodes):
            children = tuple(spans.pop(child) for child in node.children)
            own = node.end.usage if isinstance(node.end, ModelResult) else None
            spans[node] = Span(
                kind=node.kind,
                run_id=node.run_id,
                id=node.id,
                start=node.start,
                end=node.end,
                children=children,
                events=tuple(node.events),
                usage=_sum_of([own, *(child.usage for child in children)]),
            )
        return tuple(spans[root] for root in self._roots)

    # --- runs ----------------------------------------------------------------

    def _begin_run(self, event: TraceEvent) -> None:
        root = self._runs.get(event.run_id)
        # A run that was made up to hold earlier events has its start now.
        if root is None or root.start is not None or root.end is not None:
            root = self._new_root(event)
        root.start, root.id = event, event.action_call_id

    def _end_run(self, event: TraceEvent) -> None:
        root = self._run_of(event)
        if root.end is not None:
            root = self._new_root(event)
        root.end = event

    def _run_of(self, event: TraceEvent) -> _Node:
        return self._runs.get(event.run_id) or self._new_root(event)

    def _new_root(self, event: TraceEvent) -> _Node:
        root = _Node("run", event)
        self._nodes.append(root)
        self._roots.append(root)
        self._runs[event.run_id] = root
        return root

    # --- spans ---------------------------------------------------------------

    def _begin(self, kind: SpanKind, event: TraceEvent) -> None:
        node = self._new_node(kind, event)
        node.start = event
        key = (node.run_id, node.id)
        self._open.setdefault(key, []).append(node)
        if kind != "model":
            self._last[key] = node

    def _end(self, kind: SpanKind, event: TraceEvent) -> None:
        key = (event.run_id, event.action_call_id)
        nodes = self._open.get(key, [])
        same = [
            node
            for node in nodes
            if node.kind == kind and _pass_of(node.start) == _pass_of(event)
        ]
        node = _best_of(same, event.parent_action_call_id)
        if node is None:
            self._new_node(kind, event).end = event
            return
        node.end = event
        nodes.remove(node)
        if not nodes:
            del self._open[key]

    def _new_node(self, kind: SpanKind, event: TraceEvent) -> _Node:
        parent = self._parent_of(kind, event)
        node = _Node(kind, event)
        parent.children.append(node)
        self._nodes.append(node)
        return node

    # --- places --------------------------------------------------------------

    def _parent_of(self, kind: SpanKind, event: TraceEvent) -> _Node:
        id_, parent_id = event.action_call_id, event.parent_action_call_id
        around = [
            node
            for node in self._holders(event.run_id, id_)
            if node.kind != kind and (kind == "model" or node.parent_id == parent_id)
        ]
        return (
            _best_of(around, parent_id)
            or self._holder(event.run_id, parent_id)
            or self._run_of(event)
        )

    def _place_of(self, event: TraceEvent) -> _Node:
        id_, parent_id = event.action_call_id, event.parent_action_call_id
        if isinstance(event, StreamEvent):
            calls = [
                node
                for node in self._open.get((event.run_id, id_), ())
                if node.kind == "model"
            ]
            if (call := _best_of(calls, parent_id)) is not None:
                return call
        return (
            _best_of(self._holders(event.run_id, id_), parent_id)
            or self._holder(event.run_id, id_)
            or self._holder(event.run_id, parent_id)
            or self._run_of(event)
        )

    def _holders(self, run_id: str, id_: str | None) -> list[_Node]:
        """The open spans of this id that can have others in them."""
        if id_ is None:
            return []
        nodes = self._open.get((run_id, id_), ())
        return [node for node in nodes if node.kind != "model"]

    def _holder(self, run_id: str, id_: str | None) -> _Node | None:
        """The innermost span of this id, an open one if there is one."""
        if id_ is None:
            return None
        nodes = self._holders(run_id, id_)
        return nodes[-1] if nodes else self._last.get((run_id, id_))


def _best_of(nodes: list[_Node], parent_id: str | None) -> _Node | None:
    """The last of these, or better the last with the same parent."""
    best = [node for node in nodes if node.parent_id == parent_id] or nodes
    return best[-1] if best else None


def _sum_of(usages: Iterable[Usage | None]) -> Usage | None:
    told = [usage for usage in usages if usage is not None]
    if not told:
        return None
    cached = sum(usage.input_tokens_details.cached_tokens for usage in told)
    thought = sum(usage.output_tokens_details.reasoning_tokens for usage in told)
    return Usage(
        input_tokens=sum(usage.input_tokens for usage in told),
        output_tokens=sum(usage.output_tokens for usage in told),
        total_tokens=sum(usage.total_tokens for usage in told),
        input_tokens_details=InputTokensDetails(cached_tokens=cached),
        output_tokens_details=OutputTokensDetails(reasoning_tokens=thought),
    )
