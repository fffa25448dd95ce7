"""What the writer makes is valid by an independent reading of the standard.

The package openresponses_types has the published schema as pydantic models. Scripted
responses and a machine that tries any order of legal calls are held against it.
"""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from openresponses_types import types as published

from gambit_actors.errors import WriterMisuse
from gambit_actors.openresponses import events as ev
from gambit_actors.openresponses.builder import ResponseBuilder
from gambit_actors.openresponses.items import (
    Compaction,
    FunctionCall,
    FunctionCallOutput,
    Item,
    ItemStatus,
    Message,
    Reasoning,
)
from gambit_actors.openresponses.parts import OutputText, Refusal, UrlCitation
from gambit_actors.openresponses.replay import events_from_response
from gambit_actors.openresponses.responses import Response, Usage
from gambit_actors.openresponses.tools import EchoedTool
from gambit_actors.openresponses.writer import Events, ResponseWriter
from gambit_actors.openresponses.writing import encode
from tests.openresponses.strategies import legal_responses

TERMINAL = ev.ResponseCompleted | ev.ResponseFailed | ev.ResponseIncomplete
USAGE = Usage(input_tokens=3, output_tokens=4, total_tokens=7)
CITATION = UrlCitation(url="https://a.test", title="A", start_index=0, end_index=2)


def models_by_type() -> dict[str, type[pydantic.BaseModel]]:
    """Find the published model of each type of event."""
    models = {}
    for name, model in vars(published).items():
        if name.endswith("StreamingEvent"):
            (kind,) = model.model_fields["type"].annotation
            models[kind.value] = model
    return models


MODELS = models_by_type()


def validate(event: ev.StandardEvent) -> pydantic.BaseModel:
    """Read one event, as it is written, by its model, without any coercion."""
    return MODELS[event.type].model_validate_json(encode(event), strict=True)


def new_writer() -> ResponseWriter:
    """Make a writer that has not started."""
    return ResponseWriter(Response(id="resp_1", status="in_progress", model="m"))


def test_there_is_a_model_for_each_event() -> None:
    """The published models and our 24 events name the same types."""
    ours = {str(kind.__struct_config__.tag) for kind in ev.StandardEvent.__args__}
    assert len(ours) == 24
    assert ours == MODELS.keys()


def says_text(w: ResponseWriter) -> Events:
    """Write text with an annotation."""
    events = w.start_text(0) + w.add(0, "Hi") + w.annotate(0, CITATION)
    return events + w.stop(0) + w.finish("end_turn", usage=USAGE, completed_at=9)


def calls_tools(w: ResponseWriter) -> Events:
    """Write two calls, open side by side."""
    events = w.start_tool_call("a", call_id="ca", name="f")
    events += w.start_tool_call("b", call_id="cb", name="g")
    events += w.add("a", "{") + w.add("b", "[]") + w.add("a", "}") + w.stop("b")
    return events + w.stop("a") + w.finish("tool_use", usage=USAGE)


def thinks(w: ResponseWriter) -> Events:
    """Write reasoning of which nothing is told, then some raw, summed up, sealed."""
    events = w.start_reasoning(0) + w.stop(0)
    events += w.start_reasoning(0) + w.add(0, "Hm.") + w.add_summary(0, "So.")
    return events + w.stop(0, encrypted_content="sealed") + w.finish("end_turn")


def refuses(w: ResponseWriter) -> Events:
    """Write text and a refusal in one message that has a phase."""
    events = w.start_message("m", phase="final_answer")
    events += w.start_text("t", message="m") + w.add("t", "Well.") + w.stop("t")
    events += w.start_refusal("r", message="m") + w.add("r", "No.")
    return events + w.stop("m") + w.finish("stop_sequence")


def is_cut(w: ResponseWriter) -> Events:
    """Write a call that the token limit cuts."""
    events = w.start_tool_call(0, call_id="c", name="f") + w.add(0, "{")
    return events + w.finish("max_tokens", usage=USAGE)


def is_cancelled(w: ResponseWriter) -> Events:
    """Write text nobody wants any longer."""
    return w.start_text(0) + w.add(0, "Hi") + w.cancel()


def fails(w: ResponseWriter) -> Events:
    """Write text, an error and a failure."""
    events = w.start_text(0) + w.add(0, "Hi") + w.error("Busy.")
    return events + w.fail("busy", "Busy.", usage=USAGE)


SCRIPTS: dict[str, Callable[[ResponseWriter], Events]] = {
    "text": says_text,
    "calls": calls_tools,
    "reasoning": thinks,
    "refusal": refuses,
    "incomplete": is_cut,
    "cancelled": is_cancelled,
    "failed": fails,
}


@pytest.mark.parametrize("is_queued", [False, True])
@pytest.mark.parametrize("name", SCRIPTS)
def test_scripted_responses_are_valid(name: str, is_queued: bool) -> None:
    """Every event and every response that is written fits the published schema."""
    w = new_writer()
    for event in w.start(is_queued=is_queued) + SCRIPTS[name](w):
        assert validate(event).model_dump(mode="json")["type"] == event.type
    data = encode(w.response)
    read = published.ResponseResource.model_validate_json(data, strict=True)
    assert read.id == w.response.id


def played(script: Callable[[ResponseWriter], Events]) -> Events:
    """Write a whole stream."""
    w = new_writer()
    return w.start(is_queued=True) + script(w)


SAMPLES = {e.type: encode(e) for script in SCRIPTS.values() for e in played(script)}


def test_the_scripts_cover_every_event() -> None:
    """Together the scripts make each of the 24 types of event."""
    assert SAMPLES.keys() == MODELS.keys()


def is_refused(fields: dict[str, Any]) -> bool:
    """Say whether the check takes offence at an event."""
    try:
        MODELS[fields["type"]].model_validate_json(json.dumps(fields), strict=True)
    except pydantic.ValidationError:
        return True
    return False


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_the_check_can_fail(kind: str) -> None:
    """An event is refused without its number, and with a number in quotes."""
    event = json.loads(SAMPLES[kind])
    assert is_refused(event | {"sequence_number": "0"})
    assert event.pop("sequence_number") is not None
    assert is_refused(event)


@pytest.mark.parametrize("key", sorted(published.ResponseResource.model_fields))
def test_a_response_with_a_key_missing_is_refused(key: str) -> None:
    """Each of the 31 keys of a response is missed when it is gone."""
    event = json.loads(SAMPLES["response.completed"])
    del event["response"][key]
    assert is_refused(event)


def test_an_item_in_the_wrong_form_is_refused() -> None:
    """A status for responses only and a text without annotations are refused."""
    event = json.loads(SAMPLES["response.output_item.done"])
    assert is_refused(event | {"item": event["item"] | {"status": "failed"}})
    del event["item"]["content"][0]["annotations"]
    assert is_refused(event)


def nulls_in(value: object) -> set[str]:
    """Name the keys that are null somewhere in a JSON value."""
    if isinstance(value, list):
        return {key for entry in value for key in nulls_in(entry)}
    if not isinstance(value, dict):
        return set()
    inner = {key for entry in value.values() for key in nulls_in(entry)}
    return inner | {key for key, entry in value.items() if entry is None}


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_optional_keys_are_absent_and_not_null(kind: str) -> None:
    """Null stands only where the standard wants the key (pydantic is lax there)."""
    event = json.loads(SAMPLES[kind])
    # The nullable keys of a response, and of an error.
    allowed = nulls_in(json.loads(encode(Response(id="", status="")))) | {
        "code",
        "param",
    }
    assert len(allowed) == 13
    assert nulls_in(event) <= allowed


def is_published(item: Item) -> bool:
    """Say whether the closed unions of the published schema can hold an item."""
    match item:
        case Message(content=tuple(parts)):
            texts = [part for part in parts if isinstance(part, OutputText)]
            notes = [note for text in texts for note in text.annotations]
            return (
                all(isinstance(part, OutputText | Refusal) for part in parts)
                and all(isinstance(note, UrlCitation) for note in notes)
                and not any(text.logprobs for text in texts)
            )
        case FunctionCallOutput(output=output):
            return isinstance(output, str)
        case _:
            return isinstance(item, FunctionCall | Reasoning | Compaction)


def without_unknown_types(response: Response) -> Response:
    """Leave out what only an open union can hold."""
    return msgspec.structs.replace(
        response,
        output=tuple(item for item in response.output if is_published(item)),
        tools=tuple(tool for tool in response.tools if isinstance(tool, EchoedTool)),
    )


@pytest.mark.slow
@given(legal_responses().map(without_unknown_types))
def test_replayed_responses_are_valid(response: Response) -> None:
    """Any response without unknown types is told in valid events."""
    for event in events_from_response(response):
        assert validate(event).model_dump(mode="json")["type"] == event.type


class AnyOrder(RuleBasedStateMachine):
    """Makes legal calls in any order and watches what comes out."""

    def __init__(self) -> None:
        super().__init__()
        self.writer = new_writer()
        self.events = self.writer.start()
        self.kinds: dict[int, str] = {}  # The open blocks.
        self.parents: dict[int, int] = {}  # The messages that parts are in.
        self.next_key = 0

    def open(self, kind: str, parent: int | None = None) -> int:
        """Take note of a new block."""
        self.next_key += 1
        self.kinds[self.next_key] = kind
        if parent is not None:
            self.parents[self.next_key] = parent
        return self.next_key

    def is_going_on(self) -> bool:
        """Say whether calls are legal."""
        return not self.writer.has_ended

    def some(self, data: st.DataObject, *kinds: str) -> int | None:
        """Choose one of the open blocks of some kinds, if there are any."""
        keys = [key for key, kind in self.kinds.items() if kind in kinds]
        return data.draw(st.sampled_from(keys)) if keys else None

    @precondition(is_going_on)
    @rule(kind=st.sampled_from(["text", "refusal", "message", "call", "reasoning"]))
    def start_block(self, kind: str) -> None:
        """Begin any kind of block."""
        key, w = self.open(kind), self.writer
        if kind == "call":
            self.events += w.start_tool_call(key, call_id=f"c{key}", name="f")
        else:
            self.events += getattr(w, f"start_{kind}")(key)

    @precondition(is_going_on)
    @rule(data=st.data(), kind=st.sampled_from(["text", "refusal"]))
    def start_part(self, data: st.DataObject, kind: str) -> None:
        """Begin a part of a message."""
        if (parent := self.some(data, "message")) is not None:
            key = self.open(kind, parent)
            self.events += getattr(self.writer, f"start_{kind}")(key, message=parent)

    @precondition(is_going_on)
    @rule(data=st.data(), text=st.text("ab{é", max_size=3))
    def add(self, data: st.DataObject, text: str) -> None:
        """Add to a block."""
        kinds = ("text", "refusal", "call", "reasoning")
        if (key := self.some(data, *kinds)) is not None:
            self.events += self.writer.add(key, text)

    @precondition(is_going_on)
    @rule(data=st.data(), text=st.text("ab", max_size=3), ends=st.booleans())
    def add_summary(self, data: st.DataObject, text: str, ends: bool) -> None:
        """Add to a summary, and perhaps end that part."""
        if (key := self.some(data, "reasoning")) is not None:
            self.events += self.writer.add_summary(key, text)
            if ends:
                self.events += self.writer.next_part(key)

    @precondition(is_going_on)
    @rule(data=st.data())
    def annotate(self, data: st.DataObject) -> None:
        """Give a text an annotation."""
        if (key := self.some(data, "text")) is not None:
            self.events += self.writer.annotate(key, CITATION)

    @precondition(is_going_on)
    @rule(data=st.data(), status=st.sampled_from(["completed", "incomplete"]))
    def stop(self, data: st.DataObject, status: ItemStatus) -> None:
        """End a block, and with a message its parts."""
        if (key := self.some(data, *self.kinds.values())) is not None:
            self.events += self.writer.stop(key, status=status)
            gone = {key} | {part for part, of in self.parents.items() if of == key}
            self.kinds = {k: v for k, v in self.kinds.items() if k not in gone}

    @precondition(is_going_on)
    @rule(is_item=st.booleans())
    def flush_or_add_item(self, is_item: bool) -> None:
        """Let go of a held item, by itself or because a whole one follows."""
        item = Compaction(id=f"cmp_{len(self.events)}", encrypted_content="sealed")
        self.events += self.writer.add_item(item) if is_item else self.writer.flush()

    @precondition(is_going_on)
    @rule(how=st.sampled_from(["end_turn", "max_tokens", "cancel", "fail", "error"]))
    def end(self, how: str) -> None:
        """End in one of all ways."""
        match how:
            case "cancel":
                self.events += self.writer.cancel()
            case "fail" | "error":
                self.events += self.writer.error("x") if how == "error" else []
                self.events += self.writer.fail("c", "m")
            case "end_turn" | "max_tokens":
                self.events += self.writer.finish(how, usage=USAGE)

    @precondition(lambda self: self.writer.has_ended)
    @rule()
    def nothing_more(self) -> None:
        """After the end everything is refused."""
        with pytest.raises(WriterMisuse):
            self.writer.flush()

    def teardown(self) -> None:
        """End what goes on, then look at the whole stream."""
        if self.is_going_on():
            self.events += self.writer.cancel()
        numbers = [event.sequence_number for event in self.events]
        assert numbers == list(range(len(numbers)))
        ends = [isinstance(event, TERMINAL) for event in self.events]
        assert ends == [False] * (len(ends) - 1) + [True]
        assert_nested(self.events)
        builder = ResponseBuilder()
        for event in self.events:
            validate(event)
            builder.feed(event)
        assert builder.close() == self.writer.response
        assert builder.problems == []


def assert_nested(events: Events) -> None:
    """See that all events of an item or a part lie between its first and last."""
    items, parts = dict[int, bool](), dict[tuple[int, str, int], bool]()
    for event in events:
        index, place = getattr(event, "output_index", None), place_of(event)
        if index is None:
            continue
        if isinstance(event, ev.OutputItemAdded):
            assert index == len(items)
            items[index] = True
        assert items[index]
        if isinstance(event, ev.OutputItemDone):
            assert not any(is_open for at, is_open in parts.items() if at[0] == index)
            items[index] = False
        elif place is not None:
            is_new = event.type.endswith("part.added")
            assert (place not in parts) if is_new else parts[place]
            parts[place] = not event.type.endswith("part.done")
    assert not any(items.values())


def place_of(event: ev.StandardEvent) -> tuple[int, str, int] | None:
    """Say which part an event is about, if it is about one."""
    for kind in ("content_index", "summary_index"):
        if (index := getattr(event, kind, None)) is not None:
            return getattr(event, "output_index", -1), kind, index
    return None


TestAnyOrder = pytest.mark.slow(AnyOrder.TestCase)
