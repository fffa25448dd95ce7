"""Gemini: its streams, what is sent to it, and signatures that have to go back."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import BadResponse, RequestError
from gambit_actors.openresponses import (
    CreateResponse,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
    SSEFrame,
    assistant_message,
    follow_up,
    system_message,
    user_message,
)
from gambit_actors.openresponses.base import Extra, JSONValue
from gambit_actors.openresponses.events import (
    ResponseCompleted,
    ResponseIncomplete,
)
from gambit_actors.openresponses.parts import (
    InputFile,
    InputImage,
    InputText,
    InputVideo,
    Refusal,
    SummaryText,
)
from gambit_actors.openresponses.requests import (
    JsonObjectFormat,
    JsonSchemaFormat,
    ReasoningConfig,
    TextConfig,
    UnknownFormat,
)
from gambit_actors.openresponses.tools import (
    AllowedTools,
    FunctionChoice,
    FunctionTool,
    ToolChoice,
    UnknownChoice,
    UnknownTool,
)
from gambit_actors.providers.dialects.gemini import GeminiDialect
from gambit_actors.providers.dialects.gemini_schema import openapi_schema
from gambit_actors.testing.dialects import DialectCheck, checks
from tests.providers.dialects.golden import (
    STARTED,
    expected,
    golden_bytes,
    golden_names,
    outcome,
    play,
    streams_of,
)

GEMINI = GeminiDialect()
PNG = "data:image/png;base64,iVBORw0KGgo="
WORDS = (
    *("args", "blockReason", "candidates", "candidatesTokenCount", "content"),
    *("functionCall", "id", "index", "name", "parts", "promptFeedback"),
    *("promptTokenCount", "text", "thought", "thoughtSignature", "usageMetadata"),
)
LEAVES = st.sampled_from((None, True, 0, -1, 2.5, "", "x", "STOP"))
KEYS = st.sampled_from(WORDS)
ODD = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=6,
)
PARTS = st.lists(st.dictionaries(KEYS, ODD, max_size=3) | ODD, max_size=2)
FRAMES = ODD | PARTS.map(lambda parts: {"candidates": [{"content": {"parts": parts}}]})


def ask(*items: Item, model: str = "gemini-3-pro", **keys: JSONValue) -> CreateResponse:
    """A request with these items."""
    return CreateResponse(model=model, input=items or "Hi", **keys)


def sent(request: CreateResponse, dialect: GeminiDialect = GEMINI) -> JSONValue:
    """The body of a request that is said whole."""
    rendered = dialect.render(request, stream=True)
    assert rendered.unsent == ()
    return rendered.body


def unsent(request: CreateResponse, dialect: GeminiDialect = GEMINI) -> list[str]:
    """What of a request found no place."""
    rendered = dialect.render(request, stream=True)
    return [left.path for left in rendered.unsent]


def frame(fields: JSONValue) -> SSEFrame:
    """A frame of the stream."""
    return SSEFrame("message", json.dumps(fields).encode())


def said(*parts: JSONValue, reason: str = "STOP") -> bytes:
    """An answer in one piece."""
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": reason}
    return json.dumps({"candidates": [candidate]}).encode()


# Answers


@pytest.mark.spec("PA-10", "MAP-8")
@pytest.mark.parametrize("check", checks(), ids=lambda check: check.__name__)
def test_it_does_what_any_dialect_has_to(check: DialectCheck) -> None:
    """Each check of the suite for dialects passes."""
    check(GEMINI, streams_of("gemini"))


@given(st.data())
def test_no_cutting_changes_a_stream(data: st.DataObject) -> None:
    """Streams in random pieces come to what is expected."""
    name = data.draw(st.sampled_from(golden_names("gemini")))
    body = golden_bytes("gemini", name)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)))))
    pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]

    assert outcome(play(GEMINI, pieces)) == expected("gemini", name)


@pytest.mark.spec("PA-9")
@given(st.lists(FRAMES, max_size=4))
def test_no_json_completes_an_answer_without_a_reason(found: list[JSONValue]) -> None:
    """Whatever comes, nothing is raised, and without a reason nothing is completed."""
    reader = GEMINI.reader(STARTED)
    events = [
        event
        for fields in found
        for event in reader.feed(SSEFrame("message", json.dumps(fields).encode()))
    ]
    events += reader.close()

    assert not any(isinstance(event, ResponseCompleted) for event in events)


@pytest.mark.spec("PA-9")
@pytest.mark.parametrize(
    "reason",
    ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"],
)
def test_a_safety_stop_is_no_normal_end(reason: str) -> None:
    """An answer that was stopped by a filter is incomplete, also after a STOP."""
    response = GEMINI.read_whole(said({"text": "So"}, reason=reason), STARTED)
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "content_filter"
    reader = GEMINI.reader(STARTED)
    early = {"candidates": [{"finishReason": "STOP"}]}
    reader.feed(frame(early))
    reader.feed(SSEFrame("message", said({"text": "So"}, reason=reason)))
    assert not any(isinstance(event, ResponseCompleted) for event in reader.close())


@pytest.mark.parametrize("later", ["STOP", "MAX_TOKENS", "OTHER"])
def test_the_first_reason_that_is_no_good_end_stays(later: str) -> None:
    """What a filter has stopped is not ended well, or otherwise, by a later frame."""
    reader = GEMINI.reader(STARTED)
    reader.feed(SSEFrame("message", said({"text": "So"}, reason="SAFETY")))
    reader.feed(frame({"candidates": [{"finishReason": later}]}))

    ending = reader.close()[-1]

    assert isinstance(ending, ResponseIncomplete)
    assert ending.response.incomplete_details is not None
    assert ending.response.incomplete_details.reason == "content_filter"


@pytest.mark.parametrize("reason", ["LANGUAGE", "OTHER", "UNEXPECTED_TOOL_CALL", "NEW"])
def test_a_stop_that_is_a_fault_is_a_failure(reason: str) -> None:
    """A reason that is none to be content with, known or not, fails the response."""
    response = GEMINI.read_whole(said({"text": "So"}, reason=reason), STARTED)

    assert response.status == "failed"
    assert response.error is not None
    assert response.error.code == reason.lower()
    assert response.output_text == "So"


def test_calls_to_one_tool_never_collide() -> None:
    """Calls without ids, or with the same, get ids of their own, stable and unique."""
    call = {"functionCall": {"name": "f", "args": {}}}
    same = {"functionCall": {"name": "f", "args": {}, "id": "x"}}
    body = said(call, same, call, same)
    output = GEMINI.read_whole(body, STARTED).output
    ids = [item.call_id for item in output if isinstance(item, FunctionCall)]

    assert len(set(ids)) == 4
    assert ids[1] == "x"
    assert GEMINI.read_whole(body, STARTED).output == output


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"args": {"a": "é"}}, '{"a":"é"}'),
        ({}, "{}"),
        ({"args": None}, "{}"),
        ({"args": "{broken"}, "{broken"),
        ({"args": [1]}, "[1]"),
    ],
)
def test_arguments_are_passed_on_as_they_are(args: JSONValue, text: str) -> None:
    """Only arguments that are absent are no arguments; odd ones are not mended."""
    body = said({"functionCall": {"name": "f"} | args})
    (call,) = GEMINI.read_whole(body, STARTED).output

    assert isinstance(call, FunctionCall)
    assert (call.arguments, call.status) == (text, "completed")


@pytest.mark.parametrize(
    "call",
    [{"args": {}}, {"name": 7}, {"name": "f", "willContinue": True}],
)
def test_a_call_that_is_not_whole_is_not_completed(call: JSONValue) -> None:
    """A call without a name, or in pieces, never goes out as completed."""
    response = GEMINI.read_whole(said({"functionCall": call}), STARTED)

    assert response.status == "incomplete"
    (item,) = response.output
    assert isinstance(item, FunctionCall)
    assert item.status == "incomplete"


@pytest.mark.parametrize(
    ("counts", "spent", "made"),
    [
        ({"promptTokenCount": 5, "candidatesTokenCount": 2}, 5, 2),
        (
            {
                "promptTokenCount": 5,
                "toolUsePromptTokenCount": 3,
                "candidatesTokenCount": 2,
                "thoughtsTokenCount": 4,
            },
            8,
            6,
        ),
        ({"promptTokenCount": 5, "totalTokenCount": 5}, 5, 0),
    ],
)
def test_usage_has_thoughts_and_tools_in_it(
    counts: JSONValue, spent: int, made: int
) -> None:
    """Output is what was said and thought; input has the results of server tools."""
    body = json.loads(said({"text": "a"})) | {"usageMetadata": counts}
    usage = GEMINI.read_whole(json.dumps(body).encode(), STARTED).usage

    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (spent, made)


def test_an_answer_that_is_none_is_refused() -> None:
    """A whole answer has to say how it went; one that came as a list is read."""
    half = b'{"candidates": [{"content": {"parts": [{"text": "a"}]}}]}'
    with pytest.raises(BadResponse, match="how the answer went"):
        GEMINI.read_whole(half, STARTED)
    whole = GEMINI.read_whole(b"[" + half + b"," + said({"text": "b"}) + b"]", STARTED)
    assert whole.output_text == "ab"


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (b'{"error": {"status": "QUOTA", "message": "slow"}}', "QUOTA", "slow"),
        (b'[{"error": {"code": 400, "message": "bad"}}]', "400", "bad"),
        (b"<html>", "", ""),
        (b"<html><title>502 Bad Gateway</title></html>", "", "502 Bad Gateway"),
        (b'{"error": "no such model"}', "", "no such model"),
        (b"[]", "", ""),
    ],
)
def test_errors_are_read_in_the_forms_they_have(
    body: bytes, code: str, message: str
) -> None:
    """The status is the code; what is no error gives nothing."""
    complaint = GEMINI.read_error(body)

    assert (complaint.code, complaint.message) == (code, message)


# Signatures


@pytest.mark.spec("MAP-5")
@pytest.mark.parametrize(
    "parts",
    [
        [{"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "s"}],
        [
            {"text": "Hm.", "thought": True, "thoughtSignature": "t"},
            {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "s"},
            {"functionCall": {"name": "f", "args": {}}},
            {"functionCall": {"name": "g", "args": {}, "id": "x"}},
        ],
        [{"text": "One."}, {"text": "", "thoughtSignature": "s"}],
        [{"text": "One. "}, {"text": "Two.", "thoughtSignature": "s"}],
        [
            {"text": "One. ", "thoughtSignature": "s"},
            {"text": "Two. "},
            {"text": "Three.", "thoughtSignature": "t"},
            {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "u"},
        ],
    ],
)
def test_signatures_go_back_in_the_part_they_came_in(parts: list[JSONValue]) -> None:
    """Parts go back to the model as they were cut, each with its own signature."""
    response = GEMINI.read_whole(said(*parts), STARTED)
    outputs = [
        FunctionCallOutput(call_id=item.call_id, output='{"ok": true}')
        for item in response.output
        if isinstance(item, FunctionCall)
    ]
    body = sent(follow_up(ask(), response, [*outputs, user_message("Go on")]))

    assert [turn["role"] for turn in body["contents"]] == ["user", "model", "user"]
    assert body["contents"][1]["parts"] == parts


def test_a_signature_without_its_text_is_left_out() -> None:
    """A signature is not put on another text than its own."""
    body = said({"text": "One."}, {"text": "Two.", "thoughtSignature": "s"})
    output = GEMINI.read_whole(body, STARTED).output
    changed = (assistant_message("x"), *output[1:])

    assert unsent(ask(*changed)) == ["input[1]"]


def test_unsigned_thoughts_are_shown_and_stay_here() -> None:
    """Thoughts without a signature are a summary that nobody wants back."""
    body = said({"text": "Hm.", "thought": True}, {"text": "Yes."})
    response = GEMINI.read_whole(body, STARTED)
    thought = response.output[0]

    assert isinstance(thought, Reasoning)
    assert thought.summary == (SummaryText(text="Hm."),)
    contents = sent(follow_up(ask(), response, []))["contents"]
    assert contents[1] == {"role": "model", "parts": [{"text": "Yes."}]}


# Requests


@pytest.mark.parametrize(
    ("model", "stream", "path"),
    [
        ("gemini-3-pro", True, "/models/gemini-3-pro:streamGenerateContent?alt=sse"),
        ("gemini-3-pro", False, "/models/gemini-3-pro:generateContent"),
        ("tunedModels/mine", False, "/tunedModels/mine:generateContent"),
    ],
)
def test_the_model_is_in_the_path(model: str, path: str, *, stream: bool) -> None:
    """The path names the model and the method; the key is in a header."""
    assert GEMINI.render(ask(model=model), stream=stream).path == path
    assert GEMINI.auth_headers("k") == {"x-goog-api-key": "k"}
    assert not GEMINI.keeps_responses


@pytest.mark.parametrize("model", ["", "../x", "a b", "a?key=1", "a:b"])
def test_a_name_that_is_none_is_refused(model: str) -> None:
    """What could be more than a name does not get into a path."""
    with pytest.raises(RequestError):
        GEMINI.render(ask(model=model), stream=True)


def test_a_conversation_is_turns_of_two() -> None:
    """Messages in a row are one turn, and setting up stands before all of them."""
    request = ask(
        system_message("Be kind."),
        user_message("A"),
        user_message("B"),
        assistant_message("C"),
        Message(role="assistant", content=(Refusal(refusal="No."),)),
        instructions="Be short.",
    )
    assert sent(request) == {
        "systemInstruction": {"parts": [{"text": "Be short."}, {"text": "Be kind."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "A"}, {"text": "B"}]},
            {"role": "model", "parts": [{"text": "C"}, {"text": "No."}]},
        ],
    }


def test_one_who_only_sets_up_speaks_as_the_user() -> None:
    """Gemini does not begin by itself; with nothing to say, nothing is asked."""
    body = sent(CreateResponse(model="gemini-3-pro", instructions="Greet."))
    assert body == {"contents": [{"role": "user", "parts": [{"text": "Greet."}]}]}
    with pytest.raises(RequestError):
        GEMINI.render(CreateResponse(model="gemini-3-pro"), stream=True)


def test_outputs_stand_right_after_their_calls() -> None:
    """Outputs follow the turn with their calls, in the order of the calls."""
    request = ask(
        user_message("Go"),
        FunctionCall(call_id="a", name="f", arguments='{"n": 1}'),
        FunctionCall(call_id="gemini_call_r_1", name="g", arguments="{}"),
        user_message("Well?"),
        FunctionCallOutput(call_id="gemini_call_r_1", output="plain"),
        FunctionCallOutput(call_id="a", output='{"ok": true}'),
    )
    calls, answers = sent(request)["contents"][1:]

    assert calls["parts"] == [
        {"functionCall": {"id": "a", "name": "f", "args": {"n": 1}}},
        {"functionCall": {"name": "g", "args": {}}},
    ]
    assert answers["parts"] == [
        {"functionResponse": {"id": "a", "name": "f", "response": {"ok": True}}},
        {"functionResponse": {"name": "g", "response": {"output": "plain"}}},
        {"text": "Well?"},
    ]


def test_calls_that_are_numbered_anew_keep_their_own_outputs() -> None:
    """Each call has its own output and signature, also where an id is used twice."""
    turns: list[Item] = [user_message("Go")]
    for name, output in (("f", "first"), ("g", "second")):
        turns += [
            FunctionCall(call_id="call_0", name=name, arguments="{}"),
            FunctionCallOutput(call_id="call_0", output=output),
            user_message("On."),
        ]
    request = ask(*turns)

    contents = sent(request)["contents"]

    assert unsent(request) == []
    parts = [part for turn in contents for part in turn["parts"]]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    answers = [p["functionResponse"] for p in parts if "functionResponse" in p]
    assert [call["name"] for call in calls] == ["f", "g"]
    assert [one["response"] for one in answers] == [
        {"output": "first"},
        {"output": "second"},
    ]
    assert [call["id"] for call in calls] == [one["id"] for one in answers]
    assert len({call["id"] for call in calls}) == 2


def test_media_in_outputs_stand_where_the_model_takes_them() -> None:
    """New models take media inside an output, older ones beside it."""
    items = (
        FunctionCall(call_id="a", name="f", arguments="{}"),
        FunctionCallOutput(
            call_id="a", output=(InputText(text="x"), InputImage(image_url=PNG))
        ),
    )
    media = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    said_there = {"id": "a", "name": "f", "response": {"output": "x"}}
    new = sent(ask(*items))["contents"][1]["parts"]
    old = sent(ask(*items, model="gemini-2.5-pro"))["contents"][1]["parts"]

    assert new == [{"functionResponse": {**said_there, "parts": [media]}}]
    assert old == [{"functionResponse": said_there}, media]


@pytest.mark.parametrize(
    ("part", "expectation"),
    [
        (
            InputFile(filename="a.pdf", file_data="JVBERi0="),
            {"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0="}},
        ),
        (
            InputFile(file_url="https://x.org/a.pdf"),
            {
                "fileData": {
                    "fileUri": "https://x.org/a.pdf",
                    "mimeType": "application/pdf",
                }
            },
        ),
        (
            InputVideo(video_url="https://x.org/v"),
            {"fileData": {"fileUri": "https://x.org/v"}},
        ),
    ],
)
def test_media_are_sent(part: InputFile | InputVideo, expectation: JSONValue) -> None:
    """Files and videos go by URL or with their data."""
    body = sent(ask(Message(role="user", content=(part,))))
    assert body["contents"][0]["parts"] == [expectation]


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("none", {"mode": "NONE"}),
        ("auto", {"mode": "AUTO"}),
        ("required", {"mode": "ANY"}),
        (FunctionChoice(name="f"), {"mode": "ANY", "allowedFunctionNames": ["f"]}),
        (
            AllowedTools(tools=(FunctionChoice(name="f"),), mode="auto"),
            {"mode": "VALIDATED", "allowedFunctionNames": ["f"]},
        ),
        (
            AllowedTools(tools=(FunctionChoice(name="f"),), mode="required"),
            {"mode": "ANY", "allowedFunctionNames": ["f"]},
        ),
        (AllowedTools(tools=(), mode="auto"), {"mode": "NONE"}),
    ],
)
def test_choices_of_tools(choice: ToolChoice, config: JSONValue) -> None:
    """Each choice of tools has its mode."""
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    tool = FunctionTool(name="f", description="d", parameters=schema)
    body = sent(ask(tools=(tool,), tool_choice=choice))

    assert body["toolConfig"] == {"functionCallingConfig": config}
    declared = {"name": "f", "description": "d", "parametersJsonSchema": schema}
    assert body["tools"] == [{"functionDeclarations": [declared]}]


@pytest.mark.spec("DK-32")
def test_settings_have_their_places() -> None:
    """Numbers, formats and thinking are part of the generation's settings."""
    request = ask(
        max_output_tokens=64,
        temperature=0.5,
        top_p=0.9,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        reasoning=ReasoningConfig(effort="medium", summary="auto"),
        text=TextConfig(format=JsonSchemaFormat(name="n", schema={"type": "object"})),
        include=("reasoning.encrypted_content",),
        extra=Extra(
            stop="END", generationConfig={"topK": 3, "topP": 1}, safetySettings=[]
        ),
    )
    body = sent(request)
    assert body["safetySettings"] == []
    assert body["generationConfig"] == {
        "topK": 3,
        "stopSequences": ["END"],
        "maxOutputTokens": 64,
        "temperature": 0.5,
        "topP": 0.9,
        "presencePenalty": 0.1,
        "frequencyPenalty": 0.2,
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object"},
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "medium"},
    }


@pytest.mark.spec("DK-32")
@pytest.mark.parametrize(
    ("model", "effort", "config", "left_out"),
    [
        ("gemini-3-flash", "low", {"thinkingLevel": "low"}, False),
        ("gemini-3-flash", "none", {"thinkingLevel": "minimal"}, True),
        ("gemini-3-flash", "xhigh", {"thinkingLevel": "high"}, True),
        ("gemini-flash-latest", "high", {"thinkingLevel": "high"}, False),
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}, False),
        ("gemini-2.5-pro", "none", {"thinkingBudget": 128}, True),
        ("gemini-2.5-flash", "medium", {"thinkingBudget": 8192}, False),
        ("gemini-2.0-flash", "low", None, True),
        ("gemini-3-flash", "absurd", None, True),
    ],
)
def test_effort_is_a_level_or_a_budget(
    model: str, effort: str, config: JSONValue, *, left_out: bool
) -> None:
    """New models have levels, those of 2.5 a budget, older ones do not think."""
    request = ask(model=model, reasoning=ReasoningConfig(effort=effort))
    rendered = GEMINI.render(request, stream=True)
    settings = rendered.body.get("generationConfig", {})

    assert settings.get("thinkingConfig") == config
    assert bool(rendered.unsent) == left_out


ORDER = FunctionTool(name="f", parameters={"type": "object"})


@pytest.mark.parametrize(
    ("request_", "paths"),
    [
        (ask(background=True), ["background"]),
        (ask(max_tool_calls=2), ["max_tool_calls"]),
        (ask(metadata={"a": "b"}), ["metadata"]),
        (ask(parallel_tool_calls=False), ["parallel_tool_calls"]),
        (ask(previous_response_id="r"), ["previous_response_id"]),
        (ask(prompt_cache_key="k"), ["prompt_cache_key"]),
        (ask(safety_identifier="s"), ["safety_identifier"]),
        (ask(service_tier="flex"), ["service_tier"]),
        (ask(store=True), ["store"]),
        (ask(top_logprobs=3), ["top_logprobs"]),
        (ask(truncation="auto"), ["truncation"]),
        (ask(include=("x",)), ["include[0]"]),
        (ask(text=TextConfig(verbosity="low")), ["text.verbosity"]),
        (
            ask(
                text=TextConfig(
                    format=UnknownFormat(type_name="grammar", extra=Extra())
                )
            ),
            ["text.format"],
        ),
        (
            ask(
                model="gemini-2.5-pro",
                tools=(ORDER,),
                text=TextConfig(format=JsonObjectFormat()),
            ),
            ["text.format"],
        ),
        (ask(reasoning=ReasoningConfig(summary="concise")), ["reasoning.summary"]),
        (ask(tools=(FunctionTool(name="a b"),)), ["tools[0]"]),
        (
            ask(tools=(UnknownTool(type_name="web_search", extra=Extra()),)),
            ["tools[0]"],
        ),
        (ask(tools=(FunctionTool(name="f", strict=True),)), ["tools[0].strict"]),
        (ask(tool_choice="required"), ["tool_choice"]),
        (
            ask(
                tools=(ORDER,),
                tool_choice=UnknownChoice(type_name="mcp", extra=Extra()),
            ),
            ["tool_choice"],
        ),
        (ask(user_message("A"), system_message("B")), ["input[1]"]),
        (ask(user_message("A"), Reasoning(encrypted_content="gAAA")), ["input[1]"]),
        (
            ask(user_message("A"), FunctionCall(call_id="c", name="f", arguments="{}")),
            ["input[1]"],
        ),
        (
            ask(user_message("A"), FunctionCallOutput(call_id="c", output="x")),
            ["input[1]"],
        ),
        (
            ask(
                FunctionCall(call_id="c", name="f", arguments="{broken"),
                FunctionCallOutput(call_id="c", output="x"),
            ),
            ["input[0].arguments"],
        ),
        (
            ask(
                Message(
                    role="user",
                    content=(
                        InputText(text="x"),
                        InputImage(image_url=PNG, detail="high"),
                        InputFile(filename="a.xyz", file_data="AAAA"),
                    ),
                )
            ),
            ["input[0].content[1].detail", "input[0].content[2]"],
        ),
    ],
)
def test_what_has_no_place_is_told(request_: CreateResponse, paths: list[str]) -> None:
    """Nothing of a request is dropped in silence."""
    assert unsent(request_) == paths


def test_the_older_form_of_schemas_says_what_it_can() -> None:
    """Types, unions and limits are said in the older form; the rest is told."""
    told: list[str] = []
    schema = {
        "$schema": "x",
        "type": "object",
        "additionalProperties": False,
        "required": ["a"],
        "properties": {
            "a": {"type": ["string", "null"], "maxLength": 3},
            "b": {"type": "array", "items": {"const": "x"}},
            "c": {"oneOf": [{"type": "integer"}, {"$ref": "#/d"}]},
            "d": {"type": ["string", "number"]},
        },
    }
    found = openapi_schema(schema, "s", lambda path, _reason: told.append(path))

    assert told == ["s.additionalProperties", "s.properties.c.oneOf[1].$ref"]
    assert found == {
        "type": "OBJECT",
        "required": ["a"],
        "properties": {
            "a": {"type": "STRING", "nullable": True, "maxLength": 3},
            "b": {"type": "ARRAY", "items": {"enum": ["x"]}},
            "c": {"anyOf": [{"type": "INTEGER"}, {}]},
            "d": {"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}]},
        },
    }
    older = msgspec.structs.replace(GEMINI, json_schemas=False)
    shape = JsonSchemaFormat(name="n", schema={"type": "object"})
    body = sent(ask(tools=(ORDER,), text=TextConfig(format=shape)), older)
    declared = body["tools"][0]["functionDeclarations"]
    assert declared == [{"name": "f", "parameters": {"type": "OBJECT"}}]
    assert body["generationConfig"]["responseSchema"] == {"type": "OBJECT"}


@pytest.mark.parametrize(
    "frame",
    [
        {"error": {"message": "x" * 100_000, "status": "y" * 100_000}},
        {"candidates": [{"finishReason": "OTHER", "finishMessage": "x" * 100_000}]},
        {"candidates": [{"finishReason": "Z" * 100_000}]},
    ],
    ids=["error", "message", "reason"],
)
def test_words_of_the_server_are_cut(frame: dict[str, object]) -> None:
    """What a server says went wrong is a sentence, however much it says."""
    data = json.dumps(frame).encode()
    response = GEMINI.read_whole(data, STARTED)

    assert response.error is not None
    assert len(response.error.message) < 400
    assert len(response.error.code) < 100
    assert len(GEMINI.read_error(data).message) < 400
