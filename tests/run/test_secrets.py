"""Values that a log must not keep."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.envelopes import Envelope
from gambit_actors.run.secrets import (
    SHORTEST,
    STRUCK_OUT,
    secrets_in,
    secrets_of,
    without_secrets,
)
from gambit_actors.schema.schemas import load_schema

CARD = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "pin": {"type": "string", "x-secret": True},
        "password": {"type": "string", "format": "password"},
        "token": {"writeOnly": True},
        "keys": {"type": "array", "items": {"type": "string", "x-secret": True}},
        "more": {"anyOf": [{"type": "string", "x-secret": True}, {"type": "null"}]},
        "rest": {"type": "object", "additionalProperties": {"x-secret": True}},
        "card": {"$ref": "#/$defs/card"},
        "pair": {"type": "array", "prefixItems": [{}, {"x-secret": True}]},
    },
    "patternProperties": {"^secret_": {"x-secret": True}},
    "$defs": {"card": {"type": "object", "properties": {"cvc": {"x-secret": True}}}},
}


def test_secrets_are_found_where_the_schema_marks_them() -> None:
    """By x-secret, writeOnly or format, in objects, lists, options and maps."""
    text = msgspec.json.encode(CARD).decode()
    schema = load_schema("card.json", base="", read_file=lambda _path: text)
    assert not schema.diagnostics
    value = {
        "name": "Bertha",
        "pin": "pin-1",
        "password": "word-2",
        "token": {"deep": ["token-3"]},
        "keys": ["key-4", "key-5"],
        "more": "more-6",
        "rest": {"a": "rest-7"},
        "card": {"cvc": "cvc-8"},
        "pair": ["open", "pair-9"],
        "secret_x": "secret-10",
    }
    found = secrets_in(value, schema)
    assert found == {
        *("pin-1", "word-2", "token-3", "key-4", "key-5", "more-6", "rest-7"),
        *("cvc-8", "pair-9", "secret-10"),
    }


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        (True, {"abcd", "efgh"}),
        (["token"], {"abcd"}),
        (["list.1.x"], {"efgh"}),
        (["nobody", "list.7"], set()),
        ("token", set()),
        (None, set()),
    ],
)
def test_secrets_are_found_where_the_envelope_marks_them(
    mark: JSONValue, expected: set[str]
) -> None:
    """True is all of the payload; paths lead into it; a short text is none."""
    payload = {"token": "abcd", "list": ["no", {"x": "efgh"}], "n": 7}
    envelope = Envelope(payload=payload, meta={"secret": mark})
    assert secrets_of(envelope) == expected


SECRETS = st.text(
    st.characters(exclude_categories=["Cs"]), min_size=SHORTEST, max_size=12
)


@given(SECRETS, st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_no_secret_is_left_in_a_document(secret: str, around: str) -> None:
    """Neither in a text, nor in JSON inside a text, nor in that inside another."""
    inner = msgspec.json.encode({"value": f"-{around}{secret}"}).decode()
    document = {
        "type": "item",
        "item": {"output": inner, "text": f"-{secret}{around}{secret}"},
    }
    data = without_secrets(msgspec.json.encode(document), {secret})
    item = msgspec.json.decode(data)["item"]
    texts = (item["text"], msgspec.json.decode(item["output"])["value"])
    if secret not in STRUCK_OUT:
        assert all(secret not in text.replace(STRUCK_OUT, "") for text in texts)
        assert all(STRUCK_OUT in text for text in texts)


@pytest.mark.parametrize(
    "secrets", [["pass", "password"], ["password", "pass"], ["word", "password"]]
)
def test_a_secret_in_another_leaves_no_rest_of_it(secrets: list[str]) -> None:
    """The longest is struck out first, in whatever order they are known."""
    data = b'{"text":"-password-","item":{"output":"{\\"a\\":\\"password\\"}"}}'
    struck = without_secrets(data, secrets)
    assert msgspec.json.decode(struck) == {
        "text": f"-{STRUCK_OUT}-",
        "item": {"output": f'{{"a":"{STRUCK_OUT}"}}'},
    }


@pytest.mark.parametrize(
    "text",
    [
        '{"pin": "\\u00e4bcd"}',
        '{"pin": "a\\/bcd"}',
        '"{\\"deep\\": \\"line\\\\nline\\"}"',
        '{"\u00e4bcd": 1}',
    ],
)
def test_a_secret_is_known_in_any_spelling_of_json(text: str) -> None:
    """With escapes, in JSON inside JSON, and as a key; what is left is JSON."""
    secrets = {"\u00e4bcd", "a/bcd", "line\nline"}
    document = {"type": "item", "item": {"output": text}}
    data = without_secrets(msgspec.json.encode(document), secrets)
    left = msgspec.json.decode(data)["item"]["output"]
    assert STRUCK_OUT in left
    msgspec.json.decode(left)


@pytest.mark.parametrize("key", ["code", "key", "name", "id", "path", "status"])
def test_secrets_under_common_names_are_struck_out(key: str) -> None:
    """The runtime's own words are its own only where they stand for something."""
    document = {"type": "turn.ended", "result": {key: "DOOR-4711", "n": 4711}}
    data = without_secrets(msgspec.json.encode(document), {"DOOR-4711"})
    struck = {"type": "turn.ended", "result": {key: STRUCK_OUT, "n": 4711}}
    assert msgspec.json.decode(data) == struck


def test_a_number_is_no_secret_text() -> None:
    """JSON in a text stays JSON, though a number in it looks like a secret."""
    data = msgspec.json.encode({"item": {"arguments": '{"pin":1234,"a":"1234"}'}})
    left = msgspec.json.decode(without_secrets(data, {"1234"}))["item"]["arguments"]
    assert msgspec.json.decode(left) == {"pin": 1234, "a": STRUCK_OUT}


def test_what_has_no_secret_is_not_touched() -> None:
    """The very same bytes come back, and the runtime's own words stay."""
    data = b'{"type":"call.ended","call_id":"item","output":"item"}'
    assert without_secrets(data, {"nothing"}) is data
    struck = msgspec.json.decode(without_secrets(data, {"item"}))
    assert struck == {"type": "call.ended", "call_id": "item", "output": STRUCK_OUT}
