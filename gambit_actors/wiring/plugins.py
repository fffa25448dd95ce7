"""Providers of other packages: loaded when a model of theirs is asked for.

A package names a function under the entry points of the group
``gambit_actors.providers``; the name of the entry point is what the names of its models
begin with. The function is given a `PluginSetup` and gives a `ModelProvider`.
"""

from collections.abc import Mapping

import msgspec

from gambit_actors.providers.errors import ProviderNotReady
from gambit_actors.run.ports import ModelProvider
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


def provider_of_plugin(name: str, environment: Mapping[str, str]) -> ModelProvider:
    """Load a plugin and have it make its provider.

    Raises:
        ProviderNotReady: it cannot be loaded, or makes none.
    """
    point = provider_plugins()[name]
    try:
        make = point.load()
        made = make(PluginSetup(name=name, environment=environment))
    except Exception as problem:  # whatever somebody else's code raises
        kind = type(problem).__name__
        raise _unusable(name, f"it raised {kind}: {problem}") from problem
    if not callable(getattr(made, "responses", None)):
        raise _unusable(name, f"{point.value} made no provider")
    return made  # type: ignore[no-any-return]  # as far as can be seen


def _unusable(name: str, reason: str) -> ProviderNotReady:
    return ProviderNotReady(name, f"the plugin {name} cannot be used: {reason}")
