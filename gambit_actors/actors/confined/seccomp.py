"""A filter of system calls, for what Landlock does not know of.

The filter is a program for the kernel's classic BPF machine: it reads the number of the
call and, for a few, an argument, and lets it be or refuses it. Arguments that are
pointers it cannot follow, so calls whose meaning is behind one are refused whole.

Filters are made for x86-64 and ARM64. Elsewhere there are none: numbers differ from
processor to processor, and a wrong one would refuse the wrong thing.
"""

import ctypes
import errno
import os
import platform
import sys
from typing import TypeAlias

import msgspec

from gambit_actors.actors.confined.rules import Rules

Instruction: TypeAlias = tuple[int, int, int, int]
"""Code, steps to jump if true, steps to jump if false, and a constant."""

_LOAD, _IF_EQUAL, _IF_SET, _AND, _RETURN = 0x20, 0x15, 0x45, 0x54, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_SET_SECCOMP, _FILTER_MODE = 22, 2

_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_SOCK_STREAM, _KIND_MASK, _TCP = 1, 0xF, 6
_FAST_OPEN = 0x20000000
_CLONE_THREAD = 0x00010000
_SET_PARENT_DEATH_SIGNAL = 1


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A processor, as the kernel tells it: its mark, and where its table of calls is.

    Attributes:
        foreign: a bit in the number of calls that belong to another table.
    """

    mark: int
    column: int
    foreign: int = 0


MACHINES = {
    "x86_64": Machine(mark=0xC000003E, column=0, foreign=0x40000000),
    "aarch64": Machine(mark=0xC00000B7, column=1),
}

# The numbers of calls on x86-64 and on ARM64; None where there is no such call.
_Numbers: TypeAlias = tuple[int | None, int | None]

# Looking into other processes, and rings that do calls which no filter sees.
_NEVER: dict[str, _Numbers] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # Leaving the group of processes that is killed when the call is over,
    "setsid": (112, 157),
    "setpgid": (109, 154),
    # memory, locks and queues that any process of the user has by a number, also of
    # those that are there already,
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmdt": (67, 197),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "mq_timedsend": (242, 182),
    "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184),
    "mq_getsetattr": (245, 185),
    # the memory of others, moved about or taken back,
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "process_mrelease": (448, 448),
    # other views of the file system, and files by their handles,
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "unshare": (272, 97),
    "setns": (308, 268),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    # and what only the owner of the machine has any use for.
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "syslog": (103, 116),
    "iopl": (172, None),
    "ioperm": (173, None),
}

# Changing what is said of a file. The file may be any, so it is refused for all.
_MODES: dict[str, _Numbers] = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}

# Being told what others do in a folder; Landlock lets that pass for any there is.
_WATCHING: dict[str, _Numbers] = {
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27),
}

# How much of the processor a process gets, with the place of its id among the
# arguments: 0 is the one that asks.
_SCHEDULING: tuple[tuple[_Numbers, int], ...] = (
    ((142, 118), 0),  # sched_setparam
    ((144, 119), 0),  # sched_setscheduler
    ((203, 122), 0),  # sched_setaffinity
    ((314, 274), 0),  # sched_setattr
    ((141, 140), 1),  # setpriority
    ((251, 30), 1),  # ioprio_set
)
# The two that have another id first can be about all processes of a user, who is 0 too.
_OF_USERS: tuple[tuple[_Numbers, int], ...] = (((141, 140), 2), ((251, 30), 3))

# Programs that are no files, which Landlock lets pass.
_NAMELESS: dict[str, _Numbers] = {
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "execveat": (322, 281),
}
_STARTING: dict[str, _Numbers] = {
    "execve": (59, 221),
    "fork": (57, None),
    "vfork": (58, None),
}
_CLONE: _Numbers = (56, 220)
_CLONE3: _Numbers = (435, 435)
_SOCKET: _Numbers = (41, 198)
_SOCKETPAIR: _Numbers = (53, 199)
_LISTEN: _Numbers = (50, 201)
# Calls that send, with the place of their flags among their arguments.
_SENDING: tuple[tuple[_Numbers, int], ...] = (
    ((44, 206), 3),
    ((46, 211), 2),
    ((307, 269), 3),
)
_PRCTL: _Numbers = (157, 167)
_PRLIMIT: _Numbers = (302, 261)


def machine() -> Machine | None:
    """The processor that this runs on, if filters can be made for it."""
    if sys.platform != "linux" or sys.maxsize < 2**32:
        return None
    return MACHINES.get(platform.machine())


def filter_for(rules: Rules, on: Machine) -> list[Instruction]:
    """Write the filter that keeps what Landlock cannot."""
    made: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IF_EQUAL, 1, 0, on.mark),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if on.foreign:
        made += [(_IF_SET, 0, 1, on.foreign), (_RETURN, 0, 0, _KILL)]
    refused = dict(_NEVER)
    if rules.read is not None:
        refused |= _WATCHING
    if rules.write is not None:
        refused |= _MODES
    if rules.programs is not None:
        refused |= _NAMELESS
    if not rules.can_start_programs:
        refused |= _STARTING
    for numbers in refused.values():
        made += _on_call(numbers[on.column], [_refuse()])
    # Another way to be told of the end of the process above would be no way, and the
    # limits of other processes are theirs.
    made += _on_call(_PRCTL[on.column], _if_argument(0, _SET_PARENT_DEATH_SIGNAL))
    made += _on_call(_PRLIMIT[on.column], _unless_argument(0, 0))
    made += _scheduling(on)
    if not rules.can_start_programs:
        made += _threads_only(on)
    made += _pairs(on)
    made += _sockets(rules, on)
    return [*made, (_RETURN, 0, 0, _ALLOW)]


def install(instructions: list[Instruction]) -> None:
    """Have the kernel filter the calls of this thread and those it starts later.

    Raises:
        OSError: the kernel does not do it.
    """
    program = (_Instruction * len(instructions))(
        *(_Instruction(*one) for one in instructions)
    )
    whole = _Program(length=len(instructions), instructions=program)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.byref(whole), 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("constant", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (
        ("length", ctypes.c_uint16),
        ("instructions", ctypes.POINTER(_Instruction)),
    )


def _threads_only(on: Machine) -> list[Instruction]:
    """Threads may be made, processes may not."""
    # What clone3 is to do stands behind a pointer. Told that there is no such call,
    # libraries fall back to clone, which has it in an argument.
    missing = (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)
    is_thread = [_argument(0), (_IF_SET, 1, 0, _CLONE_THREAD), _refuse()]
    return [
        *_on_call(_CLONE3[on.column], [missing]),
        *_on_call(_CLONE[on.column], [*is_thread, _number()]),
    ]


def _scheduling(on: Machine) -> list[Instruction]:
    made: list[Instruction] = []
    for numbers, kind in _OF_USERS:
        is_user = [_argument(0), (_IF_EQUAL, 0, 1, kind), _refuse(errno.EPERM)]
        made += _on_call(numbers[on.column], [*is_user, _number()])
    for numbers, place in _SCHEDULING:
        is_own = [_argument(place), (_IF_EQUAL, 1, 0, 0), _refuse(errno.EPERM)]
        made += _on_call(numbers[on.column], [*is_own, _number()])
    return made


def _pairs(on: Machine) -> list[Instruction]:
    # A pair of streams leads nowhere but to each other. One of packets can send to any
    # socket by its path, and connect to it, without asking for a socket again.
    is_stream = [
        _argument(0),
        (_IF_EQUAL, 1, 0, _AF_UNIX),
        _refuse(),
        _argument(1),
        (_AND, 0, 0, _KIND_MASK),
        (_IF_EQUAL, 1, 0, _SOCK_STREAM),
        _refuse(),
        _number(),
    ]
    return _on_call(_SOCKETPAIR[on.column], is_stream)


def _sockets(rules: Rules, on: Machine) -> list[Instruction]:
    # Sockets of this machine (AF_UNIX) lead to other programs and are never allowed;
    # pairs of them are another call, see above.
    if rules.network == "none":
        return _on_call(_SOCKET[on.column], [_refuse()])
    families = [
        _argument(0),
        (_IF_EQUAL, 2, 0, _AF_INET),
        (_IF_EQUAL, 1, 0, _AF_INET6),
        _refuse(),
    ]
    if rules.network == "all":
        return _on_call(_SOCKET[on.column], [*families, _number()])
    # Of TCP itself only: Landlock does not look at what else has ports.
    tcp = [
        _argument(1),
        (_AND, 0, 0, _KIND_MASK),
        (_IF_EQUAL, 1, 0, _SOCK_STREAM),
        _refuse(),
        _argument(2),
        (_IF_EQUAL, 2, 0, 0),
        (_IF_EQUAL, 1, 0, _TCP),
        _refuse(),
    ]
    made = _on_call(_SOCKET[on.column], [*families, *tcp, _number()])
    # Listening takes a port without binding it, and a first packet with data connects
    # without saying so: Landlock sees neither.
    made += _on_call(_LISTEN[on.column], [_refuse()])
    for numbers, place in _SENDING:
        is_fast = [_argument(place), (_IF_SET, 0, 1, _FAST_OPEN), _refuse(), _number()]
        made += _on_call(numbers[on.column], is_fast)
    return made


def _on_call(number: int | None, then: list[Instruction]) -> list[Instruction]:
    """Do something if it is this call, whose number is loaded before and after."""
    return [] if number is None else [(_IF_EQUAL, 0, len(then), number), *then]


def _if_argument(place: int, value: int) -> list[Instruction]:
    return [_argument(place), (_IF_EQUAL, 0, 1, value), _refuse(), _number()]


def _unless_argument(place: int, value: int) -> list[Instruction]:
    return [_argument(place), (_IF_EQUAL, 1, 0, value), _refuse(), _number()]


def _argument(place: int) -> Instruction:
    # The lower half: all that is asked for here are ints. Both machines have it first.
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * place)


def _number() -> Instruction:
    return (_LOAD, 0, 0, _NUMBER)


def _refuse(number: int = errno.EACCES) -> Instruction:
    return (_RETURN, 0, 0, _REFUSE | number)
