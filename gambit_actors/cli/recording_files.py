"""Where ``--record`` writes. A recording that is there is lost to no failure.

A new one is written beside the file, which it replaces when something was answered. One
that is added to is written in its place: lines that are there stay as they are.
"""

import os
from contextlib import suppress
from io import FileIO
from pathlib import Path

import click

from gambit_actors.cli.flow import printable
from gambit_actors.cli.refusing import Refused
from gambit_actors.errors import RequestError
from gambit_actors.providers.replaying import load_recording
from gambit_actors.store.writers import try_lock


class RecordingFile:
    """The file of a recording, for its owner alone. A disk that refuses ends no run.

    Only whole lines are in it, and one that is not whole takes the place of none.

    Args:
        path: where the recording is to be.
        is_added: whether it is added to what is there.

    Raises:
        Refused: there can be no such file, or it is none that can be added to.
    """

    def __init__(self, path: str, *, is_added: bool = False) -> None:
        self._path = Path(path)
        self._written = self._path if is_added else Path(f"{path}.part")
        self._problem: OSError | None = None
        try:
            self._file = open(self._written, "ab", buffering=0, opener=_open_private)  # noqa: SIM115  # closed by `close`
        except OSError as problem:
            raise _refused(path, problem.strerror or str(problem)) from problem
        try:
            self._begin(is_added=is_added)
        except BaseException:
            self._file.close()
            raise

    def write(self, line: bytes) -> None:
        """Add a line, unless one before it could not be written."""
        if self._problem is None:
            try:
                _write_whole(self._file, line)
            except OSError as problem:
                self._problem = problem

    def close(self, *, has_answers: bool) -> bool:
        """Have the recording where it belongs, and say so if it is not whole.

        Args:
            has_answers: whether a model has answered. One of failures alone does not
                take the place of another.

        Returns:
            Whether all that was to be written down is.
        """
        # Named while the lock is held: nobody writes into what is about to move.
        if self._written != self._path and self._problem is None:
            try:
                self._put_in_place(has_answers=has_answers)
            except OSError as problem:
                self._problem = problem
        self._file.close()
        if self._problem is None:
            return True
        words = f"{self._written} is not whole: {self._problem.strerror}"
        if self._written != self._path and self._path.exists():
            words += f"; {self._path} is as it was"
        click.echo(printable(f"--record {words}"), err=True)
        return False

    def _begin(self, *, is_added: bool) -> None:
        if not (try_lock(self._file.fileno()) and self._is_still_there()):
            raise _refused(str(self._path), "another run is recording into it")
        whole = _whole_bytes(self._path) if is_added else 0
        # What is behind the last whole line is of a process that was killed.
        if os.fstat(self._file.fileno()).st_size > whole:
            self._file.truncate(whole)

    def _is_still_there(self) -> bool:
        """Whether what was opened is not by now the recording of another run."""
        try:
            named = self._written.stat()
        except FileNotFoundError:
            return False
        return os.path.samestat(named, os.fstat(self._file.fileno()))

    def _put_in_place(self, *, has_answers: bool) -> None:
        if has_answers or not self._path.exists():
            self._written.replace(self._path)
            return
        self._written.unlink()
        words = f"no model answered, so {self._path} is as it was"
        click.echo(printable(f"--record: {words}"), err=True)


def _write_whole(file: FileIO, line: bytes) -> None:
    """Write all of a line, or nothing of it.

    Raises:
        OSError: the disk does not take it.
    """
    before = os.fstat(file.fileno()).st_size
    rest = memoryview(line)
    try:
        # A disk that is nearly full takes a part first, and says no to the rest.
        while rest:
            rest = rest[file.write(rest) or 0 :]
    except OSError:
        with suppress(OSError):  # Then half a line is left, which readers pass over.
            file.truncate(before)
        raise


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _refused(path: str, words: str) -> Refused:
    return Refused(printable(f"--record {path}: {words}"))


def _whole_bytes(path: Path) -> int:
    """How much of a recording is whole lines.

    Raises:
        Refused: it is none.
    """
    data = path.read_bytes()
    try:
        if data:
            load_recording(data)
    except RequestError as problem:
        words = f"--record-append: {path} cannot be added to: {problem}"
        raise Refused(printable(words)) from problem
    return data.rfind(b"\n") + 1
