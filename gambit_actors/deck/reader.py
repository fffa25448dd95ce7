"""What a deck is read from: the few questions a loader asks of the outside.

A loader never touches a disk. It asks a `DeckReader`; the one for folders on disk is
in `gambit_actors.store.deck_files`, and a test can hand in a table of texts. Paths are
posix paths, relative or absolute, in whatever form the first one was given.
"""

from typing import Protocol

import msgspec

from gambit_actors.schema.keywords import Schema
from gambit_actors.schema.python_types import DescribedType

__all__ = ["DeckReader", "DescribedModule", "DescribedType"]


class DescribedModule(msgspec.Struct, frozen=True, kw_only=True):
    """What a Python module that an action executes says about itself.

    Attributes:
        context_schema: what it takes: a reference such as ``./order.zod.ts``, to be
            looked up from the module, or a JSON Schema; None if it does not say.
        response_schema: what it gives, in the same forms.
        files: the files it was made from besides its own: what it imports from
            near it. A change in one of them may change the description.
    """

    context_schema: str | Schema | None = None
    response_schema: str | Schema | None = None
    files: tuple[str, ...] = ()


class DeckReader(Protocol):
    """Answers what a loader asks. Nothing here may have side effects."""

    def read_text(self, path: str, /) -> str | None:
        """Give the text of a file; None if there is no such file.

        Bytes that are not UTF-8 come as lone surrogates (``surrogateescape``), so that
        the loader can say where they are.

        Raises:
            OSError: there is something, and it cannot be read as a file.
        """

    def is_folder(self, path: str, /) -> bool:
        """Whether there is a folder here."""

    def real_path(self, path: str, /) -> str:
        """Give the absolute path with symbolic links followed, existing or not."""

    def describe_type(self, path: str, name: str, /) -> DescribedType:
        """Describe a type in a Python module.

        Raises:
            LookupError: there is no such type, or its module cannot be imported.
            SchemaError: there is one, and it has no JSON form.
        """

    def describe_module(self, path: str, /) -> DescribedModule:
        """Describe a Python module with ``deck = define_deck(...)`` in it.

        Raises:
            LookupError: the module cannot be imported, or defines no such deck.
        """
