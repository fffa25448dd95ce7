"""The file of a recording holds whole lines, all of them up to where one was lost."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gambit_actors.cli.recording_files import RecordingFile

resource = pytest.importorskip("resource", reason="sizes are limited the POSIX way")


@contextmanager
def small_disk(most_bytes: int) -> Iterator[None]:
    """No file grows beyond this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("is_added", [False, True])
def test_nothing_is_written_behind_a_line_that_was_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_added: bool
) -> None:
    """What comes after a gap is no recording, even where there is room for it."""
    path = tmp_path / "r.jsonl"
    file = RecordingFile(os.fspath(path), is_added=is_added)
    file.write(b"first\n")
    with small_disk(1000):
        file.write(b"x" * 2000 + b"\n")
        file.write(b"third\n")
    file.write(b"fourth\n")

    is_whole = file.close(has_answers=True)

    assert not is_whole
    assert "is not whole: File too large" in capsys.readouterr().err
    written = path if is_added else tmp_path / "r.jsonl.part"
    assert written.read_bytes() == b"first\n"
    assert [found.name for found in tmp_path.iterdir()] == [written.name]


def test_what_is_not_whole_takes_the_place_of_nothing(tmp_path: Path) -> None:
    """The recording that was there stays, and is as it was."""
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"before\n")
    file = RecordingFile(os.fspath(path))
    with small_disk(1000):
        file.write(b"x" * 2000 + b"\n")

    assert not file.close(has_answers=True)

    assert path.read_bytes() == b"before\n"
