"""The model servers that are known without any settings."""

from collections.abc import Mapping

import msgspec

from gambit_actors.settings.environment import Flags, key_from, url_from
from gambit_actors.settings.model import Server

FALLBACK = "openrouter"
"""Who is asked for models that are named without a server, as Gambit does it."""

OTHER_NAMES = {"gemini": "google"}
"""Servers that have a second name."""

PRESETS: dict[str, Server] = {
    server.name: server
    for server in (
        Server(
            name="openai",
            dialect="openai",
            base_url="https://api.openai.com/v1",
            key_names=("OPENAI_API_KEY",),
            url_names=("OPENAI_BASE_URL",),
            needs_key=True,
        ),
        Server(
            name="openrouter",
            dialect="openresponses",
            flavour="openrouter",
            base_url="https://openrouter.ai/api/v1",
            key_names=("OPENROUTER_API_KEY",),
            url_names=("OPENROUTER_BASE_URL",),
            needs_key=True,
        ),
        Server(
            name="anthropic",
            dialect="anthropic",
            base_url="https://api.anthropic.com/v1",
            key_names=("ANTHROPIC_API_KEY",),
            url_names=("ANTHROPIC_BASE_URL",),
            needs_key=True,
        ),
        Server(
            name="google",
            dialect="gemini",
            base_url="https://generativelanguage.googleapis.com/v1beta",
            key_names=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
            url_names=("GOOGLE_BASE_URL", "GEMINI_BASE_URL"),
            needs_key=True,
        ),
        Server(
            name="ollama",
            dialect="chat",
            flavour="ollama",
            base_url="http://localhost:11434/v1",
            key_names=("OLLAMA_API_KEY",),
            url_names=("OLLAMA_BASE_URL",),
        ),
        Server(
            name="openresponses",
            dialect="openresponses",
            key_names=("OPENRESPONSES_API_KEY",),
            url_names=("OPENRESPONSES_BASE_URL",),
        ),
    )
}
"""By name, as they are if the environment says nothing."""


def known_servers(environment: Mapping[str, str], flags: Flags) -> dict[str, Server]:
    """The servers that are known, with the keys and addresses of an environment.

    Raises:
        InvalidSettings: a key or an address is none.
    """
    return {
        name: msgspec.structs.replace(
            in_mode(preset, flags),
            key=key_from(environment, preset.key_names),
            base_url=address_from(environment, preset) or preset.base_url,
        )
        for name, preset in PRESETS.items()
    }


def address_from(environment: Mapping[str, str], server: Server) -> str | None:
    """Where an environment says that a server is; None if it does not say.

    Raises:
        InvalidSettings: what it says is no address.
    """
    url = url_from(environment, server.url_names)
    # Anthropic's own programs put the version behind what this variable says.
    is_short = server.name == "anthropic" and url and not url.endswith("/v1")
    return f"{url}/v1" if is_short else url


def in_mode(server: Server, flags: Flags) -> Server:
    """A known server as it is asked in chat mode, if it is that and it knows how."""
    if server.name == "openrouter" and flags.is_openrouter_chat:
        return msgspec.structs.replace(server, dialect="chat", flavour="openrouter")
    if server.name == "openai" and flags.mode == "chat":
        return msgspec.structs.replace(server, dialect="chat", flavour="openai")
    return server
