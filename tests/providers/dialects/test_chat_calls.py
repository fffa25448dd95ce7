"""Whether the arguments of a call are whole, as it is found out piece by piece."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.openresponses import SSEFrame
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
