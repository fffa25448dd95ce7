"""What a reader says about a file: one finding, its place, and what to do.

A `Diagnostic` is a value, never an exception and never a log line; whoever asked for
the reading decides whether a warning is printed or refuses the file. Codes are stable:
a code keeps its meaning for good, and one that falls out of use is not given again.
"""

from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import force_setattr

Severity: TypeAlias = Literal["error", "warning", "note"]
"""An error means that a file cannot be used, a warning that it does not do what its
author may think, and a note only tells what is recommended."""

_MAX_CHARACTERS = 1000

CODES: dict[str, str] = {
    "GS001": "The file is not valid TypeScript.",
    "GS002": "The module has no default export.",
    "GS003": "The default export is not a Zod schema.",
    "GS004": "The code uses a construct that cannot be read without running it.",
    "GS005": "Zod has no such constructor, or it is not one that can be read.",
    "GS006": "The schema has no such method or property.",
    "GS007": "A name is used that is not defined.",
    "GS008": "An argument or operand is not of the form its place asks for.",
    "GS009": "An import names a module that cannot be read.",
    "GS010": "An import names something the module does not export.",
    "GS011": "A definition or an import leads back to itself.",
    "GS012": "Expressions, helper calls or schemas are nested too deeply.",
    "GS013": "The text, or what it expands to, is too large.",
    "GS014": "A recursive schema refers to itself with nothing in between.",
    "GS015": "The schema describes values that JSON does not have.",
    "GS020": "Code attached to a schema is ignored, because it cannot be run.",
    "GS021": "A value is only known at run time, so it is left out.",
    "GS022": "A date is read as text in the date-time format.",
    "GS023": "A flag of a regular expression is ignored.",
    "GS024": "The fallback of a catch is used for missing values only.",
    "GS025": "A coercion is not applied: only values of the target type fit.",
    "GS026": "A statement is not run.",
    "GS027": "A check of a schema has no JSON Schema form and is ignored.",
    "GS040": "The schema file does not exist.",
    "GS041": "The reference is not to a kind of schema that can be read.",
    "GS042": "There is no built-in schema with this URI.",
    "GS043": "A built-in schema is named in a spelling that is going away.",
    "GS044": "The file is not JSON.",
    "GS045": "The file is JSON, and not a JSON Schema.",
    "GS046": "The Python type cannot be found.",
    "GS047": "The Python type has no JSON form.",
    "GS048": "A word in a JSON Schema is not a keyword of it, and is ignored.",
    "GS049": "A Zod schema asks for something that values cannot be checked for.",
}
"""Every code of this package, with what it means in one line."""


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """Text to put in the place of other text; offsets are in characters, from 0."""

    start: int
    end: int
    text: str


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """One finding about a file.

    Attributes:
        code: a key of `CODES`, or of the same table of the package that found it.
        severity: how bad it is.
        message: one sentence on one line: what is the matter, and what to do.
        file: the file, as it was named by whoever asked.
        line: counted from 1.
        column: counted from 1, in characters.
        hint: a further idea, where there is one.
        edits: what to change in the file to be rid of it, where that is known; all
            of them or none.
    """

    code: str
    severity: Severity
    message: str
    file: str
    line: int
    column: int
    hint: str | None = None
    edits: tuple[Edit, ...] = ()

    def __post_init__(self) -> None:
        # Words that quote an author may have anything in them; show it, do not obey it.
        force_setattr(self, "message", _one_line(self.message))
        if self.hint is not None:
            force_setattr(self, "hint", _one_line(self.hint))


def _one_line(words: str) -> str:
    if len(words) > _MAX_CHARACTERS:
        words = words[:_MAX_CHARACTERS] + "…"
    if words.isprintable():
        return words
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words)
