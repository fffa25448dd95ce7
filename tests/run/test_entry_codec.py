"""Entries survive being written and read, and what would not is not written."""

import datetime as dt
import json
import math

import pytest
from hypothesis import given

from gambit_actors.errors import WireError
from gambit_actors.openresponses.base import Extra, JSONValue
from gambit_actors.openresponses.items import Message, UnknownItem, user_message
from gambit_actors.openresponses.parts import OutputText
from gambit_actors.run.entries import (
    CallEnded,
    Entry,
    Failure,
    ItemAdded,
    MetaSet,
    RunEnded,
    RunStarted,
    TurnEnded,
    TurnStarted,
)
from gambit_actors.run.entry_codec import MAX_DEPTH, decode_entry, encode_entry
from tests.run.entry_strategies import KINDS, entries


def nested(levels: int) -> JSONValue:
    """Lists in lists."""
    value: JSONValue = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.slow
@pytest.mark.spec("CARD-7")
@given(entries())
def test_written_entries_are_read_back_equal(entry: Entry) -> None:
    """Any entry, encoded and decoded, equals itself, and is one line."""
    data = encode_entry(entry)

    assert decode_entry(data) == entry
    assert b"\n" not in data
    assert encode_entry(decode_entry(data)) == data


def test_every_kind_has_a_name_of_its_own() -> None:
    """No two kinds of entries are written under the same name."""
    assert len({kind.__struct_config__.tag for kind in KINDS}) == len(KINDS)


def test_defaults_are_left_out() -> None:
    """An entry is written with its kind and with what does not hold its default."""
    assert encode_entry(TurnStarted()) == b'{"type":"turn.started"}'
    assert json.loads(encode_entry(RunStarted(run_id="r", deck="d", depth=1))) == {
        "type": "run.started",
        "run_id": "r",
        "deck": "d",
        "depth": 1,
    }


def test_items_are_written_as_the_protocol_writes_them() -> None:
    """Vendor keys stand flat in an item, and an unknown item has its own type."""
    item = UnknownItem(type_name="acme:note", extra=Extra({"deep": {"a": 1}}))

    written = json.loads(encode_entry(ItemAdded(item=item, source="model")))

    assert written["item"] == {"type": "acme:note", "deep": {"a": 1}}


@pytest.mark.parametrize(
    "value",
    [
        None,
        0,
        -0.0,
        2**70,
        "null",
        [],
        {"$extra": {"$extra": {}}, "type": "$unknown"},
        {"a": [None, {"b": 1.5e300}]},
    ],
)
def test_free_values_come_back_as_they_were(value: JSONValue) -> None:
    """A result or a kept value of any JSON type is the same afterwards."""
    for entry in (
        MetaSet(key="k", value=value),
        TurnEnded(status="completed", result=value),
        TurnEnded(
            status="failed",
            envelope={"meta": value},
            failure=Failure(code="c", message="m", details=value),
        ),
    ):
        assert decode_entry(encode_entry(entry)) == entry


def in_logprobs(value: JSONValue) -> Entry:
    """An entry with a value where a model's message may have any."""
    part = OutputText(text="t", logprobs=(value,))
    message = Message(role="assistant", content=(part,))
    return ItemAdded(item=message, source="model")


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        "half \ud800 a pair",
        {"\udfff": 1},
        nested(MAX_DEPTH + 1),
        {1: "a key that is no text"},
        b"bytes",
        {"a", "set"},
        dt.datetime.now(dt.UTC),
        object(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_would_not_come_back_is_refused(value: JSONValue) -> None:
    """NaN, half a surrogate, what is too deep or no JSON: not written, wherever it is.

    The native encoder would write most of these as something else.
    """
    unknown = UnknownItem(type_name="acme:x", extra=Extra({"a": [value]}))
    for entry in (
        MetaSet(key="k", value=value),
        TurnEnded(status="completed", result=[value]),
        TurnEnded(status="completed", envelope={"meta": value}),
        TurnEnded(
            status="failed", failure=Failure(code="c", message="m", details=value)
        ),
        ItemAdded(item=unknown, source="model"),
    ):
        with pytest.raises(WireError, match="cannot be written as JSON"):
            encode_entry(entry)


@pytest.mark.parametrize("value", [math.nan, nested(MAX_DEPTH + 1), {"a": math.inf}])
def test_what_a_model_sent_is_looked_at_only_if_it_has_to_be(value: JSONValue) -> None:
    """Also in the middle of a plain item, such a value is found."""
    with pytest.raises(WireError):
        encode_entry(in_logprobs(value))
    with pytest.raises(WireError):
        encode_entry(RunEnded(status="completed", cost=math.nan))
    assert decode_entry(encode_entry(in_logprobs(None))) == in_logprobs(None)


def test_endless_nesting_is_refused() -> None:
    """A value that is in itself is an error of ours, and not a crash."""
    endless: list[object] = []
    endless += [endless, endless]

    with pytest.raises(WireError):
        encode_entry(MetaSet(key="k", value=endless))


def test_the_deepest_that_is_written_can_be_read() -> None:
    """At the limit, an entry is read natively and carefully."""
    entry = MetaSet(key="k", value=nested(MAX_DEPTH - 1))
    data = encode_entry(entry)
    later = data.replace(b'"key":"k"', b'"key":"\\ud800"')

    assert decode_entry(data) == entry
    assert decode_entry(later) == MetaSet(key="\ufffd", value=entry.value)
    with pytest.raises(WireError):
        encode_entry(MetaSet(key="k", value=[entry.value]))


@pytest.mark.parametrize(
    ("data", "entry"),
    [
        (
            b'{"type":"call.ended","call_id":"c","output":"o","later":{"a":1}}',
            CallEnded(call_id="c", output="o"),
        ),
        (
            (
                b'{"type":"item","source":"user","later":1,'
                b'"item":{"type":"message","role":"user","content":"x","acme":1}}'
            ),
            ItemAdded(
                item=Message(role="user", content="x", extra=Extra({"acme": 1})),
                source="user",
            ),
        ),
        (
            (
                b'{"type":"turn.ended","status":"failed",'
                b'"failure":{"code":"c","message":"m","later":1}}'
            ),
            TurnEnded(status="failed", failure=Failure(code="c", message="m")),
        ),
    ],
)
def test_keys_of_a_later_version_are_passed_over(data: bytes, entry: Entry) -> None:
    """A key that an entry does not have today does not make it unreadable."""
    assert decode_entry(data) == entry


def test_a_kind_of_a_later_version_is_named() -> None:
    """An entry that this version does not know is not guessed at."""
    with pytest.raises(WireError, match=r"turn\.paused") as caught:
        decode_entry(b'{"type":"turn.paused","until":1}')

    assert caught.value.path == "type"


@pytest.mark.parametrize(
    ("data", "path", "problem"),
    [
        (b"{", "", "not JSON"),
        (b'"\xff"', "", "not JSON"),
        (b"[]", "", "expected an object"),
        (b"{}", "type", "null"),
        (b'{"type":["item"]}', "type", "no entry of the kind"),
        (b'{"type":"item","source":"user"}', "", "'item' is missing"),
        (b'{"type":"run.ended","status":"paused"}', "status", ""),
        (
            (
                b'{"type":"item","source":"user",'
                b'"item":{"type":"message","role":"user","content":7}}'
            ),
            "item.content",
            "expected a string or a list",
        ),
    ],
)
def test_what_is_no_entry_is_refused_with_its_place(
    data: bytes, path: str, problem: str
) -> None:
    """A document that is no entry is an error that says where and what."""
    with pytest.raises(WireError) as caught:
        decode_entry(data)

    assert caught.value.path.startswith(path)
    assert problem in caught.value.problem


def test_reading_does_not_depend_on_how_an_item_was_written() -> None:
    """An item without strange keys is read into the very struct it was."""
    entry = ItemAdded(item=user_message("null {[ \n"), source="user")

    assert decode_entry(encode_entry(entry)) == entry
