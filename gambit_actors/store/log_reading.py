"""Logs as they are found on disk: read in pieces, and their torn ends cut off.

All of it blocks, and belongs in a thread.
"""

import errno
import os
import stat
from pathlib import Path

from gambit_actors.errors import LogLost
from gambit_actors.store.log_files import APPEND, FoundFile, broken
from gambit_actors.store.log_lines import LineReader, LogContents

_READ_BYTES = 2**20


def read_file(path: Path) -> tuple[LogContents, FoundFile]:
    """Read a log, piece by piece. Blocks.

    Raises:
        CorruptLog: see `log_lines.read_lines`.
        LogBroken: the disk does not give it.
        FileNotFoundError: there is none.
    """
    reader = LineReader(str(path))
    try:
        _check_regular(path)
        with path.open("rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            size = 0
            while chunk := file.read(_READ_BYTES):
                reader.feed(chunk)
                size += len(chunk)
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise broken(str(path), problem, deed="read") from problem
    found = FoundFile(identity=(status.st_dev, status.st_ino), size=size)
    return reader.finish(), found


def _check_regular(path: Path) -> None:
    # Asked first, because opening a pipe waits for somebody to write.
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")


def repair_file(path: Path, contents: LogContents, found: FoundFile) -> FoundFile:
    """Cut off what is torn, and end the last line. Blocks.

    Returns:
        The file as it is then.

    Raises:
        LogBroken: the disk does not let us.
        LogLost: it is not the file that was read.
    """
    if contents.torn is None and not contents.lacks_newline:
        return found
    try:
        descriptor = os.open(path, APPEND)
        try:
            status = os.fstat(descriptor)
            now = FoundFile(
                identity=(status.st_dev, status.st_ino), size=status.st_size
            )
            if now != found:
                raise LogLost(str(path), "was changed while it was read")
            os.ftruncate(descriptor, contents.end_offset)
            if contents.lacks_newline:
                os.write(descriptor, b"\n")
            size = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
    except OSError as problem:
        raise broken(str(path), problem) from problem
    return FoundFile(identity=found.identity, size=size)
