"""A reader of folders tells what is on disk, and neither hangs nor runs code."""

import os
import sys
from pathlib import Path

import pytest

from gambit_actors.deck.reader import DeckReader
from gambit_actors.schema.schemas import SchemaCache
from gambit_actors.store.deck_files import MAX_TEXT_BYTES, DiskReader

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="posix files")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", ""),
        ("Grüße 😀".encode(), "Grüße 😀"),
        (b"a\r\nb\rc\n", "a\r\nb\rc\n"),
        (b"\xef\xbb\xbfa", "\ufeffa"),
        (b"a\xff\xc3", "a\udcff\udcc3"),
    ],
)
def test_a_text_is_read_as_it_is(tmp_path: Path, content: bytes, text: str) -> None:
    """Line ends and marks are kept, and bytes that are not UTF-8 can be told."""
    (tmp_path / "a.md").write_bytes(content)
    reader: DeckReader = DiskReader(tmp_path)
    assert reader.read_text("a.md") == text
    assert reader.read_text(str(tmp_path / "a.md")) == text


def test_relative_paths_start_where_the_reader_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a base it is the current folder, and stays that one."""
    (tmp_path / "deck").mkdir()
    (tmp_path / "deck" / "a.md").write_text("here")
    monkeypatch.chdir(tmp_path)
    reader, named = DiskReader(), DiskReader("deck")
    monkeypatch.chdir("/")
    assert reader.read_text("deck/a.md") == "here"
    assert reader.read_text("./deck/../deck/a.md") == "here"
    assert named.read_text("a.md") == "here"


@pytest.mark.parametrize(
    "path",
    [
        "missing.md",
        "no/such/folder.md",
        "a.md/inside.md",
        "nul\0.md",
        "half\ud800.md",
        "long" * 200,
    ],
)
def test_what_is_not_there_has_no_text(tmp_path: Path, path: str) -> None:
    """A missing file is None, also if it could never exist; it is no folder either."""
    (tmp_path / "a.md").write_text("a")
    reader = DiskReader(tmp_path)
    assert reader.read_text(path) is None
    assert not reader.is_folder(path)
    assert reader.real_path(path).startswith(str(tmp_path.resolve()))
    with pytest.raises(LookupError, match="there is no Python module"):
        reader.describe_module(path)


def test_a_folder_is_not_a_text(tmp_path: Path) -> None:
    """Reading a folder is an error in plain words."""
    (tmp_path / "deck").mkdir()
    reader = DiskReader(tmp_path)
    assert reader.is_folder("deck")
    assert reader.is_folder(".")
    with pytest.raises(IsADirectoryError) as caught:
        reader.read_text("deck")
    assert caught.value.strerror == "it is a folder"


@posix_only
def test_a_pipe_or_a_device_is_not_waited_for(tmp_path: Path) -> None:
    """What is no regular file is refused before it is opened."""
    os.mkfifo(tmp_path / "pipe.py")
    reader = DiskReader(tmp_path)
    for path in ("pipe.py", "/dev/zero"):
        with pytest.raises(OSError, match="it is no regular file"):
            reader.read_text(path)
        assert not reader.is_folder(path)
    with pytest.raises(LookupError, match=r"there is no Python module pipe\.py"):
        reader.describe_type("pipe.py", "Order")


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    """The limit is the last size that is read."""
    reader = DiskReader(tmp_path)
    (tmp_path / "a.md").write_bytes(b"a" * MAX_TEXT_BYTES)
    assert len(reader.read_text("a.md") or "") == MAX_TEXT_BYTES
    (tmp_path / "a.md").write_bytes(b"a" * (MAX_TEXT_BYTES + 1))
    with pytest.raises(OSError, match="it is larger than 4,000,000 bytes"):
        reader.read_text("a.md")


@posix_only
@pytest.mark.skipif(
    sys.platform != "win32" and os.geteuid() == 0, reason="root may read everything"
)
def test_a_file_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    """A file closed to us is an error, and not a missing file."""
    (tmp_path / "a.md").write_text("a")
    (tmp_path / "a.md").chmod(0)
    with pytest.raises(OSError, match="Permission denied"):
        DiskReader(tmp_path).read_text("a.md")


@posix_only
def test_links_are_followed(tmp_path: Path) -> None:
    """Links to files and folders lead to what they name, dangling ones to nothing."""
    (tmp_path / "deck").mkdir()
    (tmp_path / "deck" / "a.md").write_text("a")
    (tmp_path / "same").symlink_to("deck")
    (tmp_path / "b.md").symlink_to("same/a.md")
    (tmp_path / "gone.md").symlink_to("nowhere.md")
    reader = DiskReader(tmp_path)
    real = tmp_path.resolve()
    assert reader.read_text("b.md") == "a"
    assert reader.is_folder("same")
    assert reader.real_path("b.md") == f"{real}/deck/a.md"
    assert reader.real_path("same/new.md") == f"{real}/deck/new.md"
    assert reader.read_text("gone.md") is None
    assert reader.real_path("gone.md") == f"{real}/nowhere.md"


@posix_only
def test_links_in_a_circle_end(tmp_path: Path) -> None:
    """Links that lead to themselves are an error to read, and still have a path."""
    (tmp_path / "a.py").symlink_to("b.py")
    (tmp_path / "b.py").symlink_to("a.py")
    reader = DiskReader(tmp_path)
    with pytest.raises(OSError, match="Too many"):
        reader.read_text("a.py")
    assert not reader.is_folder("a.py")
    assert reader.real_path("a.py").startswith(str(tmp_path.resolve()))
    with pytest.raises(LookupError, match="there is no Python module"):
        reader.describe_module("a.py")


def test_reading_runs_no_code(tmp_path: Path) -> None:
    """A Python module that is only read is not imported."""
    (tmp_path / "a.py").write_text("raise SystemExit")
    reader = DiskReader(tmp_path)
    assert reader.read_text("a.py") == "raise SystemExit"
    assert not reader.is_folder("a.py")
    assert reader.real_path("a.py") == f"{tmp_path.resolve()}/a.py"


@pytest.mark.slow
@pytest.mark.spec("DK-16", "DK-17")
def test_an_edited_sibling_of_a_type_is_seen_at_once(tmp_path: Path) -> None:
    """A schema made from a type follows what its module imports, also once broken."""
    (tmp_path / "types.py").write_text(
        "import dataclasses\nfrom sizes import Size\n"
        "@dataclasses.dataclass\nclass Order:\n    size: Size\n"
    )
    reader, cache = DiskReader(tmp_path), SchemaCache()

    def kind_of_size(source: str) -> object:
        (tmp_path / "sizes.py").write_text(source)
        loaded = cache.load(
            "./types.py:Order",
            base="PROMPT.md",
            read_file=reader.read_text,
            describe_type=reader.describe_type,
        )
        if loaded.schema is None:
            return [note.code for note in loaded.diagnostics]
        return loaded.schema["$defs"]["Order"]["properties"]["size"]["type"]

    assert kind_of_size("Size = int") == "integer"
    assert kind_of_size("Size = str") == "string"
    assert kind_of_size("Size = ") == ["GS046"]
    assert kind_of_size("Size = range") == ["GS047"]
    assert kind_of_size("Size = bool") == "boolean"


@pytest.mark.parametrize(
    "target", ["/proc/self/environ", "/etc/hostname", "../../x.md"]
)
def test_a_link_to_a_file_elsewhere_is_not_read(tmp_path: Path, target: str) -> None:
    """A file that is only a link out of the tree is refused, whatever it is called."""
    deck = tmp_path / "decks" / "a"
    deck.mkdir(parents=True)
    (tmp_path / "x.md").write_text("secret")
    (deck / "s.md").symlink_to(target)
    with pytest.raises(OSError, match="leads out of the folder"):
        DiskReader(tmp_path / "decks").read_text("a/s.md")


def test_links_inside_and_linked_folders_are_read(tmp_path: Path) -> None:
    """A link to a file in the same tree is followed, and so is a link to a folder."""
    (tmp_path / "decks" / "a").mkdir(parents=True)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "s.md").write_text("S")
    (tmp_path / "decks" / "r.md").write_text("R")
    (tmp_path / "decks" / "a" / "r.md").symlink_to("../r.md")
    (tmp_path / "decks" / "shared").symlink_to("../shared")
    reader = DiskReader(tmp_path / "decks")
    assert reader.read_text("a/r.md") == "R"
    assert reader.read_text("shared/s.md") == "S"
