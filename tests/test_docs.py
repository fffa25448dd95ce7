"""Every Python block of the docs runs, and every example does what it says."""

import codeop
import re
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from gambit_actors import DiskReader, RunOptions, RunResult
from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.trees import Limits
from gambit_actors.cli.main import main

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
STREAMS = ROOT / "tests" / "fixtures" / "streams"
PAGES = [
    page
    for folder in ("tutorial", "how-to", "reference")
    for page in sorted((DOCS / folder).glob("*.md"))
    if "```python" in page.read_text()
]


def python_blocks(page: Path) -> list[str]:
    """The Python code of a page, block by block."""
    return re.findall(
        r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_runs_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader who types a page's Python in, top to bottom, sees its asserts hold."""
    monkeypatch.chdir(tmp_path)
    code = "\n".join(python_blocks(page))

    assert "assert" in code
    exec(compile(code, str(page), "exec"), {})  # noqa: S102  (our own pages)


@pytest.mark.slow
def test_pages_can_be_followed_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one page leaves behind in a folder is not in the way of the next."""
    monkeypatch.chdir(tmp_path)
    for page in PAGES:
        code = "\n".join(python_blocks(page))
        exec(compile(code, str(page), "exec"), {})  # noqa: S102  (our own pages)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda p: p.name)
def test_blocks_can_be_pasted_into_a_terminal(page: Path) -> None:
    """Python's prompt takes each block line by line, where a blank one ends a body."""
    for block in python_blocks(page):
        waiting: list[str] = []
        for line in [*block.splitlines(), ""]:
            waiting.append(line)
            if codeop.compile_command("\n".join(waiting), str(page)):
                waiting.clear()
        assert not any(waiting)


@pytest.mark.slow
@pytest.mark.parametrize("block", python_blocks(DOCS / "reference" / "compute.md"))
def test_modules_of_the_docs_are_described(tmp_path: Path, block: str) -> None:
    """What the page about compute decks shows is read as a deck's module is."""
    (tmp_path / "action.py").write_text(block)
    described = DiskReader(tmp_path).describe_module("action.py")
    assert described.files == ()


def shown_runs(page: Path) -> list[tuple[list[str], list[str], str]]:
    """What a page shows of ``gambit run``: its Python so far, a command, its output."""
    found = []
    fences = re.finditer(
        r"^```(python|console)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE
    )
    python: list[str] = []
    for fence in fences:
        kind, block = fence.groups()
        command, _, output = block.replace("\\\n", " ").partition("\n")
        if kind == "python":
            python.append(block)
        elif "gambit run " in command and output and not output.startswith("$"):
            found.append(([*python], shlex.split(command)[2:], output))
    return found


@pytest.mark.parametrize(
    "page",
    [
        DOCS / "tutorial" / "first-run.md",
        DOCS / "how-to" / "use-a-model.md",
        DOCS / "reference" / "cli.md",
    ],
    ids=lambda page: page.name,
)
def test_what_a_page_shows_of_a_run_is_what_is_printed(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal of 80 columns, to the token; only the time it takes may differ."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "decks").symlink_to(ROOT / "decks")
    shown = shown_runs(page)
    assert shown
    for python, command, output in shown:
        exec("\n".join(python), {})  # noqa: S102  (our own pages)
        terminal = {"FORCE_COLOR": "1", "TERM": "dumb", "ANTHROPIC_API_KEY": ""}
        printed = CliRunner(env=terminal).invoke(main, command).output
        lines = [line.rstrip() for line in printed.splitlines()]
        assert re.sub(r"\d+\.\d s ·", "0.0 s ·", "\n".join(lines)) + "\n" == output


@pytest.mark.parametrize("kind", [RunOptions, Limits, RunResult, ExternalCall])
def test_the_page_of_the_runtime_has_every_field(kind: type[msgspec.Struct]) -> None:
    """Who reads the page where it lies, without building the docs, misses none."""
    page = (DOCS / "reference" / "runtime.md").read_text()
    section = re.split(r"\n##+ ", page.partition(f"\n## {kind.__name__}\n")[2])[0]
    told = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert sorted(told) == sorted(field.name for field in msgspec.structs.fields(kind))


@pytest.mark.slow
def test_readme_runs_in_a_checkout(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The README's Python prints what its comments say, in the project's folder."""
    monkeypatch.chdir(ROOT)
    for code in python_blocks(ROOT / "README.md"):
        exec(compile(code, "README.md", "exec"), {})  # noqa: S102

    answer, decks, text = capsys.readouterr().out.splitlines()[:3]
    assert answer == "An actor is somebody with a mailbox."
    assert decks.startswith("Support desk ['order_lookup'")
    assert len(text) > 1


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """A relative link in a page points at a file that is there."""
    text = page.read_text(encoding="utf-8")
    prose = re.sub(r"^(`{3,}).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", prose)

    missing = [target for target in targets if not (page.parent / target).exists()]

    assert missing == []


def run_example(name: str, *args: str, stdin: bytes = b"") -> tuple[int, str, str]:
    """Run an example as a program; its exit code, output and errors."""
    program = [sys.executable, str(ROOT / "examples" / name), *args]
    done = subprocess.run(program, input=stdin, capture_output=True, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_decode_example_prints_calls() -> None:
    """The decoding example prints the text and the calls of a stream."""
    code, out, _ = run_example("decode_stream.py", str(STREAMS / "parallel_calls.sse"))

    assert code == 0
    assert out.count("wants ") == 2
    assert "status: completed" in out


def test_decode_example_does_not_trust_a_cut_stream() -> None:
    """The decoding example exits with 1 and says so when a stream was cut."""
    code, out, err = run_example("decode_stream.py", str(STREAMS / "truncated.sse"))

    assert code == 1
    assert "ended early" in err
    assert "status: in_progress" in out


def test_examples_speak_to_each_other(tmp_path: Path) -> None:
    """What the writing example writes, the decoding example reads."""
    code, body, _ = run_example(
        "write_stream.py", stdin=b'{"model": "echo", "input": "hello there"}'
    )
    assert code == 0
    recording = tmp_path / "stream.sse"
    recording.write_text(body)

    code, out, _ = run_example("decode_stream.py", str(recording))

    assert code == 0
    assert "You said: hello there" in out


def test_write_example_explains_a_bad_request() -> None:
    """The writing example names the key of a request that it cannot use."""
    code, _, err = run_example("write_stream.py", stdin=b'{"input": 7}')

    assert code == 2
    assert "input: expected a string or a list, got 7" in err
