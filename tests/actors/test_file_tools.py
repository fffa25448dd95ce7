"""The file tools read, list, search and change what is granted, and nothing else."""

import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import trio

from gambit_actors.actors import builtin_tools, searching
from gambit_actors.actors.builtin_tools import use_builtin
from gambit_actors.deck.permissions import EVERYTHING, NOTHING, Permissions
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall
from gambit_actors.run.builtins import BUILTIN_TOOLS
from gambit_actors.run.calls import BuiltinCall
from gambit_actors.run.envelopes import Envelope

TOOLS = {tool.name: tool for tool in BUILTIN_TOOLS}
ANY_ERROR = (None, None)
BOMB = "(a+)+$"


class Desk:
    """A deck's folder with a secret beside it, and the tools with a grant."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "deck"
        self.folder.mkdir()
        self.secret = root / "secret.txt"
        self.secret.write_text("hidden\n")
        granted = (str(self.folder),)
        self.permissions = Permissions(read=granted, write=granted)
        self.sources: list[Path] = []

    def put(self, name: str, content: str | bytes) -> Path:
        """Write a file in the deck's folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    async def use(self, tool: str, /, **arguments: JSONValue) -> Envelope:
        """Use a tool as a model does."""
        call = FunctionCall(call_id="call_1", name=tool, arguments="{}")
        planned = BuiltinCall(
            call=call,
            tool=TOOLS[tool],  # type: ignore[index]  # a test knows the names
            arguments=arguments,
        )
        return await use_builtin(
            planned,
            self.permissions,
            folder=str(self.folder),
            sources=lambda: set(map(str, self.sources)),
        )

    async def patch(self, path: str, *edits: tuple[str, str], **more: bool) -> Envelope:
        """Replace some texts by others."""
        asked = [{"old_text": old, "new_text": new} for old, new in edits]
        return await self.use("apply_patch", path=path, edits=asked, **more)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A deck's folder to work in."""
    return Desk(tmp_path.resolve())


def problem(envelope: Envelope) -> tuple[float | None, str | None]:
    """The status and code of a refusal."""
    return envelope.status, envelope.code


DENIED: tuple[float | None, str | None] = (403, "permission_denied")


async def test_read_file_gives_lines_and_how_many_there_are(desk: Desk) -> None:
    """A file is read whole, with its line ends as they are."""
    desk.put("a.txt", "one\r\ntwo\u2028still\nthree")

    envelope = await desk.use("read_file", path="a.txt")

    assert envelope.status is None
    assert envelope.payload == {
        "path": "a.txt",
        "start_line": 1,
        "end_line": 3,
        "total_lines": 3,
        "content": "one\r\ntwo\u2028still\nthree",
    }


async def test_read_file_gives_400_lines_unless_told(desk: Desk) -> None:
    """Without an end there are 400 lines from the start; with one, up to it."""
    desk.put("a.txt", "".join(f"{number}\n" for number in range(1, 1001)))

    some = (await desk.use("read_file", path="a.txt", start_line=11)).payload
    more = (await desk.use("read_file", path="a.txt", end_line=900.0)).payload

    assert (some["start_line"], some["end_line"]) == (11, 410)
    assert some["content"].startswith("11\n")
    assert some["content"].endswith("\n410\n")
    assert (more["end_line"], more["total_lines"]) == (900, 1000)


async def test_read_file_of_an_empty_file(desk: Desk) -> None:
    """An empty file has no lines, and that is no mistake."""
    desk.put("a.txt", "")

    payload = (await desk.use("read_file", path="a.txt")).payload

    assert (payload["end_line"], payload["total_lines"]) == (0, 0)
    assert payload["content"] == ""


async def test_read_file_cuts_at_a_line_and_says_so(desk: Desk) -> None:
    """What is too much for an answer ends with a whole line, which is named."""
    desk.put("a.txt", ("x" * 99_999 + "\n") * 5)

    payload = (await desk.use("read_file", path="a.txt")).payload

    assert payload["end_line"] == 2
    assert payload["truncated"] is True
    assert len(payload["content"]) == 200_000


async def test_read_file_cuts_a_line_that_is_too_long(desk: Desk) -> None:
    """Of one line that alone is too much, there is the start."""
    desk.put("a.txt", "x" * 1_000_000)

    payload = (await desk.use("read_file", path="a.txt")).payload

    assert len(payload["content"]) == searching.MAX_TEXT
    assert payload["truncated"] is True


@pytest.mark.parametrize(
    "lines", [{"start_line": 3}, {"start_line": 2, "end_line": 1}, {"end_line": "x"}]
)
async def test_read_file_refuses_lines_that_are_not_there(
    desk: Desk, lines: dict[str, JSONValue]
) -> None:
    """Lines beyond the end, backwards or of another type are the model's mistake."""
    desk.put("a.txt", "one\ntwo\n")

    envelope = await desk.use("read_file", path="a.txt", **lines)

    assert problem(envelope) == (400, "invalid_input")


@pytest.mark.parametrize("content", [b"a\0b", b"\xff\xfe"])
async def test_what_is_no_text_is_refused(desk: Desk, content: bytes) -> None:
    """A file with a NUL, or that is no UTF-8, is neither shown nor changed."""
    path = desk.put("a.bin", content)

    read = await desk.use("read_file", path="a.bin")
    found = await desk.use("grep_files", path="a.bin", query="a")
    changed = await desk.patch("a.bin", ("a", "b"))

    assert {problem(each) for each in (read, found, changed)} == {(415, "not_text")}
    assert path.read_bytes() == content


async def test_a_file_that_is_too_large_is_refused(desk: Desk) -> None:
    """A file over the limit is not read into memory."""
    with desk.put("a.txt", "").open("r+b") as file:
        file.truncate(searching.MAX_FILE_BYTES + 1)

    read = await desk.use("read_file", path="a.txt")
    found = await desk.use("grep_files", path="a.txt", query="a")

    assert problem(read) == problem(found) == (413, "too_large")


@pytest.mark.parametrize("tool", ["read_file", "list_dir", "grep_files", "apply_patch"])
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("missing", (404, "not_found")),
        ("a.txt/below", (404, "not_found")),
        ("../secret.txt", DENIED),
        ("../missing", DENIED),
        ("/etc/passwd", DENIED),
        ("/", DENIED),
        ("link", DENIED),
        ("folder_link/secret.txt", DENIED),
        ("loop", ANY_ERROR),
        ("loop/../folder_link/secret.txt", ANY_ERROR),
        ("", (400, "invalid_input")),
        ("a\0b", (400, "invalid_input")),
        ("\ud800", (400, "invalid_input")),
        ("x" * 300, ANY_ERROR),
        ("x/" * 3000, DENIED),
    ],
)
async def test_paths_that_lead_nowhere_or_out(
    desk: Desk, tool: str, path: str, expected: tuple[float | None, str | None]
) -> None:
    """Each bad path is an answer, and none is an error or a look at the secret."""
    desk.put("a.txt", "text\n")
    (desk.folder / "link").symlink_to(desk.secret)
    (desk.folder / "folder_link").symlink_to(desk.secret.parent)
    (desk.folder / "loop").symlink_to("loop")
    more: dict[str, JSONValue] = {
        "grep_files": {"query": "hidden"},
        "apply_patch": {"edits": [{"old_text": "hidden", "new_text": "shown"}]},
    }

    envelope = await desk.use(tool, path=path, **more.get(tool, {}))

    assert envelope.is_error
    assert expected in (problem(envelope), ANY_ERROR)
    assert str(desk.secret.parent) not in (envelope.message or "")
    assert desk.secret.read_text() == "hidden\n"


async def test_a_link_within_the_grant_is_followed(desk: Desk) -> None:
    """A link is as good as what it leads to."""
    desk.put("a.txt", "text\n")
    (desk.folder / "link").symlink_to("a.txt")

    payload = (await desk.use("read_file", path="link")).payload

    assert (payload["path"], payload["content"]) == ("link", "text\n")


async def test_nothing_granted_is_nothing_done(desk: Desk) -> None:
    """Without a grant even the deck's own folder is closed."""
    desk.put("a.txt", "text\n")
    desk.permissions = NOTHING

    assert problem(await desk.use("read_file", path="a.txt")) == DENIED
    assert problem(await desk.use("list_dir", path=".")) == DENIED


async def test_reading_is_not_writing(desk: Desk) -> None:
    """A change needs both grants."""
    path = desk.put("a.txt", "text\n")
    both = desk.permissions

    desk.permissions = Permissions(read=both.read)
    assert problem(await desk.patch("a.txt", ("text", "more"))) == DENIED
    desk.permissions = Permissions(write=both.write)
    assert problem(await desk.patch("a.txt", ("text", "more"))) == DENIED
    assert path.read_text() == "text\n"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
@pytest.mark.parametrize("path", ["/proc/self/environ", "/proc/1/../self/maps"])
async def test_all_files_do_not_include_the_process_itself(
    desk: Desk, path: str
) -> None:
    """The variables are granted as such, and not as a file."""
    desk.permissions = EVERYTHING

    assert problem(await desk.use("read_file", path=path)) == DENIED


async def test_only_regular_files_are_opened(desk: Desk) -> None:
    """A pipe is refused, and is not waited for; nor is a folder a file."""
    os.mkfifo(desk.folder / "pipe")

    piped = await desk.use("read_file", path="pipe")
    found = await desk.use("grep_files", path="pipe", query="a")
    folder = await desk.use("read_file", path=".")

    assert {problem(each) for each in (piped, found, folder)} == {
        (400, "invalid_input")
    }


@pytest.mark.parametrize("swap", ["file", "folder"])
async def test_a_link_put_in_place_after_the_question_is_not_followed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, swap: str
) -> None:
    """What is opened is what was asked about, on every part of the way."""
    inner = desk.put("sub/secret.txt", "fine\n")
    ask = Permissions.can_read

    def asked_then_swapped(self: Permissions, path: str) -> bool:
        answer = ask(self, path)
        if swap == "file":
            inner.unlink()
            inner.symlink_to(desk.secret)
        else:
            inner.parent.rename(desk.folder / "old")
            inner.parent.symlink_to(desk.secret.parent)
        return answer

    monkeypatch.setattr(Permissions, "can_read", asked_then_swapped)
    envelope = await desk.use("read_file", path="sub/secret.txt")

    assert envelope.is_error
    assert "hidden" not in str(envelope)


async def test_list_dir_is_sorted_and_shows_what_each_is(desk: Desk) -> None:
    """Hidden names are listed; a link is a link, wherever it leads."""
    desk.put("b.txt", "")
    desk.put("a/inner.txt", "")
    desk.put(".hidden", "")
    (desk.folder / "out").symlink_to(desk.secret.parent)

    payload = (await desk.use("list_dir", path=".")).payload

    assert payload == {
        "path": ".",
        "recursive": False,
        "entries": [
            {"path": ".hidden", "type": "file"},
            {"path": "a", "type": "dir"},
            {"path": "b.txt", "type": "file"},
            {"path": "out", "type": "symlink"},
        ],
        "truncated": False,
    }


async def test_list_dir_goes_down_but_not_through_links(desk: Desk) -> None:
    """All that is below is listed, under the path that was given."""
    desk.put("sub/a/deep.txt", "")
    desk.put("sub/b.txt", "")
    (desk.folder / "sub" / "out").symlink_to(desk.secret.parent)

    payload = (await desk.use("list_dir", path="sub/", recursive=True)).payload

    assert [entry["path"] for entry in payload["entries"]] == [
        "sub/a",
        "sub/a/deep.txt",
        "sub/b.txt",
        "sub/out",
    ]


@pytest.mark.parametrize(("most", "is_cut"), [(3, True), (5, False), (None, False)])
async def test_list_dir_stops_at_its_limit(
    desk: Desk, most: int | None, is_cut: bool
) -> None:
    """The first names are given, and whether there are more."""
    for name in "abcde":
        desk.put(name, "")
    limit = {} if most is None else {"max_entries": most}

    payload = (await desk.use("list_dir", path=".", **limit)).payload

    assert [entry["path"] for entry in payload["entries"]] == list("abcde")[:most]
    assert payload["truncated"] is is_cut


async def test_a_name_that_is_no_text_can_be_shown(desk: Desk) -> None:
    """A name of odd bytes does not keep an answer from being written."""
    desk.put(os.fsdecode(b"\xff.txt"), "x\n")

    listed = (await desk.use("list_dir", path=".")).payload
    found = (await desk.use("grep_files", path=".", query="x")).payload

    assert listed["entries"][0]["path"] == "\ufffd.txt"
    assert found["matches"][0]["path"] == "\ufffd.txt"


async def test_grep_files_finds_lines_in_a_folder(desk: Desk) -> None:
    """Each match has its path, line and text; what is no text is passed over."""
    desk.put("sub/b.txt", "no\nneedle 12\r\n")
    desk.put("sub/a/a.txt", "needle 3\nneedle x\n")
    desk.put("sub/c.bin", b"needle 4\n\0")
    (desk.folder / "sub" / "out").symlink_to(desk.secret.parent)

    envelope = await desk.use("grep_files", path="sub", query=r"needle \d+$|hidden")

    assert envelope.payload == {
        "path": "sub",
        "query": r"needle \d+$|hidden",
        "matches": [
            {"path": "sub/a/a.txt", "line": 1, "text": "needle 3"},
            {"path": "sub/b.txt", "line": 2, "text": "needle 12"},
        ],
        "truncated": False,
    }


async def test_grep_files_cuts_and_says_so(desk: Desk) -> None:
    """Matches stop at the limit, and a long line is shown by its start."""
    desk.put("a.txt", ("x" * 600 + "\n") * 3)

    cut = (await desk.use("grep_files", path="a.txt", query="x", max_matches=2)).payload
    whole = (
        await desk.use("grep_files", path="a.txt", query="x", max_matches=3)
    ).payload

    assert [match["text"] for match in cut["matches"]] == ["x" * 500] * 2
    assert cut["matches"][0]["path"] == "a.txt"
    assert (cut["truncated"], whole["truncated"]) == (True, False)


async def test_grep_files_tells_of_files_it_passed_over(desk: Desk) -> None:
    """Files that are too large are counted: they may have had a match."""
    with desk.put("a.txt", "").open("r+b") as file:
        file.truncate(searching.MAX_FILE_BYTES + 1)

    payload = (await desk.use("grep_files", path=".", query="x")).payload

    assert (payload["matches"], payload["skipped"]) == ([], 1)


@pytest.mark.parametrize("query", ["(", "a{99999999999999}", "(" * 20_000])
async def test_grep_files_refuses_what_is_no_expression(desk: Desk, query: str) -> None:
    """A bad expression is told as one."""
    desk.put("a.txt", "x\n")

    envelope = await desk.use("grep_files", path="a.txt", query=query)

    assert problem(envelope) == (400, "invalid_regex")


async def test_an_expression_that_never_ends_is_stopped(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    """A search has a time, after which its process is gone."""
    desk.put("a.txt", "a" * 60 + "b\n")
    monkeypatch.setattr(builtin_tools, "SEARCH_SECONDS", 0.1)

    envelope = await desk.use("grep_files", path="a.txt", query=BOMB)

    assert problem(envelope) == (504, "timeout")
    assert [is_alive(pid) for pid in started] == [False]


async def test_a_search_ends_with_the_run(desk: Desk, started: list[int]) -> None:
    """A cancelled search leaves no process."""
    desk.put("a.txt", "a" * 60 + "b\n")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(desk.use, "grep_files", path="a.txt", query=BOMB))
        with trio.fail_after(5):
            await trio.lowlevel.checkpoint()
            while not started:  # noqa: ASYNC110  # a real process, and no news of it
                await trio.sleep(0.005)
        nursery.cancel_scope.cancel()

    assert [is_alive(pid) for pid in started] == [False]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that are started."""
    pids: list[int] = []
    start: Callable[..., object] = trio.lowlevel.open_process

    async def noted(*args: object, **options: object) -> object:
        process = await start(*args, **options)  # type: ignore[misc]  # it is async
        pids.append(process.pid)
        return process

    monkeypatch.setattr(trio.lowlevel, "open_process", noted)
    return pids


def is_alive(pid: int) -> bool:
    """Whether there is a process, be it a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_apply_patch_replaces_in_order(desk: Desk) -> None:
    """Each edit sees what those before it made, and takes the first place."""
    path = desk.put("a.txt", "one two one\r\n")

    envelope = await desk.patch("a.txt", ("one", "three"), ("three", "3"))

    assert envelope.payload == {"path": "a.txt", "applied": 2, "created": False}
    assert path.read_bytes() == b"3 two one\r\n"


async def test_apply_patch_replaces_all(desk: Desk) -> None:
    """With ``replace_all`` every place is changed."""
    path = desk.put("a.txt", "one two one\n")
    edit = {"old_text": "one", "new_text": "1", "replace_all": True}

    await desk.use("apply_patch", path="a.txt", edits=[edit])

    assert path.read_text() == "1 two 1\n"


async def test_an_edit_that_does_not_fit_undoes_all(desk: Desk) -> None:
    """The model reads which edit it was, and the file is as before."""
    path = desk.put("a.txt", "one\n")

    envelope = await desk.patch("a.txt", ("one", "1"), ("two", "2"))

    assert problem(envelope) == (409, "no_changes")
    assert "edit 2 of 2" in (envelope.message or "")
    assert path.read_text() == "one\n"


@pytest.mark.parametrize("edits", [[], [("one", "one")], [("one", "1"), ("1", "one")]])
async def test_edits_that_change_nothing_are_told(
    desk: Desk, edits: list[tuple[str, str]]
) -> None:
    """A patch that leaves a file as it is has no effect and says so."""
    desk.put("a.txt", "one\n")

    assert problem(await desk.patch("a.txt", *edits)) == (409, "no_changes")


@pytest.mark.parametrize("edit", [("", "x"), ("one", "a\0b"), ("one", "\ud800")])
async def test_edits_that_cannot_be_made(desk: Desk, edit: tuple[str, str]) -> None:
    """No place, or no text: the model's mistake, and nothing is written."""
    path = desk.put("a.txt", "one\n")

    assert problem(await desk.patch("a.txt", edit)) == (400, "invalid_input")
    assert path.read_text() == "one\n"


async def test_a_patch_cannot_fill_memory_or_disk(desk: Desk) -> None:
    """A result beyond the limit is refused before it is made."""
    path = desk.put("a.txt", "a" * 1_000_000)
    edit = {"old_text": "a", "new_text": "b" * 1_000_000, "replace_all": True}

    envelope = await desk.use("apply_patch", path="a.txt", edits=[edit])

    assert problem(envelope) == (413, "too_large")
    assert path.stat().st_size == 1_000_000


async def test_apply_patch_creates_a_file_and_its_folders(desk: Desk) -> None:
    """A file that is to be made starts empty, and the folders on its way with it."""
    envelope = await desk.patch("x/y/a.txt", ("", "new\n"), create_if_missing=True)

    assert envelope.payload == {"path": "x/y/a.txt", "applied": 1, "created": True}
    assert (desk.folder / "x/y/a.txt").read_text() == "new\n"


async def test_edits_that_do_not_fit_leave_no_folders(desk: Desk) -> None:
    """Nothing is made for a file that will not be."""
    envelope = await desk.patch("x/a.txt", ("old", "new"), create_if_missing=True)

    assert problem(envelope) == (409, "no_changes")
    assert list(desk.folder.iterdir()) == []


async def test_folders_are_made_only_where_they_may_be(desk: Desk) -> None:
    """A grant for one file does not make the folder that it would be in."""
    file = str(desk.folder / "x" / "a.txt")
    desk.permissions = Permissions(read=True, write=(file,))

    envelope = await desk.patch("x/a.txt", ("", "new"), create_if_missing=True)

    assert problem(envelope) == DENIED
    assert list(desk.folder.iterdir()) == []


async def test_a_changed_file_keeps_its_mode_and_leaves_no_draft(desk: Desk) -> None:
    """A script stays one that can be run; only the file is in the folder."""
    path = desk.put("run.sh", "one\n")
    path.chmod(0o750)

    await desk.patch("run.sh", ("one", "two"))

    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert list(desk.folder.iterdir()) == [path]


async def test_a_patch_that_cannot_be_written_leaves_the_file(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the disk is full the old text is there, and no draft."""
    path = desk.put("a.txt", "one\n")

    def full(_file: int) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(os, "fsync", full)
    envelope = await desk.patch("a.txt", ("one", "two"))

    assert problem(envelope) == (500, "write_failed")
    assert str(path) not in (envelope.message or "")
    assert path.read_text() == "one\n"
    assert list(desk.folder.iterdir()) == [path]


async def test_patches_side_by_side_are_all_kept(desk: Desk) -> None:
    """Two calls of one turn that change one file do not undo each other."""
    names = [f"<{number}>" for number in range(20)]
    path = desk.put("a.txt", "".join(names))

    async with trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(desk.patch, "a.txt", (name, "."))

    assert path.read_text() == "." * 20


@pytest.mark.parametrize(
    "path", ["PROMPT.md", "prompt.MD", "sub/PROMPT.md", "root.deck.md", "link.md"]
)
async def test_a_deck_is_not_changed_by_its_model(desk: Desk, path: str) -> None:
    """What says how much a deck may do stays as it is, even where all is granted."""
    desk.put("PROMPT.md", "text\n")
    desk.put("root.deck.md", "text\n")
    (desk.folder / "link.md").symlink_to("PROMPT.md")
    desk.permissions = EVERYTHING

    changed = await desk.patch(path, ("text", "more"))
    created = await desk.patch(path, ("", "more"), create_if_missing=True)

    assert [problem(changed), problem(created)] == [DENIED] * 2
    assert changed.message == f"{path} is part of a deck, and decks may not be changed"
    names = {"PROMPT.md", "root.deck.md", "link.md"}
    assert {one.name for one in desk.folder.iterdir()} == names
    assert (desk.folder / "PROMPT.md").read_text() == "text\n"


async def test_what_a_deck_is_made_from_is_not_changed(desk: Desk) -> None:
    """Its modules, what they import and its schemas stay; its other files change."""
    desk.sources = [desk.put("code.py", "text\n"), desk.put("any.json", "text\n")]
    for name in ("beside.py", "notes.md", "other.json", "data/script.py"):
        desk.put(name, "text\n")

    for name in ("code.py", "any.json", "beside.py"):
        assert problem(await desk.patch(name, ("text", "more"))) == DENIED
    new = await desk.patch("new.py", ("", "more"), create_if_missing=True)
    assert problem(new) == DENIED
    for name in ("notes.md", "other.json", "data/script.py"):
        assert not (await desk.patch(name, ("text", "more"))).is_error
