"""Files and folders opened without following links, and lines found in them.

It is imported by the tools, and run as a program of its own to search: Python cannot
be stopped in the middle of matching a regular expression, but a process can. So only
the standard library is imported here, and the program is started by its path.

Paths are absolute with their links followed. Each part of one is opened from the part
before it and must not be a link, so what is opened is what was looked at when the
permission was asked for, whatever has been put in its place since.

This module knows nothing of permissions; whoever calls it has asked.
"""

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from heapq import nsmallest
from io import StringIO
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["file", "dir", "symlink"]
"""What a name in a folder stands for; a device or a pipe is called a file."""

MAX_FILE_BYTES = 5_000_000
"""The largest file that is read."""

MAX_TEXT = 262_144
"""The most characters of files that one answer carries."""

MAX_LINE = 500
"""The most characters of a line that are shown with a match."""

_CPU_SECONDS = 15  # More than the caller waits: for the case that nobody does.
_MEMORY_BYTES = 2**30

# A system that lacks one of these has no paths that can be granted.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = _NO_LINK | getattr(os, "O_DIRECTORY", 0)
# To pass through a folder one need not be able to list it.
_PASSING = _FOLDER | getattr(os, "O_PATH", os.O_RDONLY)
# A pipe must not make us wait for its other end, nor a terminal become ours.
_FILE = _NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


class NotAFile(OSError):
    """It is a device, a pipe or a socket."""


def is_kernel_view(path: str) -> bool:
    """Whether a path leads to what the kernel tells about processes.

    Their variables and their memory are there, which a grant to read files is not
    meant to give.
    """
    return path == "/proc" or path.startswith("/proc/")


def open_folder(path: str) -> int:
    """Open a folder as a place to start from, not to list it.

    Raises:
        OSError: it is not there, no folder, or has a link on its way.
    """
    folder = os.open("/", _PASSING)
    for name in filter(None, path.split("/")):
        try:
            inner = open_inner(name, folder=folder)
        finally:
            os.close(folder)
        folder = inner
    return folder


def open_inner(name: str, *, folder: int) -> int:
    """Open a folder that is in an open one, as `open_folder` does."""
    return os.open(name, _PASSING, dir_fd=folder)


def kind_of(path: str) -> Kind:
    """Say what is at a path.

    Raises:
        OSError: nothing is, or a link is on its way.
    """
    above, _, name = path.rpartition("/")
    if not name:
        return "dir"
    folder = open_folder(above)
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    finally:
        os.close(folder)
    if stat.S_ISLNK(found.st_mode):
        return "symlink"
    return "dir" if stat.S_ISDIR(found.st_mode) else "file"


def open_file(name: str, flags: int, *, folder: int) -> int:
    """Open a regular file in an open folder.

    Raises:
        OSError: it is not there, something else, or a link.
    """
    # Looked at first, because to open some devices is to do something.
    _require_file(os.stat(name, dir_fd=folder, follow_symlinks=False))
    file = os.open(name, flags | _FILE, dir_fd=folder)
    try:
        _require_file(os.fstat(file))
    except OSError:
        os.close(file)
        raise
    return file


def read_bytes(path: str) -> bytes | None:
    """Read a file; None if it is larger than is read.

    Raises:
        OSError: it cannot be read.
    """
    above, _, name = path.rpartition("/")
    if not name:
        raise IsADirectoryError
    folder = open_folder(above)
    try:
        file = open_file(name, os.O_RDONLY, folder=folder)
    finally:
        os.close(folder)
    return read_open(file)


def read_open(file: int) -> bytes | None:
    """Read an open file and close it; None if it is larger than is read."""
    with os.fdopen(file, "rb") as stream:
        # Not by its size, which may grow, and which the kernel's own files lack.
        data = stream.read(MAX_FILE_BYTES + 1)
    return None if len(data) > MAX_FILE_BYTES else data


def text_from(data: bytes) -> str | None:
    """Decode a text; None if it is none."""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def lines_of(text: str) -> list[str]:
    """Split a text after each line feed, and at nothing else that may end a line."""
    return list(StringIO(text, newline="\n"))


def walk(
    root: str, *, is_recursive: bool, most: int | None = None
) -> Iterator[tuple[str, Kind]]:
    """List what is in a folder, sorted, each folder before what is in it.

    A folder further down that cannot be opened is listed and passed over.

    Args:
        root: its path.
        is_recursive: whether to list what its folders have in them.
        most: how many the caller will take, so that a huge folder is not kept whole.

    Raises:
        OSError: the folder itself cannot be listed.
    """
    pending = _entries(root, "", most)
    pending.reverse()
    while pending:
        relative, kind = pending.pop()
        yield relative, kind
        path = f"{root.rstrip('/')}/{relative}"
        if kind == "dir" and is_recursive and not is_kernel_view(path):
            try:
                inner = _entries(path, f"{relative}/", most)
            except OSError:
                continue
            pending += reversed(inner)
            if most is not None:
                del pending[:-most]  # They are taken from the end.


def shown(path: str) -> str:
    """Write a path as text, also where its bytes are no UTF-8."""
    return os.fsencode(path).decode("utf-8", "replace")


def find_lines(
    root: str, pattern: re.Pattern[str], *, is_folder: bool, most: int
) -> dict[str, Any]:
    """Find lines that match, in a file or in all files of a folder.

    Returns:
        ``matches``, each with its path under the root, its line and its text;
        ``truncated``; and how many files were passed over, as ``large``, ``binary``
        and ``unreadable``.
    """
    found = _Found(most)
    for path in _files(root) if is_folder else [""]:
        found.look_into(f"{root.rstrip('/')}/{path}" if path else root, path, pattern)
        if found.is_full:
            break
    return {
        "matches": found.matches,
        "truncated": found.is_full,
        **found.passed_over,
    }


class _Found:
    def __init__(self, most: int) -> None:
        self.matches: list[tuple[str, int, str]] = []
        self.is_full = False
        self.passed_over = {"large": 0, "binary": 0, "unreadable": 0}
        self._most = most
        self._room = MAX_TEXT

    def look_into(self, file: str, path: str, pattern: re.Pattern[str]) -> None:
        for number, ended in enumerate(lines_of(self._text(file)), start=1):
            line = ended.removesuffix("\n").removesuffix("\r")
            if pattern.search(line):
                self._add(path, number, line[:MAX_LINE])
            if self.is_full:
                return

    def _text(self, file: str) -> str:
        try:
            data = read_bytes(file)
        except OSError:
            self.passed_over["unreadable"] += 1
            return ""
        text = None if data is None else text_from(data)
        if text is None:
            self.passed_over["large" if data is None else "binary"] += 1
        return text or ""

    def _add(self, path: str, number: int, text: str) -> None:
        self._room -= len(path) + len(text)
        if len(self.matches) == self._most or self._room < 0:
            self.is_full = True
        else:
            self.matches.append((shown(path), number, text))


def _files(root: str) -> Iterator[str]:
    for path, kind in walk(root, is_recursive=True):
        if kind == "file":
            yield path


def _require_file(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError
    if not stat.S_ISREG(found.st_mode):
        raise NotAFile


def _entries(path: str, prefix: str, most: int | None) -> list[tuple[str, Kind]]:
    place = open_folder(path)
    try:
        folder = os.open(".", _FOLDER | os.O_RDONLY, dir_fd=place)
    finally:
        os.close(place)
    try:
        with os.scandir(folder) as entries:
            found = ((prefix + entry.name, _entry_kind(entry)) for entry in entries)
            return sorted(found) if most is None else nsmallest(most, found)
    finally:
        os.close(folder)


def _entry_kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return "symlink"
    return "dir" if entry.is_dir(follow_symlinks=False) else "file"


def _limit_process() -> None:
    if sys.platform != "win32":
        import resource  # noqa: PLC0415  # only where there is one

        limits = {
            resource.RLIMIT_CPU: _CPU_SECONDS,
            resource.RLIMIT_AS: _MEMORY_BYTES,
            resource.RLIMIT_FSIZE: 0,
            resource.RLIMIT_CORE: 0,
        }
        for kind, limit in limits.items():
            _, allowed = resource.getrlimit(kind)
            most = limit if allowed == resource.RLIM_INFINITY else min(limit, allowed)
            resource.setrlimit(kind, (most, most))


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        pattern = re.compile(request["query"])
    except (re.error, OverflowError, RecursionError) as problem:
        return {"invalid_regex": str(problem)}
    is_folder, most = request["is_folder"], request["most"]
    return find_lines(request["root"], pattern, is_folder=is_folder, most=most)


if __name__ == "__main__":
    # RLIMIT_FSIZE is about files; the answer goes into a pipe.
    _limit_process()
    json.dump(_answer(json.load(sys.stdin.buffer)), sys.stdout)
