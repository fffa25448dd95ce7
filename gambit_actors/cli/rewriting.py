"""Writing files that people wrote: only the right ones, and each at one stroke."""

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

_ANYBODY_MAY_WRITE = 0o222
_ORDINARY_MODES = 0o777  # New content does not inherit the right to run as another.


class Fence:
    """Tells the files that may be written: those below the folders that were meant.

    Those are the paths given, or the current folder if none is; a deck named by its
    file means the deck's folder.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        named = [Path(path) for path in paths] or [Path()]
        folders = [path if path.is_dir() else path.parent for path in named]
        self._named = {_plain(path) for path in folders}
        self._real = {path.resolve() for path in folders}

    def objection(self, file: str) -> str | None:
        """Say why a file may not be written; None if it may."""
        if not _is_below(_plain(Path(file)), self._named | self._real):
            return "it is outside of what was to be checked"
        target = Path(file).resolve()
        if not _is_below(target, self._real):
            return f"it is a link to {target}, outside of what was to be checked"
        if not target.is_file():
            return "it is not a file"
        if not target.stat().st_mode & _ANYBODY_MAY_WRITE:
            return "it is read-only"
        return None


def rewrite(file: str, before: str, after: str) -> str | None:
    """Give a file another text, all of it or none, and say why if that cannot be.

    Texts are as they were decoded from UTF-8 with ``surrogateescape``, line ends and
    byte order mark included, so the bytes of what is not edited stay the same. A link
    stays a link; what it leads to is written.
    """
    target = Path(file).resolve()
    try:
        if target.read_bytes() != _encoded(before):
            return "it was changed meanwhile"
        _replace(target, _encoded(after))
    except UnicodeEncodeError:
        return "the new text has no UTF-8 form"
    except OSError as problem:
        return problem.strerror or str(problem)
    return None


def _replace(target: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=".gambit-", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        before = target.stat()
        with contextlib.suppress(OSError, AttributeError):  # Only root may, on POSIX.
            os.chown(name, before.st_uid, before.st_gid)
        Path(name).chmod(stat.S_IMODE(before.st_mode) & _ORDINARY_MODES)
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _plain(path: Path) -> Path:
    return Path(os.path.normpath(path.absolute()))


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
