"""A deck as a model sees it: what it is told, what it may call, how it is asked.

A `Program` depends on the deck and on what the deck may do, not on any run, so it is
made once and shared by all of them.
"""

import hashlib
import re
from typing import Literal, TypeAlias

import msgspec

from gambit_actors.deck.model import Action, Deck, ModelParams, OnDoubt, Tool
from gambit_actors.deck.permissions import Permissions
from gambit_actors.errors import RequestError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import Message, system_message
from gambit_actors.openresponses.requests import (
    CreateResponse,
    JsonSchemaFormat,
    TextConfig,
)
from gambit_actors.openresponses.tools import FunctionTool
from gambit_actors.run.builtins import BuiltinTool, builtin_tools
from gambit_actors.run.model_params import request_of_params
from gambit_actors.run.synthetic import (
    END,
    END_TOOL,
    RESPOND,
    moved,
    respond_tool,
)
from gambit_actors.schema.forms import Unfolder
from gambit_actors.schema.keywords import Schema
from gambit_actors.schema.schemas import LoadedSchema
from gambit_actors.schema.validation import Validator

_ANY_OBJECT: Schema = {"type": "object", "additionalProperties": True}
_DIGITS = 6  # for each part of how a model is asked
_NOT_A_NAME = re.compile(r"[^a-z0-9_]+")
_LONGEST_NAME = 64


class RuntimeTool(msgspec.Struct, frozen=True, kw_only=True):
    """An external tool that the program around a run adds to every deck of it.

    Attributes:
        on_doubt: what is done when nobody knows whether a call has happened.
    """

    name: str
    description: str | None = None
    parameters: dict[str, JSONValue] | None = None
    on_doubt: OnDoubt = "ask"


Offer: TypeAlias = Action | Tool | RuntimeTool | BuiltinTool | Literal["respond", "end"]
"""What a name that the model may call stands for."""


class Program(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What never changes between the runs of a deck.

    Attributes:
        name: the deck's path as it may be shown: relative to where its tree starts.
        root: the path of the deck that its tree starts with.
        runtime_tools: what the program around the run adds.
        told_permissions: its permissions as a trace has them; None for none.
        opening: the prompt as an item; None if it is empty.
        offers: what the model may call, by name.
        template: the request without its input and model.
        tool_names: what is offered, in order.
        asked: how a model is asked, but for the conversation: a digest of each of
            `ASKED_PARTS`, one behind the other.
        answers_in_text: whether the answer is a string, and not JSON.
        wrapped: those of its offers whose input is no object; a model gives it under
            a name of its own.
        marks_secrets: whether one of its schemas marks a value as secret.
        is_declared: whether anybody said what the deck may do: itself, a reference, a
            deck above it or the run. Then its code is kept to its permissions.
    """

    deck: Deck
    name: str
    permissions: Permissions
    opening: Message | None
    offers: dict[str, Offer]
    template: CreateResponse
    tool_names: tuple[str, ...]
    answers_in_text: bool
    input_validators: dict[str, Validator]
    root: str
    asked: str = ""
    runtime_tools: tuple[RuntimeTool, ...] = ()
    told_permissions: JSONValue = None
    wrapped: frozenset[str] = frozenset()
    marks_secrets: bool = False
    is_declared: bool = False


def program_from_deck(
    deck: Deck,
    *,
    name: str,
    permissions: Permissions,
    root: str | None = None,
    runtime_tools: tuple[RuntimeTool, ...] = (),
    is_declared: bool = False,
) -> Program:
    """Work out what a model is told and offered.

    A deck's own names win over those that the runtime adds.
    """
    offers: dict[str, Offer] = {}
    tools: list[FunctionTool] = []
    for builtin in builtin_tools(permissions):
        offers[builtin.name] = builtin
        tools.append(builtin.tool)
    if deck.allow_end:
        offers[END] = "end"
        tools.append(END_TOOL)
    response = deck.response_schema.schema if deck.response_schema else None
    if deck.respond:
        offers[RESPOND] = "respond"
        tools.append(respond_tool(response))
    callables: list[Action | Tool | RuntimeTool] = [*deck.actions, *deck.tools]
    reserved = [t.name for t in runtime_tools if t.name.startswith("gambit_")]
    if reserved:
        msg = f"{reserved[0]} cannot be added: names with gambit_ are the runtime's own"
        raise RequestError(msg)
    for offer in (*callables, *runtime_tools):
        if offer.name not in offers:
            offers[offer.name] = offer
            tools.append(_function_tool(offer))
    is_text = response is None or _is_string(response)
    shape = None if is_text or deck.respond else _text_config(deck, response or {})
    template = _template(deck.model_params, tuple(tools), shape)
    return Program(
        deck=deck,
        name=name,
        permissions=permissions,
        opening=system_message(deck.prompt) if deck.prompt else None,
        offers=offers,
        template=template,
        asked=_asked(deck, template, response),
        tool_names=tuple(tool.name for tool in tools),
        answers_in_text=is_text,
        input_validators={
            tool.name: tool.input_schema.validator
            for tool in deck.tools
            if tool.input_schema is not None
        },
        root=deck.path if root is None else root,
        runtime_tools=runtime_tools,
        told_permissions=(
            None if permissions == Permissions() else msgspec.to_builtins(permissions)
        ),
        wrapped=frozenset(
            offer.name for offer in callables if is_wrapped(_input_of(offer))
        ),
        marks_secrets=_marks_secrets(deck),
        is_declared=is_declared,
    )


ASKED_PARTS = ("models", "parameters", "tools", "answer schema")
"""What there is to how a model is asked."""


def _asked(deck: Deck, template: CreateResponse, response: Schema | None) -> str:
    # Without the name that a schema has in a request: it comes from where the deck is.
    settings = msgspec.structs.replace(template, tools=None, text=None)
    parts = (deck.model_params.models, settings, template.tools, response)
    return "".join(
        hashlib.sha256(msgspec.json.encode(part, order="sorted")).hexdigest()[:_DIGITS]
        for part in parts
    )


def asked_otherwise(one: str, other: str) -> tuple[str, ...]:
    """In which of its parts a model is asked in another way."""
    return tuple(
        name
        for index, name in enumerate(ASKED_PARTS)
        if one[index * _DIGITS :][:_DIGITS] != other[index * _DIGITS :][:_DIGITS]
    )


def _marks_secrets(deck: Deck) -> bool:
    """Whether it is worth looking; said for too many rather than for too few."""
    schemas: list[object] = [deck.context_schema, deck.response_schema]
    schemas += [tool.input_schema for tool in deck.tools]
    for action in deck.actions:
        schemas += [action.context_schema, action.response_schema]
    loaded = [s.schema for s in schemas if isinstance(s, LoadedSchema)]
    text = msgspec.json.encode(loaded)
    return any(mark in text for mark in (b'"x-secret"', b'"writeOnly"', b'"password"'))


def _input_of(offer: Action | Tool | RuntimeTool) -> Schema | None:
    """The schema of what a call is given; None if the deck has none."""
    if isinstance(offer, Action):
        return offer.context_schema.schema
    if isinstance(offer, Tool) and offer.input_schema is not None:
        return offer.input_schema.schema
    return None


def _function_tool(offer: Action | Tool | RuntimeTool) -> FunctionTool:
    if isinstance(offer, RuntimeTool):
        parameters = _ANY_OBJECT if offer.parameters is None else offer.parameters
    else:
        parameters = _as_parameters(_input_of(offer))
    return FunctionTool(
        name=offer.name, description=offer.description or None, parameters=parameters
    )


def _as_parameters(schema: Schema | None) -> Schema:
    """What a model is shown: parameters are always an object."""
    if schema is None:
        return _ANY_OBJECT
    if Unfolder(schema).form(schema).types == ("object",):
        return schema
    if not is_wrapped(schema):
        return (schema or _ANY_OBJECT) | {"type": "object"}
    # A model can only give objects. What is not one goes under a name of its own.
    return {
        "type": "object",
        "properties": {WRAPPED: moved(schema, f"/properties/{WRAPPED}")},
        "required": [WRAPPED],
        "additionalProperties": False,
    }


WRAPPED = "input"
"""Where a model puts arguments that are not an object."""


def is_wrapped(schema: Schema | None) -> bool:
    """Whether a schema takes no objects, which are all that a model can give."""
    types = Unfolder(schema).form(schema).types if schema else ()
    return bool(types) and "object" not in types


def _is_string(schema: Schema) -> bool:
    return Unfolder(schema).form(schema).types == ("string",)


def _text_config(deck: Deck, schema: Schema) -> TextConfig:
    stem = deck.label or deck.path.removesuffix("PROMPT.md").rstrip("/")
    stem = stem.rpartition("/")[2]
    name = _NOT_A_NAME.sub("_", stem.lower()).strip("_")[:_LONGEST_NAME]
    # Not strict: that would forbid optional fields, which schemas may well have.
    shape = JsonSchemaFormat(name=name or "answer", schema=schema, strict=False)
    return TextConfig(format=shape)


def _template(
    params: ModelParams, tools: tuple[FunctionTool, ...], text: TextConfig | None
) -> CreateResponse:
    return msgspec.structs.replace(
        request_of_params(params),
        tools=tools or None,
        text=text,
        stream=True,
        store=False,
    )
