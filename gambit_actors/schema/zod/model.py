"""What expressions can be worth: plain values, functions, and Zod schemas.

Strings, numbers, booleans and null are Python's own; an array is a tuple and an object
is a dict that nobody changes. Everything else has a class here.
"""

from collections.abc import Callable
from enum import Enum
from typing import Literal, TypeAlias

import msgspec
from tree_sitter import Node

from gambit_actors.openresponses.base import JSONValue

Value: TypeAlias = object
"""Anything an expression can be worth."""

UnknownKeys: TypeAlias = Literal["strip", "refuse", "allow"]


class Mark(Enum):
    """Values that are not values."""

    UNDEFINED = "undefined"
    BAD = "bad"  # Something was wrong and has been reported; say no more about it.


UNDEFINED = Mark.UNDEFINED
BAD = Mark.BAD


class Dynamic(msgspec.Struct, frozen=True):
    """A value that only exists when the code runs, such as today's date."""

    what: str


class Global(msgspec.Struct, frozen=True):
    """A global of JavaScript, such as ``Object`` or ``Object.keys``."""

    name: str


class ZodPath(msgspec.Struct, frozen=True):
    """A member of the ``zod`` package: ``()`` is ``z``, ``("coerce",)`` next to it."""

    path: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The way authors write it."""
        return ".".join(("z", *self.path))


class Namespace(msgspec.Struct, frozen=True, eq=False):
    """All exports of another file, looked up by name."""

    find: Callable[[str, Node], Value]


class Regex(msgspec.Struct, frozen=True):
    """A regular expression literal."""

    pattern: str
    flags: str


class Function(msgspec.Struct, frozen=True, eq=False):
    """A function of the module, not run until it is called."""

    node: Node
    call: Callable[[tuple[Value, ...], Node], Value]


class Thunk:
    """A schema that is worked out when it is first needed: the inside of a lazy."""

    def __init__(
        self, name: str, spot: Value, compute: Callable[[], "ZodType"]
    ) -> None:
        self.name = name
        self.spot = spot
        self._compute = compute
        self._schema: ZodType | None = None

    def resolve(self) -> "ZodType":
        """The schema; the same object every time."""
        if self._schema is None:
            self._schema = self._compute()
        return self._schema


class ZodType(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One schema, with the wrappers around it folded into flags.

    Attributes:
        kind: which constructor made it, after aliases.
        keywords: JSON Schema keywords that stand for checks.
        checks: further subschemas that must hold, for keywords needed twice.
        notes: title, description, examples.
        shape: the properties of an object.
        items: members of a union, tuple or intersection; the element of an array.
        rest: what other keys of an object or record, or later entries of a tuple, are.
        key: what the keys of a record are.
        default: the value of a missing key; `UNDEFINED` if there is none.
        thunk: the inside of a lazy.
        depth: how many schemas deep this one goes.
    """

    kind: str
    keywords: dict[str, JSONValue] = {}
    checks: tuple[dict[str, JSONValue], ...] = ()
    notes: dict[str, JSONValue] = {}
    shape: dict[str, "ZodType"] = {}
    items: tuple["ZodType", ...] = ()
    rest: "ZodType | None" = None
    key: "ZodType | None" = None
    unknown_keys: UnknownKeys = "strip"
    is_optional: bool = False
    is_nullable: bool = False
    default: JSONValue | Mark = UNDEFINED
    thunk: Thunk | None = None
    depth: int = 1

    def __post_init__(self) -> None:
        inner = [*self.shape.values(), *self.items]
        inner += [other for other in (self.rest, self.key) if other is not None]
        depth = 1 + max((one.depth for one in inner), default=0)
        msgspec.structs.force_setattr(self, "depth", depth)

    @property
    def is_wrapped(self) -> bool:
        """Whether optional, nullable or default stand around it."""
        return self.is_optional or self.is_nullable or self.has_default

    @property
    def has_default(self) -> bool:
        """Whether a missing key gets a value."""
        return self.default is not UNDEFINED

    @property
    def width(self) -> int:
        """How much work it is to copy."""
        return 1 + len(self.shape) + len(self.items)


ANY = ZodType(kind="any")
"""Takes everything; also stands in where a schema could not be read."""
