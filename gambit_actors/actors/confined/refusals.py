"""What the kernel refused, in words: it only says "Permission denied".

Python tells of most deeds before it does them (audit events). The last one of each
thread is kept, so that an error without a path or an address can be explained. This is
for people and models to read. It stops nobody.
"""

import os
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from gambit_actors.actors.confined.rules import Rules
from gambit_actors.deck.permissions import Permissions

Kind: TypeAlias = Literal["read", "write", "run", "net", "other"]

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MAX_TARGET = 200


class Deed(msgspec.Struct, frozen=True, kw_only=True):
    """Something the code is about to do.

    Attributes:
        kind: the permission that it takes.
        words: what it is, such as ``reading``.
        target: what it is done to.
        port: of what it is to connect to.
    """

    kind: Kind
    words: str
    target: str = ""
    port: int = 0


# By event: the permission it takes, what it is called, and which argument it is about.
_DEEDS: dict[str, tuple[Kind, str, int]] = {
    "os.listdir": ("read", "listing", 0),
    "os.scandir": ("read", "listing", 0),
    "os.mkdir": ("write", "making", 0),
    "os.remove": ("write", "removing", 0),
    "os.rmdir": ("write", "removing", 0),
    "os.rename": ("write", "moving", 0),
    "os.link": ("write", "linking", 1),
    "os.symlink": ("write", "linking", 1),
    "os.truncate": ("write", "writing", 0),
    "os.chmod": ("write", "changing the mode of", 0),
    "os.chown": ("write", "changing the owner of", 0),
    "os.utime": ("write", "changing the times of", 0),
    "os.setxattr": ("write", "changing", 0),
    "os.removexattr": ("write", "changing", 0),
    "os.exec": ("run", "running", 0),
    "os.posix_spawn": ("run", "running", 0),
    "os.system": ("run", "running", 0),
    "os.fork": ("run", "starting a process", -1),
    "os.forkpty": ("run", "starting a process", -1),
    "subprocess.Popen": ("run", "running", 0),
    "os.kill": ("other", "sending a signal to process", 0),
    "os.killpg": ("other", "sending a signal to group", 0),
    "socket.connect": ("net", "connecting to", 1),
    "socket.bind": ("net", "binding", 1),
    "socket.sendto": ("net", "sending to", 1),
    "socket.getaddrinfo": ("net", "looking up", 0),
    "socket.__new__": ("net", "opening a socket", -1),
}


class Watch:
    """Remembers the last deed of each thread, and explains refusals by it."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._last: dict[int, Deed] = {}

    def start(self) -> None:
        """Listen from here on; there is no way to stop."""
        sys.addaudithook(self._hear)

    def refused(self, problem: BaseException) -> str | None:
        """What the permissions did not grant; None if that is not what went wrong."""
        for cause in _causes(problem):
            deed = self._deed_behind(cause)
            if deed is not None and not self._is_granted(deed):
                what = f"{deed.words} {deed.target}".strip()
                return (
                    f"{what} was refused: the deck's permissions do not grant it "
                    f"({deed.kind if deed.kind != 'other' else 'no permission does'})"
                )
        return None

    def _hear(self, event: str, args: tuple[object, ...]) -> None:
        if event == "open":
            path, _, flags = args
            if isinstance(path, str | bytes):
                is_write = isinstance(flags, int) and bool(flags & _WRITING)
                deed = Deed(
                    kind="write" if is_write else "read",
                    words="writing" if is_write else "reading",
                    target=os.fsdecode(path),
                )
                self._note(deed)
        elif event in _DEEDS:
            kind, words, place = _DEEDS[event]
            about = args[place] if 0 <= place < len(args) else ""
            target, port = _target(about), _port(about)
            self._note(Deed(kind=kind, words=words, target=target, port=port))

    def _note(self, deed: Deed) -> None:
        thread = threading.get_ident()
        self._last.pop(thread, None)  # The latest is last.
        self._last[thread] = deed

    def _deed_behind(self, cause: BaseException) -> Deed | None:
        last = list(self._last.values())
        if isinstance(cause, socket.gaierror):
            lookups = [deed for deed in last if deed.words == "looking up"]
            return lookups[-1] if lookups else Deed(kind="net", words="looking up")
        if not isinstance(cause, PermissionError):
            return None
        name = cause.filename
        if isinstance(name, str | bytes):
            path = os.fsdecode(name)
            known = [deed for deed in last if deed.target == path]
            return known[-1] if known else Deed(kind="read", words="using", target=path)
        return last[-1] if last else Deed(kind="other", words="something")

    def _is_granted(self, deed: Deed) -> bool:
        """Whether it was granted all the same: then somebody else refused it."""
        rules = self._rules
        match deed.kind:
            case "read":
                paths = None if rules.read is None else (*rules.read, *rules.system)
                return _covers(paths, deed.target)
            case "write":
                # Modes and owners are refused wherever the file is.
                is_mode = rules.write is not None and deed.words.startswith("changing")
                return not is_mode and _covers(rules.write, deed.target)
            case "run":
                found = shutil.which(deed.target) or ""
                return rules.programs is None or _real(found) in rules.programs
            case "net":
                return rules.ports is None or deed.port in rules.ports
            case _:
                return False


def _covers(paths: tuple[str, ...] | None, path: str) -> bool:
    return paths is None or Permissions(read=paths).can_read(_real(path))


def _causes(problem: BaseException) -> Iterator[BaseException]:
    """An error, and what is behind it, such as in a group or of a failed connection."""
    waiting, seen = [problem], 0
    while waiting and seen < 100:  # noqa: PLR2004  (chains may be circles)
        seen += 1
        one = waiting.pop(0)
        yield one
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
        behind = [one.__cause__, getattr(one, "reason", None)]
        if isinstance(one, OSError):
            behind.append(one.__context__)
        waiting += [other for other in behind if isinstance(other, BaseException)]


def _target(about: object) -> str:
    if isinstance(about, bytes | os.PathLike):
        about = os.fsdecode(about)
    if isinstance(about, tuple):
        about = ":".join(str(part) for part in about[:2])
    return str(about)[:_MAX_TARGET]


def _port(about: object) -> int:
    port = about[1] if isinstance(about, tuple) and len(about) > 1 else 0
    return port if isinstance(port, int) else 0


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return ""
