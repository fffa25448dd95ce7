"""What servers of Chat Completions do differently, as settings.

The language has one name and as many forms as servers. A `ChatFlavour` lists what a
server takes; what it does not take is left out of a request and told. The readers of
answers need none of this: they take every form there is from everybody.

For a server that is not here, start from `GENERIC` and change what it does otherwise::

    msgspec.structs.replace(GENERIC, name="mine", tool_choices="modes")
"""

from typing import Literal, TypeAlias

import msgspec

ToolChoices: TypeAlias = Literal["none", "modes", "named", "allowed"]
"""How much of a tool choice a server understands: nothing; ``none``, ``auto`` and
``required``; a function by name as well; a list of allowed ones as well."""

Effort: TypeAlias = Literal["reasoning_effort", "reasoning", "none"]
"""Where the effort of reasoning goes: a key of its own, an object with what else there
is to say of reasoning, or nowhere."""


class ChatFlavour(msgspec.Struct, frozen=True, kw_only=True):
    """What one kind of server takes in a request.

    Attributes:
        name: what it is called; what a server of one name wants back word for word is
            never sent to a server of another.
        max_tokens_key: the key for the most tokens of an answer.
        has_developer: whether messages may be the developer's; else they become the
            system's, which is what they were called before.
        has_usage: whether a stream ends with usage if that is asked for.
        has_refusals: whether an earlier refusal is said as one, or as text.
        has_strict_tools: whether ``strict`` may stand in a tool.
        has_parallel_switch: whether parallel calls can be switched off.
        has_json_object: whether an answer can be asked for that is any JSON object.
        has_json_schema: whether an answer can be asked for that fits a schema.
        tool_choices: how much of a tool choice it understands.
        effort: where the effort of reasoning goes.
        reasoning_back: the key under which earlier reasoning has to be sent back as
            text; None for the many servers that do not want it or refuse it.
        files: which files it takes: none, such as come with their data, or such as
            are named by a URL as well.
        has_video: whether it takes videos.
        longest_call_id: longer ids of calls are sent as a digest of themselves.
        end_user_key: the key for who is served; None if there is none.
        metadata: whether metadata is taken: never, always, or only with an answer
            that the server is asked to store.
        settings: keys of a request that it takes under the same name, beside those
            that all servers take.
    """

    name: str
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    has_developer: bool = False
    has_usage: bool = True
    has_refusals: bool = False
    has_strict_tools: bool = False
    has_parallel_switch: bool = False
    has_json_object: bool = True
    has_json_schema: bool = True
    tool_choices: ToolChoices = "named"
    effort: Effort = "none"
    reasoning_back: Literal["reasoning_content", "reasoning"] | None = None
    files: Literal["none", "data", "url"] = "none"
    has_video: bool = False
    longest_call_id: int = 64
    end_user_key: Literal["safety_identifier", "user"] | None = None
    metadata: Literal["never", "stored", "always"] = "never"
    settings: frozenset[str] = frozenset()


OPENAI = ChatFlavour(
    name="openai",
    max_tokens_key="max_completion_tokens",
    has_developer=True,
    has_refusals=True,
    has_strict_tools=True,
    has_parallel_switch=True,
    tool_choices="allowed",
    effort="reasoning_effort",
    files="data",
    longest_call_id=40,
    end_user_key="safety_identifier",
    metadata="stored",
    settings=frozenset(
        (
            "include_obfuscation",
            "prompt_cache_key",
            "service_tier",
            "store",
            "verbosity",
        )
    ),
)
"""OpenAI, and Azure with its v1 path."""

OPENROUTER = ChatFlavour(
    name="openrouter",
    has_developer=True,
    has_refusals=True,
    has_strict_tools=True,
    has_parallel_switch=True,
    effort="reasoning",
    files="url",
    has_video=True,
    longest_call_id=40,
    end_user_key="user",
    metadata="always",
    settings=frozenset(("service_tier", "verbosity")),
)
"""OpenRouter, which takes ``max_tokens`` for all models it leads to."""

OLLAMA = ChatFlavour(name="ollama", tool_choices="none", effort="reasoning_effort")
"""Ollama below ``/v1``."""

VLLM = ChatFlavour(
    name="vllm",
    has_parallel_switch=True,
    effort="reasoning_effort",
    has_video=True,
    end_user_key="user",
)
"""vLLM, and SGLang, which takes the same."""

LM_STUDIO = ChatFlavour(name="lm_studio", has_json_object=False, tool_choices="modes")
"""LM Studio."""

LLAMA_CPP = ChatFlavour(
    name="llama_cpp", has_parallel_switch=True, tool_choices="modes"
)
"""The server of llama.cpp, which takes a function by name for ``auto``."""

GENERIC = ChatFlavour(
    name="generic",
    has_parallel_switch=True,
    effort="reasoning_effort",
    files="data",
    longest_call_id=40,
    end_user_key="user",
)
"""Any server that says it is compatible."""

FLAVOURS = {
    flavour.name: flavour
    for flavour in (OPENAI, OPENROUTER, OLLAMA, VLLM, LM_STUDIO, LLAMA_CPP, GENERIC)
}
"""The flavours there are, by name."""
