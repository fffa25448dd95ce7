"""Groups of commands, and what is said where there is none of a name."""

import difflib
from collections.abc import Mapping

import click


class Commands(click.Group):
    """A group that knows which of its commands is meant by other names for it."""

    other_names: Mapping[str, str] = {}
    """What somebody may try, and what to type instead."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command.

        Raises:
            UsageError: there is none; with the one that may be meant.
        """
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            meant = self.other_names.get(name)
            close = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
            if meant is None and close:
                meant = f"{ctx.command_path} {close[0]}"
            guess = f" Did you mean {meant}?" if meant else ""
            ctx.fail(f"No such command {name!r}.{guess}")
        return super().resolve_command(ctx, args)


class MainCommands(Commands):
    """The commands of ``gambit``."""

    other_names: Mapping[str, str] = {
        "lint": "gambit check",
        "list": "gambit runs",
        "ls": "gambit runs",
        "ping": "gambit models --ping",
        "prune": "gambit runs prune",
        "show": "gambit log RUN_ID",
        "validate": "gambit check",
    }


class RunsCommands(Commands):
    """The commands of ``gambit runs``."""

    other_names: Mapping[str, str] = {
        "delete": "gambit runs prune",
        "list": "gambit runs",
        "log": "gambit log RUN_ID",
        "ls": "gambit runs",
        "remove": "gambit runs prune",
        "resume": "gambit resume RUN_ID",
        "rm": "gambit runs prune",
        "show": "gambit log RUN_ID",
    }
