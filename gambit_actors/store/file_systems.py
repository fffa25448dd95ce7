"""What a file system promises of new files, beyond what all of them do.

A file that was synced is on the disk, but after a crash of the machine its name may not
be in its folder: for that the folder has to be synced, too. Some file systems write
both in the same step, and there a second sync says nothing new.
"""

import os
import sys
from pathlib import Path

# Both have one journal in which nothing gets ahead of what came before: what a sync
# makes last has the making of the file before it. (ext4 without a journal looks after
# the name by itself.) Others may do so, too, and are synced once too often.
_NAME_WITH_FILE = frozenset({"ext4", "xfs"})
_MOUNTS = Path("/proc/self/mountinfo")


def keeps_names(folder: str, *, mounts: Path = _MOUNTS) -> bool:
    """Whether a new file in this folder keeps its name when it alone is synced.

    Args:
        folder: which one.
        mounts: where the system says what is mounted; where nobody says, the answer
            is no.
    """
    if sys.platform == "win32":
        return False
    try:
        device = os.stat(folder).st_dev  # noqa: PTH116  (text)
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    number = f"{os.major(device)}:{os.minor(device)}"
    return any(kind in _NAME_WITH_FILE for kind in _kinds(lines, number))


def _kinds(lines: list[str], number: str) -> list[str]:
    """The kinds of file systems on a device; see proc(5), mountinfo."""
    mounts = [line.split(" ") for line in lines]
    return [
        words[words.index("-", 6) + 1]
        for words in mounts
        if words[2:3] == [number] and "-" in words[6:-1]
    ]
