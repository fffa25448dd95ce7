"""A model asked in the form of a chat, for code that was written for Gambit's `chat`.

`chat` stands on the one method that a provider has: messages become items, the answer
becomes one message. It does what Gambit's method of that name does, and in two cases
more: an answer that failed, or was stopped for another reason than its length, is an
error and does not pass for a short answer; and arguments that are no JSON object are
told from a call without arguments.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from gambit_actors.errors import ProviderError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.chat import (
    ChatMessage,
    ChatText,
    ToolCall,
    chat_from_items,
    items_from_chat,
)
from gambit_actors.openresponses.codec import request_from_json
from gambit_actors.openresponses.events import Event, OutputTextDelta
from gambit_actors.openresponses.items import FunctionCall, Item, Message
from gambit_actors.openresponses.reading import Mismatch, parse_json
from gambit_actors.openresponses.responses import Response, Usage
from gambit_actors.run.ports import ModelContext, ModelProvider

FinishReason: TypeAlias = Literal["stop", "tool_calls", "length"]

_LENGTH = "max_output_tokens"
_LEAST_TOKENS = 16  # The wire allows no less.


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a model, in the form of a chat.

    Attributes:
        model: its name.
        messages: what was said so far; see `chat_from_json` for JSON.
        tools: as JSON, nested as chats have them or flat.
        params: all else, under the names of a request; ``max_tokens`` and
            ``response_format`` may be called what chats call them.
    """

    model: str
    messages: Sequence[ChatMessage]
    tools: Sequence[JSONValue] = ()
    params: Mapping[str, JSONValue] = {}


class ChatToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that the model asks for.

    Attributes:
        id: by which its output will name it.
        name: of the tool.
        args: the arguments as an object; None if what the model wrote is none.
        arguments: what the model wrote.
    """

    id: str
    name: str
    args: dict[str, JSONValue] | None
    arguments: str


class ChatUsage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Tokens, under the names that Gambit has for them."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the model answers.

    Attributes:
        message: the assistant's, to be put behind the others.
        finish_reason: why the model stopped.
        tool_calls: those of the message that the model finished.
        usage: None if the provider did not say.
        response: the whole answer, with what has no place in a chat.
    """

    message: ChatMessage
    finish_reason: FinishReason
    tool_calls: tuple[ChatToolCall, ...]
    usage: ChatUsage | None
    response: Response


class ChatFailed(ProviderError):
    """A model was asked in the form of a chat, and its answer is not one.

    Attributes:
        code: why, for a program.
        response: as far as it came.
    """

    def __init__(self, code: str, message: str, response: Response) -> None:
        super().__init__(message)
        self.code = code
        self.response = response


async def chat(
    provider: ModelProvider,
    request: ChatRequest,
    *,
    context: ModelContext,
    on_stream_text: Callable[[str], None] | None = None,
) -> ChatResult:
    """Ask a model in the form of a chat.

    Args:
        provider: who is asked.
        request: what is asked.
        context: for whom; what Gambit passes as the state of a run.
        on_stream_text: takes the text as it comes. Without it no stream is asked for.

    Raises:
        ChatFailed: the answer failed, or was cut off for another reason than length.
        BadRequest: messages, tools or params are not what they should be.
        ProviderError: there is no answer.
    """

    def show(event: Event) -> None:
        if on_stream_text is not None and isinstance(event, OutputTextDelta):
            on_stream_text(event.delta)

    asked = _fields(request, stream=on_stream_text is not None)
    wanted = msgspec.structs.replace(
        request_from_json(asked), input=items_from_chat(request.messages)
    )
    return result_of(await provider.responses(wanted, context, show))


def result_of(response: Response) -> ChatResult:
    """Give an answer the form of a chat.

    A call that the model did not finish is left out: it could not be answered. The
    response still has it.

    Raises:
        ChatFailed: see `chat`.
    """
    _refuse_failures(response)
    items = [item for item in response.output if _is_whole(item)]
    calls = tuple(_call_of(item) for item in items if isinstance(item, FunctionCall))
    finish: FinishReason = "tool_calls" if calls else "stop"
    if response.status == "incomplete":
        finish = "length"
    return ChatResult(
        message=_joined(chat_from_items(items).messages),
        finish_reason=finish,
        tool_calls=calls,
        usage=_usage_of(response.usage),
        response=response,
    )


def _refuse_failures(response: Response) -> None:
    if response.error is not None or response.status == "failed":
        code = response.error.code if response.error is not None else "unknown"
        why = response.error.message if response.error is not None else "no reason"
        raise ChatFailed(code, f"{response.model} failed: {why}", response)
    details = response.incomplete_details
    reason = details.reason if details is not None else None
    if response.status == "completed" or reason == _LENGTH:
        return
    code = reason or response.status
    message = f"{response.model} did not finish its answer: {code}"
    raise ChatFailed(code, message, response)


def _fields(request: ChatRequest, *, stream: bool) -> dict[str, JSONValue]:
    params = dict(request.params)
    most = params.pop("max_tokens", None)
    if most is not None:
        is_small = isinstance(most, int) and most < _LEAST_TOKENS
        params.setdefault("max_output_tokens", _LEAST_TOKENS if is_small else most)
    shape = params.pop("response_format", None)
    if shape is not None:
        params.setdefault("text", {"format": _flat_format(shape)})
    own: dict[str, JSONValue] = {"model": request.model, "stream": stream}
    if request.tools:
        own["tools"] = list(request.tools)
    return params | own


def _flat_format(shape: JSONValue) -> JSONValue:
    """A chat nests a schema below the name of its kind."""
    if not isinstance(shape, dict) or not isinstance(shape.get("json_schema"), dict):
        return shape
    return {"type": "json_schema"} | shape["json_schema"]


def _is_whole(item: Item) -> bool:
    if isinstance(item, FunctionCall):
        return item.status != "incomplete"
    return isinstance(item, Message)


def _call_of(item: FunctionCall) -> ChatToolCall:
    return ChatToolCall(
        id=item.call_id,
        name=item.name,
        args=_object_in(item.arguments),
        arguments=item.arguments,
    )


def _object_in(arguments: str) -> dict[str, JSONValue] | None:
    if not arguments.strip():
        return {}  # Some models write nothing where there are none.
    try:
        value = parse_json(arguments.encode())
    except (Mismatch, UnicodeEncodeError):
        return None
    return value if isinstance(value, dict) else None


def _joined(messages: Sequence[ChatMessage]) -> ChatMessage:
    """The one message that a chat has for an answer."""
    texts: list[str] = []
    refusals: list[str] = []
    calls: list[ToolCall] = []
    for message in messages:
        texts += _texts_of(message)
        refusals += [message.refusal] if message.refusal else []
        calls += message.tool_calls or ()
    return ChatMessage(
        role="assistant",
        content="".join(texts) or None,
        refusal="".join(refusals) or None,
        tool_calls=tuple(calls) or None,
    )


def _texts_of(message: ChatMessage) -> list[str]:
    if isinstance(message.content, str):
        return [message.content]
    return [part.text for part in message.content or () if isinstance(part, ChatText)]


def _usage_of(usage: Usage | None) -> ChatUsage | None:
    if usage is None:
        return None
    return ChatUsage(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
    )
