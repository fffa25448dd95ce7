"""Python modules of an author, described without running them in this process.

Importing a module runs it, so that is left to a process of its own (`describing`), in
a group that is killed when the answer is there or the time is up. It gets none of our
environment but a few variables without secrets, and what it prints goes nowhere.

Whatever that process does, a call here ends in time, with a description or an error
that says why there is none. What comes back is checked like anything from outside.
"""

import os
import secrets
import selectors
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from gambit_actors.deck.reader import DescribedModule
from gambit_actors.errors import SchemaError
from gambit_actors.schema.python_types import DescribedType
from gambit_actors.schema.schemas import joined
from gambit_actors.store.describing import (
    Found,
    NoSchema,
    NotFound,
    Reply,
    Request,
    is_stdlib,
    plain,
)
from gambit_actors.store.guarding import GRACE_SECONDS

TIME_LIMIT = 10.0
"""How many seconds an import may take, unless told otherwise."""

# Where programs and libraries are, whose home it is, which language is spoken there.
# Everything else stays here, keys above all.
_ENVIRONMENT = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ"),
    "LD_LIBRARY_PATH",  # Some builds of Python do not start without it,
    "SYSTEMROOT",  # and none does on Windows without this.
)
_MAX_REPLY_BYTES = 16_000_000
_MAX_ERROR_BYTES = 4_000
_READ_BYTES = 65_536
# How much of the grace is left for a process that is killed to be gone.
_LAST_SECONDS = 0.25
_UNUSABLE = "what it answered cannot be used"
_REPLY = msgspec.json.Decoder(Reply)


class _Ended(msgspec.Struct, frozen=True, kw_only=True):
    """What a process left behind.

    Attributes:
        line: what came through the pipe for the answer, to the end of the first line.
        token: what an answer starts with.
        errors: the first of what it wrote to stderr.
        code: what it ended with.
        is_cut: whether the time was up.
    """

    line: bytes
    token: bytes
    errors: bytes
    code: int
    is_cut: bool


def describe_type(
    path: str, name: str, *, base: Path, time_limit: float = TIME_LIMIT
) -> DescribedType:
    """Describe a type in a module; see `DeckReader.describe_type`.

    Args:
        path: of the module, relative to ``base`` or absolute.
        name: of the type, with dots if it stands in another.
        base: a folder.
        time_limit: how many seconds the import may take.
    """
    match _ask(path, name, base=base, time_limit=time_limit):
        case Found(schemas=(dict() as schema,), files=files):
            return DescribedType(schema=schema, files=files)
        case NoSchema(reason=reason):
            raise SchemaError("", plain(reason))
    raise _not_imported(Path(path).name, _UNUSABLE)


def describe_module(
    path: str, *, base: Path, time_limit: float = TIME_LIMIT
) -> DescribedModule:
    """Describe a module that defines a deck; see `DeckReader.describe_module`."""
    match _ask(path, None, base=base, time_limit=time_limit):
        case Found(schemas=(context_schema, response_schema), files=files):
            return DescribedModule(
                context_schema=context_schema,
                response_schema=response_schema,
                files=files,
            )
    raise _not_imported(Path(path).name, _UNUSABLE)


def _ask(
    path: str, name: str | None, *, base: Path, time_limit: float
) -> Found | NoSchema:
    """Have a module described; the files found are named like its path."""
    file = base.absolute() / path
    if file.suffix != ".py" or not _is_file(file):
        msg = f"there is no Python module {path}"
        raise LookupError(msg)
    try:
        request = Request(file=str(file), name=name, time_limit=time_limit)
        ended = _run(msgspec.json.encode(request), file.parent, time_limit)
    except (OSError, ValueError) as problem:
        reason = f"Python does not start ({problem})"
        raise _not_imported(file.name, reason) from problem
    match _reply(ended, file.name, time_limit):
        case Found(schemas=schemas, files=files):
            named = tuple(joined(path, near) for near in files)
            return Found(schemas=schemas, files=named)
        case NotFound(reason=reason):
            raise LookupError(plain(reason))
        case NoSchema() as reply:
            return reply


def _run(request: bytes, folder: Path, time_limit: float) -> _Ended:
    """Run a process until it has answered, or to the limit, and end it."""
    token = secrets.token_hex().encode()
    until = time.monotonic() + time_limit + GRACE_SECONDS - _LAST_SECONDS
    # Not in a "with", which would wait for it for as long as it takes.
    process = subprocess.Popen(
        # Without -P a types.py in the folder would take the place of Python's.
        [sys.executable, "-B", "-P", "-m", "gambit_actors.store.describing"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=_environment(),
        start_new_session=True,
    )
    # Popen has them as optional, and they are there: three times PIPE.
    assert process.stdin and process.stdout and process.stderr  # noqa: PT018, S101
    with process.stdout as stdout, process.stderr as stderr:
        watch = threading.Timer(until - time.monotonic(), _kill_group, [process])
        watch.start()
        try:
            with suppress(BrokenPipeError), process.stdin as stdin:
                stdin.write(token + b"\n" + request)
            line = _read_line(stdout, until=until)
            is_cut = time.monotonic() >= until
        finally:
            watch.cancel()
            watch.join()
            _end(process)
        errors = _read_some(stderr, _MAX_ERROR_BYTES, until=0)
    return _Ended(
        line=line,
        token=token,
        errors=errors,
        code=process.returncode or 0,
        is_cut=is_cut,
    )


def _read_line(pipe: IO[bytes], *, until: float) -> bytes:
    """Read a line and perhaps more, or what there is of it when the time is up."""
    # Not to the end of the pipe: a process that was forked may keep that open.
    line = bytearray()
    while len(line) <= _MAX_REPLY_BYTES:
        some = _read_some(pipe, _READ_BYTES, until=until)
        line += some
        if not some or b"\n" in some:
            break
    return bytes(line)


def _read_some(pipe: IO[bytes], size: int, *, until: float) -> bytes:
    """Read what has come; nothing if nothing will, or nothing has in time."""
    # On Windows a pipe cannot be watched. There the kill in time has to do, and does
    # unless another process got hold of the pipe.
    if sys.platform != "win32":
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            if not selector.select(max(0.0, until - time.monotonic())):
                return b""
    return os.read(pipe.fileno(), size)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and those it started, and wait for it, but not for long."""
    # Before it is waited for: until then nobody else can get its number.
    _kill_group(process)
    try:
        process.wait(_LAST_SECONDS)
    except subprocess.TimeoutExpired:
        # It became another user's, or hangs in the system. Somebody has to take note
        # of its end, whenever that comes, and we have no time.
        threading.Thread(target=process.wait, daemon=True).start()


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:  # A name too long, or links that lead in a circle.
        return False


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _environment() -> dict[str, str]:
    kept = {key: os.environ[key] for key in _ENVIRONMENT if key in os.environ}
    # What we can import, the module can: Python's own first, as in import_file.
    paths = [str(Path(entry).absolute()) for entry in sys.path]
    paths.sort(key=lambda entry: not is_stdlib(entry))
    return kept | {"PYTHONPATH": os.pathsep.join(paths)}


def _reply(ended: _Ended, name: str, time_limit: float) -> Reply:
    line, is_whole, _ = ended.line.partition(b"\n")
    if not is_whole:
        raise _not_imported(name, _why_no_line(ended, time_limit))
    # Without the token it is not from `describing`, but from a module that writes to
    # whatever is open. A module that is after the token finds it, and may lie.
    if not line.startswith(ended.token):
        raise _not_imported(name, _UNUSABLE)
    try:
        reply: Reply = _REPLY.decode(line.removeprefix(ended.token))
    except RecursionError as problem:
        reason = "its description is nested too deeply"
        raise _not_imported(name, reason) from problem
    except ValueError as problem:  # Not a reply, not JSON, or not even UTF-8.
        raise _not_imported(name, _UNUSABLE) from problem
    return reply


def _not_imported(name: str, reason: str) -> LookupError:
    return LookupError(plain(f"{name} cannot be imported: {reason}"))


def _why_no_line(ended: _Ended, time_limit: float) -> str:
    killed_by = _signal_name(-ended.code)
    if ended.is_cut or killed_by in {"SIGALRM", "SIGXCPU"}:
        return f"it did not end within {time_limit:g} seconds"
    if len(ended.line) > _MAX_REPLY_BYTES:
        return "its description is too large"
    how = f"was ended by {killed_by}" if killed_by else f"ended with code {ended.code}"
    last = ended.errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return f"Python {how} before it was done" + (f": {last}" if last else "")


def _signal_name(number: int) -> str | None:
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
