"""Where ``--record`` writes. A recording that is there is lost to no failure.

A new one is written beside the file, which it replaces when something was answered. One
that is added to is written in its place: lines that are there stay as they are. Both
hold the lock of the file beside it, so that neither loses what the other writes.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
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
        self._path, part = Path(path), Path(f"{path}.part")
        self._written = self._path if is_added else part
        self._problem: OSError | None = None
        with ExitStack() as opened:
            if is_added:
                opened.enter_context(_reserved(part, path))
            try:
                self._file = opened.enter_context(_locked(self._written, path))
            except OSError as problem:
                raise _refused(path, problem.strerror or str(problem)) from problem
            # What is behind the last whole line is of a process that was killed.
            whole = _whole_bytes(self._path) if is_added else 0
            if os.fstat(self._file.fileno()).st_size > whole:
                self._file.truncate(whole)
            self._opened = opened.pop_all()

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
        self._opened.close()
        if self._problem is None:
            return True
        words = f"{self._written} is not whole: {self._problem.strerror}"
        if self._written != self._path and self._path.exists():
            words += f"; {self._path} is as it was"
        click.echo(printable(f"--record {words}"), err=True)
        return False

    def _put_in_place(self, *, has_answers: bool) -> None:
        if has_answers or not self._path.exists():
            self._written.replace(self._path)
            return
        self._written.unlink()
        words = f"no model answered, so {self._path} is as it was"
        click.echo(printable(f"--record: {words}"), err=True)


@contextmanager
def _reserved(part: Path, path: str) -> Iterator[None]:
    """Keep runs away that would put their part in place of what is added to.

    Raises:
        Refused: there is one.
    """
    with ExitStack() as opened:
        # Where there can be no part, no other run has one.
        with suppress(OSError):
            file = opened.enter_context(_locked(part, path))
            opened.callback(_remove_if_empty, part, file)
        yield


def _remove_if_empty(part: Path, file: FileIO) -> None:
    """Remove a part that was made for its lock; one with lines in it is somebody's."""
    with suppress(OSError):
        if os.fstat(file.fileno()).st_size == 0:
            part.unlink()


def _locked(file: Path, path: str) -> FileIO:
    """Open a file to add to, for us alone.

    Raises:
        OSError: it cannot be opened.
        Refused: another run has it, or had it and has put it elsewhere.
    """
    opened = open(file, "ab", buffering=0, opener=_open_private)  # noqa: SIM115  # whoever asks closes it
    try:
        if try_lock(opened.fileno()) and _is_still_there(file, opened):
            return opened
    except BaseException:
        opened.close()
        raise
    opened.close()
    raise _refused(path, "another run is recording into it")


def _is_still_there(path: Path, file: FileIO) -> bool:
    """Whether what was opened is not by now the recording of another run."""
    try:
        named = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(named, os.fstat(file.fileno()))


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
