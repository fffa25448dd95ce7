"""Permissions as rules that a kernel can keep, and those that this one cannot.

Pure: it compares values. What the platform has is found out by `landlock` and
`seccomp`, and where files are by `preparing`.

The kinds are kept by different means. Files and programs are Landlock's. TCP ports are
Landlock's from ABI 4 on. Everything else that goes out of a process (other sockets,
changed modes of files, programs that are no files) is for a filter of system calls.
Variables need no more than a process that was started without them.
"""

import re
from typing import Literal

import msgspec

from gambit_actors.deck.permissions import Permissions

_ANY_HOST = re.compile(r"\*:([0-9]+)")

# The first ABI of Landlock that can keep files from being emptied by their path, and
# the first that knows of TCP; with the kernels that brought them.
_TRUNCATE_ABI = 3
_TCP_ABI = 4


class Platform(msgspec.Struct, frozen=True, kw_only=True):
    """What there is here to keep code to its permissions.

    Attributes:
        is_posix: whether a process can be started with pipes and in a group.
        landlock_abi: the version of Landlock; 0 if there is none.
        has_filter: whether system calls can be filtered, for this processor.
    """

    is_posix: bool
    landlock_abi: int
    has_filter: bool


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a process has to be kept to. None for a kind that is not restricted.

    Attributes:
        read: what was granted to be read.
        system: what Python, and the network if it may be used, need to be read.
        write: what was granted to be written.
        programs: what may be started.
        helpers: what the kernel starts along with those: loaders, interpreters.
        ports: those that TCP may connect to.
    """

    read: tuple[str, ...] | None
    system: tuple[str, ...]
    write: tuple[str, ...] | None
    programs: tuple[str, ...] | None
    helpers: tuple[str, ...]
    ports: tuple[int, ...] | None

    @property
    def network(self) -> Literal["none", "tcp", "all"]:
        """How much of the network is left."""
        if self.ports is None:
            return "all"
        return "tcp" if self.ports else "none"

    @property
    def can_start_programs(self) -> bool:
        """Whether it may start any program at all."""
        return self.programs is None or bool(self.programs)


def gaps(permissions: Permissions, platform: Platform) -> tuple[str, ...]:
    """Say which of these permissions cannot be enforced here, and why.

    Returns:
        A clause for each, such as ``net cannot be kept to example.com, because ...``;
        none if all can.
    """
    if not platform.is_posix:
        return ("nothing can be confined on this system",)
    found = [
        _file_gap("read", permissions.read, platform, least=1),
        _file_gap("write", permissions.write, platform, least=_TRUNCATE_ABI),
        _run_gap(permissions, platform),
        _net_gap(permissions, platform),
    ]
    return tuple(gap for gap in found if gap is not None)


def ports_from(permissions: Permissions) -> tuple[int, ...] | None:
    """The ports that may be reached on any host; None if all of them may."""
    net = permissions.net
    if isinstance(net, bool):
        return None if net else ()
    if "*" in net:
        return None
    found = (_ANY_HOST.fullmatch(entry) for entry in net)
    return tuple(sorted(int(entry[1]) for entry in found if entry))


def _file_gap(
    kind: str, access: object, platform: Platform, *, least: int
) -> str | None:
    if access is True:
        return None
    if platform.landlock_abi == 0:
        return f"{kind} cannot be restricted, because this system has no Landlock"
    if platform.landlock_abi < least:
        return (
            f"{kind} cannot be restricted, because Landlock is at version "
            f"{platform.landlock_abi} here and {least} is needed"
        )
    return _filter_gap(kind, platform) if kind == "write" else None


def _run_gap(permissions: Permissions, platform: Platform) -> str | None:
    if permissions.run is True:
        return None
    if permissions.run and platform.landlock_abi == 0:
        return "run cannot be restricted, because this system has no Landlock"
    return _filter_gap("run", platform)


def _net_gap(permissions: Permissions, platform: Platform) -> str | None:
    net = permissions.net
    if ports_from(permissions) is None:
        return None
    if not isinstance(net, bool):
        named = [entry for entry in net if not _ANY_HOST.fullmatch(entry)]
        if named:
            return (
                f"net cannot be kept to {', '.join(named)}, because a kernel knows "
                "ports and no hosts: it can enforce false, true and *:PORT"
            )
        if platform.landlock_abi < _TCP_ABI:
            return (
                "net cannot be kept to ports, because Landlock is at version "
                f"{platform.landlock_abi} here and {_TCP_ABI} is needed"
            )
    return _filter_gap("net", platform)


def _filter_gap(kind: str, platform: Platform) -> str | None:
    if platform.has_filter:
        return None
    return (
        f"{kind} cannot be restricted, because system calls can be filtered only on "
        "Linux on x86-64 and ARM64"
    )
