"""Tools, and how free a model is to use them, in the words of Chat Completions.

A choice that a server has no words for is said with the tools it is offered, as far as
that goes: who may call only one of them is offered only that one.
"""

from collections.abc import Callable, Sequence

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.tools import (
    AllowedTools,
    FunctionChoice,
    FunctionTool,
    Tool,
    ToolChoice,
)
from gambit_actors.providers.dialects.chat_flavours import ChatFlavour

_JSONObject = dict[str, JSONValue]
_Tell = Callable[[str, str], None]


def tool_settings(
    request: CreateResponse, flavour: ChatFlavour, tell: _Tell
) -> _JSONObject:
    """The keys of a request that are about tools."""
    tools = _tools(request.tools or (), flavour, tell)
    choice = request.tool_choice
    if not tools:
        if choice not in (None, "none", "auto"):
            tell("tool_choice", "there are no tools to choose from")
        return {}
    chosen, only = _choice(choice, flavour, tell)
    if only is not None:
        tools = [tool for tool in tools if tool["function"]["name"] in only]
        if not tools:
            if only:
                tell("tool_choice", "none of the tools it names is there")
            return {}
    settings = {"tools": tools} | _parallel(request, flavour, tell)
    return settings | ({"tool_choice": chosen} if chosen is not None else {})


def _parallel(
    request: CreateResponse, flavour: ChatFlavour, tell: _Tell
) -> _JSONObject:
    parallel = request.parallel_tool_calls
    if parallel is not None and flavour.has_parallel_switch:
        return {"parallel_tool_calls": parallel}
    if parallel is False:
        tell("parallel_tool_calls", f"{flavour.name} cannot be told to make one call")
    return {}


def _tools(
    tools: Sequence[Tool], flavour: ChatFlavour, tell: _Tell
) -> list[_JSONObject]:
    found: list[_JSONObject] = []
    for place, tool in enumerate(tools):
        if not isinstance(tool, FunctionTool):
            reason = f"Chat Completions has no tools of type {tool.type}"
            tell(f"tools[{place}]", reason)
            continue
        function: _JSONObject = {"name": tool.name}
        if tool.description is not None:
            function["description"] = tool.description
        if tool.parameters is not None:
            function["parameters"] = tool.parameters
        if tool.strict is not None and flavour.has_strict_tools:
            function["strict"] = tool.strict
        elif tool.strict:
            tell(f"tools[{place}].strict", f"{flavour.name} does not keep to schemas")
        found.append(tool.extra | {"type": "function", "function": function})
    return found


def _choice(
    choice: ToolChoice | None, flavour: ChatFlavour, tell: _Tell
) -> tuple[JSONValue, set[str] | None]:
    """What to say of a choice, and the only tools to offer; None for all."""
    level = flavour.tool_choices
    match choice:
        case None:
            return None, None
        case str():
            return _mode(choice, flavour, tell)
        case FunctionChoice(name=name) if level in ("named", "allowed"):
            return {"type": "function", "function": {"name": name}}, None
        case FunctionChoice(name=name):
            return _mode("required", flavour, tell)[0], {name}
        case AllowedTools():
            return _allowed(choice, flavour, tell)
        case _:
            tell("tool_choice", f"Chat Completions has no choice of {choice.type}")
            return None, None


def _mode(
    mode: str, flavour: ChatFlavour, tell: _Tell
) -> tuple[JSONValue, set[str] | None]:
    if flavour.tool_choices != "none":
        return mode, None
    if mode == "required":
        tell("tool_choice", f"{flavour.name} cannot be told to make a call")
    # Who is to make no call is offered no tools.
    return None, set() if mode == "none" else None


def _allowed(
    choice: AllowedTools, flavour: ChatFlavour, tell: _Tell
) -> tuple[JSONValue, set[str] | None]:
    names = []
    for place, tool in enumerate(choice.tools):
        if isinstance(tool, FunctionChoice):
            names.append(tool.name)
        else:
            reason = f"Chat Completions has no tools of type {tool.type}"
            tell(f"tool_choice.tools[{place}]", reason)
    mode = choice.mode or "auto"
    if flavour.tool_choices != "allowed":
        chosen, only = _mode(mode, flavour, tell)
        return chosen, set(names) if only is None else only
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    allowed = {"mode": mode, "tools": tools}
    return {"type": "allowed_tools", "allowed_tools": allowed}, None
