"""A signal ends every command in one line, whenever it comes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.providing import install_plugin

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="signals are sent the POSIX way"),
]
GAMBIT = Path(sys.executable).with_name("gambit")
ENDINGS = [
    (signal.SIGINT, 130, b"Stopped by Ctrl-C.\n"),
    (signal.SIGTERM, 143, b"Stopped by SIGTERM.\n"),
]
_SIGNALLED_AT_AN_IMPORT = """
import os, sys
number, module = int(sys.argv.pop(1)), sys.argv.pop(1)

class Signal:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), number)

from gambit_actors.cli.starting import main
sys.meta_path.insert(0, Signal())
main()
"""
_SIGNALLED_AT_THE_END = """
import atexit, os, sys
number = int(sys.argv.pop(1))
atexit.register(os.kill, os.getpid(), number)
from gambit_actors.cli.starting import main
main()
"""


@pytest.mark.parametrize(("number", "code", "words"), ENDINGS)
def test_a_signal_before_the_run_begins_is_one_line(
    tmp_path: Path, number: signal.Signals, code: int, words: bytes
) -> None:
    """Such as while the script is read."""
    (tmp_path / "PROMPT.md").write_text("Be kind.\n")
    os.mkfifo(tmp_path / "script.toml")
    command = [str(GAMBIT), "run", ".", "-m", "Hi.", "--script", "script.toml"]
    with (
        subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process,
        # Opened as soon as the command begins to read, and it reads until it is closed.
        (tmp_path / "script.toml").open("wb"),
    ):
        process.send_signal(number)
        output, errors = process.communicate(timeout=20)
    assert (process.returncode, output, errors) == (code, b"", words)


@pytest.mark.parametrize(("number", "code", "_words"), ENDINGS)
def test_a_signal_while_models_are_tried_is_told_by_the_exit_code(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    code: int,
    _words: bytes,
) -> None:
    """There is no table then that lacks those that had no time to answer."""
    install_plugin(tmp_path, monkeypatch)
    with subprocess.Popen(
        [GAMBIT, "models", "--ping", "pong/slow"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"asked\n"
        process.send_signal(number)
        output, errors = process.communicate(timeout=20)
    assert (process.returncode, output, errors) == (code, b"", b"")


@pytest.mark.parametrize("module", ["click", "gambit_actors.cli.check", "trio"])
@pytest.mark.parametrize(("number", "code", "words"), ENDINGS)
def test_a_signal_during_the_first_imports_is_one_line(
    tmp_path: Path, number: signal.Signals, code: int, words: bytes, module: str
) -> None:
    """They take most of the time until a command begins."""
    (tmp_path / "PROMPT.md").write_text("Be kind.\n")
    given = ["run", ".", "-m", "Hi."] if module == "trio" else ["check", "."]
    command = [sys.executable, "-c", _SIGNALLED_AT_AN_IMPORT]
    ended = subprocess.run(
        [*command, str(int(number)), module, *given],
        cwd=tmp_path,
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, b"", words)


@pytest.mark.parametrize(("number", "code", "_words"), ENDINGS)
def test_a_signal_when_all_is_done_is_no_traceback(
    number: signal.Signals, code: int, _words: bytes
) -> None:
    """The interpreter still takes a moment to go."""
    ended = subprocess.run(
        [sys.executable, "-c", _SIGNALLED_AT_THE_END, str(int(number)), "--version"],
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (code, b"")
