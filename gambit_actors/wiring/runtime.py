"""A runtime with everything it takes, for a service or a script.

::

    async with open_runtime("openai", store="runs") as runtime:
        result = await runtime.run("decks/support", message="Where is my order?")
"""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec
import trio

from gambit_actors.actors import runtime as actors
from gambit_actors.actors.options import RunOptions
from gambit_actors.deck.reader import DeckReader
from gambit_actors.deck.tables import did_you_mean
from gambit_actors.errors import RequestError
from gambit_actors.run.ports import LogStore, ModelProvider
from gambit_actors.settings.finding import find_settings
from gambit_actors.settings.model import SCRIPTED, Settings
from gambit_actors.settings.presets import OTHER_NAMES
from gambit_actors.store.deck_files import DiskReader
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.trace.tracer import Sink
from gambit_actors.wiring.recording_files import recording_named, replayed


@asynccontextmanager
async def open_runtime(
    models: ModelProvider | str | None = None,
    *,
    reader: DeckReader | None = None,
    store: LogStore | str | os.PathLike[str] | None = None,
    sinks: Sequence[Sink] = (),
    options: RunOptions | None = None,
    settings: Settings | None = None,
) -> AsyncIterator[actors.Runtime]:
    """Open a runtime: once for a service, or for one run.

    Leaving it ends the processes that code was confined in, and closes what was opened
    for it. Entering waits for the disk, if there is a folder for logs.

    Args:
        models: what answers for models. A provider is asked for all of them, and so is
            a recording, such as ``replay:tests/support.jsonl``. The name of a server,
            such as ``openai``, is asked for those that are named without one; that of a
            model, such as ``openai/gpt-5``, where a deck names none. If not told, decks
            name them.
        reader: where decks are read from; the disk, if not told.
        store: where logs are kept, or a folder for them; in memory, and forgotten, if
            not told.
        sinks: where traces go.
        options: for all runs that bring none of their own. Prices and the mode of the
            settings are added to them.
        settings: which servers there are; if not told, the environment and the nearest
            ``gambit.toml`` in or above the current folder say so, wherever decks are.
            Of no use with a provider.

    Raises:
        InvalidSettings: the settings have mistakes.
        RequestError: there is no such server, model or recording; what was given is
            no provider, or are no options; or Trio is not running.
    """
    _check_trio()
    if options is None:
        options = RunOptions()
    async with AsyncExitStack() as stack:
        if isinstance(models, str) and (file := recording_named(models)) is not None:
            models = replayed(file)
        provider = models
        if models is None or isinstance(models, str):
            settings = settings or find_settings(os.environ)
            settings, options = _chosen(settings, options, models)
            # Late: a program that brings its own models needs no HTTP client.
            from gambit_actors.wiring.models import open_models  # noqa: PLC0415

            opened = open_models(settings, environment=os.environ)
            provider = await stack.enter_async_context(opened)
        elif settings is not None:
            raise RequestError("settings say nothing to a provider that is given")
        if isinstance(store, str | os.PathLike):
            store = await stack.enter_async_context(DiskStore(store))
        runtime = actors.open_runtime(
            provider,  # type: ignore[arg-type]  # what is neither text nor None is one
            reader=reader or DiskReader(),
            store=store,
            sinks=sinks,
            options=options,
        )
        yield await stack.enter_async_context(runtime)


def _check_trio() -> None:
    if not trio.lowlevel.in_trio_run():
        raise RequestError(
            "a runtime needs Trio and this is not in it: begin with trio.run, use "
            "run_sync, or from asyncio a thread with Trio in it"
        )


def _chosen(
    settings: Settings, options: RunOptions, models: str | None
) -> tuple[Settings, RunOptions]:
    """Settings and options as they are with the models that a caller names."""
    prices = {**settings.prices, **options.prices}
    mode = "chat" if settings.mode == "chat" else options.mode
    options = msgspec.structs.replace(options, prices=prices, mode=mode)
    if models is None:
        return settings, options
    servers = {*settings.servers, *settings.plugins, *OTHER_NAMES}
    if models in servers:
        return msgspec.structs.replace(settings, fallback=models), options
    prefix, slash, _ = models.partition("/")
    if models not in settings.aliases and not (
        slash and prefix in {*servers, SCRIPTED}
    ):
        guess = did_you_mean(models, {*settings.aliases, *servers})
        names = guess or f"Providers are {', '.join(sorted(servers))}."
        msg = f"{models!r} is no model, alias or provider. {names}"
        raise RequestError(msg)
    if not options.models:
        options = msgspec.structs.replace(options, models=(models,))
    return settings, options
