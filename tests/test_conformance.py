"""The conformance page tells the truth, and a mark cannot name a wrong id."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance import (
    PAGE,
    ROOT,
    Section,
    faults_in_marks,
    known_ids,
    load_sections,
    render,
)

SECTIONS = [Section(key="X", title="Ex", promises={"X-1": "it runs", "X-2": "a | b"})]


def run_pytest(*args: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run pytest in a process of its own, unaware of the one running this test."""
    env = {key: val for key, val in os.environ.items() if not key.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_page_is_what_the_marks_say(tmp_path: Path) -> None:
    """The page in docs equals the one rendered from the whole suite's marks."""
    fresh = tmp_path / "page.md"
    done = run_pytest("-qq", "--collect-only", f"--write-conformance={fresh}")
    assert done.returncode == 0, done.stdout + done.stderr
    on_disk = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if fresh.read_text(encoding="utf-8") != on_disk:
        pytest.fail(f"{PAGE.relative_to(ROOT)} is stale: run make conformance")


def test_every_id_belongs_to_its_section() -> None:
    """Each id starts with its section's key, has a number, and a worded promise."""
    for section in load_sections():
        for id_, promise in section.promises.items():
            key, _, number = id_.partition("-")
            assert key == section.key
            assert number.isdigit()
            assert promise.strip()


def test_unproved_promise_is_shown_as_open() -> None:
    """An id no test carries is marked open, listed at the end, and counted."""
    page = render(SECTIONS, {"X-1": ["tests/a.py::test_a"]})
    assert "| X-1 | it runs | `tests/a.py::test_a` |" in page
    assert "| X-2 | a \\| b | open |" in page
    assert page.endswith("## Still open\n\n- X-2: a | b\n")
    assert "| All | 1 | 1 | 2 |" in page


def test_page_does_not_depend_on_collection_order() -> None:
    """Proofs are sorted and repeated ones folded, so the page is reproducible."""
    page = render(SECTIONS, {"X-1": ["t::b", "t::a", "t::b"]})
    assert "`t::a`<br>`t::b` |" in page


@pytest.mark.parametrize(
    ("ids", "fault"),
    [
        (("X-1", "X-9"), "t::a: unknown requirement id 'X-9'"),
        ((["X-1"],), "t::a: unknown requirement id ['X-1']"),
        ((), "t::a: the spec mark names no requirement id"),
    ],
)
def test_bad_marks_are_named(ids: tuple[object, ...], fault: str) -> None:
    """A mark with an unknown id, a list, or nothing is a fault naming the test."""
    faults = faults_in_marks([ids], test="t::a", known=known_ids(SECTIONS))
    assert len(faults) == 1
    assert faults[0].startswith(fault)


def test_good_marks_have_no_fault() -> None:
    """Known ids pass, several in one mark and several marks alike."""
    marks = [("X-1", "X-2"), ("X-1",)]
    assert faults_in_marks(marks, test="t::a", known=known_ids(SECTIONS)) == []


BAD_SUITE = """
    import pytest

    @pytest.mark.parametrize("n", [1, 2])
    @pytest.mark.spec("NOPE-1")
    def test_stray(n):
        pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """Give an empty suite that has this project's conformance plugin."""
    pytester.makeini("[pytest]\nmarkers = spec(id, ...): ids\ntestpaths = .")
    pytester.makeconftest('pytest_plugins = ["tests.conformance"]')
    pytester.syspathinsert(ROOT)
    return pytester


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "1"])
def test_unknown_id_stops_collection(suite: pytest.Pytester, workers: str) -> None:
    """A stray id is one collection error naming test and id, under xdist too."""
    suite.makepyfile(test_bad=BAD_SUITE)
    done = suite.runpytest_subprocess("-n", workers)
    assert done.ret != pytest.ExitCode.OK
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*test_bad.py::test_stray: unknown*id 'NOPE-1'*"])


@pytest.mark.slow
def test_written_page_folds_parameters(suite: pytest.Pytester) -> None:
    """A parametrised test is one proof, and -k leaves no test off the page."""
    suite.makepyfile(test_good=BAD_SUITE.replace("NOPE-1", "DK-41"))
    page = suite.path / "page.md"
    done = suite.runpytest_subprocess(
        "--collect-only", f"--write-conformance={page}", "-k", "nothing"
    )
    assert done.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert "| `test_good.py::test_stray` |" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_page_is_never_written_from_part_of_the_suite(suite: pytest.Pytester) -> None:
    """Paths on the command line, or a broken file, leave the page unwritten."""
    suite.makepyfile(test_bad=BAD_SUITE)
    page = suite.path / "page.md"
    option = f"--write-conformance={page}"
    assert suite.runpytest_subprocess("--collect-only", option).ret != 0
    chosen = suite.runpytest_subprocess("--collect-only", option, "test_bad.py")
    assert chosen.ret == pytest.ExitCode.USAGE_ERROR
    assert not page.exists()
