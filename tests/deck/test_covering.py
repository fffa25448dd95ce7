"""An entry covers what it stands for and no more, and what is malformed is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.deck.covering import (
    COMMANDS,
    HOSTS,
    PATHS,
    PROGRAMS,
    VARIABLES,
    Grammar,
    is_usable,
)
from gambit_actors.deck.permissions import (
    EVERYTHING,
    NOTHING,
    Permissions,
    RunAccess,
    intersection,
)
from tests.deck.permission_sets import (
    commands,
    host_entries,
    hosts,
    paths,
    ports,
    variable_entries,
    variables,
)


@given(st.lists(paths, max_size=3), paths)
def test_folders_cover_what_is_under_them(granted: list[str], target: str) -> None:
    """A path is allowed exactly if it is a granted one or begins with one and ``/``."""
    expected = any(
        target == entry or target.startswith(entry.rstrip("/") + "/")
        for entry in granted
    )

    assert Permissions(read=tuple(granted)).can_read(target) == expected
    assert Permissions(write=tuple(granted)).can_write(target) == expected


@given(st.lists(host_entries, max_size=3), hosts, ports)
def test_host_entries_cover_hosts_and_ports(
    granted: list[str], host: str, port: int
) -> None:
    """A connection is allowed exactly if an entry fits both its host and its port."""

    def fits(entry: str) -> bool:
        for suffix in ("", f":{port}"):
            pattern = entry.removesuffix(suffix)
            if pattern + suffix == entry and (
                pattern in {"*", host}
                or (pattern.startswith("*.") and host.endswith(pattern[1:]))
            ):
                return True
        return False

    allowed = Permissions(net=tuple(granted))

    assert allowed.can_reach(host, port) == any(map(fits, granted))


@given(st.lists(variable_entries, max_size=3), variables)
def test_prefixes_cover_names(granted: list[str], name: str) -> None:
    """A variable is allowed exactly if it is named or begins with a granted prefix."""
    expected = any(
        name.startswith(entry[:-1]) if entry.endswith("*") else name == entry
        for entry in granted
    )

    assert Permissions(env=tuple(granted)).can_see(name) == expected


@given(st.lists(commands, max_size=3), st.lists(paths, max_size=3), commands, paths)
def test_programs_are_exact(
    granted: list[str], granted_paths: list[str], command: str, path: str
) -> None:
    """A program is allowed exactly as it is listed, names and paths kept apart."""
    allowed = Permissions(
        run=RunAccess(commands=tuple(granted), paths=tuple(granted_paths))
    )

    assert allowed.can_run_command(command) == (command in granted)
    assert allowed.can_run_path(path) == (path in granted_paths)


def test_folder_does_not_cover_its_namesakes() -> None:
    """``/a/b`` covers itself and ``/a/b/c``, not ``/a/bc`` and not ``/a``."""
    allowed = Permissions(read=("/a/b",))

    assert allowed.can_read("/a/b")
    assert allowed.can_read("/a/b/c")
    assert not allowed.can_read("/a/bc")
    assert not allowed.can_read("/a")
    assert not allowed.can_write("/a/b")


def test_root_folder_covers_all() -> None:
    """``/`` covers every path, and intersecting with it changes nothing."""
    allowed = Permissions(read=("/",))
    inner = Permissions(read=("/a", "/b/c"))

    assert allowed.can_read("/")
    assert allowed.can_read("/a/b")
    assert intersection(allowed, inner) == inner


@pytest.mark.parametrize(
    "path", ["", "a", "./a", "..", "/a/../b", "/..", "/a/..", "//a", "/a\0b"]
)
def test_paths_that_could_lead_elsewhere_are_refused(path: str) -> None:
    """A relative path, or one with ``..``, is refused even if all is granted."""
    assert not EVERYTHING.can_read(path)
    assert not EVERYTHING.can_write(path)
    assert not EVERYTHING.can_run_path(path)
    assert Permissions(read=(path,), run=RunAccess(paths=(path,))) == NOTHING


def test_wildcard_host_with_port() -> None:
    """``*.example.com:443`` is every sub-domain at that port, not the domain itself."""
    allowed = Permissions(net=("*.example.com:443",))

    assert allowed.can_reach("a.example.com", 443)
    assert allowed.can_reach("B.a.Example.COM.", 443)
    assert not allowed.can_reach("a.example.com", 80)
    assert not allowed.can_reach("example.com", 443)
    assert not allowed.can_reach("badexample.com", 443)


def test_hosts_meet_at_the_narrower_host_and_port() -> None:
    """Of two entries that overlap, the narrower host and the narrower port stay."""
    left = Permissions(net=("*:443", "[::1]", "*.a.com:80"))
    right = Permissions(net=("*.example.com", "[::1]:80", "*.com:80"))

    assert intersection(left, right).net == (
        "*.a.com:80",
        "*.example.com:443",
        "[::1]:80",
    )


def test_addresses_are_compared_by_value() -> None:
    """An IPv6 address is the same however it is written, with brackets or without."""
    allowed = Permissions(net=("[0:0:0::1]:80",))

    assert allowed.can_reach("::1", 80)
    assert allowed.can_reach("[::1]", 80)
    assert not allowed.can_reach("::1", 81)
    assert not allowed.can_reach("::2", 80)


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("", 80),
        ("*", 80),
        ("*.x.com", 80),
        ("x.com:80", 80),
        ("x.com/", 80),
        ("me@x.com", 80),
        ("evil.com／.x.com", 80),
        ("\u212a.com", 80),
        ("[::1", 80),
        ("::1]", 80),
        ("[x.com]", 80),
        ("a..x.com", 80),
        ("x.com\n", 80),
        ("x.com", 0),
        ("x.com", -1),
        ("x.com", 65536),
    ],
)
def test_hosts_that_are_none_are_refused(host: str, port: int) -> None:
    """What is not one host and one port is refused even if all is granted."""
    assert not EVERYTHING.can_reach(host, port)
    assert not Permissions(net=("*", "*.x.com", "k.com")).can_reach(host, port)


def test_names_that_are_none_are_refused() -> None:
    """A variable or a command needs a name, even if all is granted."""
    assert EVERYTHING.can_see("HOME")
    assert EVERYTHING.can_run_command("git")
    assert not any(map(EVERYTHING.can_see, ["", "A=B", "A*", "A\0"]))
    assert not any(map(EVERYTHING.can_run_command, ["", "git\0"]))


def test_command_and_path_are_kept_apart() -> None:
    """A granted program's path does not grant its name, nor the reverse."""
    by_name = Permissions(run=RunAccess(commands=("git",)))
    by_path = Permissions(run=RunAccess(paths=("/usr/bin/git",)))

    assert by_name.can_run_command("git")
    assert not by_name.can_run_path("/usr/bin/git")
    assert not by_name.can_run_command("/usr/bin/git")
    assert by_path.can_run_path("/usr/bin/git")
    assert not by_path.can_run_path("/usr/bin/git/x")
    assert not by_path.can_run_command("git")


@pytest.mark.parametrize(
    ("grammar", "entry", "usable"),
    [
        (PATHS, "/a b/*", True),
        (PATHS, "/" + "a" * 5000, False),
        (PATHS, "./data", False),
        (HOSTS, "my_host-1:8080", True),
        (HOSTS, "*:80", True),
        (HOSTS, "https://x.com", False),
        (HOSTS, "x.com/path", False),
        (HOSTS, "bücher.example", False),
        (HOSTS, "xn--bcher-kva.example", True),
        (HOSTS, "::1", False),
        (HOSTS, "[fe80::1%eth0]", False),
        (HOSTS, "x.com:", False),
        (HOSTS, "x.com:99999", False),
        (HOSTS, "*.", False),
        (HOSTS, "a.*.com", False),
        (HOSTS, "*.0.0.1", False),
        (VARIABLES, "AWS_*", True),
        (VARIABLES, "*_KEY", False),
        (VARIABLES, "A=B", False),
        (COMMANDS, "npm run", True),
        (COMMANDS, "", False),
        (PROGRAMS, "/usr/bin/git", True),
        (PROGRAMS, "git", False),
    ],
)
def test_entries_that_can_match_are_told_from_those_that_can_not(
    grammar: Grammar, entry: str, usable: bool
) -> None:
    """A reader of declarations can ask whether an entry would be dropped."""
    assert is_usable(entry, grammar) == usable
