"""Requests as Anthropic Messages takes them."""

import base64
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import BadRequest
from gambit_actors.openresponses import (
    CreateResponse,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
    UnknownItem,
    assistant_message,
    system_message,
    user_message,
)
from gambit_actors.openresponses import parts as p
from gambit_actors.openresponses import tools as t
from gambit_actors.openresponses.base import Extra, JSONValue
from gambit_actors.openresponses.followup import in_input_form
from gambit_actors.openresponses.items import ItemReference
from gambit_actors.openresponses.requests import (
    JsonObjectFormat,
    JsonSchemaFormat,
    ReasoningConfig,
    StreamOptions,
    TextConfig,
)
from gambit_actors.providers.dialects.anthropic import AnthropicDialect
from gambit_actors.providers.dialects.anthropic_schema import fitted
from gambit_actors.providers.dialects.anthropic_turns import OPENING
from gambit_actors.providers.dialects.dialect import Rendered
from gambit_actors.providers.dialects.sealing import seal
from tests.openresponses import strategies
from tests.providers.dialects.golden import golden_bytes, golden_names, play

DIALECT = AnthropicDialect()
ADAPTIVE = AnthropicDialect(thinking="adaptive")
TOOL = t.FunctionTool(name="find", parameters={"properties": {}})
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "Eq"}
REASONING = Reasoning(encrypted_content=seal("anthropic", THOUGHT))


def rendered(dialect: AnthropicDialect = DIALECT, **fields: JSONValue) -> Rendered:
    """Render a request that has these fields."""
    asked: dict[str, Any] = {"model": "m", "input": "Hi"} | fields
    return dialect.render(CreateResponse(**asked), stream=True)


def left_out(result: Rendered) -> list[str]:
    """The paths of what was left out."""
    return [unsent.path for unsent in result.unsent]


def call(call_id: str, arguments: str = "{}", name: str = "find") -> FunctionCall:
    """A call that is whole."""
    return FunctionCall(call_id=call_id, name=name, arguments=arguments)


def output(call_id: str, text: str = "found") -> FunctionCallOutput:
    """What it gave."""
    return FunctionCallOutput(call_id=call_id, output=text)


def shape(messages: Sequence[Any]) -> list[tuple[str, list[str]]]:
    """Who speaks, and in which blocks."""
    return [(m["role"], [block["type"] for block in m["content"]]) for m in messages]


def turns(*items: Item) -> list[tuple[str, list[str]]]:
    """The turns that items become; nothing may be left out."""
    result = rendered(input=items)
    assert result.unsent == ()
    return shape(result.body["messages"])


# --- the frame --------------------------------------------------------------


def test_a_plain_request() -> None:
    """A question becomes one turn of the user's, with a limit, as the API insists."""
    result = rendered(instructions="Be brief.", extra=Extra(top_k=5))

    assert result.path == "/messages"
    assert result.headers == {"anthropic-version": "2023-06-01"}
    assert result.unsent == ()
    assert result.body == {
        "model": "m",
        "stream": True,
        "max_tokens": 8192,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        "top_k": 5,
    }


def test_settings_of_the_dialect() -> None:
    """Version, limit and features are the dialect's; the key has its own header."""
    dialect = AnthropicDialect(
        version="2030-01-01", default_max_tokens=100, betas=("a", "b")
    )

    result = dialect.render(CreateResponse(model="m", input="Hi"), stream=False)

    assert result.headers == {
        "anthropic-version": "2030-01-01",
        "anthropic-beta": "a,b",
    }
    assert (result.body["max_tokens"], result.body["stream"]) == (100, False)
    assert dialect.auth_headers("sk") == {"x-api-key": "sk"}
    assert (dialect.name, dialect.keeps_responses) == ("anthropic", False)


def test_no_response_can_be_referred_to() -> None:
    """A request that leans on a response that nobody keeps is not sent."""
    with pytest.raises(BadRequest) as caught:
        rendered(previous_response_id="resp_1")
    assert caught.value.path == "previous_response_id"


# --- turns ------------------------------------------------------------------


def test_roles_take_turns() -> None:
    """What one role says in a row is one turn; system text stands in front."""
    items = (
        system_message("S1"),
        Message(role="developer", content="S2"),
        user_message("a"),
        user_message("b"),
        assistant_message("c"),
        assistant_message("d"),
        user_message("e"),
    )

    assert turns(*items) == [
        ("user", ["text", "text"]),
        ("assistant", ["text", "text"]),
        ("user", ["text"]),
    ]
    system = rendered(input=items, instructions="S0").body["system"]
    assert [block["text"] for block in system] == ["S0", "S1", "S2"]


@pytest.mark.spec("MAP-4")
def test_results_come_first_behind_their_calls() -> None:
    """However late they were, all results of a turn stand first in the next one."""
    items = (
        user_message("Hi"),
        REASONING,
        assistant_message("Both."),
        call("c1", '{"a": 1}'),
        call("c2", ""),
        output("c1"),
        user_message("And?"),
        output("c2", ""),
        assistant_message("So."),
        user_message("Thanks."),
    )

    result = rendered(input=items)

    messages = result.body["messages"]
    assert result.unsent == ()
    assert shape(messages) == [
        ("user", ["text"]),
        ("assistant", ["thinking", "text", "tool_use", "tool_use"]),
        ("user", ["tool_result", "tool_result", "text"]),
        ("assistant", ["text"]),
        ("user", ["text"]),
    ]
    assert messages[1]["content"] == [
        THOUGHT,
        {"type": "text", "text": "Both."},
        {"type": "tool_use", "id": "c1", "name": "find", "input": {"a": 1}},
        {"type": "tool_use", "id": "c2", "name": "find", "input": {}},
    ]
    assert messages[2]["content"][:2] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "found"},
        {"type": "tool_result", "tool_use_id": "c2"},
    ]


def test_calls_and_outputs_without_each_other_are_told() -> None:
    """The API refuses one without the other, so neither is sent."""
    result = rendered(input=(user_message("Hi"), call("c1"), output("c2"), call("c3")))

    assert left_out(result) == ["input[2]", "input[1]", "input[3]"]
    assert shape(result.body["messages"]) == [("user", ["text"])]


def test_an_id_that_comes_twice_is_two_ids() -> None:
    """Servers that count calls anew in each answer do not mix theirs up here."""
    items = [user_message("Hi"), call("call/0"), output("call/0", "first")]

    result = rendered(input=(*items, call("call/0"), output("call/0", "second")))

    _, use, given, again, given_again = (
        message["content"][0] for message in result.body["messages"]
    )
    assert use["id"] == given["tool_use_id"] != again["id"]
    assert again["id"] == given_again["tool_use_id"]
    assert (given["content"], given_again["content"]) == ("first", "second")
    assert "/" not in use["id"]


@pytest.mark.parametrize("arguments", ["{oops", "[1]", '"text"', "null"])
def test_arguments_that_are_no_object_are_wrapped(arguments: str) -> None:
    """What a model once got wrong is shown to it as it was."""
    result = rendered(input=(user_message("Hi"), call("c", arguments), output("c")))

    use = result.body["messages"][1]["content"][0]
    assert use["input"] == {"INVALID_JSON": arguments}


@pytest.mark.parametrize(
    "items",
    [(system_message("Greet."),), (assistant_message("Hello."), user_message("Hi"))],
)
def test_the_user_begins(items: tuple[Item, ...]) -> None:
    """Where nobody asked anything yet, a line stands for that, and it is told."""
    result = rendered(input=items)

    first = result.body["messages"][0]
    assert first == {"role": "user", "content": [{"type": "text", "text": OPENING}]}
    assert left_out(result) == ["input"]


def test_a_beginning_of_an_answer_has_no_space_at_its_end() -> None:
    """A last turn of the model's is gone on with, and must not end in space."""
    result = rendered(input=(user_message("Hi"), assistant_message("Well, \n")))

    assert result.body["messages"][-1]["content"] == [{"type": "text", "text": "Well,"}]


def test_empty_text_is_not_sent() -> None:
    """The API refuses text of nothing but space; it says nothing anyway."""
    items = (user_message("Hi"), assistant_message(" "), user_message(""))

    assert turns(*items) == [("user", ["text"])]


@pytest.mark.parametrize(
    ("item", "path"),
    [
        (Reasoning(encrypted_content="gAAA"), "input[1]"),
        (Reasoning(encrypted_content=seal("gemini", THOUGHT)), "input[1]"),
        (Reasoning(summary=(p.SummaryText(text="So."),)), "input[1]"),
        (REASONING, "input"),
        (ItemReference(id="m"), "input[1]"),
        (UnknownItem(type_name="odd", extra=Extra()), "input[1]"),
        (system_message("Later."), "input[1]"),
        (
            Message(role="user", content=(p.InputVideo(video_url="v"),)),
            "input[1].content[0]",
        ),
        (
            Message(role="assistant", content=(p.InputImage(image_url="i"),)),
            "input[1].content[0]",
        ),
        (
            Message(role="system", content=(p.InputImage(image_url="i"),)),
            "input[1].content[0]",
        ),
        (
            Message(role="user", content=(p.InputImage(image_url="i", detail="low"),)),
            "input[1].content[0].detail",
        ),
        (Message(role="assistant", content="a", phase="commentary"), "input[1].phase"),
    ],
)
def test_what_has_no_place_is_told(item: Item, path: str) -> None:
    """What the API has no form for is left out and never silently."""
    assert path in left_out(rendered(input=(user_message("Hi"), item)))


def test_names_that_no_tool_can_have_are_made_to_fit() -> None:
    """A call of a tool that was never there still has to be sent back."""
    items = (user_message("Hi"), call("c", name="no such"), output("c"))

    result = rendered(input=items)

    assert left_out(result) == ["input[1].name"]
    assert result.body["messages"][1]["content"][0]["name"] == "no_such"


# --- parts ------------------------------------------------------------------

PNG = base64.b64encode(b"\x89PNG").decode()
PDF = base64.b64encode(b"%PDF-1.7").decode()
TEXT = base64.b64encode(b"Hello").decode()


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (p.InputText(text="a"), {"type": "text", "text": "a"}),
        (
            p.InputImage(image_url="https://i.test/a.png"),
            {"type": "image", "source": {"type": "url", "url": "https://i.test/a.png"}},
        ),
        (
            p.InputImage(image_url=f"data:image/png;base64,{PNG}"),
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": PNG},
            },
        ),
        (
            p.InputFile(file_url="https://f.test/a.pdf", filename="a.pdf"),
            {
                "type": "document",
                "source": {"type": "url", "url": "https://f.test/a.pdf"},
                "title": "a.pdf",
            },
        ),
        (
            p.InputFile(file_data=PDF),
            {
                "type": "document",
                "source": {
                    "type": "base64",
                    "media_type": "application/pdf",
                    "data": PDF,
                },
            },
        ),
        (
            p.InputFile(file_data=f"data:text/plain;charset=utf-8;base64,{TEXT}"),
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "Hello"},
            },
        ),
        (
            p.InputFile(file_data=TEXT, filename="a.md"),
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "Hello"},
                "title": "a.md",
            },
        ),
    ],
)
def test_parts_become_blocks(part: p.Part, block: JSONValue) -> None:
    """Text, images and files are given by the user and by tools alike."""
    given = FunctionCallOutput(call_id="c", output=(part,))
    asked = Message(role="user", content=(part,))

    result = rendered(input=(asked, call("c"), given))

    assert result.unsent == ()
    assert result.body["messages"][0]["content"] == [block]
    assert result.body["messages"][2]["content"][0]["content"] == [block]


@pytest.mark.parametrize(
    "part",
    [
        p.InputImage(image_url="data:image/svg+xml;base64,AAAA"),
        p.InputImage(image_url="data:image/png,raw"),
        p.InputImage(),
        p.InputFile(filename="a.pdf"),
        p.InputFile(file_data="AAAA", filename="a.zip"),
        p.InputFile(file_data="not base64", filename="a.txt"),
        p.InputFile(file_data="data:application/zip;base64,AAAA"),
        p.UnknownPart(type_name="odd", extra=Extra()),
    ],
)
def test_parts_that_are_not_taken_are_told(part: p.Part) -> None:
    """A file or image in a form that the API refuses is left out, with the reason."""
    asked = Message(role="user", content=(p.InputText(text="See"), part))

    assert left_out(rendered(input=(asked,))) == ["input[0].content[1]"]


def test_refusals_go_back_as_what_was_said() -> None:
    """Earlier refusals are text; citations stay at home, and that is told."""
    note = p.UrlCitation(url="u", title="t", start_index=0, end_index=1)
    said = (p.Refusal(refusal="No."), p.OutputText(text="a", annotations=(note,)))

    result = rendered(
        input=(user_message("Hi"), Message(role="assistant", content=said))
    )

    assert [b["text"] for b in result.body["messages"][1]["content"]] == ["No.", "a"]
    assert left_out(result) == ["input[1].content[1].annotations"]


# --- tools ------------------------------------------------------------------


def test_tools_are_offered() -> None:
    """A function is offered by its schema, which is of an object; strict if asked."""
    strict = t.FunctionTool(name="b", description="B.", strict=True)
    hosted = t.UnknownTool(
        type_name="web_search_20250305", extra=Extra(name="web_search")
    )
    foreign = t.UnknownTool(type_name="web_search", extra=Extra())

    result = rendered(tools=(TOOL, strict, hosted, foreign))

    assert result.body["tools"] == [
        {"name": "find", "input_schema": {"type": "object", "properties": {}}},
        {
            "name": "b",
            "description": "B.",
            "input_schema": {"type": "object"},
            "strict": True,
        },
        {"type": "web_search_20250305", "name": "web_search"},
    ]
    assert left_out(result) == ["tools[3]"]


@pytest.mark.parametrize(
    ("choice", "parallel", "sent"),
    [
        (None, None, None),
        ("auto", None, {"type": "auto"}),
        ("none", False, {"type": "none"}),
        ("required", None, {"type": "any"}),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("required", False, {"type": "any", "disable_parallel_tool_use": True}),
        (t.FunctionChoice(name="find"), None, {"type": "tool", "name": "find"}),
    ],
)
def test_tool_choice(
    choice: t.ToolChoice | None, parallel: bool | None, sent: JSONValue
) -> None:
    """How free the model is, and whether it may call several at once."""
    result = rendered(tools=(TOOL,), tool_choice=choice, parallel_tool_calls=parallel)

    assert result.unsent == ()
    assert result.body.get("tool_choice") == sent


def test_tools_that_may_not_be_called_are_not_shown() -> None:
    """The API knows no tools for show; that they are hidden is told."""
    choice = t.AllowedTools(tools=(t.FunctionChoice(name="find"),), mode="required")

    result = rendered(tools=(TOOL, t.FunctionTool(name="other")), tool_choice=choice)

    assert [tool["name"] for tool in result.body["tools"]] == ["find"]
    assert result.body["tool_choice"] == {"type": "any"}
    assert left_out(result) == ["tool_choice.tools"]


@pytest.mark.parametrize(
    "choice", ["required", t.UnknownChoice(type_name="odd", extra=Extra())]
)
def test_choices_that_cannot_be_are_told(choice: t.ToolChoice) -> None:
    """Nothing can be chosen from no tools, and no choice is of an unknown type."""
    result = rendered(tool_choice=choice)

    assert left_out(result) == ["tool_choice"]
    assert "tool_choice" not in result.body


# --- thinking ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("effort", "most", "budget", "max_tokens"),
    [
        ("low", None, 2048, 2048 + 8192),
        ("medium", None, 8192, 2 * 8192),
        ("high", None, 16_384, 16_384 + 8192),
        ("xhigh", None, 23_552, 23_552 + 8192),
        ("high", 4096, 2048, 4096),
        ("high", 100_000, 16_384, 100_000),
        ("none", None, None, 8192),
    ],
)
def test_effort_becomes_a_budget(
    effort: str, most: int | None, budget: int | None, max_tokens: int
) -> None:
    """It is less than the limit always, and half of one that was asked for at most."""
    result = rendered(reasoning=ReasoningConfig(effort=effort), max_output_tokens=most)

    assert result.unsent == ()
    thinking = {"type": "enabled", "budget_tokens": budget} if budget else None
    assert result.body.get("thinking") == thinking
    assert result.body["max_tokens"] == max_tokens


@pytest.mark.parametrize("effort", ["low", "medium", "high", "xhigh"])
def test_effort_is_said_as_it_is_to_adaptive_models(effort: str) -> None:
    """Newer models take the effort itself, and show what they think if asked."""
    reasoning = ReasoningConfig(effort=effort, summary="auto")

    result = rendered(
        ADAPTIVE, reasoning=reasoning, extra=Extra(output_config={"x": 1})
    )

    assert result.body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert result.body["output_config"] == {"effort": effort, "x": 1}
    assert result.body["max_tokens"] == 8192
    none = rendered(ADAPTIVE, reasoning=ReasoningConfig(effort="none"))
    assert none.body["thinking"] == {"type": "disabled"}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"max_output_tokens": 2047}, "reasoning"),
        ({"tools": (TOOL,), "tool_choice": "required"}, "reasoning"),
        ({"reasoning": ReasoningConfig(effort="wild")}, "reasoning.effort"),
        ({"reasoning": ReasoningConfig(summary="auto")}, "reasoning.summary"),
        ({"input": (user_message("Hi"), call("c"), output("c"))}, "reasoning"),
        ({"input": (user_message("Hi"), assistant_message("W"))}, "reasoning"),
    ],
)
def test_where_a_model_cannot_think_it_is_told(
    fields: dict[str, Any], path: str
) -> None:
    """What the API would refuse to think about is answered without thinking."""
    result = rendered(**({"reasoning": ReasoningConfig(effort="low")} | fields))

    assert left_out(result) == [path]
    assert "thinking" not in result.body


def test_a_round_of_calls_that_began_with_thinking_is_thought_on() -> None:
    """Only the first turn of a round has to have been thought about."""
    items = (
        user_message("Hi"),
        REASONING,
        call("c1"),
        output("c1"),
        call("c2"),
        output("c2"),
    )

    result = rendered(input=items, reasoning=ReasoningConfig(effort="low"))

    assert result.unsent == ()
    assert result.body["thinking"]["type"] == "enabled"


@pytest.mark.parametrize(
    ("fields", "sent", "told"),
    [
        ({"temperature": 0.5}, {"temperature": 0.5}, []),
        ({"temperature": 1.5}, {"temperature": 1.0}, ["temperature"]),
        ({"top_p": 0.5}, {"top_p": 0.5}, []),
        ({"temperature": 0.5, "top_p": 0.5}, {"temperature": 0.5}, ["top_p"]),
        (
            {"temperature": 0.5, "reasoning": ReasoningConfig(effort="low")},
            {},
            ["temperature"],
        ),
        ({"temperature": 1.0, "reasoning": ReasoningConfig(effort="low")}, {}, []),
        (
            {"top_p": 0.5, "reasoning": ReasoningConfig(effort="low")},
            {},
            ["top_p"],
        ),
        (
            {"top_p": 0.96, "reasoning": ReasoningConfig(effort="low")},
            {"top_p": 0.96},
            [],
        ),
    ],
)
def test_sampling(
    fields: dict[str, Any], sent: dict[str, float], told: list[str]
) -> None:
    """One of temperature and top_p, and hardly any where the model thinks."""
    result = rendered(**fields)

    found = {k: result.body[k] for k in ("temperature", "top_p") if k in result.body}
    assert found == sent
    assert left_out(result) == told


# --- the answer's form, and the rest ----------------------------------------


def test_structured_output() -> None:
    """A schema is sent closed, as the API insists; bounds become words."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "description": "How many."},
            "who": {"$ref": "#/$defs/who"},
            "any": {"oneOf": [{"type": "null"}, {"type": "string", "format": "date"}]},
            "all": {"type": "array", "items": {"enum": ["a"]}, "minItems": 1},
        },
        "required": ["n"],
        "additionalProperties": True,
        "$defs": {"who": {"type": ["object", "null"], "properties": {}}},
    }
    shape_ = JsonSchemaFormat(name="x", schema=schema, description="An answer.")

    result = rendered(text=TextConfig(format=shape_))

    assert result.body["output_config"] == {
        "format": {
            "type": "json_schema",
            "schema": {
                "type": "object",
                "properties": {
                    "n": {"type": "integer", "description": "How many. {minimum: 1}"},
                    "who": {"$ref": "#/$defs/who"},
                    "any": {
                        "anyOf": [
                            {"type": "null"},
                            {"type": "string", "format": "date"},
                        ]
                    },
                    "all": {"type": "array", "items": {"enum": ["a"]}, "minItems": 1},
                },
                "required": ["n"],
                "additionalProperties": False,
                "$defs": {
                    "who": {
                        "type": ["object", "null"],
                        "properties": {},
                        "additionalProperties": False,
                    }
                },
                "description": "An answer.",
            },
        }
    }
    assert left_out(result) == ["text.format.schema"]
    assert "minimum" in result.unsent[0].reason


@pytest.mark.parametrize(
    "schema",
    [
        None,
        True,
        {},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        {"anyOf": {"type": "string"}},
        {
            "$ref": "#/$defs/a",
            "$defs": {
                "a": {"type": "array", "items": {"$ref": "#/$defs/b"}},
                "b": {"type": "array", "items": {"$ref": "#/$defs/a"}},
            },
        },
    ],
)
def test_schemas_that_cannot_be_asked_for_are_told(schema: JSONValue) -> None:
    """Maps, anything at all and recursion are beyond the API."""
    shape_ = JsonSchemaFormat(name="x", schema=schema)

    result = rendered(text=TextConfig(format=shape_))

    assert left_out(result) == ["text.format.schema"]
    assert "output_config" not in result.body


@given(strategies.json_values())
def test_any_schema_is_survived(schema: JSONValue) -> None:
    """A schema may be anything; it fits, or it does not."""
    for document in (schema, {"type": "object", "properties": schema}):
        found = fitted(document)
        assert found is None or isinstance(found.schema, dict)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"text": TextConfig(format=JsonObjectFormat())}, "text.format"),
        ({"text": TextConfig(verbosity="low")}, "text.verbosity"),
        ({"max_tool_calls": 3}, "max_tool_calls"),
        ({"presence_penalty": 0.5}, "presence_penalty"),
        ({"frequency_penalty": 0.5}, "frequency_penalty"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"truncation": "auto"}, "truncation"),
        ({"stream_options": StreamOptions()}, "stream_options"),
        ({"background": True}, "background"),
        ({"store": True}, "store"),
        ({"metadata": {"k": "v"}}, "metadata"),
        ({"prompt_cache_key": "k"}, "prompt_cache_key"),
        ({"service_tier": "flex"}, "service_tier"),
        ({"include": ("message.output_text.logprobs",)}, "include[0]"),
    ],
)
def test_settings_without_a_word_are_told(fields: dict[str, Any], path: str) -> None:
    """What the API cannot do is told, each under its own name."""
    assert left_out(rendered(**fields)) == [path]


def test_settings_that_ask_for_nothing_are_not_told() -> None:
    """What the API does anyway needs no word."""
    result = rendered(
        store=False,
        truncation="disabled",
        background=False,
        presence_penalty=0.0,
        include=("reasoning.encrypted_content",),
        text=TextConfig(),
        service_tier="default",
        safety_identifier="u1",
        max_output_tokens=50,
        extra=Extra(stop="END"),
    )

    assert result.unsent == ()
    assert result.body["service_tier"] == "standard_only"
    assert result.body["metadata"] == {"user_id": "u1"}
    assert result.body["stop_sequences"] == ["END"]
    assert result.body["max_tokens"] == 50
    assert "stop" not in result.body
    assert rendered(extra=Extra(max_tokens=9)).body["max_tokens"] == 9


# --- there and back ---------------------------------------------------------


def is_acceptable(messages: Sequence[Any]) -> bool:
    """Whether turns keep the rules that the API is known to insist on."""
    roles = [message["role"] for message in messages]
    assert roles == (["user", "assistant"] * len(roles))[: len(roles)]
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        blocks = message["content"]
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        uses = [b["id"] for b in blocks if b["type"] == "tool_use"]
        first = [block["type"] for block in blocks[: len(results)]]
        assert first == ["tool_result"] * len(results)
        assert results == waiting
        assert not seen & set(uses)
        assert blocks
        assert all(b["text"].strip() for b in blocks if b["type"] == "text")
        assert blocks[-1]["type"] not in ("thinking", "redacted_thinking")
        waiting, seen = uses, seen | set(uses)
    return not waiting


@given(st.lists(strategies.items() | st.builds(call, st.just("c"))))
def test_any_history_becomes_turns_that_are_taken(items: list[Item]) -> None:
    """Whatever items there are, in whatever order, the API's rules are kept."""
    answered = [output(i.call_id) for i in items if isinstance(i, FunctionCall)]
    sent = tuple(in_input_form(item) for item in [*items, *answered])

    body = rendered(input=sent, reasoning=ReasoningConfig(effort="low")).body

    assert is_acceptable(body["messages"])
    assert msgspec.json.encode(body)


@pytest.mark.spec("MAP-4", "MAP-5")
@pytest.mark.parametrize("name", golden_names("anthropic"))
def test_what_was_read_can_be_sent_back(name: str) -> None:
    """Every answer goes back as input, signed thoughts in front of what they led to."""
    response = play(DIALECT, [golden_bytes("anthropic", name)]).response
    if response is None:
        return
    calls = [i for i in response.output if isinstance(i, FunctionCall)]
    items = (
        user_message("Hi"),
        *(in_input_form(item) for item in response.output),
        *(output(call.call_id) for call in calls),
        user_message("Go on."),
    )

    messages = rendered(input=items).body["messages"]

    assert is_acceptable(messages)
    sent = [block for message in messages for block in message["content"]]
    assert sum(block["type"] == "tool_use" for block in sent) == len(calls)
    if name == "thinking":
        assert [block.get("signature") for block in sent[1:2]] == [
            "EqQBCgIYAhIM1gbcDa9GJwZA2b3h"
        ]
        assert sent[2]["data"] == "EmwKAhgBEgy3va3pzix/LafPsn4a"
