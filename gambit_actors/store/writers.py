"""Who may write to the logs of a folder: of several processes, one for each log.

A store that is open has a lock file, ``.writers/<its id>.lock``, and holds the system's
lock on it. The system lets go of that when the process is gone, however it went, so a
lock that is held says that its process is there. Each log says in its lines who writes
it. Somebody else who wants to go on with it takes the one turn there is in the folder
(``.writers/takeover``) and looks whether the lock of that writer is held. If it is not,
the log gets the name of its new writer before the turn is over.

All of it blocks, and belongs in a thread. Where Python has no ``fcntl`` (Windows),
nobody is kept out: who takes a log over there has to know that it is not in use.
"""

import os
import re
import secrets
import socket
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from gambit_actors.store.log_files import OWNER_ONLY

_FOLDER = ".writers"
_TURN = "takeover"
_SUFFIX = ".lock"
_FOLDER_MODE = 0o700
_OPEN = os.O_RDWR
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# What is read from a log is made into the name of a file only if it looks like this.
_WRITER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_HOST_LENGTH = 64


class Owner(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The process that a lock is held by.

    Attributes:
        boot_id: which start of the machine that was, where it can be told.
        since: when its store was opened, in UTC.
    """

    host: str
    pid: int
    boot_id: str = ""
    since: str = ""


_OWNER = msgspec.json.Decoder(Owner)
_NOBODY_KNOWN = Owner(host="an unknown host", pid=0, since="an unknown time")


class Writers:
    """The writers of a folder, and which of them is us.

    Args:
        folder: where the logs are.

    Attributes:
        id: ours, different for each store that is opened.
        owner: what others are told of us.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / _FOLDER
        host, pid = socket.gethostname(), os.getpid()
        name = re.sub(r"[^A-Za-z0-9-]", "-", host).lstrip("-")[:_HOST_LENGTH]
        self.id = f"{name or 'host'}.{pid}.{secrets.token_hex(4)}"
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self.owner = Owner(host=host, pid=pid, boot_id=_boot_id(), since=now)
        self._lock: int | None = None

    def prepare(self) -> None:
        """Make the folder of the locks.

        Raises:
            OSError: it cannot be made.
        """
        self._folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)

    def take_turn(self) -> int | None:
        """Keep all others from opening stores and taking logs over.

        Returns:
            What `end_turn` wants; None if somebody else has the turn.

        Raises:
            OSError: there can be no lock here.
        """
        turn = os.open(self._folder / _TURN, _OPEN | os.O_CREAT, OWNER_ONLY)
        try:
            has_turn = try_lock(turn)
        except OSError:
            os.close(turn)
            raise
        if not has_turn:
            os.close(turn)
            return None
        return turn

    def end_turn(self, turn: int) -> None:
        """Let others have their turn."""
        os.close(turn)  # Which lets go of the lock.

    def open(self) -> None:
        """Hold our lock, and remove those of the dead. Have the turn for this.

        Without it, a lock that is new could be removed as one that nobody holds.

        Raises:
            OSError: there can be no lock here.
        """
        for path in self._folder.glob(f"*{_SUFFIX}"):
            # What is not ours to open is not ours to remove, either.
            if not _is_held(path):
                with suppress(OSError):
                    path.unlink(missing_ok=True)
        path = self._path(self.id)
        lock = os.open(path, _OPEN | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        try:
            try_lock(lock)
            os.write(lock, msgspec.json.encode(self.owner) + b"\n")
        except OSError:
            os.close(lock)
            raise
        self._lock = lock

    def close(self) -> None:
        """Let go of our lock. Again is harmless."""
        lock, self._lock = self._lock, None
        if lock is not None:
            # Somebody who removed it, or its folder, has done this for us.
            with suppress(OSError):
                self._path(self.id).unlink(missing_ok=True)
            os.close(lock)

    def holder(self, writer: str) -> Owner | None:
        """Who holds the lock of a writer; None if it is gone. Have the turn for this.

        One that cannot be looked at counts as held: by whom, is not known.
        """
        path = self._path(writer)
        if not _WRITER_ID.fullmatch(writer) or not _is_held(path):
            return None
        try:
            return _OWNER.decode(path.read_bytes())
        except (OSError, ValueError):
            return _NOBODY_KNOWN  # It is held all the same.

    def _path(self, writer: str) -> Path:
        return self._folder / f"{writer}{_SUFFIX}"


def _is_held(path: Path) -> bool:
    """Whether somebody has a lock, or may have it."""
    try:
        # To write, because on a network disk only such a file can be locked.
        descriptor = os.open(path, _OPEN)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # Another user's, maybe: who knows.
    try:
        return not try_lock(descriptor)
    except OSError:
        return True
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Lock an open file, if nobody else has; without ``fcntl`` nobody ever has."""
    try:
        import fcntl  # noqa: PLC0415  (not on every system)
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""
