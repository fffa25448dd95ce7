"""What may be sent where, and what became of it in plain words: nothing but functions.

`checked_place` and `checked_headers` stand between settings and the wire: a key in the
clear, a name and password in a URL or a line break in a header stop here, and the
sentence that says so has neither the key nor the header's value in it.
"""

import ipaddress
import re
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping

import h11

from gambit_actors.providers.errors import ProviderNotReady

MOST_REASON_CHARACTERS = 300

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
# White space, control characters, and the backslash, which parsers read in two ways.
_NOT_IN_URL = re.compile(r"[\x00-\x20\x7f\\]")
# How a message ends and how long a connection lives is not for settings to say.
_OURS = frozenset(
    {"connection", "content-length", "host", "te", "trailer", "transfer-encoding"}
)
# How the library that reads HTTP repeats what it read.
_REPEATED = re.compile(r": b(?:ytearray\(b)?['\"]")
_QUOTED = re.compile(r'"[^"]*"')
_UTF_8 = frozenset({"", "ascii", "us-ascii", "utf-8", "utf8"})
_ENCODINGS = frozenset({"br", "compress", "deflate", "gzip", "zstd"})
_PORTS = range(1, 65_536)
_KEY_WORDS = ("auth", "cookie", "key", "secret", "token")


def checked_headers(provider: str, headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a request, in lower case, with what we add to all.

    Raises:
        ProviderNotReady: one of them cannot be sent.
    """
    checked: dict[str, str] = {}
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ProviderNotReady(provider, f"{cut(name)!r} is no name for a header")
        if not _HEADER_VALUE.fullmatch(value):
            raise ProviderNotReady(
                provider,
                f"the header {cut(name)} has a line break in it, or another character "
                "that no header can carry; is there one at the end of a key?",
            )
        if name.lower() in _OURS:
            raise ProviderNotReady(provider, f"the header {name} cannot be set")
        checked[name.lower()] = value.strip(" \t")
    # Streams are read as they come, and a few bytes must not become many.
    checked["accept-encoding"] = "identity"
    return checked


def checked_text(provider: str, url: str) -> str:
    """The text of a URL that every parser reads alike.

    Raises:
        ProviderNotReady: it is none.
    """
    if _NOT_IN_URL.search(url):
        raise ProviderNotReady(
            provider, "its URL has a space, a control character or a backslash in it"
        )
    return url


def check_place(
    provider: str, *, scheme: str, host: str, port: int | None, userinfo: bytes
) -> None:
    """Refuse a URL that leads nowhere, or has a password in it.

    Raises:
        ProviderNotReady: it does.
    """
    if scheme not in {"http", "https"}:
        raise ProviderNotReady(provider, "its URL begins with neither http nor https")
    if not host:
        raise ProviderNotReady(provider, "its URL has no host")
    if port is not None and port not in _PORTS:
        raise ProviderNotReady(provider, f"its URL has no port that can be: {port}")
    if userinfo:
        raise ProviderNotReady(
            provider, "its URL has a name or a password in it; set a key instead"
        )


def check_secrecy(provider: str, host: str, headers: Mapping[str, str]) -> None:
    """Refuse to send a key where everybody on the way can read it.

    Raises:
        ProviderNotReady: one of the headers is a key.
    """
    for name in headers:
        if any(word in name.lower() for word in _KEY_WORDS):
            raise ProviderNotReady(
                provider,
                f"the header {name} would go to {host} in the clear; use https, or "
                "set plain_key = true for this server if its network is your own",
            )


def joined_headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers of an answer by lower-case name; repeated ones joined by commas."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in pairs:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def media_type_of(stated: str) -> str:
    """What a content type says a body is; empty if that is nothing we can tell.

    It may come several times over, which is fine as long as it says the same. A text
    in another encoding than UTF-8 is nothing we can read.
    """
    kinds: set[str] = set()
    quoted = _QUOTED.sub(lambda text: re.sub("[,;]", " ", text[0]), stated.lower())
    for one in quoted.split(","):
        kind, *settings = one.split(";")
        kinds.add(kind.strip())
        for setting in settings:
            name, _, value = setting.partition("=")
            if name.strip() == "charset" and value.strip(" \t\"'") not in _UTF_8:
                return ""
    return kinds.pop() if len(kinds) == 1 else ""


def shown_encoding(encoding: str) -> str:
    """An encoding of a body if it is one; anything else may have a key in it."""
    return encoding if encoding in _ENCODINGS else "something that nobody knows"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, and no packet to it can be read by others."""
    name = host.lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def reason_of(error: BaseException, host: str, *, port: int, provider: str = "") -> str:
    """Why there was no connection, in one plain sentence.

    The library that connects has wrapped what the system said, several times.
    """
    for cause in causes(error):
        match cause:
            case ssl.SSLCertVerificationError():
                return f"the certificate of {host} is not trusted: " + cut(
                    cause.verify_message
                )
            case ssl.SSLError():
                said = (cause.reason or "handshake").lower().replace("_", " ")
                return f"{host} and we found no way to talk over TLS: {cut(said)}"
            case socket.gaierror() | UnicodeError():
                return f"there is no host called {cut(host)}"
            case ConnectionRefusedError():
                is_here = provider == "ollama" and is_loopback(host)
                hint = "; start it with: ollama serve" if is_here else ""
                return f"nothing takes connections at {host}, port {port}{hint}"
            case OSError(strerror=str(said)):
                return f"{host}: {cut(said)}"
    return cut(str(error)) or f"{host} took no connection"


def refuser_of(
    error: BaseException, raw_host: bytes, called: tuple[str, int]
) -> tuple[str, int]:
    """Who took no connection: the host that is asked, or the proxy on the way there.

    Args:
        error: what went wrong.
        raw_host: who was to be asked, as it is in the URL.
        called: the host and the port that a connection was to be made to, if it came
            to that.
    """
    host, (own, port) = raw_host.decode("ascii", "replace"), called
    # Through a proxy's tunnel, TLS is spoken with whoever is behind it.
    is_tls = any(isinstance(cause, ssl.SSLError) for cause in causes(error))
    return (host if is_tls or own in ("", host) else f"the proxy {own}"), port


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error and all it comes from, the outermost first."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        cause = todo.pop(0)
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            todo += cause.exceptions
        todo += [cause.__cause__, cause.__context__]


def is_garbage(error: BaseException) -> bool:
    """Whether a server sent something that is not HTTP, rather than nothing."""
    return any(isinstance(cause, h11.RemoteProtocolError) for cause in causes(error))


def loss_of(error: BaseException) -> str:
    """How a connection was lost, in a few words."""
    for cause in causes(error):
        if isinstance(cause, OSError) and cause.strerror:
            return cut(cause.strerror)
    return what_of(error) or "it was closed"


def what_of(error: BaseException) -> str:
    """What is wrong with bytes that are no HTTP, without them: keys may be in them."""
    return cut(_REPEATED.split(str(error))[0])


def cut(text: str) -> str:
    """As much of a text from elsewhere as a message should have, in one line."""
    line = " ".join(text.split())
    if len(line) <= MOST_REASON_CHARACTERS:
        return line
    return line[: MOST_REASON_CHARACTERS - 1] + "…"
