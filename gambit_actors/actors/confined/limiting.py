"""The bounds of a confined process, set by itself before it runs an author's code."""

import ctypes
import fcntl
import os
import resource
import select
import signal
import sys
from contextlib import suppress
from typing import NoReturn

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


def confine(rules: Rules, lifeline: int) -> None:
    """Give up everything that the rules do not grant, for good.

    Args:
        rules: what is left.
        lifeline: the pipe that ends with the parent.

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
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _set_guard(lifeline)
    landlock.give_up_privileges()
    if landlock.abi():
        landlock.restrict(rules)
    machine = seccomp.machine()
    if machine is not None:
        seccomp.install(seccomp.filter_for(rules, machine))


def _set_guard(lifeline: int) -> None:
    """Start a process that kills this group when the parent is gone, or when we are.

    The kernel ends this process with its parent, and that is not taken back. But it
    does so for no program that we have started, and what else there is to hear of the
    parent's end, code could undo here: it has our descriptors. The guard has its own,
    and it is not confined, so nothing that is can send it a signal or look into it.
    """
    ours = os.getpid()
    if os.fork() == 0:
        _guard(lifeline, ours)
    # Who has a pipe can open its other end as well, and keep it from ending.
    os.close(lifeline)


def _guard(lifeline: int, process: int) -> NoReturn:
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        os.closerange(0, lifeline)
        os.closerange(lifeline + 1, lifeline + _OPEN_FILES)
        poll = select.poll()
        poll.register(lifeline, 0)  # That it ends is told unasked.
        with suppress(OSError):  # Not in Linux before 5.3.
            poll.register(os.pidfd_open(process), select.POLLIN)
        poll.poll()
    finally:
        os.killpg(0, signal.SIGKILL)
        os._exit(1)


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
