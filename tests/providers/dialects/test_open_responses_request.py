"""Requests as servers of Open Responses take them."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openresponses_types.types import CreateResponseBody

from gambit_actors.errors import BadRequest
from gambit_actors.openresponses import (
    CreateResponse,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
    UnknownItem,
    system_message,
    user_message,
)
from gambit_actors.openresponses import parts as p
from gambit_actors.openresponses import tools as t
from gambit_actors.openresponses.base import Extra, JSONValue
from gambit_actors.openresponses.followup import in_input_form
from gambit_actors.openresponses.items import Compaction, ItemReference
from gambit_actors.openresponses.requests import (
    JsonObjectFormat,
    JsonSchemaFormat,
    ReasoningConfig,
    StreamOptions,
    TextConfig,
)
from gambit_actors.providers.dialects.dialect import Rendered, Unsent
from gambit_actors.providers.dialects.open_responses import OpenResponsesDialect
from gambit_actors.providers.dialects.open_responses_profiles import (
    OPEN_RESPONSES,
    OPENAI,
    OPENROUTER,
    OpenResponsesProfile,
)
from gambit_actors.providers.dialects.sealing import seal
from tests.openresponses import strategies

ANY = OpenResponsesDialect()
MIB = 1 << 20


def rendered(
    profile: OpenResponsesProfile = OPEN_RESPONSES, **fields: JSONValue
) -> Rendered:
    """Render a request that has these fields."""
    asked: dict[str, Any] = {"model": "m", "input": "Hi"} | fields
    request = CreateResponse(**asked)
    return OpenResponsesDialect(profile=profile).render(request, stream=True)


def sent_items(
    *items: Item, profile: OpenResponsesProfile = OPEN_RESPONSES, **fields: JSONValue
) -> JSONValue:
    """What becomes of items; only what is asked for may be left out."""
    result = rendered(profile, input=items, **fields)
    assert result.unsent == ()
    return result.body["input"]


def left_out(result: Rendered) -> list[str]:
    """The paths of what was left out."""
    return [unsent.path for unsent in result.unsent]


def is_valid(body: JSONValue) -> bool:
    """Whether an independent, strict reading of the standard takes a body."""
    CreateResponseBody.model_validate_json(msgspec.json.encode(body), strict=True)
    return True


def test_request_goes_out_as_it_is() -> None:
    """What the standard names is sent under its own name; nothing else is added."""
    result = rendered(
        instructions="Be brief.",
        input=(system_message("You help."), user_message("Hi")),
        tools=(t.FunctionTool(name="find", parameters={"type": "object"}),),
        tool_choice="required",
        parallel_tool_calls=False,
        max_tool_calls=3,
        text=TextConfig(
            format=JsonSchemaFormat(name="answer", schema={"type": "object"}),
            verbosity="low",
        ),
        reasoning=ReasoningConfig(effort="low", summary="auto"),
        temperature=0.5,
        top_p=0.9,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        top_logprobs=2,
        max_output_tokens=100,
        truncation="auto",
        service_tier="flex",
        metadata={"k": "v"},
        safety_identifier="s",
        prompt_cache_key="c",
        include=("message.output_text.logprobs",),
        stream_options=StreamOptions(include_obfuscation=False),
        extra=Extra(stop=["END"]),
    )

    assert result.path == "/responses"
    assert result.headers == {}
    assert result.unsent == ()
    assert is_valid(result.body)
    assert result.body == {
        "model": "m",
        "instructions": "Be brief.",
        "input": [
            {
                "type": "message",
                "role": "system",
                "content": [{"type": "input_text", "text": "You help."}],
            },
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Hi"}],
            },
        ],
        "tools": [
            {"type": "function", "name": "find", "parameters": {"type": "object"}}
        ],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "max_tool_calls": 3,
        "text": {
            "format": {
                "type": "json_schema",
                "name": "answer",
                "schema": {"type": "object"},
            },
            "verbosity": "low",
        },
        "reasoning": {"effort": "low", "summary": "auto"},
        "temperature": 0.5,
        "top_p": 0.9,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "top_logprobs": 2,
        "max_output_tokens": 100,
        "truncation": "auto",
        "service_tier": "flex",
        "metadata": {"k": "v"},
        "safety_identifier": "s",
        "prompt_cache_key": "c",
        "include": ["message.output_text.logprobs"],
        "stream_options": {"include_obfuscation": False},
        "stop": ["END"],
        "stream": True,
        "store": False,
    }


def test_a_request_may_ask_for_no_stream() -> None:
    """Without a stream there is nothing to say about streaming."""
    options = StreamOptions(include_obfuscation=False)
    request = CreateResponse(model="m", stream=True, stream_options=options)

    body = ANY.render(request, stream=False).body

    assert body["stream"] is False
    assert "stream_options" not in body


def test_key_goes_into_the_authorization_header() -> None:
    """A key is sent as a bearer token."""
    assert ANY.auth_headers("sk-1") == {"authorization": "Bearer sk-1"}


@pytest.mark.parametrize(
    ("profile", "name", "keeps"),
    [
        (OPEN_RESPONSES, "open-responses", True),
        (OPENAI, "openai", True),
        (OPENROUTER, "openrouter", False),
    ],
)
def test_profile_says_who_it_is(
    profile: OpenResponsesProfile, name: str, keeps: bool
) -> None:
    """A dialect is called what its profile is, and keeps what that keeps."""
    dialect = OpenResponsesDialect(profile=profile)

    assert (dialect.name, dialect.keeps_responses) == (name, keeps)


# --- what the server remembers ----------------------------------------------

CALL = FunctionCall(
    id="fc_1", call_id="c1", name="find", arguments='{"a": 1}', status="completed"
)
RESULT = FunctionCallOutput(id="fco_1", call_id="c1", output="found")
THOUGHT = Reasoning(
    id="rs_1",
    summary=(p.SummaryText(text="So."),),
    content=(p.ReasoningText(text="raw"),),
    encrypted_content="gAAA",
    status="completed",
)


@pytest.mark.spec("PA-7")
def test_history_that_is_sent_names_nothing_the_server_has() -> None:
    """Ids stay at home, reasoning goes sealed and never raw, and nothing is stored."""
    result = rendered(OPENAI, input=(user_message("Hi"), THOUGHT, CALL, RESULT))

    assert result.body["store"] is False
    assert result.body["include"] == ["reasoning.encrypted_content"]
    assert result.body["input"][1:] == [
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "So."}],
            "encrypted_content": "gAAA",
        },
        {
            "type": "function_call",
            "call_id": "c1",
            "name": "find",
            "arguments": '{"a": 1}',
            "status": "completed",
        },
        {"type": "function_call_output", "call_id": "c1", "output": "found"},
    ]
    assert is_valid(result.body)


@pytest.mark.spec("PA-7")
@pytest.mark.parametrize("profile", [OPENAI, OPEN_RESPONSES])
def test_history_that_is_kept_is_referred_to(profile: OpenResponsesProfile) -> None:
    """By id, the server is asked to store, and nothing has to be sealed."""
    result = rendered(
        profile, input=(RESULT,), previous_response_id="resp_1", store=True
    )

    assert result.body["previous_response_id"] == "resp_1"
    assert result.body["store"] is True
    assert "include" not in result.body
    assert is_valid(result.body)


def test_first_request_of_a_kept_history_is_stored() -> None:
    """A caller who asks to store gets it, with references into what is stored."""
    result = rendered(OPENAI, input=(ItemReference(id="msg_1"),), store=True)

    assert result.body["store"] is True
    assert result.body["input"] == [{"type": "item_reference", "id": "msg_1"}]
    assert result.unsent == ()


def test_a_server_that_keeps_nothing_is_asked_to_keep_nothing() -> None:
    """OpenRouter gets no store, and no request that leans on its memory."""
    result = rendered(OPENROUTER, store=True, model="anthropic/claude")

    assert "store" not in result.body
    assert result.unsent == (Unsent("store", "openrouter does not keep responses"),)
    assert result.body["include"] == ["reasoning.encrypted_content"]
    with pytest.raises(BadRequest) as caught:
        rendered(OPENROUTER, previous_response_id="resp_1")
    assert caught.value.path == "previous_response_id"


@pytest.mark.parametrize(
    ("profile", "model", "asks"),
    [
        (OPENAI, "gpt-5", True),
        (OPENAI, "o4-mini", True),
        (OPENAI, "gpt-4.1", False),
        (OPENAI, "gpt-5-chat-latest", False),
        (OPENROUTER, "openai/gpt-4o", False),
        (OPEN_RESPONSES, "gpt-5", False),
    ],
)
def test_only_models_that_reason_are_asked_to_seal(
    profile: OpenResponsesProfile, model: str, asks: bool
) -> None:
    """A model that does not reason would refuse to be asked."""
    assert ("include" in rendered(profile, model=model).body) is asks
    told = rendered(profile, model=model, reasoning=ReasoningConfig(effort="low"))
    assert ("include" in told.body) is profile.seals_reasoning


# --- items ------------------------------------------------------------------


@pytest.mark.parametrize("profile", [OPENAI, OPENROUTER, OPEN_RESPONSES])
def test_reasoning_of_another_is_left_out(profile: OpenResponsesProfile) -> None:
    """What another dialect sealed is sent to nobody else, not even its summary."""
    foreign = msgspec.structs.replace(THOUGHT, encrypted_content=seal("gemini", {}))

    result = rendered(profile, input=(foreign, user_message("Hi")))

    assert left_out(result) == ["input[0]"]
    assert len(result.body["input"]) == 1


def test_reasoning_without_a_seal_goes_back_where_that_means_something() -> None:
    """A summary is input by the standard; OpenAI would look for what it has kept."""
    summed_up = Reasoning(id="rs_1", summary=THOUGHT.summary)
    bare = Reasoning(id="rs_2", content=THOUGHT.content)

    assert sent_items(summed_up) == [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "So."}]}
    ]
    assert left_out(rendered(OPENAI, input=(summed_up,))) == ["input[0]"]
    assert left_out(rendered(input=(bare,))) == ["input[0]"]


def test_text_has_the_name_that_its_place_asks_for() -> None:
    """What a user said and what a model said are both just text elsewhere."""
    said = (p.InputText(text="a"), p.Text(text="b"), p.Refusal(refusal="no"))
    asked = (p.OutputText(text="a"), p.InputImage(image_url="http://i.test"))

    items = sent_items(
        Message(role="assistant", content=said, id="m", phase="commentary"),
        Message(role="user", content=asked),
        Message(role="developer", content=(p.Text(text="c"),)),
        FunctionCallOutput(call_id="c", output=(p.OutputText(text="d"),)),
    )

    kinds = [
        [part["type"] for part in item.get("content", item.get("output"))]
        for item in items
    ]
    assert kinds == [
        ["output_text", "output_text", "refusal"],
        ["input_text", "input_image"],
        ["input_text"],
        ["input_text"],
    ]
    assert items[0]["phase"] == "commentary"


@pytest.mark.parametrize(
    ("item", "path"),
    [
        (
            Message(role="user", content=(p.InputVideo(video_url="v"),)),
            "input[0].content[0]",
        ),
        (
            Message(role="system", content=(p.InputImage(image_url="i"),)),
            "input[0].content[0]",
        ),
        (
            Message(role="user", content=(p.Refusal(refusal="no"),)),
            "input[0].content[0]",
        ),
        (
            FunctionCallOutput(
                call_id="c",
                output=(p.UnknownPart(type_name="odd", extra=Extra()),),
            ),
            "input[0].output[0]",
        ),
        (
            Message(
                role="assistant",
                content=(
                    p.OutputText(
                        text="a",
                        annotations=(
                            p.UnknownAnnotation(type_name="odd", extra=Extra()),
                        ),
                    ),
                ),
            ),
            "input[0].content[0].annotations",
        ),
        (ItemReference(id="msg_1"), "input[0]"),
        (UnknownItem(type_name="web_search_call", extra=Extra(id="ws")), "input[0]"),
    ],
)
def test_what_has_no_place_is_told(item: Item, path: str) -> None:
    """What the standard's input has no form for is left out and never silently."""
    result = rendered(input=(item, user_message("Hi")))

    assert left_out(result) == [path]
    assert is_valid(result.body)


def test_hosted_things_go_back_to_who_has_them() -> None:
    """OpenAI takes its own items, tools and formats, which the standard has not."""
    hosted = UnknownItem(type_name="web_search_call", extra=Extra(id="ws_1"))
    tool = t.UnknownTool(type_name="web_search", extra=Extra())
    fields: dict[str, Any] = {
        "input": (hosted,),
        "tools": (tool,),
        "tool_choice": t.UnknownChoice(type_name="web_search", extra=Extra()),
        "text": TextConfig(format=JsonObjectFormat()),
        "reasoning": ReasoningConfig(effort="minimal"),
    }

    taken = rendered(OPENAI, **fields)

    assert taken.unsent == ()
    assert taken.body["input"] == [{"type": "web_search_call", "id": "ws_1"}]
    assert taken.body["tools"] == [{"type": "web_search"}]
    assert taken.body["text"] == {"format": {"type": "json_object"}}
    assert taken.body["reasoning"] == {"effort": "minimal"}
    del fields["reasoning"]
    refused = rendered(**fields)
    assert left_out(refused) == ["input[0]", "tools[0]", "tool_choice", "text.format"]


def test_extensions_of_the_standard_are_sent() -> None:
    """A type with an implementor's name and a colon is within the standard."""
    item = UnknownItem(type_name="acme:note", extra=Extra(id="n", status="completed"))
    tool = t.UnknownTool(type_name="acme:search", extra=Extra())

    result = rendered(input=(item,), tools=(tool,))

    assert result.unsent == ()
    assert result.body["tools"] == [{"type": "acme:search"}]


def test_tools_are_lax_where_silence_means_strict() -> None:
    """Arguments that may be left out stay so; who says strict gets it."""
    tools = (t.FunctionTool(name="a"), t.FunctionTool(name="b", strict=True))

    openai = rendered(OPENAI, tools=tools).body["tools"]

    assert [tool["strict"] for tool in openai] == [False, True]
    assert "strict" not in rendered(tools=tools).body["tools"][0]


def test_allowed_tools_of_an_unknown_type_are_told() -> None:
    """The rest of the choice stands."""
    choice = t.AllowedTools(
        tools=(
            t.FunctionChoice(name="a"),
            t.UnknownChoice(type_name="odd", extra=Extra()),
        ),
        mode="required",
    )

    result = rendered(tool_choice=choice)

    assert left_out(result) == ["tool_choice.tools"]
    assert result.body["tool_choice"] == {
        "type": "allowed_tools",
        "tools": [{"type": "function", "name": "a"}],
        "mode": "required",
    }


def test_ids_and_names_of_others_are_made_to_fit() -> None:
    """A call and its output get the same new id; a name nobody could have is told."""
    long = "x" * 80
    call = FunctionCall(call_id=long, name="no such.name", arguments="", status="odd")
    output = FunctionCallOutput(call_id=long, output="", status="odd")

    result = rendered(input=(call, output))

    sent_call, sent_output = result.body["input"]
    assert sent_call["call_id"] == sent_output["call_id"]
    assert sent_call["name"] == "no_such_name"
    assert left_out(result) == ["input[0].name"]
    assert is_valid(result.body)


# --- what is never sent -----------------------------------------------------

BIG = "x" * (10 * MIB + 1)

REFUSED: dict[str, dict[str, Any]] = {
    "input": {"input": BIG},
    "input[0].content": {"input": (Message(role="user", content=BIG),)},
    "input[0].content[0].text": {"input": (user_message(BIG),)},
    "input[1].output": {
        "input": (user_message("Hi"), FunctionCallOutput(call_id="c", output=BIG))
    },
    "input[0].content[0].refusal": {
        "input": (Message(role="assistant", content=(p.Refusal(refusal=BIG),)),)
    },
    "input[0].content[0].annotations[0]": {
        "input": (
            Message(
                role="assistant",
                content=(
                    p.OutputText(
                        text="a",
                        annotations=(
                            p.UrlCitation(
                                url="u", title="t", start_index=-1, end_index=0
                            ),
                        ),
                    ),
                ),
            ),
        )
    },
    "input[0].content[0].image_url": {
        "input": (
            Message(
                role="user", content=(p.InputImage(image_url="x" * (20 * MIB + 1)),)
            ),
        )
    },
    "input[0].content[0].file_data": {
        "input": (
            Message(
                role="user", content=(p.InputFile(file_data="x" * (32 * MIB + 1)),)
            ),
        )
    },
    "input[0].content[0].detail": {
        "input": (
            Message(role="user", content=(p.InputImage(image_url="i", detail="hi"),)),
        )
    },
    "input[0].summary[0].text": {
        "input": (Reasoning(summary=(p.SummaryText(text=BIG),)),)
    },
    "input[0].encrypted_content": {"input": (Compaction(encrypted_content=BIG),)},
    "input[0].phase": {
        "input": (Message(role="assistant", content="a", phase="thinking"),)
    },
    "max_output_tokens": {"max_output_tokens": 15},
    "max_tool_calls": {"max_tool_calls": 0},
    "top_logprobs": {"top_logprobs": 21},
    "safety_identifier": {"safety_identifier": "x" * 65},
    "prompt_cache_key": {"prompt_cache_key": "x" * 65},
    "metadata": {"metadata": {str(n): "v" for n in range(17)}},
    "metadata.k": {"metadata": {"k": "v" * 513}},
    "metadata.n": {"metadata": {"n": 1}},
    "tools[0].name": {"tools": (t.FunctionTool(name="no such"),)},
    "tool_choice.tools": {"tool_choice": t.AllowedTools(tools=())},
    "service_tier": {"service_tier": "gold"},
    "truncation": {"truncation": "middle"},
    "reasoning.effort": {"reasoning": ReasoningConfig(effort="minimal")},
    "reasoning.summary": {"reasoning": ReasoningConfig(summary="long")},
    "text.verbosity": {"text": TextConfig(verbosity="chatty")},
    "include[0]": {"include": ("everything",)},
}


@pytest.mark.spec("PA-5")
@pytest.mark.parametrize("path", REFUSED)
def test_request_that_violates_the_standard_is_never_sent(path: str) -> None:
    """The caller is told the place, and no server ever sees it."""
    with pytest.raises(BadRequest) as caught:
        rendered(**REFUSED[path])

    assert caught.value.path == path


@pytest.mark.spec("PA-5")
def test_additional_parameters_are_held_to_the_same_bounds() -> None:
    """A key of the standard's counts wherever it was given; a given one wins."""
    with pytest.raises(BadRequest) as caught:
        rendered(extra=Extra(max_output_tokens=3))
    assert caught.value.path == "max_output_tokens"
    with pytest.raises(BadRequest) as caught:
        rendered(extra=Extra(temperature="hot"))
    assert caught.value.path == "temperature"

    body = rendered(top_p=0.5, extra=Extra(top_p=0.1, truncation="auto")).body

    assert (body["top_p"], body["truncation"]) == (0.5, "auto")


def _is_plain(value: JSONValue) -> bool:
    """Whether a body has nothing in it that only an extension allows."""
    if isinstance(value, dict):
        is_extension = ":" in str(value.get("type", ""))
        return not is_extension and all(map(_is_plain, value.values()))
    return not isinstance(value, list) or all(map(_is_plain, value))


@pytest.mark.spec("PA-5", "MAP-4")
@given(st.lists(strategies.items(), max_size=4), st.booleans())
def test_whatever_was_emitted_is_valid_input(items: list[Item], stores: bool) -> None:
    """Every item of a response goes back in a form that the standard takes."""
    sent = tuple(in_input_form(item) for item in items)

    try:
        body = rendered(input=sent, store=stores).body
    except BadRequest as problem:
        refused = problem.path
    else:
        refused = ""
    if refused:
        assert refused.endswith(".detail")  # A level that nobody has.
        return

    plain = [item for item in body["input"] if _is_plain(item)]
    assert is_valid(body | {"input": plain})


@given(st.lists(strategies.items(), max_size=3))
def test_rendering_twice_gives_the_same(items: list[Item]) -> None:
    """A prompt that was sent before is sent again to the letter, so caches hold."""
    request = CreateResponse(model="m", input=tuple(items))
    openai = OpenResponsesDialect(profile=OPENAI)

    assert openai.render(request, stream=True) == openai.render(request, stream=True)
