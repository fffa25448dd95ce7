"""Ways out that the kernel leaves open unless somebody closes them."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from gambit_actors.deck.permissions import EVERYTHING, Permissions
from tests.actors.confined.trying import (
    REFUSED,
    bench,
    needs_landlock,
    wait_gone,
)

pytestmark = [needs_landlock, pytest.mark.slow]

PACKET_PAIRS = [
    f"socket.socketpair(socket.AF_UNIX, socket.{kind}{flags})"
    for kind in ("SOCK_DGRAM", "SOCK_SEQPACKET")
    for flags in ("", " | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK")
]
REFUSED_BY_LIBC = "'Permission denied'"
NOT_PERMITTED = "'Operation not permitted'"


def by_libc(call: str) -> str:
    """An expression that does a call of the C library, and says how it failed."""
    return (
        "(lambda libc: os.strerror(ctypes.get_errno()) "
        f"if libc.{call} < 0 else 'done')(ctypes.CDLL(None, use_errno=True))"
    )


@pytest.mark.parametrize("net", [False, True, ("*:443",)])
async def test_no_pair_of_sockets_leads_to_another_process(
    tmp_path: Path, net: bool | tuple[str, ...]
) -> None:
    """Only streams come in pairs: packets could be sent to any socket by its path."""
    path = tmp_path / "service"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as service:
        service.bind(str(path))
        service.setblocking(False)  # noqa: FBT003  (the name says it)
        async with bench(tmp_path) as on:
            said = await on.try_all(
                Permissions(read=True, net=net),
                f"socket.socketpair(1, socket.SOCK_DGRAM)[0].sendto(b'x', '{path}')",
                *PACKET_PAIRS,
                "[one.close() for one in socket.socketpair()]",
                "[one.close() for one in socket.socketpair(1, 1 | 0o2000000)]",
            )
        with pytest.raises(BlockingIOError):
            service.recv(1)
    assert said == [*[REFUSED] * 5, "[None, None]", "[None, None]"]


async def test_queues_and_memory_by_number_are_out_of_reach(tmp_path: Path) -> None:
    """Those of other processes can be had by a number that is guessed, or told."""
    libc = ctypes.CDLL(None, use_errno=True)
    queue = libc.msgget(0, 0o600)
    memory = libc.shmget(0, 4096, 0o600)
    locks = libc.semget(0, 1, 0o600)
    assert min(queue, memory, locks) >= 0
    try:
        async with bench(tmp_path) as on:
            said = await on.try_all(
                Permissions(),
                by_libc(f"msgsnd({queue}, b'12345678x', 1, 0)"),
                by_libc(f"msgrcv({queue}, ctypes.create_string_buffer(64), 8, 0, 0)"),
                by_libc(f"msgctl({queue}, 0, 0)"),
                by_libc(f"semop({locks}, bytes(6), 1)"),
                by_libc(f"semctl({locks}, 0, 0)"),
                by_libc(f"shmctl({memory}, 0, 0)"),
                by_libc("mq_unlink(b'/somebody')"),
            )
    finally:
        left = [libc.msgctl(queue, 0, None), libc.shmctl(memory, 0, None)]
        left.append(libc.semctl(locks, 0, 0))
    assert said == [REFUSED_BY_LIBC] * 7
    assert left == [0, 0, 0]


async def test_other_processes_keep_their_share(tmp_path: Path) -> None:
    """How others are scheduled is not changed; for oneself it may be asked."""
    pid = os.getpid()
    async with bench(tmp_path) as on:
        said = await on.try_all(
            Permissions(),
            f"os.sched_setaffinity({pid}, {{0}})",
            f"os.sched_setscheduler({pid}, os.SCHED_BATCH, os.sched_param(0))",
            f"os.sched_setparam({pid}, os.sched_param(0))",
            f"os.setpriority(os.PRIO_PROCESS, {pid}, 19)",
            "os.setpriority(os.PRIO_USER, 0, 19)",
            "os.setpriority(os.PRIO_USER, os.getuid(), 19)",
            by_libc(f"syscall(251, 1, {pid}, 3 << 13)")
            if os.uname().machine == "x86_64"
            else by_libc(f"syscall(30, 1, {pid}, 3 << 13)"),
            "os.sched_setaffinity(0, os.sched_getaffinity(0))",
            "os.nice(1) > 0",
        )
    assert said == [*[REFUSED] * 6, NOT_PERMITTED, "None", "True"]


async def test_folders_that_are_closed_cannot_be_watched(tmp_path: Path) -> None:
    """What others do in a folder is not told either; who may read all may watch."""
    async with bench(tmp_path) as on:
        watch = by_libc("inotify_init1(0)")
        said = await on.try_all(Permissions(), watch, by_libc("fanotify_init(0, 0)"))
        all_of_it = await on.try_all(Permissions(read=True), watch)
    assert said == [REFUSED_BY_LIBC] * 2
    assert all_of_it == ["'done'"]


async def test_who_may_write_everything_can_move_files(tmp_path: Path) -> None:
    """Files are renamed and linked from one folder to another, as without bounds."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "file").write_text("Here.")
    async with bench(tmp_path) as on:
        said = await on.try_all(
            EVERYTHING,
            f"os.rename('{tmp_path}/a/file', '{tmp_path}/b/file')",
            f"os.link('{tmp_path}/b/file', '{tmp_path}/a/link')",
        )
    assert said == ["None", "None"]
    assert (tmp_path / "a" / "link").read_text() == "Here."


STUBBORN = """
import fcntl, gc, os, signal, subprocess, trio
from gambit_actors import define_deck

async def run(ctx):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for number in map(int, os.listdir('/proc/self/fd')):
        try:
            # Deaf to the end of a pipe, and in the way of it.
            fcntl.fcntl(number, fcntl.F_SETFL, 0)
            fcntl.fcntl(number, fcntl.F_SETOWN, 0)
            os.open(f'/proc/self/fd/{number}', os.O_WRONLY)
        except OSError:
            pass
    for other in map(int, filter(str.isdigit, os.listdir('/proc'))):
        if other not in (os.getpid(), os.getppid()):
            try:
                os.kill(other, signal.SIGTERM)
                os.kill(other, signal.SIGSTOP)
            except OSError:
                pass
    child = subprocess.Popen(['sh', '-c', 'trap "" TERM; while true; do sleep 1; done'])
    ctx.log(f'{os.getpid()} {child.pid}')
    while True:
        await trio.sleep(1)

deck = define_deck(run=run)
"""
RUNTIME = """
import os, sys, time, trio
from gambit_actors.actors.confined.confinement import open_confinement
from gambit_actors.actors.confined.messages import Call
from gambit_actors.deck.permissions import Permissions, RunAccess

class Host:
    def log(self, fields):
        copy = os.fork() if sys.argv[1] == 'forked' else os.getppid()
        if copy == 0:
            time.sleep(60)
            os._exit(0)
        os.write(1, f'{copy} {fields["message"]}'.encode())

async def main():
    async with open_confinement() as confinement:
        call = Call(input=0, run_id='', action_call_id='', depth=1, meta={})
        permissions = Permissions(
            read=True, run=RunAccess(commands=('sh', 'sleep'))
        )
        await confinement.run({file!r}, permissions, call, Host())

trio.run(main)
"""


@pytest.mark.parametrize("how", ["alone", "forked"])
async def test_code_that_does_not_listen_ends_with_the_runtime(
    tmp_path: Path, how: str
) -> None:
    """Kill -9 of the runtime ends programs, too, of code that would keep them.

    So it does where a copy of the runtime has its end of every pipe, too.
    """
    file = tmp_path / "tried.py"
    file.write_text(STUBBORN)
    program = RUNTIME.replace("{file!r}", repr(str(file)))
    parent = await trio.lowlevel.open_process(
        [sys.executable, "-c", program, how], stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    try:
        with trio.fail_after(30):
            said = bytes(await parent.stdout.receive_some())
        copy, *pids = (int(word) for word in said.split())
        assert len(pids) == 2
    finally:
        os.kill(parent.pid, signal.SIGKILL)
        with trio.move_on_after(10, shield=True):
            await parent.wait()
            await parent.stdout.aclose()
    for pid in pids:
        await wait_gone(pid)
    if how == "forked":
        os.kill(copy, signal.SIGKILL)


async def test_the_guard_of_programs_ends_with_its_process(tmp_path: Path) -> None:
    """A process that may start programs leaves none of its own behind."""
    source = (
        "import os\n"
        "def run(ctx):\n"
        "    children = open(f'/proc/self/task/{os.getpid()}/children').read()\n"
        "    return [os.getpid(), *map(int, children.split())]\n"
    )
    permissions = Permissions(read=True, run=True)
    async with bench(tmp_path) as on:
        first = await on.run(source, permissions)
        assert first == await on.run(source, permissions)
    assert isinstance(first, list)
    assert len(first) == 2
    for pid in first:
        await wait_gone(pid)
