"""What tests of kept runs share: a deck, a script, and runs that were cut off."""

from pathlib import Path

from click.testing import CliRunner, Result

from gambit_actors.cli.main import main
from gambit_actors.openresponses.items import FunctionCall, user_message
from gambit_actors.run.entries import (
    CallStarted,
    Entry,
    ItemAdded,
    ModelAnswered,
    RunStarted,
    TurnStarted,
)
from gambit_actors.store.log_lines import LineWriter

DECK = """+++
[modelParams]
model = "far/away"

[[tools]]
name = "pay"
description = "Pay."
onDoubt = "{on_doubt}"
+++

Be kind.
"""
SCRIPT = """
[[replies]]
turn = 2
text = "Again."
times = 0
[[replies]]
after = "pay"
text = "Paid."
times = 0
[[replies]]
text = "Hello there."
times = 0
"""


def set_up(folder: Path, on_doubt: str = "ask") -> None:
    """Write the deck and the script."""
    (folder / "PROMPT.md").write_text(DECK.replace("{on_doubt}", on_doubt))
    (folder / "script.toml").write_text(SCRIPT)


def gambit(*arguments: str, stdin: str | None = None, **given: str) -> Result:
    """Run a command in this process, with these variables."""
    settings = {"COLUMNS": "200", "NO_COLOR": "1"} | given
    runner = CliRunner(env=settings)
    return runner.invoke(main, list(arguments), input=stdin, prog_name="gambit")


def kept_run(*more: str) -> str:
    """Run the deck in the current folder and keep it; gives the id of the run."""
    command = ["run", ".", "-m", "Hi.", "--script", "script.toml", "--store", "runs"]
    result = gambit(*command, *more)
    assert result.exit_code == 0, result.stderr
    return result.stderr.split(" · ")[-1].strip()


def cut_off_run(
    folder: Path,
    run_id: str = "run-cut",
    *,
    arguments: str = '{"amount":39}',
    root: str | None = None,
) -> Path:
    """Write the log of a run that was killed while it paid."""
    deck = str(folder / "PROMPT.md")
    pay = FunctionCall(call_id="c=1", name="pay", arguments=arguments)
    batches: list[list[Entry]] = [
        [
            RunStarted(
                run_id=run_id, deck="desk/PROMPT.md", path=deck, root_run_id=root
            ),
            TurnStarted(),
            ItemAdded(item=user_message("Hi."), source="user"),
        ],
        [
            ModelAnswered(model="far/away", status="completed"),
            ItemAdded(item=pay, source="model"),
            CallStarted(call_id="c=1", name="pay", kind="tool"),
        ],
    ]
    lines = LineWriter("gone.1.a")
    runs = folder / "runs"
    runs.mkdir(exist_ok=True)
    path = runs / f"{run_id}.jsonl"
    path.write_bytes(b"".join(lines.batch(batch, 100.0) for batch in batches))
    return path
