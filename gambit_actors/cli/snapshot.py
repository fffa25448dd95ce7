"""Files as they were read once, or as they might become."""

from collections.abc import Mapping

from gambit_actors.deck.reader import DeckReader, DescribedModule, DescribedType


class Snapshot:
    """A reader of decks that reads each file once and keeps its text.

    So what is shown of a file, and what is changed in it, is what was found fault with,
    also when somebody saves the file meanwhile.

    Args:
        reader: what to read from.
        pretended: texts to give instead of those of some files, by real path.
    """

    def __init__(self, reader: DeckReader, pretended: Mapping[str, str]) -> None:
        self._reader = reader
        self._texts: dict[str, str | None] = dict(pretended)
        self._asked: dict[str, str] = {}

    @property
    def files(self) -> set[str]:
        """The files that were asked for and are there, by real path."""
        return {path for path in self._asked if self._texts.get(path) is not None}

    @property
    def texts(self) -> dict[str, str]:
        """The texts of these files, by the name that each was first asked for by."""
        found = {name: self._texts.get(path) for path, name in self._asked.items()}
        return {name: text for name, text in found.items() if text is not None}

    def text_of(self, real_path: str) -> str | None:
        """The text of a file if it was read."""
        return self._texts.get(real_path)

    def read_text(self, path: str, /) -> str | None:
        """Give the text of a file; None if there is none."""
        real_path = self.real_path(path)
        self._asked.setdefault(real_path, path)
        if real_path not in self._texts:
            self._texts[real_path] = self._reader.read_text(path)
        return self._texts[real_path]

    def is_folder(self, path: str, /) -> bool:
        """Whether there is a folder here."""
        return self._reader.is_folder(path)

    def real_path(self, path: str, /) -> str:
        """Give the absolute path with symbolic links followed."""
        return self._reader.real_path(path)

    def describe_type(self, path: str, name: str, /) -> DescribedType:
        """Describe a type in a Python module."""
        return self._reader.describe_type(path, name)

    def describe_module(self, path: str, /) -> DescribedModule:
        """Describe a Python module."""
        return self._reader.describe_module(path)
