"""Providers that other packages bring, by an entry point: listed here, loaded later."""

from importlib.metadata import EntryPoint, entry_points

GROUP = "gambit_actors.providers"
"""The group of entry points in which a package names its providers."""


def provider_plugins() -> dict[str, EntryPoint]:
    """The providers that are installed, by name; none of their code is run."""
    return {point.name: point for point in entry_points(group=GROUP)}
