"""Text from a model on a terminal: wrapped at words, and harmless."""

import re
import unicodedata

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

_LABEL_WIDTH = 8
# Marks that turn the direction of what follows, for the whole rest of the screen.
_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_UNPRINTABLE = frozenset({"Cc", "Cs", "Cn", "Zl", "Zp"})


def printable(text: str) -> str:
    """Text without what could drive a terminal: newlines and tabs stay.

    Spaces and joiners of all scripts are left alone; words fall apart without them.
    """
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if _is_control(character) else character
        for character in text.replace("\r\n", "\n")
    )


def _is_control(character: str) -> bool:
    if character in "\n\t":
        return False
    return (
        unicodedata.category(character) in _UNPRINTABLE or character in _BIDI_CONTROLS
    )


class Flow:
    """Writes pieces of text as they come, and breaks lines between words.

    A terminal breaks a line wherever it ends. Pieces are not words, so a word that
    has begun is held until the next piece shows where it stops.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        # A file has no width; whoever reads it has.
        self._width = console.width if console.is_terminal else None
        self._style = ""
        self._column = 0
        self._word = ""

    def start(self, label: str, *, style: str) -> None:
        """Begin a paragraph with a label in front."""
        self.end_line()
        self._style = style
        self._print(f"{label:<{_LABEL_WIDTH}}", style="bold")

    def write(self, piece: str) -> None:
        """Write the next piece."""
        if self._width is None:
            self._print(printable(piece), style=self._style)
            return
        *done, self._word = re.split(r"(?<=\s)", self._word + printable(piece))
        for word in done:
            self._put(word)

    def end_line(self) -> None:
        """Write what is held and begin a new line, unless at the start of one."""
        self._put(self._word)
        self._word = ""
        if self._column:
            self._console.print()
        self._column = 0

    def _put(self, word: str) -> None:
        if not word:
            return
        end = self._column + cell_len(word.rstrip())
        if self._width and self._column > _LABEL_WIDTH and end > self._width:
            self._console.print()
            self._column = 0
            self._print(" " * _LABEL_WIDTH, style="")
        self._print(word, style=self._style)

    def _print(self, text: str, *, style: str) -> None:
        self._console.print(Text(text, style=style), end="", soft_wrap=True)
        last_line = text.rpartition("\n")[2]
        column = 0 if "\n" in text else self._column
        self._column = column + cell_len(last_line)
