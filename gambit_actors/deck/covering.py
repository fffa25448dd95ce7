"""Which entries of a permission cover which others, and what two lists share.

An entry is a path, a host, a variable's name or a program. Each of these has a
`Grammar`: how an entry is spelled, and which entries cover it. All else here is the
same for every grammar.

Two invariants make the lists exact. An entry has one spelling, so covering is looked
up and never guessed. And no entry is the sum of narrower ones (a folder has endlessly
many names in it, a domain endlessly many sub-domains), so an entry that no single
other entry covers is not covered at all. Ports are the exception that nobody writes:
all 65535 of them, listed one by one, do not add up to "any port".

This module knows nothing of decks, layers or the disk: it compares text.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

Entries: TypeAlias = tuple[str, ...]
"""Entries of one grammar, spelled, sorted, none of them covered by another."""

# As long as a path can be on Linux. The coverers of an entry are as many as it has
# parts, so an entry without a limit would be work without a limit.
_MAX_LENGTH = 4096

_MAX_PORT = 65535
_ANY = "*"

# ASCII only. An international name has its xn-- form for this. Compared as written,
# "evil.com/.example.com" with a full-width slash would be under example.com here, and
# evil.com to a client that folds the slash.
_NAME = r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?"
_HOST = re.compile(
    rf"(?P<host>\*|(?:\*\.)?{_NAME}|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{{1,5}}))?"
)


def _no_crossings(_left: Entries, _right: Entries) -> Iterable[str]:
    return ()


class Grammar(msgspec.Struct, frozen=True, kw_only=True):
    """How the entries of one kind are written and compared.

    Attributes:
        spell: gives the one spelling of an entry; None if it can never match anything.
        coverers: lists every entry that covers a spelled one, itself included.
        whole: the entry that covers all others, where there is one.
        crossings: lists what two lists may share that is in neither of them.
    """

    spell: Callable[[str], str | None]
    coverers: Callable[[str], Iterator[str]]
    whole: str | None = None
    crossings: Callable[[Entries, Entries], Iterable[str]] = _no_crossings


def is_usable(entry: str, grammar: Grammar) -> bool:
    """Whether an entry can match anything at all.

    For whoever reads declarations: one that can not is a mistake to tell its author.
    """
    return grammar.spell(entry) is not None


def simplified(entries: Iterable[str], grammar: Grammar) -> Entries:
    """Write a list in the one way that all lists with its meaning are written.

    What can never match is left out: a list may only lose by it.
    """
    spellings = (grammar.spell(entry) for entry in entries)
    spelled = {entry for entry in spellings if entry is not None}

    def is_widest(entry: str) -> bool:
        others = (other for other in grammar.coverers(entry) if other != entry)
        return spelled.isdisjoint(others)

    return tuple(sorted(filter(is_widest, spelled)))


def is_covered(entry: str, entries: Iterable[str], grammar: Grammar) -> bool:
    """Whether all that a spelled entry stands for is in a list."""
    granted = frozenset(entries)
    return any(other in granted for other in grammar.coverers(entry))


def shared(left: Entries, right: Entries, grammar: Grammar) -> Entries:
    """List exactly what is in both of two lists."""
    # Where two entries overlap, one is inside the other: the inner one is shared.
    # Only a host with a port can overlap otherwise, hence the crossings.
    candidates = {*left, *right, *grammar.crossings(left, right)}
    granted = [frozenset(left), frozenset(right)]
    return simplified(
        (
            entry
            for entry in candidates
            if all(is_covered(entry, entries, grammar) for entries in granted)
        ),
        grammar,
    )


def host_entry(host: str, port: int) -> str:
    """Write a host and a port that somebody wants to reach as an entry.

    Args:
        host: a name in ASCII, or an address; an IPv6 address with brackets or without.
        port: its number.

    Returns:
        An entry to be spelled, which fails if there can be no such host.
    """
    if _ANY in host:
        return ""  # One wants to reach a host, never a pattern.
    is_bare_address = ":" in host and not host.startswith("[")
    return f"[{host}]:{port}" if is_bare_address else f"{host}:{port}"


def _spell_path(text: str) -> str | None:
    # ".." is not taken out here: after a link it does not lead where it seems to.
    # Two slashes at the start are another root on some systems.
    steps = text.split("/")
    if not _is_plain(text) or steps[0] or text.startswith("//") or ".." in steps:
        return None
    return "/" + "/".join(step for step in steps if step not in {"", "."})


def _path_coverers(path: str) -> Iterator[str]:
    yield path
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        yield path


def _spell_variable(text: str) -> str | None:
    has_inner_star = _ANY in text[:-1]
    return text if _is_plain(text) and "=" not in text and not has_inner_star else None


def _variable_coverers(name: str) -> Iterator[str]:
    yield name
    # A prefix covers itself as a name: AWS_* covers AWS_.
    prefix = name.removesuffix(_ANY)
    for length in range(len(prefix), -1, -1):
        yield prefix[:length] + _ANY


def _spell_text(text: str) -> str | None:
    return text if _is_plain(text) else None


def _only_itself(entry: str) -> Iterator[str]:
    yield entry


def _is_plain(text: str) -> bool:
    return 0 < len(text) <= _MAX_LENGTH and "\0" not in text


def _spell_host(text: str) -> str | None:
    # ASCII is asked before lower(), which makes a "k" of the Kelvin sign.
    is_plain = _is_plain(text) and text.isascii()
    found = _HOST.fullmatch(text.lower()) if is_plain else None
    host = None if found is None else _spell_host_name(found["host"])
    if found is None or host is None:
        return None
    if found["port"] is None:
        return host
    port = int(found["port"])
    return f"{host}:{port}" if 0 < port <= _MAX_PORT else None


def _spell_host_name(host: str) -> str | None:
    if host.startswith("["):
        try:
            return f"[{ipaddress.IPv6Address(host[1:-1]).compressed}]"
        except ValueError:
            return None
    name = host.removesuffix(".")  # The root, which all names have.
    # What ends in a number is an address, and its parts are no domains: *.0.0.1
    # must not cover 127.0.0.1.
    ends_in_number = name.rpartition(".")[2][0].isdigit()
    return None if name.startswith("*.") and ends_in_number else name


def _host_coverers(entry: str) -> Iterator[str]:
    host, port = _split_port(entry)
    for name in _host_name_coverers(host):
        yield name
        if port:
            yield f"{name}:{port}"


def _host_name_coverers(host: str) -> Iterator[str]:
    yield host
    if host == _ANY:
        return
    if not host.startswith("["):
        rest = host.removeprefix("*.")
        while rest := rest.partition(".")[2]:
            yield f"*.{rest}"
    yield _ANY


def _host_crossings(left: Entries, right: Entries) -> Iterator[str]:
    """Give each host without a port the ports of the other list.

    ``*:80`` and ``example.com`` share ``example.com:80``.
    """
    for some, others in ((left, right), (right, left)):
        ports = {port for _, port in map(_split_port, others) if port}
        for host, own_port in map(_split_port, some):
            if not own_port:
                yield from (f"{host}:{port}" for port in ports)


def _split_port(entry: str) -> tuple[str, str]:
    if entry.endswith("]") or ":" not in entry:
        return entry, ""
    host, _, port = entry.rpartition(":")
    return host, port


PATHS = Grammar(spell=_spell_path, coverers=_path_coverers, whole="/")
"""Absolute paths; a folder covers all that is under it."""

HOSTS = Grammar(
    spell=_spell_host,
    coverers=_host_coverers,
    whole=_ANY,
    crossings=_host_crossings,
)
"""``host`` or ``host:port``; ``*.`` stands for sub-domains, ``*`` for any host."""

VARIABLES = Grammar(spell=_spell_variable, coverers=_variable_coverers, whole=_ANY)
"""Names of environment variables, or a prefix of them that ends in ``*``."""

COMMANDS = Grammar(spell=_spell_text, coverers=_only_itself)
"""Names of commands; each stands for itself."""

PROGRAMS = Grammar(spell=_spell_path, coverers=_only_itself)
"""Absolute paths of programs; each stands for itself."""
