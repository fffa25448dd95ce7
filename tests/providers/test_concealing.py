"""Keys are struck out of what servers send."""

import pytest

from gambit_actors.providers.concealing import MOST_CHARACTERS, Concealer
from gambit_actors.providers.endpoints import Secret
from tests.providers.growth import growth

KEY = Secret("sk-planted-0123456789")


def test_a_key_is_struck_out_wherever_it_stands() -> None:
    """Every occurrence is replaced, and the rest is left as it was."""
    data = b'{"a":"sk-planted-0123456789","b":"x sk-planted-0123456789"}'

    assert Concealer(KEY).bytes(data) == b'{"a":"[key]","b":"x [key]"}'


@pytest.mark.parametrize(
    "spelled",
    [
        rb"\u0073\u006b-planted-0123456789",
        rb"\u0073\u006B\u002D\u0070lanted-0123456789",
        rb"sk-planted-012345678\\\u0039",
        rb"\\\\\u0073\\\\k-planted\\-0123456789",
    ],
)
def test_a_key_in_escapes_is_struck_out(spelled: bytes) -> None:
    """JSON can spell a key in many ways, in text that is JSON itself in more."""
    assert Concealer(KEY).bytes(b'{"a":"' + spelled + b'"}') == b'{"a":"[key]"}'


def test_a_key_of_strange_characters_is_struck_out_of_json() -> None:
    """Quotes, slashes and backslashes cannot stand in JSON as they are."""
    key = Secret('ab"c\\d/ef+gh')

    assert Concealer(key).bytes(rb'{"a":"ab\"c\\d\/ef+gh"}') == b'{"a":"[key]"}'


def test_what_stands_around_an_escaped_key_is_left_as_it_was() -> None:
    """Only the key goes, every time, and the escapes between two of them stay."""
    data = rb"\n\u0073k-planted-0123456789\"\u4f60sk-planted\u002d0123456789\\"

    assert Concealer(KEY).bytes(data) == rb"\n[key]\"\u4f60[key]\\"


@pytest.mark.parametrize("piece", [b"\\", b'\\"', b"\\u0073", b"sk-\\u0070"])
def test_escapes_are_read_in_time_that_grows_with_their_number(piece: bytes) -> None:
    """A server cannot make us look at each backslash again from every other."""
    concealer = Concealer(KEY)

    assert growth(lambda size: concealer.bytes(piece * size), 4000) < 10


def test_a_long_key_takes_no_longer_to_get_ready_than_it_is_long() -> None:
    """A key may be a token of many thousand characters."""
    assert growth(lambda size: Concealer(Secret("sk-4" * size)), 500) < 10


def test_bytes_without_a_key_are_the_same_object() -> None:
    """What has no key in it costs no copy."""
    data = b'{"a":"b"}'

    assert Concealer(KEY).bytes(data) is data
    assert Concealer(None).bytes(data) is data


def test_what_is_too_short_for_a_key_is_left_alone() -> None:
    """A key of a few letters would strike those letters out of answers."""
    assert Concealer(Secret("ollama")).bytes(b"ollama says hi") == b"ollama says hi"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("no\r\nrun.end forged\x1b[2J", "no run.end forged [2J"),
        ("half \ud800 a pair", "half ? a pair"),
        ("the key sk-planted-0123456789 is wrong", "the key [key] is wrong"),
        ("ünïcode is fine", "ünïcode is fine"),
    ],
)
def test_words_of_a_server_stay_on_one_line(said: str, shown: str) -> None:
    """Line breaks, terminal codes and half characters do not reach a message."""
    assert Concealer(KEY).words(said) == shown


def test_words_of_a_server_are_cut() -> None:
    """A page of HTML does not become an error message."""
    shown = Concealer(KEY).words("x" * 10_000)

    assert len(shown) == MOST_CHARACTERS
    assert shown.endswith("…")
