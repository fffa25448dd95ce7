"""The filter decides as it should, on both machines it is made for."""

import errno

import pytest

from gambit_actors.actors.confined import seccomp
from gambit_actors.actors.confined.rules import Rules
from gambit_actors.actors.confined.seccomp import MACHINES, Instruction, filter_for

X86, ARM = MACHINES["x86_64"], MACHINES["aarch64"]
ALLOW, KILL = 0x7FFF0000, 0x80000000
DENY = 0x00050000 | errno.EPERM
REFUSE, MISSING = 0x00050000 | errno.EACCES, 0x00050000 | errno.ENOSYS


def rules(**changes: object) -> Rules:
    """Rules that restrict nothing but what is told."""
    plain = {"read": None, "write": None, "programs": None, "ports": None}
    return Rules(system=(), helpers=(), **(plain | changes))  # type: ignore[arg-type]


def decided(program: list[Instruction], mark: int, number: int, *args: int) -> int:
    """Run a filter as the kernel does."""
    words = {0: number, 4: mark} | {16 + 8 * n: value for n, value in enumerate(args)}
    value = at = 0
    while True:
        code, if_true, if_false, constant = program[at]
        at += 1
        match code:
            case 0x20:
                value = words.get(constant, 0)
            case 0x54:
                value &= constant
            case 0x15:
                at += if_true if value == constant else if_false
            case 0x45:
                at += if_true if value & constant else if_false
            case 0x06:
                return constant


@pytest.mark.parametrize(
    ("machine", "ptrace", "socket", "clone", "execve", "fchmod", "read"),
    [(X86, 101, 41, 56, 59, 91, 0), (ARM, 117, 198, 220, 221, 52, 63)],
)
def test_calls_are_refused_by_rule(  # noqa: PLR0913  # one number for each call
    *,
    machine: seccomp.Machine,
    ptrace: int,
    socket: int,
    clone: int,
    execve: int,
    fchmod: int,
    read: int,
) -> None:
    """Each kind refuses its own calls, on each machine by that machine's numbers."""
    mark = machine.mark
    free = filter_for(rules(), machine)
    assert decided(free, mark, ptrace) == REFUSE
    assert [decided(free, mark, one) for one in (clone, execve, fchmod, read)] == [
        ALLOW
    ] * 4
    assert decided(free, mark, socket, 2, 2) == ALLOW
    assert decided(free, mark, socket, 1, 1) == REFUSE
    assert decided(filter_for(rules(write=()), machine), mark, fchmod) == REFUSE
    alone = filter_for(rules(programs=()), machine)
    assert decided(alone, mark, execve) == REFUSE
    assert decided(alone, mark, clone, 17) == REFUSE
    assert decided(alone, mark, clone, 0x3D0F00) == ALLOW  # A thread.
    assert decided(alone, mark, 435) == MISSING
    tcp = filter_for(rules(ports=(443,)), machine)
    assert decided(tcp, mark, socket, 2, 1 | 0o2000000, 0) == ALLOW
    assert decided(tcp, mark, socket, 10, 1, 6) == ALLOW
    assert decided(tcp, mark, socket, 2, 2, 0) == REFUSE
    assert decided(tcp, mark, socket, 2, 1, 262) == REFUSE
    assert decided(filter_for(rules(ports=()), machine), mark, socket, 2, 1) == REFUSE


@pytest.mark.parametrize(
    ("machine", "numbers"),
    [
        (X86, (*range(64, 72), 29, 30, 31, 220, *range(240, 246))),
        (ARM, tuple(range(180, 198))),
    ],
)
def test_what_is_shared_by_number_is_refused(
    machine: seccomp.Machine, numbers: tuple[int, ...]
) -> None:
    """Every call for queues, locks and memory of System V, and for POSIX queues."""
    free = filter_for(rules(), machine)
    assert {decided(free, machine.mark, number) for number in numbers} == {REFUSE}


@pytest.mark.parametrize(
    ("machine", "socketpair", "inotify"), [(X86, 53, 294), (ARM, 199, 26)]
)
def test_pairs_and_watches(
    machine: seccomp.Machine, socketpair: int, inotify: int
) -> None:
    """Pairs are streams of this machine; watching goes with reading everything."""
    mark, flags = machine.mark, 0o2004000
    for changes in ({}, {"ports": ()}, {"ports": (443,)}):
        made = filter_for(rules(**changes), machine)
        assert decided(made, mark, socketpair, 1, 1 | flags) == ALLOW
        for kind in (2, 3, 5, 2 | flags):
            assert decided(made, mark, socketpair, 1, kind) == REFUSE
        assert decided(made, mark, socketpair, 30, 1) == REFUSE
    assert decided(filter_for(rules(), machine), mark, inotify) == ALLOW
    assert decided(filter_for(rules(read=()), machine), mark, inotify) == REFUSE


@pytest.mark.parametrize(
    ("machine", "by_id", "by_kind"),
    [
        (X86, (142, 144, 203, 314), {141: 2, 251: 3}),
        (ARM, (118, 119, 122, 274), {140: 2, 30: 3}),
    ],
)
def test_only_itself_is_scheduled(
    machine: seccomp.Machine, by_id: tuple[int, ...], by_kind: dict[int, int]
) -> None:
    """Priorities are for the process that asks, and never for all of a user."""
    free = filter_for(rules(), machine)
    for number in by_id:
        assert decided(free, machine.mark, number, 0) == ALLOW
        assert decided(free, machine.mark, number, 4711) == DENY
    for number, of_user in by_kind.items():
        assert decided(free, machine.mark, number, of_user - 2, 0) == ALLOW
        assert decided(free, machine.mark, number, of_user - 2, 4711) == DENY
        assert decided(free, machine.mark, number, of_user, 0) == DENY


def test_calls_of_another_table_end_the_process() -> None:
    """Numbers mean something else to another machine, so its calls are no calls."""
    program = filter_for(rules(), X86)
    assert decided(program, ARM.mark, 0) == KILL
    assert decided(program, 0x40000003, 0) == KILL
    assert decided(program, X86.mark, 0x40000000) == KILL


@pytest.mark.parametrize("machine", [X86, ARM])
def test_a_filter_is_one_that_the_kernel_takes(machine: seccomp.Machine) -> None:
    """No jump is longer than a byte can say, or leads past the end."""
    closed = rules(read=(), write=(), programs=(), ports=())
    for program in (
        filter_for(closed, machine),
        filter_for(rules(ports=(1,)), machine),
    ):
        assert len(program) < 4096
        for at, (_, if_true, if_false, _) in enumerate(program):
            assert max(if_true, if_false) < 256
            assert at + 1 + max(if_true, if_false) < len(program) + 1
