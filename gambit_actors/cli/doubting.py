"""Calls that nobody knows the outcome of: told, asked about, and answered.

An answer is ``KEY=retry``, ``KEY=fail`` or ``KEY=`` and in JSON what the call gave. For
the key, what is told of a call has a shorter name.
"""

import sys
from collections.abc import Mapping, Sequence

import click
import msgspec

from gambit_actors.cli.flow import printable
from gambit_actors.cli.open_calls import (
    OpenCall,
    key_named,
    open_calls,
    short_name,
)
from gambit_actors.cli.refusing import Refused
from gambit_actors.cli.stored_runs import resume_command
from gambit_actors.errors import InDoubt
from gambit_actors.run.doubts import Answer, Doubt, Happened

_SHOWN_CHARACTERS = 200
_LACKING = "\n    it cannot be made again: the log does not keep its secrets"


def answers_from(given: Sequence[str]) -> dict[str, Answer]:
    """What ``--answer`` says, by key or what stands for one.

    Raises:
        Refused: it is not a key and an answer.
    """
    return dict(_answer_from(one) for one in given)


def can_ask() -> bool:
    """Whether somebody sits in front of us."""
    return bool(sys.stdin and sys.stdin.isatty() and sys.stderr.isatty())


def answers_by_key(
    answers: Mapping[str, Answer], calls: Sequence[OpenCall]
) -> dict[str, Answer]:
    """The same by whole keys, as far as it is known what they are.

    Raises:
        Refused: an answer may be about several calls.
    """
    return {key_named(calls, name): answer for name, answer in answers.items()}


def tell_doubts(problem: InDoubt, run_id: str, store: str, *, is_asked: bool) -> None:
    """Show the calls in doubt, and unless they are asked about, what to type."""
    doubts = _doubts(problem)
    one = len(doubts) == 1
    what = "this call has" if one else f"these {len(doubts)} calls have"
    click.echo(f"Nobody knows whether {what} happened:", err=True)
    for doubt in doubts:
        arguments = doubt.arguments
        if len(arguments) > _SHOWN_CHARACTERS:
            arguments = f"{arguments[:_SHOWN_CHARACTERS]}..."
        click.echo(
            printable(
                f"\n  {doubt.name} {arguments}\n"
                f"    attempt {doubt.attempt}, asked for by {doubt.deck}\n"
                f"    {doubt.key}{_LACKING if doubt.lacks_secrets else ''}"
            ),
            err=True,
        )
    if is_asked:
        return
    calls = open_calls(store, run_id)
    say = [f"--answer={short_name(calls, doubt.key)}=ANSWER" for doubt in doubts]
    command = resume_command(run_id, store, *say)
    click.echo(
        f"\nLook whether it did, and go on with:\n  {command}\n"
        "where ANSWER is retry (do it again, with the same idempotency key), fail\n"
        "(tell the model that nobody knows) or, in JSON, what it gave.",
        err=True,
    )


def ask_about(problem: InDoubt) -> dict[str, Answer]:
    """Ask who sits in front of us about each call.

    Raises:
        Abort: they would rather not say.
    """
    found: dict[str, Answer] = {}
    for doubt in _doubts(problem):
        question = printable(f"{doubt.name}: retry, fail, or what it gave in JSON")
        answer = None
        while answer is None:
            answer = _read(click.prompt(question, err=True))
        found[doubt.key] = answer
    return found


def _doubts(problem: InDoubt) -> list[Doubt]:
    return [doubt for doubt in problem.doubts if isinstance(doubt, Doubt)]


def _answer_from(given: str) -> tuple[str, Answer]:
    key, equals, rest = given.partition("=")
    # A key may have such a sign in it, and so may what the call gave.
    while equals:
        answer = _read(rest)
        if answer is not None and key:
            return key, answer
        more, equals, rest = rest.partition("=")
        key = f"{key}={more}"
    words = f"--answer {given} is not KEY=retry, KEY=fail or KEY= and JSON"
    raise Refused(printable(words))


def _read(text: str) -> Answer | None:
    """An answer; None if it is none."""
    match text.strip():
        case "retry":
            return "retry"
        case "fail":
            return "fail"
        case json:
            try:
                value = msgspec.json.decode(json.encode(errors="surrogateescape"))
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                return None
            return Happened(value=value)
