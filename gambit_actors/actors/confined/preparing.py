"""What a confined process is sent to begin with: looked up on the disk, for one module.

Everything that decides what a process can do is in the `Confine` that is made here, so
two calls can share a process exactly if theirs are equal.

Python has to read its own files, and the kernel shared libraries. Those are named one
by one: never the home folder, the root, or whatever else is on ``sys.path``.
"""

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gambit_actors.actors.confined import landlock, seccomp
from gambit_actors.actors.confined.messages import Confine
from gambit_actors.actors.confined.rules import Platform, Rules, ports_from
from gambit_actors.actors.exec_tool import PATH
from gambit_actors.deck.permissions import Permissions, RunAccess
from gambit_actors.errors import DeckError

MAX_SOURCE_BYTES = 4_000_000
_MAX_MODULES = 2000
_MAX_LEVELS = 8

_LIBRARIES = (
    *("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64"),
    *("/usr/local/lib", "/etc/ld.so.cache"),
)
_EVERYDAY = (
    *("/dev/urandom", "/dev/random", "/dev/zero"),
    *("/etc/localtime", "/usr/share/zoneinfo"),
)
# How names become addresses, and whom to believe.
_NETWORK = (
    *("/etc/hosts", "/etc/host.conf", "/etc/resolv.conf", "/etc/nsswitch.conf"),
    *("/etc/gai.conf", "/etc/services", "/etc/protocols"),
    *("/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/usr/share/ca-certificates"),
)
# What the kernel starts to load a program; by processor and library.
_LOADERS = (
    *("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"),
    *("/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1"),
)
_SHEBANG_BYTES = 256


@cache
def platform_here() -> Platform:
    """What this machine has to keep code to its permissions."""
    return Platform(
        is_posix=os.name == "posix",
        landlock_abi=landlock.abi(),
        has_filter=seccomp.machine() is not None,
    )


def prepare(file: str, permissions: Permissions) -> Confine:
    """Look up what a process for a module needs. Blocks.

    Args:
        file: an absolute path with links followed.
        permissions: what the code may do.

    Raises:
        DeckError: the module cannot be read.
    """
    source = _source(file)
    modules = dict(_modules(Path(file).parent, prefix="", level=0))
    programs = _programs(permissions)
    read, write = permissions.read, permissions.write
    rules = Rules(
        read=None if read is True else () if read is False else read,
        system=_system(file, modules, with_network=permissions.net is not False),
        write=None if write is True else () if write is False else write,
        programs=programs,
        helpers=tuple(_helpers(programs or ())),
        ports=ports_from(permissions),
    )
    env = os.environ.items()
    return Confine(
        file=file,
        source=source,
        modules=modules,
        stamps=tuple(_stamps((*modules.values(), *_granted(rules)))),
        env={name: value for name, value in env if permissions.can_see(name)},
        rules=rules,
    )


@cache
def python_paths() -> tuple[str, ...]:
    """What Python reads to be Python: its library, packages, shared libraries."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    installed = [
        entry
        for entry in sys.path
        if Path(entry).name in {"site-packages", "dist-packages"}
    ]
    own = str(Path(__file__).parents[2])  # The package, and not what it is in.
    libraries = [*_LIBRARIES, f"{sys.base_prefix}/lib", f"{sys.base_prefix}/lib64"]
    libraries += os.environ.get("LD_LIBRARY_PATH", "").split(":")
    if sys.base_prefix.startswith("/nix/store/"):
        libraries.append("/nix/store")
    found = [
        *(sysconfig.get_path(name) for name in names),
        *installed,
        own,
        *(path for path in libraries if path.startswith("/")),
        *_EVERYDAY,
    ]
    return tuple(sorted({os.path.realpath(path) for path in found} - {"/"}))


def _system(
    file: str, modules: dict[str, str], *, with_network: bool
) -> tuple[str, ...]:
    network = [os.path.realpath(path) for path in _NETWORK] if with_network else []
    return (*python_paths(), *network, file, *modules.values())


def _source(file: str) -> bytes:
    try:
        with open(file, "rb") as content:  # noqa: PTH123  (a path that was followed)
            source = content.read(MAX_SOURCE_BYTES + 1)
    except OSError as problem:
        msg = f"the module cannot be read: {problem.strerror}"
        raise DeckError(msg) from problem
    if len(source) > MAX_SOURCE_BYTES:
        msg = f"the module is larger than {MAX_SOURCE_BYTES:,} bytes"
        raise DeckError(msg)
    return source


def _modules(folder: Path, *, prefix: str, level: int) -> Iterator[tuple[str, str]]:
    """What can be imported from a folder: files and packages in it, and no links.

    A link may lead to anything, and a name that ends in .py makes nothing a module.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries[:_MAX_MODULES]:
        stem, dot, suffix = entry.name.partition(".")
        if not stem.isidentifier():
            continue
        if suffix == "py" and entry.is_file(follow_symlinks=False):
            name = prefix.removesuffix(".") if stem == "__init__" else prefix + stem
            yield name, entry.path
        elif not dot and level < _MAX_LEVELS and entry.is_dir(follow_symlinks=False):
            inner = Path(entry.path)
            if (inner / "__init__.py").is_file():
                yield from _modules(inner, prefix=f"{prefix}{stem}.", level=level + 1)


def _programs(permissions: Permissions) -> tuple[str, ...] | None:
    run = permissions.run
    if not isinstance(run, RunAccess):
        return None if run else ()
    found = [shutil.which(command, path=PATH) for command in run.commands]
    named = [os.path.realpath(path) for path in found if path is not None]
    return tuple(sorted({*named, *run.paths}))


def _helpers(programs: tuple[str, ...]) -> Iterator[str]:
    """What the kernel starts along with programs: loaders, and those of scripts."""
    if programs:
        yield from {os.path.realpath(path) for path in _LOADERS}
    for program in programs:
        try:
            with open(program, "rb") as content:  # noqa: PTH123  (followed already)
                line = content.read(_SHEBANG_BYTES).partition(b"\n")[0]
        except OSError:
            continue
        words = line.removeprefix(b"#!").split()
        if line.startswith(b"#!") and words:
            yield os.path.realpath(os.fsdecode(words[0]))


def _granted(rules: Rules) -> Iterator[str]:
    for paths in (rules.read, rules.write, rules.programs):
        yield from paths or ()


def _stamps(paths: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """How files and folders are: another process is needed when they are others."""
    for path in paths:
        try:
            found = os.lstat(path)
        except OSError:
            yield (0, 0)
            continue
        is_module = path.endswith(".py")
        yield (found.st_ino, found.st_mtime_ns if is_module else found.st_dev)
