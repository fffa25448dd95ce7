"""Options that several commands have in common."""

from collections.abc import Callable
from typing import Any, TypeAlias

import click

Command: TypeAlias = Callable[..., Any]
_Option: TypeAlias = Callable[[Command], Command]

DEFAULT_STORE = "runs"


def _settings(start: str) -> tuple[_Option, ...]:
    """The options that say where settings are, for who looks for them from here."""
    return (
        click.option(
            "--settings",
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False),
            help=f"The settings (default: the nearest gambit.toml, from {start} up).",
        ),
        click.option(
            "--env-file",
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False),
            help="Read variables from here, too, such as .env;"
            " those that are set count.",
        ),
    )


_PLAYING = (
    click.option(
        "--script",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="What the model says: replies in TOML, or in JSON lines (.jsonl).",
    ),
    click.option(
        "--model", metavar="NAME", help="The model to ask where a deck names none."
    ),
    click.option(
        "--model-force", metavar="NAME", help="The model to ask, whatever decks name."
    ),
    click.option(
        "--responses/--no-responses",
        default=None,
        help="Keep and trace the run as Open Responses (default), or as a chat.",
    ),
    click.option(
        "--record",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Write down all that models are asked and answer, for --replay.",
    ),
    click.option(
        "--record-append",
        is_flag=True,
        help="With --record: add to the recording that is there.",
    ),
    click.option(
        "--replay",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="Answer from what was recorded, and ask no model.",
    ),
    click.option(
        "--replay-timed",
        is_flag=True,
        help="With --replay: answer as fast as it was recorded, and not at once.",
    ),
    click.option(
        "--stream/--no-stream",
        default=True,
        help="Show the answer as it comes (default), or when it is whole.",
    ),
    click.option(
        "--trace",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Append everything that happens to this file, as JSON lines.",
    ),
    click.option(
        "--unconfined",
        metavar="NAME",
        multiple=True,
        help="Run the code of this action though nothing keeps it to its permissions.",
    ),
    click.option(
        "--max-passes",
        metavar="N",
        type=click.IntRange(min=1),
        help="How often a deck may call its model.",
    ),
    click.option(
        "--max-tokens",
        metavar="N",
        type=click.IntRange(min=1),
        help="How many tokens the run may use, in and out.",
    ),
    click.option(
        "--max-cost",
        metavar="AMOUNT",
        type=click.FloatRange(min=0),
        help="What the run may cost; takes a --price for each model.",
    ),
    click.option(
        "--price",
        metavar="MODEL=INPUT,OUTPUT",
        multiple=True,
        help="What a million tokens of a model cost, in and out.",
    ),
    click.option(
        "--prices",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="What models cost, a TOML table for each.",
    ),
    click.option(
        "--timeout",
        metavar="SECONDS",
        type=click.FloatRange(min=0, min_open=True),
        help="How long the run may take.",
    ),
    click.option(
        "--durability",
        type=click.Choice(["pass", "item", "none"]),
        default="pass",
        show_default=True,
        help="What of the log outlives a machine that stops, and not only the process.",
    ),
    click.option(
        "-v", "--verbose", is_flag=True, help="Show calls whole, and outputs."
    ),
)


def playing(command: Command) -> Command:
    """Give a command that runs a deck the options for that."""
    options: list[_Option] = [*_PLAYING, *_settings("the deck's folder")]
    for option in reversed(options):
        command = option(command)
    return command


def set_up(command: Command) -> Command:
    """Give a command that is about no deck the options that say where settings are."""
    for option in reversed(_settings("the current folder")):
        command = option(command)
    return command


def store_folder(command: Command) -> Command:
    """Give a command the folder that it looks for runs in."""
    return click.option(
        "--store",
        metavar="DIR",
        default=DEFAULT_STORE,
        show_default=True,
        help="The folder that runs are kept in.",
    )(command)


def other_deck(command: Command) -> Command:
    """Give a command that goes back to a run another place for its deck."""
    return click.option(
        "--deck", metavar="DECK", help="The deck, if it is not where it was."
    )(command)
