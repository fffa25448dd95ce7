"""The bodies of errors, which come in every form there is."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.dialects.complaints import (
    MOST_CHARACTERS,
    complaint_in,
    complaint_of,
)
from gambit_actors.providers.dialects.dialect import Complaint
from tests.providers.dialects.mangling import JSON

BODIES = {
    "openai": (
        (
            b'{"error":{"message":"No model x.","type":"invalid_request_error",'
            b'"param":"model","code":"model_not_found"}}'
        ),
        ("model_not_found", "No model x."),
    ),
    "openai, no code": (
        b'{"error":{"message":"Bad.","type":"invalid_request_error","code":null}}',
        ("invalid_request_error", "Bad."),
    ),
    "anthropic": (
        (
            b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},'
            b'"request_id":"req_1"}'
        ),
        ("overloaded_error", "Overloaded"),
    ),
    "gemini": (
        b'[{"error":{"code":429,"message":"Quota.","status":"RESOURCE_EXHAUSTED"}}]',
        ("RESOURCE_EXHAUSTED", "Quota."),
    ),
    "openrouter": (
        (
            b'{"error":{"code":502,"message":"Provider returned error",'
            b'"metadata":{"raw":"model is loading","provider_name":"p"}}}'
        ),
        ("502", "Provider returned error: model is loading"),
    ),
    "ollama": (b'{"error":"model \\"x\\" not found"}', ("", 'model "x" not found')),
    "vllm": (
        (
            b'{"object":"error","message":"Too long.","type":"BadRequestError",'
            b'"param":null,"code":400}'
        ),
        ("BadRequestError", "Too long."),
    ),
    "fastapi": (b'{"detail":"Not Found"}', ("", "Not Found")),
    "fastapi, fields": (
        (
            b'{"detail":[{"loc":["body","model"],"msg":"Field required",'
            b'"type":"missing"},{"loc":["body","input"],"msg":"Field required"}]}'
        ),
        ("", "body.model: Field required; body.input: Field required"),
    ),
    "code beside words": (
        b'{"error":"invalid_token","error_description":"It expired."}',
        ("invalid_token", "It expired."),
    ),
    "list of errors": (b'{"errors":[{"message":"No."}]}', ("", "No.")),
    "nested message": (b'{"message":{"message":"Deep."}}', ("", "Deep.")),
    "json text": (b'"No."', ("", "No.")),
    "plain text": (b"upstream connect\n  error", ("", "upstream connect error")),
    "html": (
        b"<html><head><title>502 Bad &amp; Gateway</title></head><body>x</body>",
        ("", "502 Bad & Gateway"),
    ),
    "html without title": (b"<html><body>oops</body></html>", ("", "")),
    "nothing": (b"", ("", "")),
    "null": (b"null", ("", "")),
    "binary": (b"\x1f\x8b\x00\x00", ("", "")),
}


@pytest.mark.parametrize("name", BODIES)
def test_words_and_code_are_found(name: str) -> None:
    """In every known form of error, what the server says is found."""
    body, (code, message) = BODIES[name]

    assert complaint_in(body) == Complaint(code=code, message=message)


@given(st.binary())
def test_any_body_is_read(body: bytes) -> None:
    """A body may be anything; what is shown of it is short and on one line."""
    complaint = complaint_in(body)

    assert len(complaint.message) <= MOST_CHARACTERS
    assert complaint.message.isprintable()


@given(JSON, st.sampled_from(["error", "detail", "message", "errors"]))
def test_any_json_is_read(value: JSONValue, key: str) -> None:
    """JSON of any form gives a complaint, perhaps an empty one."""
    for document in (value, {key: value}, {"error": {key: value, "code": value}}):
        complaint = complaint_of(document)
        assert complaint == complaint_in(msgspec.json.encode(document)) or isinstance(
            document, str
        )


def test_deep_and_long_bodies_are_cut() -> None:
    """Neither nesting nor length is a way to keep a reader busy."""
    assert complaint_in(b"[" * 100_000 + b"]" * 100_000).code == ""
    long = complaint_in(b'{"message":"' + b"x" * 3_000_000)
    assert len(long.message) == MOST_CHARACTERS
    assert long.message.endswith("…")
