"""How a command ends that was asked for something that cannot be, or with Ctrl-C."""

import sys
from typing import IO

import click

from gambit_actors.cli.starting import BY_CTRL_C, INTERRUPTED


class Refused(click.ClickException):
    """The command was asked for something that cannot be."""

    exit_code = 2


class Interrupted(click.ClickException):
    """Somebody ended the command with Ctrl-C."""

    exit_code = INTERRUPTED

    def __init__(self) -> None:
        super().__init__(BY_CTRL_C)

    def show(self, file: IO[str] | None = None) -> None:
        """Say so; a terminal has ^C at the beginning of the line."""
        click.echo("\n" * sys.stderr.isatty() + self.message, file=file, err=True)
