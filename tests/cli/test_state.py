"""``gambit run --state`` goes on with a conversation in a file, and saves it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gambit_actors.store.run_index import list_runs
from gambit_actors.store.state_files import load_state
from tests.cli.stored import gambit, set_up

GAMBIT = Path(sys.executable).with_name("gambit")
RUN = ("run", ".", "--script", "script.toml", "--state", "state.json")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a deck and a script; it is the current one."""
    monkeypatch.chdir(tmp_path)
    set_up(tmp_path)
    return tmp_path


def said(folder: Path) -> list[str]:
    """Who spoke, in the file."""
    state = load_state(folder / "state.json")
    assert state is not None
    assert state.messages is not None
    return [str(message["role"]) for message in state.messages]


@pytest.mark.spec("OR-10")
@pytest.mark.parametrize("store", [(), ("--store", "runs")])
def test_a_conversation_goes_on_from_its_file(
    desk: Path, store: tuple[str, ...]
) -> None:
    """Each call is one turn more, and the run keeps its id."""
    first = gambit(*RUN, "-m", "Hi.", *store)
    assert (first.exit_code, first.stdout) == (0, "Hello there.\n"), first.stderr
    begun = load_state("state.json")
    second = gambit(*RUN, "-m", "And now?", *store)
    assert (second.exit_code, second.stdout) == (0, "Again.\n"), second.stderr
    assert said(desk) == ["system", "user", "assistant", "user", "assistant"]
    now = load_state("state.json")
    assert begun is not None
    assert now is not None
    assert now.run_id == begun.run_id
    if store:
        (run,) = list_runs(desk / "runs")
        assert (run.run_id, run.turns) == (begun.run_id, 2)


def test_a_chat_from_elsewhere_is_gone_on_with(desk: Path) -> None:
    """What else it says is kept; the prompt of the deck is not added."""
    (desk / "state.json").write_text(
        json.dumps(
            {
                "runId": "any id: at all",
                "messages": [{"role": "user", "content": "Hello?"}],
                "notes": {"text": "a note"},
            }
        )
    )
    result = gambit(*RUN, "-m", "And now?")
    assert (result.exit_code, result.stdout) == (0, "Again.\n"), result.stderr
    assert said(desk) == ["user", "user", "assistant"]
    state = load_state("state.json")
    assert state is not None
    assert state.run_id == "any id: at all"
    assert state.notes is not None


def modes(file: Path) -> set[str]:
    """The modes that models were asked in, as a trace has them."""
    events = [json.loads(line) for line in file.read_text().splitlines()]
    return {event["mode"] for event in events if event["type"] == "model.call"}


CHAT = {
    "runId": "run-chat",
    "messages": [
        {"role": "user", "content": "Hello?", "name": "ada"},
        {"role": "assistant", "content": "Yes?"},
    ],
    "notes": {"text": "a note"},
}


@pytest.mark.spec("OR-10", "OR-12")
@pytest.mark.parametrize("store", [(), ("--store", "runs")])
@pytest.mark.parametrize("form", [{}, {"format": "chat"}])
def test_a_chat_is_gone_on_with_in_chat_mode(
    desk: Path, store: tuple[str, ...], form: dict[str, str]
) -> None:
    """And stays one, turn after turn, word by word, without any flag."""
    before = CHAT | form
    (desk / "state.json").write_text(json.dumps(before))
    (desk / "script.toml").write_text('[[replies]]\ntext = "Again."\ntimes = 0\n')
    turn = [
        {"role": "user", "content": "And now?"},
        {"role": "assistant", "content": "Again."},
    ]
    for turns in (1, 2):
        result = gambit(*RUN, "-m", "And now?", "--trace", "t.jsonl", *store)
        assert (result.exit_code, result.stdout) == (0, "Again.\n"), result.stderr
        now = json.loads((desk / "state.json").read_text())
        assert now["messages"] == [*CHAT["messages"], *turn * turns]
        added = ("messages", "messageRefs", "meta")
        assert {k: v for k, v in now.items() if k not in added} == {
            k: v for k, v in before.items() if k not in added
        }
    assert modes(desk / "t.jsonl") == {"chat"}


@pytest.mark.spec("OR-12")
def test_a_chat_becomes_items_only_where_it_is_asked_for(desk: Path) -> None:
    """By --responses; what was said stays."""
    (desk / "state.json").write_text(json.dumps(CHAT))
    result = gambit(*RUN, "-m", "And now?", "--responses", "--trace", "t.jsonl")
    assert result.exit_code == 0, result.stderr
    now = json.loads((desk / "state.json").read_text())
    assert (now["format"], len(now["items"])) == ("responses", 4)
    assert now["messages"][:2] == CHAT["messages"]
    assert modes(desk / "t.jsonl") == {"responses"}


@pytest.mark.spec("OR-12")
def test_items_stay_items_in_chat_mode(desk: Path) -> None:
    """Nothing of them is lost, whatever the mode of a run."""
    assert gambit(*RUN, "-m", "Hi.", "--trace", "1.jsonl").exit_code == 0
    before = json.loads((desk / "state.json").read_text())
    assert before["format"] == "responses"
    result = gambit(*RUN, "-m", "And?", "--no-responses", "--trace", "2.jsonl")
    assert result.exit_code == 0, result.stderr
    now = json.loads((desk / "state.json").read_text())
    assert now["format"] == "responses"
    assert now["items"][:-2] == before["items"]
    assert (modes(desk / "1.jsonl"), modes(desk / "2.jsonl")) == (
        {"responses"},
        {"chat"},
    )


def test_a_file_in_which_nothing_was_said_begins_a_conversation(desk: Path) -> None:
    """Prompt and all; also in a store."""
    (desk / "state.json").write_text('{"runId": "run-e", "messages": []}')
    result = gambit(*RUN, "-m", "Hi.", "--store", "runs")
    assert (result.exit_code, result.stdout) == (0, "Hello there.\n"), result.stderr
    assert said(desk) == ["system", "user", "assistant"]


def test_a_failed_turn_is_saved_as_well(desk: Path) -> None:
    """What was said is not lost with the answer."""
    (desk / "script.toml").write_text("")
    assert gambit(*RUN, "-m", "Hi.").exit_code == 1
    assert said(desk) == ["system", "user"]


def test_a_file_and_a_store_that_disagree_are_refused(desk: Path) -> None:
    """Nobody can say which of them counts; neither is changed."""
    assert gambit(*RUN, "-m", "Hi.", "--store", "runs").exit_code == 0
    assert gambit(*RUN, "-m", "And now?").exit_code == 0
    before = (desk / "state.json").read_bytes()
    result = gambit(*RUN, "-m", "What?", "--store", "runs")
    assert result.exit_code == 2
    assert "says something else than --state state.json" in result.stderr
    assert (desk / "state.json").read_bytes() == before


@pytest.mark.parametrize("text", ["{", '{"messages": []}', '{"runId": "r"}'])
def test_what_is_no_state_is_one_sentence(desk: Path, text: str) -> None:
    """It is not replaced, and nothing is run."""
    (desk / "state.json").write_text(text)
    result = gambit(*RUN, "-m", "Hi.")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: state.json cannot be used as a saved state")
    assert (desk / "state.json").read_text() == text


@pytest.mark.skipif(os.name == "nt", reason="signals are sent the POSIX way")
@pytest.mark.slow
def test_a_turn_that_was_stopped_is_saved(desk: Path) -> None:
    """What was half said is in the file."""
    (desk / "script.toml").write_text('[[replies]]\ntext = "one two"\nfault = "hang"\n')
    with subprocess.Popen(
        [GAMBIT, *RUN, "-m", "Hi."], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(3) == b"one"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert process.returncode == 143
    assert said(desk) == ["system", "user", "assistant"]
