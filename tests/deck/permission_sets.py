"""Permissions to draw, and questions to ask them, for the tests of both.

The strategies draw from a handful of names, so that entries often cover each other.
"""

from collections.abc import Callable
from typing import TypeAlias

from hypothesis import strategies as st

from gambit_actors.deck.permissions import Access, Permissions, Programs, RunAccess

Check: TypeAlias = Callable[[Permissions], bool]
"""One question to a set: may this be done?"""

paths = st.lists(st.sampled_from(["a", "b", "ab", "*"]), max_size=3).map(
    lambda steps: "/" + "/".join(steps)
)
names = st.lists(st.sampled_from(["a", "b", "com"]), min_size=1, max_size=3).map(
    ".".join
)
hosts = names | st.sampled_from(["127.0.0.1", "[::1]"])
ports = st.sampled_from([80, 443])
host_patterns = hosts | names.map("*.{}".format) | st.just("*")
host_entries = host_patterns | st.builds("{}:{}".format, host_patterns, ports)
variables = st.text("AB", min_size=1, max_size=3)
variable_entries = variables | st.text("AB", max_size=2).map("{}*".format)
commands = st.sampled_from(["git", "ls", "/a"])


def accesses(entries: st.SearchStrategy[str]) -> st.SearchStrategy[Access]:
    """Draw an access; lists more often than the two that hide everything else."""
    lists = st.lists(entries, max_size=4).map(tuple)
    return lists | lists | st.booleans()


programs: st.SearchStrategy[Programs] = st.booleans() | st.builds(
    RunAccess,
    commands=st.lists(commands, max_size=3).map(tuple),
    paths=st.lists(paths, max_size=3).map(tuple),
)
sets = st.builds(
    Permissions,
    read=accesses(paths),
    write=accesses(paths),
    net=accesses(host_entries),
    env=accesses(variable_entries),
    run=programs,
)
maybe_sets = st.none() | sets
host_sets = st.lists(
    st.sampled_from(["*", "*.b", "a.b", "*:80", "*.b:80", "a.b:443", "b", "[::1]"]),
    min_size=1,
    max_size=3,
).map(lambda entries: Permissions(net=tuple(entries)))


def reading(path: str) -> Check:
    """Ask for a path to be read."""
    return lambda allowed: allowed.can_read(path)


def writing(path: str) -> Check:
    """Ask for a path to be written."""
    return lambda allowed: allowed.can_write(path)


def reaching(host: str, port: int) -> Check:
    """Ask for a connection."""
    return lambda allowed: allowed.can_reach(host, port)


def seeing(name: str) -> Check:
    """Ask for a variable."""
    return lambda allowed: allowed.can_see(name)


def running(command: str) -> Check:
    """Ask for a command."""
    return lambda allowed: allowed.can_run_command(command)


def running_path(path: str) -> Check:
    """Ask for a program by its path."""
    return lambda allowed: allowed.can_run_path(path)


checks = st.one_of(
    paths.map(reading),
    paths.map(writing),
    st.builds(reaching, hosts, ports),
    variables.map(seeing),
    commands.map(running),
    paths.map(running_path),
)


def entries_of(access: Access, whole: str) -> tuple[str, ...]:
    """List the entries of an access, with everything as an entry too."""
    if isinstance(access, bool):
        return (whole,) if access else ()
    return access


def witnesses(allowed: Permissions) -> list[Check]:
    """List things a set allows: for each entry, one that no narrower entry has."""
    under = "{}/other".format
    found = [reading(under(p.rstrip("/"))) for p in entries_of(allowed.read, "/")]
    found += [writing(under(p.rstrip("/"))) for p in entries_of(allowed.write, "/")]
    for entry in entries_of(allowed.net, "*"):
        wanted = entry.replace("*", "other")
        host, _, port = wanted.rpartition(":")
        has_port = port in {"80", "443"}
        found.append(reaching(host, int(port)) if has_port else reaching(wanted, 9))
    found += [seeing(v.replace("*", "OTHER")) for v in entries_of(allowed.env, "*")]
    run = allowed.run
    if isinstance(run, bool):
        return found + ([running("other"), running_path("/other")] if run else [])
    return [*found, *map(running, run.commands), *map(running_path, run.paths)]
