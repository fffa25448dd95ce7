"""State files are read whole or refused, and written whole or not at all."""

import errno
import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gambit_actors.errors import StoreError
from gambit_actors.run.saved_states import SavedState, json_from_saved_state
from gambit_actors.store.state_files import (
    StateFileBroken,
    StateNotSaved,
    load_state,
    save_state,
)

STATES = Path(__file__).parent.parent / "fixtures" / "states"
OWN = [f for f in sorted(STATES.glob("*.json")) if f.stem != "standard_form"]
WITH_MESSAGES = [f for f in OWN if "messages" in json.loads(f.read_bytes())]

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="posix files")
not_as_root = pytest.mark.skipif(
    sys.platform != "win32" and os.geteuid() == 0, reason="root may do anything"
)


def state(text: str = "Hello.") -> SavedState:
    """A small state."""
    return SavedState(run_id="r", messages=({"role": "user", "content": text},))


def mode_of(file: Path) -> int:
    """The permissions of a file."""
    return stat.S_IMODE(file.stat().st_mode)


# --- both ways -----------------------------------------------------------------------


@pytest.mark.spec("OR-10")
@pytest.mark.parametrize("file", WITH_MESSAGES, ids=lambda file: file.stem)
def test_a_file_of_gambits_goes_back(file: Path, tmp_path: Path) -> None:
    """What is opened here and saved again is the same JSON."""
    read = load_state(file)
    assert read is not None
    save_state(tmp_path / "state.json", read)
    written = (tmp_path / "state.json").read_bytes()
    assert json.loads(written) == json.loads(file.read_bytes())
    assert load_state(tmp_path / "state.json") == read


@pytest.mark.spec("OR-9", "OR-10")
def test_a_file_of_items_gets_messages(tmp_path: Path) -> None:
    """Their refs have new ids, which stay once the file is saved."""
    read = load_state(STATES / "items_only.json")
    assert read is not None
    refs = read.message_refs or ()
    ids = {ref.id for ref in refs}
    assert len(ids) == len(refs) == len(read.messages or ()) == 7
    assert all(len(i) == 28 and i.startswith("msg-") for i in ids)
    save_state(tmp_path / "state.json", read)
    assert load_state(tmp_path / "state.json") == read


# --- reading --------------------------------------------------------------------------


def test_there_is_nothing_only_where_there_is_no_file(tmp_path: Path) -> None:
    """A missing file or folder is no error."""
    assert load_state(tmp_path / "state.json") is None
    assert load_state(str(tmp_path / "no" / "such" / "folder" / "state.json")) is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b'{"runId": "r", "mess', "not JSON"),
        (b"[]", "expected an object"),
        (b'{"runId": "r"}', "it has neither messages nor items"),
        (b'{"runId": "r", "items": [7]}', r"items\[0\]: expected an object, got 7"),
        (b"[" * 100_000, "not readable: nested too deeply"),
    ],
)
def test_a_broken_file_is_an_error_that_names_it(
    tmp_path: Path, content: bytes, words: str
) -> None:
    """Never silently nothing: the next save would write over what was there."""
    file = tmp_path / "state.json"
    file.write_bytes(content)
    with pytest.raises(StateFileBroken, match=words) as caught:
        load_state(file)
    assert str(caught.value).startswith(f"{file} cannot be used as a saved state: ")
    assert caught.value.file == str(file)
    assert isinstance(caught.value, StoreError)
    assert file.read_bytes() == content


@posix_only
@pytest.mark.parametrize(
    ("kind", "words"), [("folder", "a folder"), ("pipe", "no regular file")]
)
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str, words: str) -> None:
    """A folder and a pipe are neither read nor replaced, and nobody waits for them."""
    place = tmp_path / "state.json"
    if kind == "folder":
        place.mkdir()
    else:
        os.mkfifo(place)
    with pytest.raises(StateFileBroken, match=words):
        load_state(place)
    with pytest.raises(StateNotSaved, match=words):
        save_state(place, state())
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.json"]


@posix_only
@not_as_root
def test_a_file_that_is_not_ours_to_read_is_an_error(tmp_path: Path) -> None:
    """It is there, so it is not nothing."""
    file = tmp_path / "state.json"
    save_state(file, state())
    file.chmod(0)
    with pytest.raises(StateFileBroken, match="Permission denied"):
        load_state(file)


def test_a_name_that_no_file_can_have_is_an_error() -> None:
    """It is refused like a file that cannot be used."""
    with pytest.raises(StateFileBroken, match="null"):
        load_state("a\0b")
    with pytest.raises(StateNotSaved, match="null"):
        save_state("a\0b", state())


# --- writing --------------------------------------------------------------------------


def test_folders_are_made(tmp_path: Path) -> None:
    """A state may be the first thing in its folder."""
    file = tmp_path / "a" / "b" / "state.json"
    save_state(str(file), state())
    assert load_state(file) == state()
    assert [entry.name for entry in file.parent.iterdir()] == ["state.json"]


@posix_only
def test_permissions_are_kept(tmp_path: Path) -> None:
    """A new file is for its owner alone; an old one is for whom it was."""
    file = tmp_path / "state.json"
    save_state(file, state())
    assert mode_of(file) == 0o600
    for mode in (0o640, 0o444):
        file.chmod(mode)
        save_state(file, state(f"{mode}"))
        assert mode_of(file) == mode
        assert load_state(file) == state(f"{mode}")


@posix_only
def test_a_link_stays_one(tmp_path: Path) -> None:
    """What it leads to is written, also where that is not there yet."""
    (tmp_path / "real").mkdir()
    (tmp_path / "hop.json").symlink_to(tmp_path / "real" / "state.json")
    link = tmp_path / "state.json"
    link.symlink_to("hop.json")
    for text in ("new", "old"):
        save_state(link, state(text))
        assert link.is_symlink()
        assert (tmp_path / "hop.json").is_symlink()
        assert load_state(tmp_path / "real" / "state.json") == state(text)
    assert [entry.name for entry in (tmp_path / "real").iterdir()] == ["state.json"]


@posix_only
def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    """They lead to no file, and are not replaced by one."""
    link = tmp_path / "state.json"
    link.symlink_to("other.json")
    (tmp_path / "other.json").symlink_to("state.json")
    with pytest.raises(StateNotSaved, match="symbolic links"):
        save_state(link, state())
    with pytest.raises(StateFileBroken, match="symbolic links"):
        load_state(link)
    assert link.is_symlink()


def test_a_state_that_cannot_be_written_leaves_the_file_as_it_was(
    tmp_path: Path,
) -> None:
    """Nothing is begun before there is something to write."""
    file = tmp_path / "state.json"
    save_state(file, state())
    with pytest.raises(StateNotSaved, match="cannot be written as JSON") as caught:
        save_state(file, state("\ud800"))
    assert caught.value.file == str(file)
    assert load_state(file) == state()
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.json"]


@pytest.mark.parametrize(
    ("owner", "step"), [(os, "fsync"), (Path, "replace")], ids=["fsync", "replace"]
)
def test_a_disk_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: object, step: str
) -> None:
    """At any step before the last, and nothing is left beside the file."""
    file = tmp_path / "state.json"
    save_state(file, state())

    def full(*_args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(owner, step, full)
    with pytest.raises(StateNotSaved, match="No space left"):
        save_state(file, state("more"))
    assert load_state(file) == state()
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.json"]


def test_an_interrupt_leaves_nothing_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who presses Ctrl+C has the file as it was, and no other."""
    file = tmp_path / "state.json"
    save_state(file, state())

    def interrupted(*_args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_state(file, state("more"))
    assert load_state(file) == state()
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.json"]


@posix_only
@pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO])
def test_a_folder_that_cannot_be_forced_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Where the system has no way to, that is no error; where the disk fails, it is."""
    file = tmp_path / "state.json"
    whole = os.fsync

    def failing(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        whole(handle)

    monkeypatch.setattr(os, "fsync", failing)
    if number == errno.EINVAL:
        save_state(file, state())
    else:
        with pytest.raises(StateNotSaved, match="Input/output error"):
            save_state(file, state())
    assert load_state(file) == state()


@posix_only
@pytest.mark.slow
def test_a_file_that_may_not_grow_leaves_the_old_one(tmp_path: Path) -> None:
    """The system's own refusal in the middle of writing is one error, and no trace."""
    file = tmp_path / "state.json"
    save_state(file, state())
    code = (
        "import resource, signal, sys\n"
        "from gambit_actors.run.saved_states import SavedState\n"
        "from gambit_actors.store.state_files import StateNotSaved, save_state\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "message = {'role': 'user', 'content': 'x' * 1_000_000}\n"
        "try:\n"
        "    save_state(sys.argv[1], SavedState(run_id='r', messages=(message,)))\n"
        "except StateNotSaved as problem:\n"
        "    print(problem)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{file} was not saved: File too large\n"
    assert load_state(file) == state()
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.json"]


@posix_only
@not_as_root
def test_a_folder_that_is_not_ours_to_write_is_an_error(tmp_path: Path) -> None:
    """The file in it may be ours; putting another in its place is not."""
    file = tmp_path / "state.json"
    save_state(file, state())
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StateNotSaved, match="Permission denied"):
            save_state(file, state("more"))
    finally:
        tmp_path.chmod(0o700)
    assert load_state(file) == state()


def test_a_file_where_a_folder_should_be_is_an_error(tmp_path: Path) -> None:
    """There can be no file below a file: that is said, both ways."""
    (tmp_path / "a").write_text("")
    with pytest.raises(StateNotSaved):
        save_state(tmp_path / "a" / "state.json", state())
    with pytest.raises(StateFileBroken):
        load_state(tmp_path / "a" / "state.json")


# --- while something happens ----------------------------------------------------------

SAVING = """
import sys
from gambit_actors.run.saved_states import SavedState
from gambit_actors.store.state_files import save_state

def text(number):
    return f"{number}:" + "x" * (number % 7 * 20_000)

print("ready", flush=True)
number = int(sys.argv[2])
while True:
    number += 1
    message = {"role": "user", "content": text(number)}
    save_state(sys.argv[1], SavedState(run_id="r", messages=(message,)))
"""


def number_in(file: Path) -> int:
    """Which of the states a file has; that it is whole is checked by the way."""
    read = load_state(file)
    assert read is not None
    (message,) = read.messages or ()
    number, _, rest = message["content"].partition(":")
    assert rest == "x" * (int(number) % 7 * 20_000)
    return int(number)


@posix_only
@pytest.mark.slow
def test_a_process_that_is_killed_leaves_a_whole_state(tmp_path: Path) -> None:
    """Killed at any moment, the file is one of the states that were saved."""
    file = tmp_path / "state.json"
    save_state(file, state("0:"))
    moments = random.Random(5)  # noqa: S311  (moments to try, not a secret)
    last = 0
    for _ in range(20):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVING, str(file), str(last)],
            stdout=subprocess.PIPE,
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(moments.uniform(0.002, 0.1))
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        now = number_in(file)
        assert now >= last
        last = now
    assert last > 20


@pytest.mark.slow
def test_who_reads_while_others_write_finds_whole_states(tmp_path: Path) -> None:
    """Two writers and a reader: each reading is one of the states, and none is left."""
    file = tmp_path / "state.json"
    states = [state(letter * 50_000) for letter in "abcd"]
    whole = {json_from_saved_state(each) for each in states}
    save_state(file, states[0])

    def write(mine: list[SavedState]) -> None:
        for _ in range(30):
            for each in mine:
                save_state(file, each)

    writers = [threading.Thread(target=write, args=(s,)) for s in (states[:2], states)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert file.read_bytes() in whole
    for writer in writers:
        writer.join()
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.json"]
