"""The ``gambit`` command: it lists the others and words their errors."""

import io
import sys
from pathlib import Path

import click

from gambit_actors.errors import GambitError


class _Commands(click.Group):
    """A group that says in one sentence what went wrong."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except GambitError as problem:
            raise click.ClickException(str(problem)) from problem


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gambit-actors", prog_name="gambit")
def main() -> None:
    """Run prompt-folder agents."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark instead.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@main.command()
@click.argument(
    "stream",
    required=False,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
)
@click.option("--fast", is_flag=True, help="Do not pause between events.")
def demo(stream: Path | None, *, fast: bool) -> None:
    """Decode a recorded Open Responses stream and show what it says.

    STREAM is a file of server-sent events, or - for standard input. Without it a
    recording that comes with gambit is used: no key, no network.
    """
    from gambit_actors.cli.demo import play, shipped_stream

    if stream is None:
        data = shipped_stream()
    elif str(stream) == "-":
        data = sys.stdin.buffer.read()
    else:
        data = stream.read_bytes()
    play(data, is_paced=not fast and sys.stdout.isatty())
