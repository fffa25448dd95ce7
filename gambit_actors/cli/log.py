"""``gambit log``: what is in the log of a run, for people, programs and other tools.

Exits with 1 if the log is damaged: what comes before the damage is shown, and then
where it is. With ``--follow`` it waits for more, as ``tail -f`` does, until the run has
ended.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import click
import msgspec

from gambit_actors.cli.flow import printable
from gambit_actors.cli.log_view import LogView
from gambit_actors.cli.refusing import Refused
from gambit_actors.cli.stored_runs import found_run, worded
from gambit_actors.cli.tables import NO_LIMIT, terminal_width
from gambit_actors.errors import CorruptLog, NoSuchRun
from gambit_actors.run.entries import Entry
from gambit_actors.store.log_lines import LogContents, read_lines
from gambit_actors.store.log_reading import read_file

_POLL_SECONDS = 0.1
_INTERRUPTED = 130
Sight: TypeAlias = Callable[[Path, LogContents, int], None]
"""Shows the entries of a log from one of them on."""


class AskedForLog(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``gambit log``, by their names."""

    run_id: str
    store: str
    follow: bool = False
    as_json: bool = False
    verbose: bool = False
    state: str | None = None
    bundle: bool = False
    user_messages: int | None = None
    tokens: int | None = None


def log_from_options(options: Mapping[str, object]) -> int:
    """Show what the command line asks for; gives the exit code."""
    asked = msgspec.convert(options, AskedForLog)
    forms = [asked.as_json, asked.state is not None, asked.bundle]
    if sum(forms) > 1 or (asked.follow and any(forms[1:])):
        msg = "--json, --state and --bundle exclude each other"
        raise Refused(f"{msg}, and the last two exclude --follow")
    if not asked.bundle and (asked.user_messages or asked.tokens):
        raise Refused("--user-messages and --tokens cut a bundle: add --bundle")
    with worded():
        run = found_run(asked.store, asked.run_id)
        path = Path(asked.store) / f"{run.run_id}.jsonl"
        if any(forms[1:]):
            return _convert(path, asked)
        try:
            return _show(path, _lines if asked.as_json else _view(asked).show, asked)
        except FileNotFoundError as problem:
            raise NoSuchRun(run.run_id, asked.store) from problem
        except KeyboardInterrupt:
            return _INTERRUPTED


def _view(asked: AskedForLog) -> LogView:
    width = terminal_width()
    known = width if width < NO_LIMIT else None
    return LogView(width=known, is_verbose=asked.verbose)


def _show(path: Path, sight: Sight, asked: AskedForLog) -> int:
    shown = 0
    for contents, damage in _readings(path, is_followed=asked.follow):
        sight(path, contents, shown)
        sys.stdout.flush()
        shown = max(shown, len(contents.entries))
        if damage is not None:
            raise damage
        if contents.torn is not None and not asked.follow:
            words = f"what follows is torn: {contents.torn.reason}, from byte"
            click.echo(f"{words} {contents.torn.offset}", err=True)
        if contents.is_over:
            break
    return 0


def _readings(
    path: Path, *, is_followed: bool
) -> Iterator[tuple[LogContents, CorruptLog | None]]:
    """A log as it is, and if it is followed, again whenever it has changed."""
    size = -1
    while True:
        now = path.stat().st_size
        if now != size:
            size = now
            yield _sound(path)
        if not is_followed:
            return
        time.sleep(_POLL_SECONDS)


def _sound(path: Path) -> tuple[LogContents, CorruptLog | None]:
    """What there is in a log, up to the damage if there is some."""
    try:
        contents, _ = read_file(path)
    except CorruptLog as damage:
        with path.open("rb") as file:
            data = file.read(damage.offset)
        return read_lines(data, path=str(path)), damage
    return contents, None


def _lines(path: Path, contents: LogContents, shown: int) -> None:
    """Write the lines of a log as they are."""
    if shown >= len(contents.lines):
        return
    start = contents.lines[shown].offset
    with path.open("rb") as file:
        file.seek(start)
        data = file.read(contents.end_offset - start)
    if not data.endswith(b"\n"):
        data += b"\n"
    # A terminal is not to be driven by what a model said; a program gets each byte.
    text = printable(data.decode()) if sys.stdout.isatty() else data
    click.echo(text, nl=False)


def _convert(path: Path, asked: AskedForLog) -> int:
    """Write the conversation in another form."""
    from gambit_actors.run.context_budgets import ContextBudget
    from gambit_actors.run.context_bundles import compile_context, encode_bundle

    entries = read_file(path)[0].entries
    if asked.state is None:
        budget = ContextBudget(user_messages=asked.user_messages, tokens=asked.tokens)
        click.echo(encode_bundle(compile_context(entries, budget=budget)))
    else:
        _save(entries, asked.state)
    return 0


def _save(entries: Sequence[Entry], file: str) -> None:
    from gambit_actors.run.saved_state_entries import saved_state_from
    from gambit_actors.run.states import state_from_entries
    from gambit_actors.store.state_files import load_state, new_id, save_state

    state, previous = state_from_entries(list(entries)), load_state(file)
    run = state.run
    if run is None:
        msg = "there is nothing in that log"
        raise Refused(msg)
    if previous is not None and previous.run_id != run.run_id:
        raise Refused(printable(f"--state {file} is of run {previous.run_id}"))
    save_state(file, saved_state_from(state, previous, new_id))
