"""Decks in folders on disk: the `DeckReader` a loader is usually given.

It remembers nothing, so every answer is about the disk as it is. Reading runs no code
of an author; only describing a Python module does, in another process.
"""

import errno
import os
import stat
from pathlib import Path

from gambit_actors.deck.reader import DescribedModule, DescribedType
from gambit_actors.store import python_modules

MAX_TEXT_BYTES = 4_000_000
"""The largest file that is read: no deck or schema that people write comes close."""

# There is nothing here: no such entry, a file where a folder should be, no such name.
_MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})


class DiskReader:
    """Answers what a loader asks from real folders.

    Args:
        base: the folder that relative paths start from; the current one if not told.
        time_limit: how many seconds the import of a Python module may take.
    """

    def __init__(
        self, base: str | Path = ".", *, time_limit: float = python_modules.TIME_LIMIT
    ) -> None:
        self._base = Path(base).absolute()
        self._time_limit = time_limit

    def read_text(self, path: str, /) -> str | None:
        """Give the text of a file as it is, line ends included; None if missing.

        Raises:
            OSError: it is no regular file, too large, or not for us to read; its
                ``strerror`` says which in plain words.
        """
        try:
            data = self._read(self._base / path)
        except ValueError:  # Not a name that a file can have.
            return None
        except OSError as problem:
            if problem.errno in _MISSING:
                return None
            raise
        return data.decode("utf-8", "surrogateescape")

    def _read(self, file: Path) -> bytes:
        # A deck that somebody else wrote may hold a link to a file of ours, under a
        # name that makes it a snippet: then a model would read it.
        if stat.S_ISLNK(file.lstat().st_mode):
            real = Path(os.path.realpath(file))
            homes = (os.path.realpath(self._base), os.path.realpath(file.parent))
            if not any(real.is_relative_to(home) for home in homes):
                words = "it is a link that leads out of the folder it is in"
                raise OSError(errno.EACCES, words, str(file))
        return _content(file)

    def is_folder(self, path: str, /) -> bool:
        """Whether there is a folder here."""
        try:
            return stat.S_ISDIR((self._base / path).stat().st_mode)
        except (OSError, ValueError):
            return False

    def real_path(self, path: str, /) -> str:
        """Give the absolute path with symbolic links followed, existing or not."""
        file = self._base / path
        try:
            # Not Path.resolve, which raises when links lead in a circle.
            return Path(os.path.realpath(file)).as_posix()
        except ValueError:  # Not a name that a file can have, so no link either.
            return Path(os.path.normpath(file)).as_posix()

    def describe_type(self, path: str, name: str, /) -> DescribedType:
        """Describe a type in a Python module; see `DeckReader.describe_type`."""
        return python_modules.describe_type(
            path, name, base=self._base, time_limit=self._time_limit
        )

    def describe_module(self, path: str, /) -> DescribedModule:
        """Describe a Python module that defines a deck; see `DeckReader`."""
        return python_modules.describe_module(
            path, base=self._base, time_limit=self._time_limit
        )


def _content(file: Path) -> bytes:
    # Asked first, because opening a pipe waits for somebody to write.
    kind = file.stat().st_mode
    if stat.S_ISDIR(kind):
        raise OSError(errno.EISDIR, "it is a folder", str(file))
    if not stat.S_ISREG(kind):
        raise OSError(errno.EINVAL, "it is no regular file", str(file))
    with file.open("rb") as content:
        data = content.read(MAX_TEXT_BYTES + 1)
    if len(data) > MAX_TEXT_BYTES:
        words = f"it is larger than {MAX_TEXT_BYTES:,} bytes"
        raise OSError(errno.EFBIG, words, str(file))
    return data
