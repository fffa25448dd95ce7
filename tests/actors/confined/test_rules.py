"""Which permissions a platform can keep, and what is said of those it cannot."""

import pytest

from gambit_actors.actors.confined import landlock
from gambit_actors.actors.confined.rules import Platform, Rules, gaps, ports_from
from gambit_actors.deck.permissions import (
    EVERYTHING,
    NOTHING,
    Permissions,
    RunAccess,
)

FULL = Platform(is_posix=True, landlock_abi=7, has_filter=True)
BARE = Platform(is_posix=True, landlock_abi=0, has_filter=False)
OPEN = Rules(read=None, system=(), write=None, programs=None, helpers=(), ports=None)
CLOSED = Rules(read=(), system=(), write=(), programs=(), helpers=(), ports=())


@pytest.mark.parametrize(
    "permissions",
    [
        NOTHING,
        EVERYTHING,
        Permissions(read=("/a",), write=("/b",), run=RunAccess(commands=("git",))),
        Permissions(net=("*:443", "*:80"), env=("A_*",)),
        Permissions(net=("*",)),
    ],
)
def test_a_recent_linux_keeps_them(permissions: Permissions) -> None:
    """Files, programs, ports and variables can all be enforced."""
    assert gaps(permissions, FULL) == ()


def test_hosts_are_not_kept_by_a_kernel() -> None:
    """An entry with a host is refused by name, and says what can be enforced."""
    permissions = Permissions(net=("example.com:443", "*:80", "*.example.org"))
    (gap,) = gaps(permissions, FULL)
    assert "net cannot be kept to *.example.org, example.com:443" in gap
    assert "*:PORT" in gap


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        ({"landlock_abi": 0}, ["read", "write", "run", "net"]),
        ({"landlock_abi": 2}, ["write", "net"]),
        ({"landlock_abi": 3}, ["net"]),
        ({"landlock_abi": 4}, []),
        ({"has_filter": False}, ["write", "run", "net"]),
    ],
)
def test_each_kind_needs_its_means(change: dict[str, int], kinds: list[str]) -> None:
    """What is missing is said for the kinds that need it, and for no others."""
    facts = {"is_posix": True, "landlock_abi": 7, "has_filter": True} | change
    run = RunAccess(commands=("git",))
    permissions = Permissions(read=("/a",), write=("/a",), run=run, net=("*:80",))
    found = gaps(permissions, Platform(**facts))  # type: ignore[arg-type]  # of a table
    assert [gap.split()[0] for gap in found] == kinds


def test_what_is_granted_whole_needs_nothing() -> None:
    """Variables are kept by a clean environment, wherever processes can be started."""
    permissions = Permissions(read=True, write=True, run=True, net=True, env=("A",))
    assert gaps(permissions, BARE) == ()
    nowhere = Platform(is_posix=False, landlock_abi=0, has_filter=False)
    assert gaps(permissions, nowhere) == ("nothing can be confined on this system",)


def test_ports_are_those_of_any_host() -> None:
    """True and * are all ports, False is none, entries with hosts are none either."""
    assert ports_from(Permissions(net=True)) is None
    assert ports_from(Permissions(net=("*",))) is None
    assert ports_from(Permissions()) == ()
    assert ports_from(Permissions(net=("*:443", "*:80", "a.b:1"))) == (80, 443)


@pytest.mark.parametrize("version", range(1, 8))
def test_only_rights_that_the_kernel_knows_are_given_up(version: int) -> None:
    """A ruleset names no right that came with a later version of Landlock."""
    known = {1: 12, 2: 13, 3: 14, 4: 14, 5: 15, 6: 15, 7: 15}[version]
    assert landlock.handled(CLOSED, version) < 1 << (known + 1)
    # The kernel refuses REFER to all that is restricted, so it has to be granted back.
    refer = landlock.REFER if version > 1 else 0
    assert landlock.handled(OPEN, version) == landlock.MAKE_BLOCK | refer
    assert ("/", landlock.REFER) in landlock.granted(OPEN)


def test_rights_are_granted_by_path() -> None:
    """Reading, writing and starting are granted where they were, and apart."""
    rules = Rules(
        read=("/r",),
        system=("/s",),
        write=("/w",),
        programs=("/p",),
        helpers=("/h",),
        ports=(),
    )
    rights = dict(landlock.granted(rules))
    assert rights["/r"] == rights["/s"] == landlock.READING
    assert not rights["/w"] & (landlock.READING | landlock.EXECUTE)
    assert rights["/w"] & landlock.REFER
    assert rights["/p"] == rights["/h"] == landlock.EXECUTE | landlock.READ_FILE
    assert rights["/dev/null"] & landlock.WRITE_FILE
