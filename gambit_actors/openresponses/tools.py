"""Tools a model is offered, and how free it is to use them."""

from typing import Literal, TypeAlias

from gambit_actors.openresponses.base import (
    UNKNOWN_TAG,
    JSONValue,
    Tagged,
    Unknown,
    written,
)


def flattened(fields: dict[str, JSONValue]) -> dict[str, JSONValue]:
    """Lift the keys of a nested ``function`` object, as Chat Completions has it."""
    nested = fields.get("function")
    if not isinstance(nested, dict):
        return fields
    outer = {key: value for key, value in fields.items() if key != "function"}
    return outer | nested


class FunctionTool(Tagged, tag="function", frozen=True, kw_only=True):
    """A function the model may call, in the form requests carry it."""

    name: str
    description: str | None = None
    parameters: dict[str, JSONValue] | None = None
    strict: bool | None = None

    @classmethod
    def upgrade(cls, fields: dict[str, JSONValue]) -> dict[str, JSONValue]:
        """Read the nested form too."""
        return flattened(fields)


class UnknownTool(Unknown, tag=UNKNOWN_TAG, frozen=True, kw_only=True):
    """A tool of a type we do not know, such as one the provider runs itself."""


Tool: TypeAlias = FunctionTool | UnknownTool


class EchoedTool(Tagged, tag="function", frozen=True, kw_only=True):
    """A function tool as a response repeats it: all five keys, null for absent."""

    name: str
    description: str | None = written(None)
    parameters: dict[str, JSONValue] | None = written(None)
    strict: bool | None = written(None)

    @classmethod
    def upgrade(cls, fields: dict[str, JSONValue]) -> dict[str, JSONValue]:
        """Read the nested form too."""
        return flattened(fields)


ToolChoiceMode: TypeAlias = Literal["none", "auto", "required"]


class FunctionChoice(Tagged, tag="function", frozen=True, kw_only=True):
    """One function, by name."""

    name: str

    @classmethod
    def upgrade(cls, fields: dict[str, JSONValue]) -> dict[str, JSONValue]:
        """Read the nested form too."""
        return flattened(fields)


class UnknownChoice(Unknown, tag=UNKNOWN_TAG, frozen=True, kw_only=True):
    """A choice of a tool that is not a function."""


class AllowedTools(Tagged, tag="allowed_tools", frozen=True, kw_only=True):
    """All tools are shown to the model, and only these may be called."""

    tools: tuple[FunctionChoice | UnknownChoice, ...]
    mode: ToolChoiceMode | None = None


ToolChoice: TypeAlias = ToolChoiceMode | FunctionChoice | AllowedTools | UnknownChoice
