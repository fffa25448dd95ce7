"""Responses: what came of a request, all 31 keys of it."""

import math
from typing import Literal, TypeAlias

from gambit_actors.openresponses.base import (
    JSONValue,
    Open,
    Tagged,
    written,
    written_from,
)
from gambit_actors.openresponses.items import Item, Message
from gambit_actors.openresponses.requests import (
    CreateResponse,
    JsonObjectFormat,
    JsonSchemaFormat,
    ReasoningConfig,
    TextConfig,
    TextFormat,
    UnknownFormat,
)
from gambit_actors.openresponses.tools import (
    AllowedTools,
    EchoedTool,
    FunctionTool,
    ToolChoice,
    UnknownTool,
)

ResponseStatus: TypeAlias = Literal[
    "queued", "in_progress", "completed", "failed", "incomplete"
]


class InputTokensDetails(Open, frozen=True, kw_only=True):
    """What the input tokens were."""

    cached_tokens: int = written(0)


class OutputTokensDetails(Open, frozen=True, kw_only=True):
    """What the output tokens were."""

    reasoning_tokens: int = written(0)


class Usage(Open, frozen=True, kw_only=True):
    """Tokens a response cost. Input includes what came from a cache."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: InputTokensDetails = written(InputTokensDetails())
    output_tokens_details: OutputTokensDetails = written(OutputTokensDetails())


class ResponseError(Open, frozen=True, kw_only=True):
    """Why a response failed."""

    code: str
    message: str

    @classmethod
    def upgrade(cls, fields: dict[str, JSONValue]) -> dict[str, JSONValue]:
        """Servers without error codes send null or nothing; the schema wants one."""
        if fields.get("code") is not None:
            return fields
        return fields | {"code": "unknown"}


class IncompleteDetails(Open, frozen=True, kw_only=True):
    """Why a response stopped short."""

    reason: str


class EchoedJsonSchema(Tagged, tag="json_schema", frozen=True, kw_only=True):
    """A JSON schema format as a response repeats it.

    The standard lets ``schema`` be null and nothing else here. A server that repeats
    the schema itself is read all the same.
    """

    name: str
    description: str | None = written(None)
    schema: JSONValue = written(None)
    strict: bool = written(False)  # noqa: FBT003  (the wire's default, not a switch)


class EchoedText(Open, frozen=True, kw_only=True):
    """The text settings a response was made under."""

    format: TextFormat | JsonObjectFormat | EchoedJsonSchema | UnknownFormat = written(
        TextFormat()
    )
    verbosity: str | None = None


class EchoedReasoning(Open, frozen=True, kw_only=True):
    """The reasoning settings a response was made under."""

    effort: str | None = written(None)
    summary: str | None = written(None)


def _no_metadata() -> dict[str, JSONValue]:
    # Not the bare dict: an empty product of that, msgspec does take for a default.
    return {}


class Response(Open, frozen=True, kw_only=True):
    """One answer: its items, how it went, what it cost, what was asked for.

    Reading fills a key that the server left out with the protocol's own default;
    writing always writes all 31.
    """

    id: str
    status: str
    object: Literal["response"] = written("response")
    created_at: int = written(0)
    completed_at: int | None = written(None)
    incomplete_details: IncompleteDetails | None = written(None)
    error: ResponseError | None = written(None)
    model: str = written("")
    output: tuple[Item, ...] = written(())
    usage: Usage | None = written(None)
    previous_response_id: str | None = written(None)
    # OpenAI repeats list-valued instructions as items; the schema says string.
    instructions: JSONValue = written(None)
    tools: tuple[EchoedTool | UnknownTool, ...] = written(())
    tool_choice: ToolChoice = written("auto")
    parallel_tool_calls: bool = written(True)  # noqa: FBT003
    max_tool_calls: int | None = written(None)
    text: EchoedText = written(EchoedText())
    reasoning: EchoedReasoning | None = written(None)
    temperature: float = written(1.0)
    top_p: float = written(1.0)
    presence_penalty: float = written(0.0)
    frequency_penalty: float = written(0.0)
    top_logprobs: int = written(0)
    max_output_tokens: int | None = written(None)
    truncation: str = written("disabled")
    service_tier: str = written("default")
    store: bool = written(True)  # noqa: FBT003
    background: bool = written(False)  # noqa: FBT003
    metadata: JSONValue = written_from(_no_metadata)
    safety_identifier: str | None = written(None)
    prompt_cache_key: str | None = written(None)

    @classmethod
    def upgrade(cls, fields: dict[str, JSONValue]) -> dict[str, JSONValue]:
        """Some servers stamp with fractions of a second; the schema has none."""
        stamps = {
            key: int(value)
            for key in ("created_at", "completed_at")
            if isinstance(value := fields.get(key), float) and math.isfinite(value)
        }
        return fields | stamps if stamps else fields

    @property
    def output_text(self) -> str:
        """All text of the model's messages, joined without a separator."""
        return "".join(
            item.text
            for item in self.output
            if isinstance(item, Message) and item.role == "assistant"
        )


class CompactedResponse(Open, frozen=True, kw_only=True):
    """The answer of ``POST /v1/responses/compact``: a new, shorter input."""

    id: str
    usage: Usage
    object: Literal["response.compaction"] = written("response.compaction")
    created_at: int = written(0)
    output: tuple[Item, ...] = written(())


def response_for(
    request: CreateResponse, *, id: str, created_at: int, model: str | None = None
) -> Response:
    """Make the response that a server starts with: nothing said yet, settings resolved.

    What the request left open gets the protocol's default, because a response has no
    null for it. ``model`` overrides the request's, for a server that resolves names.
    """
    settings = {
        name: value
        for name in _REPEATED
        if (value := getattr(request, name)) is not None
    }
    return Response(
        id=id,
        status="in_progress",
        created_at=created_at,
        model=model if model is not None else request.model or "",
        tools=tuple(_echo_tool(tool) for tool in request.tools or ()),
        tool_choice=_echo_choice(request.tool_choice),
        text=_echo_text(request.text),
        reasoning=_echo_reasoning(request.reasoning),
        **settings,
    )


# The keys a response repeats as they were asked for.
_REPEATED = (
    "previous_response_id",
    "instructions",
    "parallel_tool_calls",
    "max_tool_calls",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "max_output_tokens",
    "truncation",
    "service_tier",
    "store",
    "background",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
)


def _echo_tool(tool: FunctionTool | UnknownTool) -> EchoedTool | UnknownTool:
    if isinstance(tool, UnknownTool):
        return tool
    return EchoedTool(
        name=tool.name,
        description=tool.description,
        parameters=tool.parameters,
        strict=tool.strict,
        extra=tool.extra,
    )


def _echo_choice(choice: ToolChoice | None) -> ToolChoice:
    if choice is None:
        return "auto"
    if isinstance(choice, AllowedTools) and choice.mode is None:
        return AllowedTools(tools=choice.tools, mode="auto", extra=choice.extra)
    return choice


def _echo_text(text: TextConfig | None) -> EchoedText:
    if text is None:
        return EchoedText()
    shape = text.format
    if isinstance(shape, JsonSchemaFormat):
        return EchoedText(
            format=EchoedJsonSchema(
                name=shape.name,
                description=shape.description,
                strict=bool(shape.strict),
                extra=shape.extra,
            ),
            verbosity=text.verbosity,
            extra=text.extra,
        )
    return EchoedText(
        format=shape or TextFormat(), verbosity=text.verbosity, extra=text.extra
    )


def _echo_reasoning(reasoning: ReasoningConfig | None) -> EchoedReasoning | None:
    if reasoning is None:
        return None
    return EchoedReasoning(
        effort=reasoning.effort, summary=reasoning.summary, extra=reasoning.extra
    )
