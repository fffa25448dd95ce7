"""Any provider, asked in the form of a chat."""

from collections.abc import Callable

import msgspec
import pytest

from gambit_actors.errors import BadRequest
from gambit_actors.openresponses import (
    CreateResponse,
    Event,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Response,
)
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.chat import ChatMessage, chat_from_json
from gambit_actors.openresponses.items import Reasoning
from gambit_actors.openresponses.parts import OutputText, Refusal
from gambit_actors.openresponses.requests import JsonSchemaFormat
from gambit_actors.openresponses.responses import IncompleteDetails, ResponseError
from gambit_actors.providers.chatting import (
    ChatFailed,
    ChatRequest,
    ChatUsage,
    chat,
    result_of,
)
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Call, Reply, TokenCount
from gambit_actors.run.ports import ModelContext

CONTEXT = ModelContext(run_id="run_1", deck="PROMPT.md", turn=1, pass_number=1)
MESSAGES = chat_from_json(
    [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Where is LL-1?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"order":"LL-1"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "sent"},
    ]
)
LOOK = {"type": "function", "function": {"name": "look", "parameters": {}}}
ASKED = ChatRequest(model="model-1", messages=MESSAGES, tools=[LOOK])


class Listener:
    """A provider that remembers what it was asked, and answers from a script."""

    def __init__(self, *replies: Reply) -> None:
        self.asked: list[CreateResponse] = []
        self._scripted = ScriptedProvider(replies)

    async def responses(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
        /,
    ) -> Response:
        """Answer."""
        self.asked.append(request)
        return await self._scripted.responses(request, context, on_event)


def _response(*items: Message | FunctionCall | Reasoning) -> Response:
    return Response(id="r", status="completed", model="model-1", output=items)


@pytest.mark.spec("OR-7")
async def test_a_model_is_asked_in_the_form_of_a_chat() -> None:
    """Messages go in, one message comes out, with why it stopped and what it cost."""
    usage = TokenCount(input_tokens=9, output_tokens=2)
    provider = Listener(Reply(text="It was sent.", usage=usage))
    heard: list[str] = []

    result = await chat(provider, ASKED, context=CONTEXT, on_stream_text=heard.append)

    assert result.message == ChatMessage(role="assistant", content="It was sent.")
    assert result.finish_reason == "stop"
    assert result.tool_calls == ()
    assert result.usage == ChatUsage(
        prompt_tokens=9, completion_tokens=2, total_tokens=11
    )
    assert "".join(heard) == "It was sent."
    assert len(heard) > 1


@pytest.mark.spec("OR-7")
async def test_a_provider_is_asked_by_its_one_method() -> None:
    """Messages arrive as items, tools and params under the names of a request."""
    provider = Listener(Reply(text="Sent."))
    schema = {"name": "answer", "schema": {"type": "object"}}
    params: dict[str, JSONValue] = {
        "temperature": 0.5,
        "max_tokens": 5,
        "response_format": {"type": "json_schema", "json_schema": schema},
        "seed": 7,
    }
    asked = msgspec.structs.replace(ASKED, params=params)

    await chat(provider, asked, context=CONTEXT)

    (request,) = provider.asked
    assert isinstance(request.input, tuple)
    assert [type(item) for item in request.input] == [
        Message,
        Message,
        FunctionCall,
        FunctionCallOutput,
    ]
    assert request.tools is not None
    assert [tool.type for tool in request.tools] == ["function"]
    assert (request.model, request.temperature) == ("model-1", 0.5)
    assert request.max_output_tokens == 16
    assert request.text is not None
    assert request.text.format == JsonSchemaFormat(
        name="answer", schema={"type": "object"}
    )
    assert request.extra == {"seed": 7}
    assert request.stream is False


async def test_calls_come_with_parsed_arguments() -> None:
    """The arguments of a call are an object, and the text that the model wrote."""
    call = Call(name="look", arguments={"order": "LL-2"}, call_id="call_2")
    provider = Listener(Reply(text="One moment.", calls=(call,)))

    result = await chat(provider, ASKED, context=CONTEXT)

    assert result.finish_reason == "tool_calls"
    (found,) = result.tool_calls
    assert (found.id, found.name) == ("call_2", "look")
    assert found.args == {"order": "LL-2"}
    assert result.message.content == "One moment."
    assert result.message.tool_calls is not None
    assert result.message.tool_calls[0].function.arguments == found.arguments


@pytest.mark.parametrize(
    ("arguments", "args"),
    [("", {}), ("{}", {}), ("{", None), ("[]", None), ("null", None), ("\ud83d", None)],
)
def test_arguments_that_are_no_object_are_told(
    arguments: str, args: dict[str, JSONValue] | None
) -> None:
    """Bad arguments never pass for a call without any."""
    call = FunctionCall(call_id="c", name="f", arguments=arguments)

    (found,) = result_of(_response(call)).tool_calls

    assert found.args == args
    assert found.arguments == arguments


def test_a_length_stop_leaves_half_calls_out() -> None:
    """What the model could not finish is in the response, and not in the message."""
    half = FunctionCall(call_id="c", name="f", arguments='{"a', status="incomplete")
    response = msgspec.structs.replace(
        _response(Message(role="assistant", content="Well"), half),
        status="incomplete",
        incomplete_details=IncompleteDetails(reason="max_output_tokens"),
    )

    result = result_of(response)

    assert result.finish_reason == "length"
    assert result.tool_calls == ()
    assert result.message == ChatMessage(role="assistant", content="Well")
    assert result.response is response


def test_an_answer_in_parts_is_one_message() -> None:
    """Several messages, refusals and reasoning come to one message of a chat."""
    parts = (OutputText(text="b"), OutputText(text="c"), Refusal(refusal="No."))
    result = result_of(
        _response(
            Reasoning(),
            Message(role="assistant", content="a"),
            Message(role="assistant", content=parts),
        )
    )

    assert result.message.content == "abc"
    assert result.message.refusal == "No."
    assert result.usage is None


@pytest.mark.parametrize("reason", ["content_filter", "cancelled"])
def test_other_stops_are_errors(reason: str) -> None:
    """A chat has no word for them, and they must not pass for the end of an answer."""
    response = msgspec.structs.replace(
        _response(),
        status="incomplete",
        incomplete_details=IncompleteDetails(reason=reason),
    )

    with pytest.raises(ChatFailed, match="did not finish") as caught:
        result_of(response)

    assert caught.value.code == reason
    assert caught.value.response is response


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ResponseError(code="overloaded", message="Busy."), "overloaded"),
        (None, "unknown"),
    ],
)
def test_a_failed_answer_is_an_error(error: ResponseError | None, code: str) -> None:
    """A response that failed says so, with or without a reason."""
    response = msgspec.structs.replace(_response(), status="failed", error=error)

    with pytest.raises(ChatFailed) as caught:
        result_of(response)

    assert caught.value.code == code


async def test_what_cannot_be_asked_is_refused() -> None:
    """Params and messages that have not their form are errors of the caller's."""
    provider = Listener(Reply(text="x"))
    bad = msgspec.structs.replace(ASKED, params={"temperature": "hot"})
    lost = msgspec.structs.replace(ASKED, messages=[ChatMessage(role="tool")])

    for asked in (bad, lost):
        with pytest.raises(BadRequest):
            await chat(provider, asked, context=CONTEXT)

    assert provider.asked == []
