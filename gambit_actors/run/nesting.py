"""How deep JSON is nested, and how deep it may be for a log to keep it.

What comes from models and from code is held to this where it comes in, so that nothing
is found out when it is written down: by then it may have had effects. Plain functions
of text.
"""

import re

MOST_LEVELS = 200
"""How deep a value may be nested. A log reads twice that, with what it puts around."""

TOO_DEEP = f"it is nested deeper than {MOST_LEVELS} levels"

# A string, whatever is in it, or one bracket.
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def is_too_deep(text: str) -> bool:
    """Whether JSON is nested deeper than `MOST_LEVELS`; for other text, perhaps."""
    # Each level has a bracket of its own, and nearly no text has so many.
    if text.count("[") + text.count("{") <= MOST_LEVELS:
        return False
    depth = 0
    for token in _TOKENS.finditer(text):
        first = token[0][0]
        if first in "[{":
            depth += 1
            if depth > MOST_LEVELS:
                return True
        elif first in "]}":
            depth -= 1
    return False
