"""``gambit models``: which models can be asked, by which names, and what is missing.

No key is shown, only the name of the variable that it is from. Nobody is asked anything
but with ``--ping``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

import click
import msgspec

from gambit_actors.cli.answering import environment_of
from gambit_actors.cli.flow import printable
from gambit_actors.cli.pinging import Pinged, ping
from gambit_actors.cli.refusing import Refused
from gambit_actors.cli.stored_runs import worded
from gambit_actors.cli.tables import (
    table_lines,
    table_width,
    terminal_width,
    without_empty_columns,
)
from gambit_actors.providers.endpoints import Pace
from gambit_actors.run.budgets import Price
from gambit_actors.settings.finding import find_settings
from gambit_actors.settings.model import Server, Settings
from gambit_actors.settings.readiness import expanded, lack_of

KeyState: TypeAlias = Literal["set", "missing", "not needed"]


class AskedForModels(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``gambit models``, by their names."""

    models: tuple[str, ...] = ()
    as_json: bool = False
    ping: bool = False
    settings: str | None = None
    env_file: str | None = None


class ShownProvider(msgspec.Struct, frozen=True, kw_only=True):
    """A provider, as ``--json`` tells of it.

    Attributes:
        dialect: None for a plugin, which has its own.
        key_variable: where the key is from, or is looked for; None for none.
        lack: what to do before it can be asked; None for nothing.
    """

    name: str
    dialect: str | None = None
    flavour: str | None = None
    base_url: str = ""
    key: KeyState = "not needed"
    key_variable: str | None = None
    lack: str | None = None
    pace: Pace | None = None


class ShownModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that settings name.

    Attributes:
        lack: what to do before it can be asked; None for nothing.
        price: None if it is not known.
    """

    name: str
    lack: str | None = None
    price: Price | None = None


class ShownAlias(msgspec.Struct, frozen=True, kw_only=True):
    """Another name, and the models that it comes to."""

    name: str
    models: tuple[str, ...]
    description: str = ""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The document that ``--json`` writes."""

    version: int = 1
    file: str | None
    fallback: str | None
    mode: str
    providers: list[ShownProvider]
    aliases: list[ShownAlias]
    models: list[ShownModel]
    pings: list[Pinged] | None = None


def models_from_options(options: Mapping[str, object]) -> int:
    """Show what the command line asks for; gives the exit code."""
    asked = msgspec.convert(options, AskedForModels)
    if asked.models and not asked.ping:
        raise Refused("models are named to be asked: add --ping")
    with worded():
        environment = environment_of(asked.env_file)
        settings = find_settings(environment, file=asked.settings)
        listing = listing_of(settings)
        if asked.ping:
            names = asked.models or [m.name for m in listing.models if m.lack is None]
            pings = ping(settings, environment, names)
            listing = msgspec.structs.replace(listing, pings=pings)
    if asked.as_json:
        click.echo(msgspec.json.encode(listing))
    elif listing.pings is not None:
        _show_pings(listing.pings)
    else:
        _show(listing)
    return 1 if any(one.error for one in listing.pings or ()) else 0


def listing_of(settings: Settings) -> Listing:
    """What is to be told of settings."""
    named = {full for name in settings.aliases for full in expanded(settings, name)}
    named |= {
        f"{server.name}/{server.model}"
        for server in settings.servers.values()
        if server.model is not None
    }
    return Listing(
        file=settings.file,
        fallback=settings.fallback,
        mode=settings.mode,
        providers=[
            *(_shown(server) for server in settings.servers.values()),
            *(ShownProvider(name=name) for name in settings.plugins),
        ],
        aliases=[
            ShownAlias(
                name=name,
                models=expanded(settings, name),
                description=alias.description,
            )
            for name, alias in settings.aliases.items()
        ],
        models=[
            ShownModel(
                name=name,
                lack=lack_of(settings, name),
                price=settings.prices.get(name),
            )
            for name in sorted(named | settings.prices.keys())
        ],
    )


def _shown(server: Server) -> ShownProvider:
    variable = " or ".join(server.key_names) or None
    key: KeyState = "missing" if server.needs_key else "not needed"
    if server.key is not None:
        key, variable = "set", server.key.source
    return ShownProvider(
        name=server.name,
        dialect=server.dialect,
        flavour=server.flavour,
        base_url=server.base_url,
        key=key,
        key_variable=variable,
        lack=server.lack,
        pace=server.pace,
    )


def _show(listing: Listing) -> None:
    _show_providers(listing.providers)
    if listing.fallback is not None:
        words = f"Models that are named without a provider are {listing.fallback}'s."
        click.echo(printable(words))
    if listing.aliases:
        click.echo()
        _show_table(
            [
                ("ALIAS", "MODELS", ""),
                *(
                    (a.name, ", ".join(a.models), a.description)
                    for a in listing.aliases
                ),
            ]
        )
    if listing.models:
        click.echo()
        head = ("MODEL", "INPUT", "OUTPUT", "CACHED", "")
        _show_table([head, *(_model_cells(model) for model in listing.models)])


def _show_providers(providers: Sequence[ShownProvider]) -> None:
    """Show all of each provider, or where there is no room for that, the most of it."""
    rows = [
        ("PROVIDER", "KEY", "BASE URL", "DIALECT", "PACE"),
        *(_provider_cells(provider) for provider in providers),
    ]
    if table_width(rows) <= terminal_width():
        _show_table(rows)
        return
    _show_table(
        [
            ("PROVIDER", "KEY", "BASE URL"),
            *(_provider_cells(provider, is_brief=True)[:3] for provider in providers),
        ]
    )
    click.echo("There is no room for all of it here: --json has that.", err=True)


def _provider_cells(
    provider: ShownProvider, *, is_brief: bool = False
) -> tuple[str, ...]:
    if provider.dialect is None:
        return (provider.name, "", "", "plugin", "")
    url = provider.base_url or (provider.lack or "").partition(" to ")[0]
    return (
        provider.name,
        _key_words(provider, is_brief=is_brief),
        # As browsers show it: what is not said is that it is as it should be.
        url.removeprefix("https://") if is_brief else url,
        _dialect_words(provider),
        _pace_words(provider.pace or Pace()),
    )


def _key_words(provider: ShownProvider, *, is_brief: bool) -> str:
    variable = provider.key_variable or ""
    match provider.key:
        case "set":
            return f"set: {variable}"
        case "missing":
            return f"no {variable.partition(' or ')[0] if is_brief else variable}"
        case "not needed":
            return "none needed"


def _dialect_words(provider: ShownProvider) -> str:
    flavour = f" ({provider.flavour})" if provider.flavour else ""
    return f"{provider.dialect}{flavour}"


def _pace_words(pace: Pace) -> str:
    """How a provider is held back, where that is not as it is without settings."""
    if pace == Pace():
        return ""
    words = []
    if pace.requests_per_minute is not None:
        words.append(f"{pace.requests_per_minute} requests/min")
    if pace.tokens_per_minute is not None:
        words.append(f"{pace.tokens_per_minute} tokens/min")
    most = "adaptive up to" if pace.is_adaptive else "at most"
    return ", ".join([*words, f"{most} {pace.most_at_once} at once"])


def _model_cells(model: ShownModel) -> tuple[str, ...]:
    lack = "" if model.lack is None else model.lack
    if model.price is None:
        return (model.name, "unknown", "unknown", "", lack)
    price = model.price
    cached = "" if price.cached_input is None else f"{price.cached_input:g}"
    return (model.name, f"{price.input:g}", f"{price.output:g}", cached, lack)


def _show_pings(pings: Sequence[Pinged]) -> None:
    if not pings:
        click.echo("No model to ask: name one, such as openai/gpt-5-mini.", err=True)
        return
    rows: list[tuple[str, ...]] = []
    for one in pings:
        words = f"{one.seconds:.2f} s" if one.error is None else one.error
        via = "" if one.alias is None else f"{one.alias} -> "
        rows.append((f"{via}{one.model}", words))
    _show_table([("ASKED", "ANSWER"), *rows])


def _show_table(rows: Iterable[tuple[str, ...]]) -> None:
    table = [[printable(cell) for cell in row] for row in rows]
    for line in table_lines(without_empty_columns(table), terminal_width()):
        click.echo(line)
