"""Settings as values: model servers, other names for models, prices, flags.

Pure data. A key is in here as a `Secret`, which nothing shows.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from gambit_actors.providers.endpoints import History, Pace, Retries, Secret, Timeouts
from gambit_actors.providers.router import Alias
from gambit_actors.run.budgets import Price
from gambit_actors.trace.events import Mode

DialectName: TypeAlias = Literal[
    "openresponses", "openai", "chat", "anthropic", "gemini"
]
"""The languages of model servers, as settings call them:

openresponses   Open Responses, as the standard has it
openai          the same with what OpenAI adds to it
chat            Chat Completions, of which each server has its flavour
anthropic       Anthropic Messages
gemini          Gemini's generateContent
"""

Thinking: TypeAlias = Literal["budget", "adaptive"]
"""How Anthropic is told how much to think: in tokens, or by the name of an effort."""

SCRIPTED = "scripted"
"""The provider of models that answer from a script."""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """One model server.

    Attributes:
        name: what the names of its models begin with.
        base_url: empty if nobody said where it is.
        flavour: of the dialect; None for the usual one.
        key: what it is asked with; None if there is none.
        key_names: the variables that are looked at for a key, the first one first.
        url_names: the same for the base URL.
        needs_key: whether it cannot be asked without one.
        model: the one that is meant where only the server is named.
        streams: whether answers are asked for as streams.
        sends_plain_key: whether its key may go out without TLS.
        thinking: of the dialect anthropic; None for the usual way.
        betas: of the dialect anthropic: features to ask for.
        max_tokens: of the dialect anthropic: the most to be said where nobody says;
            None for the usual number.
    """

    name: str
    dialect: DialectName
    base_url: str = ""
    flavour: str | None = None
    key: Secret | None = None
    key_names: tuple[str, ...] = ()
    url_names: tuple[str, ...] = ()
    needs_key: bool = False
    headers: Mapping[str, str] = {}
    history: History = "sent"
    streams: bool = True
    sends_plain_key: bool = False
    model: str | None = None
    timeouts: Timeouts = Timeouts()
    retries: Retries = Retries()
    pace: Pace = Pace()
    thinking: Thinking | None = None
    betas: tuple[str, ...] = ()
    max_tokens: int | None = None

    @property
    def key_hint(self) -> str | None:
        """The variables of which one has to have a key; None if it needs none."""
        return " or ".join(self.key_names) if self.needs_key else None

    @property
    def unset(self) -> tuple[str, ...]:
        """The variables of which one has to be set before it can be asked; or none."""
        if not self.base_url:
            return self.url_names
        return self.key_names if self.needs_key and self.key is None else ()

    @property
    def lack(self) -> str | None:
        """What has to be set before it can be asked; None if nothing has to be."""
        if not self.unset:
            return None
        what = "your key" if self.base_url else "the address of a server"
        return f"set {' or '.join(self.unset)} to {what}"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a program is set up with.

    Attributes:
        servers: by the names of their models' beginnings.
        aliases: by name.
        prices: by the names of models, server and all.
        fallback: the server of models that are named without one; None for none.
        mode: how conversations are traced and saved.
        proxies: for each scheme, and ``no`` for the hosts that are asked without.
        file: the file that was read; None if there was none.
        plugins: names of servers that other packages bring.
    """

    servers: Mapping[str, Server] = {}
    aliases: Mapping[str, Alias] = {}
    prices: Mapping[str, Price] = {}
    fallback: str | None = None
    mode: Mode = "responses"
    proxies: Mapping[str, str] = {}
    file: str | None = None
    plugins: tuple[str, ...] = ()
