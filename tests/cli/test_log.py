"""``gambit log`` shows what was kept of a run, also while there is more to come."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from gambit_actors.run.context_bundles import decode_bundle
from gambit_actors.store.state_files import load_state
from tests.cli.stored import cut_off_run, gambit, kept_run, set_up

GAMBIT = Path(sys.executable).with_name("gambit")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a deck and a script; it is the current one."""
    monkeypatch.chdir(tmp_path)
    set_up(tmp_path)
    return tmp_path


def test_a_log_is_shown_for_people(desk: Path) -> None:
    """A line for each entry: when, what kind, what it says."""
    run_id = kept_run()
    result = gambit("log", "last")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [line.split(maxsplit=2)[1:] for line in result.stdout.splitlines()]
    kinds = [line[0] for line in lines]
    assert kinds == ["run", "turn", "deck", "user", "asked", "model", "turn", "ended"]
    assert lines[0][1].startswith(f"{run_id}, ")
    assert lines[3][1] == "Hi."
    assert lines[4][1].startswith("far/away: completed, ")
    assert lines[6][1] == "1 completed"


def test_calls_are_shown_by_their_names(desk: Path) -> None:
    """What begins, what is gone on with and what failed is told."""
    cut_off_run(desk)
    command = ["resume", "last", "--script", "script.toml"]
    assert gambit(*command, "--answer", "run-cut:c=1=retry").exit_code == 0
    shown = gambit("log", "last").stdout
    for words in (
        'calls   pay {"amount":39}\n',
        "begins  pay\n",
        "resumed\n",
        "begins  pay, attempt 2\n",
        "gives   pay 500 missing_on_tool: nobody is there to carry out the ext",
        "turn    1 completed\n",
    ):
        assert f"  {words}" in shown


ACT = """+++
[modelParams]
model = "far/away"

[[actions]]
name = "look"
description = "Look."
execute = "look.py"
+++

Be kind.
"""
LOOK = """from gambit_actors import define_deck
deck = define_deck(
    run=lambda ctx: {"found": "x" * 300},
    context_schema={"type": "object"},
    response_schema={"type": "object"},
)
"""


def test_an_action_is_told_once_and_without_ids(desk: Path) -> None:
    """What it gave comes first; with --verbose there is all that the log has."""
    (desk / "PROMPT.md").write_text(ACT)
    (desk / "look.py").write_text(LOOK)
    (desk / "script.toml").write_text(
        '[[replies]]\ncalls = [{ name = "look" }]\n[[replies]]\ntext = "Seen."\n'
    )
    kept_run()
    shown = gambit("log", "last").stdout
    assert '  gives   look {"found":"xxx' in shown
    assert "actionCallId" not in shown
    assert "gambit_complete" not in shown
    whole = gambit("log", "last", "--verbose").stdout
    assert whole.count("actionCallId") == 3
    assert whole.count("gambit_complete") == 2
    assert whole.count("x" * 300) == 3


@pytest.mark.parametrize("columns", ["60", "100"])
def test_a_line_is_as_wide_as_the_terminal_at_most(desk: Path, columns: str) -> None:
    """Counted in cells: some characters take two."""
    cut_off_run(desk, arguments=json.dumps({"note": "\u6f22" * 99}, ensure_ascii=False))
    lines = gambit("log", "run-cut", COLUMNS=columns).stdout.splitlines()
    widths = [cell_len(line) for line in lines]
    assert int(columns) - 1 <= max(widths) <= int(columns)


def test_json_is_the_lines_as_they_are(desk: Path) -> None:
    """Byte for byte, but for what a crash left unfinished."""
    run_id = kept_run()
    path = desk / "runs" / f"{run_id}.jsonl"
    data = path.read_bytes()
    assert gambit("log", run_id, "--json").stdout_bytes == data
    path.write_bytes(data + b'{"seq":')
    result = gambit("log", run_id, "--json")
    assert result.stdout_bytes == data
    assert result.exit_code == 0
    assert result.stderr == (
        f"what follows is torn: part of a line, from byte {len(data)}\n"
    )


@pytest.mark.parametrize("form", ["--json", "--follow", None])
def test_damage_is_shown_with_its_place(desk: Path, form: str | None) -> None:
    """Exit 1; what comes before it is shown."""
    run_id = kept_run()
    path = desk / "runs" / f"{run_id}.jsonl"
    data = path.read_bytes()
    path.write_bytes(data.replace(b"Hello", b"Jello", 1))
    result = gambit("log", run_id, *([form] if form else []))
    assert result.exit_code == 1
    assert result.stdout.count("\n") == 4
    (error,) = result.stderr.splitlines()
    where = data.index(b"\n", data.index(b"Hi.")) + 1
    assert f"at byte {where}, is damaged" in error or "line 6" in error


def test_a_conversation_is_saved_as_a_state(desk: Path) -> None:
    """A file that is there has to be of the same run, and keeps what else it says."""
    run_id = kept_run()
    result = gambit("log", "last", "--state", "state.json")
    assert (result.exit_code, result.stdout) == (0, "")
    state = load_state("state.json")
    assert state is not None
    assert (state.run_id, state.mode) == (run_id, "responses")
    assert state.messages is not None
    assert [m["role"] for m in state.messages] == ["system", "user", "assistant"]
    assert gambit("log", "last", "--state", "state.json").exit_code == 0
    cut_off_run(desk)
    other = gambit("log", "run-cut", "--state", "state.json")
    assert (other.exit_code, f"is of run {run_id}" in other.stderr) == (2, True)


def test_a_chat_that_is_saved_again_stays_one(desk: Path) -> None:
    """With what the run has said since."""
    run_id = kept_run()
    chat = {"runId": run_id, "messages": [{"role": "user", "content": "Hi."}]}
    (desk / "state.json").write_text(json.dumps(chat))
    assert gambit("log", "last", "--state", "state.json").exit_code == 0
    state = json.loads((desk / "state.json").read_text())
    assert [m["role"] for m in state["messages"]] == ["system", "user", "assistant"]
    assert state.keys() == {"runId", "messages", "messageRefs"}


def test_a_conversation_is_written_as_a_bundle(desk: Path) -> None:
    """It is one document, and names the run."""
    run_id = kept_run()
    bundle = decode_bundle(gambit("log", "last", "--bundle").stdout_bytes)
    assert bundle.source.thread_id == run_id
    assert len(bundle.items) == 3


def test_a_bundle_is_cut_to_a_budget(desk: Path) -> None:
    """To the last exchanges, after what the conversation opens with."""
    (desk / "script.toml").write_text('[[replies]]\ntext = "Aye."\ntimes = 0\n')
    run = ("run", ".", "--script", "script.toml", "--store", "runs", "--state", "s")
    for message in ("One.", "Two.", "Three."):
        assert gambit(*run, "-m", message).exit_code == 0

    def texts(*budget: str) -> list[str]:
        result = gambit("log", "last", "--bundle", *budget)
        items = decode_bundle(result.stdout_bytes).items
        return [str(getattr(item, "content", ""))[:6].strip() for item in items]

    whole = texts()
    assert len(whole) == 7
    assert texts("--user-messages", "2") == [whole[0], *whole[3:]]
    assert texts("--tokens", "100000") == whole
    assert texts("--user-messages", "1", "--tokens", "500") == [whole[0], *whole[5:]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("last", "--tokens", "9"), "--tokens cut a bundle: add --bundle"),
        (("last", "--json", "--user-messages", "1"), "add --bundle"),
        (("last", "--bundle", "--tokens", "1"), "is more than 1 tokens: allow more"),
        (("run-none",), "there is no log of run run-none in runs"),
        (("last", "--json", "--bundle"), "exclude each other"),
        (("last", "--follow", "--bundle"), "exclude each other"),
        (("last", "--store", "none"), "there is no folder none"),
    ],
)
def test_what_is_asked_wrongly_is_one_sentence(
    desk: Path, arguments: tuple[str, ...], words: str
) -> None:
    """Exit 2, and nothing else."""
    kept_run()
    result = gambit("log", *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_log_cannot_drive_a_terminal(desk: Path) -> None:
    """Controls in what a model said are replaced."""
    cut_off_run(desk, arguments="\x1b[2J\x9b31m")
    shown = gambit("log", "run-cut").stdout
    assert "\x1b" not in shown
    assert "\x9b" not in shown


@pytest.mark.slow
def test_a_run_is_followed_to_its_end(desk: Path) -> None:
    """Lines are shown as they are written, and with the end of the run it is over."""
    path = cut_off_run(desk)
    with subprocess.Popen(
        [GAMBIT, "log", "last", "-f", "--json"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        first = [json.loads(process.stdout.readline()) for _ in range(6)]
        assert first[-1]["entry"]["type"] == "call.started"
        command = ["resume", "last", "--script", "script.toml"]
        assert gambit(*command, "--answer", "run-cut:c=1=fail").exit_code == 0
        rest = process.stdout.read()
    assert process.returncode == 0
    assert path.read_bytes().endswith(rest)
    assert b'"run.ended"' in rest


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent the POSIX way")
def test_following_ends_quietly_with_a_signal(desk: Path) -> None:
    """Ctrl-C is the usual way out."""
    cut_off_run(desk)
    with subprocess.Popen(
        [GAMBIT, "log", "last", "-f"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        for _ in range(6):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (130, b"")
