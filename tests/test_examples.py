"""The numbered examples run as programs, without a key, and say what they claim."""

import re
import runpy
import shlex
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest
from click.testing import CliRunner

import gambit_actors
from gambit_actors import (
    DiskReader,
    RunOptions,
    ScriptedProvider,
    open_runtime,
    run_sync,
)
from gambit_actors.actors.trees import Limits
from gambit_actors.cli.main import main
from gambit_actors.errors import RequestError, RunFailed
from gambit_actors.providers.scripts import Reply
from gambit_actors.trace.events import RunEnd
from gambit_actors.trace.sinks import MemorySink

DECKS = Path(__file__).parent.parent / "decks"
EXAMPLES = Path(__file__).parent.parent / "examples"
SAID = {
    "01_hello.py": ["An actor is somebody with a mailbox.", "(completed, "],
    "02_action_deck.py": ["You get your money back.", "'function_call_output'"],
    "03_external_tool.py": [
        "asked for weather {'town': 'Bergen'} by ",
        "Take a coat.",
    ],
    "04_streaming.py": [
        "Hello. What would you like to understand?\n[completed]",
        "logged: message from user\nlogged: message from model\n",
        "A channel is a pipe between two tasks.\n",
        "\nThis... enough.\n[hello/PROMPT.md is waiting]",
    ],
    "05_kill_and_resume.py": [
        "child: look_up, attempt 1\nchild: pay, attempt 1\nin doubt: pay\n",
        "in doubt: pay\npay, attempt 2\nYou get your money back.\n",
    ],
}


def test_every_numbered_example_is_tried() -> None:
    """Each is in the list here, and short enough to be read in a minute."""
    found = sorted(EXAMPLES.glob("[0-9]*.py"))
    assert [path.name for path in found] == sorted(SAID)
    for path in found:
        assert len(path.read_text().splitlines()) < 60


@pytest.mark.slow
@pytest.mark.parametrize("name", SAID)
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    """From any folder, with nothing set up, it ends well and prints what it says."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    assert (done.returncode, done.stderr) == (0, "")
    for words in SAID[name]:
        assert words in done.stdout


async def test_the_decks_of_an_example_ask_their_models_no_more_than_they_should(
    tmp_path: Path,
) -> None:
    """A child is given its own reply at once, and none that is meant for the parent."""
    example = runpy.run_path(str(EXAMPLES / "02_action_deck.py"))
    example["write_decks"](tmp_path / "desk")
    memory = MemorySink()
    async with open_runtime(
        ScriptedProvider(example["SCRIPT"]), reader=DiskReader(), sinks=[memory]
    ) as runtime:
        await runtime.run(str(tmp_path / "desk"), message="My lamp is broken.")
    assert [end.passes for end in memory.of(RunEnd)] == [3]


def shown_runs() -> list[list[str]]:
    """The arguments of each ``gambit run`` that the page about decks shows."""
    page = (DECKS / "README.md").read_text()
    (block,) = re.findall(r"^```sh\n(\.venv.*?)^```", page, re.DOTALL | re.MULTILINE)
    words = shlex.split(block.replace("\\\n", " ").replace("\n", " ; "))
    runs = [list(group) for is_end, group in groupby(words, ";".__eq__) if not is_end]
    return [run[1:] for run in runs]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "answer", "cost"),
    [(0, "Who would you write to?\n", "1 pass"), (1, "39 euros back", "6 passes")],
)
def test_a_deck_plays_the_demo_that_comes_with_it(
    number: int, answer: str, cost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the page about decks shows can be typed in, and uses up the script."""
    monkeypatch.chdir(DECKS.parent)
    runs = shown_runs()
    # Here on any system; that it can be confined is shown elsewhere.
    result = CliRunner().invoke(main, [*runs[number], "--unconfined", "order_lookup"])
    assert (result.exit_code, len(runs)) == (0, 2), result.stderr
    assert answer in result.stdout
    assert f" · {cost} · " in result.stderr.splitlines()[-1]


def test_public_names_are_there_and_cost_nothing_until_asked_for() -> None:
    """Each name leads somewhere; importing the package loads none of it."""
    for name in gambit_actors.__all__:
        assert getattr(gambit_actors, name) is not None
    code = (
        "import sys; before = set(sys.modules); import gambit_actors;"
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.check_output([sys.executable, "-c", code], encoding="utf-8")
    assert "gambit_actors" in loaded.split()
    ours = [name for name in loaded.split() if name.startswith("gambit_actors.")]
    assert ours == []
    assert not {"trio", "msgspec", "rich", "structlog"} & set(loaded.split())


def test_run_sync_gives_the_answer_or_raises_plainly(tmp_path: Path) -> None:
    """A script without an event loop gets a result, or the error itself."""
    (tmp_path / "s.json").write_text(
        '{"type": "object", "properties": {"n": {"type": "integer"}},'
        ' "required": ["n"]}'
    )
    prompt = '+++\ncontextSchema = "s.json"\n+++\n\nCount.\n'
    (tmp_path / "PROMPT.md").write_text(prompt)
    model = ScriptedProvider([Reply(text="Seven.")])
    options = RunOptions(models=("scripted/m",), limits=Limits(max_passes=1))
    deck = str(tmp_path)
    result = run_sync(
        deck, message="Hi.", context={"n": 7}, models=model, options=options
    )
    assert result.text == "Seven."
    with pytest.raises(RequestError, match="the key 'n' is missing"):
        run_sync(deck, message="Hi.", models=model)
    # A script answers for decks that name no model, too.
    run_sync(deck, message="Hi.", context={"n": 7}, models=model)
    broken = ScriptedProvider([Reply(fault="error", message="Overloaded.")])
    with pytest.raises(RunFailed, match="Overloaded"):
        run_sync(deck, message="Hi.", context={"n": 7}, models=broken)
