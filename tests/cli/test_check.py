"""``gambit check`` finds decks, says what is wrong, and fixes only what it may.

Most of it is tried with a loader of our own, whose findings are easy to make; the real
one is tried at the end, through the command.
"""

import json
import os
import posixpath
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from gambit_actors.cli.check import Options, check_paths, check_with
from gambit_actors.cli.deck_folders import find_decks
from gambit_actors.cli.main import main
from gambit_actors.deck.loader import Loaded, LoadedDecks
from gambit_actors.deck.model import Deck
from gambit_actors.deck.reader import DeckReader
from gambit_actors.schema.diagnostics import Diagnostic, Edit
from gambit_actors.store.deck_files import DiskReader

GAMBIT = Path(sys.executable).with_name("gambit")
OUTSIDE = "it is outside of what was to be checked"


# What our loader minds: a word, how much, and what it would write instead.
MINDED = {
    "colour": ("GD010", "warning", "color"),
    "bad": ("GD011", "error", None),
    "wrong": ("GD012", "error", "right"),
    "trap": ("GD013", "warning", "bad bad"),
    "by the way": ("GD014", "note", None),
}


def load(reader: DeckReader, decks: Sequence[str]) -> LoadedDecks:
    """Load decks that mind a few words, and embed what a line with < names."""
    loaded = list(load_each(reader, decks))
    said = [finding for each in loaded for finding in each.diagnostics]
    return LoadedDecks(tuple(each.deck for each in loaded), tuple(said))


def load_each(reader: DeckReader, decks: Sequence[str]) -> Iterator[Loaded]:
    """Load decks one by one."""
    for deck in decks:
        found: list[Diagnostic] = []
        files = [deck]
        for file in files:
            text = reader.read_text(file) or ""
            found += mind(file, text)
            folder = posixpath.dirname(file)
            files += [
                posixpath.normpath(posixpath.join(folder, name))
                for name in re.findall(r"^<(\S+)", text, re.MULTILINE)
            ]
        yield Loaded(Deck(path=deck, prompt="", sources=tuple(files)), tuple(found))


def mind(file: str, text: str) -> Iterator[Diagnostic]:
    """Say something about each minded word of a text."""
    for word, (code, severity, better) in MINDED.items():
        for match in re.finditer(word, text):
            start = text.rfind("\n", 0, match.start()) + 1
            edit = Edit(start=match.start(), end=match.end(), text=better or "")
            yield Diagnostic(
                code=code,
                severity=severity,  # type: ignore[arg-type]  # as the table has it
                message=f"There is {word!r}.",
                file=file,
                line=text.count("\n", 0, start) + 1,
                column=match.start() - start + 1,
                hint=better and f"Write {better!r}.",
                edits=(edit,) if better else (),
            )


def check(*paths: str, **options: bool) -> Result:
    """Run the check with our loader, in this process."""

    @click.command()
    def command() -> None:
        asked = Options(paths=paths, **options)  # type: ignore[arg-type]  # all bool
        sys.exit(check_with(asked, reader=DiskReader(), load=load))

    return CliRunner(env={"NO_COLOR": "1"}).invoke(command, [])


def write(files: dict[str, str]) -> None:
    """Write files below the current folder, and an INTENT.md beside each deck."""
    for name, text in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        if path.name == "PROMPT.md":
            path.with_name("INTENT.md").touch()


def tree() -> dict[str, bytes]:
    """Read every file below the current folder."""
    return {
        path.as_posix(): path.read_bytes()
        for path in Path().rglob("*")
        if path.is_file()
    }


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, with another one beside it."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


# --- what is found ---------------------------------------------------------------


def test_everything_is_told_in_order() -> None:
    """Findings come by file, line and column, with a summary and exit code 1."""
    write(
        {
            "b/PROMPT.md": "by the way\nbad",
            "a/PROMPT.md": "ok\nmy colour, colour\n<more.md",
            "a/more.md": "bad",
        }
    )
    result = check()
    assert result.exit_code == 1
    assert re.findall(r"^(\w+\[.*)\n *--> (.*)$", result.stdout, re.MULTILINE) == [
        ("warning[GD010]: There is 'colour'.", "a/PROMPT.md:2:4"),
        ("warning[GD010]: There is 'colour'.", "a/PROMPT.md:2:12"),
        ("error[GD011]: There is 'bad'.", "a/more.md:1:1"),
        ("note[GD014]: There is 'by the way'.", "b/PROMPT.md:1:1"),
        ("error[GD011]: There is 'bad'.", "b/PROMPT.md:2:1"),
    ]
    assert result.stdout.endswith(
        "\n\nFound 2 errors, 2 warnings and 1 note in 2 decks (3 files).\n"
        "2 can be fixed with --fix.\n"
    )
    assert result.stderr == ""


def test_the_source_line_is_shown() -> None:
    """A finding is told with the line it is about."""
    write({"PROMPT.md": "one\nmy colour\n"})
    assert check().stdout == (
        "warning[GD010]: There is 'colour'.\n"
        " --> PROMPT.md:2:4\n"
        "  |\n"
        "2 | my colour\n"
        "  |    ^^^^^^\n"
        "  = help: Write 'color'.\n"
        "\n"
        "Found 1 warning in 1 deck (1 file).\n"
        "1 can be fixed with --fix.\n"
    )


def test_good_decks_are_praised() -> None:
    """Without errors and warnings the check says what it looked at."""
    write({"a/PROMPT.md": "<x.md", "a/x.md": "", "b/PROMPT.md": "by the way"})
    result = check()
    assert result.exit_code == 0
    assert result.stdout.endswith("All good: 2 decks, 3 files, 1 note.\n")
    assert check("a").stdout == "All good: 1 deck, 2 files.\n"


@pytest.mark.parametrize(
    ("text", "code", "strict_code"),
    [("", 0, 0), ("by the way", 0, 0), ("colour", 0, 1), ("bad", 1, 1)],
)
def test_exit_codes(text: str, code: int, strict_code: int) -> None:
    """Errors fail; warnings do if asked to; notes never."""
    write({"PROMPT.md": text})
    assert check().exit_code == code
    assert check(strict=True).exit_code == strict_code


def test_quiet_shows_errors_and_warnings_only() -> None:
    """No notes, no summary, and nothing at all when there is nothing wrong."""
    write({"a/PROMPT.md": "by the way, bad", "b/PROMPT.md": "by the way"})
    result = check(quiet=True)
    assert result.stdout.startswith("error[GD011]")
    assert "note" not in result.stdout
    assert "Found" not in result.stdout
    assert check("b", quiet=True).output == ""


def test_a_finding_is_told_once() -> None:
    """A file that is reached by two decks, paths or links is found fault with once."""
    write({"a/PROMPT.md": "<../x.md", "b/PROMPT.md": "<../x.md", "x.md": "bad"})
    Path("b/link").symlink_to("../a")
    Path("link.md").symlink_to("x.md")
    write({"c/PROMPT.md": "<../link.md"})
    result = check(".", "a", str(Path("a").resolve()), "b/link", "b/link/PROMPT.md")
    assert result.stdout.count("error[") == 1
    assert "Found 1 error in 3 decks (4 files)." in result.stdout


# --- which decks -----------------------------------------------------------------


def found(*paths: str) -> list[str]:
    """List the files with findings, in folders where every deck is bad."""
    checked = check_paths(paths, reader=DiskReader(), load=load)
    return [f"{one.code} {one.file}" for one in checked.diagnostics]


def test_folders_are_searched() -> None:
    """Decks are found at any depth, old roots too, and other people's folders not."""
    names = [
        "PROMPT.md",
        "b/PROMPT.md",
        "b/c/d/PROMPT.md",
        "old/root.deck.md",
        "old/other.deck.md",
        "b/README.md",
        ".hidden/PROMPT.md",
        ".venv/x/PROMPT.md",
        "b/node_modules/x/PROMPT.md",
        "__pycache__/PROMPT.md",
    ]
    write(dict.fromkeys(names, "bad"))
    decks = ["PROMPT.md", "b/PROMPT.md", "b/c/d/PROMPT.md", "old/root.deck.md"]
    assert found(".") == [f"GD011 {deck}" for deck in decks]
    assert found("old/other.deck.md") == ["GD011 old/other.deck.md"]
    assert found(".hidden") == ["GD011 .hidden/PROMPT.md"]


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    """Neither out of the tree nor round in circles; a path that is a link is."""
    write({"a/PROMPT.md": "bad", "../other/PROMPT.md": "bad"})
    Path("a/up").symlink_to("..")
    Path("out").symlink_to("../other")
    assert found(".") == ["GD011 a/PROMPT.md"]
    assert found("out") == ["GD011 out/PROMPT.md"]
    assert found("../other") == [f"GD011 {tmp_path.as_posix()}/other/PROMPT.md"]


def test_a_folder_without_a_deck_is_an_error() -> None:
    """It is GD001, also for an INTENT.md that has no PROMPT.md beside it."""
    write({"none/README.md": "", "a/PROMPT.md": "", "a/b/INTENT.md": ""})
    write({"old/root.deck.md": "", "old/INTENT.md": "", "c/d/INTENT.md": ""})
    assert found("none", ".") == ["GD001 a/b", "GD001 c/d", "GD001 none"]
    assert found("c") == ["GD001 c/d"]
    result = check("none")
    assert result.exit_code == 1
    assert result.stdout == (
        "error[GD001]: There is no PROMPT.md in none, nor in a folder below it.\n"
        " --> none\n"
        "  = help: A deck is a folder with a PROMPT.md in it.\n"
        "\n"
        "Found 1 error.\n"
    )
    assert "a/b has an INTENT.md and no PROMPT.md" in check("a").stdout


def test_a_path_that_is_no_deck_is_refused() -> None:
    """A file of another name is a usage error, as is one that is not there."""
    write({"README.md": ""})
    result = check("README.md")
    assert result.exit_code == 2
    assert "README.md is not a deck: name a PROMPT.md, or a folder" in result.stderr
    missing = CliRunner().invoke(main, ["check", "nowhere"])
    assert missing.exit_code == 2
    assert "Path 'nowhere' does not exist." in missing.stderr


# --- INTENT.md -------------------------------------------------------------------


@pytest.mark.spec("DK-19")
def test_a_missing_intent_is_noted() -> None:
    """It is a note without a source line, and never fails, however strict."""
    write({"a/PROMPT.md": "Hello", "b/PROMPT.md": ""})
    Path("a/INTENT.md").unlink()
    result = check(strict=True, verbose=True)
    assert result.exit_code == 0
    assert result.stdout == (
        "note[GD090]: There is no INTENT.md beside this deck to say what it is for.\n"
        " --> a/PROMPT.md\n"
        "  = help: gambit check --scaffold writes an outline of one.\n"
        "\n"
        "All good: 2 decks, 2 files, 1 note.\n"
    )


@pytest.mark.parametrize("number", [1, 2])
def test_missing_intents_are_one_line(number: int) -> None:
    """Unless asked for more, one line says how many decks have none."""
    write({"a/PROMPT.md": "Hello", "b/PROMPT.md": ""})
    for name in ("a", "b")[:number]:
        Path(name, "INTENT.md").unlink()
    notes, have, they = "1 note", "deck has", "it is"
    if number > 1:
        notes, have, they = "2 notes", "decks have", "they are"
    assert check().stdout == (
        f"All good: 2 decks, 2 files, {notes}.\n"
        f"{number} {have} no INTENT.md to say what {they} for;"
        " --scaffold writes an outline, --verbose tells where.\n"
    )
    assert check(quiet=True).stdout == ""


@pytest.mark.parametrize(
    ("globs", "left"),
    [
        (("fixtures",), ["a/PROMPT.md", "old/root.deck.md"]),
        (("tests/fix*", "root.deck.md"), ["a/PROMPT.md"]),
        (("a/fixtures", "old"), ["a/PROMPT.md", "tests/fixtures/b/PROMPT.md"]),
    ],
)
def test_what_is_excluded_is_not_found(globs: tuple[str, ...], left: list[str]) -> None:
    """A glob is compared with the last parts of a path; what is named is found."""
    bad = "tests/fixtures/b/PROMPT.md"
    write({"a/PROMPT.md": "", bad: "", "old/root.deck.md": ""})
    assert list(find_decks(["."], exclude=globs).decks) == left
    assert find_decks([bad], exclude=globs).decks == (bad,)


def test_the_command_takes_what_to_exclude() -> None:
    """The option may be given several times."""
    write({"a/PROMPT.md": "", "fixtures/PROMPT.md": "+++", "more/PROMPT.md": "+++"})
    result = CliRunner().invoke(
        main, ["check", "--exclude", "fixtures", "--exclude", "more"]
    )
    assert (result.exit_code, result.stdout.count("GD044")) == (0, 1)


@pytest.mark.spec("DK-19")
def test_an_intent_is_scaffolded() -> None:
    """An outline is written where there is none, and nothing is written over."""
    write({"a/PROMPT.md": "", "b/PROMPT.md": "", "c/PROMPT.md": ""})
    Path("b/INTENT.md").write_text("mine")
    Path("a/INTENT.md").unlink()
    Path("c/INTENT.md").unlink()
    Path("c/INTENT.md").symlink_to("../../nowhere")
    result = check(scaffold=True)
    assert result.exit_code == 0
    assert result.stdout == "Wrote a/INTENT.md.\nAll good: 3 decks, 3 files.\n"
    outline = Path("a/INTENT.md").read_text()
    assert re.findall(r"^## (.*)\n\n<!-- .+ -->$", outline, re.MULTILINE) == [
        "Goals",
        "Non-goals",
        "Constraints",
        "Trade-offs",
        "Escalation",
    ]
    assert Path("b/INTENT.md").read_text() == "mine"
    assert not Path("../nowhere").exists()
    assert "Wrote" not in check(scaffold=True).stdout


# --- --fix and --diff ------------------------------------------------------------


def test_fixes_are_written_and_shown() -> None:
    """A diff for each file, what was fixed, and then what is left."""
    write({"PROMPT.md": "one\nmy colour, wrong colour\nbad\n", "x.md": "colour"})
    before = tree()
    result = check(fix=True)
    assert result.exit_code == 1
    assert result.stdout == (
        "--- PROMPT.md\n"
        "+++ PROMPT.md\n"
        "@@ -1,3 +1,3 @@\n"
        " one\n"
        "-my colour, wrong colour\n"
        "+my color, right color\n"
        " bad\n"
        "\n"
        "Fixed 3 problems in 1 file.\n"
        "\n"
        "error[GD011]: There is 'bad'.\n"
        " --> PROMPT.md:3:1\n"
        "  |\n"
        "3 | bad\n"
        "  | ^^^\n"
        "\n"
        "Found 1 error in 1 deck (1 file).\n"
    )
    changed = {"PROMPT.md": b"one\nmy color, right color\nbad\n"}
    assert tree() == before | changed
    assert check(fix=True, quiet=True).stdout.startswith("error[GD011]")


def test_a_diff_writes_nothing() -> None:
    """It shows what --fix would do, and exits as a plain check does."""
    write({"PROMPT.md": "wrong\n"})
    before = tree()
    for result in (check(diff=True), check(diff=True, fix=True)):
        assert result.exit_code == 1
        assert result.stdout == (
            "--- PROMPT.md\n"
            "+++ PROMPT.md\n"
            "@@ -1 +1 @@\n"
            "-wrong\n"
            "+right\n"
            "\n"
            "Would fix 1 problem in 1 file.\n"
            "\n"
            "All would be good: 1 deck, 1 file.\n"
        )
        assert tree() == before
    write({"PROMPT.md": "colour bad"})
    assert "\nWould leave 1 error in 1 deck" in check(diff=True).stdout
    write({"PROMPT.md": "colour"})
    assert check(diff=True).exit_code == 0


def test_nothing_to_fix_is_nothing_to_tell() -> None:
    """With --fix or --diff, decks without fixes are checked as usual."""
    write({"PROMPT.md": "by the way"})
    assert check(fix=True).stdout == check().stdout
    write({"PROMPT.md": "bad"})
    assert check(fix=True).stdout == check().stdout


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("a\r\ncolour\r\nb\r\n", "a\r\ncolor\r\nb\r\n", id="CRLF"),
        pytest.param("\ufeffcolour\n", "\ufeffcolor\n", id="BOM"),
        pytest.param("a\rb\n\u2028colour", "a\rb\n\u2028color", id="mixed"),
        pytest.param("\udcff colour", "\udcff color", id="not UTF-8"),
        pytest.param("😀 colour", "😀 color", id="astral"),
    ],
)
def test_other_bytes_stay_as_they_are(before: str, after: str) -> None:
    """Line ends, byte order marks and bytes that are no text survive a fix."""
    write({"PROMPT.md": before})
    assert "Fixed 1 problem" in check(fix=True).stdout
    written = Path("PROMPT.md").read_bytes()
    assert written == after.encode("utf-8", "surrogateescape")


def test_a_fix_keeps_the_mode_and_leaves_nothing_behind() -> None:
    """A file that was private stays so, and no temporary file is left."""
    write({"PROMPT.md": "colour"})
    Path("PROMPT.md").chmod(0o640)
    names = tree().keys()
    check(fix=True)
    assert stat.S_IMODE(Path("PROMPT.md").stat().st_mode) == 0o640
    assert tree().keys() == names


def test_a_fix_that_brings_an_error_is_not_written() -> None:
    """Its file stays as it was, that is said, and other files are fixed."""
    write({"a/PROMPT.md": "trap colour", "b/PROMPT.md": "colour"})
    for options in ({"fix": True}, {"fix": True, "quiet": True}, {"diff": True}):
        result = check("a", **options)
        assert (
            "Not fixed: a/PROMPT.md, because that would bring a new error: "
            "There is 'bad'.\n"
        ) in result.stdout
        assert "There is 'trap'" in result.stdout
        assert Path("a/PROMPT.md").read_text() == "trap colour"
    assert "Fixed 1 problem in 1 file." in check(fix=True).stdout
    assert Path("b/PROMPT.md").read_text() == "color"


def test_files_outside_are_left_alone() -> None:
    """A deck cannot have files written that are not in the paths given."""
    write({"../lib/x.md": "colour", "a/PROMPT.md": "<../../lib/x.md"})
    result = check(fix=True)
    outside = Path("../lib/x.md").resolve().as_posix()
    assert f"Not fixed: {outside}, because {OUTSIDE}.\n" in result.stdout
    assert Path("../lib/x.md").read_text() == "colour"
    write({"../lib/PROMPT.md": ""})
    assert "Fixed 1 problem" in check("a", "../lib/PROMPT.md", fix=True).stdout
    assert Path("../lib/x.md").read_text() == "color"


def test_links_are_written_through_inside_only() -> None:
    """A link stays one; what it leads to is written if it is in the paths given."""
    write({"PROMPT.md": "<in.md\n<d/x.md", "real.md": "colour"})
    write({"../lib/x.md": "colour"})
    Path("in.md").symlink_to("real.md")
    Path("d").symlink_to("../lib")
    result = check(fix=True)
    assert "Fixed 1 problem in 1 file." in result.stdout
    assert "Not fixed: d/x.md, because it is a link to " in result.stdout
    assert Path("in.md").is_symlink()
    assert Path("real.md").read_text() == "color"
    assert Path("../lib/x.md").read_text() == "colour"


def test_a_read_only_file_is_left_alone() -> None:
    """Who took the right to write away meant it."""
    write({"PROMPT.md": "colour"})
    Path("PROMPT.md").chmod(0o444)
    assert "because it is read-only.\n" in check(fix=True).stdout
    assert Path("PROMPT.md").read_text() == "colour"


def test_a_file_saved_meanwhile_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What an editor wrote while the check ran is not written over."""
    write({"PROMPT.md": "colour"})
    read_text = DiskReader.read_text

    def read_and_save(self: DiskReader, path: str, /) -> str | None:
        text = read_text(self, path)
        Path(path).write_text("saved, and no colour any more")
        return text

    monkeypatch.setattr(DiskReader, "read_text", read_and_save)
    result = check(fix=True)
    assert "because it was changed meanwhile.\n" in result.stdout
    assert "Fixed" not in result.stdout
    assert "+++" not in result.stdout
    assert Path("PROMPT.md").read_text() == "saved, and no colour any more"


def test_options_that_exclude_each_other() -> None:
    """--diff writes nothing, so it goes neither with --scaffold nor with --json."""
    write({"PROMPT.md": ""})
    for options in ({"scaffold": True}, {"as_json": True}):
        result = check(diff=True, **options)
        assert result.exit_code == 2
        assert "do not go together" in result.stderr


# --- --json ----------------------------------------------------------------------


def test_json_is_one_document() -> None:
    """Counts and findings for an editor, and nothing else on standard output."""
    write({"a/PROMPT.md": "x\n colour", "b/PROMPT.md": "bad"})
    result = check(as_json=True)
    assert result.exit_code == 1
    assert result.stderr == ""
    document = json.loads(result.stdout)
    assert list(document) == [
        "version",
        "files_checked",
        "decks_checked",
        "errors",
        "warnings",
        "notes",
        "diagnostics",
    ]
    assert list(document.values())[:-1] == [1, 2, 2, 1, 1, 0]
    assert document["diagnostics"][0] == {
        "code": "GD010",
        "severity": "warning",
        "message": "There is 'colour'.",
        "file": "a/PROMPT.md",
        "line": 2,
        "column": 2,
        "hint": "Write 'color'.",
        "edits": [{"start": 3, "end": 9, "text": "color"}],
    }
    assert document["diagnostics"][1]["hint"] is None
    assert result.stdout.count("\n") == 1


def test_json_goes_with_writing() -> None:
    """What is done besides is told on standard error."""
    write({"PROMPT.md": "colour"})
    Path("INTENT.md").unlink()
    result = check(as_json=True, fix=True, scaffold=True)
    assert json.loads(result.stdout)["diagnostics"] == []
    assert result.stderr.splitlines()[:2] == [
        "Wrote INTENT.md.",
        "Fixed 1 problem in 1 file.",
    ]


def test_json_of_names_that_are_not_text() -> None:
    """A file name of odd bytes does not keep the document from being JSON."""
    write({"\udcff/PROMPT.md": "bad"})
    (one,) = json.loads(check(as_json=True).stdout)["diagnostics"]
    assert one["file"] == "?/PROMPT.md"
    assert " --> \ufffd/PROMPT.md:1:1" in check().stdout


# --- the command -----------------------------------------------------------------

OLD_NAMES = '+++\nlabel = "x"\nactionDecks = []\n+++\nHello ![](gambit://respond)\n'


def gambit(*arguments: str, **env: str) -> Result:
    """Run the command in this process."""
    settings = {"COLUMNS": "200", "NO_COLOR": "1"} | env
    return CliRunner(env=settings).invoke(main, ["check", *arguments])


def test_the_command_checks_real_decks() -> None:
    """A mistake in a deck is explained with its place, and the exit code tells."""
    write({"a/PROMPT.md": '+++\nlable = "x"\n+++\nHello', "b/PROMPT.md": "Hello"})
    done = gambit()
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("warning[GD010]: lable is not a known key")
    assert '\n2 | lable = "x"\n  | ^^^^^\n' in done.stdout
    assert "Found 1 warning in 2 decks (2 files)." in done.stdout
    assert gambit("--strict").exit_code == 1
    assert gambit("b", "--strict").stdout == "All good: 1 deck, 1 file.\n"


def test_the_command_names_files_from_where_it_stands(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths are relative below the current folder, in findings about embeds too."""
    write({"d/PROMPT.md": "![](./x.md)", "d/x.md": "![](./nowhere.md)"})
    for path in (".", "d", "d/PROMPT.md", "./d/../d", str(home), str(home / "d")):
        assert " --> d/x.md:1:5\n" in gambit(path).stdout
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert f" --> {home.as_posix()}/d/x.md:1:5\n" in gambit("../home").stdout


def test_the_command_fixes_old_names() -> None:
    """Deprecated names are rewritten, and the deck is good afterwards."""
    write({"PROMPT.md": OLD_NAMES.replace("\n", "\r\n")})
    assert gambit("--legacy", "refuse").exit_code == 1
    assert gambit("--legacy", "warn").exit_code == 0
    done = gambit("--fix", "--legacy", "refuse")
    assert "Fixed 2 problems in 1 file.\n\nAll good: 1 deck, 1 file.\n" in done.stdout
    assert done.exit_code == 0
    new = OLD_NAMES.replace("actionDecks", "actions")
    new = new.replace("gambit://respond", "gambit://snippets/respond.md")
    assert Path("PROMPT.md").read_bytes() == new.replace("\n", "\r\n").encode()


def test_the_command_knows_its_options() -> None:
    """Wrong options are usage errors, and help explains the right ones."""
    assert gambit("--legacy", "maybe").exit_code == 2
    assert gambit("--no-such-option").exit_code == 2
    shown = gambit("--help").stdout
    for option in ("--strict", "--fix", "--diff", "--json", "--scaffold", "--quiet"):
        assert option in shown


def test_color_is_for_those_who_want_it() -> None:
    """A pipe gets none unless forced to, and NO_COLOR is obeyed."""
    write({"PROMPT.md": OLD_NAMES})
    assert "\x1b" not in gambit("--diff").stdout
    forced = {"FORCE_COLOR": "1", "TERM": "xterm", "NO_COLOR": ""}
    colored = gambit("--diff", "--legacy", "refuse", **forced).stdout
    assert "\x1b[31m-actionDecks = []" in colored
    assert "\x1b[32m+actions = []" in colored
    assert "\x1b[1;31merror" in gambit("--legacy", "refuse", **forced).stdout
    assert "\x1b[1;33mwarning" in gambit("--legacy", "warn", **forced).stdout
    plain = gambit(**(forced | {"NO_COLOR": "1"})).stdout
    assert not re.search("\x1b\\[[\\d;]*3\\d", plain)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_gets_color_and_lines_that_fit() -> None:
    """On a narrow terminal the marks still stand under what they mark."""
    import pty

    write({"PROMPT.md": f"{'word ' * 40}![](./nowhere.md)"})
    ours, theirs = pty.openpty()
    env = {**os.environ, "COLUMNS": "60", "TERM": "xterm", "NO_COLOR": ""}
    with subprocess.Popen(
        [GAMBIT, "check", "-q"], stdout=theirs, stderr=theirs, env=env
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while arrived := os.read(ours, 4096):
                shown += arrived
        except OSError:  # How Linux says that the other end is closed.
            pass
    os.close(ours)
    assert process.returncode == 1
    assert b"\x1b[1;31merror" in shown
    plain = re.sub("\x1b\\[[\\d;]*m", "", shown.decode()).splitlines()
    source = next(line for line in plain if line.startswith("1 | "))
    marks = plain[plain.index(source) + 1]
    assert len(source) <= 60
    assert source.index("./nowhere.md") == marks.index("^" * len("./nowhere.md"))


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--strict", "--json", "--diff"])
def test_a_reader_who_has_enough_is_no_error(option: str) -> None:
    """``gambit check | head`` ends without a word on standard error."""
    write({f"{number}/PROMPT.md": OLD_NAMES for number in range(400)})
    with subprocess.Popen(
        [GAMBIT, "check", option], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_without_unicode_is_no_crash(encoding: str) -> None:
    """What cannot be shown is replaced; JSON is UTF-8 all the same."""
    write({"日/PROMPT.md": '+++\nlable = "日本"\n+++\nHello'})
    done = subprocess.run(
        [GAMBIT, "check"],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Found 1 warning" in done.stdout
    document = json.loads(
        subprocess.check_output(
            [GAMBIT, "check", "--json"],
            env={**os.environ, "PYTHONIOENCODING": encoding},
        )
    )
    assert document["diagnostics"][0]["file"] == "日/PROMPT.md"


def test_a_fix_stays_in_the_given_path() -> None:
    """Where a path is given, what lies beside it is not written."""
    write({"a/PROMPT.md": "<../b/x.md", "b/x.md": "colour"})
    assert OUTSIDE in check("a", fix=True).stdout
    assert Path("b/x.md").read_text() == "colour"


@pytest.mark.slow
def test_folders_may_nest_deeply() -> None:
    """Searching goes as deep as there are folders."""
    here, depth = Path.cwd(), 1200
    for _ in range(depth):
        Path("d").mkdir()
        os.chdir("d")
    Path("PROMPT.md").write_text("Hi.")
    os.chdir(here)
    try:
        decks, findings = find_decks(["."])
    finally:
        # What tidies up after tests goes as deep into the stack as folders nest.
        shutil.move("d", "e0")
        for level in range(depth - 1):
            Path(f"e{level}", "d").rename(f"e{level + 1}")
    assert findings == ()
    assert decks == (Path(*["d"] * depth, "PROMPT.md").as_posix(),)
