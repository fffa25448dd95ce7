"""Runs in a folder, as the command line speaks of them."""

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from gambit_actors.cli.deck_folders import shown_path
from gambit_actors.cli.flow import printable
from gambit_actors.cli.refusing import Refused
from gambit_actors.errors import (
    CorruptLog,
    GambitError,
    NoSuchRun,
    RequestError,
)
from gambit_actors.store.run_index import RunSummary, find_run

_AGE = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_SECONDS: Mapping[str, int] = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@contextmanager
def worded() -> Iterator[None]:
    """Say in one sentence what went wrong, with exit code 2 for what was asked wrongly.

    Raises:
        ClickException: something did.
    """
    try:
        yield
    except (RequestError, NoSuchRun) as problem:
        raise Refused(printable(str(problem))) from problem
    except GambitError as problem:
        raise click.ClickException(printable(str(problem))) from problem


def refuse_what_is_no_store(folder: str) -> None:
    """Look whether there is a folder with runs.

    Raises:
        Refused: there is none.
    """
    refuse_a_file_as_store(folder)
    if not Path(folder).is_dir():
        name = printable(folder)
        raise Refused(f"there is no folder {name}: name that of the runs with --store")


def refuse_a_file_as_store(folder: str) -> None:
    """Look whether a folder can be where runs are to be kept: on its way is no file.

    Raises:
        Refused: there is one.
    """
    path = Path(folder).absolute()
    for place in (path, *path.parents):
        if place.is_file():
            name = folder if place == path else shown_path(str(place))
            words = f"--store {folder}: {name} is a file, not a folder: name another"
            raise Refused(printable(words))


def found_run(folder: str, run_id: str) -> RunSummary:
    """Find the run that is meant.

    Raises:
        AmbiguousRun, NoSuchRun, Refused: there is none, or more than one.
        CorruptLog: there is, and its log is damaged at one of its ends.
    """
    refuse_what_is_no_store(folder)
    return find_run(folder, run_id)


def refuse_damaged(run: RunSummary, folder: str) -> None:
    """Do not go on with a run that nobody can read.

    Raises:
        CorruptLog: its log is damaged.
    """
    if run.damage is not None:
        path = str(Path(folder) / f"{run.run_id}.jsonl")
        line, offset = run.damage.line, run.damage.offset
        raise CorruptLog(path, line=line, offset=offset, reason=run.damage.reason)


def seconds_from(option: str, age: str) -> float:
    """How long an age such as 2d is.

    Raises:
        Refused: it is none.
    """
    found = _AGE.fullmatch(age.strip())
    if found is None:
        words = f"{option} {age} is no age, such as 90s, 15m, 12h, 2d or 4w"
        raise Refused(printable(words))
    return float(found[1]) * _SECONDS[found[2]]


def resume_command(run_id: str, store: str, *more: str) -> str:
    """What to type to go on with a run."""
    return printable(shlex.join(["gambit", "resume", run_id, "--store", store, *more]))
