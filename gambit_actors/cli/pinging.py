"""Asking models for next to nothing, to see that they can be asked."""

from collections.abc import Mapping, Sequence

import msgspec
import trio

from gambit_actors.cli.answering import opened_models
from gambit_actors.cli.stopping import run_until_stopped
from gambit_actors.errors import ProviderError
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.run.budgets import LEAST_OUTPUT
from gambit_actors.run.ports import ModelContext, ModelProvider
from gambit_actors.settings.model import Settings
from gambit_actors.settings.readiness import lack_of

_SECONDS = 60.0


class Pinged(msgspec.Struct, frozen=True, kw_only=True):
    """A model that was asked.

    Attributes:
        seconds: until its answer was whole.
        error: why there is no answer, in one sentence; None if there is.
    """

    model: str
    seconds: float
    error: str | None = None


def ping(
    settings: Settings, environment: Mapping[str, str], models: Sequence[str]
) -> list[Pinged]:
    """Ask each of these models for one word, all at once.

    Raises:
        RequestError: the settings name a proxy that is none.
    """
    found: dict[str, Pinged] = {}

    async def work() -> None:
        async with (
            opened_models(settings, environment) as router,
            trio.open_nursery() as nursery,
        ):
            for model in models:
                nursery.start_soon(_ask, router, model, lack_of(settings, model), found)

    if models:
        run_until_stopped(work)
    return [found[model] for model in models if model in found]


async def _ask(
    provider: ModelProvider, model: str, lack: str | None, found: dict[str, Pinged]
) -> None:
    began, error = trio.current_time(), lack
    if lack is None:
        error = f"there was no answer within {_SECONDS:g} seconds"
        with trio.move_on_after(_SECONDS):
            error = await _error_of(provider, model)
    else:
        await trio.lowlevel.checkpoint()
    seconds = trio.current_time() - began
    found[model] = Pinged(model=model, seconds=round(seconds, 3), error=error)


async def _error_of(provider: ModelProvider, model: str) -> str | None:
    request = CreateResponse(
        model=model, input="Say: yes", max_output_tokens=LEAST_OUTPUT, store=False
    )
    context = ModelContext(run_id="ping", deck="gambit models", turn=1, pass_number=1)
    try:
        response = await provider.responses(request, context, _ignore)
    except ProviderError as problem:
        return str(problem)  # noqa: ASYNC910  # as below
    if response.status != "failed":  # One that is cut short is an answer, too.
        return None  # noqa: ASYNC910  # a provider has waited
    error = response.error
    return error.message if error else "it failed without a reason"  # noqa: ASYNC910


def _ignore(_event: object) -> None:
    """The words are of no interest."""
