"""A confined process as the runtime has it: its pipes, its end, and its death.

The process is the head of a session and of a group, and everything it starts stays in
that group. Whatever happens to the process, the group is killed as a whole.
"""

import os
import select
import signal
import subprocess
import sys
import sysconfig
from collections import deque
from contextlib import ExitStack, suppress
from pathlib import Path

import trio

from gambit_actors.actors.confined.messages import (
    Frames,
    FromWorker,
    from_worker,
)
from gambit_actors.actors.exec_tool import PATH

# Some builds of Python do not start without the last.
_ENVIRONMENT = ("TZ", "LD_LIBRARY_PATH")
_STDLIB = sysconfig.get_path("stdlib")
_CHUNK = 65_536
# After SIGKILL only the kernel can keep a process, such as on a disk that is gone.
_REAP_SECONDS = 5
# One that may start programs has started a process of ours first; see `limiting`.
_GUARDS = 1


class Gone(Exception):  # it says more than with Error
    """The process has ended, or closed its pipe, without an answer."""


class WorkerProcess:
    """One process, from its start to its end. Starting it blocks for a moment.

    It is started from the Trio thread and from no other: the kernel kills it when the
    thread that started it ends, and Trio's other threads come and go.

    Attributes:
        calls: how many it has been given.
        received_bytes: how much it has said since somebody set this to 0.
        is_torn: whether a message to it was left off in the middle.
    """

    def __init__(self) -> None:
        with ExitStack() as ours:
            requests, own_requests = _pipe(ours)
            own_replies, replies = _pipe(ours)
            lifeline, own_lifeline = _pipe(ours)
            theirs = (requests, replies, lifeline)
            self._process = subprocess.Popen(  # noqa: S603  # nothing of it is given
                [
                    *(sys.executable, "-B", "-P", "-m"),
                    "gambit_actors.actors.confined.worker",
                    *(str(number) for number in (*theirs, os.getpid())),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=theirs,
                env=_environment(),
                cwd="/",
                start_new_session=True,
            )
            # Without a way to hear of its end it is not kept.
            ours.callback(self._process.wait)
            ours.callback(self._process.kill)
            has_pidfd = hasattr(os, "pidfd_open")
            self._end = os.pidfd_open(self._process.pid) if has_pidfd else None
            ours.pop_all()
        for number in theirs:
            os.close(number)
        self.pid = self._process.pid
        self.calls = 0
        self.received_bytes = 0
        self.is_torn = False
        self._lifeline: int | None = own_lifeline
        self._requests = trio.lowlevel.FdStream(own_requests)
        self._replies = trio.lowlevel.FdStream(own_replies)
        self._sending = trio.Lock()
        self._frames = Frames()
        self._waiting: deque[bytes] = deque()

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended yet, as far as is known without waiting."""
        if self._end is None:
            return self._process.returncode is None
        poll = select.poll()  # Unlike select, it takes descriptors beyond 1023.
        poll.register(self._end, select.POLLIN)
        return not poll.poll(0)

    @property
    def has_left(self) -> bool:
        """Whether something it has started is still there, ended or not."""
        found = list(Path(f"/proc/{self.pid}/task").glob("*/children"))
        try:
            children = [pid for file in found for pid in file.read_text().split()]
        except OSError:
            return True
        return not found or len(children) > _GUARDS

    @property
    def how_it_ended(self) -> str:
        """What became of it, as the end of a sentence; known when it was reaped."""
        code = self._process.returncode
        if code is None:
            return "closed its pipe"
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"ended with code {code}"

    async def send(self, data: bytes) -> None:
        """Send messages. One that is gone does not hear them, and that is all."""
        async with self._sending:
            self.is_torn = True  # Until it is whole: a cancel may come in between.
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self._requests.send_all(data)
            self.is_torn = False

    async def receive(self) -> FromWorker:
        """Wait for the next message.

        Raises:
            Gone: there will be none.
            ValueError: what came is no message, or too large.
        """
        await trio.lowlevel.checkpoint()
        while not self._waiting:
            try:
                chunk = await self._replies.receive_some(_CHUNK)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                chunk = b""
            if not chunk:
                raise Gone
            self.received_bytes += len(chunk)
            self._waiting.extend(self._frames.feed(chunk))
        message: FromWorker = from_worker.decode(self._waiting.popleft())
        return message

    async def kill_when_ended(self) -> None:
        """Wait for its end, and end what it has left: that may hold the pipe open."""
        await self._wait_ended()
        self.kill()

    def kill(self) -> None:
        """Kill it, with all that it has started. Once it is reaped, do nothing."""
        # Before it is waited for: until then nobody else can get its number.
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def end(self) -> None:
        """Kill it, and wait until it is gone, also when cancelled; but not for long."""
        self.kill()
        with trio.move_on_after(_REAP_SECONDS, shield=True):
            await self._wait_ended()
            self._process.wait()
        self._close()
        await trio.lowlevel.cancel_shielded_checkpoint()

    def kill_and_wait(self) -> None:
        """Kill it and wait without Trio, for whoever still uses it to find it dead."""
        self.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_REAP_SECONDS)

    async def _wait_ended(self) -> None:
        if self._end is None:
            await trio.to_thread.run_sync(self._process.wait, abandon_on_cancel=True)
        else:
            await trio.lowlevel.wait_readable(self._end)

    def _close(self) -> None:
        self._requests.close()
        self._replies.close()
        for number in (self._end, self._lifeline):
            if number is not None:
                os.close(number)
        self._end = self._lifeline = None


def _pipe(ours: ExitStack) -> tuple[int, int]:
    """Open a pipe; both its ends are closed when the stack is."""
    ends = os.pipe()
    for number in ends:
        ours.callback(os.close, number)
    return ends


def _environment() -> dict[str, str]:
    kept = {key: os.environ[key] for key in _ENVIRONMENT if key in os.environ}
    # What we can import, the module can, if it may be read: Python's own first.
    paths = [str(Path(entry).absolute()) for entry in sys.path if entry]
    paths.sort(key=lambda entry: not entry.startswith(_STDLIB))
    return kept | {
        "PATH": PATH,
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(paths),
    }
