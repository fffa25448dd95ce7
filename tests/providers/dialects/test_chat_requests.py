"""Requests in the words of Chat Completions, for each flavour of server."""

from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.openresponses import (
    CreateResponse,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
    SSEFrame,
    UnknownItem,
    assistant_message,
    build_response,
    follow_up,
    system_message,
    user_message,
)
from gambit_actors.openresponses.base import Extra, JSONValue
from gambit_actors.openresponses.codec import request_from_json
from gambit_actors.openresponses.parts import InputImage, InputText, OutputText, Refusal
from gambit_actors.providers.dialects.chat import (
    FLAVOURS,
    GENERIC,
    LLAMA_CPP,
    LM_STUDIO,
    OLLAMA,
    OPENAI,
    OPENROUTER,
    VLLM,
    ChatDialect,
    ChatFlavour,
)
from gambit_actors.providers.dialects.dialect import Rendered
from gambit_actors.providers.dialects.sealing import seal
from tests.providers.dialects.golden import STARTED, golden_bytes, play

CALL = FunctionCall(call_id="call_a", name="look", arguments='{"at":1}')
OUTPUT = FunctionCallOutput(call_id="call_a", output="found")
TOOL = {"type": "function", "name": "look", "parameters": {"type": "object"}}
OTHER = {"type": "function", "name": "go"}
SENT_CALL = {
    "id": "call_a",
    "type": "function",
    "function": {"name": "look", "arguments": '{"at":1}'},
}


def _render(
    value: dict[str, JSONValue], flavour: ChatFlavour = GENERIC, *, stream: bool = False
) -> Rendered:
    return ChatDialect(flavour=flavour).render(request_from_json(value), stream=stream)


def _messages(*items: Item, flavour: ChatFlavour = GENERIC) -> list[JSONValue]:
    rendered = ChatDialect(flavour=flavour).render(
        CreateResponse(input=items), stream=False
    )
    return cast(list[JSONValue], rendered.body["messages"])


def _unsent(*items: Item, flavour: ChatFlavour = GENERIC) -> list[str]:
    rendered = ChatDialect(flavour=flavour).render(
        CreateResponse(input=items), stream=False
    )
    return [unsent.path for unsent in rendered.unsent]


@pytest.mark.spec("MAP-8")
def test_a_request_is_said_whole() -> None:
    """Instructions, messages, tools and settings each have their place in the body."""
    rendered = _render(
        {
            "model": "gpt-5",
            "instructions": "Be brief.",
            "input": "Hello",
            "temperature": 0.5,
            "max_output_tokens": 100,
            "tools": [TOOL | {"strict": True, "description": "Looks."}],
            "tool_choice": "required",
            "seed": 7,
        },
        OPENAI,
        stream=True,
    )

    assert rendered.path == "/chat/completions"
    assert rendered.unsent == ()
    assert rendered.body == {
        "seed": 7,
        "model": "gpt-5",
        "temperature": 0.5,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
        ],
        "max_completion_tokens": 100,
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "look",
                    "description": "Looks.",
                    "parameters": {"type": "object"},
                    "strict": True,
                },
            }
        ],
        "tool_choice": "required",
    }


@pytest.mark.parametrize(
    ("value", "flavour", "said"),
    [
        ({"max_output_tokens": 99}, VLLM, {"max_tokens": 99}),
        ({"presence_penalty": 1.0}, OLLAMA, {"presence_penalty": 1.0}),
        ({"reasoning": {"effort": "low"}}, OPENAI, {"reasoning_effort": "low"}),
        (
            {"reasoning": {"effort": "xhigh", "summary": "auto", "max_tokens": 9}},
            OPENROUTER,
            {"reasoning": {"effort": "xhigh", "summary": "auto", "max_tokens": 9}},
        ),
        (
            {"text": {"format": {"type": "json_object"}, "verbosity": "low"}},
            OPENAI,
            {"response_format": {"type": "json_object"}, "verbosity": "low"},
        ),
        (
            {"text": {"format": {"type": "json_schema", "name": "x", "schema": {}}}},
            LM_STUDIO,
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": {}},
                }
            },
        ),
        ({"text": {"format": {"type": "text"}}}, GENERIC, {}),
        (
            {"store": True, "metadata": {"a": "b"}, "service_tier": "flex"},
            OPENAI,
            {"store": True, "metadata": {"a": "b"}, "service_tier": "flex"},
        ),
        ({"metadata": {"a": "b"}}, OPENROUTER, {"metadata": {"a": "b"}}),
        ({"safety_identifier": "u"}, OPENAI, {"safety_identifier": "u"}),
        ({"safety_identifier": "u"}, VLLM, {"user": "u"}),
        ({"prompt_cache_key": "k"}, OPENAI, {"prompt_cache_key": "k"}),
        ({"store": False, "truncation": "disabled", "background": False}, GENERIC, {}),
        ({"include": ["reasoning.encrypted_content"]}, GENERIC, {}),
        ({"tools": [], "tool_choice": "auto", "parallel_tool_calls": False}, VLLM, {}),
        ({"stop": ["x"], "model_extra": 1}, GENERIC, {"stop": ["x"], "model_extra": 1}),
    ],
)
def test_a_setting_is_said_in_the_flavours_words(
    value: dict[str, JSONValue], flavour: ChatFlavour, said: dict[str, JSONValue]
) -> None:
    """Every setting a server takes goes out under the name it has there."""
    rendered = _render(value, flavour)

    assert rendered.unsent == ()
    assert {k: v for k, v in rendered.body.items() if k != "messages"} == said


@pytest.mark.parametrize(
    ("value", "flavour", "paths"),
    [
        ({"reasoning": {"effort": "low"}}, LLAMA_CPP, ["reasoning.effort"]),
        ({"reasoning": {"summary": "auto"}}, OPENAI, ["reasoning.summary"]),
        ({"reasoning": {"max_tokens": 5}}, OPENAI, ["reasoning.max_tokens"]),
        ({"text": {"format": {"type": "json_object"}}}, LM_STUDIO, ["text.format"]),
        ({"text": {"format": {"type": "grammar"}}}, OPENAI, ["text.format"]),
        ({"text": {"verbosity": "low", "x": 1}}, VLLM, ["text.verbosity", "text.x"]),
        ({"service_tier": "flex"}, VLLM, ["service_tier"]),
        ({"prompt_cache_key": "k"}, OPENROUTER, ["prompt_cache_key"]),
        ({"store": True}, VLLM, ["store"]),
        ({"metadata": {"a": "b"}}, OPENAI, ["metadata"]),
        ({"metadata": {"a": "b"}}, VLLM, ["metadata"]),
        ({"safety_identifier": "u"}, OLLAMA, ["safety_identifier"]),
        ({"truncation": "auto"}, OPENAI, ["truncation"]),
        ({"background": True}, OPENAI, ["background"]),
        ({"max_tool_calls": 3}, OPENAI, ["max_tool_calls"]),
        ({"top_logprobs": 3}, OPENAI, ["top_logprobs"]),
        ({"include": ["web_search"]}, OPENAI, ["include[0]"]),
        ({"previous_response_id": "r"}, OPENAI, ["previous_response_id"]),
        (
            {"stream_options": {"include_obfuscation": True}},
            VLLM,
            ["stream_options.include_obfuscation"],
        ),
        ({"tools": [{"type": "web_search"}]}, OPENAI, ["tools[0]"]),
        ({"tools": [TOOL | {"strict": True}]}, OLLAMA, ["tools[0].strict"]),
        (
            {"tools": [TOOL], "parallel_tool_calls": False},
            OLLAMA,
            ["parallel_tool_calls"],
        ),
        ({"tool_choice": "required"}, OPENAI, ["tool_choice"]),
        ({"tools": [TOOL], "tool_choice": {"type": "x"}}, OPENAI, ["tool_choice"]),
        ({"tools": [TOOL], "tool_choice": "required"}, OLLAMA, ["tool_choice"]),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "name": "no"}},
            LM_STUDIO,
            ["tool_choice"],
        ),
    ],
)
def test_a_setting_without_words_is_told(
    value: dict[str, JSONValue], flavour: ChatFlavour, paths: list[str]
) -> None:
    """What a server does not take is left out, and named with a reason."""
    rendered = _render(value, flavour)

    assert [unsent.path for unsent in rendered.unsent] == paths
    assert all(unsent.reason for unsent in rendered.unsent)


NAMED = {"type": "function", "function": {"name": "look"}}
ALLOWED = {
    "type": "allowed_tools",
    "mode": "required",
    "tools": [{"type": "function", "name": "look"}],
}


@pytest.mark.parametrize(
    ("choice", "flavour", "said", "offered"),
    [
        ("none", OPENAI, "none", ["look", "go"]),
        ("none", OLLAMA, None, []),
        ("auto", OLLAMA, None, ["look", "go"]),
        (NAMED, VLLM, NAMED, ["look", "go"]),
        (NAMED, LLAMA_CPP, "required", ["look"]),
        (ALLOWED, VLLM, "required", ["look"]),
        (
            ALLOWED,
            OPENAI,
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [NAMED]},
            },
            ["look", "go"],
        ),
    ],
)
def test_a_choice_is_kept_to_with_or_without_words(
    choice: JSONValue, flavour: ChatFlavour, said: JSONValue, offered: list[str]
) -> None:
    """A choice that a server does not know is made by what it is offered."""
    rendered = _render({"tools": [TOOL, OTHER], "tool_choice": choice}, flavour)

    tools = cast(list[dict[str, JSONValue]], rendered.body.get("tools", []))
    assert rendered.body.get("tool_choice") == said
    assert [tool["function"]["name"] for tool in tools] == offered
    assert rendered.unsent == ()


@pytest.mark.spec("MAP-4")
def test_an_answer_is_one_message_with_its_outputs_behind_it() -> None:
    """Text and calls of one answer join; outputs come right after, in call order."""
    second = msgspec.structs.replace(CALL, call_id="call_b")

    messages = _messages(
        user_message("Look!"),
        assistant_message("Yes."),
        CALL,
        second,
        user_message("Wait."),
        FunctionCallOutput(call_id="call_b", output="late"),
        OUTPUT,
    )

    assert messages == [
        {"role": "user", "content": "Look!"},
        {
            "role": "assistant",
            "content": "Yes.",
            "tool_calls": [SENT_CALL, SENT_CALL | {"id": "call_b"}],
        },
        {"role": "tool", "content": "found", "tool_call_id": "call_a"},
        {"role": "tool", "content": "late", "tool_call_id": "call_b"},
        {"role": "user", "content": "Wait."},
    ]


def test_text_behind_a_call_stands_before_it() -> None:
    """Text between a call and its output joins the message that has the call."""
    messages = _messages(assistant_message("a"), CALL, assistant_message("b"), OUTPUT)

    assert messages[0] == {
        "role": "assistant",
        "content": "a\n\nb",
        "tool_calls": [SENT_CALL],
    }


def test_lone_calls_and_outputs_are_told() -> None:
    """A call without output, an output without call: servers refuse, so they stay."""
    assert _unsent(CALL, user_message("x")) == ["input[0]"]
    assert _unsent(OUTPUT) == ["input[0]"]
    assert _messages(CALL, user_message("x")) == [{"role": "user", "content": "x"}]


@given(st.text(max_size=80), st.integers(1, 3))
def test_ids_of_calls_are_such_as_servers_take(call_id: str, times: int) -> None:
    """An id that a server refuses is changed, the same for the call and its output."""
    call = msgspec.structs.replace(CALL, call_id=call_id)
    output = msgspec.structs.replace(OUTPUT, call_id=call_id)

    messages = _messages(*[call] * times, *[output] * times)

    sent = [call["id"] for call in messages[0]["tool_calls"]]
    assert len(set(sent)) == times
    assert all(0 < len(sent_id) <= 40 and sent_id.isascii() for sent_id in sent)
    assert [m["tool_call_id"] for m in messages[1:]] == sent


def test_a_name_that_no_tool_can_have_is_changed_and_told() -> None:
    """A model may call anything; servers refuse names that no tool can have."""
    odd = msgspec.structs.replace(CALL, name="no such/tool")

    assert _messages(odd, OUTPUT)[0]["tool_calls"][0]["function"]["name"] == (
        "no_such_tool"
    )
    assert _unsent(odd, OUTPUT) == ["input[0].name"]


@pytest.mark.parametrize(
    ("item", "flavour", "content"),
    [
        (
            {"type": "input_image", "image_url": "data:image/png;base64,AA"},
            OLLAMA,
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
        ),
        (
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:x"},
            OPENAI,
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:x"}},
        ),
        (
            {"type": "input_file", "file_url": "https://a/b.pdf"},
            OPENROUTER,
            {"type": "file", "file": {"file_data": "https://a/b.pdf"}},
        ),
        (
            {"type": "input_video", "video_url": "https://a/b.mp4"},
            VLLM,
            {"type": "video_url", "video_url": {"url": "https://a/b.mp4"}},
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
            GENERIC,
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
        ),
    ],
)
def test_what_a_user_shows_is_sent(
    item: JSONValue, flavour: ChatFlavour, content: JSONValue
) -> None:
    """Images, files, videos and sound go to the servers that take them."""
    text = {"type": "input_text", "text": "See:"}
    rendered = _render({"input": [{"role": "user", "content": [text, item]}]}, flavour)

    (message,) = cast(list[dict[str, JSONValue]], rendered.body["messages"])
    assert message["content"] == [{"type": "text", "text": "See:"}, content]
    assert rendered.unsent == ()


@pytest.mark.parametrize(
    ("part", "flavour"),
    [
        ({"type": "input_image", "detail": "low"}, OPENAI),
        ({"type": "input_file", "file_url": "https://a/b.pdf"}, OPENAI),
        ({"type": "input_file", "file_data": "data:x"}, VLLM),
        ({"type": "input_video", "video_url": "https://a/b.mp4"}, OPENAI),
        ({"type": "hologram"}, OPENAI),
    ],
)
def test_what_a_server_does_not_take_is_told(
    part: JSONValue, flavour: ChatFlavour
) -> None:
    """A part that a server has no place for is named with its path."""
    rendered = _render({"input": [{"role": "user", "content": [part]}]}, flavour)

    assert [unsent.path for unsent in rendered.unsent] == ["input[0].content[0]"]
    assert rendered.body["messages"] == []


def test_outputs_are_text() -> None:
    """An image in an output is told; its texts are sent as one."""
    output = {
        "type": "function_call_output",
        "call_id": "call_a",
        "output": [
            {"type": "input_text", "text": "a"},
            {"type": "input_image", "image_url": "https://a/b"},
            {"type": "input_text", "text": "b"},
        ],
    }
    call = {"type": "function_call", "call_id": "call_a", "name": "f", "arguments": ""}
    rendered = _render({"input": [call, output]})

    messages = cast(list[dict[str, JSONValue]], rendered.body["messages"])
    assert messages[1]["content"] == "a\nb"
    assert [unsent.path for unsent in rendered.unsent] == ["input[1].output[1]"]


def test_the_developer_is_the_system_where_there_is_none() -> None:
    """Only some servers know the developer's role; the others hear the system."""
    message = Message(role="developer", content="Be brief.")

    assert _messages(message, flavour=OPENAI)[0]["role"] == "developer"
    assert _messages(message, flavour=VLLM)[0]["role"] == "system"
    assert _messages(user_message("a"), system_message("b"))[1]["role"] == "system"


@pytest.mark.spec("MAP-7")
def test_an_earlier_refusal_goes_back() -> None:
    """As a refusal where there is one, as text elsewhere."""
    said = Message(role="assistant", content=(Refusal(refusal="No."),))
    both = (OutputText(text="Well."), Refusal(refusal=" No."))

    assert _messages(said, flavour=OPENAI)[0]["refusal"] == "No."
    assert _messages(said, flavour=VLLM)[0]["content"] == "No."
    assert _messages(Message(role="assistant", content=both))[0]["content"] == (
        "Well. No."
    )


def test_items_without_a_place_are_told() -> None:
    """Reasoning of others, references and unknown items are named, not sent."""
    items = (
        Reasoning(encrypted_content="gAAAA"),
        Reasoning(encrypted_content=seal("chat.vllm", {"text": "x"})),
        Reasoning(summary=(InputText(text="x"),)),
        Reasoning(),
        UnknownItem(type_name="web_search_call", extra=Extra(id="x")),
    )

    assert _unsent(*items) == ["input[0]", "input[1]", "input[2]", "input[4]"]
    assert _messages(*items) == []


def _next_messages(name: str, flavour: ChatFlavour) -> list[JSONValue]:
    dialect = ChatDialect(flavour=flavour)
    response = play(dialect, [golden_bytes("chat", name)]).response
    assert response is not None
    outputs = [
        FunctionCallOutput(call_id=item.call_id, output="done")
        for item in response.output
        if isinstance(item, FunctionCall)
    ]
    request = follow_up(
        CreateResponse(input=(user_message("Go on."),)),
        response,
        [*outputs, user_message("And?")],
    )
    rendered = dialect.render(request, stream=True)
    assert rendered.unsent == ()
    return cast(list[JSONValue], rendered.body["messages"])


@pytest.mark.spec("MAP-5")
def test_details_of_reasoning_go_back_as_they_were() -> None:
    """What OpenRouter sent of reasoning comes back whole, with its signature."""
    _, answer, output, _ = _next_messages("reasoning_details", OPENROUTER)

    assert output["tool_call_id"] == "toolu_1"
    assert answer["content"] == "One moment."
    assert answer["reasoning_details"] == [
        {
            "type": "reasoning.text",
            "text": "Look it up.",
            "signature": "c2lnbmVk",
            "format": "anthropic-claude-v1",
            "index": 0,
        }
    ]


def test_encrypted_reasoning_goes_back() -> None:
    """Blocks that nobody can read come back beside the summaries."""
    _, answer, _ = _next_messages("reasoning_summary_and_encrypted", OPENROUTER)

    kinds = [detail["type"] for detail in answer["reasoning_details"]]
    assert kinds == ["reasoning.summary", "reasoning.encrypted"]


def test_signatures_of_calls_go_back() -> None:
    """What Google's servers put on a call comes back on that call."""
    _, answer, _, _ = _next_messages("google_signature_on_call", GENERIC)

    (call,) = answer["tool_calls"]
    assert call["extra_content"] == {"google": {"thought_signature": "c2ln"}}


def test_plain_reasoning_goes_back_only_to_who_wants_it() -> None:
    """Servers refuse reasoning as input, but for those that insist on it."""
    wants = msgspec.structs.replace(
        GENERIC, name="wants", reasoning_back="reasoning_content"
    )

    assert "reasoning_content" not in _next_messages("reasoning_content", GENERIC)[1]
    answer = _next_messages("reasoning_content", wants)[1]
    assert answer["reasoning_content"] == "The user greets."


@pytest.mark.parametrize("flavour", FLAVOURS.values(), ids=list(FLAVOURS))
@pytest.mark.parametrize("name", ["two_calls", "text_then_call", "refusal", "text"])
def test_what_was_read_can_be_sent(name: str, flavour: ChatFlavour) -> None:
    """Every answer can be gone on from, with nothing left out."""
    messages = _next_messages(name, flavour)

    roles = [message["role"] for message in messages]
    assert roles[:2] == ["user", "assistant"]
    assert roles[-1] == "user"


def test_settings_hold_no_state() -> None:
    """One dialect serves many answers at once; the key goes into one header."""
    dialect = ChatDialect()
    first, second = dialect.reader(STARTED), dialect.reader(STARTED)
    frame = SSEFrame(
        "message", b'{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}'
    )

    events = [*first.feed(frame), *first.close()]

    assert build_response(events).output_text == "a"
    assert list(second.close()) == []
    assert (dialect.name, dialect.keeps_responses) == ("chat", False)
    assert dialect.auth_headers("k") == {"authorization": "Bearer k"}


@pytest.mark.parametrize("flavour", FLAVOURS.values(), ids=FLAVOURS)
def test_a_further_key_takes_the_place_of_no_other(flavour: ChatFlavour) -> None:
    """What a request says in its own words is not undone by a key of the server's."""
    request = CreateResponse(
        model="m",
        input="Hi",
        temperature=0.5,
        extra=Extra(
            {"model": "other", "temperature": 2, "messages": [], "stream": False}
        ),
    )

    body = ChatDialect(flavour=flavour).render(request, stream=True).body

    assert (body["model"], body["temperature"], body["stream"]) == ("m", 0.5, True)
    assert body["messages"] == [{"role": "user", "content": "Hi"}]


def test_each_of_two_calls_with_one_id_has_its_own_output() -> None:
    """No output is sent twice, and no call without one; ids are told apart."""
    second = msgspec.structs.replace(OUTPUT, output="nothing")

    answer, first_out, second_out = _messages(CALL, CALL, OUTPUT, second)

    assert (first_out["content"], second_out["content"]) == ("found", "nothing")
    ids = [call["id"] for call in answer["tool_calls"]]
    assert ids == [first_out["tool_call_id"], second_out["tool_call_id"]]
    assert len(set(ids)) == 2


def test_texts_are_one_only_if_nothing_is_lost_by_it() -> None:
    """Plain texts of an output are joined; beside one that has more, all stay."""
    plain = (InputText(text="a"), InputText(text="b"))
    marked = InputText(text="c", extra=Extra(cache_control={"type": "ephemeral"}))

    _, joined = _messages(CALL, msgspec.structs.replace(OUTPUT, output=plain))
    _, kept = _messages(CALL, msgspec.structs.replace(OUTPUT, output=(*plain, marked)))

    assert joined["content"] == "a\nb"
    assert [part["text"] for part in kept["content"]] == ["a", "b", "c"]


def test_a_message_of_which_nothing_is_left_has_no_words_put_into_it() -> None:
    """What has no place is left out, and the calls behind it have no text then."""
    shown = Message(role="assistant", content=(InputImage(image_url="data:,"),))

    answer, _ = _messages(shown, CALL, OUTPUT)

    assert answer["content"] is None
    assert answer["tool_calls"] == [SENT_CALL]
