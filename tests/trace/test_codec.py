"""Events survive being written and read, with every key a peer put into them."""

import json

import pytest
from hypothesis import given

from gambit_actors.errors import WireError
from gambit_actors.openresponses.base import Extra
from gambit_actors.openresponses.events import (
    Event,
    MalformedEvent,
    OutputTextDelta,
    UnknownEvent,
)
from gambit_actors.openresponses.items import UnknownItem, user_message
from gambit_actors.trace.codec import decode_event, encode_event
from gambit_actors.trace.events import (
    DeckStart,
    ItemLogged,
    Log,
    StreamEvent,
    ToolCalled,
    ToolResult,
    TraceEvent,
)
from tests.trace.strategies import events


def streamed(event: Event) -> StreamEvent:
    """A streamed event as a trace has it."""
    return StreamEvent(run_id="r", time=1.5, deck_path="d", model="m", event=event)


@pytest.mark.slow
@given(events())
def test_written_events_are_read_back_equal(event: TraceEvent) -> None:
    """Any event, encoded and decoded, equals itself, and is one line."""
    data = encode_event(event)

    assert decode_event(data) == event
    assert b"\n" not in data


def test_keys_are_camel_case_and_defaults_left_out() -> None:
    """An event's own keys are in camelCase; what holds its default is not written."""
    event = DeckStart(
        run_id="r",
        time=1.5,
        action_call_id="d1",
        parent_action_call_id="c1",
        deck_path="a/PROMPT.md",
    )

    assert json.loads(encode_event(event)) == {
        "type": "deck.start",
        "runId": "r",
        "time": 1.5,
        "actionCallId": "d1",
        "parentActionCallId": "c1",
        "deckPath": "a/PROMPT.md",
    }


def test_items_are_written_as_the_protocol_writes_them() -> None:
    """Vendor keys stand flat in an item, and an unknown item has its own type."""
    item = UnknownItem(type_name="acme:note", extra=Extra({"deep": {"a": 1}}))
    event = ItemLogged(run_id="r", time=1, deck_path="d", item=item, source="model")

    written = json.loads(encode_event(event))

    assert written["item"] == {"type": "acme:note", "deep": {"a": 1}}
    assert written["deckPath"] == "d"


def test_streamed_event_keeps_vendor_keys() -> None:
    """A key that a provider added to a delta stands in the delta."""
    delta = OutputTextDelta(output_index=0, delta="x", extra=Extra({"acme": 1}))

    written = json.loads(encode_event(streamed(delta)))

    assert written["event"]["acme"] == 1
    assert written["event"]["type"] == "response.output_text.delta"


def test_malformed_and_unknown_events_are_never_confused() -> None:
    """Broken bytes that claim a type, and an unknown event with the same keys, differ.

    Both would be one JSON object if they were written under one key.
    """
    broken = MalformedEvent(reason="invalid_json", problem="p", raw="{", type="acme:x")
    keys = Extra({"reason": "invalid_json", "problem": "p", "raw": "{"})
    unknown = UnknownEvent(type_name="acme:x", extra=keys)

    for event in (streamed(broken), streamed(unknown)):
        assert decode_event(encode_event(event)) == event


def test_reserved_key_in_a_free_value_is_written_as_it_is() -> None:
    """Arguments with a key of our own invention come back unchanged."""
    args = {"$extra": {"$extra": {}}, "type": "$unknown"}
    event = ToolCalled(run_id="r", time=1, name="t", args=args, tool_kind="external")

    assert decode_event(encode_event(event)) == event


def test_what_is_no_json_is_written_as_the_name_of_its_type() -> None:
    """An object that a module logged costs neither the line nor runs its own code."""

    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError

    event = Log(run_id="r", time=1, deck_path="d", message="m", body=[Rude()])

    assert json.loads(encode_event(event))["body"] == ["<Rude>"]


def test_keys_of_a_later_version_are_passed_over() -> None:
    """A key that an event does not have today does not make it unreadable."""
    data = b'{"type":"trace.lagged","runId":"r","time":1,"missed":2,"new":[]}'

    assert b'"missed":2' in encode_event(decode_event(data))


@pytest.mark.parametrize(
    ("data", "path", "problem"),
    [
        (b"{", "", "not JSON"),
        (b"[]", "", "expected an object"),
        (b'{"type":"run.begin"}', "type", 'got "run.begin"'),
        (b'{"type":["run.start"]}', "type", "expected the name of an event"),
        (b'{"type":"monolog","runId":"r","time":1}', "", "'deckPath' is missing"),
        (
            (
                b'{"type":"item.logged","runId":"r","time":1,"deckPath":"d","source":"s",'
                b'"item":{"type":"message","role":"user","content":7}}'
            ),
            "item.content",
            "expected a string or a list",
        ),
        (
            (
                b'{"type":"model.stream.event","runId":"r","time":1,"deckPath":"d",'
                b'"model":"m","malformed":{"raw":1}}'
            ),
            "malformed",
            "",
        ),
    ],
)
def test_what_is_no_event_is_refused_with_its_place(
    data: bytes, path: str, problem: str
) -> None:
    """A line that is no event is an error that says where and what."""
    with pytest.raises(WireError) as caught:
        decode_event(data)

    assert caught.value.path.startswith(path)
    assert problem in caught.value.problem


def test_what_cannot_be_written_is_an_error_of_ours() -> None:
    """Half a surrogate pair, or endless nesting, is a WireError and nothing else."""
    endless: list[object] = []
    endless.append(endless)

    for result in ("\ud800", endless):
        event = ToolResult(
            run_id="r", time=1, name="t", result=result, tool_kind="builtin"
        )
        with pytest.raises(WireError):
            encode_event(event)


def test_plain_items_take_the_native_way() -> None:
    """An item without strange keys is read into the very struct it was."""
    item = user_message("hello")
    event = ItemLogged(run_id="r", time=1, deck_path="d", item=item, source="user")

    read = decode_event(encode_event(event))

    assert isinstance(read, ItemLogged)
    assert read.item == item
