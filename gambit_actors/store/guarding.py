"""Bounds on the process it is called in, set before an author's module is imported.

Looking at a module should change nothing and must end. So a module that writes a file,
starts a process or uses the network is stopped where Python lets us know of it, and so
is one that takes too long or too much memory. That guards against accidents, such as a
module that does its work when it is imported. It is no sandbox: a library that is not
written in Python may do all of that unseen, and code that wants to get out does.
"""

import ctypes.util
import os
import signal
import sys
import tempfile
from contextlib import suppress
from math import ceil
from types import FrameType, ModuleType
from typing import NoReturn

if sys.platform != "win32":
    import _posixsubprocess
    import resource

GRACE_SECONDS = 2.0
"""What a process may take beyond its limit, to start and to say what went wrong."""

_MEMORY_BYTES = 4 * 2**30
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGE = "change files"
_START = "start a process"
_CALL = "use the network"
# Audit events; see "Audit events table" in the Python documentation.
_DEEDS = {
    **dict.fromkeys(
        (
            *("os.chflags", "os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove"),
            *("os.removexattr", "os.rename", "os.rmdir", "os.setxattr", "os.symlink"),
            *("os.truncate", "os.utime", "sqlite3.connect"),
        ),
        _CHANGE,
    ),
    **dict.fromkeys(
        (
            *("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn"),
            *("os.startfile", "os.system", "subprocess.Popen", "_winapi.CreateProcess"),
        ),
        _START,
    ),
    **dict.fromkeys(("socket.getaddrinfo", "socket.sendto"), _CALL),
}
if sys.platform != "win32":
    # On Windows a pair of sockets, as an event loop needs, is made by calling oneself.
    _DEEDS |= {"socket.bind": _CALL, "socket.connect": _CALL}


class TimeUp(BaseException):
    """The limit is reached. Not an Exception, so that few modules swallow it."""


def allow_no_changes() -> None:
    """From here on, refuse what Python tells about that has effects elsewhere."""
    # Python finds the folder for temporary files by writing one, and remembers it. So
    # modules can ask for it later, though they cannot write there.
    with suppress(FileNotFoundError):
        tempfile.gettempdir()
    _find_libraries_alone()
    if sys.platform != "win32":
        # The hook says why, and also keeps files from being emptied or removed; the
        # limits hold for libraries that do not write by way of Python.
        _lower(resource.RLIMIT_FSIZE, 0)
        _lower(resource.RLIMIT_CORE, 0)
        # Python raises no audit event for these. The last is how multiprocessing
        # starts processes; subprocess has an event of its own.
        _refuse_function(os, "mkfifo", _CHANGE)
        _refuse_function(os, "mknod", _CHANGE)
        _refuse_function(_posixsubprocess, "fork_exec", _START)
    sys.addaudithook(_refuse_event)


def limit_memory() -> None:
    """Let the process have a few gigabytes, so that the machine stays usable."""
    if sys.platform == "linux":  # Elsewhere there is no such limit, or it is not kept.
        _lower(resource.RLIMIT_AS, _MEMORY_BYTES)


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


def _find_libraries_alone() -> None:
    """Let ctypes find no library where it would have to ask a program for it.

    It does so on Linux. Trio is among those who ask when they are imported, and like
    others it can do without: many systems have neither ldconfig nor a compiler.
    """
    find = ctypes.util.find_library

    def find_library(name: str) -> str | None:
        try:
            return find(name)
        except OSError:
            return None

    ctypes.util.find_library = find_library


def _refuse_event(event: str, args: tuple[object, ...]) -> None:
    if event == "open":
        path, _, flags = args
        is_file = not isinstance(path, int) and path != os.devnull
        if isinstance(flags, int) and flags & _WRITING and is_file:
            raise _refusal(f"write {path!r}")
    elif event in _DEEDS and (event, args) != ("sqlite3.connect", (":memory:",)):
        raise _refusal(f"{_DEEDS[event]} ({event})")


def _refuse_function(module: ModuleType, name: str, deed: str) -> None:
    def refuse(*_args: object, **_options: object) -> NoReturn:
        raise _refusal(f"{deed} ({module.__name__}.{name})")

    if hasattr(module, name):  # Not every system has all of them.
        setattr(module, name, refuse)


def _refusal(deed: str) -> PermissionError:
    # That, because libraries are used to disks they may not write to.
    return PermissionError(f"a module that is only looked at may not {deed}")
