"""``gambit resume``: go on with a run where its log ends.

Whoever has to be asked about calls in doubt is asked before anything is done; on a
terminal here, otherwise by what this prints and exit code 3.
"""

from collections.abc import Mapping

import msgspec

from gambit_actors.actors.runtime import open_runtime
from gambit_actors.actors.sessions import RunResult
from gambit_actors.cli.answering import Answering
from gambit_actors.cli.asking import Playing, refuse_another_deck
from gambit_actors.cli.doubting import (
    answers_by_key,
    answers_from,
    ask_about,
    can_ask,
    tell_doubts,
)
from gambit_actors.cli.open_calls import open_calls
from gambit_actors.cli.stage import WAITING, Stage
from gambit_actors.cli.stopping import run_until_stopped
from gambit_actors.cli.stored_runs import (
    found_run,
    refuse_damaged,
    worded,
)
from gambit_actors.errors import InDoubt
from gambit_actors.run.doubts import Answer
from gambit_actors.store.deck_files import DiskReader
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.store.run_index import ENDED, RunSummary
from gambit_actors.trace.live import LiveFeed


class AskedToResume(Playing, frozen=True, kw_only=True):
    """The options of ``gambit resume``, by their names."""

    run_id: str
    store: str
    message: str | None = None
    answer: tuple[str, ...] = ()
    deck: str | None = None


def resume_from_options(options: Mapping[str, object]) -> int:
    """Go on with the run that the command line names; gives the exit code."""
    asked = msgspec.convert(options, AskedToResume)
    with worded():
        run = found_run(asked.store, asked.run_id)
        refuse_damaged(run, asked.store)
        refuse_another_deck(asked.deck)
        return go_on_with(asked, run, answers_from(asked.answer))


def go_on_with(
    asked: AskedToResume, run: RunSummary, answers: dict[str, Answer]
) -> int:
    """Go on with a run, and ask about calls in doubt if that can be; the exit code.

    Raises:
        GambitError: it cannot be gone on with.
    """
    if answers:
        answers = answers_by_key(answers, open_calls(asked.store, run.run_id))
    while True:
        try:
            return _go_on(asked, run, answers)
        except InDoubt as problem:
            tell_doubts(problem, run.run_id, asked.store, is_asked=can_ask())
            if not can_ask():
                return WAITING
            answers = answers | ask_about(problem)


def _go_on(asked: AskedToResume, run: RunSummary, answers: Mapping[str, Answer]) -> int:
    has_answer = run.status in ENDED or run.status == "waiting"
    # Looked at now: without a model the run would go on to a failure.
    is_needed = asked.message is not None or not has_answer
    answering = Answering(asked, asked.deck or run.path, is_needed=is_needed)
    stage, feed = Stage(asked), LiveFeed()
    stage.sinks.append(feed)

    async def work() -> None:
        async with (
            DiskStore(asked.store, durability=asked.durability) as store,
            answering.opened() as provider,
            open_runtime(
                provider,
                reader=DiskReader(),
                store=store,
                sinks=stage.sinks,
                options=answering.options,
            ) as runtime,
        ):

            async def resume() -> RunResult:
                return await runtime.resume(
                    run.run_id,
                    message=asked.message,
                    answers=answers,
                    deck=asked.deck,
                )

            await stage.follow(feed, resume)

    with stage.opened():
        code = run_until_stopped(work)
    code = code or stage.tell_end(is_kept=True)
    stage.tell_how_to_go_on(asked.store)
    return code or answering.code
