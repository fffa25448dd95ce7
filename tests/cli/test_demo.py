"""``gambit demo`` shows decks at work, or a stream, and does a terminal no harm."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import gambit_actors.cli.main
from gambit_actors.cli import demo_restart
from gambit_actors.cli.main import main

PACKAGE = Path(gambit_actors.cli.main.__file__).parent
RECORDING = PACKAGE / "demo.sse"
STREAMS = Path(__file__).resolve().parent.parent / "fixtures" / "streams"
GAMBIT = Path(sys.executable).with_name("gambit")


def run(*arguments: str, stdin: bytes | None = None, **env: str) -> Result:
    """Run a command in this process, its output 200 columns wide."""
    settings = {"COLUMNS": "200", "NO_COLOR": "1"} | env
    return CliRunner(env=settings).invoke(main, list(arguments), input=stdin)


def golden(name: str) -> str:
    """Find a golden stream."""
    return str(STREAMS / f"{name}.sse")


def stream_saying(text: str) -> bytes:
    """Make a stream whose text, call, status and error all are this text."""
    message = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": text,
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }
    call = {"type": "function_call", "call_id": "c", "name": text, "arguments": text}
    events: list[dict[str, object]] = [
        {"type": "response.output_text.delta", "output_index": 0, "delta": text},
        {"type": "response.output_item.added", "output_index": 1, "item": call},
        {
            "type": "response.failed",
            "response": {
                "id": "r",
                "status": "failed",
                "output": [message, call, {"type": text, "status": text}],
                "error": {"code": "c", "message": text},
            },
        },
        {"type": text},
    ]
    return b"".join(b"data: " + json.dumps(e).encode() + b"\n\n" for e in events)


@pytest.mark.slow
def test_the_demo_runs_a_tree_of_decks() -> None:
    """Without a file: what is said and called, who was alive, and what it cost."""
    result = run("demo")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "\nsays    I am sorry about the lamp." in result.stdout
    for name in ("order_lookup", "refund_decision", "crm_note"):
        assert f"\ncalls   {name} {{" in result.stdout
    assert "\nsays    Your headlamp came five days ago" in result.stdout
    assert "\ndesk/PROMPT.md " in result.stdout
    assert "\n  desk/refund_decision/PROMPT.md  scripted/clerk\n" in result.stdout
    assert "so it ran in this process" in result.stdout
    assert "\ncompleted · " in result.stdout
    assert " · 5 passes · 3 calls · " in result.stdout


@pytest.mark.slow
def test_the_demo_goes_on_after_a_kill() -> None:
    """Elsewhere a process is killed; what it had done is not done again."""
    result = run("demo")
    before, _, after = result.stdout.rpartition("        kill -9 ")
    lines = after.splitlines()
    assert before.splitlines()[-1].startswith("calls   crm_note {")
    assert lines[1].startswith("        gambit resume run-")
    assert "nobody knows whether crm_note has happened" in lines[2]
    assert [line.split()[1] for line in lines if line.startswith("calls")] == [
        "crm_note"
    ]
    assert lines[-2].startswith("says    Your headlamp came five days ago")
    assert lines[-1].startswith("completed · ")


def test_a_process_that_ends_before_it_is_killed_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There is nothing to go on with then."""
    monkeypatch.setattr(demo_restart, "__name__", "this")  # A module that only prints.
    with pytest.raises(click.ClickException, match="ended before that"):
        demo_restart.show_restart()


def test_the_decks_of_the_demo_have_no_faults() -> None:
    """What is shipped passes the check that others are held to."""
    result = run("check", "--strict", str(PACKAGE / "demo_decks"))
    assert (result.exit_code, result.stdout) == (0, "All good: 2 decks, 6 files.\n")


def test_a_recording_shows_text_items_and_usage() -> None:
    """The recording that comes with the package is decoded and told in full."""
    result = run("demo", str(RECORDING))
    assert result.exit_code == 0
    assert result.stderr == ""
    assert "Happy to help!" in result.stdout
    for kind in ("reasoning", "message", "function_call"):
        assert f"\n{kind}" in result.stdout
    assert 'calls   find_order {"order_id": "A-1001"}' in result.stdout
    assert "completed · " in result.stdout
    assert "509 tokens (412 in, 97 out)" in result.stdout


@pytest.mark.slow
def test_the_installed_script_runs() -> None:
    """The command that installing puts beside the interpreter shows the demo."""
    done = subprocess.run(
        [GAMBIT, "demo", "--fast"], capture_output=True, check=False, encoding="utf-8"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "completed · " in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_without_unicode_is_no_crash(encoding: str) -> None:
    """What the terminal cannot show is replaced, and the demo goes on to its end."""
    done = subprocess.run(
        [GAMBIT, "demo", "--fast"],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0
    assert b" tokens (" in done.stdout


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("text", "completed"),
        ("parallel_calls", "completed"),
        ("reasoning", "completed"),
        ("incomplete_max_tokens", "incomplete · max_output_tokens"),
        ("failed", "failed · The model worker stopped unexpectedly."),
    ],
)
def test_a_recorded_stream(name: str, shown: str) -> None:
    """A file is decoded; its status and reason are told."""
    text = json.loads((STREAMS / f"{name}.expected.json").read_bytes())["text"]
    result = run("demo", golden(name))
    assert result.exit_code == 0
    # Two messages are two lines on the screen, and one text in the expected file.
    said = re.sub(r"^says +", "", result.stdout, flags=re.MULTILINE)
    assert "".join(text.split()) in "".join(said.split())
    assert shown in result.stdout


@pytest.mark.parametrize(
    "name", ["truncated", "truncated_between_events", "done_early"]
)
def test_a_cut_stream_is_an_error(name: str) -> None:
    """Exit 1, one sentence on stderr, and what had arrived is shown all the same."""
    expected = json.loads((STREAMS / f"{name}.expected.json").read_bytes())
    result = run("demo", golden(name))
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: the stream ended early: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output
    assert expected["text"] in result.stdout
    for part in expected.get("arguments", []):
        assert part in result.stdout
    assert "in_progress · " in result.stdout
    assert "incomplete" in result.stdout


def test_odd_things_are_told() -> None:
    """Unknown and malformed events are counted, and problems noted."""
    assert ", 1 malformed" in run("demo", golden("invalid_json")).stdout
    assert " unknown" in run("demo", golden("unknown_events")).stdout
    assert (
        "note: output 0 was never announced" in run("demo", golden("skip_added")).stdout
    )


def test_a_dash_reads_standard_input() -> None:
    """The stream may come through a pipe."""
    piped = run("demo", "-", stdin=(STREAMS / "text.sse").read_bytes())
    assert piped.exit_code == 0
    assert piped.stdout == run("demo", golden("text")).stdout


@pytest.mark.parametrize(
    ("stdin", "reason"),
    [
        (b"", "the input is empty"),
        (b'{"id": "resp_1"}', "looks like a JSON document"),
        (b"hello world\n", "expected lines such as 'data: {...}'"),
        (bytes(range(256)) * 16, "expected lines such as 'data: {...}'"),
    ],
)
def test_what_is_no_stream_is_told_apart(stdin: bytes, reason: str) -> None:
    """Input without a single event is an error that says what it looks like."""
    result = run("demo", "-", stdin=stdin)
    assert result.exit_code == 1
    assert reason in result.stderr
    assert result.stdout == ""


def test_the_same_problem_is_noted_once() -> None:
    """Chunks of another protocol give one note with a count, not one each."""
    chunk = b'data: {"object": "chat.completion.chunk"}\n\n'
    result = run("demo", "-", stdin=chunk * 50)
    assert result.stdout.count("note: ") == 1
    assert "the key 'type' is missing (x50)" in result.stdout


def test_a_cut_inside_an_event_is_told() -> None:
    """A last event without its blank line is named as the reason."""
    stream = (STREAMS / "text.sse").read_bytes()
    cut = stream[: stream.index(b"event: response.completed")] + b"data: {}\n"
    result = run("demo", "-", stdin=cut)
    assert result.exit_code == 1
    assert "note: the input ends inside an event: 3 bytes" in result.stdout


def test_standard_input_is_shown_as_it_arrives() -> None:
    """Text is on the screen while the sender still has its end of the pipe open."""
    stream = (STREAMS / "text.sse").read_bytes()
    half = stream.index(b"event: response.output_text.done")
    with subprocess.Popen(
        [GAMBIT, "demo", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(stream[:half])
        process.stdin.flush()
        seen = b""
        while b"says" not in seen:
            arrived = process.stdout.read1()  # type: ignore[attr-defined]  # buffered
            assert arrived, "the command ended before its input did"
            seen += arrived
        process.stdin.write(stream[half:])
        process.stdin.close()
        assert b"completed" in process.stdout.read()
    assert process.returncode == 0


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """A wrong argument is a usage error that names it; a folder is one too."""
    missing = run("demo", str(tmp_path / "missing.sse"))
    assert missing.exit_code == 2
    assert "missing.sse' does not exist" in missing.stderr
    assert run("demo", str(tmp_path)).exit_code == 2
    assert run("demo", "--no-such-option").exit_code == 2


@pytest.mark.parametrize("color", [{}, {"NO_COLOR": "", "FORCE_COLOR": "1"}])
@pytest.mark.parametrize(
    "attack",
    [
        "\x1b]0;owned\x07",
        "\x1b[2J\x1b[H",
        "\x9b31m",
        "\x1b]8;;https://evil.test\x1b\\link\x1b]8;;\x1b\\",
        "safe\rrm -rf",
        "\b\b\b",
        "\N{RIGHT-TO-LEFT OVERRIDE}txt.exe",
    ],
)
def test_a_model_cannot_steer_the_terminal(attack: str, color: dict[str, str]) -> None:
    """Control sequences in a stream come out as replacement characters."""
    result = run("demo", "-", stdin=stream_saying(f"A{attack}Z"), **color)
    assert result.exit_code == 0
    assert attack not in result.stdout
    assert "\N{REPLACEMENT CHARACTER}" in result.stdout
    for control in attack:
        if not control.isprintable() and control != "\x1b":
            assert control not in result.stdout
    # With colors on, escapes are there: rich's own, for style and nothing else.
    escapes = [rest.partition("m")[0] for rest in result.stdout.split("\x1b")[1:]]
    assert all(e[:1] == "[" and set(e[1:]) <= set("0123456789;") for e in escapes)
    assert bool(escapes) == bool(color)


@pytest.mark.parametrize(
    "markup", ["[bold]x[/bold]", "[/]", "[link=https://evil.test]x", ":smile:", "[red]"]
)
def test_markup_is_shown_as_it_is(markup: str) -> None:
    """What looks like rich markup is text like any other, wherever it stands."""
    result = run("demo", "-", stdin=stream_saying(markup))
    assert result.exit_code == 0
    # Delta, call, message, call and type in the table, error, note at the end.
    assert result.stdout.count(markup) >= 6


def test_help_and_version() -> None:
    """The command says what it has, what a command takes, and which version it is."""
    top = run("--help")
    assert (top.exit_code, run("-h").stdout) == (0, top.stdout)
    assert "demo    Show decks at work, or decode a recorded stream." in top.stdout
    assert "run     Run a deck for one answer." in top.stdout
    assert "--fast" in run("demo", "--help").stdout
    version = run("--version")
    assert version.exit_code == 0
    assert version.stdout.startswith("gambit, version 0.")


def test_help_is_light() -> None:
    """Asking for help loads neither the terminal nor the network libraries."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", GAMBIT, "--help"],
        capture_output=True,
        check=False,
        encoding="utf-8",
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0
    loaded = {
        line.rpartition("|")[2].strip().partition(".")[0]
        for line in done.stderr.splitlines()
        if line.startswith("import time:")
    }
    assert {"click", "gambit_actors"} <= loaded
    assert not loaded & {"rich", "trio", "httpx", "msgspec"}
