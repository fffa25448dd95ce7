"""Chat messages and items say the same things, by the rules of seed 000."""

import json
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import BadRequest, GambitError, WireError
from gambit_actors.openresponses.base import Extra, JSONValue, Open
from gambit_actors.openresponses.chat import (
    ChatFile,
    ChatFileData,
    ChatFunction,
    ChatImage,
    ChatMessage,
    ChatPart,
    ChatRefusal,
    ChatText,
    ImageUrl,
    ToolCall,
    UnknownChatPart,
    chat_from_items,
    chat_from_json,
    items_from_chat,
)
from gambit_actors.openresponses.codec import decode_request
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    ItemReference,
    Message,
    Reasoning,
    UnknownItem,
    assistant_message,
    user_message,
)
from gambit_actors.openresponses.parts import (
    InputFile,
    InputImage,
    InputText,
    InputVideo,
    OutputText,
    Part,
    Refusal,
    UnknownPart,
)
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.writing import encode, to_builtins
from tests.openresponses.strategies import extras, json_texts, texts, words

_T = TypeVar("_T")
_StructT = TypeVar("_StructT", bound=Open)

ODD_JSON = ' {"b" :1.0,\n"a":"\\u00e9", "a": 1e2} '
CALL = FunctionCall(call_id="call_1", name="look_up", arguments=ODD_JSON)
TOOL_CALL = ToolCall(
    id="call_1", function=ChatFunction(name="look_up", arguments=ODD_JSON)
)


NAME = Extra(name="Ada")


def asked(*parts: ChatPart) -> ChatMessage:
    """Make a user's chat message of parts."""
    return ChatMessage(role="user", content=parts)


def said(*parts: Part) -> Message:
    """Make a user's message item."""
    return Message(role="user", content=parts)


SAME: dict[str, tuple[list[ChatMessage], list[Item]]] = {
    "system": (
        [ChatMessage(role="system", content="Be brief.")],
        [Message(role="system", content=(InputText(text="Be brief."),))],
    ),
    "developer": (
        [ChatMessage(role="developer", content="Be brief.")],
        [Message(role="developer", content=(InputText(text="Be brief."),))],
    ),
    "user": ([ChatMessage(role="user", content="a")], [user_message("a")]),
    "assistant": (
        [ChatMessage(role="assistant", content="a")],
        [assistant_message("a")],
    ),
    "text and a call": (
        [ChatMessage(role="assistant", content="a", tool_calls=(TOOL_CALL,))],
        [assistant_message("a"), CALL],
    ),
    "calls alone": (
        [ChatMessage(role="assistant", tool_calls=(TOOL_CALL, TOOL_CALL))],
        [CALL, CALL],
    ),
    "tool": (
        [ChatMessage(role="tool", tool_call_id="call_1", content=ODD_JSON)],
        [FunctionCallOutput(call_id="call_1", output=ODD_JSON)],
    ),
    "tool with parts": (
        [ChatMessage(role="tool", tool_call_id="c", content=(ChatText(text="a"),))],
        [FunctionCallOutput(call_id="c", output=(InputText(text="a"),))],
    ),
    "several texts": (
        [asked(ChatText(text="a"), ChatText(text="b"))],
        [said(InputText(text="a"), InputText(text="b"))],
    ),
    "an image": (
        [asked(ChatImage(image_url=ImageUrl(url="https://a.test", detail="low")))],
        [said(InputImage(image_url="https://a.test", detail="low"))],
    ),
    "a file": (
        [asked(ChatFile(file=ChatFileData(filename="a", file_data="data:")))],
        [said(InputFile(filename="a", file_data="data:"))],
    ),
    "a name": (
        [ChatMessage(role="user", content="a", extra=NAME)],
        [Message(role="user", content=(InputText(text="a"),), extra=NAME)],
    ),
    "nothing said": (
        [ChatMessage(role="assistant")],
        [Message(role="assistant", content=())],
    ),
}


@pytest.mark.spec("OR-5")
@pytest.mark.parametrize("name", SAME)
def test_the_rules_both_ways(name: str) -> None:
    """Each rule of the contract turns one side into the other, and back."""
    messages, items = SAME[name]
    assert items_from_chat(messages) == tuple(items)
    transcript = chat_from_items(items)
    assert transcript.messages == tuple(messages)
    assert transcript.left_out == ()


@pytest.mark.spec("MAP-7")
def test_refusals_both_ways() -> None:
    """A refusal of a chat message is a refusal part, alone or after text."""
    alone = ChatMessage(role="assistant", refusal="No.")
    after = ChatMessage(role="assistant", content="Well.", refusal="No.")
    items = (
        Message(role="assistant", content=(Refusal(refusal="No."),)),
        Message(
            role="assistant", content=(OutputText(text="Well."), Refusal(refusal="No."))
        ),
    )
    assert items_from_chat([alone, after]) == items
    assert chat_from_items(items).messages == (alone, after)


@pytest.mark.spec("MAP-4")
def test_a_tool_result_is_input_of_the_next_request() -> None:
    """A tool result goes out as a function_call_output for its call, byte for byte."""
    items = items_from_chat([*SAME["calls alone"][0], *SAME["tool"][0]])
    data = encode(CreateResponse(model="m", input=items))
    assert json.loads(data)["input"][-1] == {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": ODD_JSON,
    }
    assert decode_request(data).input == items


def test_calls_join_the_message_right_before_them() -> None:
    """Text, then calls, is one assistant message; after a result a new one begins."""
    output = FunctionCallOutput(call_id="call_1", output="1")
    transcript = chat_from_items([assistant_message("a"), CALL, CALL, output, CALL])
    told = [(m.role, len(m.tool_calls or ())) for m in transcript.messages]
    assert told == [("assistant", 2), ("tool", 0), ("assistant", 1)]


def test_spellings_that_change() -> None:
    """Where one side has two spellings for one thing, the documented one comes back."""

    def again(*messages: ChatMessage) -> tuple[ChatMessage, ...]:
        return chat_from_items(items_from_chat(messages)).messages

    assert again(asked(ChatText(text="a"))) == tuple(SAME["user"][0])
    text = ChatMessage(role="assistant", content="Hi")
    calls = ChatMessage(role="assistant", tool_calls=(TOOL_CALL,))
    both = ChatMessage(role="assistant", content="Hi", tool_calls=(TOOL_CALL,))
    assert again(text, calls) == (both,)
    empty = ChatMessage(role="assistant", content="", tool_calls=(TOOL_CALL,))
    assert again(empty) == (calls,)


@pytest.mark.spec("OR-5")
def test_what_has_no_place_in_a_chat_is_left_out() -> None:
    """Reasoning, references and unknown items are handed back, not dropped."""
    strange: list[Item] = [
        Reasoning(id="rs_1"),
        ItemReference(id="msg_1"),
        UnknownItem(type_name="acme:x", extra=Extra(n=1)),
    ]
    transcript = chat_from_items([strange[0], user_message("Hi"), *strange[1:]])
    assert transcript.messages == (ChatMessage(role="user", content="Hi"),)
    assert transcript.left_out == tuple(strange)


@pytest.mark.parametrize(
    "part",
    [
        InputVideo(video_url="https://a.test/x.mp4"),
        InputFile(file_url="https://a.test/x.pdf", filename="x"),
        InputImage(detail="low", extra=Extra(file_id="file_1")),
    ],
)
def test_a_part_without_a_chat_form_keeps_its_own(part: Part) -> None:
    """Such a part stands in the chat under its own type and reads back the same."""
    item = said(InputText(text="See"), part)
    (message,) = chat_from_items([item]).messages
    assert to_builtins(message)["content"][1] == to_builtins(part)
    assert items_from_chat(chat_from_json([to_builtins(message)])) == (item,)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
        {"type": "image_url", "image_url": {"url": "u"}, "cache_control": 1},
        {"type": "image_url", "image_url": {"url": "u", "format": "png"}},
        {"type": "file", "file": {"file_id": "file_1"}},
        {"type": "file", "file": {"file_data": "d"}, "cache_control": 1},
        {"type": "input_audio", "input_audio": {"data": "d", "format": "wav"}},
    ],
)
def test_further_keys_come_back_where_they_were(part: JSONValue) -> None:
    """Keys beyond the rules are in their old place after both ways."""
    message = {"role": "user", "content": [part]}
    items = items_from_chat(chat_from_json([message]))
    (back,) = chat_from_items(items).messages
    assert to_builtins(back) == message


def test_a_tool_message_must_name_its_call() -> None:
    """Without tool_call_id there is a clear error, with the message's place."""
    tool = ChatMessage(role="tool", content="1")
    with pytest.raises(WireError, match="a tool message needs a tool_call_id") as fault:
        items_from_chat([ChatMessage(role="user", content="Hi"), tool])
    assert fault.value.path == "[1]"


@pytest.mark.spec("OR-1")
def test_a_broken_part_is_one_of_our_errors() -> None:
    """A part of a known type in a wrong form is refused as such, not by accident."""
    part = {"type": "input_text", "text": 5}
    with pytest.raises(GambitError, match="text"):
        items_from_chat(chat_from_json([{"role": "user", "content": [part]}]))


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({}, ""),
        ([{"role": "robot"}], "[0].role"),
        ([{"content": "a"}], "[0]"),
        ([{"role": "user", "content": 7}], "[0].content"),
        ([{"role": "user", "content": [{"text": "a"}]}], "[0].content[0]"),
        (
            [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}],
            "[0].content[0].image_url",
        ),
        (
            [{"role": "assistant", "tool_calls": [{"id": "c", "function": {}}]}],
            "[0].tool_calls[0].function",
        ),
    ],
)
def test_a_bad_chat_is_refused_with_the_place(value: JSONValue, path: str) -> None:
    """What is no chat is the caller's fault, and the error says where."""
    with pytest.raises(BadRequest) as caught:
        chat_from_json(value)
    assert caught.value.path == path


def some(
    kind: type[_StructT], **fields: st.SearchStrategy[object]
) -> st.SearchStrategy[_StructT]:
    """Make structs of a kind, with further keys."""
    return st.builds(kind, extra=extras(), **fields)


def several(values: st.SearchStrategy[_T]) -> st.SearchStrategy[tuple[_T, ...]]:
    """Make up to three of something."""
    return st.lists(values, max_size=3).map(tuple)


MAYBE = st.none() | texts()
ASKING = st.sampled_from(["system", "developer", "user"])
VENDOR_TYPES = words().map("acme:{}".format)


def is_in_normal_form(message: ChatMessage) -> bool:
    """Say whether a message is spelled as it would come back."""
    match message.content:
        case (ChatText(extra=extra),) if not extra and message.role != "tool":
            return False
        case (*_, ChatRefusal(extra=extra)) if message.refusal is None and not extra:
            return False
        case "" if message.tool_calls and message.refusal is None:
            return bool(message.extra)
        case _:
            return message.content != () or message.role == "tool"


def without_joins(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Leave out calls alone right after an assistant message, which would join it."""
    kept: list[ChatMessage] = []
    for message in messages:
        spoken = (message.content, message.refusal, message.extra)
        if not kept or kept[-1].role != "assistant" or spoken != (None, None, {}):
            kept.append(message)
    return kept


def chats() -> st.SearchStrategy[list[ChatMessage]]:
    """Conversations in the spelling that comes back."""
    part = st.one_of(
        some(ChatText, text=texts()),
        some(ChatImage, image_url=some(ImageUrl, url=texts(), detail=MAYBE)),
        some(ChatFile, file=some(ChatFileData, filename=MAYBE, file_data=MAYBE)),
        some(UnknownChatPart, type_name=VENDOR_TYPES),
    )
    model_part = some(ChatText, text=texts()) | some(ChatRefusal, refusal=texts())
    function = some(ChatFunction, name=words(), arguments=json_texts())
    call = some(ToolCall, id=words(), function=function)
    message = st.one_of(
        some(ChatMessage, role=ASKING, content=texts() | several(part)),
        some(
            ChatMessage,
            role=st.just("assistant"),
            content=MAYBE | several(model_part),
            refusal=MAYBE,
            tool_calls=st.none() | several(call).filter(bool),
        ),
        some(
            ChatMessage,
            role=st.just("tool"),
            tool_call_id=words(),
            content=json_texts() | several(part),
        ),
    )
    return st.lists(message.filter(is_in_normal_form), max_size=4).map(without_joins)


def item_lists() -> st.SearchStrategy[list[Item]]:
    """Items a chat has a place for, without what it has none for."""
    part = st.one_of(
        some(InputText, text=texts()),
        some(InputImage, image_url=MAYBE, detail=MAYBE),
        some(InputFile, filename=MAYBE, file_url=MAYBE),
        some(UnknownPart, type_name=VENDOR_TYPES),
    )
    model_part = some(OutputText, text=texts()) | some(Refusal, refusal=texts())
    answer = some(Message, role=st.just("assistant"), content=several(model_part))
    item = st.one_of(
        some(Message, role=ASKING, content=several(part)),
        # Empty text beside calls is no text.
        answer.filter(lambda a: bool(a.extra or a.text or a.refusal)),
        some(FunctionCall, call_id=words(), name=words(), arguments=json_texts()),
        some(
            FunctionCallOutput,
            call_id=words(),
            output=json_texts() | several(part),
        ),
    )
    return st.lists(item, max_size=4)


@pytest.mark.slow
@pytest.mark.spec("OR-5")
@given(chats())
def test_any_chat_comes_back(messages: list[ChatMessage]) -> None:
    """A conversation is the same after it was items, and after it was JSON."""
    transcript = chat_from_items(items_from_chat(messages))
    assert transcript.messages == tuple(messages)
    assert transcript.left_out == ()
    written = json.loads(encode(tuple(messages)))
    assert chat_from_json(written) == tuple(messages)


@pytest.mark.slow
@pytest.mark.spec("OR-5")
@given(item_lists())
def test_any_items_come_back(items: list[Item]) -> None:
    """Items are the same after they were chat, and chat that went over JSON."""
    messages = chat_from_items(items).messages
    assert items_from_chat(messages) == tuple(items)
    written = json.loads(encode(messages))
    assert items_from_chat(chat_from_json(written)) == tuple(items)
