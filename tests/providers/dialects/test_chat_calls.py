"""Whether the arguments of a call are whole, as it is found out piece by piece."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.openresponses import SSEFrame
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall
from gambit_actors.providers.dialects.chat import ChatDialect
from gambit_actors.providers.dialects.chat_calls import Openness
from tests.providers.dialects.golden import STARTED

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('a"\\\\[]{}'),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text('a"\\\\{'), inner, max_size=3)
    ),
    max_leaves=6,
)


def is_open(*pieces: str) -> bool:
    """Whether JSON text in pieces is in the middle of something."""
    openness = Openness()
    for piece in pieces:
        openness.feed(piece)
    return openness.is_open


@pytest.mark.parametrize(
    ("text", "is_cut"),
    [
        ("", False),
        ("{}", False),
        ('{"a":"}', True),
        ('{"a":"\\', True),
        ('{"a":[1,', True),
        ("{a: 1}", False),
        ("[]}", False),
        ("null", False),
    ],
)
def test_a_text_that_stops_in_the_middle_is_known(text: str, *, is_cut: bool) -> None:
    """Arguments that end inside a string or an object are cut; bad JSON is not."""
    assert is_open(text) is is_cut
    assert is_open(*text) is is_cut


@given(JSON, st.data())
def test_every_beginning_of_an_object_is_open_and_the_whole_is_not(
    value: object, data: st.DataObject
) -> None:
    """However an object is cut into pieces, it is open until its last character."""
    text = json.dumps({"a": value})
    end = data.draw(st.integers(1, len(text) - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, end), max_size=4)))
    bounds = zip([0, *cuts], [*cuts, end], strict=True)
    begun = [text[start:stop] for start, stop in bounds]

    assert is_open(*begun)
    assert not is_open(*begun, text[end:])


def test_names_do_not_grow_without_end() -> None:
    """A name that no tool can have is not put together for ever; it is told."""
    reader = ChatDialect().reader(STARTED)
    name = "n" * 600
    for place in range(5):
        function = {"name": name + str(place)}
        delta = {"tool_calls": [{"index": 0, "function": function}]}
        chunk = {"choices": [{"delta": delta}]}
        reader.feed(SSEFrame("message", msgspec.json.encode(chunk)))

    events = [*reader.feed(SSEFrame("message", b"[DONE]"))]

    assert "the name of a call is too long: the rest is left out" in reader.problems
    (call,) = events[-1].response.output  # type: ignore[union-attr]  # it has ended
    assert isinstance(call, FunctionCall)
    assert call.name == name + "0"


def pieces(*calls: JSONValue) -> list[tuple[str, str, str]]:
    """The id, name and arguments of the calls that these pieces come to."""
    reader = ChatDialect().reader(STARTED)
    for call in calls:
        chunk = {"choices": [{"delta": {"tool_calls": [call]}}]}
        reader.feed(SSEFrame("message", msgspec.json.encode(chunk)))
    ending = {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}
    reader.feed(SSEFrame("message", msgspec.json.encode(ending)))
    response = reader.feed(SSEFrame("message", b"[DONE]"))[-1].response  # type: ignore[union-attr]  # it has ended
    found = [item for item in response.output if isinstance(item, FunctionCall)]
    return [(call.call_id, call.name, call.arguments) for call in found]


def test_pieces_of_two_calls_with_one_id_go_where_their_number_says() -> None:
    """The id that both have says nothing, so the number decides for each piece."""
    found = pieces(
        {"index": 0, "id": "x", "function": {"name": "f", "arguments": '{"a":'}},
        {"index": 1, "id": "x", "function": {"name": "g", "arguments": '{"b":'}},
        {"index": 1, "id": "x", "function": {"arguments": "2}"}},
        {"index": 0, "id": "x", "function": {"arguments": "1}"}},
    )

    assert [(name, text) for _, name, text in found] == [
        ("f", '{"a":1}'),
        ("g", '{"b":2}'),
    ]
    assert len({call_id for call_id, _, _ in found}) == 2


def test_a_name_in_every_piece_makes_no_third_call() -> None:
    """Of two calls with one id, each is known again though it says its name, too."""
    found = pieces(
        {"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}},
        {"index": 1, "id": "x", "function": {"name": "g", "arguments": '{"b":'}},
        {"index": 1, "id": "x", "function": {"name": "g", "arguments": "2}"}},
    )

    assert [(name, text) for _, name, text in found] == [("f", "{}"), ("g", '{"b":2}')]


def test_a_number_that_counts_pieces_makes_one_call() -> None:
    """Pieces that have an id and no name are of the call that has it."""
    found = pieces(
        {"index": 0, "id": "x", "function": {"name": "f", "arguments": '{"a":'}},
        {"index": 1, "id": "x", "function": {"arguments": "1"}},
        {"index": 2, "id": "x", "function": {"arguments": "}"}},
    )

    assert found == [("x", "f", '{"a":1}')]


def test_a_number_of_another_call_takes_no_piece_of_one_that_is_named() -> None:
    """The id of a call says more than a number that another call has."""
    found = pieces(
        {"index": 0, "id": "x", "function": {"name": "f", "arguments": '{"a":'}},
        {"index": 1, "id": "y", "function": {"name": "g", "arguments": "{}"}},
        {"index": 1, "id": "x", "function": {"arguments": "1}"}},
    )

    assert found == [("x", "f", '{"a":1}'), ("y", "g", "{}")]
