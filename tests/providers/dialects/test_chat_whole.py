"""Answers of Chat Completions in one piece, and errors."""

import json

import pytest

from gambit_actors.errors import BadResponse
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall, Message, Reasoning
from gambit_actors.providers.dialects.chat import ChatDialect
from gambit_actors.providers.dialects.dialect import Complaint
from tests.providers.dialects.golden import STARTED

DIALECT = ChatDialect()
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


def _whole(message: JSONValue, finish: str | None = "stop") -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps(
        {"object": "chat.completion", "choices": [choice], "usage": USAGE}
    ).encode()


@pytest.mark.spec("OR-4")
def test_a_whole_answer_is_read_like_a_stream() -> None:
    """Reasoning, text, calls and usage all come out of one document."""
    function = {"name": "look", "arguments": "{}"}
    call: dict[str, JSONValue] = {"id": "c", "type": "function", "function": function}
    message = {
        "role": "assistant",
        "content": "One moment.",
        "reasoning_content": "Hm.",
        "tool_calls": [call, call | {"id": "d"}],
    }

    response = DIALECT.read_whole(_whole(message, "tool_calls"), STARTED)

    assert response.status == "completed"
    assert [type(item) for item in response.output] == [
        Reasoning,
        Message,
        FunctionCall,
        FunctionCall,
    ]
    assert response.output_text == "One moment."
    assert response.usage is not None
    assert response.usage.total_tokens == 7


@pytest.mark.parametrize(
    ("finish", "status"),
    [("length", "incomplete"), ("content_filter", "incomplete"), (None, "completed")],
)
def test_a_whole_answer_says_how_it_went(finish: str | None, status: str) -> None:
    """An answer cut short is incomplete; one without a reason is what it looks like."""
    body = _whole({"content": "Hello"}, finish)

    assert DIALECT.read_whole(body, STARTED).status == status


def test_an_error_with_success_is_a_failed_response() -> None:
    """Some servers answer 200 and an error; that is an answer that failed."""
    body = b'{"error":{"code":429,"message":"slow down"}}'

    response = DIALECT.read_whole(body, STARTED)

    assert response.status == "failed"
    assert response.error is not None
    assert (response.error.code, response.error.message) == ("429", "slow down")


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"{}", b'{"choices":[]}', _whole({"content": ""}, None)],
)
def test_what_is_no_answer_is_refused(body: bytes) -> None:
    """A body without an answer in it is an error of the server's."""
    with pytest.raises(BadResponse):
        DIALECT.read_whole(body, STARTED)


def test_an_error_is_read() -> None:
    """The body of an error is read as for every dialect."""
    found = DIALECT.read_error(b'{"error":{"code":"bad","message":"No."}}')

    assert found == Complaint(code="bad", message="No.")
