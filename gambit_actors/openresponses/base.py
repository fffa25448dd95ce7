"""What every wire struct shares: unknown keys are kept, optional keys are never null.

JSON documents of this protocol are open: any object may carry keys nobody told us
about, and any tagged object may be of a type nobody told us about. A struct here
holds such keys in ``extra``; a type that is not known becomes an ``Unknown``.

Two decisions make that cheap.

* Structs refuse unknown fields when decoded natively. So a native decode that
  succeeds has dropped nothing, and one that fails is repeated by the careful
  reader in `reading`, which sorts the strange keys into ``extra``.
* ``extra`` is encoded under a key of its own, and `writing` looks for that key in
  the encoded bytes. It is there for the few documents that have something to
  flatten, and only those pay for it.

This module knows no item, event or request; it does no I/O.
"""

from collections.abc import Callable
from itertools import repeat
from typing import Any, TypeAlias, TypeVar, cast

import msgspec

JSONValue: TypeAlias = Any
"""A value that came out of a JSON document, of any JSON type."""

EXTRA_KEY = "$extra"
UNKNOWN_TAG = "$unknown"

_T = TypeVar("_T")


class Extra(dict[str, JSONValue]):
    """The keys of an object that its struct does not name."""

    # A class of its own, because msgspec hands a type it does not know to a hook:
    # a peer who sends the reserved key cannot get it decoded natively.


NO_EXTRA = Extra()


def refuse_reserved(_kind: type, _value: object) -> object:
    """Refuse what msgspec asks a hook about, so that `reading` takes over.

    `Extra` is the one type of ours that msgspec does not know.
    """
    msg = f"the key {EXTRA_KEY} needs the careful reader"
    raise ValueError(msg)


def written(default: _T) -> _T:
    """Give a field a default that is written out all the same.

    The structs omit what holds its default. Some keys the schema wants always, even
    when null or empty; msgspec never takes a factory's product for a default.
    """
    # A response has two dozen of these, and a call in C is half a call in Python.
    return written_from(repeat(default).__next__)


def written_from(factory: Callable[[], _T]) -> _T:
    """Like `written`, for a default that must not be shared."""
    return msgspec.field(default_factory=factory)


class Open(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,  # A document is a tree: the collector would find nothing in it.
):
    """An object of the wire, with the keys we know as fields and the rest in extra."""

    extra: Extra = msgspec.field(default=NO_EXTRA, name=EXTRA_KEY)

    @classmethod
    def upgrade(cls, fields: dict[str, JSONValue]) -> dict[str, JSONValue]:
        """Bring a form that real peers send into the canonical one.

        Called by the careful reader only. Returns its argument, or a changed copy.
        """
        return fields


class Tagged(Open, frozen=True, kw_only=True):
    """An object that says in ``type`` what it is."""

    @property
    def type(self) -> str:
        """The value of the ``type`` key."""
        return cast(str, self.__struct_config__.tag)

    @classmethod
    def claims(cls, fields: dict[str, JSONValue]) -> bool:
        """Whether an object without a ``type`` is one of these."""
        del fields
        return False


class Unknown(Tagged, frozen=True, kw_only=True):
    """An object of a type that this library has no struct for, kept whole."""

    type_name: str = msgspec.field(name="$type")
    # Required, and so always encoded: its key is what tells `writing` to flatten.
    extra: Extra = msgspec.field(name=EXTRA_KEY)

    @property
    def type(self) -> str:
        """The value of the ``type`` key, as it arrived."""
        return self.type_name
