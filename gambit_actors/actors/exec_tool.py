"""Programs, run for a model: without a shell, within a time, and gone afterwards.

`run_group` starts a program as the head of a process group of its own and kills the
group whichever way it is left, so neither the end of the program, nor a deadline, nor
a cancelled run leaves anything of the group behind. `run_program` is the tool: it asks
the permissions which program, where, and with which variables.

What a program does while it runs is not confined: it has the rights of this process.
"""

import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

import msgspec
import trio

from gambit_actors.actors.confined.own_files import own_writable, words_for
from gambit_actors.actors.file_tools import Reach, Refused
from gambit_actors.actors.searching import open_folder
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.envelopes import Envelope, refusal

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where commands are looked up, whatever the PATH of this process is."""

MAX_OUTPUT = 65_536
MAX_TIMEOUT_MS = 30_000
_PLAIN_ENVIRONMENT = {"PATH": PATH, "LANG": "C.UTF-8"}
_CHUNK = 65_536
# A process that left the group may hold a pipe open; what it writes is not waited for.
_LAST_OUTPUT_SECONDS = 0.5
# After SIGKILL only the kernel can keep a process, such as on a disk that is gone.
_REAP_SECONDS = 5

Stream = TypeVar("Stream", trio.abc.SendStream, trio.abc.ReceiveStream)


class Exec(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of ``exec``."""

    command: str
    args: list[str] = []
    cwd: str | None = None
    timeout_ms: int = 5000


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A program that may be run."""

    command: list[str]
    cwd: str
    env: dict[str, str]


class Kept:
    """The start of what a process writes; the rest is read and dropped."""

    def __init__(self, most: int) -> None:
        self._data = bytearray()
        self._most = most
        # As many bytes as that many characters can have.
        self._most_bytes = 4 * most
        self._is_cut = False

    def feed(self, chunk: bytes | bytearray) -> None:
        """Take the next bytes."""
        room = self._most_bytes - len(self._data)
        self._data += chunk[:room]
        self._is_cut |= len(chunk) > room

    @property
    def text(self) -> str:
        """What was kept; bytes that are no UTF-8 are marked."""
        return self._data.decode("utf-8", "replace")[: self._most]

    @property
    def is_cut(self) -> bool:
        """Whether there was more."""
        return self._is_cut or len(self._data.decode("utf-8", "replace")) > self._most


async def run_program(asked: Exec, reach: Reach) -> Envelope:
    """Run a program and give what it printed.

    Raises:
        Refused: it may not be run, or not there.
        OSError: where it is to run cannot be used.
    """
    if os.name != "posix":
        await trio.lowlevel.checkpoint()
        return refusal(501, "unsupported", "programs cannot be run on this system")
    prepared = await trio.to_thread.run_sync(
        _prepared, asked, reach, abandon_on_cancel=True
    )
    stdout, stderr = Kept(MAX_OUTPUT), Kept(MAX_OUTPUT)
    code: int | None = None
    try:
        with trio.move_on_after(min(asked.timeout_ms, MAX_TIMEOUT_MS) / 1000):
            code = await run_group(
                prepared.command,
                cwd=prepared.cwd,
                env=prepared.env,
                stdout=stdout,
                stderr=stderr,
            )
    except OSError as problem:
        words = problem.strerror or "no reason given"
        message = f"{asked.command} cannot be started: {words}"
        return refusal(500, "exec_failed", message)
    payload: dict[str, JSONValue] = {
        "command": asked.command,
        "args": asked.args,
        "cwd": "." if asked.cwd is None else asked.cwd,
        "code": code,
        "success": code == 0,
        "stdout": stdout.text,
        "stderr": stderr.text,
    }
    if stdout.is_cut or stderr.is_cut:
        payload["truncated"] = True
    if code is None:
        message = f"{asked.command} was stopped after {asked.timeout_ms} ms"
        return refusal(504, "timeout", message, payload=payload)
    return Envelope(payload=payload)


async def run_group(
    command: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    stdout: Kept,
    stderr: Kept,
    given: bytes = b"",
) -> int:
    """Run a program with all that it starts, until it ends or the caller is cancelled.

    Args:
        command: the path of the program, and its arguments.
        cwd: where it runs.
        env: all of its variables.
        stdout: takes what it prints, also when it is cancelled.
        stderr: the same for its errors.
        given: what it can read.

    Returns:
        Its exit code; the number of a signal that ended it, as a negative one.

    Raises:
        OSError: it cannot be started.
    """
    process = await trio.lowlevel.open_process(
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=dict(env),
        start_new_session=True,
    )
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_give, process.stdin, given)
            nursery.start_soon(_keep, process.stdout, stdout)
            nursery.start_soon(_keep, process.stderr, stderr)
            await _wait_ended(process)
            _kill_group(process)
            deadline = trio.current_time() + _LAST_OUTPUT_SECONDS
            nursery.cancel_scope.deadline = deadline
    finally:
        _kill_group(process)
        # Killed is not gone: until it is waited for, it is a zombie.
        with trio.move_on_after(_REAP_SECONDS, shield=True):
            await _open(process.stdin).aclose()
            await _open(process.stdout).aclose()
            await _open(process.stderr).aclose()
            await process.wait()
    return -signal.SIGKILL if process.returncode is None else process.returncode


def _prepared(asked: Exec, reach: Reach) -> Prepared:
    if "\0" in "".join((asked.command, *asked.args)):
        raise Refused(400, "invalid_input", "the command or an argument has a NUL")
    home = reach.locate(".")
    writable = own_writable(reach.permissions, home, sources=reach.sources)
    if writable is not None:
        message = f"programs are not run for this deck: {words_for(writable)}"
        raise Refused(403, "permission_denied", message)
    seen = {
        name: value
        for name, value in os.environ.items()
        if reach.permissions.can_see(name)
    }
    return Prepared(
        command=[_program(asked.command, reach), *asked.args],
        cwd=_cwd(asked.cwd, reach),
        env=_PLAIN_ENVIRONMENT | seen,
    )


def _program(command: str, reach: Reach) -> str:
    if "/" not in command:
        is_allowed = reach.permissions.can_run_command(command)
        found = shutil.which(command, path=PATH) if is_allowed else None
    else:
        real = reach.locate(command)
        is_allowed = reach.permissions.can_run_path(real)
        found = real if is_allowed and _is_program(real) else None
    if not is_allowed:
        raise Refused(403, "permission_denied", f"{command} may not be run")
    if found is None:
        raise Refused(404, "not_found", f"there is no program {command}")
    return found


def _is_program(path: str) -> bool:
    above, _, name = path.rpartition("/")
    try:
        folder = open_folder(above)
    except OSError:
        return False
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        return stat.S_ISREG(found.st_mode) and os.access(name, os.X_OK, dir_fd=folder)
    except OSError:
        return False
    finally:
        os.close(folder)


def _cwd(path: str | None, reach: Reach) -> str:
    # The deck's own folder is where a deck is at home; it need not be granted.
    own = reach.locate(".")
    is_own = path is None or reach.locate(path) == own
    real = own if path is None or is_own else reach.readable(path)
    os.close(open_folder(real))
    return real


async def _give(pipe: trio.abc.SendStream | None, given: bytes) -> None:
    async with _open(pipe) as stream:
        with suppress(trio.BrokenResourceError):  # It need not read what it is given.
            await stream.send_all(given)


async def _keep(pipe: trio.abc.ReceiveStream | None, kept: Kept) -> None:
    stream = _open(pipe)
    # Read on when enough is kept: a full pipe would stop the program.
    while chunk := await stream.receive_some(_CHUNK):
        kept.feed(chunk)


def _open(pipe: Stream | None) -> Stream:
    assert pipe is not None  # noqa: S101  # asked for when the process was started
    return pipe


async def _wait_ended(process: trio.Process) -> None:
    """Wait for the end of a process, and leave it to be waited for again.

    Until then its id is taken. Once that is free, its group may be somebody else's,
    and must not be killed any more.
    """
    if not hasattr(os, "pidfd_open"):
        await process.wait()  # The id is free for the moment until the group is killed.
        return
    ended = os.pidfd_open(process.pid)
    try:
        await trio.lowlevel.wait_readable(ended)
    finally:
        os.close(ended)


def _kill_group(process: trio.Process) -> None:
    # None of it is left, or the system counts those as not ours that have just ended.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
