"""Chat messages <-> items, by the rules of the Gambit v1 contract.

::

    system, developer, user     <->  a message with input parts
    assistant text              <->  a message with output parts
    assistant.tool_calls[]      <->  one function_call each, after the text
    tool                        <->  a function_call_output for its tool_call_id

Both ways and back, what is said stays the same, to the letter of every argument and
output. What may change is the spelling, where one side has two for the same thing:

* One text part is a plain string in chat.
* An assistant message of nothing but tool calls joins an assistant message that
  stands right before it; items do not tell the two from one message.
* Empty text beside tool calls is no text; a tool message without content has "".
* A refusal at the end of the content is the ``refusal`` field in chat.

Keys beyond these rules travel in ``extra``. A chat has no place for the ids, statuses
and phases of items nor for annotations and log probabilities. An item that has no
place in it at all (reasoning, a reference, an unknown type) is handed back in
``left_out``.
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias, cast

import msgspec

from gambit_actors.errors import BadRequest
from gambit_actors.openresponses.base import (
    NO_EXTRA,
    UNKNOWN_TAG,
    Extra,
    JSONValue,
    Open,
    Tagged,
    Unknown,
    written,
)
from gambit_actors.openresponses.codec import Codec
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
)
from gambit_actors.openresponses.parts import (
    InputFile,
    InputImage,
    InputText,
    OutputText,
    Part,
    Refusal,
)
from gambit_actors.openresponses.reading import Mismatch, compile_reader
from gambit_actors.openresponses.writing import to_builtins


class ChatText(Tagged, tag="text", frozen=True, kw_only=True):
    """A piece of text."""

    text: str


class ChatRefusal(Tagged, tag="refusal", frozen=True, kw_only=True):
    """A piece of a refusal."""

    refusal: str


class ImageUrl(Open, frozen=True, kw_only=True):
    """Where an image is."""

    url: str
    detail: str | None = None


class ChatImage(Tagged, tag="image_url", frozen=True, kw_only=True):
    """An image."""

    image_url: ImageUrl


class ChatFileData(Open, frozen=True, kw_only=True):
    """A file by its data."""

    filename: str | None = None
    file_data: str | None = None


class ChatFile(Tagged, tag="file", frozen=True, kw_only=True):
    """A file."""

    file: ChatFileData


class UnknownChatPart(Unknown, tag=UNKNOWN_TAG, frozen=True, kw_only=True):
    """A content part of a type we do not know."""


ChatPart: TypeAlias = ChatText | ChatRefusal | ChatImage | ChatFile | UnknownChatPart


class ChatFunction(Open, frozen=True, kw_only=True):
    """The function of a tool call; ``arguments`` is its JSON text, untouched."""

    name: str
    arguments: str


class ToolCall(Open, frozen=True, kw_only=True):
    """A tool call of an assistant message."""

    id: str
    function: ChatFunction
    type: str = written("function")


class ChatMessage(Open, frozen=True, kw_only=True):
    """A message of a Chat Completions conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | tuple[ChatPart, ...] | None = written(None)
    refusal: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    tool_call_id: str | None = None


_MESSAGES = Codec[tuple[ChatMessage, ...]](tuple[ChatMessage, ...], BadRequest)


class ChatTranscript(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in chat form, and the items that have none."""

    messages: tuple[ChatMessage, ...]
    left_out: tuple[Item, ...] = ()


def chat_from_json(value: JSONValue) -> tuple[ChatMessage, ...]:
    """Read a list of chat messages from JSON that is already parsed.

    Raises:
        BadRequest: with the path and what is wrong there.
    """
    return _MESSAGES.convert(value)


def items_from_chat(messages: Iterable[ChatMessage]) -> tuple[Item, ...]:
    """Turn a chat conversation into items.

    Raises:
        BadRequest: a tool message does not say which call it answers, or a part
            that is named after an item's part has not its form.
    """
    return tuple(
        item
        for index, message in enumerate(messages)
        for item in _items_of(message, index)
    )


def chat_from_items(items: Iterable[Item]) -> ChatTranscript:
    """Turn items into a chat conversation."""
    messages: list[ChatMessage] = []
    left_out: list[Item] = []
    for item in items:
        match item:
            case Message():
                messages.append(_message_of(item))
            case FunctionCall():
                # Calls join the assistant message that stands right before them.
                if messages and messages[-1].role == "assistant":
                    last = messages.pop()
                else:
                    last = ChatMessage(role="assistant")
                calls = (*(last.tool_calls or ()), _call_of(item))
                messages.append(msgspec.structs.replace(last, tool_calls=calls))
            case FunctionCallOutput():
                messages.append(_tool_message_of(item))
            case _:
                left_out.append(item)
    return ChatTranscript(messages=tuple(messages), left_out=tuple(left_out))


def _items_of(message: ChatMessage, index: int) -> list[Item]:
    if message.role == "tool":
        return [_output_of(message, index)]
    is_model = message.role == "assistant"
    content = _parts_from_chat(message, index, is_model=is_model)
    if message.refusal is not None:
        content = (*content, Refusal(refusal=message.refusal))
    calls = [_call_from_chat(call) for call in message.tool_calls or ()]
    is_empty = content in ((), (OutputText(text=""),)) and not message.extra
    if calls and is_empty:
        return [*calls]
    said = Message(role=message.role, content=content, extra=message.extra)
    return [said, *calls]


def _output_of(message: ChatMessage, index: int) -> FunctionCallOutput:
    if message.tool_call_id is None:
        raise BadRequest(f"[{index}]", "a tool message needs a tool_call_id")
    output: str | tuple[Part, ...]
    if isinstance(message.content, tuple):
        output = _parts_from_chat(message, index, is_model=False)
    else:
        output = message.content or ""
    return FunctionCallOutput(
        call_id=message.tool_call_id, output=output, extra=message.extra
    )


def _call_from_chat(call: ToolCall) -> FunctionCall:
    return FunctionCall(
        call_id=call.id,
        name=call.function.name,
        arguments=call.function.arguments,
        extra=_stashed(call.extra, "function", call.function.extra),
    )


def _call_of(item: FunctionCall) -> ToolCall:
    extra, inner = _unstashed(item.extra, "function")
    function = ChatFunction(name=item.name, arguments=item.arguments, extra=inner)
    return ToolCall(id=item.call_id, function=function, extra=extra)


def _stashed(extra: Extra, place: str, nested: Extra) -> Extra:
    """Keys of an object in an object, kept under a name of their own.

    Chat nests where items are flat; without a name, the way back would not know
    which of the two objects a key belongs to.
    """
    return Extra(extra | {place: dict(nested)}) if nested else extra


def _unstashed(extra: Extra, place: str) -> tuple[Extra, Extra]:
    nested = extra.get(place)
    if not isinstance(nested, dict):
        return extra, NO_EXTRA
    rest = Extra((key, value) for key, value in extra.items() if key != place)
    return rest or NO_EXTRA, Extra(nested)


def _message_of(item: Message) -> ChatMessage:
    if isinstance(item.content, str):
        return ChatMessage(role=item.role, content=item.content, extra=item.extra)
    parts, refusal = item.content, None
    if parts and isinstance(last := parts[-1], Refusal) and not last.extra:
        parts, refusal = parts[:-1], last.refusal
    return ChatMessage(
        role=item.role,
        content=_chat_from_parts(parts),
        refusal=refusal,
        extra=item.extra,
    )


def _tool_message_of(item: FunctionCallOutput) -> ChatMessage:
    content: str | tuple[ChatPart, ...]
    if isinstance(item.output, str):
        content = item.output
    else:
        content = tuple(_chat_from_part(part) for part in item.output)
    return ChatMessage(
        role="tool", tool_call_id=item.call_id, content=content, extra=item.extra
    )


def _parts_from_chat(
    message: ChatMessage, index: int, *, is_model: bool
) -> tuple[Part, ...]:
    kind = OutputText if is_model else InputText
    if message.content is None:
        return ()
    if isinstance(message.content, str):
        return (kind(text=message.content),)
    try:
        return tuple(_part_from_chat(part, kind) for part in message.content)
    except Mismatch as problem:
        raise BadRequest(f"[{index}].content", str(problem)) from problem


def _part_from_chat(part: ChatPart, kind: type[InputText | OutputText]) -> Part:
    match part:
        case ChatText(text=text, extra=extra):
            return kind(text=text, extra=extra)
        case ChatRefusal(refusal=refusal, extra=extra):
            return Refusal(refusal=refusal, extra=extra)
        case ChatImage(image_url=image, extra=extra):
            return InputImage(
                image_url=image.url,
                detail=image.detail,
                extra=_stashed(extra, "image", image.extra),
            )
        case ChatFile(file=file, extra=extra):
            return InputFile(
                filename=file.filename,
                file_data=file.file_data,
                extra=_stashed(file.extra, "part", extra),
            )
        case UnknownChatPart(type_name=name, extra=extra):
            return cast(Part, _read_part({"type": name} | extra, ""))


_read_part = compile_reader(Part)


def _chat_from_parts(parts: tuple[Part, ...]) -> str | tuple[ChatPart, ...] | None:
    match parts:
        case ():
            return None
        case (InputText(text=text, extra=extra) | OutputText(text=text, extra=extra),):
            return (ChatText(text=text, extra=extra),) if extra else text
        case _:
            return tuple(_chat_from_part(part) for part in parts)


def _chat_from_part(part: Part) -> ChatPart:
    match part:
        case InputText(text=text, extra=extra) | OutputText(text=text, extra=extra):
            return ChatText(text=text, extra=extra)
        case Refusal(refusal=refusal, extra=extra):
            return ChatRefusal(refusal=refusal, extra=extra)
        case InputImage(image_url=str(url), detail=detail, extra=extra):
            extra, inner = _unstashed(extra, "image")
            image = ImageUrl(url=url, detail=detail, extra=inner)
            return ChatImage(image_url=image, extra=extra)
        case InputFile(file_url=None, filename=name, file_data=data, extra=extra):
            extra, outer = _unstashed(extra, "part")
            file = ChatFileData(filename=name, file_data=data, extra=extra)
            return ChatFile(file=file, extra=outer)
        case _:
            # No chat form: kept under its own name, which reads back as what it was.
            fields = to_builtins(part)
            name = fields.pop("type")
            return UnknownChatPart(type_name=name, extra=Extra(fields))
