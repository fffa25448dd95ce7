"""Batches reach the disk whole or not at all, through few descriptors."""

import errno
import os
import resource
import stat
from pathlib import Path

import pytest

from gambit_actors.errors import CorruptLog, LogBroken, LogLost, StoreError
from gambit_actors.store.log_files import (
    Descriptors,
    FileCalls,
    FoundFile,
    LogFile,
    default_most_open,
    sync_folder,
)
from gambit_actors.store.log_lines import read_lines
from gambit_actors.store.log_reading import read_file, repair_file
from tests.store.disks import Disk
from tests.store.logs import ENTRIES, batches_of, log_of

CALLS = FileCalls()


def file_at(path: Path, disk: Disk | None = None, *, most: int = 9) -> LogFile:
    """A log that is not there yet."""
    calls = disk.calls if disk else CALLS
    return LogFile(str(path), Descriptors(most, calls), calls)


def found_at(path: Path) -> FoundFile:
    """A file as it is now."""
    status = path.stat()
    return FoundFile(identity=(status.st_dev, status.st_ino), size=status.st_size)


def test_a_file_is_made_when_something_is_written_to_it(tmp_path: Path) -> None:
    """Before the first batch there is no file; then it is for its owner alone."""
    path = tmp_path / "a.jsonl"
    file = file_at(path)
    assert not path.exists()

    file.append(b"one\n")
    file.append(b"two\n")

    assert path.read_bytes() == b"one\ntwo\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert file.size == 8


def test_a_batch_is_one_write(tmp_path: Path) -> None:
    """However long it is, a batch goes to the system in one call."""
    disk = Disk()
    file_at(tmp_path / "a.jsonl", disk).append(b"x" * 2**20)

    assert disk.done == {"open": 1, "write": 1}


def test_a_disk_that_takes_little_at_a_time_gets_all_of_it(tmp_path: Path) -> None:
    """Short writes and interrupted ones go on where they were."""
    disk = Disk()
    disk.piece, disk.interruptions = 3, 2
    path = tmp_path / "a.jsonl"

    file_at(path, disk).append(b"one and two\n")

    assert path.read_bytes() == b"one and two\n"


@pytest.mark.spec("CARD-7")
@pytest.mark.parametrize("room", range(8))
def test_a_full_disk_gets_nothing_of_a_batch(tmp_path: Path, room: int) -> None:
    """What was written of a batch is taken back, and nothing is tried again."""
    disk, path = Disk(), tmp_path / "a.jsonl"
    file = file_at(path, disk)
    file.append(b"one\n")
    disk.room = room

    with pytest.raises(LogBroken, match="No space left on device") as caught:
        file.append(b"12345678\n")
    disk.room = None
    with pytest.raises(LogBroken) as again:
        file.append(b"three\n")

    assert path.read_bytes() == b"one\n"
    assert caught.value.errno == again.value.errno == errno.ENOSPC
    assert caught.value.path == str(path)
    assert str(caught.value) == (
        f"{path} cannot be written (No space left on device); "
        "free some space, then resume the run"
    )
    assert caught.value is not again.value


@pytest.mark.parametrize("room", [0, 3])
def test_a_log_of_which_nothing_is_kept_leaves_no_file(
    tmp_path: Path, room: int
) -> None:
    """There is no run to resume then, and nobody is told to."""
    disk, path = Disk(), tmp_path / "a.jsonl"
    disk.room = room
    file = file_at(path, disk)
    for _ in range(2):
        with pytest.raises(LogBroken, match=r"free some space, then try again$"):
            file.append(b"12345678\n")

    assert list(tmp_path.iterdir()) == []


def test_a_new_log_below_another_is_resumed_with_it(tmp_path: Path) -> None:
    """It leaves no file, either, and the run that it is a part of can go on."""
    disk, path = Disk(), tmp_path / "a.jsonl"
    disk.room = 0
    file = LogFile(str(path), Descriptors(1, disk.calls), disk.calls, is_below=True)
    with pytest.raises(LogBroken, match=r"free some space, then resume the run$"):
        file.append(b"12345678\n")

    assert not path.exists()


@pytest.mark.parametrize("text", ["", "theirs"])
def test_what_somebody_else_put_there_is_not_removed(tmp_path: Path, text: str) -> None:
    """A log that could not be begun removes the file that it made, and no other."""
    disk, path = Disk(), tmp_path / "a.jsonl"
    disk.piece = 3

    def replace() -> None:
        path.unlink()
        path.write_text(text)
        disk.room = 0

    disk.on_write = replace
    with pytest.raises(LogBroken):
        file_at(path, disk).append(b"12345678\n")

    assert path.read_text() == text


def test_a_disk_that_takes_nothing_back_leaves_a_torn_tail(tmp_path: Path) -> None:
    """If cutting off fails as well, readers find the batches before, and a tail."""
    disk, path = Disk(), tmp_path / "a.jsonl"
    file = file_at(path, disk)
    first, second, *_ = log_of(batches_of())
    file.append(first)
    disk.room, disk.failing = 200, {"ftruncate": errno.EIO}

    with pytest.raises(LogBroken, match="No space left"):
        file.append(second)

    contents = read_lines(path.read_bytes())
    assert contents.entries == batches_of()[0]
    assert contents.torn is not None
    assert contents.torn.bytes_dropped == 200


def test_a_disk_that_never_takes_anything_is_broken(tmp_path: Path) -> None:
    """A write of no bytes is an error, and not tried for ever."""
    disk = Disk()
    disk.piece = 0
    with pytest.raises(LogBroken) as caught:
        file_at(tmp_path / "a.jsonl", disk).append(b"one\n")
    assert caught.value.errno == errno.EIO


@pytest.mark.parametrize("name", ["fdatasync", "fsync"])
def test_a_sync_that_failed_is_not_tried_again(tmp_path: Path, name: str) -> None:
    """After a failed sync the log is broken, though the disk says it is well again."""
    disk = Disk()
    file = file_at(tmp_path / "a.jsonl", disk)
    file.append(b"one\n")
    disk.failing = {name: errno.EIO}
    with pytest.raises(LogBroken, match="look after the disk"):
        file.sync()
    disk.failing = {}

    for attempt in (file.sync, lambda: file.append(b"two\n")):
        with pytest.raises(LogBroken) as caught:
            attempt()
        assert caught.value.errno == errno.EIO
    assert disk.done["fdatasync"] == 1


def test_a_folder_is_synced_with_the_first_sync_of_a_file(tmp_path: Path) -> None:
    """The name is on the disk with the first synced batch, also of a file found."""
    disk, path = Disk(), tmp_path / "a.jsonl"
    file = file_at(path, disk)
    for _ in range(3):
        file.append(b"one\n")
        file.sync()
    assert (disk.done["fsync"], disk.done["fdatasync"]) == (1, 3)

    calls = disk.calls
    old = LogFile(str(path), Descriptors(1, calls), calls, found=found_at(path))
    for _ in range(2):
        old.append(b"two\n")
        old.sync()
    assert disk.done["fsync"] == 2


def test_a_file_that_keeps_its_name_is_synced_alone(tmp_path: Path) -> None:
    """Where a file system writes both at once, the folder is left alone."""
    disk = Disk()
    calls = disk.calls
    path = str(tmp_path / "a.jsonl")
    file = LogFile(path, Descriptors(1, calls), calls, is_named=True)
    file.append(b"one\n")
    file.sync()

    assert (disk.done["fsync"], disk.done["fdatasync"]) == (0, 1)


def test_a_folder_that_cannot_be_synced_is_left_at_that(tmp_path: Path) -> None:
    """Some file systems have no such call; other errors are errors."""
    disk = Disk()
    disk.failing = {"fsync": errno.EINVAL}
    sync_folder(str(tmp_path), disk.calls)
    disk.failing = {"fsync": errno.EIO}
    with pytest.raises(OSError, match="Input/output"):
        sync_folder(str(tmp_path), disk.calls)


def open_descriptors() -> int:
    """How many this process has."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="nowhere to count")
def test_few_descriptors_do_for_many_logs(tmp_path: Path) -> None:
    """Of many logs written in turn, those used last are open, and all are whole."""
    descriptors = Descriptors(8, CALLS)
    files = [
        LogFile(str(tmp_path / f"{number}.jsonl"), descriptors, CALLS)
        for number in range(100)
    ]
    before = open_descriptors()
    for turn in range(3):
        for file in files:
            file.append(b"%d\n" % turn)
            assert open_descriptors() - before <= 8
    assert len(descriptors) == 8
    for file in files:
        file.close()

    assert open_descriptors() == before
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {b"0\n1\n2\n"}


def test_a_log_that_is_used_stays_open(tmp_path: Path) -> None:
    """The one that is closed is the one that was not used for longest."""
    disk = Disk()
    calls = disk.calls
    descriptors = Descriptors(2, calls)
    often, *others = (
        LogFile(str(tmp_path / f"{number}.jsonl"), descriptors, calls)
        for number in range(5)
    )
    for file in others:
        often.append(b"x")
        file.append(b"x")

    assert disk.done["open"] == 5


def test_a_process_without_descriptors_closes_a_log_to_open_another(
    tmp_path: Path,
) -> None:
    """Who has none left gets that of the log not used for longest."""
    disk = Disk()
    calls = disk.calls
    descriptors = Descriptors(9, calls)
    one, two = (LogFile(str(tmp_path / name), descriptors, calls) for name in "ab")
    one.append(b"x")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
        with pytest.raises(OSError, match="Too many open files"):  # noqa: PT012
            while True:
                taken.append(os.dup(0))
        two.append(b"y")
        one.append(b"z")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)

    assert (tmp_path / "a").read_bytes() == b"xz"
    assert (tmp_path / "b").read_bytes() == b"y"


def test_a_share_of_all_descriptors_is_used() -> None:
    """By default a quarter of what the process may have, and at most 256."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert default_most_open() == (
        256 if soft == resource.RLIM_INFINITY else min(256, soft // 4)
    )


def test_an_error_at_closing_breaks_the_log(tmp_path: Path) -> None:
    """A network disk that did not write says so late; the log is broken then."""
    disk = Disk()
    calls = disk.calls
    descriptors = Descriptors(1, calls)
    one, two = (LogFile(str(tmp_path / name), descriptors, calls) for name in "ab")
    one.append(b"x")
    disk.failing = {"close": errno.EIO}
    two.append(b"y")

    with pytest.raises(LogBroken):
        one.append(b"z")


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        ("remove", "was removed"),
        ("replace", "was replaced by another file"),
        ("cut", "was changed by somebody else"),
        ("write", "was changed by somebody else"),
    ],
)
def test_a_file_that_is_not_what_it_was_is_lost(
    tmp_path: Path, deed: str, reason: str, *, is_open: bool
) -> None:
    """A log that somebody else changed is not written to, whatever they did."""
    path = tmp_path / "a.jsonl"
    file = file_at(path)
    file.append(b"one\n")
    if not is_open:
        file.close()
    match deed:
        case "remove":
            path.unlink()
        case "replace":
            (tmp_path / "b.jsonl").write_bytes(b"one\n")
            (tmp_path / "b.jsonl").replace(path)
            reason = "was removed" if is_open else reason
        case "cut":
            path.write_bytes(b"")
        case "write":
            with path.open("ab") as other:
                other.write(b"two\n")
    before = path.read_bytes() if path.exists() else None

    for _ in range(2):
        with pytest.raises(LogLost, match=reason) as caught:
            file.append(b"three\n")
        assert caught.value.path == str(path)
    assert (path.read_bytes() if path.exists() else None) == before


def test_a_file_that_is_there_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    """A new log never begins in the file, or the link, of something else."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"mine\n")
    (tmp_path / "b.jsonl").symlink_to(tmp_path / "elsewhere")
    for name in ("a.jsonl", "b.jsonl"):
        with pytest.raises(LogBroken, match="File exists") as caught:
            file_at(tmp_path / name).append(b"one\n")
        assert caught.value.errno == errno.EEXIST

    assert path.read_bytes() == b"mine\n"
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    """A new log in a folder that was removed is a LogBroken with advice."""
    with pytest.raises(LogBroken, match="see whether its folder was removed"):
        file_at(tmp_path / "gone" / "a.jsonl").append(b"one\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device")
def test_the_systems_own_full_device(tmp_path: Path) -> None:
    """A real ENOSPC, from the device that is always full."""
    path = Path("/dev/full")
    file = LogFile(str(path), Descriptors(1, CALLS), CALLS, found=found_at(path))
    with pytest.raises(LogBroken) as caught:
        file.append(b"one\n")
    assert caught.value.errno == errno.ENOSPC


def test_a_file_is_read_and_its_end_repaired(tmp_path: Path) -> None:
    """What is torn is cut off, a line break is added, and the rest is left alone."""
    log = b"".join(log_of(batches_of()))
    path = tmp_path / "a.jsonl"
    for tail in (b"", b'{"seq":', bytes(99)):
        for body in (log, log[:-1]):
            if body + tail == log[:-1] + b'{"seq":':
                continue  # Two lines in one: that is damage.
            path.write_bytes(body + tail)
            contents, found = read_file(path)
            repaired = repair_file(path, contents, found)

            assert contents.entries == ENTRIES
            assert path.read_bytes() == log
            assert repaired == found_at(path)


def test_a_file_that_changed_meanwhile_is_not_repaired(tmp_path: Path) -> None:
    """Somebody who writes without asking is not cut off."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(log_of(batches_of())) + b"{")
    contents, found = read_file(path)
    with path.open("ab") as other:
        other.write(b"more")
    before = path.read_bytes()

    with pytest.raises(LogLost, match="while it was read"):
        repair_file(path, contents, found)
    assert path.read_bytes() == before


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    """A pipe and a folder are no logs; damage is told with the path of its file."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(LogBroken, match=r"cannot be read \(it is no regular file"):
            read_file(path)
    (tmp_path / "bad").write_bytes(b"bad\n")
    with pytest.raises(CorruptLog) as caught:
        read_file(tmp_path / "bad")
    assert caught.value.path == str(tmp_path / "bad")
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "gone")


def test_all_of_these_are_one_kind_of_error() -> None:
    """Who wants to catch whatever happens to a log catches a StoreError."""
    assert issubclass(LogBroken, StoreError)
    assert issubclass(LogLost, StoreError)
    assert issubclass(CorruptLog, StoreError)
