"""What is said to a model about a call: plain values, envelopes, refusals."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.envelopes import (
    CallSource,
    Envelope,
    envelope_from,
    output_text,
    refusal,
)

SOURCE = CallSource(
    run_id="r", call_id="c", parent_call_id=None, deck_path="d/PROMPT.md", name="a"
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["status", "payload", "message", "code", "meta", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=6,
)


def written(envelope: Envelope, source: CallSource = SOURCE) -> dict[str, JSONValue]:
    """An envelope as the model reads it."""
    read: dict[str, JSONValue] = json.loads(output_text(envelope, source))
    return read


@pytest.mark.spec("DK-27")
@pytest.mark.parametrize("value", ["hi", "", 0, 1.5, True, None, [], [{"payload": 1}]])
def test_a_plain_value_is_the_payload(value: JSONValue) -> None:
    """What is not an object is the payload, and nothing is said about it."""
    assert envelope_from(value) == Envelope(payload=value)


@pytest.mark.spec("DK-27")
def test_an_envelope_is_kept() -> None:
    """An object with a payload is an envelope, with all that it says."""
    given_back: dict[str, JSONValue] = {
        "payload": {"n": 1},
        "status": 201,
        "message": "Made.",
        "code": "made",
        "meta": {"took": 3},
    }
    assert envelope_from(given_back) == Envelope(**given_back)


@pytest.mark.spec("DK-27")
def test_an_object_without_a_payload_is_the_payload() -> None:
    """It is the payload as a whole, and what it says well is lifted out as well."""
    value = {"status": 404, "message": "Gone.", "id": 7}
    assert envelope_from(value) == Envelope(payload=value, status=404, message="Gone.")
    assert envelope_from({}) == Envelope(payload={})


def test_a_null_payload_is_a_payload() -> None:
    """A payload that is there and null is null, not the object around it."""
    assert envelope_from({"payload": None, "status": 1}) == Envelope(
        payload=None, status=1
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("status", "200"),
        ("status", True),
        ("status", None),
        ("message", 1),
        ("code", 404),
        ("code", None),
        ("meta", []),
        ("meta", "x"),
    ],
)
def test_what_has_the_wrong_type_is_not_lifted(key: str, value: JSONValue) -> None:
    """A status that is no number, and so on, says nothing about the result."""
    assert envelope_from({"payload": 1, key: value}) == Envelope(payload=1)


def test_other_keys_beside_a_payload_are_no_part_of_it() -> None:
    """Beside a payload only what an envelope has is kept."""
    assert envelope_from({"payload": 1, "other": 2}) == Envelope(payload=1)


@pytest.mark.parametrize(
    ("status", "is_error"),
    [(None, False), (200, False), (399, False), (400, True), (500.0, True)],
)
def test_errors_start_at_400(status: float | None, is_error: bool) -> None:
    """A status from 400 on says that something did not work; none says it did."""
    assert Envelope(status=status).is_error is is_error


def test_a_refusal_is_an_error_without_a_payload() -> None:
    """A refusal has a status, a code and words, and a payload only if given one."""
    envelope = refusal(404, "unknown_action", "There is none.")
    assert envelope == Envelope(
        status=404, code="unknown_action", message="There is none."
    )
    assert envelope.payload is msgspec.UNSET
    assert refusal(409, "c", "m", payload=[1]).payload == [1]


@pytest.mark.spec("DK-27")
def test_what_is_not_said_is_not_written() -> None:
    """A plain result has only its payload, and no status."""
    assert written(Envelope(payload="hi")) == {
        "runId": "r",
        "actionCallId": "c",
        "source": {"deckPath": "d/PROMPT.md", "actionName": "a"},
        "payload": "hi",
    }


@pytest.mark.spec("DK-27")
def test_all_that_is_said_is_written() -> None:
    """Every field of an envelope reaches the model."""
    envelope = Envelope(
        payload=None, status=200, message="Fine.", code="ok", meta={"a": [1]}
    )
    source = msgspec.structs.replace(SOURCE, parent_call_id="p")
    assert written(envelope, source) == {
        "runId": "r",
        "actionCallId": "c",
        "parentActionCallId": "p",
        "source": {"deckPath": "d/PROMPT.md", "actionName": "a"},
        "payload": None,
        "status": 200,
        "message": "Fine.",
        "code": "ok",
        "meta": {"a": [1]},
    }


def test_nothing_is_not_the_same_as_null() -> None:
    """A payload that was never given is left out; null is written."""
    assert "payload" not in written(Envelope(status=400))
    assert written(Envelope(payload=None))["payload"] is None


def test_what_is_empty_is_written_all_the_same() -> None:
    """Zero, an empty text and an empty table are said, so they are written."""
    said = written(Envelope(payload="", status=0, message="", code="", meta={}))
    assert {"payload", "status", "message", "code", "meta"} <= said.keys()


@given(VALUES)
def test_any_value_can_be_told(value: JSONValue) -> None:
    """Whatever a call gives back, the model reads its payload or the whole of it."""
    read = written(envelope_from(value))
    is_wrapped = isinstance(value, dict) and "payload" in value
    assert read["payload"] == (value["payload"] if is_wrapped else value)


@given(VALUES)
def test_an_envelope_told_and_read_is_the_same(value: JSONValue) -> None:
    """What the model is told about a result is what was said about it."""
    envelope = envelope_from(value)
    assert envelope_from(written(envelope)) == envelope
