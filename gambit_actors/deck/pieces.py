"""What is kept between loadings, for as long as it is true.

Everything is kept by content. A tree is handed out again if every question that was
asked to load it would be answered the same way; otherwise it is put together anew,
from the pieces that did not change. Nothing here looks at times of files.
"""

from collections import OrderedDict
from typing import Generic, TypeVar

from gambit_actors.deck.documents import Document, document_from_text
from gambit_actors.deck.observing import ObservingReader
from gambit_actors.deck.reader import DescribedModule
from gambit_actors.schema.schemas import SchemaCache

_MAX_TREES = 1024
_MAX_PIECES = 8192

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Recent(Generic[_Key, _Value]):
    """A table that forgets what has not been used for longest."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[_Key, _Value] = OrderedDict()

    def get(self, key: _Key) -> _Value | None:
        """What is kept under a key."""
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def put(self, key: _Key, value: _Value) -> None:
        """Keep something, and forget something else if there is too much."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._limit:
            self._entries.popitem(last=False)


class Pieces:
    """The parts that trees are made of: documents, schemas, modules."""

    def __init__(self) -> None:
        self.schemas = SchemaCache()
        self._documents: Recent[str, Document] = Recent(_MAX_PIECES)
        self._modules: Recent[str, tuple[dict[str, str | None], DescribedModule]]
        self._modules = Recent(_MAX_PIECES)

    def document(self, file: str, text: str) -> Document:
        """Take a text apart, unless that has been done."""
        known = self._documents.get(file)
        if known is None or known.source.text != text:
            known = document_from_text(file, text)
            self._documents.put(file, known)
        return known

    def module(self, file: str, reader: ObservingReader) -> DescribedModule:
        """Have a module described, unless nothing it is made from has changed.

        Raises:
            LookupError: it cannot be; that is not kept, because it may be for
                reasons that are not in any file.
        """
        known = self._modules.get(file)
        if known is None or any(reader.read_text(f) != t for f, t in known[0].items()):
            described = reader.describe_module(file)
            texts = {f: reader.read_text(f) for f in (file, *described.files)}
            known = texts, described
            self._modules.put(file, known)
        return known[1]
