"""``[providers]`` of gambit.toml: model servers, and who is asked without one named.

A key is never in a file. A file names the variable that has it.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar, cast, get_args

import msgspec

from gambit_actors.deck.tables import Table, did_you_mean
from gambit_actors.openresponses.describing import shown
from gambit_actors.providers.endpoints import Pace, Retries, Timeouts
from gambit_actors.settings.addresses import NOT_A_BASE_URL, is_base_url
from gambit_actors.settings.environment import key_from
from gambit_actors.settings.model import SCRIPTED, DialectName, Server, Thinking
from gambit_actors.settings.presets import OTHER_NAMES, address_from

NO_FALLBACK = "none"

DIALECTS: tuple[str, ...] = get_args(DialectName)

FLAVOURS: dict[str, tuple[str, ...]] = {
    "openresponses": ("openrouter",),
    "chat": (
        "openai",
        "openrouter",
        "ollama",
        "vllm",
        "lm_studio",
        "llama_cpp",
        "generic",
    ),
}
"""What is known of servers that speak a dialect in their own way."""

_HISTORIES = ("sent", "kept")
_SERVER = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*", re.ASCII)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[ -~]*")
_SECRET_WORDS = re.compile(
    r"key|token|secret|passw|auth|cookie|credential", re.IGNORECASE
)
_NO_KEYS_HERE = (
    "no key is written into a file that others may read: put it into a variable, and"
    " name that one with key_env"
)
_MOST_SECONDS = 86_400.0
_MOST_AT_ONCE = 100_000
_T = TypeVar("_T", bound=msgspec.Struct)


class ProviderTables:
    """Reads the servers of a file.

    Args:
        known: those that are known without the file.
        environment: has the keys, and the addresses that count for more.
        plugins: names of servers that other packages bring.
    """

    def __init__(
        self,
        known: Mapping[str, Server],
        environment: Mapping[str, str],
        plugins: Collection[str],
    ) -> None:
        self._known = known
        self._environment = environment
        self._plugins = plugins

    def servers(self, table: Table) -> dict[str, Server]:
        """All servers, those that the file does not name as they are known.

        Raises:
            InvalidSettings: a variable has no key in it, or no address.
        """
        servers = dict(self._known)
        for name in table.values:
            if name == "fallback":
                continue
            inner = table.table(name)
            if inner is not None and self._is_name(inner, name):
                servers[name] = self._server(inner, name)
        return servers

    def fallback(
        self, table: Table, servers: Collection[str], default: str | None
    ) -> str | None:
        """Who is asked for models that are named without a server."""
        name = table.text("fallback")
        if name is None:
            return default
        if name == NO_FALLBACK:
            return None
        name = OTHER_NAMES.get(name, name)
        names = {*servers, *self._plugins, SCRIPTED}
        if name not in names:
            message = (
                f"providers.fallback is {shown(name)}, and there is no such provider;"
                ' "none" is for none.'
            )
            hint = did_you_mean(name, sorted({*names, NO_FALLBACK}))
            table.report("GD012", "error", message, key="fallback", hint=hint)
        return name

    def _is_name(self, table: Table, name: str) -> bool:
        other = OTHER_NAMES.get(name)
        if other is not None:
            words = f"is called providers.{other} here"
        elif name == SCRIPTED:
            words = "is the scripted model, which has no settings"
        elif not _SERVER.fullmatch(name):
            words = "is no name of a provider: it has letters, digits, - and _"
        else:
            return True
        table.report("GD012", "error", f"providers.{shown(name)} {words}.")
        return False

    def _server(self, table: Table, name: str) -> Server:
        before = self._known.get(name)
        _check_keys(table)
        if before is None:
            for key in ("dialect", "base_url"):
                table.text(key, required=True)
            before = Server(name=name, dialect="chat")
        changes: dict[str, Any] = {
            field: value
            for key, (field, read) in _READERS.items()
            if key in table and (value := read(table, key)) is not None
        }
        if "dialect" in changes:
            changes.setdefault("flavour", None)
        server = msgspec.structs.replace(before, **changes)
        _check_dialect(table, server)
        said = address_from(self._environment, server)
        if said is not None:
            server = msgspec.structs.replace(server, base_url=said)
        return self._with_key(server, table)

    def _with_key(self, server: Server, table: Table) -> Server:
        variable = table.text("key_env")
        if variable is None:
            return server
        if not _VARIABLE.fullmatch(variable):
            # What it is instead may well be the key, so it is not shown.
            message = (
                f"providers.{server.name}.key_env is not the name of a variable, such"
                f" as ACME_API_KEY: {_NO_KEYS_HERE}."
            )
            table.report("GD012", "error", message, key="key_env")
            return server
        key = key_from(self._environment, (variable,))
        return msgspec.structs.replace(
            server, key=key, key_names=(variable,), needs_key=True
        )


def check_all_keys(table: Table, known: Collection[str]) -> None:
    """Refuse every key that is not known: one that is ignored may be a limit."""
    for key in table.values:
        if key not in known:
            message = f"{'.'.join(map(str, (*table.path, key)))} is not a known key."
            hint = did_you_mean(key, sorted(known))
            table.report("GD010", "error", message, key=key, hint=hint)


def _check_keys(table: Table) -> None:
    """Refuse what is not known, and a key of a server before anybody looks at it."""
    known = set(SERVER_KEYS)
    keys = {
        name
        for name in table.values.keys() - known
        if _SECRET_WORDS.search(name) and did_you_mean(name, ["key_env"]) is None
    }
    for name in keys:
        path = ".".join(map(str, (*table.path, name)))
        table.report("GD012", "error", f"{path}: {_NO_KEYS_HERE}.", key=name)
    check_all_keys(table, known | keys)


def _check_dialect(table: Table, server: Server) -> None:
    """Refuse what the server's dialect has no place for."""
    dialect, flavours = server.dialect, FLAVOURS.get(server.dialect, ())
    if server.flavour is not None and server.flavour not in flavours:
        message = (
            f"providers.{server.name}.flavour is none of the dialect {dialect},"
            f" which has {', '.join(flavours) or 'none'}."
        )
        hint = did_you_mean(server.flavour, flavours)
        table.report("GD012", "error", message, key="flavour", hint=hint)
    for key in () if dialect == "anthropic" else ANTHROPIC_KEYS:
        if key in table:
            message = (
                f"providers.{server.name}.{key} is for the dialect anthropic, and this"
                f" server speaks {dialect}."
            )
            table.report("GD012", "error", message, key=key)


def _dialect(table: Table, key: str) -> str | None:
    return table.choice(key, DIALECTS)


def _history(table: Table, key: str) -> str | None:
    return table.choice(key, _HISTORIES)


def _thinking(table: Table, key: str) -> str | None:
    return table.choice(key, get_args(Thinking))


def _betas(table: Table, key: str) -> tuple[str, ...] | None:
    betas = table.texts(key)
    for beta in betas or ():
        if not _HEADER.fullmatch(beta):
            path = ".".join(map(str, (*table.path, key)))
            message = f"{path}: {shown(beta)} is no name that a header can carry."
            table.report("GD012", "error", message, key=key)
    return betas


def _tokens(table: Table, key: str) -> int | None:
    return table.whole(key, least=1)


def _base_url(table: Table, key: str) -> str | None:
    value = table.text(key)
    if value is not None and not is_base_url(value):
        path = ".".join(map(str, (*table.path, key)))
        table.report("GD012", "error", f"{path} {NOT_A_BASE_URL}.", key=key)
        return None
    return None if value is None else value.rstrip("/")


def _headers(table: Table, key: str) -> dict[str, str] | None:
    inner = table.table(key)
    found = {}
    for name in () if inner is None else inner.values:
        value = cast(Table, inner).text(name)
        path = f"{'.'.join(map(str, table.path))}.headers.{name}"
        if _SECRET_WORDS.search(name):
            words = f"{path}: {_NO_KEYS_HERE}."
        elif value is None:
            continue
        elif not _HEADER.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            words = f"{path} is no header that can be sent: it is plain text."
        else:
            found[name.lower()] = value
            continue
        cast(Table, inner).report("GD012", "error", words, key=name)
    return found


def _timeouts(table: Table, key: str) -> Timeouts | None:
    def seconds(inner: Table, name: str) -> float | None:
        return inner.number(name, least=0.001, most=_MOST_SECONDS)

    return _struct(table, key, Timeouts, dict.fromkeys(_fields(Timeouts), seconds))


def _retries(table: Table, key: str) -> Retries | None:
    def seconds(inner: Table, name: str) -> float | None:
        return inner.number(name, least=0, most=_MOST_SECONDS)

    def most(inner: Table, name: str) -> int | None:
        return inner.whole(name, least=0)

    readers = {"most": most, "base_seconds": seconds, "cap_seconds": seconds}
    return _struct(table, key, Retries, readers)


def _pace(table: Table, key: str) -> Pace | None:
    def whole(inner: Table, name: str) -> int | None:
        value = inner.number(name, least=1, most=_MOST_AT_ONCE * 10_000)
        return None if value is None else inner.whole(name, least=1)

    def flag(inner: Table, _name: str) -> bool | None:
        return inner.flag("adaptive")

    readers: dict[str, Callable[[Table, str], object]] = dict.fromkeys(
        _fields(Pace), whole
    )
    readers["is_adaptive"] = flag
    return _struct(table, key, Pace, readers, names={"adaptive": "is_adaptive"})


def _struct(
    table: Table,
    key: str,
    kind: type[_T],
    readers: Mapping[str, Callable[[Table, str], object]],
    *,
    names: Mapping[str, str] | None = None,
) -> _T | None:
    """Read a table into a struct: what is not in it is as it is without."""
    inner = table.table(key)
    if inner is None:
        return None
    spelled = {field: field for field in readers} | {
        field: name for name, field in (names or {}).items()
    }
    check_all_keys(inner, spelled.values())
    values = {
        field: value
        for field, name in spelled.items()
        if (value := readers[field](inner, name)) is not None
    }
    return kind(**values)


def _fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(field.name for field in msgspec.structs.fields(kind))


_READERS: dict[str, tuple[str, Callable[[Table, str], object]]] = {
    "dialect": ("dialect", _dialect),
    "flavour": ("flavour", Table.text),
    "base_url": ("base_url", _base_url),
    "headers": ("headers", _headers),
    "history": ("history", _history),
    "stream": ("streams", Table.flag),
    "plain_key": ("sends_plain_key", Table.flag),
    "model": ("model", Table.text),
    "timeouts": ("timeouts", _timeouts),
    "retries": ("retries", _retries),
    "pace": ("pace", _pace),
    "thinking": ("thinking", _thinking),
    "betas": ("betas", _betas),
    "max_tokens": ("max_tokens", _tokens),
}
"""What can be said of a server: the key, what it is called here, and its reader."""

ANTHROPIC_KEYS = ("thinking", "betas", "max_tokens")
"""Keys that only a server of that dialect has."""

SERVER_KEYS = (*_READERS, "key_env")
"""All keys of a server."""
