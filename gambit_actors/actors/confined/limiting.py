"""The bounds of a confined process, set by itself before it runs an author's code."""

import ctypes
import fcntl
import os
import resource
import signal
import sys
from types import FrameType

from gambit_actors.actors.confined import landlock, seccomp
from gambit_actors.actors.confined.rules import Rules

_MEMORY_BYTES = 4 * 2**30
_OPEN_FILES = 256
# Beyond those that the user has already: the limit is one for all of a user's.
_PROCESSES = 128
_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36
_F_SETSIG = 10


def die_with(parent: int, lifeline: int) -> None:
    """Have the kernel kill this process, and its group, when the parent is gone.

    Args:
        parent: the id of the process that started this one.
        lifeline: a pipe that nothing is ever written to, and only the parent holds.
    """
    if sys.platform != "linux":
        return
    os.set_inheritable(lifeline, False)  # noqa: FBT003  (the name says it)
    # The end of the pipe is a signal to the whole group. The other one is for a parent
    # that was forked, whose copies keep the pipe open.
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, _F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
    if os.getppid() != parent:  # It was gone before we could ask.
        os._exit(1)


def confine(rules: Rules) -> None:
    """Give up everything that the rules do not grant, for good.

    Raises:
        OSError: the kernel does not do it.
    """
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_NOFILE, _OPEN_FILES)
    if sys.platform != "linux":
        return
    _lower(resource.RLIMIT_AS, _MEMORY_BYTES)
    _lower(resource.RLIMIT_NPROC, _own_tasks() + _PROCESSES)
    if rules.can_start_programs:
        # What a program leaves behind becomes ours, so that it can be seen.
        libc = ctypes.CDLL(None)
        libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # Killed at once, it could not hear the end of the pipe any more, which is what
        # ends the programs it has started. So it is told, and ends them itself.
        signal.signal(signal.SIGTERM, _end_group)
        libc.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
    landlock.give_up_privileges()
    if landlock.abi():
        landlock.restrict(rules)
    machine = seccomp.machine()
    if machine is not None:
        seccomp.install(seccomp.filter_for(rules, machine))


def _end_group(_signal: int, _frame: FrameType | None) -> None:
    os.killpg(0, signal.SIGKILL)


def _own_tasks() -> int:
    """How many processes and threads the user has, about."""
    count = 0
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if entry.stat().st_uid == os.getuid():
                    count += len(os.listdir(f"/proc/{entry.name}/task"))  # noqa: PTH208
            except OSError:
                continue
    return count


def _lower(kind: int, limit: int) -> None:
    _, allowed = resource.getrlimit(kind)
    most = limit if allowed == resource.RLIM_INFINITY else min(limit, allowed)
    resource.setrlimit(kind, (most, most))
