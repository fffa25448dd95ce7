"""Bounds on the process it is called in, set before an author's module is imported.

Looking at a module must change nothing and must end, so a module that writes a file or
starts a process is stopped, and so is one that goes on for too long. That guards
against accidents, such as a module that does its work when it is imported. It is no
sandbox: code that wants to get out does.
"""

import os
import signal
import sys
from math import ceil
from types import FrameType
from typing import NoReturn

if sys.platform != "win32":
    import resource

GRACE_SECONDS = 2.0
"""What a process may take beyond its limit, to start and to say what went wrong."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Audit events; see "Audit events table" in the Python documentation.
_CHANGES = frozenset(
    f"os.{verb}"
    for verb in (
        *("chmod", "chown", "link", "mkdir", "remove", "rename", "rmdir", "symlink"),
        *("truncate", "utime"),
    )
)
_STARTS = frozenset(
    {
        *("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn"),
        *("os.startfile", "os.system", "subprocess.Popen"),
    }
)


class TimeUp(BaseException):
    """The limit is reached. Not an Exception, so that few modules swallow it."""


def allow_no_changes() -> None:
    """From here on, refuse to write files and to start processes; for good."""
    if sys.platform != "win32":
        # The hook says why, and also keeps files from being emptied or removed; the
        # limits hold for libraries that do not write by way of Python.
        _lower(resource.RLIMIT_FSIZE, 0)
        _lower(resource.RLIMIT_CORE, 0)
    sys.addaudithook(_refuse_changes)


def limit_time(seconds: float) -> None:
    """Raise `TimeUp` in the main thread after some time, and soon after that, kill."""
    if sys.platform != "win32":  # There it is for whoever started the process.
        _lower(resource.RLIMIT_CPU, ceil(seconds + GRACE_SECONDS))
        signal.signal(signal.SIGALRM, _time_up)
        signal.setitimer(signal.ITIMER_REAL, seconds, GRACE_SECONDS / 2)


def stop_clock() -> None:
    """Take back `limit_time`, all but the bound on computing."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, 0)


def _time_up(_signal: int, _frame: FrameType | None) -> NoReturn:
    if sys.platform != "win32":
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # The next one kills.
    raise TimeUp


def _lower(kind: int, limit: int) -> None:
    if sys.platform != "win32":
        _, allowed = resource.getrlimit(kind)
        most = limit if allowed == resource.RLIM_INFINITY else min(limit, allowed)
        resource.setrlimit(kind, (most, most))


def _refuse_changes(event: str, args: tuple[object, ...]) -> None:
    # A PermissionError, because libraries are used to disks they may not write to.
    if event == "open":
        path, _, flags = args
        is_file = not isinstance(path, int) and path != os.devnull
        if isinstance(flags, int) and flags & _WRITING and is_file:
            msg = f"a module that is only looked at may not write {path!r}"
            raise PermissionError(msg)
    elif event in _CHANGES:
        msg = f"a module that is only looked at may not change files ({event})"
        raise PermissionError(msg)
    elif event in _STARTS:
        msg = f"a module that is only looked at may not start a process ({event})"
        raise PermissionError(msg)
