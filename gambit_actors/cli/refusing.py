"""What a command says when it was asked for something that cannot be."""

import click


class Refused(click.ClickException):
    """The command was asked for something that cannot be."""

    exit_code = 2
