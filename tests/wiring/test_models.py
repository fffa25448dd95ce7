"""Model servers are put together from settings, each when it is asked for."""

from pathlib import Path

import pytest
import trio

from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.providers.errors import PluginFailed, ProviderNotReady
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Reply
from gambit_actors.run.ports import ModelContext, ModelProvider
from gambit_actors.settings.plugins import provider_plugins
from gambit_actors.wiring.models import open_models
from gambit_actors.wiring.plugins import PluginSetup
from tests.settings.reading import read

CONTEXT = ModelContext(run_id="r", deck="d", turn=1, pass_number=1)

PLUGIN = """
import contextlib
import sys

import trio

from gambit_actors.errors import ProviderError
from gambit_actors.openresponses.events import MalformedEvent
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Reply


def provider(setup):
    words = f"{setup.name} knows {setup.environment.get('ACME')}"
    return ScriptedProvider([Reply(text=words, times=0)])


def broken(setup):
    raise RuntimeError("no licence")


def leaving(setup):
    raise SystemExit(3)


def telling(setup):
    raise RuntimeError("no licence for " + setup.environment["ACME_API_KEY"])


class Missing:
    @property
    def responses(self):
        raise KeyError("url")


def missing(setup):
    return Missing()


class Faulty:
    def __init__(self, setup):
        self.key = setup.environment.get("ACME_API_KEY")

    def responses(self, request, context, on_event):
        if request.model == "plain":
            return None
        return self.later(request.model, on_event)

    async def later(self, model, on_event):
        await trio.lowlevel.checkpoint()
        if model == "raise":
            raise KeyError("usage")
        if model == "exit":
            sys.exit(3)
        if model == "group":
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.later, "exit", on_event)
        if model == "key":
            raise ProviderError(f"bad key {self.key}")
        if model == "event":
            with contextlib.suppress(Exception):
                on_event({"type": "response.completed"})
        if model == "tell":
            on_event(MalformedEvent(reason="invalid_json", problem="", raw=""))
        if model == "wait":
            await trio.sleep_forever()


nothing = dict
"""


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """A package is installed that brings providers, not all of them good."""
    (tmp_path / "acme_plugin.py").write_text(PLUGIN)
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[gambit_actors.providers]\nacme = acme_plugin:provider\n"
        "broken = acme_plugin:broken\nnothing = acme_plugin:nothing\n"
        "leaving = acme_plugin:leaving\nmissing = acme_plugin:missing\n"
        "faulty = acme_plugin:Faulty\ntelling = acme_plugin:telling\n"
        "gone = acme_gone:provider\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return tuple(provider_plugins())


async def answer(provider: ModelProvider, model: str) -> str:
    """What a model says to nothing in particular."""
    request = CreateResponse(model=model, input="Hi.")
    response = await provider.responses(request, CONTEXT, lambda _event: None)
    return response.output_text


async def test_names_lead_to_providers() -> None:
    """By prefix, by alias, and by the fallback for what has neither."""
    text = '[models.aliases.small]\nmodel = "scripted/one"\n[providers]\nfallback = '
    scripted = ScriptedProvider([Reply(text="Hello.", times=0)])
    settings = read(text + '"scripted"\n')
    async with open_models(settings, scripted=scripted) as router:
        (small,) = router.candidates("small")
        assert small.model == "scripted/one"
        for model in ("scripted/one", small.model, "bare"):
            assert await answer(router, model) == "Hello."


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("openai/gpt-5", "OPENAI_API_KEY"),
        ("openresponses/m", "set OPENRESPONSES_BASE_URL to the address of a server"),
        ("opneai/gpt-5", "did you mean 'openai'?"),
        ("scripted/one", "give its replies with --script FILE, or name it after"),
    ],
)
async def test_what_is_missing_is_told_when_it_is_asked_for(
    model: str, words: str
) -> None:
    """A failure like any other of a provider, so that another model may be asked."""
    async with open_models(read()) as router:
        with pytest.raises(ProviderNotReady, match=words):
            await answer(router, model)


async def test_a_model_may_be_named_after_its_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has its own, from the current folder, in either form."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.toml").write_text(
        '[[replies]]\ntext = "One."\n[[replies]]\ntext = "Two."\n'
    )
    (tmp_path / "b.jsonl").write_text('{"text": "Three.", "times": 0}\n')
    async with open_models(read()) as router:
        models = ["scripted/in/a.toml", "scripted/b.jsonl", "scripted/in/a.toml"]
        models.append(f"scripted/{tmp_path}/b.jsonl")
        said = [await answer(router, model) for model in models]
    assert said == ["One.", "Three.", "Two.", "Three."]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no.toml", "there is no script no.toml, from the current folder"),
        ("bad.toml", "bad.toml is no script that can be read: line 1"),
        ("bytes.toml", "bytes.toml is no script that can be read: not readable"),
        ("folder.toml", "folder.toml is no script that can be read: Is a directory"),
    ],
)
async def test_a_script_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    """So that another model may be asked, as with any other failure."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.toml").write_text("[[replies\n")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    (tmp_path / "folder.toml").mkdir()
    async with open_models(read()) as router:
        with pytest.raises(ProviderNotReady, match=words):
            await answer(router, f"scripted/{name}")


@pytest.mark.usefixtures("plugins")
async def test_a_plugin_is_loaded_when_it_is_asked_for(
    plugins: tuple[str, ...],
) -> None:
    """And is told its name and the environment."""
    settings = read(plugins=plugins)
    async with open_models(settings, environment={"ACME": "all"}) as router:
        assert await answer(router, "acme/large") == "acme knows all"


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("broken/x", "the plugin broken cannot be used: it raised RuntimeError: no l"),
        ("nothing/x", "the plugin nothing cannot be used: it raised TypeError"),
        ("gone/x", "the plugin gone cannot be used: it raised ModuleNotFoundError"),
        ("leaving/x", "the plugin leaving cannot be used: it raised SystemExit: 3"),
        ("missing/x", "the plugin missing cannot be used: it raised KeyError: 'url'"),
        ("removed/x", "the plugin removed cannot be used: it is not installed"),
        ("telling/x", r"it raised RuntimeError: no licence for \[key\]"),
    ],
)
async def test_a_broken_plugin_is_one_clear_error(
    plugins: tuple[str, ...], model: str, words: str
) -> None:
    """Nobody else is in its way."""
    settings = read(plugins=(*plugins, "removed"))
    environment = {"ACME_API_KEY": "sk-1234567890"}
    async with open_models(settings, environment=environment) as router:
        with pytest.raises(ProviderNotReady, match=words):
            await answer(router, model)
        assert await answer(router, "acme/large") == "acme knows None"


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("plain", "its function responses is not async"),
        ("none", "it returned NoneType and not a Response"),
        ("raise", "it raised KeyError: 'usage'"),
        ("exit", "it raised SystemExit: 3"),
        ("group", "it raised SystemExit: 3"),
        ("key", r"bad key \[key\]"),
        ("event", "it handed over dict as an event"),
    ],
)
async def test_a_plugin_that_breaks_the_rules_is_one_clear_error(
    plugins: tuple[str, ...], model: str, words: str
) -> None:
    """It names the plugin, and is one after which another model may be asked."""
    environment = {"ACME_API_KEY": "sk-1234567890"}
    settings = read(plugins=plugins)
    async with open_models(settings, environment=environment) as router:
        with pytest.raises(PluginFailed, match=f"the plugin faulty .*: {words}"):
            await answer(router, f"faulty/{model}")


async def test_what_is_no_fault_of_a_plugin_passes_through_it(
    plugins: tuple[str, ...],
) -> None:
    """What is raised by who listens stays as it is, and being cancelled is no error."""

    def listen(_event: Event) -> None:
        raise OSError(28, "No space left on device")

    request = CreateResponse(model="faulty/tell", input="Hi.")
    async with open_models(read(plugins=plugins), environment={}) as router:
        with pytest.raises(OSError, match="No space left"):
            await router.responses(request, CONTEXT, listen)
        with trio.CancelScope() as scope:
            scope.cancel()
            await answer(router, "faulty/wait")
        assert scope.cancelled_caught


def test_what_a_plugin_is_given_prints_no_keys() -> None:
    """Plugins print what they are given, and the environment has keys in it."""
    setup = PluginSetup(name="acme", environment={"ACME_KEY": "sk-1234567890"})
    assert repr(setup) == "PluginSetup(name='acme', environment=<1 variables>)"
