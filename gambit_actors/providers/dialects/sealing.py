"""Sealed reasoning: what one provider wants back word for word, in an item of ours.

Reasoning often goes back to the model that had it, with a signature that only its
provider can make. Open Responses has one place for such things, the
``encrypted_content`` of a reasoning item, which every log keeps and no reader opens.
A dialect whose provider wants something else back seals that something here, under the
dialect's name, so that no other provider is ever sent it.

What has no seal of ours came from a server of Open Responses, sealed by the server.
"""

import base64
import binascii
import re
from collections.abc import Callable

import msgspec

from gambit_actors.openresponses.base import JSONValue

_MARK = "gambit-sealed:"
_SEALED = re.compile(rb'(gambit-sealed:[^":\\]+:)([A-Za-z0-9+/]+={0,2})')


def seal(dialect: str, value: JSONValue) -> str:
    """Put a JSON value into a form that `unseal` opens for the same dialect."""
    data = base64.b64encode(msgspec.json.encode(value)).decode()
    return f"{_MARK}{dialect}:{data}"


def is_sealed(text: str) -> bool:
    """Whether a text was sealed here, by whatever dialect."""
    return text.startswith(_MARK)


def unseal(dialect: str, text: str | None) -> JSONValue:
    """Give the value that a dialect sealed; None if it was not this one, or damaged."""
    head = f"{_MARK}{dialect}:"
    if text is None or not text.startswith(head):
        return None
    try:
        data = base64.b64decode(text[len(head) :], validate=True)
        return msgspec.json.decode(data)
    except (binascii.Error, ValueError):
        return None


def conceal_sealed(data: bytes, conceal: Callable[[bytes], bytes]) -> bytes:
    """Strike out of what is sealed in a JSON document what must not be seen."""

    def concealed(sealed: re.Match[bytes]) -> bytes:
        try:
            value = base64.b64decode(sealed[2], validate=True)
        except binascii.Error:
            return sealed[0]  # Not by us.
        return sealed[1] + base64.b64encode(conceal(value))

    return _SEALED.sub(concealed, data) if _MARK.encode() in data else data
