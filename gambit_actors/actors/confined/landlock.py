"""Landlock, by its system calls: a process gives up rights to files, ports and signals.

What is given up here cannot be had again, by this process or by any it starts. It
holds for the calling thread and those it starts later, so it is for a process that has
only one. See ``Documentation/userspace-api/landlock.rst`` of Linux for the words.

What Landlock does not know: looking at the name, size and times of a file (``stat``),
changing its mode or owner, sockets that are not TCP. `seccomp` has some of that.
"""

import ctypes
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress

from gambit_actors.actors.confined.rules import Rules

# The same numbers on every processor.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH, _NET_PORT = 1, 2
_NO_NEW_PRIVS = 38
_CAPABILITIES_VERSION = 0x20080522

EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIR = 1 << 3
REMOVE_DIR = 1 << 4
REMOVE_FILE = 1 << 5
MAKE_CHAR = 1 << 6
MAKE_DIR = 1 << 7
MAKE_REG = 1 << 8
MAKE_SOCK = 1 << 9
MAKE_FIFO = 1 << 10
MAKE_BLOCK = 1 << 11
MAKE_SYM = 1 << 12
REFER = 1 << 13  # Link and rename from one folder to another; from ABI 2 on,
TRUNCATE = 1 << 14  # from ABI 3 on,
IOCTL_DEV = 1 << 15  # and from ABI 5 on.

READING = READ_FILE | READ_DIR
WRITING = (
    *(WRITE_FILE, REMOVE_DIR, REMOVE_FILE, MAKE_DIR, MAKE_REG, MAKE_FIFO, MAKE_SYM),
    *(REFER, TRUNCATE),
)
_WRITING = sum(WRITING)
# Granted to nobody who may not write everything: devices are not files to change.
_DEVICES = MAKE_CHAR | MAKE_BLOCK | MAKE_SOCK | IOCTL_DEV
# What can be said of a file; all else is about what is in a folder.
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_SINCE = {REFER: 2, TRUNCATE: 3, IOCTL_DEV: 5}

BIND_TCP, CONNECT_TCP = 1, 2
_NET_SINCE = 4
# Sockets with abstract names, and signals to those that are not restricted as we are.
_SCOPES, _SCOPED_SINCE = 1 | 2, 6

# All three are there on Linux; elsewhere this module is imported, and not used.
_PASSING = sum(getattr(os, name, 0) for name in ("O_PATH", "O_NOFOLLOW", "O_CLOEXEC"))


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("handled_fs", ctypes.c_uint64),
        ("handled_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"  # What packing means, for Pythons that want it said.
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


class _NetPort(ctypes.Structure):
    _fields_ = (("allowed", ctypes.c_uint64), ("port", ctypes.c_uint64))


def abi() -> int:
    """The version of Landlock that the kernel has; 0 if it has none."""
    if sys.platform != "linux":
        return 0
    try:
        return max(0, _call(_CREATE_RULESET, None, 0, _VERSION))
    except OSError:  # Not built in, or switched off.
        return 0


def handled(rules: Rules, version: int) -> int:
    """The rights to files that are given up, but for what is granted below."""
    # One is always among them: to be restricted at all keeps a process from looking
    # into those that are not, such as the one that started it.
    found = MAKE_BLOCK
    if rules.read is not None:
        found |= READING
    if rules.write is not None:
        found |= _WRITING | _DEVICES
    # The kernel refuses this to all that is restricted, unless it is granted again.
    found |= REFER
    if rules.programs is not None:
        found |= EXECUTE
    for right, since in _SINCE.items():
        found &= ~right if version < since else ~0
    return found


def granted(rules: Rules) -> Iterator[tuple[str, int]]:
    """The rights that are left, by the path they hold for and below."""
    for path in (*rules.system, *(rules.read or ())):
        yield path, READING
    for path in ("/",) if rules.write is None else ():
        yield path, REFER
    for path in rules.write or ():
        yield path, _WRITING
    for path in (*(rules.programs or ()), *rules.helpers):
        yield path, EXECUTE | READ_FILE
    yield os.devnull, READ_FILE | WRITE_FILE | TRUNCATE


def restrict(rules: Rules) -> None:
    """Give up what the rules do not grant. A path that is not there grants nothing.

    After `give_up_privileges`.

    Raises:
        OSError: the kernel does not do it. Then nothing was given up.
    """
    version = abi()
    attributes = _Ruleset(handled_fs=handled(rules, version))
    size = 8
    if version >= _NET_SINCE:
        attributes.handled_net = 0 if rules.ports is None else BIND_TCP | CONNECT_TCP
        size = 16
    if version >= _SCOPED_SINCE:
        attributes.scoped = _SCOPES
        size = 24
    ruleset = _call(_CREATE_RULESET, ctypes.byref(attributes), size, 0)
    try:
        for path, rights in granted(rules):
            _grant(ruleset, path, rights & attributes.handled_fs)
        for port in rules.ports or ():
            rule = _NetPort(allowed=CONNECT_TCP, port=port)
            _call(_ADD_RULE, ruleset, _NET_PORT, ctypes.byref(rule), 0)
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def give_up_privileges() -> None:
    """Give up what a superuser has beyond a user; no program gets it back, either.

    Also needed for `restrict`. Without it a superuser's process looks into any other
    past Landlock, which is not asked where capabilities decide.

    Raises:
        OSError: the kernel does not do it.
    """
    libc = _libc()
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.capset(header, nothing):
        raise _last_problem()


def open_path(path: str) -> int:
    """Open what is at a path, to name it and not to read it.

    No step of the path may be a link: it was followed when it was granted, and what
    became a link since then leads somewhere else.

    Raises:
        OSError: nothing is there, or a link is on the way.
    """
    here = os.open("/", _PASSING)
    for name in filter(None, path.split("/")):
        try:
            inner = os.open(name, _PASSING, dir_fd=here)
        finally:
            os.close(here)
        here = inner
        if stat.S_ISLNK(os.fstat(here).st_mode):
            os.close(here)
            msg = f"there is a link in {path}"
            raise OSError(msg)
    return here


def _grant(ruleset: int, path: str, rights: int) -> None:
    with suppress(OSError):  # It is not there, so there is nothing to have rights to.
        place = open_path(path)
        try:
            is_folder = stat.S_ISDIR(os.fstat(place).st_mode)
            allowed = rights if is_folder else rights & _OF_FILES
            if allowed:
                rule = _PathBeneath(allowed=allowed, folder=place)
                _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
        finally:
            os.close(place)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(number: int, *args: object) -> int:
    longs = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result: int = _libc().syscall(ctypes.c_long(number), *longs)
    if result < 0:
        raise _last_problem()
    return result


def _last_problem() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
