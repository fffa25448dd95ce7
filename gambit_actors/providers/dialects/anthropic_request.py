"""Settings of a request in the words of Anthropic Messages.

Everything that is not a turn: tools and how free the model is to use them, how much it
thinks and says, the form of its answer. What the API has no word for is told.
"""

from typing import Literal, TypeAlias

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.requests import (
    CreateResponse,
    JsonSchemaFormat,
    TextFormat,
)
from gambit_actors.openresponses.tools import (
    AllowedTools,
    FunctionChoice,
    FunctionTool,
    UnknownTool,
)
from gambit_actors.providers.dialects.anthropic_schema import fitted
from gambit_actors.providers.dialects.dialect import Unsent

ThinkingMode: TypeAlias = Literal["budget", "adaptive"]

# For an effort: so many tokens to think in, but never more than half of all.
BUDGETS = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16_384,
    "xhigh": 23_552,
}
LEAST_BUDGET = 1024
_EFFORTS = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
_LEAST_TOP_P_WITH_THINKING = 0.95
_TIERS = {"auto": "auto", "default": "standard_only"}

# Keys that have no word; a value that asks for nothing special needs none.
_WORDLESS: dict[str, tuple[JSONValue, ...]] = {
    "max_tool_calls": (None,),
    "presence_penalty": (None, 0, 0.0),
    "frequency_penalty": (None, 0, 0.0),
    "top_logprobs": (None, 0),
    "truncation": (None, "disabled"),
    "stream_options": (None,),
    "background": (None, False),
    "store": (None, False),
    "metadata": (None, {}),
    "prompt_cache_key": (None,),
}


class SettingsWriter:
    """Writes the settings of one request.

    Attributes:
        body: what there is of them so far.
        unsent: what was left out.
    """

    def __init__(
        self, unsent: list[Unsent], *, mode: ThinkingMode, default_max_tokens: int
    ) -> None:
        self.body: dict[str, JSONValue] = {}
        self.unsent = unsent
        self._mode = mode
        self._default_max_tokens = default_max_tokens

    def write(self, request: CreateResponse, *, may_think: bool) -> None:
        """Write all settings; ``may_think`` says whether the turns allow it."""
        self._tools(request)
        self._limits(request, may_think=may_think)
        self._sampling(request)
        self._format(request)
        self._others(request)

    def _leave_out(self, path: str, reason: str) -> None:
        self.unsent.append(Unsent(path, reason))

    # Tools

    def _tools(self, request: CreateResponse) -> None:
        tools: list[JSONValue] = []
        for index, tool in enumerate(request.tools or ()):
            if isinstance(tool, FunctionTool):
                tools.append(_tool(tool))
            elif _is_server_tool(tool):
                tools.append({"type": tool.type_name} | tool.extra)
            else:
                self._leave_out(
                    f"tools[{index}]", f"tools of type {tool.type_name} are not known"
                )
        choice = self._tool_choice(request, tools)
        if tools:
            self.body["tools"] = tools
            if choice is not None:
                self.body["tool_choice"] = choice
        elif choice is not None and choice["type"] != "none":
            self._leave_out("tool_choice", "there are no tools to choose from")

    def _tool_choice(
        self, request: CreateResponse, tools: list[JSONValue]
    ) -> dict[str, JSONValue] | None:
        choice: dict[str, JSONValue] | None = None
        match request.tool_choice:
            case "auto" | "none" as mode:
                choice = {"type": mode}
            case "required":
                choice = {"type": "any"}
            case FunctionChoice(name=name):
                choice = {"type": "tool", "name": name}
            case AllowedTools() as allowed:
                choice = self._allowed(allowed, tools)
            case None:
                pass
            case other:
                self._leave_out("tool_choice", f"{other.type} is not known")
        if request.parallel_tool_calls is False and tools:
            choice = choice or {"type": "auto"}
            if choice["type"] != "none":
                choice["disable_parallel_tool_use"] = True
        return choice

    def _allowed(
        self, allowed: AllowedTools, tools: list[JSONValue]
    ) -> dict[str, JSONValue]:
        """All that may be called is all that is shown."""
        names = {t.name for t in allowed.tools if isinstance(t, FunctionChoice)}
        hidden = [tool for tool in tools if tool.get("name") not in names]
        for tool in hidden:
            tools.remove(tool)
        if hidden:
            self._leave_out("tool_choice.tools", "tools that may not be called: hidden")
        kinds = {"required": "any", "none": "none"}
        return {"type": kinds.get(allowed.mode or "auto", "auto")}

    # How much

    def _limits(self, request: CreateResponse, *, may_think: bool) -> None:
        most = request.max_output_tokens
        if most is None:
            given = request.extra.get("max_tokens")
            most = given if isinstance(given, int) and given > 0 else None
        effort = request.reasoning.effort if request.reasoning else None
        budget = None
        if effort is None and request.reasoning and request.reasoning.summary:
            self._leave_out("reasoning.summary", "nothing is thought without an effort")
        if effort is not None and self._can_think(effort, may_think=may_think):
            if self._mode == "adaptive":
                self._think_by_effort(effort, request)
            else:
                budget = self._budget(effort, most)
        if budget is not None:
            thinking = {"type": "enabled", "budget_tokens": budget}
            self.body["thinking"] = thinking
        self.body["max_tokens"] = most or self._default_max_tokens + (budget or 0)

    def _can_think(self, effort: str, *, may_think: bool) -> bool:
        if effort == "none":
            if self._mode == "adaptive":
                self.body["thinking"] = {"type": "disabled"}
            return False
        if effort not in _EFFORTS:
            self._leave_out("reasoning.effort", f"{effort!r} is not known")
            return False
        choice = self.body.get("tool_choice")
        if choice is not None and choice["type"] in ("any", "tool"):
            self._leave_out("reasoning", "a model that must call a tool cannot think")
            return False
        if self._mode == "budget" and not may_think:
            self._leave_out(
                "reasoning", "the calls being answered were made without thinking"
            )
            return False
        return True

    def _think_by_effort(self, effort: str, request: CreateResponse) -> None:
        thinking: dict[str, JSONValue] = {"type": "adaptive"}
        if request.reasoning is not None and request.reasoning.summary is not None:
            thinking["display"] = "summarized"
        self.body["thinking"] = thinking
        self.body["output_config"] = {"effort": _EFFORTS[effort]}

    def _budget(self, effort: str, most: int | None) -> int | None:
        budget = BUDGETS.get(effort, BUDGETS["xhigh"])
        if most is not None:
            # It counts towards the limit, and something is to be said as well.
            budget = min(budget, most // 2)
        if budget < LEAST_BUDGET:
            self._leave_out(
                "reasoning", f"to think takes max_output_tokens of {2 * LEAST_BUDGET}"
            )
            return None
        return budget

    def _sampling(self, request: CreateResponse) -> None:
        thinks = self.body.get("thinking", {}).get("type") in ("enabled", "adaptive")
        temperature, top_p = request.temperature, request.top_p
        if temperature is not None:
            if thinks and temperature != 1:
                self._leave_out("temperature", "it cannot be set where a model thinks")
                temperature = None
            elif temperature > 1:
                self._leave_out("temperature", f"{temperature:g} is too high: sent 1")
                temperature = 1.0
        if temperature is not None and not thinks:
            self.body["temperature"] = temperature
        if top_p is None:
            return
        if thinks and top_p < _LEAST_TOP_P_WITH_THINKING:
            self._leave_out("top_p", "it must be 0.95 or more where a model thinks")
        elif "temperature" in self.body:
            self._leave_out("top_p", "it cannot be set beside temperature")
        else:
            self.body["top_p"] = top_p

    # The answer's form, and the rest

    def _format(self, request: CreateResponse) -> None:
        text = request.text
        if text is None:
            return
        if text.verbosity is not None:
            self._leave_out("text.verbosity", "there is no such setting")
        shape = text.format
        if isinstance(shape, JsonSchemaFormat):
            self._schema(shape)
        elif shape is not None and not isinstance(shape, TextFormat):
            self._leave_out("text.format", f"there is no format {shape.type}")

    def _schema(self, shape: JsonSchemaFormat) -> None:
        fitting = fitted(shape.schema)
        if fitting is None:
            self._leave_out(
                "text.format.schema",
                "only objects with named fields, without recursion, can be asked for",
            )
            return
        if fitting.loosened:
            self._leave_out(
                "text.format.schema",
                f"told in words only: {', '.join(fitting.loosened)}",
            )
        if shape.description is not None and "description" not in fitting.schema:
            fitting.schema["description"] = shape.description
        config = self.body.setdefault("output_config", {})
        config["format"] = {"type": "json_schema", "schema": fitting.schema}

    def _others(self, request: CreateResponse) -> None:
        for key, harmless in _WORDLESS.items():
            if getattr(request, key) not in harmless:
                self._leave_out(key, "there is no such setting")
        for index, entry in enumerate(request.include or ()):
            if entry != "reasoning.encrypted_content":
                self._leave_out(f"include[{index}]", "it is not to be had")
        tier = request.service_tier
        if tier in _TIERS:
            self.body["service_tier"] = _TIERS[tier]
        elif tier is not None:
            self._leave_out("service_tier", f"there is no tier {tier}")
        if request.safety_identifier is not None:
            self.body["metadata"] = {"user_id": request.safety_identifier}


def _tool(tool: FunctionTool) -> dict[str, JSONValue]:
    made: dict[str, JSONValue] = {"name": tool.name}
    if tool.description:
        made["description"] = tool.description
    made["input_schema"] = {"type": "object"} | (tool.parameters or {})
    if tool.strict:
        made["strict"] = True
    return tool.extra | made


def _is_server_tool(tool: UnknownTool) -> bool:
    """Whether it is one of the API's own, whose types end with a date."""
    return tool.type_name[-8:].isdecimal() and tool.type_name[-9:-8] == "_"
