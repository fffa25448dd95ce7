"""Asking models for next to nothing, to see that they can be asked."""

import sys
from collections.abc import Mapping, Sequence

import msgspec
import trio

from gambit_actors.cli.answering import opened_models
from gambit_actors.cli.stopping import run_until_stopped
from gambit_actors.errors import ProviderError
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.providers.concealing import Concealer
from gambit_actors.run.budgets import LEAST_OUTPUT
from gambit_actors.run.ports import ModelContext, ModelProvider
from gambit_actors.settings.environment import secrets_in
from gambit_actors.settings.model import Settings
from gambit_actors.settings.readiness import lacks_of

_SECONDS = 60.0


class Pinged(msgspec.Struct, frozen=True, kw_only=True):
    """A model that was asked.

    Attributes:
        alias: the name that it was asked by, if that is another.
        seconds: until its answer was whole.
        error: why there is no answer, in one sentence; None if there is.
    """

    model: str
    alias: str | None = None
    seconds: float
    error: str | None = None


def ping(
    settings: Settings, environment: Mapping[str, str], names: Sequence[str]
) -> list[Pinged]:
    """Ask the models that these names stand for for one word, all at once.

    Raises:
        SystemExit: a signal has ended it, which is all there is to tell then.
    """
    wanted = _wanted(settings, names)
    found: dict[str, Pinged] = {}
    conceal = Concealer(*secrets_in(environment)).text

    async def work() -> None:
        async with (
            opened_models(settings, environment) as router,
            trio.open_nursery() as nursery,
        ):
            for one in wanted:
                nursery.start_soon(_ask, router, one, found)

    if wanted and (code := run_until_stopped(work)):
        sys.exit(code)
    return [
        msgspec.structs.replace(answer, error=answer.error and conceal(answer.error))
        for one in wanted
        if (answer := found.get(one.model)) is not None
    ]


def _wanted(settings: Settings, names: Sequence[str]) -> list[Pinged]:
    """What is to be asked, each model once, with what keeps it from being asked."""
    wanted: dict[str, Pinged] = {}
    for name in names:
        alias = name if name in settings.aliases else None
        for model, lack in lacks_of(settings, name).items():
            one = Pinged(model=model, alias=alias, seconds=0.0, error=lack)
            wanted.setdefault(model, one)
    return list(wanted.values())


async def _ask(
    provider: ModelProvider, asked: Pinged, found: dict[str, Pinged]
) -> None:
    began, error = trio.current_time(), asked.error
    if error is None:
        error = f"there was no answer within {_SECONDS:g} seconds"
        with trio.move_on_after(_SECONDS):
            error = await _error_of(provider, asked.model)
    else:
        await trio.lowlevel.checkpoint()
    seconds = round(trio.current_time() - began, 3)
    found[asked.model] = msgspec.structs.replace(asked, seconds=seconds, error=error)


async def _error_of(provider: ModelProvider, model: str) -> str | None:
    request = CreateResponse(
        model=model, input="Say: yes", max_output_tokens=LEAST_OUTPUT, store=False
    )
    context = ModelContext(run_id="ping", deck="gambit models", turn=1, pass_number=1)
    try:
        response = await provider.responses(request, context, _ignore)
    except ProviderError as problem:
        return str(problem)  # noqa: ASYNC910  # as below
    except Exception as problem:  # noqa: BLE001  # the others have answers all the same
        kind = type(problem).__name__
        return f"its provider raised {kind}: {problem}"  # noqa: ASYNC910
    if response.status != "failed":  # One that is cut short is an answer, too.
        return None  # noqa: ASYNC910  # a provider has waited
    error = response.error
    return error.message if error else "it failed without a reason"  # noqa: ASYNC910


def _ignore(_event: object) -> None:
    """The words are of no interest."""
