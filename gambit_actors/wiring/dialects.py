"""The dialect of a server, from its settings. Each is imported when it is wanted."""

from collections.abc import Callable
from importlib import import_module
from typing import cast

from gambit_actors.providers.dialects.dialect import Dialect
from gambit_actors.providers.errors import ProviderNotReady
from gambit_actors.settings.model import Server

_PACKAGE = "gambit_actors.providers.dialects"


def dialect_of(server: Server) -> Dialect:
    """The language that a server speaks, with its own ways of doing so.

    Raises:
        ProviderNotReady: this release does not speak it.
    """
    match server.dialect:
        case "openresponses" | "openai":
            profile = "OPENAI" if server.dialect == "openai" else "OPEN_RESPONSES"
            if server.flavour == "openrouter":
                profile = "OPENROUTER"
            known = _named(server, "open_responses_profiles", profile)
            make = _named(server, "open_responses", "OpenResponsesDialect")
            return cast(Callable[..., Dialect], make)(profile=known)
        case "chat":
            flavours = _named(server, "chat_flavours", "FLAVOURS")
            flavour = cast(dict[str, object], flavours)[server.flavour or "generic"]
            make = _named(server, "chat", "ChatDialect")
            return cast(Callable[..., Dialect], make)(flavour=flavour)
        case "anthropic":
            make = _named(server, "anthropic", "AnthropicDialect")
        case "gemini":
            make = _named(server, "gemini", "GeminiDialect")
    return cast(Callable[[], Dialect], make)()


def _named(server: Server, module: str, name: str) -> object:
    try:
        return getattr(import_module(f"{_PACKAGE}.{module}"), name)
    except ModuleNotFoundError as problem:
        reason = f"this release does not speak the dialect {server.dialect}"
        raise ProviderNotReady(server.name, reason) from problem
