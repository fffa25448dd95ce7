"""``gambit resume`` goes on with runs, and asks about calls in doubt first."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gambit_actors.cli import doubting, resume
from gambit_actors.cli.open_calls import OpenCall, key_named, open_calls, short_name
from gambit_actors.cli.refusing import Refused
from gambit_actors.openresponses.items import FunctionCall
from gambit_actors.run.doubts import Happened
from gambit_actors.run.entries import (
    CallStarted,
    Entry,
    Failure,
    ItemAdded,
    RunEnded,
    TurnEnded,
)
from gambit_actors.store.log_lines import LineWriter, read_lines
from gambit_actors.store.run_index import list_runs
from tests.cli.stored import cut_off_run, gambit, kept_run, set_up

GAMBIT = Path(sys.executable).with_name("gambit")
SCRIPT = ("--script", "script.toml")
KEY = "run-cut:c=1"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a deck and a script; it is the current one."""
    monkeypatch.chdir(tmp_path)
    set_up(tmp_path)
    return tmp_path


def test_a_run_that_is_kept_says_its_id(desk: Path) -> None:
    """The summary ends with it, and the run is found by it."""
    run_id = kept_run()
    (run,) = list_runs(desk / "runs")
    assert (run.run_id, run.status, run.turns) == (run_id, "completed", 1)
    assert run.path == str(desk / "PROMPT.md")


def test_a_run_that_is_over_gives_its_answer_again(desk: Path) -> None:
    """For that there has to be no model."""
    run_id = kept_run()
    for name in (run_id, run_id[:9], "last"):
        result = gambit("resume", name)
        assert (result.exit_code, result.stdout) == (0, "Hello there.\n")


def test_a_conversation_that_waits_has_its_answer(desk: Path) -> None:
    """The process went away between two turns; no model is asked again."""
    path = desk / "runs" / f"{kept_run()}.jsonl"
    contents = read_lines(path.read_bytes())
    path.write_bytes(LineWriter("gone.1.a").batch(contents.entries[:-1], 100.0))
    assert list_runs(desk / "runs")[0].status == "waiting"
    result = gambit("resume", "last")
    assert (result.exit_code, result.stdout) == (0, "Hello there.\n"), result.stderr


@pytest.mark.parametrize("durability", ["item", "none"])
def test_a_run_is_kept_as_well_as_it_has_to_be(desk: Path, durability: str) -> None:
    """Whatever outlives the machine, the process it does."""
    run_id = kept_run("--durability", durability)
    command = ["resume", run_id, "-m", "And now?", *SCRIPT]
    assert gambit(*command, "--durability", durability).stdout == "Again.\n"


@pytest.mark.parametrize("store", ["script.toml", "script.toml/runs"])
@pytest.mark.parametrize("command", [("run", ".", "-m", "Hi."), ("resume", "last")])
@pytest.mark.usefixtures("desk")
def test_a_store_that_is_a_file_is_one_sentence(
    store: str, command: tuple[str, ...]
) -> None:
    """Nothing is run, and it is told what is in the way."""
    result = gambit(*command, *SCRIPT, "--store", store)
    assert (result.exit_code, result.stdout) == (2, "")
    words = "script.toml is a file, not a folder: name another"
    assert result.stderr == f"Error: --store {store}: {words}\n"


def test_a_run_that_was_cancelled_says_how_to_go_on(desk: Path) -> None:
    """Every time that it is asked for the answer that it has not."""
    log = cut_off_run(desk)
    failure = Failure(code="cancelled", message="the run was cancelled")
    ends: list[Entry] = [
        TurnEnded(status="cancelled", failure=failure),
        RunEnded(status="cancelled", code="cancelled", turns=1),
    ]
    entries = [*read_lines(log.read_bytes()).entries, *ends]
    log.write_bytes(LineWriter("gone.1.a").batch(entries, 100.0))
    result = gambit("resume", "last")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[0] == "Error: the run was cancelled"
    assert result.stderr.endswith(
        "  gambit resume run-cut --store runs --message TEXT\n"
    )


def test_a_part_of_a_run_is_not_gone_on_with_alone(desk: Path) -> None:
    """It is named with the run that it is a part of."""
    cut_off_run(desk, root="run-root")
    result = gambit("resume", "run-cut", *SCRIPT)
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: run run-cut is part of run run-root: resume that one\n"
    )


def test_a_run_that_is_over_can_be_told_something_else(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From any folder; the conversation has both turns then."""
    run_id = kept_run()
    (desk / "elsewhere").mkdir()
    monkeypatch.chdir(desk / "elsewhere")
    command = ["resume", "last", "--store", "../runs", "-m", "And now?"]
    result = gambit(*command, "--script", "../script.toml")
    assert (result.exit_code, result.stdout) == (0, "Again.\n")
    assert result.stderr.endswith(f" · {run_id}\n")
    assert list_runs(desk / "runs")[0].turns == 2


def test_without_a_model_nothing_is_gone_on_with(desk: Path) -> None:
    """The log stays as it is, so that it can be gone on with when there is one."""
    path = cut_off_run(desk)
    before = path.read_bytes()
    result = gambit("resume", "last", "--answer", f"{KEY}=retry")
    assert result.exit_code == 2
    assert "far/away cannot be asked: there is no provider 'far'" in result.stderr
    assert path.read_bytes() == before


def test_calls_in_doubt_are_told_with_what_to_type(desk: Path) -> None:
    """Exit 3, and nothing is done; what is shown can be typed in."""
    path = cut_off_run(desk)
    before = path.read_bytes()
    result = gambit("resume", "last", *SCRIPT)
    assert (result.exit_code, result.stdout) == (3, "")
    assert '\n  pay {"amount":39}\n    attempt 1, asked for by ' in result.stderr
    assert f"\n    {KEY}\n" in result.stderr
    typed = "gambit resume run-cut --store runs --answer=pay=ANSWER\n"
    assert typed in result.stderr
    assert path.read_bytes() == before
    command = typed.replace("ANSWER", "fail").split()[1:]
    assert gambit(*command, *SCRIPT).exit_code == 0


@pytest.mark.parametrize("name", [KEY, "c=1", "1", "cut:c=1", "pay"])
def test_a_call_may_be_named_in_short(desk: Path, name: str) -> None:
    """By the end of its key, or by its tool, as there is no other call of that."""
    cut_off_run(desk)
    result = gambit("resume", "run-cut", "--answer", f"{name}=fail", *SCRIPT)
    assert (result.exit_code, result.stdout) == (0, "Paid.\n"), result.stderr


def test_the_name_of_a_call_is_as_short_as_can_be() -> None:
    """A tool's name if it has one call; else enough of the key to tell it by."""
    keys = {f"run-a:call_b_1_{n}": "pay" for n in (1, 2)} | {"run-a:call_c": "write"}
    calls = [OpenCall(key=key, name=name) for key, name in keys.items()]
    names = [short_name(calls, key) for key in keys]
    assert names == ["b_1_1", "b_1_2", "write"]
    assert [key_named(calls, name) for name in names] == list(keys)
    assert key_named(calls, "none") == "none"
    with pytest.raises(
        Refused, match=r"pay=\.\.\. may be about several calls: b_1_1, b_"
    ):
        key_named(calls, "pay")
    with pytest.raises(Refused, match="several calls"):
        key_named(calls, "")


def test_a_call_of_a_deck_below_may_be_named_in_short(desk: Path) -> None:
    """Its log is found through the call that began it."""
    cut_off_run(desk, "run-below", root="run-cut")
    log = cut_off_run(desk)
    entries = read_lines(log.read_bytes()).entries[:-1]
    started = CallStarted(call_id="c=1", name="ask", kind="action", run_id="run-below")
    log.write_bytes(LineWriter("gone.1.a").batch([*entries, started], 100.0))
    calls = open_calls("runs", "run-cut")
    assert [call.key for call in calls] == ["run-cut:c=1", "run-below:c=1"]
    assert key_named(calls, "below:c=1") == "run-below:c=1"
    assert open_calls("runs", "run-none") == []


@pytest.mark.parametrize(
    ("answer", "given"),
    [
        ("retry", "nobody is there to carry out the external tool pay"),
        ("fail", "it is not known whether it happened"),
        ('{"paid": "a=b"}', '{"paid":"a=b"}'),
        ('"retry"', '"retry"'),
    ],
)
def test_an_answer_is_taken(desk: Path, answer: str, given: str) -> None:
    """The model is told what was said of the call, or the call is made again."""
    cut_off_run(desk)
    command = ["resume", "run-cut", "--answer", f"{KEY}={answer}", *SCRIPT, "-v"]
    result = gambit(*command)
    assert (result.exit_code, result.stdout) == (0, "Paid.\n"), result.stderr
    said = gambit("log", "run-cut", "--json").stdout.replace("\\", "")
    assert given in said


def test_a_terminal_is_asked(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no answer is asked for again."""
    cut_off_run(desk)
    monkeypatch.setattr(resume, "can_ask", lambda: True)
    result = gambit("resume", "run-cut", *SCRIPT, stdin="maybe\nfail\n")
    assert (result.exit_code, result.stdout) == (0, "Paid.\n")
    assert result.stderr.count("pay: retry, fail, or what it gave in JSON: ") == 2
    assert not doubting.can_ask()


def test_an_answer_is_kept_while_a_terminal_is_asked_for_others(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has said what became of one call is asked about the other alone."""
    path = cut_off_run(desk)
    contents = read_lines(path.read_bytes())
    more: list[Entry] = [
        ItemAdded(
            item=FunctionCall(call_id="c2", name="pay", arguments='{"amount":7}'),
            source="model",
        ),
        CallStarted(call_id="c2", name="pay", kind="tool"),
    ]
    path.write_bytes(LineWriter("gone.1.a").batch([*contents.entries, *more], 100.0))
    monkeypatch.setattr(resume, "can_ask", lambda: True)
    command = ["resume", "run-cut", "--answer", f'{KEY}="Paid before."', *SCRIPT]
    result = gambit(*command, stdin='"Paid now."\n')
    assert (result.exit_code, result.stdout) == (0, "Paid.\n"), result.stderr
    assert result.stderr.count("pay: retry, fail, or what it gave in JSON: ") == 1
    assert '{"amount":7}' in result.stderr
    assert '{"amount":39}' not in result.stderr
    said = gambit("log", "run-cut", "--json").stdout
    assert "Paid before." in said
    assert "Paid now." in said


def test_an_author_can_have_it_decided(desk: Path) -> None:
    """With another onDoubt nobody is asked."""
    set_up(desk, on_doubt="fail")
    cut_off_run(desk)
    assert gambit("resume", "run-cut", *SCRIPT).stdout == "Paid.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("run-none",), 2, "there is no log of run run-none in runs"),
        (("run-",), 2, "run- is the beginning of several runs: run-bad, run-cut"),
        (("run-cut", "--store", "none"), 2, "there is no folder none"),
        (("run-cut", "--answer", "pay"), 2, "--answer pay is not KEY=retry, KEY=fail"),
        (("run-cut", "--answer", "k=maybe"), 2, "--answer k=maybe is not KEY=retry"),
        (("run-cut", "--answer", "k=fail"), 2, "no call is in doubt by that name"),
        (
            ("run-cut", "-m", "Hi.", "--answer", f"{KEY}=fail"),
            2,
            "resume it without a message first",
        ),
        (("run-cut", "--deck", "none"), 2, "there is no deck at none"),
        (("run-bad",), 1, "run-bad.jsonl, at byte 0, is damaged"),
    ],
)
def test_what_cannot_be_gone_on_with_is_one_sentence(
    desk: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    """Exit 2 for what was asked wrongly, 1 for what is broken."""
    cut_off_run(desk)
    cut_off_run(desk, "run-other")
    (desk / "runs" / "run-bad.jsonl").write_bytes(b"hello\n")
    result = gambit("resume", *arguments, *SCRIPT)
    assert result.exit_code == code
    assert words in result.stderr.splitlines()[0]
    assert "Traceback" not in result.output


def test_a_key_may_have_an_equals_sign_in_it() -> None:
    """So may what a call gave; the first reading that makes sense counts."""
    found = doubting.answers_from(["a=b=retry", 'c={"x": "=fail"}', "d=1"])
    assert found == {
        "a=b": "retry",
        "c": Happened(value={"x": "=fail"}),
        "d": Happened(value=1),
    }


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent the POSIX way")
def test_a_run_that_was_stopped_says_how_to_go_on(desk: Path) -> None:
    """Its log has an end, and what is shown can be typed in."""
    (desk / "slow.toml").write_text('[[replies]]\ntext = "one two"\nfault = "hang"\n')
    command = [str(GAMBIT), "run", ".", "-m", "Hi.", "--script", "slow.toml"]
    with subprocess.Popen(
        [*command, "--store", "runs"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(3) == b"one"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    (run,) = list_runs(desk / "runs")
    assert run.status == "cancelled"
    typed = f"gambit resume {run.run_id} --store runs --message TEXT"
    assert typed in errors.decode()
    assert gambit(*typed.split()[1:], *SCRIPT).stdout == "Again.\n"


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent the POSIX way")
def test_a_run_that_was_killed_is_gone_on_with(desk: Path) -> None:
    """It is listed as interrupted, and comes to its answer in another process."""
    (desk / "slow.toml").write_text('[[replies]]\ntext = "one two"\nfault = "hang"\n')
    command = [str(GAMBIT), "run", ".", "-m", "Hi.", "--script", "slow.toml"]
    with subprocess.Popen(
        [*command, "--store", "runs"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(3) == b"one"
        (run,) = list_runs(desk / "runs")
        assert run.status == "running"
        busy = gambit("resume", "last", *SCRIPT)
        assert (busy.exit_code, "is in use by process" in busy.stderr) == (1, True)
        process.kill()
    (run,) = list_runs(desk / "runs")
    assert run.status == "interrupted"
    assert gambit("resume", "last", *SCRIPT).stdout == "Hello there.\n"


def test_what_is_told_of_doubts_cannot_drive_a_terminal(desk: Path) -> None:
    """Arguments are a model's words: controls are replaced, and what is long is cut."""
    cut_off_run(desk, arguments="\x1b[2J" + "x" * 999)
    result = gambit("resume", "last", *SCRIPT)
    assert result.exit_code == 3
    assert "pay \N{REPLACEMENT CHARACTER}[2J" in result.stderr
    assert f"{'x' * 100}...\n" in result.stderr
