"""Messages are cut from a pipe whole, however they came, and only if they are small."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.actors.confined.messages import (
    MAX_MESSAGE_BYTES,
    Done,
    Frames,
    Logged,
    Say,
    TooLarge,
    encode,
    from_worker,
)


@given(st.lists(st.text(max_size=20), max_size=5), st.integers(1, 9))
def test_any_chunking_gives_the_same_messages(texts: list[str], size: int) -> None:
    """What was sent arrives, in order, wherever the bytes were cut."""
    data = b"".join(encode(Logged(message=text)) for text in texts)
    frames = Frames()
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    found = [one for chunk in chunks for one in frames.feed(chunk)]
    assert [from_worker.decode(one).message for one in found] == texts


def test_a_message_that_is_too_large_is_not_waited_for() -> None:
    """The length alone is enough to refuse it, on either side."""
    with pytest.raises(TooLarge):
        Frames(most=10).feed(b"\0\0\0\x0b")
    with pytest.raises(TooLarge):
        encode(Done(result="x" * MAX_MESSAGE_BYTES))


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[",
        "\xff",
        '{"type":"call"}',
        '{"type":"say","role":"system","content":"x"}',
    ],
)
def test_what_is_no_message_is_refused(text: str) -> None:
    """A process says what its side may say, in the form that has, or nothing."""
    with pytest.raises(ValueError, match=r"."):
        from_worker.decode(text)


def test_a_message_is_the_same_after_the_pipe() -> None:
    """Encoding and decoding gives an equal one."""
    said = Say(role="user", content="Hi.")
    assert from_worker.decode(msgspec.json.encode(said)) == said
