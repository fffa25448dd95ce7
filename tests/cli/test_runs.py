"""``gambit runs`` lists what is kept, and ``gambit runs prune`` removes it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gambit_actors.cli.runs import size_text
from gambit_actors.run.entries import RunEnded
from gambit_actors.store.log_lines import LineWriter, read_lines
from tests.cli.stored import cut_off_run, gambit, kept_run, set_up


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a deck and a script; it is the current one."""
    monkeypatch.chdir(tmp_path)
    set_up(tmp_path)
    return tmp_path


def ids(*arguments: str) -> list[str]:
    """Which runs are listed."""
    result = gambit("runs", *arguments)
    assert result.exit_code == 0, result.stderr
    return [line.split()[0] for line in result.stdout.splitlines()[1:]]


def test_runs_are_listed_in_a_table(desk: Path) -> None:
    """A line each, the latest first, and what to type about an interrupted one."""
    run_id = kept_run()
    cut_off_run(desk)
    result = gambit("runs")
    assert result.exit_code == 0
    titles, first, second = result.stdout.splitlines()
    assert titles.split()[:3] == ["RUN", "STATUS", "LAST"]
    assert first.split()[:2] == [run_id, "completed"]
    assert first.endswith(f"  {desk.name}")
    assert second.split()[:2] == ["run-cut", "interrupted"]
    assert result.stderr.endswith(": gambit resume run-cut --store runs\n")


@pytest.mark.parametrize("columns", ["80", "100", "200"])
def test_a_run_is_one_line_of_a_terminal(desk: Path, columns: str) -> None:
    """What has no room is left out, and never a part of the id."""
    run_id = kept_run("--price", "far/away=1000,2000")
    (desk / "empty.toml").write_text("")
    gambit("run", ".", "-m", "Hi.", "--script", "empty.toml", "--store", "runs")
    result = gambit("runs", COLUMNS=columns)
    titles, failed, completed = result.stdout.splitlines()
    deck = len(desk.name)  # Longer than most.
    assert len(completed) - deck <= int(columns) - 10
    assert failed.split()[1:3] == ["failed", "model_unavailable"]
    assert completed.split()[0] == run_id
    assert (columns == "200") == ("SIZE" in titles and "COST" in titles)


def test_a_cancelled_run_is_not_called_that_twice(desk: Path) -> None:
    """A code that is the status says nothing more."""
    log = cut_off_run(desk)
    ended = RunEnded(status="cancelled", code="cancelled", turns=1)
    entries = [*read_lines(log.read_bytes()).entries, ended]
    log.write_bytes(LineWriter("gone.1.a").batch(entries, 100.0))
    (_, line) = gambit("runs").stdout.splitlines()
    assert line.count("cancelled") == 1


def test_runs_are_listed_in_a_document(desk: Path) -> None:
    """What there is to know of each, by its name."""
    run_id = kept_run()
    listed = json.loads(gambit("runs", "--json").stdout)
    assert listed["version"] == 1
    (run,) = listed["runs"]
    assert (run["run_id"], run["status"], run["turns"]) == (run_id, "completed", 1)
    assert run["usage"]["total_tokens"] > 0


def test_runs_are_chosen(desk: Path) -> None:
    """By how they ended, their age, their deck and their number."""
    good = kept_run()
    cut_off_run(desk)
    (desk / "empty.toml").write_text("")
    command = ["run", ".", "-m", "Hi.", "--script", "empty.toml", "--store", "runs"]
    assert gambit(*command).exit_code == 1
    bad = ids("--limit", "1")
    assert ids("--failed") == bad
    assert ids("--interrupted") == ["run-cut"]
    assert ids("--interrupted", "--failed") == [*bad, "run-cut"]
    assert ids("--since", "1h") == [*bad, good]
    assert ids("--deck", "desk/*") == ["run-cut"]
    for mine in (desk.name, f"{desk.name}/PROMPT.md", ".", "./", "PROMPT.md", "*"):
        assert good in ids("--deck", mine)
    assert ids("--deck", ".", "--limit", "1") == bad
    assert ids("--deck", "desk") == ["run-cut"]
    nothing = gambit("runs", "--deck", "nobody")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert nothing.stderr == "There are no such runs.\n"


def test_a_damaged_log_is_listed_with_its_place(desk: Path) -> None:
    """In the table and in the document; the exit code is that of a list."""
    kept_run()
    (desk / "runs" / "run-bad.jsonl").write_bytes(b"hello\n")
    result = gambit("runs")
    assert result.exit_code == 0
    assert "\n  line 1, byte 0: " in result.stdout
    listed = json.loads(gambit("runs", "--json").stdout)["runs"]
    damaged = [run for run in listed if run["status"] == "damaged"]
    assert damaged[0]["damage"]["offset"] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--since", "soon"), "--since soon is no age, such as 90s"),
        (("--store", "none"), "there is no folder none"),
        (("prune", "--keep", "30"), "--keep 30 is no age"),
        (("prune", "--keep", "0s", "--store", "none"), "there is no folder none"),
        (("prune", "--keep", "0s"), "nobody is here to be asked: say --yes"),
        (("prune",), "Missing option '--keep'"),
    ],
)
def test_what_is_asked_wrongly_is_one_sentence(
    desk: Path, arguments: tuple[str, ...], words: str
) -> None:
    """Exit 2, and nothing is removed."""
    run_id = kept_run()
    result = gambit("runs", *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert ids() == [run_id]


@pytest.mark.parametrize(
    ("command", "guess"),
    [
        ("show", " Did you mean gambit log RUN_ID?"),
        ("list", " Did you mean gambit runs?"),
        ("rnu", " Did you mean gambit run?"),
        ("runs list", " Did you mean gambit runs?"),
        ("runs show", " Did you mean gambit log RUN_ID?"),
        ("runs prnue", " Did you mean gambit runs prune?"),
        ("runs xyz", ""),
    ],
)
def test_a_command_that_there_is_not_is_told_with_one_that_there_is(
    command: str, guess: str
) -> None:
    """By what somebody tries first, or by how it is written."""
    result = gambit(*command.split())
    assert result.exit_code == 2
    name = command.rsplit(maxsplit=1)[-1]
    assert result.stderr.endswith(f"\nError: No such command '{name}'.{guess}\n")


def test_where_runs_are_looked_for_is_in_the_help_of_each_command() -> None:
    """Also of the one for which the command before it may say so."""
    for command in ("runs", "runs prune", "log", "resume"):
        shown = gambit(*command.split(), "--help").stdout
        assert "[default: runs]" in " ".join(shown.split())


def test_old_runs_are_removed(desk: Path) -> None:
    """Only when told, and what has not ended only when that is told as well."""
    run_id = kept_run()
    cut_off_run(desk)
    os.utime(desk / "runs" / "run-cut.jsonl", (100.0, 100.0))
    assert gambit("runs", "prune", "--keep", "1h", "--yes").stderr.startswith(
        "Removed 0 runs"
    )
    would = gambit("runs", "prune", "--keep", "0s", "--dry-run")
    assert (would.stdout, would.stderr[:19]) == (f"{run_id}\n", "Would remove 1 run ")
    assert len(ids()) == 2
    done = gambit("runs", "--store", "runs", "prune", "--keep", "0s", "-y")
    assert (done.exit_code, done.stderr[:14]) == (0, "Removed 1 run ")
    assert ids() == ["run-cut"]
    more = gambit("runs", "prune", "--keep", "1h", "-y", "--interrupted")
    assert (more.exit_code, ids()) == (0, [])


HOUR = 3600.0
DAY = 24 * HOUR


def aged(desk: Path, **ages: float) -> None:
    """Make logs that were last written to so many seconds ago."""
    for name, seconds in ages.items():
        path = cut_off_run(desk, f"run-{name}")
        entries = read_lines(path.read_bytes()).entries
        lines = LineWriter("gone.1.a")
        path.write_bytes(lines.batch(entries, time.time() - seconds))


@pytest.mark.parametrize(
    ("age", "younger", "older"),
    [
        ("90s", 60, 120),
        ("2m", 100, 140),
        ("2h", 1.5 * HOUR, 2.5 * HOUR),
        ("2d", 1.5 * DAY, 2.5 * DAY),
        ("30d", 29 * DAY, 31 * DAY),
        ("2w", 13 * DAY, 15 * DAY),
    ],
)
def test_an_age_is_as_long_as_it_says(
    desk: Path, age: str, younger: float, older: float
) -> None:
    """What is younger is listed and kept; what is older is neither."""
    aged(desk, young=younger, old=older)
    assert ids("--since", age) == ["run-young"]
    done = gambit("runs", "prune", "--keep", age, "-y", "--interrupted")
    assert (done.exit_code, ids()) == (0, ["run-young"])


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1250, "1.25 KB"), (5e12, "5e+03 GB")],
)
def test_sizes_are_read_by_people(count: float, text: str) -> None:
    """Three digits and a unit."""
    assert size_text(count) == text


@pytest.mark.slow
def test_a_listing_is_light() -> None:
    """Neither trio nor what runs decks is loaded to look at files."""
    code = (
        "import sys; import gambit_actors.cli.runs, gambit_actors.cli.prune;"
        "print(*sys.modules)"
    )
    loaded = subprocess.check_output([sys.executable, "-c", code], encoding="utf-8")
    assert "gambit_actors.store.run_index" in loaded.split()
    assert not {"trio", "gambit_actors.actors"} & set(loaded.split())
