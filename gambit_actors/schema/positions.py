"""Where in the text of a JSON document a value stands."""

import json
import re
from collections.abc import Sequence

# One token of a document that is known to be JSON: a string, or a mark. Numbers and
# words need not be told apart from the space around them.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s"\[\]{}:,]+', re.DOTALL)


def position_of(text: str, steps: Sequence[str | int]) -> tuple[int, int]:
    """Find a value by its keys; line and column are counted from 1.

    Where the keys lead nowhere, it is the last value on the way. The text must be JSON.
    """
    wanted = [str(step) for step in steps]
    tokens = list(_TOKEN.finditer(text))
    at = 0
    for key in wanted:
        entry = _entry(tokens, at, key)
        if entry is None:
            break
        at = entry
    offset = tokens[at].start() if tokens else 0
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1


def _entry(tokens: list[re.Match[str]], at: int, key: str) -> int | None:
    """The first token of an entry of the object or list that starts at a token."""
    opening = tokens[at][0]
    if opening not in ("{", "["):
        return None
    index, depth, count, found = at + 1, 0, 0, None
    while index < len(tokens) and depth >= 0:
        mark = tokens[index][0]
        if depth == 0 and opening == "[" and str(count) == key and mark != "]":
            return index
        if depth == 0 and mark == ":" and _text(tokens[index - 1][0]) == key:
            found = index + 1  # As in every reader, the last of equal keys counts.
        count += depth == 0 and mark == ","
        depth += (mark in "{[") - (mark in "}]")
        index += 1
    return found


def _text(token: str) -> str:
    return str(json.loads(token)) if token.startswith('"') else token
