"""The request after a response."""

import pytest
from openresponses_types.types import CreateResponseBody

from gambit_actors.openresponses import (
    CreateResponse,
    FunctionCall,
    FunctionCallOutput,
    Reasoning,
    Response,
    encode,
    follow_up,
    user_message,
)
from gambit_actors.openresponses.followup import follow_up_by_id
from gambit_actors.openresponses.parts import ReasoningText, SummaryText

REQUEST = CreateResponse(model="m", input="Where is A-1?", temperature=0.5)
CALL = FunctionCall(
    id="fc_1", call_id="c1", name="find", arguments="{}", status="completed"
)
THOUGHT = Reasoning(
    id="rs_1",
    content=(ReasoningText(text="hm"),),
    summary=(SummaryText(text="look it up"),),
    encrypted_content="sealed",
)
RESPONSE = Response(id="resp_1", status="completed", output=(THOUGHT, CALL))
RESULT = FunctionCallOutput(call_id="c1", output='{"at": "the depot"}')


@pytest.mark.spec("MAP-4")
def test_tool_result_is_an_input_item_of_the_next_request() -> None:
    """A tool result follows all that was said, as a function_call_output."""
    request = follow_up(REQUEST, RESPONSE, [RESULT])

    assert request.input is not None
    assert request.input[0] == user_message("Where is A-1?")
    assert request.input[-2:] == (CALL, RESULT)
    assert request.temperature == 0.5


def test_raw_reasoning_does_not_go_back() -> None:
    """Raw reasoning is refused as input, so it stays; summary and seal go back."""
    request = follow_up(REQUEST, RESPONSE, [RESULT])

    assert request.input is not None
    assert request.input[1] == Reasoning(
        id="rs_1", summary=THOUGHT.summary, encrypted_content="sealed"
    )


@pytest.mark.spec("MAP-4")
def test_next_request_is_valid() -> None:
    """The next request passes an independent, strict reading of the schema."""
    data = encode(follow_up(REQUEST, RESPONSE, [RESULT]))

    body = CreateResponseBody.model_validate_json(data, strict=True)

    assert body.model == "m"


@pytest.mark.spec("MAP-4")
def test_a_server_that_remembers_gets_only_what_is_new() -> None:
    """By id, the next request names the response and carries the result alone."""
    request = follow_up_by_id(REQUEST, RESPONSE, [RESULT])

    assert request.previous_response_id == "resp_1"
    assert request.input == (RESULT,)
