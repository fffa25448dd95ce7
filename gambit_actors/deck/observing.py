"""A reader that remembers what it was asked and what it answered.

Two things follow from that. One loading sees one state of every file, however often it
asks. And a loading can be kept for as long as every answer would be the same: see
`DeckCache`.
"""

import re

from gambit_actors.deck.documents import Source
from gambit_actors.deck.reader import DeckReader, DescribedModule, DescribedType
from gambit_actors.errors import SchemaError
from gambit_actors.schema.diagnostics import Diagnostic

# Bytes that are not UTF-8 come as these.
_NOT_TEXT = re.compile("[\\ud800-\\udfff]")


class ObservingReader:
    """Asks a reader each thing once, and finds out what is not text."""

    def __init__(self, reader: DeckReader) -> None:
        self._reader = reader
        self._texts: dict[str, str | None] = {}
        self._errors: dict[str, str] = {}
        self._folders: dict[str, bool] = {}
        self._real_paths: dict[str, str] = {}
        self.unreadable: dict[str, Diagnostic] = {}
        # Why an import fails need not be in any file that is looked at here.
        self._is_certain = True

    def read_text(self, path: str) -> str | None:
        """The text of a file; what is not text in it is replaced, and noted."""
        if path not in self._texts:
            self._texts[path] = self._read(path)
        text = self._texts[path]
        if text is None or path not in self.unreadable:
            return text
        return _NOT_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder here."""
        if path not in self._folders:
            self._folders[path] = self._reader.is_folder(path)
        return self._folders[path]

    def real_path(self, path: str) -> str:
        """The absolute path with symbolic links followed."""
        if path not in self._real_paths:
            self._real_paths[path] = self._reader.real_path(path)
        return self._real_paths[path]

    def describe_type(self, path: str, name: str) -> DescribedType:
        """Describe a type; whoever asks keeps the answer."""
        try:
            return self._reader.describe_type(path, name)
        except (LookupError, SchemaError):
            self._is_certain = False
            raise

    def describe_module(self, path: str) -> DescribedModule:
        """Describe a module; whoever asks keeps the answer."""
        try:
            return self._reader.describe_module(path)
        except LookupError:
            self._is_certain = False
            raise

    def is_current(self, reader: DeckReader) -> bool:
        """Whether a reader would still answer everything the same way."""
        return (
            self._is_certain
            and all(
                _answer(reader, path) == (text, self._errors.get(path))
                for path, text in self._texts.items()
            )
            and all(
                reader.is_folder(p) == is_one for p, is_one in self._folders.items()
            )
            and all(reader.real_path(p) == real for p, real in self._real_paths.items())
        )

    def _read(self, path: str) -> str | None:
        text, error = _answer(self._reader, path)
        if error is not None:
            self._errors[path] = error
            message = f"{path} cannot be read: {error}."
            self.unreadable[path] = Source(path, "").finding("GD005", "error", message)
        elif text is not None and (bad := _NOT_TEXT.search(text)):
            message = f"{path} is not UTF-8 text; save it in that encoding."
            found = Source(path, text).finding(
                "GD005", "error", message, at=bad.start()
            )
            self.unreadable[path] = found
        return text


def _answer(reader: DeckReader, path: str) -> tuple[str | None, str | None]:
    """What a reader says: a text, that there is none, or why it cannot be read."""
    try:
        return reader.read_text(path), None
    except OSError as problem:
        return "", problem.strerror or str(problem)
