"""Providers of other packages: loaded when a model of theirs is asked for.

A package names a function under the entry points of the group
``gambit_actors.providers``; the name of the entry point is what the names of its models
begin with. The function is given a `PluginSetup` and gives a `ModelProvider`.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import get_args

import msgspec
import trio

from gambit_actors.errors import ProviderError
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.providers.concealing import Concealer
from gambit_actors.providers.errors import PluginFailed, ProviderNotReady
from gambit_actors.run.ports import (
    ModelContext,
    ModelProvider,
    PacedProvider,
    ServerPace,
)
from gambit_actors.settings.environment import secrets_in
from gambit_actors.settings.plugins import provider_plugins


class PluginSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What a plugin is given.

    Attributes:
        name: of its entry point.
        environment: the variables that are set; there may be keys among them.
    """

    name: str
    environment: Mapping[str, str]

    def __repr__(self) -> str:
        # Keys are in there, and plugins print what they are given.
        count = len(self.environment)
        return f"PluginSetup(name={self.name!r}, environment=<{count} variables>)"


class PluginProvider:
    """Asks the provider of a plugin, and lets nothing out that a provider may not do.

    What it raises is a `ProviderError`, so that another model is asked, and names the
    plugin. What the runtime raises where it is handed an event stays as it is, and so
    does being cancelled. Values of variables that are keys are struck out of its words.

    Args:
        name: the plugin's.
        provider: what it made.
        concealer: of the keys it may know.
    """

    def __init__(
        self, name: str, provider: ModelProvider, concealer: Concealer
    ) -> None:
        self._name = name
        self._provider = provider
        self._concealer = concealer

    def paces(self) -> Mapping[str, ServerPace]:
        """How fast it asks its servers, if it tells."""
        provider = self._provider
        return provider.paces() if isinstance(provider, PacedProvider) else {}

    async def responses(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
        /,
    ) -> Response:
        """Have it answer.

        Raises:
            PluginFailed: it broke off, or gave something else.
            ProviderError: it has no answer.
        """
        ear = _Ear(self._name, on_event)
        try:
            return await self._asked(request, context, ear)
        except ProviderError as problem:
            words = str(problem)
            struck = self._concealer.text(words)
            if struck == words:
                raise
            # Without its cause, which has the key in it.
            raise PluginFailed(self._name, struck) from None
        except (Exception, SystemExit, BaseExceptionGroup) as problem:
            if ear.is_broken or not _is_fault(problem):
                raise
            reason = _raised(problem, self._concealer)
            raise PluginFailed(self._name, reason) from problem

    async def _asked(
        self, request: CreateResponse, context: ModelContext, ear: "_Ear"
    ) -> Response:
        waiting: object = self._provider.responses(request, context, ear.take)
        if not inspect.isawaitable(waiting):
            await trio.lowlevel.checkpoint()
            raise PluginFailed(self._name, "its function responses is not async")
        response: object = await waiting
        if ear.fault is not None:
            raise ear.fault
        if not isinstance(response, Response):
            kind = type(response).__name__
            raise PluginFailed(self._name, f"it returned {kind} and not a Response")
        return response


class _Ear:
    """Takes what a plugin says, and knows whose fault it is if that goes wrong.

    Attributes:
        fault: what was no event.
        is_broken: whether it could not be passed on.
    """

    def __init__(self, name: str, on_event: Callable[[Event], None]) -> None:
        self._name = name
        self._on_event = on_event
        self.fault: PluginFailed | None = None
        self.is_broken = False

    def take(self, event: Event) -> None:
        if not isinstance(event, _EVENTS):
            kind = type(event).__name__
            self.fault = PluginFailed(self._name, f"it handed over {kind} as an event")
            raise self.fault
        try:
            self._on_event(event)
        except BaseException:
            self.is_broken = True
            raise


_EVENTS = get_args(Event)


def provider_of_plugin(name: str, environment: Mapping[str, str]) -> ModelProvider:
    """Load a plugin and have it make its provider.

    Raises:
        ProviderNotReady: it cannot be loaded, or makes none.
    """
    point = provider_plugins().get(name)
    if point is None:
        raise _unusable(name, "it is not installed any more")
    concealer = Concealer(*secrets_in(environment))
    try:
        make = point.load()
        made = make(PluginSetup(name=name, environment=environment))
        is_provider = callable(getattr(made, "responses", None))
    except (Exception, SystemExit, BaseExceptionGroup) as problem:
        if not _is_fault(problem):
            raise
        raise _unusable(name, _raised(problem, concealer)) from problem
    if not is_provider:
        raise _unusable(name, f"{point.value} made no provider")
    return PluginProvider(name, made, concealer)


def _is_fault(problem: BaseException) -> bool:
    """Whether somebody else's code raised this, and not who wants it to end."""
    if isinstance(problem, BaseExceptionGroup):
        return all(map(_is_fault, problem.exceptions))
    return isinstance(problem, Exception | SystemExit)


def _raised(problem: BaseException, concealer: Concealer) -> str:
    # A group of one is a nursery's, and its own words are of no use.
    while isinstance(problem, BaseExceptionGroup) and len(problem.exceptions) == 1:
        problem = problem.exceptions[0]
    words = concealer.words(str(problem))
    kind = type(problem).__name__
    return f"it raised {kind}: {words}" if words else f"it raised {kind}"


def _unusable(name: str, reason: str) -> ProviderNotReady:
    return ProviderNotReady(name, f"the plugin {name} cannot be used: {reason}")
