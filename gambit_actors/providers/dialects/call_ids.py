"""Ids and names of calls that came from one server, in a form that another one takes.

A conversation may go on with another model than it began with, and each server has its
own idea of what the id of a call may look like. An id that is refused gets another, the
same one each time, so a call and its output still belong together and a prompt that was
sent before is sent again to the letter.
"""

import hashlib
import re

_KEPT = 40
_NAME_CHARACTERS = 64
_STRANGE = re.compile(r"[^A-Za-z0-9_-]")


def fitting_id(call_id: str, allowed: re.Pattern[str]) -> str:
    """Give an id that a server takes: this one, or else one made from it.

    Args:
        call_id: as another server, or nobody, made it.
        allowed: what the server takes; at least 64 letters, digits, ``_`` and ``-``.
    """
    if allowed.fullmatch(call_id):
        return call_id
    raw = call_id.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2s(raw, digest_size=8).hexdigest()
    return f"{_STRANGE.sub('_', call_id)[:_KEPT] or 'call'}_{digest}"


def fitting_name(name: str) -> str:
    """Give a name that a call may have; models make up some that no tool can have."""
    return _STRANGE.sub("_", name)[:_NAME_CHARACTERS] or "unnamed"
