"""Which file systems keep the name of a new file with what is in it."""

import os
from pathlib import Path

import pytest

from gambit_actors.store.file_systems import keeps_names

_LINE = "27 1 {device} / /data rw,relatime{optional} - {kind} /dev/sda1 rw\n"
_OTHER = "21 27 0:9999 / /proc rw shared:5 - proc proc rw\n"


def mounted(tmp_path: Path, kind: str, *, optional: str = "", device: str = "") -> Path:
    """A list of mounts in which a folder has this file system."""
    number = tmp_path.stat().st_dev
    device = device or f"{os.major(number)}:{os.minor(number)}"
    line = _LINE.format(device=device, optional=optional, kind=kind)
    path = tmp_path / "mountinfo"
    path.write_text(_OTHER + line)
    return path


@pytest.mark.parametrize("optional", ["", " shared:1", " shared:1 master:2"])
@pytest.mark.parametrize(
    ("kind", "is_kept"),
    [
        *[("ext4", True), ("xfs", True), ("ext3", False), ("btrfs", False)],
        *[("nfs4", False), ("overlay", False), ("fuse.sshfs", False)],
    ],
)
def test_file_systems_that_keep_names_are_known(
    tmp_path: Path, kind: str, optional: str, *, is_kept: bool
) -> None:
    """Only those of which it is known need no second sync."""
    mounts = mounted(tmp_path, kind, optional=optional)

    assert keeps_names(str(tmp_path), mounts=mounts) == is_kept


def test_the_file_system_of_another_device_says_nothing(tmp_path: Path) -> None:
    """What is mounted elsewhere makes no promise for this folder."""
    mounts = mounted(tmp_path, "ext4", device="254:9999")

    assert not keeps_names(str(tmp_path), mounts=mounts)


@pytest.mark.parametrize(
    "text", ["", "\n", "27 1", "27 1 8:1 / / rw -\n", "\x00 - -\n"]
)
def test_what_cannot_be_read_promises_nothing(tmp_path: Path, text: str) -> None:
    """A list in another form, or none, is no reason for an error."""
    path = tmp_path / "mountinfo"
    path.write_text(text)

    assert not keeps_names(str(tmp_path), mounts=path)
    assert not keeps_names(str(tmp_path), mounts=tmp_path / "missing")
    assert not keeps_names(str(tmp_path / "missing"))
