"""What a deck may read, write, run, reach and see.

`Permissions` is a set of allowed things. Sets are only ever intersected: there is no
function here that makes one larger, so a child can not come to more than its parent.
How single entries compare is in `covering`.

Invariants: two values that came from lists and allow the same are equal; an empty list
is False. ``True`` stays apart from a list that happens to cover everything (``/``,
``*``), because the one says "whatever the host allows" and the other names something;
every check answers the same for both.

Nothing here touches a disk or a network. Paths arrive absolute and with their links
followed; whoever does the reading or the connecting asks first.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import force_setattr

from gambit_actors.deck.covering import (
    COMMANDS,
    HOSTS,
    PATHS,
    PROGRAMS,
    VARIABLES,
    Grammar,
    host_entry,
    is_covered,
    shared,
    simplified,
)
from gambit_actors.openresponses.base import JSONValue

Access: TypeAlias = bool | tuple[str, ...]
"""True for everything, False for nothing, or a list of what is allowed."""

LayerName: TypeAlias = Literal[
    "host", "parent", "workspace", "declaration", "reference", "run"
]
"""Who has a say in what a deck may do."""


# Up here, because NOTHING is made while this module is being read.
def _normalised(access: Access, grammar: Grammar) -> Access:
    if isinstance(access, bool):
        return access
    return simplified(access, grammar) or False


class RunAccess(msgspec.Struct, frozen=True, kw_only=True):
    """The programs that may be run.

    Attributes:
        commands: names of commands, each exactly as it may be asked for.
        paths: absolute paths of programs; a folder covers nothing here.
    """

    commands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        force_setattr(self, "commands", simplified(self.commands, COMMANDS))
        force_setattr(self, "paths", simplified(self.paths, PROGRAMS))


Programs: TypeAlias = bool | RunAccess
"""True for every program, False for none, or those that are named."""


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """What is allowed; all that is not named is refused.

    Entries that can never match are dropped; `covering.is_usable` tells them.

    Attributes:
        read: folders and files, as absolute paths with links followed.
        write: the same, for writing.
        net: hosts, with a port or for any port.
        env: names of variables, or prefixes that end in ``*``.
        run: programs.
    """

    read: Access = False
    write: Access = False
    net: Access = False
    env: Access = False
    run: Programs = False

    def __post_init__(self) -> None:
        # Done here, so that no value exists that compares in another way than it acts.
        force_setattr(self, "read", _normalised(self.read, PATHS))
        force_setattr(self, "write", _normalised(self.write, PATHS))
        force_setattr(self, "net", _normalised(self.net, HOSTS))
        force_setattr(self, "env", _normalised(self.env, VARIABLES))
        force_setattr(self, "run", self.run != RunAccess() and self.run)

    def can_read(self, path: str) -> bool:
        """Whether a file or folder may be read.

        Args:
            path: absolute, with links already followed: a link inside a granted folder
                may lead out of it, and that can not be seen from here. A relative
                path, or one with ``..`` in it, is refused whatever is granted.
        """
        return _is_granted(path, self.read, PATHS)

    def can_write(self, path: str) -> bool:
        """Whether a file or folder may be written; the path as for `can_read`."""
        return _is_granted(path, self.write, PATHS)

    def can_reach(self, host: str, port: int) -> bool:
        """Whether a connection to a host may be opened.

        Args:
            host: as it is handed to the resolver: a name in ASCII (``xn--`` for
                others) or an address. Names are not looked up, so a name that is
                granted does not grant its address.
            port: from 1 to 65535.
        """
        return _is_granted(host_entry(host, port), self.net, HOSTS)

    def can_see(self, name: str) -> bool:
        """Whether an environment variable may be seen."""
        # One wants to see a variable, never a pattern.
        return "*" not in name and _is_granted(name, self.env, VARIABLES)

    def can_run_command(self, command: str) -> bool:
        """Whether a command may be run by this name, without its arguments.

        A granted path does not grant its last part as a name, nor the reverse.
        """
        return _is_granted(command, _run_parts(self.run)[0], COMMANDS)

    def can_run_path(self, path: str) -> bool:
        """Whether the program at a path may be run; the path as for `can_read`."""
        return _is_granted(path, _run_parts(self.run)[1], PROGRAMS)


NOTHING = Permissions()
"""No permission at all: what a root deck has that declares none."""

EVERYTHING = Permissions(read=True, write=True, net=True, env=True, run=True)
"""All that the host allows its own process."""


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """One step on the way to what a deck may do.

    Attributes:
        name: who had a say.
        requested: what they allow; None for a root deck that declares nothing.
        effective: what is left after them.
    """

    name: LayerName
    requested: Permissions | None
    effective: Permissions


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """What a deck may do, and how that came to be.

    Attributes:
        effective: what it may do.
        layers: those that had a say, in order; absent ones are left out.
    """

    effective: Permissions
    layers: tuple[Layer, ...]


def root_permissions(
    declaration: Permissions | None,
    *,
    workspace: Permissions | None = None,
    reference: Permissions | None = None,
    run: Permissions | None = None,
) -> Resolution:
    """Work out what a deck may do that no other deck has called.

    A layer that is there denies each kind it does not name; one that is absent
    changes nothing. The declaration is the exception: without it nothing is allowed,
    because the other layers say how much a deck may have at most, not what it needs.

    Args:
        declaration: what the deck asks for.
        workspace: the most that any deck of the workspace may have.
        reference: what the entry that names the deck allows, as for a scenario.
        run: what the person who started the run allows.
    """
    return _resolved(
        ("host", EVERYTHING),
        ("workspace", workspace),
        ("declaration", declaration),
        ("reference", reference),
        ("run", run),
        unsaid={"declaration": NOTHING},
    )


def child_permissions(
    parent: Permissions,
    *,
    declaration: Permissions | None = None,
    reference: Permissions | None = None,
) -> Resolution:
    """Work out what a deck may do that another deck has called.

    The parent's set already has the workspace and the run in it. A child that declares
    nothing has what its parent has.

    Args:
        parent: the effective set of the calling deck.
        declaration: what the called deck asks for.
        reference: what the parent's entry for it allows.
    """
    return _resolved(
        ("parent", parent),
        ("declaration", declaration),
        ("reference", reference),
        unsaid={},
    )


def intersection(left: Permissions, right: Permissions) -> Permissions:
    """Keep exactly what two sets both allow."""
    return Permissions(
        read=_intersected(left.read, right.read, PATHS),
        write=_intersected(left.write, right.write, PATHS),
        net=_intersected(left.net, right.net, HOSTS),
        env=_intersected(left.env, right.env, VARIABLES),
        run=_run_intersected(left.run, right.run),
    )


def is_within(inner: Permissions, outer: Permissions) -> bool:
    """Whether all that one set allows is allowed by another."""
    return not excess(inner, outer)


def excess(inner: Permissions, outer: Permissions) -> list[str]:
    """Say what one set asks for beyond another, such as ``read: /a/c, /d``.

    One line for each kind that has any. An entry that is covered in part is named
    whole, because that is how its author wrote it.
    """
    inner_commands, inner_paths = _run_parts(inner.run)
    outer_commands, outer_paths = _run_parts(outer.run)
    programs = (
        *_beyond(inner_commands, outer_commands, COMMANDS),
        *_beyond(inner_paths, outer_paths, PROGRAMS),
    )
    beyond = {
        "read": _beyond(inner.read, outer.read, PATHS),
        "write": _beyond(inner.write, outer.write, PATHS),
        "run": tuple(dict.fromkeys(programs)),
        "net": _beyond(inner.net, outer.net, HOSTS),
        "env": _beyond(inner.env, outer.env, VARIABLES),
    }
    return [f"{kind}: {', '.join(words)}" for kind, words in beyond.items() if words]


def to_json(permissions: Permissions) -> dict[str, JSONValue]:
    """Write a set with the types of JSON, in upstream's form."""
    run = permissions.run
    return {
        "read": _listed(permissions.read),
        "write": _listed(permissions.write),
        "net": _listed(permissions.net),
        "env": _listed(permissions.env),
        "run": run
        if isinstance(run, bool)
        else {"paths": list(run.paths), "commands": list(run.commands)},
    }


def from_json(value: JSONValue) -> Permissions:
    """Read what `to_json` wrote; a kind that is missing is denied.

    Raises:
        msgspec.ValidationError: it is of another form.
    """
    return msgspec.convert(value, Permissions)


def _resolved(
    *said: tuple[LayerName, Permissions | None],
    unsaid: Mapping[LayerName, Permissions],
) -> Resolution:
    """Narrow layer by layer; ``unsaid`` has what the absence of one means."""
    layers: list[Layer] = []
    effective = EVERYTHING
    for name, requested in said:
        limit = unsaid.get(name) if requested is None else requested
        if limit is not None:
            effective = intersection(effective, limit)
            layers.append(Layer(name=name, requested=requested, effective=effective))
    return Resolution(effective=effective, layers=tuple(layers))


def _intersected(left: Access, right: Access, grammar: Grammar) -> Access:
    if isinstance(left, bool):
        return left and right
    if isinstance(right, bool):
        return right and left
    return shared(left, right, grammar)


def _run_intersected(left: Programs, right: Programs) -> Programs:
    if isinstance(left, bool):
        return left and right
    if isinstance(right, bool):
        return right and left
    return RunAccess(
        commands=shared(left.commands, right.commands, COMMANDS),
        paths=shared(left.paths, right.paths, PROGRAMS),
    )


def _run_parts(run: Programs) -> tuple[Access, Access]:
    return (run, run) if isinstance(run, bool) else (run.commands, run.paths)


def _is_granted(target: str, access: Access, grammar: Grammar) -> bool:
    # A target that has no spelling is refused even when all is granted: nobody can
    # say what it would turn out to be.
    entry = grammar.spell(target)
    if entry is None or isinstance(access, bool):
        return entry is not None and access is True
    return is_covered(entry, access, grammar)


def _beyond(inner: Access, outer: Access, grammar: Grammar) -> tuple[str, ...]:
    if inner is False or outer is True:
        return ()
    granted = frozenset(() if outer is False else outer)
    if inner is True:
        return () if grammar.whole in granted else ("everything",)
    return tuple(entry for entry in inner if not is_covered(entry, granted, grammar))


def _listed(access: Access) -> bool | list[str]:
    return access if isinstance(access, bool) else list(access)
