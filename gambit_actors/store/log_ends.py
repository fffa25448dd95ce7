"""What the two ends of a log tell of its run, without what is between them.

The first line says which run it is, and the last one how it ended. Both are read with
their checksums; that of the last line begins with the end of the line before it. If
anything is not as a writer leaves it (a torn end, a line that is very long, damage) the
whole log is read, and what is told is what any reader would be told.

Blocks; reads, and changes nothing.
"""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

import msgspec

from gambit_actors.errors import CorruptLog, LogBroken, WireError
from gambit_actors.openresponses.responses import Usage
from gambit_actors.run.entries import (
    Entry,
    RunEnded,
    RunStarted,
    RunStatus,
    TurnEnded,
)
from gambit_actors.run.entry_codec import decode_entry
from gambit_actors.store.log_lines import FORMAT, LogContents
from gambit_actors.store.log_reading import read_file

SUFFIX = ".jsonl"
_HEAD_BYTES = 2048
_TAIL_BYTES = 4096
# The head of the line is what the checksum is of; the digits follow the key.
_LINE = re.compile(rb'(\{.*),"crc":"([0-9a-f]{8})"\}', re.DOTALL)
_BEFORE_BYTES = len(b'00000000"}\n')
_WRITER = re.compile(rb'\n\{"seq":\d+,"ts":[\d.]+,"writer":"([^"\\]+)"')


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a log.

    Attributes:
        line: which line is wrong, from 1.
        offset: where it begins, in bytes.
    """

    line: int
    offset: int
    reason: str


class LogEnds(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a run from the ends of its log.

    Attributes:
        size: of the file when it was read.
        mtime_ns: when that was written, as the system has it.
        writer: who wrote last, where that is of interest: the run has not ended.
        ended: how it ended; None if it has not.
        is_between_turns: whether it has an answer, and could be told something else.
    """

    run_id: str
    size: int
    mtime_ns: int
    started: float
    last: float
    deck: str = ""
    path: str = ""
    writer: str | None = None
    ended: RunStatus | None = None
    code: str | None = None
    turns: int | None = None
    usage: Usage | None = None
    cost: float | None = None
    depth: int = 0
    root_run_id: str | None = None
    branched_from: str | None = None
    is_between_turns: bool = False
    damage: Damage | None = None


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    seq: int
    ts: float
    entry: msgspec.Raw
    format: int | None = None
    writer: str | None = None
    more: int = 0


class _Odd(Exception):  # never leaves this module
    """The ends alone do not tell."""


# The last is what msgspec's errors and those of Unicode have in common.
_UNREADABLE = (_Odd, WireError, ValueError)
_DECODER = msgspec.json.Decoder(_Line)


def read_ends(path: Path) -> LogEnds:
    """Read the ends of a log; one that is damaged is told, and not raised.

    Raises:
        OSError: the file cannot be read, or there is none.
    """
    with path.open("rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        try:
            return _from_ends(path, file, status)
        except _UNREADABLE:
            pass
    return _from_all(path, status)


def unread_ends(path: Path, problem: OSError) -> LogEnds:
    """What is known of a log that cannot be read: its file, if that."""
    size, changed = 0, 0
    with suppress(OSError):
        status = path.lstat()
        size, changed = status.st_size, status.st_mtime_ns
    reason = f"it cannot be read ({problem.strerror or problem})"
    return LogEnds(
        run_id=path.stem,
        size=size,
        mtime_ns=changed,
        started=changed / 1e9,
        last=changed / 1e9,
        damage=Damage(line=1, offset=0, reason=reason),
    )


def _from_ends(path: Path, file: BinaryIO, status: os.stat_result) -> LogEnds:
    size = status.st_size
    head = file.read(min(size, _HEAD_BYTES + _TAIL_BYTES))
    first = _checked(head[: head.find(b"\n") + 1], 0)
    run = decode_entry(first.entry)
    if not isinstance(run, RunStarted) or run.run_id != path.stem:
        raise _Odd
    if first.format != FORMAT:
        raise _Odd
    tail = head
    if size > len(head):
        file.seek(size - _TAIL_BYTES)
        tail = file.read(_TAIL_BYTES)
    start = tail.rfind(b"\n", 0, len(tail) - 1) + 1
    if start >= _BEFORE_BYTES:
        last = _checked(tail[start:], int(tail[start - _BEFORE_BYTES :][:8], 16))
    elif tail is head and start == 0:
        last = first
    else:
        raise _Odd
    if last.more:
        raise _Odd
    entry = decode_entry(last.entry)
    writer = None
    if not isinstance(entry, RunEnded):  # Nobody asks who wrote that.
        writer = last.writer or _last_writer(head, file, size) or first.writer
    return _ends(path, status, run, entry, times=(first.ts, last.ts), writer=writer)


def _checked(line: bytes, crc: int) -> _Line:
    """Read a line, with its line break, if its checksum is right."""
    found = _LINE.fullmatch(line[:-1]) if line.endswith(b"\n") else None
    if found is None or crc32(found[1], crc) != int(found[2], 16):
        raise _Odd
    return _DECODER.decode(line)


def _last_writer(head: bytes, file: BinaryIO, size: int) -> str | None:
    """Who took the log over last, if anybody did."""
    if size > len(head):
        file.seek(0)
        head = file.read(size)
    writers = _WRITER.findall(head)
    return writers[-1].decode() if writers else None


def _ends(
    path: Path,
    status: os.stat_result,
    run: RunStarted,
    last: Entry,
    *,
    times: tuple[float, float],
    writer: str | None,
) -> LogEnds:
    ended = last if isinstance(last, RunEnded) else None
    return LogEnds(
        run_id=path.stem,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        started=times[0],
        last=times[1],
        deck=run.deck,
        path=run.path,
        writer=None if ended else writer,
        ended=ended.status if ended else None,
        code=ended.code if ended else None,
        turns=ended.turns if ended else None,
        usage=ended.usage if ended else None,
        cost=ended.cost if ended else None,
        depth=run.depth,
        root_run_id=run.root_run_id,
        branched_from=run.branched_from,
        is_between_turns=isinstance(last, TurnEnded),
    )


def _from_all(path: Path, status: os.stat_result) -> LogEnds:
    """Read all of a log, of which the ends alone do not tell."""
    try:
        contents, found = read_file(path)
    except CorruptLog as problem:
        line, offset, reason = problem.line, problem.offset, problem.reason
    except LogBroken as problem:
        raise OSError(problem.errno, problem.reason) from problem
    else:
        match contents.entries:
            case [RunStarted() as run, *_] if run.run_id == path.stem:
                return _from_contents(path, status, run, contents)
            case [RunStarted() as run, *_]:
                reason = f"it is the log of run {run.run_id}"
            case [_, *_]:
                reason = "it does not begin with run.started"
            case _ if found.size:
                reason = "there is no whole entry in it"
            case _:
                reason = "it is empty"
        line, offset = 1, 0
    deck, ts = _first_words(path)
    changed = status.st_mtime_ns / 1e9
    return LogEnds(
        run_id=path.stem,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        started=ts or changed,
        last=changed,
        deck=deck.deck if deck else "",
        path=deck.path if deck else "",
        depth=deck.depth if deck else 0,
        root_run_id=deck.root_run_id if deck else None,
        branched_from=deck.branched_from if deck else None,
        damage=Damage(line=line, offset=offset, reason=reason),
    )


def _from_contents(
    path: Path, status: os.stat_result, run: RunStarted, contents: LogContents
) -> LogEnds:
    last = contents.entries[-1]
    times = (contents.lines[0].ts, contents.lines[-1].ts)
    return _ends(path, status, run, last, times=times, writer=contents.writer)


def _first_words(path: Path) -> tuple[RunStarted | None, float | None]:
    """What the first line of a damaged log says, if that is not what is damaged."""
    try:
        with path.open("rb") as file:
            first = _checked(file.readline(_HEAD_BYTES), 0)
        run = decode_entry(first.entry)
    except (OSError, *_UNREADABLE):
        return None, None
    return (run, first.ts) if isinstance(run, RunStarted) else (None, None)
