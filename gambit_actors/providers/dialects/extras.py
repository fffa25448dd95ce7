"""Which further keys of a request go out: not those that get around its limits.

A deck may send any key to a server. Some ask for several answers, of which one is read
and all are paid for. Others say how long the answer may be, under a name that is not
the standard's; where the request has a limit already, they would undo it.
"""

import msgspec

from gambit_actors.openresponses.base import Extra, JSONValue
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.providers.dialects.dialect import Unsent

# By their letters alone: Gemini, for one, takes keys in either way of writing them.
_ANSWERS = frozenset(
    ("n", "bestof", "candidatecount", "numcandidates", "numreturnsequences")
)
_LENGTHS = frozenset(
    (
        "maxcompletiontokens",
        "maxnewtokens",
        "maxoutputtokens",
        "maxtokens",
        "maxtokenstosample",
        "npredict",
        "numpredict",
    )
)
# Where servers have such settings that do not stand at the top.
_GROUPS = frozenset(("generationconfig", "options", "parameters", "samplingparams"))


def without_ways_around(
    request: CreateResponse, unsent: list[Unsent]
) -> CreateResponse:
    """The request without the further keys that would get around its limits.

    Args:
        request: what is asked.
        unsent: takes what is left out.
    """
    if not request.extra:
        return request
    is_limited = request.max_output_tokens is not None
    kept = _kept(request.extra, "", unsent, is_limited=is_limited)
    if kept == request.extra:
        return request
    return msgspec.structs.replace(request, extra=Extra(kept))


def _kept(
    fields: dict[str, JSONValue], path: str, unsent: list[Unsent], *, is_limited: bool
) -> dict[str, JSONValue]:
    kept: dict[str, JSONValue] = {}
    for key, value in fields.items():
        letters = key.replace("_", "").lower()
        if letters in _ANSWERS:
            reason = "one answer is read, and more would be paid for; ask again instead"
            unsent.append(Unsent(path + key, reason))
        elif letters in _LENGTHS and is_limited:
            reason = "the request has a limit for its answer already"
            unsent.append(Unsent(path + key, reason))
        elif letters in _GROUPS and isinstance(value, dict) and not path:
            kept[key] = _kept(value, f"{key}.", unsent, is_limited=is_limited)
        else:
            kept[key] = value
    return kept
