"""The ``gambit`` command: it lists the others and words their errors."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from gambit_actors.cli.commands import MainCommands
from gambit_actors.cli.options import playing, set_up
from gambit_actors.cli.refusing import Interrupted
from gambit_actors.cli.store_commands import STORE_COMMANDS
from gambit_actors.errors import GambitError

_CHUNK_BYTES = 64 * 1024


class _Commands(MainCommands):
    """A group that says in one sentence what went wrong."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: object,
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except KeyboardInterrupt:
            raise Interrupted from None

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted from None
        except click.Abort as problem:
            # A question that was answered with Ctrl-C, and not with the end of input.
            if isinstance(problem.__context__, KeyboardInterrupt):
                raise Interrupted from None
            raise
        except BrokenPipeError:
            raise  # Somebody stopped reading; click ends quietly.
        except (GambitError, OSError) as problem:
            raise click.ClickException(str(problem)) from problem


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gambit-actors", prog_name="gambit")
def main() -> None:
    """Run decks: agents that are folders with a PROMPT.md.

    Run them on real models or scripted ones, go on with runs that were interrupted,
    check decks, and decode the streams that models send.
    """
    if sys.stdout is None:
        msg = "standard output is closed"
        raise click.ClickException(msg)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark instead.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@main.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(exists=True))
@click.option("--strict", is_flag=True, help="Exit with 1 on warnings, too.")
@click.option("--fix", is_flag=True, help="Change the files where the fix is known.")
@click.option("--diff", is_flag=True, help="Show what --fix would do; write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document.")
@click.option(
    "--legacy",
    type=click.Choice(["warn", "refuse"]),
    help="What to do about deprecated names (default: warn until 1.0.0, then refuse).",
)
@click.option(
    "--scaffold", is_flag=True, help="Write an INTENT.md where there is none."
)
@click.option(
    "--exclude",
    metavar="GLOB",
    multiple=True,
    help="Leave out folders and decks like this, such as tests/fixtures.",
)
@click.option(
    "--settings",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Hold models against these settings (default: the nearest gambit.toml).",
)
@click.option("-q", "--quiet", is_flag=True, help="Show errors and warnings only.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Show where an INTENT.md is missing."
)
def check(**options: object) -> None:
    """Explain every mistake in decks.

    PATH is a PROMPT.md, or a folder that is searched for them; without it the current
    folder is. Exits with 1 if there are errors.
    """
    from gambit_actors.cli.check import check_from_options

    sys.exit(check_from_options(options))


@main.command()
@click.argument("deck")
@click.option("-m", "--message", metavar="TEXT", help="What to say to the deck.")
@click.option(
    "--context",
    metavar="JSON|@FILE",
    help="What the deck is given to know: JSON, or @ and a file with JSON in it.",
)
@click.option("--init", metavar="JSON|@FILE", help="Deprecated: the same as --context.")
@click.option("--store", metavar="DIR", help="Keep the log of the run in this folder.")
@click.option(
    "--state",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Go on with the conversation in this file, if it is there, and save it.",
)
@playing
def run(**options: object) -> None:
    """Run a deck for one answer.

    DECK is a PROMPT.md or a folder with one. The answer goes to standard output, all
    else to standard error. Exits with 1 if there is no answer. With --store the run can
    be gone on with after the process is gone: see gambit resume. Which models can be
    asked is shown by gambit models.
    """
    from gambit_actors.cli.run import run_from_options

    sys.exit(run_from_options(options))


@main.command()
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@click.option(
    "--ping", is_flag=True, help="Ask models for one word, to see if it works."
)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document.")
@set_up
def models(**options: object) -> None:
    """Show which models can be asked, by which names, and what is missing.

    With --ping, each MODEL is asked for one word; without MODEL, those are that the
    settings name. Exits with 1 if one has no answer. No key is shown.
    """
    from gambit_actors.cli.models import models_from_options

    sys.exit(models_from_options(options))


@main.command()
@click.argument(
    "stream",
    required=False,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
)
@click.option("--fast", is_flag=True, help="Show the decks at work without pauses.")
def demo(stream: Path | None, *, fast: bool) -> None:
    """Show decks at work, or decode a recorded stream.

    Without STREAM, a tree of decks that comes with gambit is run on a scripted model:
    no key, no network. Then it is run again, killed, and gone on with. STREAM is a file
    of Open Responses events as a server sends them, or - for standard input, which is
    shown as it arrives.
    """
    if stream is None:
        from gambit_actors.cli.demo_restart import show_restart
        from gambit_actors.cli.demo_run import show_demo

        code = show_demo(is_paced=not fast and sys.stdout.isatty())
        sys.exit(code or show_restart())
    from gambit_actors.cli.demo import play

    if str(stream) == "-":
        if sys.stdin is None:
            msg = "standard input is closed"
            raise click.ClickException(msg)
        play(_chunks(sys.stdin.buffer))
    else:
        with stream.open("rb") as file:
            play(_chunks(file))


def _chunks(file: BinaryIO | io.BufferedReader) -> Iterator[bytes]:
    """What there is to read, as soon as it is there."""
    read = file.read1 if isinstance(file, io.BufferedReader) else file.read
    while chunk := read(_CHUNK_BYTES):
        yield chunk


for _command in STORE_COMMANDS:
    main.add_command(_command)
