"""SavedState files on disk: read whole or refused, written whole or not at all.

A file is written beside its place, forced to the disk, and then put there in one step.
So whoever reads it, at any time and also after a crash, finds one of the states that
were saved. Two who save at once do not mix; the later one wins.

Calls wait for the disk: from a Trio task they go through a thread.
"""

import contextlib
import errno
import os
import secrets
import stat
import tempfile
from pathlib import Path

from gambit_actors.errors import BadRequest, StoreError, WireError
from gambit_actors.run.saved_states import (
    NewId,
    SavedState,
    json_from_saved_state,
    saved_state_from_json,
)

# File systems that cannot force a folder to the disk say so with one of these.
_NO_FOLDER_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EBADF})


class StateFileBroken(StoreError):
    """A file cannot be read, or is not a saved state.

    Attributes:
        file: which one.
        problem: what is wrong with it, without its name.
    """

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(f"{file} cannot be used as a saved state: {problem}")
        self.file = file
        self.problem = problem


class StateNotSaved(StoreError):
    """A state could not be written; the file is what it was.

    Only where it was the folder that could not be forced to the disk, the file has the
    new state, and may lose it if the machine stops.

    Attributes:
        file: which one.
        problem: what kept it from being written, without its name.
    """

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(f"{file} was not saved: {problem}")
        self.file = file
        self.problem = problem


def new_id(prefix: str) -> str:
    """An id that nobody else has."""
    return f"{prefix}-{secrets.token_hex(12)}"


def load_state(path: str | Path, *, new_id: NewId = new_id) -> SavedState | None:
    """Read a saved state; None if there is no such file, and only then.

    Messages that the items of the file tell are derived; see
    `gambit_actors.run.saved_states.derived`.

    Args:
        path: the file.
        new_id: mints the ids of refs that the file does not have.

    Raises:
        StateFileBroken: there is something, and it is not a saved state.
    """
    file = Path(path)
    try:
        # Asked first, because opening a pipe waits for somebody to write.
        _check_kind(file.stat().st_mode)
        return saved_state_from_json(file.read_bytes(), new_id=new_id)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:  # The second: no name a file can have.
        raise StateFileBroken(str(file), _words(problem)) from problem
    except BadRequest as problem:
        raise StateFileBroken(str(file), str(problem)) from problem


def save_state(path: str | Path, state: SavedState) -> None:
    """Write a saved state in place of what the file was before.

    Folders are made as needed. A symbolic link stays one, and what it leads to is
    written. A file keeps its permissions; a new one is for its owner alone.

    Raises:
        StateNotSaved: it could not be written.
    """
    file = Path(path)
    try:
        data = json_from_saved_state(state)
        # Not Path.resolve, which raises something else when links lead in a circle.
        target = Path(os.path.realpath(file))
        mode = _mode_of(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, data, mode)
    except (OSError, ValueError) as problem:  # The second: no name a file can have.
        raise StateNotSaved(str(file), _words(problem)) from problem
    except WireError as problem:
        raise StateNotSaved(str(file), str(problem)) from problem


def _mode_of(target: Path) -> int:
    """The permissions that the file is to have."""
    try:
        # A link that is left after all were followed is part of a circle; following
        # it is what says so.
        mode = target.stat().st_mode
    except FileNotFoundError:
        return 0o600
    _check_kind(mode)
    return stat.S_IMODE(mode)


def _check_kind(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no regular file")


def _replace(target: Path, data: bytes, mode: int) -> None:
    """Put a file with these bytes in the place of another, in one step."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=".tmp")
    temporary = Path(name)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123  (it is open already)
            file.write(data)
            file.flush()
            temporary.chmod(mode)
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        # Also when we are interrupted: nobody else would remove it.
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Force the new name to the disk, where the system has a way to."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows, or a folder that we may write to and not read.
        return
    try:
        os.fsync(handle)
    except OSError as problem:
        if problem.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(handle)


def _words(problem: OSError | ValueError) -> str:
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror
    return str(problem)
