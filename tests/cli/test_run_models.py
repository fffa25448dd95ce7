"""``gambit run`` asks the models that it is told to, or says what is missing."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gambit_actors.cli import recording_files
from gambit_actors.cli.main import main
from gambit_actors.cli.recording_files import RecordingFile
from gambit_actors.cli.refusing import Refused
from gambit_actors.settings.finding import find_settings
from gambit_actors.settings.readiness import lack_of
from gambit_actors.store.state_files import load_state
from gambit_actors.store.writers import try_lock
from tests.cli.providing import install_plugin, variables

DECK = '+++\n[modelParams]\nmodel = "openai/gpt-5"\n+++\n\nBe kind.\n'

_WITH_A_SMALL_DISK = """
import resource, sys
size = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
from gambit_actors.cli.main import main
main()
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a deck and a script; it is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "PROMPT.md").write_text(DECK)
    (tmp_path / "s.toml").write_text('[[replies]]\ntext = "Hello."\ntimes = 0\n')
    return tmp_path


def run(*arguments: str, **given: str) -> Result:
    """Run the deck with these variables."""
    command = ["run", ".", "-m", "Hi.", *arguments]
    return CliRunner(env=variables(given)).invoke(main, command)


def test_a_missing_key_is_told_before_anything_is_run(desk: Path) -> None:
    """By the name of the variable."""
    result = run("--trace", "t.jsonl")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "Error: openai/gpt-5 cannot be asked: set OPENAI_API_KEY to your key\n"
    )
    assert not (desk / "t.jsonl").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [("HTTPS_PROXY", "socks5://127.0.0.1:1080"), ("OPENAI_BASE_URL", "http://[::1/v1")],
)
def test_an_address_that_is_none_is_told_before_anything_is_run(
    desk: Path, name: str, value: str
) -> None:
    """By the name of the variable, whether a deck is run or a model is tried."""
    given = {"OPENAI_API_KEY": "k", name: value}
    for command in (["run", ".", "-m", "Hi."], ["models", "--ping", "openai/gpt-5"]):
        result = CliRunner(env=variables(given)).invoke(main, command)
        assert result.exit_code == 2
        assert result.stderr.startswith(f"Error: {name} is no ")


def test_one_of_several_models_is_enough(desk: Path) -> None:
    """The others are passed over when they are asked."""
    (desk / "PROMPT.md").write_text(DECK.replace('"openai/gpt-5"', '["a", "b"]'))
    lines = run().stderr.splitlines()
    why = "is no alias, so it is taken for a model of openrouter, and"
    assert lines[:2] == [
        f"Error: openrouter/a cannot be asked: 'a' {why} OPENROUTER_API_KEY is not set",
        f"openrouter/b cannot be asked: 'b' {why} OPENROUTER_API_KEY is not set",
    ]


def test_a_provider_that_is_not_there_is_told_where_it_would_be(desk: Path) -> None:
    """What is shown can be put into gambit.toml; nobody is sent to write a script."""
    result = run("--model-force", "acme/large")
    assert result.exit_code == 2
    first, hint, *table, last = result.stderr.splitlines()
    assert first.startswith("Error: acme/large cannot be asked: there is no provider '")
    assert hint == "If it is a server of yours, say in gambit.toml where it is:"
    assert "settings.md" in last
    (desk / "gambit.toml").write_text("\n".join(table))
    settings = find_settings({})
    assert settings.servers["acme"].base_url == "http://localhost:8000/v1"
    assert lack_of(settings, "acme/large") is None


def test_a_slip_in_the_name_of_a_provider_is_one_sentence(desk: Path) -> None:
    """Whoever is told what was meant needs no other advice."""
    result = run("--model-force", "opneai/gpt-5")
    assert result.stderr == (
        "Error: opneai/gpt-5 cannot be asked: there is no provider 'opneai'. Did you"
        " mean openai?\n"
    )


def test_another_model_may_be_insisted_on(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the deck names."""
    install_plugin(desk, monkeypatch)
    result = run("--model-force", "pong/loud")
    assert (result.exit_code, result.stdout) == (0, "yes\n"), result.stderr
    assert run("--model", "pong/loud").exit_code == 2
    (desk / "PROMPT.md").write_text("+++\n[modelParams]\ntemperature = 1\n+++\n\nHi.\n")
    assert run("--model", "pong/loud").stdout == "yes\n"


def test_a_model_may_be_named_after_its_script(desk: Path) -> None:
    """On the command line, in a deck and in an alias; no key is needed."""
    result = run("--model-force", "scripted/s.toml")
    assert (result.exit_code, result.stdout) == (0, "Hello.\n"), result.stderr
    (desk / "PROMPT.md").write_text("Be kind.\n")
    assert run("--model", "scripted/s.toml").stdout == "Hello.\n"
    (desk / "PROMPT.md").write_text(DECK.replace("openai/gpt-5", "scripted/s.toml"))
    assert run().stdout == "Hello.\n"
    (desk / "PROMPT.md").write_text(DECK.replace("openai/gpt-5", "small"))
    (desk / "gambit.toml").write_text(
        '[models.aliases.small]\nmodel = "scripted/s.toml"\n'
    )
    assert run().stdout == "Hello.\n"


def test_other_scripted_names_are_answered_from_the_script(desk: Path) -> None:
    """The one that is given, which answers for files, too."""
    for model in ("scripted/one", "scripted/no.toml"):
        (desk / "PROMPT.md").write_text(DECK.replace("openai/gpt-5", model))
        assert run("--script", "s.toml").stdout == "Hello.\n"
    assert "give its replies with --script" in run("--model-force", "scripted/x").stderr


def test_a_script_that_is_not_there_is_one_sentence(desk: Path) -> None:
    """Before anything is run."""
    result = run("--model-force", "scripted/no.toml", "--trace", "t.jsonl")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: scripted/no.toml cannot be asked: there is no script no.toml, from the"
        " current folder\n"
    )
    assert not (desk / "t.jsonl").exists()


def test_an_alias_is_followed(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the first model that answers."""
    install_plugin(desk, monkeypatch)
    (desk / "gambit.toml").write_text(
        '[models.aliases.best]\nmodel = ["pong/quiet", "pong/loud"]\n'
    )
    result = run("--model-force", "best")
    assert (result.exit_code, result.stdout) == (0, "yes\n")
    assert "pong/quiet: overloaded; asking pong/loud" in result.stderr


def test_a_plugin_that_breaks_off_is_one_sentence(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With exit code 1, and another model is asked if there is one."""
    install_plugin(desk, monkeypatch)
    result = run("--model-force", "pong/broken")
    assert result.exit_code == 1
    assert (
        "Error: the plugin pong gave no answer: it raised RuntimeError"
        in (result.stderr.splitlines()[-2])
    )
    (desk / "gambit.toml").write_text(
        '[models.aliases.best]\nmodel = ["pong/broken", "pong/loud"]\n'
    )
    assert run("--model-force", "best").stdout == "yes\n"


def test_what_was_recorded_is_replayed(desk: Path) -> None:
    """Without a script, a key or a model."""
    recorded = run("--script", "s.toml", "--record", "r.jsonl")
    assert (recorded.exit_code, recorded.stdout) == (0, "Hello.\n"), recorded.stderr
    assert stat.S_IMODE((desk / "r.jsonl").stat().st_mode) == 0o600
    for how in (
        ("--replay", "r.jsonl"),
        ("--replay", "r.jsonl", "--replay-timed"),
        ("--model-force", "replay:r.jsonl"),
    ):
        replayed = run(*how)
        assert (replayed.exit_code, replayed.stdout) == (0, "Hello.\n")


def test_a_recording_is_not_lost_to_a_failure(desk: Path) -> None:
    """One in which no model answered takes the place of none."""
    (desk / "bad.toml").write_text('[[replies]]\nfault = "error"\n')
    assert run("--script", "bad.toml", "--record", "r.jsonl").exit_code == 1
    assert b"scripted" in (desk / "r.jsonl").read_bytes()
    run("--script", "s.toml", "--record", "r.jsonl")
    good = (desk / "r.jsonl").read_bytes()

    failed = run("--script", "bad.toml", "--record", "r.jsonl")

    assert "no model answered, so r.jsonl is as it was" in failed.stderr
    assert (desk / "r.jsonl").read_bytes() == good
    assert not (desk / "r.jsonl.part").exists()


def test_several_runs_add_to_one_recording(desk: Path) -> None:
    """Behind what is whole of it; each is replayed from it."""
    for words in ("One.", "Two."):
        command = ["run", ".", "-m", words, "--script", "s.toml"]
        command += ["--record", "r.jsonl", "--record-append"]
        assert CliRunner(env=variables({})).invoke(main, command).exit_code == 0
        with (desk / "r.jsonl").open("ab") as file:
            file.write(b'{"half a li')  # As a process that was killed leaves it.
    for words in ("One.", "Two."):
        command = ["run", ".", "-m", words, "--replay", "r.jsonl"]
        result = CliRunner(env=variables({})).invoke(main, command)
        assert (result.exit_code, result.stdout) == (0, "Hello.\n"), result.stderr


def test_one_run_at_a_time_records_into_a_file(desk: Path) -> None:
    """Another is refused before it runs, and leaves the first alone."""
    first = RecordingFile("r.jsonl")
    first.write(b"mine")
    result = run("--script", "s.toml", "--record", "r.jsonl")
    assert result.exit_code == 2
    assert "--record r.jsonl: another run is recording into it" in result.stderr
    first.close(has_answers=True)
    assert (desk / "r.jsonl").read_bytes() == b"mine"


@pytest.mark.parametrize("is_added", [True, False])
def test_a_recording_is_not_replaced_while_it_is_added_to(
    desk: Path, *, is_added: bool
) -> None:
    """Nor added to while it is replaced; whoever comes second is refused."""
    first = RecordingFile("r.jsonl", is_added=is_added)
    with pytest.raises(Refused, match="another run is recording into it"):
        RecordingFile("r.jsonl", is_added=not is_added)
    first.write(b"mine")
    assert first.close(has_answers=True)
    assert [file.name for file in desk.glob("r.jsonl*")] == ["r.jsonl"]
    assert (desk / "r.jsonl").read_bytes() == b"mine"


def test_what_a_killed_run_left_beside_a_recording_is_kept_while_it_is_added_to(
    desk: Path,
) -> None:
    """Somebody may want to look at it."""
    (desk / "r.jsonl.part").write_bytes(b"lines of a killed run")
    RecordingFile("r.jsonl", is_added=True).close(has_answers=True)
    assert (desk / "r.jsonl.part").read_bytes() == b"lines of a killed run"


def test_a_recording_that_moves_while_it_is_opened_is_left_alone(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who opened the part that another run then put in its place is refused."""
    first = RecordingFile("r.jsonl")
    first.write(b"mine")

    def lock_when_the_first_is_over(descriptor: int) -> bool:
        first.close(has_answers=True)
        return try_lock(descriptor)

    monkeypatch.setattr(recording_files, "try_lock", lock_when_the_first_is_over)
    with pytest.raises(Refused, match="another run is recording into it"):
        RecordingFile("r.jsonl")
    assert (desk / "r.jsonl").read_bytes() == b"mine"


def test_a_name_that_no_server_can_be_told_ends_in_one_sentence(desk: Path) -> None:
    """Also where it would be recorded."""
    result = run("--model-force", "openai/\udcff", "--record", "r", OPENAI_API_KEY="k")
    assert result.exit_code == 1
    assert result.stderr.count("\n") <= 3
    assert "was not sent" in result.stderr


def test_a_disk_that_takes_no_recording_ends_no_run(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is given, and it is said that the recording is not whole."""
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no disk here that is always full")
    (desk / "r.jsonl.part").symlink_to(full)
    result = run("--script", "s.toml", "--record", "r.jsonl")
    assert (result.exit_code, result.stdout) == (1, "Hello.\n")
    assert "--record r.jsonl.part is not whole: No space left" in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="file sizes are limited the POSIX way")
@pytest.mark.parametrize("how", [(), ("--record-append",)])
def test_a_disk_that_fills_up_leaves_the_recording_that_is_there(
    desk: Path, how: tuple[str, ...]
) -> None:
    """Also where it takes a part of a line first; the exit code tells."""
    record = ("--script", "s.toml", "--record", "r.jsonl")
    assert run(*record).exit_code == 0
    good = (desk / "r.jsonl").read_bytes()
    (desk / "s.toml").write_text(f'[[replies]]\ntext = "{"word " * 2000}"\n')

    command = [sys.executable, "-c", _WITH_A_SMALL_DISK, str(len(good) + 700)]
    command += ["run", ".", "-m", "Hi.", *record, *how]
    ended = subprocess.run(command, capture_output=True, timeout=60, check=False)

    assert ended.returncode == 1
    assert b"is not whole: File too large" in ended.stderr
    assert ended.stdout.startswith(b"word word")
    left = (desk / "r.jsonl").read_bytes()
    assert left == good if not how else left.startswith(good)
    assert left.endswith(b"}\n")


def test_a_name_that_stood_for_another_model_is_replayed(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody knows what it stands for."""
    install_plugin(desk, monkeypatch)
    settings = desk / "gambit.toml"
    settings.write_text('[models.aliases.best]\nmodel = "pong/loud"\n')
    (desk / "PROMPT.md").write_text(DECK.replace("openai/gpt-5", "best"))
    assert run("--record", "r.jsonl").stdout == "yes\n"
    settings.unlink()
    assert run("--replay", "r.jsonl").stdout == "yes\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--replay", "s.toml"), "the recording s.toml: line 1 of the recording"),
        (("--script", "s.toml", "--replay-timed"), "--replay: give that, too"),
        (("--script", "s.toml", "--record-append"), "--record: give that, too"),
        (("--replay", "s.toml", "--record", "./s.toml"), "the same file"),
        (
            ("--script", "s.toml", "--record", "s.toml", "--record-append"),
            "s.toml cannot be added to: line 1 of the recording",
        ),
        (("--replay", "s.toml", "--model", "replay:s.toml"), "both name a recording"),
        (("--model", "replay:none.jsonl"), "the recording none.jsonl: No such file"),
        (("--replay", "s.toml", "--script", "s.toml"), "give one"),
        (("--model", "a/b", "--model-force", "c/d"), "give one"),
        (("--script", "s.toml", "--record", "no/r"), "--record no/r: No such file"),
        (("--script", "s.toml", "--prices", "p.toml"), "p.toml:1:1: The price of a/b"),
        (("--script", "s.toml", "--context", "1", "--init", "1"), "give one of them"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    desk: Path, arguments: tuple[str, ...], words: str
) -> None:
    """With exit code 2, and nothing is run."""
    (desk / "p.toml").write_text('["a/b"]\noutput = 1\n')
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_prices_may_be_in_a_file(desk: Path) -> None:
    """So that a budget in money can be kept."""
    (desk / "p.toml").write_text('["openai/gpt-5"]\ninput = 1\noutput = 1\n')
    tight = ("--script", "s.toml", "--max-cost", "1")
    assert "price" in run(*tight).stderr
    assert run(*tight, "--prices", "p.toml").stdout == "Hello.\n"


@pytest.mark.spec("OR-13")
def test_init_is_the_old_name_of_context(desk: Path) -> None:
    """It does the same, and says what it is called now."""
    (desk / "any.json").write_text('{"type": "object"}')
    (desk / "PROMPT.md").write_text(
        DECK.replace("+++\n", '+++\ncontextSchema = "any.json"\n', 1)
    )
    states = []
    for option in ("--context", "--init"):
        result = run("--script", "s.toml", option, '{"n": 7}', "--state", option[2:])
        assert result.exit_code == 0, result.stderr
        assert ("--init is deprecated" in result.stderr) == (option == "--init")
        state = load_state(desk / option[2:])
        assert state is not None
        assert state.messages is not None
        states.append([message["role"] for message in state.messages])
    assert states[0] == states[1]


@pytest.mark.spec("OR-12")
@pytest.mark.parametrize(
    ("arguments", "given", "mode"),
    [
        ((), {}, "responses"),
        (("--responses",), {"GAMBIT_CHAT_FALLBACK": "1"}, "responses"),
        (("--no-responses",), {}, "chat"),
        ((), {"GAMBIT_CHAT_FALLBACK": "1"}, "chat"),
        ((), {"GAMBIT_RESPONSES_MODE": "1"}, "responses"),
    ],
)
def test_the_mode_is_in_traces_and_in_new_state_files(
    desk: Path, arguments: tuple[str, ...], given: dict[str, str], mode: str
) -> None:
    """Open Responses unless somebody wants a chat."""
    files = ("--state", "state.json", "--trace", "t.jsonl")
    for _ in range(2):  # What was written can be gone on with.
        result = run("--script", "s.toml", *files, *arguments, **given)
        assert (result.exit_code, result.stdout) == (0, "Hello.\n"), result.stderr
    document = json.loads((desk / "state.json").read_text())
    assert document["format"] == mode
    assert ("items" in document) == (mode == "responses")
    assert len(document["messages"]) == 5
    lines = map(json.loads, (desk / "t.jsonl").read_text().splitlines())
    told = {line["mode"] for line in lines if line["type"] == "model.result"}
    assert told == {mode}


def test_flags_that_disagree_end_nothing_but_the_run(desk: Path) -> None:
    """In one sentence."""
    both = {"GAMBIT_CHAT_FALLBACK": "1", "GAMBIT_RESPONSES_MODE": "1"}
    result = run("--script", "s.toml", **both)
    assert result.exit_code == 2
    assert "unset one of them" in result.stderr
