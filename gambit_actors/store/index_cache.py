"""What was found out about the logs of a folder, kept for who lists them again.

The first line says how many lines follow and their checksum; each of those is what the
ends of one log told. Whatever is wrong with the file, there is nothing in it then, and
nobody is told: it is made anew from the logs.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

import msgspec

from gambit_actors.openresponses.base import refuse_reserved
from gambit_actors.store.log_ends import LogEnds

INDEX_NAME = ".index.jsonl"
_VERSION = 1


class _Header(msgspec.Struct, frozen=True, kw_only=True):
    index: int
    runs: int
    crc: int


_HEADER = msgspec.json.Decoder(_Header)
_ENDS = msgspec.json.Decoder(LogEnds, dec_hook=refuse_reserved)
_ENCODER = msgspec.json.Encoder()


def load_index(folder: Path) -> dict[str, LogEnds]:
    """What is known of the logs of a folder, by their runs; maybe nothing."""
    path = folder / INDEX_NAME
    try:
        # Asked first, because opening a pipe waits for somebody to write.
        if not path.is_file():
            return {}
        head, _, body = path.read_bytes().partition(b"\n")
        header = _HEADER.decode(head)
        if header.index != _VERSION or header.crc != crc32(body):
            return {}
        found = {ends.run_id: ends for ends in _ENDS.decode_lines(body)}
    except (OSError, ValueError):  # The second: it is not what we write.
        return {}
    return found if len(found) == header.runs else {}


def save_index(folder: Path, found: Iterable[LogEnds]) -> None:
    """Keep what is known, if the folder can be written to."""
    lines = [_ENCODER.encode(ends) for ends in found]
    body = b"\n".join(lines) + b"\n" if lines else b""
    header = _Header(index=_VERSION, runs=len(lines), crc=crc32(body))
    with contextlib.suppress(OSError):
        _replace(folder, _ENCODER.encode(header) + b"\n" + body)


def _replace(folder: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=folder, prefix=".index.", suffix=".tmp")
    temporary = Path(name)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123  (it is open already)
            file.write(data)
        temporary.replace(folder / INDEX_NAME)
    except BaseException:
        # Also when we are interrupted: nobody else would remove it.
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108  (as short as can be)
        raise
