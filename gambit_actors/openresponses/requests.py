"""Requests: what is asked of a model, in the form of ``POST /v1/responses``."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from gambit_actors.openresponses.base import (
    UNKNOWN_TAG,
    JSONValue,
    Open,
    Tagged,
    Unknown,
)
from gambit_actors.openresponses.items import Item
from gambit_actors.openresponses.tools import Tool, ToolChoice

Identifier: TypeAlias = Annotated[str, Meta(max_length=64)]


class TextFormat(Tagged, tag="text", frozen=True, kw_only=True):
    """Free text."""


class JsonObjectFormat(Tagged, tag="json_object", frozen=True, kw_only=True):
    """Some JSON object; an older form than a schema."""


class JsonSchemaFormat(Tagged, tag="json_schema", frozen=True, kw_only=True):
    """JSON that fits a schema."""

    name: str
    schema: dict[str, JSONValue] | None = None
    description: str | None = None
    strict: bool | None = None


class UnknownFormat(Unknown, tag=UNKNOWN_TAG, frozen=True, kw_only=True):
    """An output format we do not know."""


class TextConfig(Open, frozen=True, kw_only=True):
    """How the model's text should look."""

    format: TextFormat | JsonObjectFormat | JsonSchemaFormat | UnknownFormat | None = (
        None
    )
    verbosity: str | None = None


class ReasoningConfig(Open, frozen=True, kw_only=True):
    """How hard to think and how much of it to tell."""

    effort: str | None = None
    summary: str | None = None


class StreamOptions(Open, frozen=True, kw_only=True):
    """Details of streaming."""

    include_obfuscation: bool | None = None


class CreateResponse(Open, frozen=True, kw_only=True):
    """The body of a request; every key is optional, as in the schema."""

    model: str | None = None
    input: str | tuple[Item, ...] | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    tools: tuple[Tool, ...] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    max_tool_calls: Annotated[int, Meta(ge=1)] | None = None
    text: TextConfig | None = None
    reasoning: ReasoningConfig | None = None
    include: tuple[str, ...] | None = None
    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    max_output_tokens: Annotated[int, Meta(ge=16)] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    service_tier: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    background: bool | None = None
    store: bool | None = None
    metadata: (
        Annotated[dict[str, Annotated[str, Meta(max_length=512)]], Meta(max_length=16)]
        | None
    ) = None
    safety_identifier: Identifier | None = None
    prompt_cache_key: Identifier | None = None


class CompactRequest(Open, frozen=True, kw_only=True):
    """The body of ``POST /v1/responses/compact``."""

    model: str
    input: str | tuple[Item, ...] | None = None
    previous_response_id: str | None = None
    instructions: str | None = None
    prompt_cache_key: Identifier | None = None
