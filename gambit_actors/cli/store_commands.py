"""The commands for runs that are kept: their options, and where each is done."""

import sys

import click

from gambit_actors.cli.commands import RunsCommands
from gambit_actors.cli.options import (
    DEFAULT_STORE,
    other_deck,
    playing,
    store_folder,
)

_RUN_ID = click.argument("run_id", metavar="RUN_ID")


@click.command()
@_RUN_ID
@store_folder
@click.option("-m", "--message", metavar="TEXT", help="What to say next.")
@click.option(
    "--answer",
    metavar="KEY=ANSWER",
    multiple=True,
    help="What to do about a call in doubt: retry, fail, or in JSON what it gave."
    " KEY may be the end of one, or a tool's name.",
)
@other_deck
@playing
def resume(**options: object) -> None:
    """Go on with a run where its log ends.

    RUN_ID is the id of a run, the beginning of one, or last. What is recorded is not
    done again. Exits with 3 if somebody has to say what became of a call.
    """
    from gambit_actors.cli.resume import resume_from_options

    sys.exit(resume_from_options(options))


@click.command()
@_RUN_ID
@store_folder
@click.option(
    "-n",
    "--items",
    metavar="N",
    type=int,
    required=True,
    help="How many items of the conversation are shared.",
)
@click.option("-m", "--message", metavar="TEXT", help="What to say next.")
@other_deck
@playing
def branch(**options: object) -> None:
    """Begin a run that shares the beginning of another, and print its id.

    With a message the new run is gone on with at once.
    """
    from gambit_actors.cli.branch import branch_from_options

    sys.exit(branch_from_options(options))


@click.command()
@_RUN_ID
@store_folder
@other_deck
def replay(**options: object) -> None:
    """Decide anew what a run did, without any model, and compare with its log.

    Exits with 1 at the first difference. The recorded answer goes to standard output.
    """
    from gambit_actors.cli.replay import replay_from_options

    sys.exit(replay_from_options(options))


@click.command()
@_RUN_ID
@store_folder
@click.option("-f", "--follow", is_flag=True, help="Wait for more, until the run ends.")
@click.option("--json", "as_json", is_flag=True, help="Write the lines as they are.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Show entries whole, with all their ids."
)
@click.option(
    "--state",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Save the conversation as a state file, and show nothing.",
)
@click.option(
    "--bundle", is_flag=True, help="Write the conversation as a context bundle."
)
@click.option(
    "--user-messages",
    metavar="N",
    type=click.IntRange(min=1),
    help="With --bundle: only the last N messages of the user, with what followed.",
)
@click.option(
    "--tokens",
    metavar="N",
    type=click.IntRange(min=1),
    help="With --bundle: only as many of the last exchanges as are N tokens, roughly.",
)
def log(**options: object) -> None:
    """Show the log of a run.

    Exits with 1 if it is damaged; what comes before the damage is shown.
    """
    from gambit_actors.cli.log import log_from_options

    sys.exit(log_from_options(options))


@click.group(cls=RunsCommands, invoke_without_command=True)
@store_folder
@click.option("--failed", is_flag=True, help="Those that failed.")
@click.option("--interrupted", is_flag=True, help="Those that were interrupted.")
@click.option("--since", metavar="AGE", help="Those of the last time, such as 2d.")
@click.option(
    "--deck", metavar="GLOB", help="Those of this deck, or of decks like this."
)
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Only so many.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document.")
@click.pass_context
def runs(context: click.Context, /, **options: object) -> None:
    """List the runs in a folder, the latest first.

    An AGE is a number with s, m, h, d or w behind it.
    """
    if context.invoked_subcommand is not None:
        context.obj = options["store"]
        return
    from gambit_actors.cli.runs import list_from_options

    sys.exit(list_from_options(options))


@runs.command()
@click.option(
    "--store",
    metavar="DIR",
    # Not as its default: what is said before the word prune counts for more.
    help=f"The folder that runs are kept in.  [default: {DEFAULT_STORE}]",
)
@click.option(
    "--keep", metavar="AGE", required=True, help="Keep what is newer, such as 30d."
)
@click.option(
    "--interrupted", is_flag=True, help="Remove also what has not ended, or is damaged."
)
@click.option("--dry-run", is_flag=True, help="Say what would be removed.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def prune(folder: str, /, **options: object) -> None:
    """Remove old runs, each with all runs below it.

    What is being written stays, and so does what has not ended.
    """
    from gambit_actors.cli.prune import prune_from_options

    sys.exit(prune_from_options(options | {"store": options["store"] or folder}))


STORE_COMMANDS: tuple[click.Command, ...] = (resume, runs, log, replay, branch)
