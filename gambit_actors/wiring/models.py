"""Model servers, put together from settings; each when it is first asked for.

Opening them connects to nobody. What one of them lacks is found when it is asked.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager

import trio

from gambit_actors.providers.endpoints import Endpoint
from gambit_actors.providers.errors import ProviderNotReady
from gambit_actors.providers.gate import Gate
from gambit_actors.providers.http import HttpTransport
from gambit_actors.providers.http_provider import HttpProvider
from gambit_actors.providers.router import Router
from gambit_actors.run.ports import ModelProvider
from gambit_actors.settings.model import SCRIPTED, Server, Settings
from gambit_actors.settings.presets import OTHER_NAMES
from gambit_actors.settings.proxies import proxy_for
from gambit_actors.wiring.dialects import dialect_of
from gambit_actors.wiring.plugins import provider_of_plugin
from gambit_actors.wiring.script_files import ScriptFiles


@asynccontextmanager
async def open_models(
    settings: Settings,
    *,
    environment: Mapping[str, str] | None = None,
    scripted: ModelProvider | None = None,
) -> AsyncIterator[Router]:
    """Have the models that settings name; leaving the block closes all connections.

    Neither entering nor leaving waits for a server.

    Args:
        settings: which servers there are.
        environment: the variables that plugins are given.
        scripted: answers for models of the provider ``scripted``. If not told, those
            answer that are named after a script.

    Raises:
        RequestError: a proxy is none.
    """
    providers = _Providers(settings, environment or {}, scripted)
    try:
        yield Router(providers, aliases=settings.aliases, fallback=settings.fallback)
    finally:
        with trio.CancelScope(shield=True):  # Closing waits for nobody.
            await providers.aclose()


def endpoint_of(server: Server) -> Endpoint:
    """A server as providers are told of it."""
    return Endpoint(
        name=server.name,
        dialect=dialect_of(server),
        base_url=server.base_url,
        key=server.key,
        key_hint=None if server.key_hint is None else f"set {server.key_hint}",
        headers=server.headers,
        timeouts=server.timeouts,
        retries=server.retries,
        pace=server.pace,
        history=server.history,
        streams=server.streams,
        sends_plain_key=server.sends_plain_key,
    )


class _Providers(Mapping[str, ModelProvider]):
    """Providers by name, made when they are looked up, and kept."""

    def __init__(
        self,
        settings: Settings,
        environment: Mapping[str, str],
        scripted: ModelProvider | None,
    ) -> None:
        self._settings = settings
        self._environment = environment
        self._made: dict[str, ModelProvider] = {SCRIPTED: scripted or ScriptFiles()}
        self._transports: dict[str | None, HttpTransport] = {}
        self._names = {*settings.servers, *settings.plugins, *self._made, *OTHER_NAMES}

    def __getitem__(self, name: str) -> ModelProvider:
        own = OTHER_NAMES.get(name, name)
        if own not in self._made:
            self._made[own] = self._make(own)
        return self._made[own]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    async def aclose(self) -> None:  # noqa: ASYNC910  # there may be none
        """Close all connections."""
        for transport in self._transports.values():
            await transport.aclose()

    def _make(self, name: str) -> ModelProvider:
        server = self._settings.servers.get(name)
        if server is None:
            if name in self._settings.plugins:
                return provider_of_plugin(name, self._environment)
            raise KeyError(name)
        if server.lack is not None:
            raise ProviderNotReady(name, server.lack)
        endpoint = endpoint_of(server)
        proxy = proxy_for(server.base_url, self._settings.proxies)
        transport = self._transports.get(proxy)
        if transport is None:
            transport = self._transports[proxy] = HttpTransport(proxy=proxy)
        return HttpProvider(endpoint, transport, Gate(server.pace))
