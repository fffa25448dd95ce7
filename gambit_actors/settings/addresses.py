"""Whether an address is one, told before anybody is asked there.

What passes here can be connected to, or the network says why not. Nothing is looked up.
"""

import ipaddress
import re
from urllib.parse import urlsplit

NOT_A_BASE_URL = (
    "is no base URL, such as https://example.com/v1: it begins with http:// or"
    " https://, names a host and no port beyond 65535, and has no user, question mark"
    " or number sign in it"
)

NOT_A_PROXY = (
    "is no proxy that can be used, such as http://proxy.example.com:3128: it begins"
    " with http:// or https://, and names a host and no port beyond 65535"
)

_BASE_URL = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", re.IGNORECASE)
_PROXY = re.compile(r"https?://(?:[^\s/?#]*@)?[^\s/?#@]+/?", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_FOUR_NUMBERS = re.compile(r"\d+(?:\.\d+){3}")


def is_base_url(text: str) -> bool:
    """Whether paths can be put behind it, and there is no password in it."""
    return _BASE_URL.fullmatch(text) is not None and _leads_somewhere(text)


def is_proxy(text: str) -> bool:
    """Whether requests can be sent through it; ``http`` is meant if it does not say."""
    url = with_scheme(text)
    return _PROXY.fullmatch(url) is not None and _leads_somewhere(url)


def with_scheme(proxy: str) -> str:
    """A proxy as a URL."""
    return proxy if "://" in proxy else f"http://{proxy}"


def _leads_somewhere(url: str) -> bool:
    """Whether the host and the port of a URL are some that there can be."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # An open bracket, or a port that is no number or too large.
        return False
    return port != 0 and (_is_address(host) if ":" in host else _is_name(host))


def _is_name(host: str) -> bool:
    if _FOUR_NUMBERS.fullmatch(host):
        return _is_address(host)
    try:
        # As it is asked for, and back: what begins with xn-- may stand for nothing.
        asked = host.encode("idna")
        asked.decode("idna")
    except UnicodeError:
        return False
    return _NAME.fullmatch(asked.decode()) is not None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
