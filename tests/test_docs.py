"""Every Python block of the docs runs, and every example does what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
STREAMS = ROOT / "tests" / "fixtures" / "streams"
PAGES = [
    page
    for folder in ("tutorial", "how-to", "reference")
    for page in sorted((ROOT / "docs" / folder).glob("*.md"))
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


def test_readme_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The README's example prints the text of a stream, given its chunks."""
    stream = (STREAMS / "text.sse").read_bytes()
    chunks = [stream[i : i + 100] for i in range(0, len(stream), 100)]
    _, code = python_blocks(ROOT / "README.md")

    exec(compile(code, "README.md", "exec"), {"chunks": chunks})  # noqa: S102

    assert len(capsys.readouterr().out) > 1


@pytest.mark.slow
def test_readme_loads_a_deck(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The README's other example loads a deck that comes with the project."""
    monkeypatch.chdir(ROOT)
    code, _ = python_blocks(ROOT / "README.md")

    exec(compile(code, "README.md", "exec"), {})  # noqa: S102

    assert capsys.readouterr().out.startswith("Support desk ['order_lookup'")


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
