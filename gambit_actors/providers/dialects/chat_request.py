"""The settings of a request in the words of Chat Completions.

Each is said in the flavour's words, or left out and told. What is the language's own
default is left out without a word.
"""

from collections.abc import Callable

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.followup import items_of_input
from gambit_actors.openresponses.requests import (
    CreateResponse,
    JsonObjectFormat,
    JsonSchemaFormat,
    ReasoningConfig,
    TextConfig,
    TextFormat,
)
from gambit_actors.openresponses.writing import to_builtins
from gambit_actors.providers.dialects.chat_flavours import ChatFlavour
from gambit_actors.providers.dialects.chat_messages import ChatMessages
from gambit_actors.providers.dialects.chat_tools import tool_settings
from gambit_actors.providers.dialects.dialect import Unsent
from gambit_actors.providers.dialects.extras import without_ways_around

_JSONObject = dict[str, JSONValue]
_Tell = Callable[[str, str], None]

# Taken by all, under the same name.
_SHARED = (
    "model",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
)
# Taken by some; the value that changes nothing, where there is one.
_SOME: dict[str, JSONValue] = {
    "prompt_cache_key": None,
    "service_tier": None,
    "store": False,
}
# Taken by none; the value that changes nothing.
_NOBODY: dict[str, JSONValue] = {
    "background": False,
    "max_tool_calls": None,
    "top_logprobs": 0,
    "truncation": "disabled",
}
_SEALED = "reasoning.encrypted_content"  # Comes without being asked for.


def body_of(
    request: CreateResponse, flavour: ChatFlavour, *, stream: bool
) -> tuple[_JSONObject, list[Unsent]]:
    """The body of a request, and what found no place in it."""
    unsent: list[Unsent] = []
    request = without_ways_around(request, unsent)

    def tell(path: str, reason: str) -> None:
        unsent.append(Unsent(path, reason))

    messages = ChatMessages(flavour, unsent)
    messages.render(request.instructions, items_of_input(request))
    body: _JSONObject = {
        name: value for name in _SHARED if (value := getattr(request, name)) is not None
    }
    body["messages"] = messages.messages
    if request.max_output_tokens is not None:
        body[flavour.max_tokens_key] = request.max_output_tokens
    body |= _stream_settings(request, flavour, tell, stream=stream)
    body |= tool_settings(request, flavour, tell)
    body |= _text_settings(request.text, flavour, tell)
    body |= _reasoning_settings(request.reasoning, flavour, tell)
    body |= _account_settings(request, flavour, tell)
    _tell_of_the_rest(request, tell)
    return request.extra | body, unsent


def _stream_settings(
    request: CreateResponse, flavour: ChatFlavour, tell: _Tell, *, stream: bool
) -> _JSONObject:
    options: _JSONObject = {"include_usage": True} if flavour.has_usage else {}
    asked = request.stream_options
    if asked is not None and asked.include_obfuscation is not None:
        if "include_obfuscation" in flavour.settings:
            options["include_obfuscation"] = asked.include_obfuscation
        elif asked.include_obfuscation:
            tell("stream_options.include_obfuscation", f"{flavour.name} has none")
    if not stream:
        return {}
    return {"stream": True} | ({"stream_options": options} if options else {})


def _text_settings(
    text: TextConfig | None, flavour: ChatFlavour, tell: _Tell
) -> _JSONObject:
    if text is None:
        return {}
    settings: _JSONObject = {}
    if text.verbosity is not None:
        if "verbosity" in flavour.settings:
            settings["verbosity"] = text.verbosity
        else:
            tell("text.verbosity", f"{flavour.name} cannot be told how much to say")
    for key in text.extra:
        tell(f"text.{key}", "Chat Completions has nothing like it")
    shape = text.format
    match shape:
        case None | TextFormat():
            pass
        case JsonObjectFormat() if flavour.has_json_object:
            settings["response_format"] = {"type": "json_object"}
        case JsonSchemaFormat() if flavour.has_json_schema:
            inner = to_builtins(shape)
            del inner["type"]
            settings["response_format"] = {"type": "json_schema", "json_schema": inner}
        case _:
            tell("text.format", f"{flavour.name} has no format {shape.type}")
    return settings


def _reasoning_settings(
    reasoning: ReasoningConfig | None, flavour: ChatFlavour, tell: _Tell
) -> _JSONObject:
    if reasoning is None:
        return {}
    if flavour.effort == "reasoning":
        wanted = to_builtins(reasoning)
        return {"reasoning": wanted} if wanted else {}
    for key in reasoning.extra:
        tell(f"reasoning.{key}", f"{flavour.name} has nothing like it")
    if reasoning.summary is not None:
        tell("reasoning.summary", f"{flavour.name} gives no summaries of reasoning")
    if reasoning.effort is None:
        return {}
    if flavour.effort == "none":
        tell("reasoning.effort", f"{flavour.name} cannot be told how hard to think")
        return {}
    return {"reasoning_effort": reasoning.effort}


def _account_settings(
    request: CreateResponse, flavour: ChatFlavour, tell: _Tell
) -> _JSONObject:
    settings: _JSONObject = {}
    for name, idle in _SOME.items():
        value = getattr(request, name)
        if value is None:
            continue
        if name in flavour.settings:
            settings[name] = value
        elif value != idle:
            tell(name, f"{flavour.name} has nothing like it")
    if request.safety_identifier is not None:
        if flavour.end_user_key is not None:
            settings[flavour.end_user_key] = request.safety_identifier
        else:
            tell("safety_identifier", f"{flavour.name} does not ask whom it serves")
    return settings | _metadata(request, flavour, tell)


def _metadata(
    request: CreateResponse, flavour: ChatFlavour, tell: _Tell
) -> _JSONObject:
    if not request.metadata:
        return {}
    if flavour.metadata == "never":
        tell("metadata", f"{flavour.name} takes none")
    elif flavour.metadata == "stored" and not request.store:
        tell("metadata", f"{flavour.name} takes it only with store = true")
    else:
        return {"metadata": dict(request.metadata)}
    return {}


def _tell_of_the_rest(request: CreateResponse, tell: _Tell) -> None:
    for name, idle in _NOBODY.items():
        value = getattr(request, name)
        if value is not None and value != idle:
            tell(name, "Chat Completions has nothing like it")
    for place, name in enumerate(request.include or ()):
        if name != _SEALED:
            tell(f"include[{place}]", f"Chat Completions has no place for {name}")
    if request.previous_response_id is not None:
        tell("previous_response_id", "servers of Chat Completions keep no responses")
