"""Requests that dialects and providers are tried with."""

from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    ItemReference,
    Message,
    Reasoning,
    assistant_message,
    system_message,
    user_message,
)
from gambit_actors.openresponses.parts import (
    InputFile,
    InputImage,
    InputText,
    Refusal,
    SummaryText,
)
from gambit_actors.openresponses.requests import (
    CreateResponse,
    JsonSchemaFormat,
    ReasoningConfig,
    TextConfig,
)
from gambit_actors.openresponses.tools import (
    AllowedTools,
    FunctionChoice,
    FunctionTool,
)

_IMAGE = "data:image/png;base64,iVBORw0KGgo="
_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
_TOOL = FunctionTool(name="get_weather", description="The weather", parameters=_SCHEMA)


def plain_request(text: str = "Hello", model: str = "model-1") -> CreateResponse:
    """A question and nothing else."""
    return CreateResponse(model=model, input=(user_message(text),))


SAMPLES: dict[str, CreateResponse] = {
    "plain": plain_request(),
    "text alone": CreateResponse(model="model-1", input="Hello"),
    "everybody speaks": CreateResponse(
        model="model-1",
        instructions="Be short.",
        input=(
            system_message("You are a clerk."),
            user_message("Hi"),
            assistant_message("Hello"),
            Message(role="developer", content="Be polite."),
            Message(role="assistant", content=(Refusal(refusal="No."),)),
            user_message("Please"),
        ),
    ),
    "calls": CreateResponse(
        model="model-1",
        tools=(_TOOL, FunctionTool(name="no_parameters")),
        tool_choice="auto",
        parallel_tool_calls=False,
        input=(
            user_message("Weather?"),
            FunctionCall(call_id="c1", name="get_weather", arguments='{"city": "a"}'),
            FunctionCall(call_id="c2", name="get_weather", arguments="{broken"),
            FunctionCallOutput(call_id="c1", output='{"sun": true}'),
            FunctionCallOutput(
                call_id="c2",
                output=(InputText(text="a map"), InputImage(image_url=_IMAGE)),
            ),
        ),
    ),
    "choices": CreateResponse(
        model="model-1",
        tools=(_TOOL,),
        tool_choice=AllowedTools(
            tools=(FunctionChoice(name="get_weather"),), mode="required"
        ),
        input="Go",
    ),
    "media and strangers": CreateResponse(
        model="model-1",
        input=(
            Reasoning(
                summary=(SummaryText(text="hm"),), encrypted_content="from elsewhere"
            ),
            ItemReference(id="msg_1"),
            Message(
                role="user",
                content=(
                    InputImage(image_url=_IMAGE, detail="high"),
                    InputImage(image_url="https://example.com/a.png"),
                    InputFile(filename="a.pdf", file_data="JVBERi0="),
                    InputText(text="What is this?"),
                ),
            ),
        ),
    ),
    "settings": CreateResponse(
        model="model-1",
        input="Go",
        temperature=0.5,
        top_p=0.9,
        max_output_tokens=64,
        presence_penalty=0.1,
        frequency_penalty=0.1,
        top_logprobs=2,
        reasoning=ReasoningConfig(effort="low", summary="auto"),
        text=TextConfig(format=JsonSchemaFormat(name="city", schema=_SCHEMA)),
        metadata={"a": "b"},
        store=True,
        service_tier="flex",
        truncation="auto",
        prompt_cache_key="k",
        safety_identifier="s",
    ),
}
"""Requests that use what requests have, by what they are about."""
