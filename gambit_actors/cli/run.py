"""``gambit run``: one deck, one message, the answer on standard output.

With ``--store`` its log is kept, with ``--state`` its conversation. It ends in order
also after Ctrl-C and SIGTERM: then its log and its trace are whole, and a state file
has what was done.
"""

from collections.abc import Mapping

import click
import msgspec

from gambit_actors.actors.runtime import Runtime, open_runtime
from gambit_actors.cli.answering import Answering
from gambit_actors.cli.asking import (
    Asked,
    context_from,
    context_hint,
    refuse_what_is_no_deck,
)
from gambit_actors.cli.flow import printable
from gambit_actors.cli.keeping import Keeping
from gambit_actors.cli.refusing import Refused
from gambit_actors.cli.stage import Stage
from gambit_actors.cli.stopping import run_until_stopped
from gambit_actors.errors import GambitError, RequestError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.store.deck_files import DiskReader


def run_from_options(options: Mapping[str, object]) -> int:
    """Run what the command line asks for; gives the exit code."""
    asked = _modern(msgspec.convert(options, Asked))
    try:
        return _run(asked)
    except RequestError as problem:
        hint = context_hint(asked)
        words = f"{problem}\n{hint}" if hint else str(problem)
        raise Refused(printable(words)) from problem
    except GambitError as problem:
        raise click.ClickException(printable(str(problem))) from problem


def _modern(asked: Asked) -> Asked:
    """What is asked with its old name as it is asked with its new one.

    Raises:
        Refused: it is asked with both.
    """
    if asked.init is None:
        return asked
    if asked.context is not None:
        raise Refused("--init is the old name of --context: give one of them")
    click.echo("--init is deprecated: write --context", err=True)
    return msgspec.structs.replace(asked, context=asked.init, init=None)


def _run(asked: Asked) -> int:
    refuse_what_is_no_deck(asked.deck)
    context = context_from(asked.context)
    keeping = Keeping(asked)
    if keeping.is_chat and asked.responses is None:
        # A chat is gone on with as one, whatever the mode is otherwise.
        asked = msgspec.structs.replace(asked, responses=False)
    answering = Answering(asked, asked.deck)
    stage = Stage(asked)

    async def work() -> None:
        async with (
            keeping.opened() as store,
            answering.opened() as provider,
            open_runtime(
                provider,
                reader=DiskReader(),
                store=store,
                sinks=stage.sinks,
                options=answering.options,
            ) as runtime,
        ):
            await _show(runtime, asked, context, keeping=keeping, stage=stage)

    with stage.opened():
        code = run_until_stopped(work)
    code = code or stage.tell_end(is_kept=asked.store is not None)
    keeping.save(stage.ending.run_id, mode=answering.options.mode)
    stage.tell_how_to_go_on(asked.store)
    return code or answering.code


async def _show(
    runtime: Runtime,
    asked: Asked,
    context: JSONValue,
    *,
    keeping: Keeping,
    stage: Stage,
) -> None:
    async with (
        keeping.session(runtime) as session,
        session.stream(asked.message, context=context) as stream,
    ):
        async for event in stream:
            stage.show.feed(event)
    stage.finish(stream.result)
