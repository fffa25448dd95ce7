"""A reader that remembers what it was asked and what it answered.

Two things follow from that. One loading sees one state of every file, however often it
asks. And a loading can be kept for as long as every answer would be the same: see
`DeckCache`.
"""

import re
from collections.abc import Callable
from typing import TypeVar

from gambit_actors.deck.documents import Source
from gambit_actors.deck.reader import DeckReader, DescribedModule, DescribedType
from gambit_actors.errors import SchemaError
from gambit_actors.schema.diagnostics import Diagnostic

# Bytes that are not UTF-8 come as surrogates, and a NUL is in no text.
_NOT_TEXT = re.compile("[\ud800-\udfff\0]")

_Answer = TypeVar("_Answer", DescribedType, DescribedModule)


class ObservingReader:
    """Asks a reader each thing once, and finds out what is not text."""

    def __init__(self, reader: DeckReader) -> None:
        self._reader = reader
        self._texts: dict[str, str | None] = {}
        self._errors: dict[str, str] = {}
        self._folders: dict[str, bool] = {}
        self._real_paths: dict[str, str] = {}
        self.unreadable: dict[str, Diagnostic] = {}
        self._failures: dict[tuple[str, str], LookupError | SchemaError] = {}

    def read_text(self, path: str) -> str | None:
        """The text of a file; what is not text in it is replaced, and noted.

        Nothing that is replaced changes the number of characters.
        """
        if path not in self._texts:
            self._texts[path] = self._read(path)
        text = self._texts[path]
        if text is None:
            return None
        if path in self.unreadable:
            text = _NOT_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)
        return _with_line_ends(text)

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
        """Describe a type; whoever asks keeps the answer, and this a failure."""
        return self._described(
            (path, name), lambda: self._reader.describe_type(path, name)
        )

    def describe_module(self, path: str) -> DescribedModule:
        """Describe a module; whoever asks keeps the answer, and this a failure."""
        return self._described((path, ""), lambda: self._reader.describe_module(path))

    def _described(self, key: tuple[str, str], ask: Callable[[], _Answer]) -> _Answer:
        # A module that cannot be imported may take its time over it. Once is enough
        # for one loading; for the next, the reason need not be in any file, so ask.
        if key in self._failures:
            raise self._failures[key]
        try:
            return ask()
        except (LookupError, SchemaError) as problem:
            self._failures[key] = problem
            raise

    def is_current(self, reader: DeckReader) -> bool:
        """Whether a reader would still answer everything the same way."""
        return (
            not self._failures
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
            source = Source(path, _with_line_ends(text))
            found = source.finding("GD005", "error", message, at=bad.start())
            self.unreadable[path] = found
        return text


def _answer(reader: DeckReader, path: str) -> tuple[str | None, str | None]:
    """What a reader says: a text, that there is none, or why it cannot be read."""
    try:
        return reader.read_text(path), None
    except OSError as problem:
        return "", problem.strerror or str(problem)


def _with_line_ends(text: str) -> str:
    """Text with lines; a carriage return alone is as old as it is a way to end one."""
    is_old = "\r" in text and "\n" not in text
    return text.replace("\r", "\n") if is_old else text
