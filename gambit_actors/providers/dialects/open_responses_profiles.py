"""What the servers of Open Responses have in common, and where they differ.

A profile holds what cannot be found out by asking: what a server would refuse, or take
to mean something else.
"""

import msgspec


class OpenResponsesProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of server.

    Attributes:
        name: for settings, messages and the dialect.
        keeps_responses: whether a request may refer to an earlier response by its id.
        takes_store: whether it knows the key ``store``.
        is_exact: whether it takes what the standard names and nothing else. If not,
            tools, items, formats and levels of its own are passed on to it.
        seals_reasoning: whether to ask for reasoning in sealed form where the whole
            conversation is sent, so that it can be sent back.
        plain_models: how the names begin of models that refuse to be asked for it.
        tools_are_strict: what to say of a tool that does not say whether its arguments
            are to be held to its schema; None to say nothing.
    """

    name: str
    keeps_responses: bool = True
    takes_store: bool = True
    is_exact: bool = False
    seals_reasoning: bool = False
    plain_models: tuple[str, ...] = ()
    tools_are_strict: bool | None = None


OPEN_RESPONSES = OpenResponsesProfile(name="open-responses", is_exact=True)
"""Any server that keeps to the standard."""

OPENAI = OpenResponsesProfile(
    name="openai",
    seals_reasoning=True,
    plain_models=("gpt-3", "gpt-4", "chatgpt-", "gpt-5-chat", "ft:gpt-3", "ft:gpt-4"),
    # Silence means strict there, and strict forbids arguments that may be left out.
    tools_are_strict=False,
)
"""OpenAI's own Responses API."""

OPENROUTER = OpenResponsesProfile(
    name="openrouter",
    keeps_responses=False,
    takes_store=False,
    seals_reasoning=True,
    plain_models=(
        "openai/gpt-3",
        "openai/gpt-4",
        "openai/chatgpt-",
        "openai/gpt-5-chat",
    ),
    tools_are_strict=False,
)
"""OpenRouter: whatever model is behind it, nothing is kept from call to call."""
