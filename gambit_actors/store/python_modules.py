"""Python modules of an author, described without running them in this process.

Importing a module runs it, so that is left to a process of its own (`describing`), in
a group that is killed when the answer is there or the time is up. It gets none of our
environment but a few variables without secrets, and what it prints goes nowhere.
"""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

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
_REPLY = msgspec.json.Decoder(Reply)


class _Ended(msgspec.Struct, frozen=True, kw_only=True):
    """What a process left behind."""

    reply: bytes
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
    found = _ask(path, name, base=base, time_limit=time_limit)
    (schema,) = found.schemas
    return DescribedType(schema=schema, files=found.files)


def describe_module(
    path: str, *, base: Path, time_limit: float = TIME_LIMIT
) -> DescribedModule:
    """Describe a module that defines a deck; see `DeckReader.describe_module`."""
    found = _ask(path, None, base=base, time_limit=time_limit)
    context_schema, response_schema = found.schemas
    return DescribedModule(
        context_schema=context_schema,
        response_schema=response_schema,
        files=found.files,
    )


def _ask(path: str, name: str | None, *, base: Path, time_limit: float) -> Found:
    """Have a module described; the files found are named like its path."""
    file = base.absolute() / path
    if file.suffix != ".py" or not _is_file(file):
        msg = f"there is no Python module {path}"
        raise LookupError(msg)
    try:
        request = Request(file=str(file), name=name, time_limit=time_limit)
        ended = _run(msgspec.json.encode(request), file.parent, time_limit)
    except (OSError, ValueError) as problem:
        msg = f"{file.name} cannot be imported: Python does not start ({problem})"
        raise LookupError(msg) from problem
    match _reply(ended, file.name, time_limit):
        case Found(schemas=schemas, files=files):
            named = tuple(joined(path, near) for near in files)
            return Found(schemas=schemas, files=named)
        case NotFound(reason=reason):
            raise LookupError(reason)
        case NoSchema(reason=reason):
            raise SchemaError("", reason)


def _run(request: bytes, folder: Path, time_limit: float) -> _Ended:
    """Run a process to its end, or to the limit."""
    is_cut = threading.Event()

    def cut() -> None:
        is_cut.set()
        _kill_group(process)

    with subprocess.Popen(
        # Without -P a types.py in the folder would take the place of Python's.
        [sys.executable, "-B", "-P", "-m", "gambit_actors.store.describing"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=_environment(),
        start_new_session=True,
    ) as process:
        # Popen has them as optional, and they are there: three times PIPE.
        assert process.stdin and process.stdout and process.stderr  # noqa: PT018, S101
        watch = threading.Timer(time_limit + GRACE_SECONDS, cut)
        watch.start()
        try:
            with suppress(BrokenPipeError), process.stdin as stdin:
                stdin.write(request)
            # To the end of the line: a process it forked may keep the pipe open.
            reply = process.stdout.readline(_MAX_REPLY_BYTES + 1)
        finally:
            watch.cancel()
            watch.join()
            # Before it is waited for: until then nobody else can get its number.
            _kill_group(process)
        errors = process.stderr.read(_MAX_ERROR_BYTES)
    return _Ended(
        reply=reply, errors=errors, code=process.returncode, is_cut=is_cut.is_set()
    )


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
    try:
        reply: Reply = _REPLY.decode(ended.reply)
    except msgspec.MsgspecError:
        reason = _why_no_reply(ended, time_limit)
        return NotFound(reason=f"{name} cannot be imported: {reason}")
    return reply


def _why_no_reply(ended: _Ended, time_limit: float) -> str:
    killed_by = _signal_name(-ended.code)
    if ended.is_cut or killed_by in {"SIGALRM", "SIGXCPU"}:
        return f"it did not end within {time_limit:g} seconds"
    if len(ended.reply) > _MAX_REPLY_BYTES:
        return "its description is too large"
    how = f"was ended by {killed_by}" if killed_by else f"ended with code {ended.code}"
    last = ended.errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return f"Python {how} before it was done" + (f": {last}" if last else "")


def _signal_name(number: int) -> str | None:
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
