"""The ``gambit`` command: it lists the others and words their errors."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from gambit_actors.errors import GambitError

_CHUNK_BYTES = 64 * 1024


class _Commands(click.Group):
    """A group that says in one sentence what went wrong."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # Somebody stopped reading; click ends quietly.
        except (GambitError, OSError) as problem:
            raise click.ClickException(str(problem)) from problem


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gambit-actors", prog_name="gambit")
def main() -> None:
    """Run decks: agents that are folders with a PROMPT.md.

    So far: check decks, and decode the streams that models send.
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
@click.option("-q", "--quiet", is_flag=True, help="Show errors and warnings only.")
def check(**options: object) -> None:
    """Explain every mistake in decks.

    PATH is a PROMPT.md, or a folder that is searched for them; without it the current
    folder is. Exits with 1 if there are errors.
    """
    from gambit_actors.cli.check import check_from_options

    sys.exit(check_from_options(options))


@main.command()
@click.argument(
    "stream",
    required=False,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
)
@click.option("--fast", is_flag=True, help="Play the recording without pauses.")
def demo(stream: Path | None, *, fast: bool) -> None:
    """Decode a recorded Open Responses stream and show what it says.

    STREAM is a file of server-sent events, or - for standard input, which is shown as
    it arrives. Without it a recording that comes with gambit is played: no key, no
    network.
    """
    from gambit_actors.cli.demo import play, shipped_stream

    if stream is None:
        play([shipped_stream()], is_paced=not fast and sys.stdout.isatty())
    elif str(stream) == "-":
        if sys.stdin is None:
            msg = "standard input is closed"
            raise click.ClickException(msg)
        play(_chunks(sys.stdin.buffer), is_paced=False)
    else:
        with stream.open("rb") as file:
            play(_chunks(file), is_paced=False)


def _chunks(file: BinaryIO | io.BufferedReader) -> Iterator[bytes]:
    """What there is to read, as soon as it is there."""
    read = file.read1 if isinstance(file, io.BufferedReader) else file.read
    while chunk := read(_CHUNK_BYTES):
        yield chunk
