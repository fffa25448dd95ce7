"""What the environment says, and files that stand in for it.

An environment is handed in as a mapping. A variable that is blank counts as not set.
What is wrong with one is told by its name; its value is not repeated.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec

from gambit_actors.errors import InvalidSettings
from gambit_actors.providers.endpoints import Secret
from gambit_actors.settings.addresses import (
    NOT_A_BASE_URL,
    NOT_A_PROXY,
    is_base_url,
    is_proxy,
)
from gambit_actors.trace.events import Mode

CHAT_FALLBACK = "GAMBIT_CHAT_FALLBACK"
RESPONSES_MODE = "GAMBIT_RESPONSES_MODE"
OPENROUTER_RESPONSES = "GAMBIT_OPENROUTER_RESPONSES"

FLAGS = {
    CHAT_FALLBACK: "1 keeps conversations as chats, and asks servers in Chat"
    " Completions where they know it",
    RESPONSES_MODE: "1 is the default; 0 is the same as GAMBIT_CHAT_FALLBACK=1",
    OPENROUTER_RESPONSES: "1 asks OpenRouter in Open Responses, 0 in Chat Completions;"
    " without it that goes by the mode",
}
"""The variables that are 0 or 1, and what they do."""

PROXIES = {
    "https": "HTTPS_PROXY",
    "http": "HTTP_PROXY",
    "all": "ALL_PROXY",
    "no": "NO_PROXY",
}
"""The variables that name a proxy, also in small letters."""

# What a header can carry. Anything else is a slip in copying the key.
_KEY = re.compile(r"[!-~]+")
_KEY_NAME = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)S?(?:_?\d+)?$", re.IGNORECASE
)
_LINE = re.compile(
    r"""
    \s*(?:export\s+)?(?P<name>[A-Za-z_]\w*)\s*=\s*
    (?: "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>[^']*)' | (?P<bare>.*?) )
    \s*(?:(?<=[\s"'])\#.*)?
    """,
    re.VERBOSE | re.ASCII,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """What the flags come to.

    Attributes:
        mode: how conversations are traced and saved, and servers asked.
        is_openrouter_chat: whether OpenRouter is asked in Chat Completions.
    """

    mode: Mode
    is_openrouter_chat: bool


def flags_from(
    environment: Mapping[str, str], *, responses: bool | None = None
) -> Flags:
    """Read the flags.

    Args:
        environment: where they are.
        responses: what the command line says, which counts for more.

    Raises:
        InvalidSettings: one is neither 0 nor 1, or two of them disagree.
    """
    chat = _flag(environment, CHAT_FALLBACK)
    wanted = _flag(environment, RESPONSES_MODE)
    router = _flag(environment, OPENROUTER_RESPONSES)
    if responses is not None:
        is_chat = not responses
    elif chat and wanted:
        msg = (
            f"{CHAT_FALLBACK}=1 asks for chat mode, and {RESPONSES_MODE}=1 for the"
            " opposite: unset one of them"
        )
        raise InvalidSettings(msg)
    else:
        is_chat = chat or wanted is False
    return Flags(
        mode="chat" if is_chat else "responses",
        is_openrouter_chat=is_chat if router is None else not router,
    )


def proxies_from(environment: Mapping[str, str]) -> dict[str, str]:
    """The proxies, by scheme; ``no`` has the hosts that are asked without one.

    Raises:
        InvalidSettings: one that counts for somebody is none.
    """
    found, names = {}, {}
    for scheme, name in PROXIES.items():
        for spelled in (name.lower(), name):
            value = text_of(environment, spelled)
            if value is not None:
                found[scheme], names[scheme] = value, spelled
                break
    for scheme in _proxies_that_count(found):
        if not is_proxy(found[scheme]):
            raise InvalidSettings(f"{names[scheme]} {NOT_A_PROXY}")
    return found


def _proxies_that_count(found: Mapping[str, str]) -> list[str]:
    """The schemes whose proxies are asked; that for all is for those without one."""
    if found.get("no") == "*":
        return []
    others = found.keys() - {"no", "all"}
    is_for_some = "all" in found and others != {"https", "http"}
    return sorted({*others, "all"} if is_for_some else others)


def key_from(environment: Mapping[str, str], names: Sequence[str]) -> Secret | None:
    """The key in the first of these variables that has one.

    Raises:
        InvalidSettings: what is in it is no key.
    """
    for name in names:
        value = text_of(environment, name)
        if value is None:
            continue
        if not _KEY.fullmatch(value):
            msg = f"{name} has characters in it that no key has: copy the key again"
            raise InvalidSettings(msg)
        return Secret(value, source=name)
    return None


def secrets_in(environment: Mapping[str, str]) -> list[Secret]:
    """The values of all variables whose names say that there is a key in them."""
    return [
        Secret(value, source=name)
        for name in environment
        if _KEY_NAME.search(name) and (value := text_of(environment, name))
    ]


def url_from(environment: Mapping[str, str], names: Sequence[str]) -> str | None:
    """The base URL in the first of these variables that has one.

    Raises:
        InvalidSettings: it is none.
    """
    for name in names:
        value = text_of(environment, name)
        if value is not None:
            if not is_base_url(value):
                raise InvalidSettings(f"{name} {NOT_A_BASE_URL}")
            return value.rstrip("/")
    return None


def text_of(environment: Mapping[str, str], name: str) -> str | None:
    """The value of a variable without space around it; None if it is blank."""
    return environment.get(name, "").strip() or None


def environment_from_text(text: str, *, file: str) -> dict[str, str]:
    """Read a file of variables: ``NAME=value``, one on a line.

    A value may stand in quotes; in double ones a backslash escapes. ``export`` in front
    and comments are passed over. Nothing is filled in for a ``$``.

    Raises:
        InvalidSettings: a line is none of that.
    """
    found = {}
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None or (match["bare"] or "").startswith(("'", '"')):
            msg = f"{file}:{number}: this line is not NAME=value"
            raise InvalidSettings(msg)
        found[match["name"]] = _value_of(match)
    return found


def _value_of(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return re.sub(
            r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), match["double"]
        )
    return match["single"] if match["single"] is not None else match["bare"]


def _flag(environment: Mapping[str, str], name: str) -> bool | None:
    value = text_of(environment, name)
    if value not in (None, "0", "1"):
        raise InvalidSettings(f"{name} can be 0 or 1, and is something else")
    return None if value is None else value == "1"
