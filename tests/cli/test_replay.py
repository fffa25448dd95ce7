"""``gambit replay`` and ``gambit branch`` look at runs again, and begin others."""

from pathlib import Path

import pytest

from gambit_actors.store.run_index import find_run, list_runs
from tests.cli.stored import cut_off_run, gambit, kept_run, set_up


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a deck and a script; it is the current one."""
    monkeypatch.chdir(tmp_path)
    set_up(tmp_path)
    return tmp_path


@pytest.mark.spec("CARD-7")
def test_a_run_is_replayed_without_a_model(desk: Path) -> None:
    """The answer goes to standard output; nothing is written."""
    run_id = kept_run()
    path = desk / "runs" / f"{run_id}.jsonl"
    before = path.read_bytes()
    result = gambit("replay", "last")
    assert (result.exit_code, result.stdout) == (0, "Hello there.\n")
    assert result.stderr == "replayed 3 decisions, byte for byte\n"
    assert path.read_bytes() == before


def test_a_changed_deck_shows_the_first_difference(desk: Path) -> None:
    """Exit 1 with the entry, what is recorded and what would be now."""
    kept_run()
    (desk / "other").mkdir()
    (desk / "other" / "PROMPT.md").write_text("Be rude.\n")
    result = gambit("replay", "last", "--deck", "other")
    assert (result.exit_code, result.stdout) == (1, "")
    error, recorded, now = result.stderr.splitlines()
    assert "differs at entry 2: the prompt is another" in error
    assert "Be kind." in recorded
    assert "Be rude." in now


def test_a_run_without_an_answer_replays_as_far_as_it_goes(desk: Path) -> None:
    """There is nothing on standard output then."""
    set_up(desk)
    (desk / "PROMPT.md").write_text(
        (desk / "PROMPT.md").read_text().replace("Be kind.", "")
    )
    cut_off_run(desk)
    result = gambit("replay", "run-cut")
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr


def test_a_run_that_failed_has_no_answer_to_be_shown(desk: Path) -> None:
    """Not even an empty line; why is told on standard error."""
    (desk / "empty.toml").write_text("")
    gambit("run", ".", "-m", "Hi.", "--script", "empty.toml", "--store", "runs")
    result = gambit("replay", "last")
    assert (result.exit_code, result.stdout) == (0, "")
    first, second = result.stderr.splitlines()
    assert first.startswith("there was no answer: the script has no reply left for ")
    assert second.startswith("replayed ")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("replay", "run-none"), 2, "there is no log of run run-none"),
        (("replay", "last", "--deck", "none"), 2, "there is no deck at none"),
        (("replay", "run-bad"), 1, "is damaged"),
        (("branch", "last", "--items", "9"), 2, "branch at 1 to 3, not 9"),
        (("branch", "run-bad", "--items", "1"), 1, "is damaged"),
        (("branch", "last", "--items", "1", "-m", "Hi."), 2, "there is no provider"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    desk: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    """Exit 2 for what was asked wrongly, 1 for what is broken; nothing is made."""
    run_id = kept_run()
    bad = desk / "runs" / "run-bad.jsonl"
    bad.write_bytes(b"hello\n")
    command = [run_id if word == "last" else word for word in arguments]
    result = gambit(*command)
    assert result.exit_code == code
    assert words in result.stderr.splitlines()[0]
    assert len(list_runs(desk / "runs")) == 2


def test_a_branch_is_a_run_of_its_own(desk: Path) -> None:
    """Its id is all there is on standard output, and it is gone on with like any."""
    run_id = kept_run()
    result = gambit("branch", run_id, "--items", "2")
    assert result.exit_code == 0
    branched = result.stdout.strip()
    run = find_run(desk / "runs", branched)
    assert (run.branched_from, run.status) == (f"{run_id}@2", "interrupted")
    (desk / "other.toml").write_text('[[replies]]\ntext = "Good day."\n')
    again = gambit("resume", branched, "--script", "other.toml")
    assert (again.exit_code, again.stdout) == (0, "Good day.\n")
    assert gambit("resume", run_id).stdout == "Hello there.\n"


def test_a_branch_can_be_told_something_at_once(desk: Path) -> None:
    """Then the answer is on standard output, and the id at the end of the summary."""
    run_id = kept_run()
    command = ["branch", run_id, "--items", "3", "-m", "And now?"]
    result = gambit(*command, "--script", "script.toml")
    assert (result.exit_code, result.stdout) == (0, "Again.\n"), result.stderr
    first, *_, last = result.stderr.splitlines()
    assert first.removeprefix("branched as ") == last.split(" · ")[-1]
