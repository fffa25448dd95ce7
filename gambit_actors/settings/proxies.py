"""Through which proxy a server is asked, as ``HTTPS_PROXY`` and its kind have it."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from gambit_actors.settings.addresses import with_scheme


def proxy_for(url: str, proxies: Mapping[str, str]) -> str | None:
    """The proxy for a URL; None if it is asked without.

    Args:
        url: where the server is. This machine is asked without.
        proxies: by scheme; ``all`` for the others, ``no`` for hosts without: names,
            with all that is below them, addresses and networks, or ``*``.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy is None or _is_here(host) or _is_excepted(host, parts.port, proxies):
        return None
    return with_scheme(proxy)


def _is_excepted(host: str, port: int | None, proxies: Mapping[str, str]) -> bool:
    return any(
        _fits(rule, host, port)
        for entry in proxies.get("no", "").split(",")
        if (rule := entry.strip().lower())
    )


def _fits(rule: str, host: str, port: int | None) -> bool:
    if rule == "*":
        return True
    address = _address(host)
    if address is not None:
        try:
            return address in ipaddress.ip_network(rule, strict=False)
        except ValueError:
            return False
    name, _, wanted = rule.partition(":")
    if wanted and wanted != str(port):
        return False
    name = name.lstrip("*.")
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _is_here(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
