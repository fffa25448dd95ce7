"""Says the settings of a request in the words of Gemini: tools, choices, numbers."""

import re
from collections.abc import Callable, Mapping

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.requests import (
    CreateResponse,
    JsonSchemaFormat,
    ReasoningConfig,
    TextFormat,
    UnknownFormat,
)
from gambit_actors.openresponses.tools import (
    AllowedTools,
    FunctionChoice,
    FunctionTool,
)
from gambit_actors.providers.dialects.dialect import Unsent
from gambit_actors.providers.dialects.extras import without_ways_around
from gambit_actors.providers.dialects.gemini_schema import openapi_schema

_Fields = dict[str, JSONValue]
_TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
_VERSION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_MODES = {"none": "NONE", "auto": "AUTO", "required": "ANY"}
# What some call these settings, and where Gemini has them.
_OTHER_NAMES = {"seed": "seed", "stop": "stopSequences", "top_k": "topK"}
_SETTINGS = {
    "max_output_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
_LEVELS = {
    "none": "minimal",
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
}
_BUDGETS = {
    "none": 0,
    "minimal": 512,
    "low": 1024,
    "medium": 8192,
    "high": 24_576,
    "xhigh": 24_576,
}
_LEAST_OF_PRO = 128
# What Gemini has nothing for, and the values that ask for nothing.
_NO_WORDS: dict[str, tuple[JSONValue, ...]] = {
    "background": (False,),
    "max_tool_calls": (),
    "metadata": ({},),
    "parallel_tool_calls": (True,),
    "previous_response_id": (),
    "prompt_cache_key": (),
    "safety_identifier": (),
    "service_tier": ("auto", "default"),
    "store": (False,),
    "stream_options": (),
    "top_logprobs": (0,),
    "truncation": ("disabled",),
}


def version_of(model: str) -> tuple[int, int]:
    """Which Gemini a model is; a name that does not say is taken for the newest."""
    found = _VERSION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else (99, 0)


class Settings:
    """The settings of a request, as they are put together.

    Args:
        request: what is asked.
        json_schemas: whether the server takes JSON Schema as it is.

    Attributes:
        fields: the keys of the body.
        unsent: what found no place.
    """

    def __init__(self, request: CreateResponse, *, json_schemas: bool) -> None:
        self.unsent: list[Unsent] = []
        request = without_ways_around(request, self.unsent)
        self.fields: _Fields = {
            key: value
            for key, value in request.extra.items()
            if key not in _OTHER_NAMES
        }
        self._request = request
        self._json_schemas = json_schemas
        self._version = version_of(request.model or "")
        self._put_tools()
        self._put_generation()
        for key, harmless in _NO_WORDS.items():
            value = getattr(request, key)
            if value is not None and value not in harmless:
                self._leave_out(key, "Gemini has no such setting")
        for place, name in enumerate(request.include or ()):
            # Signatures come always.
            if name != "reasoning.encrypted_content":
                self._leave_out(f"include[{place}]", "Gemini has nothing to include")

    def _put_tools(self) -> None:
        declared = []
        for place, tool in enumerate(self._request.tools or ()):
            path = f"tools[{place}]"
            if not isinstance(tool, FunctionTool):
                self._leave_out(path, f"Gemini takes no tool of type {tool.type}")
            elif not _TOOL_NAME.fullmatch(tool.name):
                self._leave_out(path, "Gemini takes no tool of such a name")
            else:
                declared.append(self._tool(tool, path))
        if declared:
            given = self.fields.get("tools")
            others = given if isinstance(given, list) else []
            self.fields["tools"] = [*others, {"functionDeclarations": declared}]
        choice = self._choice({tool["name"] for tool in declared})
        if choice is not None:
            self._merge("toolConfig", {"functionCallingConfig": choice})

    def _tool(self, tool: FunctionTool, path: str) -> _Fields:
        said: _Fields = {"name": tool.name}
        if tool.description is not None:
            said["description"] = tool.description
        if tool.strict:
            reason = "Gemini does not hold a single tool to its schema"
            self._leave_out(f"{path}.strict", reason)
        if tool.parameters is not None:
            if self._json_schemas:
                said["parametersJsonSchema"] = tool.parameters
            else:
                said["parameters"] = openapi_schema(
                    tool.parameters, f"{path}.parameters", self._leave_out
                )
        return said

    def _choice(self, declared: set[str]) -> _Fields | None:
        choice = self._request.tool_choice
        if not declared:
            if choice not in (None, "none", "auto"):
                self._leave_out("tool_choice", "there is no tool to choose")
            return None
        match choice:
            case None:
                return None
            case str():
                return {"mode": _MODES[choice]}
            case FunctionChoice(name=name):
                return {"mode": "ANY", "allowedFunctionNames": [name]}
            case AllowedTools():
                return self._allowed(choice)
            case _:
                reason = f"Gemini knows no choice of {choice.type}"
                self._leave_out("tool_choice", reason)
                return None

    def _allowed(self, choice: AllowedTools) -> _Fields:
        names = []
        for place, tool in enumerate(choice.tools):
            if isinstance(tool, FunctionChoice):
                names.append(tool.name)
            else:
                reason = f"Gemini knows no choice of {tool.type}"
                self._leave_out(f"tool_choice.tools[{place}]", reason)
        if choice.mode == "none" or not names:
            return {"mode": "NONE"}
        # With names, VALIDATED is what AUTO is without.
        mode = "ANY" if choice.mode == "required" else "VALIDATED"
        return {"mode": mode, "allowedFunctionNames": names}

    def _put_generation(self) -> None:
        request = self._request
        config: _Fields = {}
        for other, key in _OTHER_NAMES.items():
            if (value := request.extra.get(other)) is not None:
                is_one = other == "stop" and isinstance(value, str)
                config[key] = [value] if is_one else value
        for name, key in _SETTINGS.items():
            if (value := getattr(request, name)) is not None:
                config[key] = value
        config |= self._text()
        if request.reasoning is not None:
            thinking = self._thinking(request.reasoning)
            if thinking:
                config["thinkingConfig"] = thinking
        if config:
            self._merge("generationConfig", config)

    def _text(self) -> _Fields:
        text = self._request.text
        if text is not None and text.verbosity is not None:
            self._leave_out("text.verbosity", "Gemini has no such setting")
        shape = None if text is None else text.format
        if shape is None or isinstance(shape, TextFormat):
            return {}
        if self._version < (3, 0) and "tools" in self.fields:
            reason = "this model writes no JSON where it has tools; ask for it in words"
            self._leave_out("text.format", reason)
            return {}
        if isinstance(shape, UnknownFormat):
            self._leave_out("text.format", f"Gemini knows no format {shape.type}")
            return {}
        found: _Fields = {"responseMimeType": "application/json"}
        if isinstance(shape, JsonSchemaFormat):
            found |= self._schema(shape)
        return found

    def _schema(self, shape: JsonSchemaFormat) -> _Fields:
        if shape.description is not None:
            self._leave_out("text.format.description", "Gemini has no place for it")
        if shape.schema is None:
            return {}
        if self._json_schemas:
            return {"responseJsonSchema": shape.schema}
        path = "text.format.schema"
        return {"responseSchema": openapi_schema(shape.schema, path, self._leave_out)}

    def _thinking(self, reasoning: ReasoningConfig) -> _Fields:
        if self._version < (2, 5):
            self._leave_out("reasoning", "this model does not think")
            return {}
        found: _Fields = {}
        if reasoning.summary is not None:
            found["includeThoughts"] = True
            if reasoning.summary != "auto":
                reason = "Gemini has one kind of summary"
                self._leave_out("reasoning.summary", reason)
        if reasoning.effort is not None:
            found |= self._effort(reasoning.effort)
        return found

    def _effort(self, effort: str) -> _Fields:
        path = "reasoning.effort"
        if effort not in _LEVELS:
            self._leave_out(path, f"Gemini knows no effort {effort}")
            return {}
        if effort == "xhigh":
            self._leave_out(path, "Gemini's highest effort is high")
        is_new = self._version >= (3, 0)
        always_thinks = is_new or "pro" in (self._request.model or "")
        if effort == "none" and always_thinks:
            self._leave_out(path, "this model always thinks a little")
        if is_new:
            return {"thinkingLevel": _LEVELS[effort]}
        least = _LEAST_OF_PRO if always_thinks else 0
        return {"thinkingBudget": max(_BUDGETS[effort], least)}

    def _merge(self, key: str, fields: Mapping[str, JSONValue]) -> None:
        given = self.fields.get(key)
        self.fields[key] = (given if isinstance(given, dict) else {}) | dict(fields)

    @property
    def _leave_out(self) -> Callable[[str, str], None]:
        return lambda path, reason: self.unsent.append(Unsent(path, reason))
