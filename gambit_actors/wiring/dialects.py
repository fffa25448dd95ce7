"""The dialect of a server, from its settings. Each is imported when it is wanted."""

# ruff: noqa: PLC0415

import msgspec

from gambit_actors.providers.dialects.dialect import Dialect
from gambit_actors.settings.model import Server


def dialect_of(server: Server) -> Dialect:
    """The language that a server speaks, with its own ways of doing so."""
    match server.dialect:
        case "openresponses" | "openai":
            return _open_responses(server)
        case "chat":
            from gambit_actors.providers.dialects.chat import ChatDialect
            from gambit_actors.providers.dialects.chat_flavours import FLAVOURS

            return ChatDialect(flavour=FLAVOURS[server.flavour or "generic"])
        case "gemini":
            from gambit_actors.providers.dialects.gemini import GeminiDialect

            return GeminiDialect()
        case "anthropic":
            return _anthropic(server)


def _open_responses(server: Server) -> Dialect:
    from gambit_actors.providers.dialects import open_responses_profiles as profiles
    from gambit_actors.providers.dialects.open_responses import OpenResponsesDialect

    profile = profiles.OPEN_RESPONSES
    if server.dialect == "openai":
        profile = profiles.OPENAI
    elif server.flavour == "openrouter":
        profile = profiles.OPENROUTER
    return OpenResponsesDialect(profile=profile)


def _anthropic(server: Server) -> Dialect:
    from gambit_actors.providers.dialects.anthropic import AnthropicDialect

    usual = AnthropicDialect(betas=server.betas)
    return msgspec.structs.replace(
        usual,
        thinking=server.thinking or usual.thinking,
        default_max_tokens=server.max_tokens or usual.default_max_tokens,
    )
