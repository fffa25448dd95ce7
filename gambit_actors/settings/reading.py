"""From a ``gambit.toml`` and an environment to `Settings`, or to every mistake in them.

No file is opened here. `gambit_actors.settings.finding` does that.
"""

from collections.abc import Callable, Collection, Mapping

import msgspec

from gambit_actors.deck.documents import document_from_toml
from gambit_actors.deck.findings import Findings
from gambit_actors.deck.tables import Table, did_you_mean
from gambit_actors.errors import InvalidSettings
from gambit_actors.providers.router import Alias
from gambit_actors.run.budgets import Price
from gambit_actors.settings.environment import flags_from, proxies_from
from gambit_actors.settings.model import Server, Settings
from gambit_actors.settings.model_tables import read_aliases, read_prices
from gambit_actors.settings.presets import FALLBACK, known_servers
from gambit_actors.settings.provider_tables import ProviderTables, check_all_keys

SECTIONS = ("models", "providers")
"""The tables that are read. Others are somebody else's, such as ``[workspace]``."""

_NOT_FROM_HERE = (
    "is not taken from a file that is neither in the current folder nor above it: go"
    " there, or name the file with --settings if you trust it"
)


class SettingsFile(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a settings file.

    Attributes:
        name: what it is called in messages.
        is_own: whether it is the user's. A file that comes along with a deck must not
            say who gets a key, nor what a budget is reckoned with.
        read_beside: gives the text of another file, by its path from this one; it may
            raise an OSError.
    """

    name: str
    text: str
    is_own: bool
    read_beside: Callable[[str], str]


def settings_from(
    environment: Mapping[str, str],
    file: SettingsFile | None = None,
    *,
    responses: bool | None = None,
    plugins: Collection[str] = (),
) -> Settings:
    """Read settings.

    Args:
        environment: has keys, addresses and flags.
        file: None if there is none.
        responses: the mode that the command line asks for, if it does.
        plugins: names of servers that other packages bring.

    Raises:
        InvalidSettings: with the place of each mistake in the file.
    """
    flags = flags_from(environment, responses=responses)
    known = known_servers(environment, flags)
    read = _Read(file, environment, known, plugins)
    return Settings(
        servers=read.servers,
        aliases=_named_servers(read.servers) | read.aliases,
        prices=read.prices,
        fallback=read.fallback,
        mode=flags.mode,
        proxies=proxies_from(environment),
        file=None if file is None else file.name,
        plugins=tuple(sorted(plugins)),
    )


def prices_from_text(name: str, text: str) -> dict[str, Price]:
    """Read a file of prices: a table for each model.

    Raises:
        InvalidSettings: with the place of each mistake.
    """
    document, findings = document_from_toml(name, text), Findings()
    findings.extend(document.problems)
    prices = read_prices(Table(document, findings, document.values))
    refuse(findings)
    return prices


def refuse(findings: Findings) -> None:
    """Stop if something is wrong.

    Raises:
        InvalidSettings: something is.
    """
    errors = [found for found in findings if found.severity == "error"]
    if not errors:
        return
    lines = []
    for found in errors:
        hint = f" {found.hint}" if found.hint else ""
        lines.append(f"{found.file}:{found.line}:{found.column}: {found.message}{hint}")
    raise InvalidSettings("\n".join(lines), errors)


class _Read:
    """What one file comes to, together with what is known without it."""

    def __init__(
        self,
        file: SettingsFile | None,
        environment: Mapping[str, str],
        known: dict[str, Server],
        plugins: Collection[str],
    ) -> None:
        self.servers = known
        self.fallback: str | None = FALLBACK
        self.aliases: dict[str, Alias] = {}
        self.prices: dict[str, Price] = {}
        if file is None:
            return
        self._file = file
        document, findings = document_from_toml(file.name, file.text), Findings()
        findings.extend(document.problems)
        top = Table(document, findings, document.values)
        _check_sections(top)
        providers, models = top.table("providers"), top.table("models")
        if providers is not None:
            self._read_providers(providers, ProviderTables(known, environment, plugins))
        if models is not None:
            self._read_models(models)
        refuse(findings)

    def _read_providers(self, table: Table, tables: ProviderTables) -> None:
        named = [key for key in table.values if key != "fallback"]
        if named and self._is_foreign(table, named[0]):
            return
        self.servers = tables.servers(table)
        self.fallback = tables.fallback(table, self.servers, FALLBACK)

    def _read_models(self, table: Table) -> None:
        check_all_keys(table, ("aliases", "prices"))
        aliases = table.table("aliases")
        if aliases is not None:
            self.aliases = read_aliases(aliases)
        if "prices" in table and self._is_foreign(table, "prices"):
            return
        if isinstance(table.values.get("prices"), str):
            self._read_price_file(table)
        elif (prices := table.table("prices")) is not None:
            self.prices = read_prices(prices)

    def _is_foreign(self, table: Table, key: str) -> bool:
        """Whether a key does not count, because the file is not the user's; says so."""
        if self._file.is_own:
            return False
        name = ".".join(map(str, (*table.path, key)))
        table.report("GD012", "error", f"{name} {_NOT_FROM_HERE}.", key=key)
        return True

    def _read_price_file(self, table: Table) -> None:
        name = table.text("prices")
        if name is None:
            return
        try:
            text = self._file.read_beside(name)
        except (OSError, ValueError) as problem:
            words = getattr(problem, "strerror", None) or "it is no text"
            message = f"models.prices: {name} cannot be read: {words}."
            table.report("GD012", "error", message, key="prices")
            return
        self.prices = prices_from_text(name, text)


def _check_sections(top: Table) -> None:
    """Notice a misspelt section; what is like none of ours is somebody else's."""
    for key in top.values:
        if key in SECTIONS:
            continue
        guess = did_you_mean(key, SECTIONS)
        if guess is not None:
            message = f"{key} is not a known key."
            top.report("GD010", "error", message, key=key, hint=guess)


def _named_servers(servers: Mapping[str, Server]) -> dict[str, Alias]:
    """The names of models that stand for a server's own model."""
    return {
        f"openresponses/{name}": Alias(models=(f"{name}/{server.model}",))
        for name, server in servers.items()
        if server.model is not None and server.dialect == "openresponses"
    }
