"""Numbers as people read them."""

import math

_DIGITS = 4


def cost_text(cost: float) -> str:
    """An amount of money with four digits that count, and never with an exponent."""
    if cost == 0:
        return "0"
    places = _DIGITS - 1 - math.floor(math.log10(abs(cost)))
    text = f"{cost:.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def counted(number: int, one: str, many: str) -> str:
    """A number of something: ``1 call``, ``2 calls``."""
    return f"{number} {one if number == 1 else many}"
