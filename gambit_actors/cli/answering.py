"""What answers for the models of a run that the command line asks for.

A script, a recording, or model servers as the environment and gambit.toml have them.
What is missing is told before anything is run.
"""

import contextlib
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gambit_actors.actors.options import RunOptions
from gambit_actors.cli.asking import Playing, prices_from, script_from
from gambit_actors.cli.flow import printable
from gambit_actors.cli.recording_files import RecordingFile
from gambit_actors.cli.refusing import Refused
from gambit_actors.deck.loader import load_deck
from gambit_actors.errors import RequestError
from gambit_actors.providers.concealing import Concealer
from gambit_actors.providers.recording import Recorder
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.run.ports import ModelProvider
from gambit_actors.settings.environment import flags_from
from gambit_actors.settings.finding import (
    environment_from_file,
    find_settings,
    prices_from_file,
)
from gambit_actors.settings.model import Settings
from gambit_actors.settings.readiness import lacks_of, unknown_in
from gambit_actors.store.deck_files import DiskReader
from gambit_actors.wiring.recording_files import recording_named, replayed
from gambit_actors.wiring.script_files import fault_of_script

if TYPE_CHECKING:
    from gambit_actors.providers.router import Router

_ANY_MODEL = "scripted/model"
_A_SCRIPT = """\
Or write down what the model says, and give it with --script FILE.toml:
  [[replies]]
  text = "Hello."
All that can be in one is in docs/reference/scripted.md."""
_A_PROVIDER = """\
If it is a server of yours, say in gambit.toml where it is:
  [providers.{name}]
  dialect = "chat"
  base_url = "http://localhost:8000/v1"
All that can be in there is in docs/reference/settings.md."""
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Answering:
    """What answers, as it was asked for.

    Args:
        asked: how.
        deck: whose models are looked at.
        is_needed: whether a model may be asked at all.

    Attributes:
        options: what the runtime is told.
        code: what a shell is told of the recording: 1 if it is not whole, otherwise 0.

    Raises:
        InvalidDeck: the deck has mistakes.
        InvalidSettings: the settings have.
        Refused: the deck's models cannot be asked, or a file is not what it should be.
    """

    def __init__(self, asked: Playing, deck: str, *, is_needed: bool = True) -> None:
        asked = self._asked = _with_recording(asked)
        self.code = 0
        self._environment = environment_of(asked.env_file)
        self._settings = Settings()
        self._provider = self._stand_in(asked, is_needed=is_needed)
        if self._provider is None:
            self._settings = find_settings(
                self._environment,
                deck=deck,
                file=asked.settings,
                responses=asked.responses,
            )
        self.options = self._options(asked)
        if self._provider is None:
            self._check_models(deck)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[ModelProvider]:
        """Have what answers; it is recorded if that was asked for."""
        async with contextlib.AsyncExitStack() as stack:
            provider = self._provider
            if provider is None:
                opened = opened_models(self._settings, self._environment)
                provider = await stack.enter_async_context(opened)
            if self._asked.record is not None:
                provider = stack.enter_context(self._recorded(provider))
            yield provider

    @contextmanager
    def _recorded(self, provider: ModelProvider) -> Iterator[Recorder]:
        """Write down what a provider answers."""
        asked = self._asked
        assert asked.record is not None  # noqa: S101  # looked at before
        file = RecordingFile(asked.record, is_added=asked.record_append)
        keys = (server.key for server in self._settings.servers.values())
        recorder = Recorder(provider, file.write, conceal=Concealer(*keys).bytes)
        try:
            yield recorder
        finally:
            if not file.close(has_answers=recorder.has_answers):
                self.code = 1

    def _stand_in(self, asked: Playing, *, is_needed: bool) -> ModelProvider | None:
        if asked.script is not None and asked.replay is not None:
            raise Refused("--script and --replay both say what models answer: give one")
        if asked.replay_timed and asked.replay is None:
            raise Refused("--replay-timed says how to --replay: give that, too")
        if asked.record_append and asked.record is None:
            raise Refused("--record-append says how to --record: give that, too")
        if asked.replay is not None and _is_same_file(asked.replay, asked.record):
            raise Refused("--replay and --record name the same file: give another")
        if asked.script is not None:
            return ScriptedProvider(script_from(Path(asked.script)))
        if asked.replay is not None:
            try:
                return replayed(Path(asked.replay), is_timed=asked.replay_timed)
            except RequestError as problem:
                raise Refused(printable(str(problem))) from problem
        return None if is_needed else ScriptedProvider([])

    def _options(self, asked: Playing) -> RunOptions:
        if asked.model is not None and asked.model_force is not None:
            raise Refused("--model and --model-force both name a model: give one")
        model = asked.model_force or asked.model
        if model is None and self._provider is not None:
            model = _ANY_MODEL
        mode = self._settings.mode
        if self._provider is not None:
            mode = flags_from(self._environment, responses=asked.responses).mode
        prices = dict(self._settings.prices)
        if asked.prices is not None:
            prices |= prices_from_file(asked.prices)
        return RunOptions(
            unconfined=frozenset(asked.unconfined),
            models=() if model is None else (model,),
            forces_models=asked.model_force is not None,
            mode=mode,
            limits=asked.limits,
            prices=prices | prices_from(asked.price),
        )

    def _check_models(self, deck: str) -> None:
        """Refuse to begin where the first deck has no model that can be asked."""
        options = self.options
        named = load_deck(DiskReader(), deck).usable().model_params.models
        if options.forces_models or not named:
            named = options.models
        lacks: dict[str, str | None] = {}
        for one in named:
            lacks |= lacks_of(self._settings, one)
        lacks = {model: lack or fault_of_script(model) for model, lack in lacks.items()}
        if not lacks or None in lacks.values():
            return
        words = [f"{model} cannot be asked: {lack}" for model, lack in lacks.items()]
        raise Refused(printable("\n".join([*words, *self._advice(list(lacks))])))

    def _advice(self, models: Sequence[str]) -> Iterator[str]:
        """What to do about models that cannot be asked, beyond what is said of each."""
        for model in models:
            unknown = unknown_in(self._settings, model)
            if unknown is not None:
                name = model.partition("/")[0]
                if unknown.guess is None and _BARE_KEY.fullmatch(name):
                    yield _A_PROVIDER.format(name=name)
                return
        if not all(map(fault_of_script, models)):
            yield _A_SCRIPT


def opened_models(
    settings: Settings, environment: Mapping[str, str]
) -> contextlib.AbstractAsyncContextManager["Router"]:
    """Have the model servers of settings."""
    # Late, because it takes an HTTP client, and most commands do without.
    from gambit_actors.wiring.models import open_models

    return open_models(settings, environment=environment)


def environment_of(env_file: str | None) -> Mapping[str, str]:
    """The environment, with what a file adds to it.

    Raises:
        InvalidSettings: the file is none of variables.
    """
    if env_file is None:
        return os.environ
    return environment_from_file(env_file, os.environ)


def _is_same_file(one: str, other: str | None) -> bool:
    return other is not None and os.path.realpath(one) == os.path.realpath(other)


def _with_recording(asked: Playing) -> Playing:
    """The options with a recording that was named as a model in its own place."""
    file = recording_named(asked.model_force or asked.model or "")
    if file is None:
        return asked
    if asked.replay is not None:
        raise Refused("--replay and the model both name a recording: give one")
    return msgspec.structs.replace(
        asked, replay=str(file), model=None, model_force=None
    )
