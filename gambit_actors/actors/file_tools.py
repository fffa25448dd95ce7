"""What the file tools do: read a file, list a folder, change a text.

All of it blocks, and belongs in a thread. A path of the model's is made absolute, its
links are followed, and then the permissions are asked; `searching` opens what was
asked about and nothing else. What cannot be done is raised as `Refused` or `OSError`,
and `envelope_from_problem` makes an answer of either.

Invariants: no answer has a path in it that the model did not give, or find under one
that it gave. A file is replaced whole or left alone.
"""

import errno
import os
import secrets
import stat
import threading
from contextlib import suppress

import msgspec

from gambit_actors.actors.confined.own_files import Sources, is_own
from gambit_actors.actors.searching import (
    MAX_FILE_BYTES,
    MAX_TEXT,
    NotAFile,
    is_kernel_view,
    lines_of,
    open_file,
    open_folder,
    open_inner,
    read_bytes,
    read_open,
    shown,
    text_from,
    walk,
)
from gambit_actors.deck.permissions import Permissions
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.envelopes import Envelope, refusal

DEFAULT_LINES = 400
DEFAULT_ENTRIES = 200
MAX_ENTRIES = 2000

# The calls of one turn are carried out side by side, and two may change one file.
_changing = threading.Lock()


class Refused(Exception):
    """A tool does not do what the model asked for; the envelope says why."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.envelope = refusal(status, code, message)


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """What the tools of a deck may touch.

    Attributes:
        permissions: what is granted.
        folder: where relative paths start; absolute.
        sources: what the deck and those around it are made from; see `OwnFiles`.
    """

    permissions: Permissions
    folder: str
    sources: Sources = frozenset

    def locate(self, path: str) -> str:
        """Make a path absolute and follow its links; nothing need be there.

        Raises:
            Refused: it can be no path.
        """
        if not path or "\0" in path:
            raise Refused(400, "invalid_input", "a path is empty, or has a NUL in it")
        try:
            return os.path.realpath(f"{self.folder}/{path}" if path[0] != "/" else path)
        except UnicodeError as problem:
            raise Refused(400, "invalid_input", "a path is not text") from problem

    def readable(self, path: str) -> str:
        """Locate what may be read.

        Raises:
            Refused: it may not be.
        """
        real = self.locate(path)
        if is_kernel_view(real) or not self.permissions.can_read(real):
            raise Refused(403, "permission_denied", f"{path} may not be read")
        return real

    def changeable(self, path: str) -> str:
        """Locate what may be read and written.

        Raises:
            Refused: one of the two is not granted, or it is part of a deck.
        """
        real = self.readable(path)
        if not self.permissions.can_write(real):
            raise Refused(403, "permission_denied", f"{path} may not be written")
        if is_own(real, self.sources()):
            message = f"{path} is part of a deck, and decks may not be changed"
            raise Refused(403, "permission_denied", message)
        return real


class ReadFile(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of ``read_file``."""

    path: str
    start_line: int = 1
    end_line: int | None = None


class ListDir(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of ``list_dir``."""

    path: str
    recursive: bool = False
    max_entries: int = DEFAULT_ENTRIES


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """One replacement of ``apply_patch``."""

    old_text: str
    new_text: str
    replace_all: bool = False


class ApplyPatch(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of ``apply_patch``."""

    path: str
    edits: list[Edit]
    create_if_missing: bool = False


def read_file(asked: ReadFile, reach: Reach) -> dict[str, JSONValue]:
    """Read lines of a text file.

    Raises:
        Refused: it may not be read, or is no text that can be shown.
        OSError: it cannot be read.
    """
    real = reach.readable(asked.path)
    lines = lines_of(_text(asked.path, read_bytes(real)))
    first = asked.start_line
    last = first + DEFAULT_LINES - 1 if asked.end_line is None else asked.end_line
    if last < first:
        raise Refused(400, "invalid_input", "end_line is before start_line")
    if first > max(1, len(lines)):
        message = f"{asked.path} has {len(lines)} lines, and start_line is {first}"
        raise Refused(400, "invalid_input", message)
    chosen = lines[first - 1 : last]
    fitting = _fitting(chosen)
    payload: dict[str, JSONValue] = {
        "path": asked.path,
        "start_line": first,
        "end_line": first + len(fitting) - 1,
        "total_lines": len(lines),
        "content": "".join(fitting),
    }
    return payload if fitting == chosen else payload | {"truncated": True}


def list_dir(asked: ListDir, reach: Reach) -> dict[str, JSONValue]:
    """List a folder, without following the links in it.

    Raises:
        Refused: it may not be read.
        OSError: it cannot be listed.
    """
    real = reach.readable(asked.path)
    most = min(asked.max_entries, MAX_ENTRIES)
    found: list[JSONValue] = []
    for path, kind in walk(real, is_recursive=asked.recursive, most=most + 1):
        if len(found) == most:
            is_cut = True
            break
        found.append({"path": beneath(asked.path, shown(path)), "type": kind})
    else:
        is_cut = False
    return {
        "path": asked.path,
        "recursive": asked.recursive,
        "entries": found,
        "truncated": is_cut,
    }


def apply_patch(asked: ApplyPatch, reach: Reach) -> dict[str, JSONValue]:
    """Replace text in a file, all of the edits or none.

    Raises:
        Refused: it may not be changed, or an edit does not fit.
        OSError: it cannot be read or written.
    """
    real = reach.changeable(asked.path)
    above, _, name = real.rpartition("/")
    if not name:
        raise IsADirectoryError
    with _changing:
        try:
            folder = open_folder(above)
        except FileNotFoundError:
            if not asked.create_if_missing:
                raise
            _edited(asked, None)  # Edits that do not fit leave no folders behind.
            folder = _make_folder(above, reach)
        try:
            is_created = _change(asked, name, folder=folder)
        finally:
            os.close(folder)
    return {"path": asked.path, "applied": len(asked.edits), "created": is_created}


def beneath(given: str, path: str) -> str:
    """Write a path under one that the model gave, so that it can be given back."""
    return path if given in {".", "./"} else f"{given.rstrip('/')}/{path}"


def envelope_from_problem(path: str, problem: OSError, *, code: str) -> Envelope:
    """Tell the model why the system would not do it, without the machine's paths.

    Args:
        path: as the model gave it.
        problem: what the system said.
        code: what to call it where it is none of the usual problems.
    """
    match problem:
        case FileNotFoundError() | NotADirectoryError():
            return refusal(404, "not_found", f"{path} is not there, or no folder")
        case IsADirectoryError():
            return refusal(400, "invalid_input", f"{path} is a folder")
        case NotAFile():
            return refusal(400, "invalid_input", f"{path} is no regular file")
        case PermissionError():
            message = f"the system does not allow this with {path}"
            return refusal(403, "permission_denied", message)
        case OSError(errno=errno.ELOOP):
            message = f"{path} has a link in it that cannot be followed"
            return refusal(403, "permission_denied", message)
    words = problem.strerror or "no reason given"
    return refusal(500, code, f"{path} cannot be used: {words}")


def _text(path: str, data: bytes | None) -> str:
    if data is None:
        message = f"{path} is larger than {MAX_FILE_BYTES} bytes"
        raise Refused(413, "too_large", message)
    text = text_from(data)
    if text is None:
        raise Refused(415, "not_text", f"{path} is not text in UTF-8")
    return text


def _fitting(lines: list[str]) -> list[str]:
    """Keep the lines that fit in an answer; of a first that is too long, its start."""
    room = MAX_TEXT
    for index, line in enumerate(lines):
        room -= len(line)
        if room < 0:
            return lines[:index] or [line[:MAX_TEXT]]
    return lines


def _change(asked: ApplyPatch, name: str, *, folder: int) -> bool:
    """Change a file in a folder, and say whether it had to be created."""
    try:
        # Opened for writing too, so that a file the system protects stays as it is.
        file = open_file(name, os.O_RDWR, folder=folder)
    except FileNotFoundError:
        if not asked.create_if_missing:
            raise
        _write(_edited(asked, None), name, folder=folder, like=None)
        return True
    like = os.fstat(file)
    data = _edited(asked, _text(asked.path, read_open(file)))
    _write(data, name, folder=folder, like=like)
    return False


def _edited(asked: ApplyPatch, before: str | None) -> bytes:
    """Apply the edits to a text; None stands for a file that is yet to be made."""
    text = before or ""
    for number, edit in enumerate(asked.edits, start=1):
        text = _replaced(text, edit, f"edit {number} of {len(asked.edits)}")
    if text == before:
        raise Refused(409, "no_changes", f"the edits leave {asked.path} as it is")
    try:
        data = text.encode()
    except UnicodeError as problem:
        raise Refused(400, "invalid_input", "a new_text is not text") from problem
    if len(data) > MAX_FILE_BYTES:
        raise Refused(413, "too_large", f"{asked.path} would become too large")
    return data


def _replaced(text: str, edit: Edit, label: str) -> str:
    old, new = edit.old_text, edit.new_text
    if "\0" in new:
        raise Refused(400, "invalid_input", f"{label} has a NUL in its new_text")
    if not old:
        if text:
            message = f"{label} has an empty old_text, and the file is not empty"
            raise Refused(400, "invalid_input", message)
        return new
    count = text.count(old) if edit.replace_all else int(old in text)
    if not count:
        message = f"{label}: its old_text does not occur, and nothing was written"
        raise Refused(409, "no_changes", message)
    # Asked before it is done: many times a long text is more than there is memory for.
    if len(text) + count * (len(new) - len(old)) > MAX_FILE_BYTES:
        raise Refused(413, "too_large", f"{label} would make the file too large")
    return text.replace(old, new, count)


def _make_folder(path: str, reach: Reach) -> int:
    """Open a folder; those that are missing are made, where they may be written."""
    folder, here = open_folder("/"), ""
    for name in filter(None, path.split("/")):
        here = f"{here}/{name}"
        try:
            inner = _open_or_make(name, folder, is_allowed=_may_make(here, reach))
        finally:
            os.close(folder)
        folder = inner
    return folder


def _may_make(path: str, reach: Reach) -> bool:
    return reach.permissions.can_write(path) and not is_kernel_view(path)


def _open_or_make(name: str, folder: int, *, is_allowed: bool) -> int:
    try:
        return open_inner(name, folder=folder)
    except FileNotFoundError as problem:
        if not is_allowed:
            message = "a folder on the way is missing and may not be made"
            raise Refused(403, "permission_denied", message) from problem
    # Where somebody else was faster, theirs is opened, if it is a folder and no link.
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    return open_inner(name, folder=folder)


def _write(data: bytes, name: str, *, folder: int, like: os.stat_result | None) -> None:
    """Put a file in its place whole, with the mode and owner of the one before."""
    # Beside it, because a file can be renamed only within one file system.
    draft = f".gambit-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    # A new file gets what the umask leaves; a draft of a secret one is secret.
    file = os.open(draft, flags, 0o666 if like is None else 0o600, dir_fd=folder)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(data)
            stream.flush()
            if like is not None:
                _make_alike(file, like)
            os.fsync(file)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)
        raise


def _make_alike(file: int, like: os.stat_result) -> None:
    made = os.fstat(file)
    if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
        with suppress(PermissionError):  # Only root may give a file away.
            os.fchown(file, like.st_uid, like.st_gid)
    # Without the bits that make a program run as somebody else.
    os.fchmod(file, stat.S_IMODE(like.st_mode) & 0o777)
