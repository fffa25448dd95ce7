"""A runtime takes what a caller has: a provider, a name, or nothing at all."""

from pathlib import Path

import pytest

from gambit_actors import Price, RunOptions, ScriptedProvider, open_runtime
from gambit_actors.errors import RequestError, RunFailed
from gambit_actors.providers.recording import Recorder
from gambit_actors.providers.scripts import Reply
from gambit_actors.store.run_index import list_runs
from gambit_actors.trace.events import ModelCall
from gambit_actors.trace.sinks import MemorySink
from tests.settings.reading import read

HELLO = [Reply(text="Hello.", times=0)]


@pytest.fixture
def desk(tmp_path: Path) -> str:
    """A deck that names no model."""
    (tmp_path / "PROMPT.md").write_text(
        "+++\n[modelParams]\ntemperature = 0\n+++\n\nHi"
    )
    return str(tmp_path)


async def test_a_provider_is_all_it_takes(desk: str, tmp_path: Path) -> None:
    """Decks are read from the disk, and a store may be a folder."""
    runs, options = tmp_path / "runs", RunOptions(models=("any/model",))
    provider = ScriptedProvider(HELLO)
    async with open_runtime(provider, store=runs, options=options) as runtime:
        result = await runtime.run(desk, message="Hi.")
    assert result.text == "Hello."
    assert [run.run_id for run in list_runs(runs)] == [result.run_id]


@pytest.mark.parametrize(
    ("models", "asked"),
    [
        ("openai/gpt-5", "openai/gpt-5"),
        ("small", "ollama/llama3"),
        ("gemini/pro", "gemini/pro"),
    ],
)
async def test_a_model_is_asked_where_a_deck_names_none(
    desk: str, models: str, asked: str
) -> None:
    """By its name or by an alias; what it lacks ends the run with that."""
    settings = read('[models.aliases.small]\nmodel = "ollama/llama3"\n')
    sink = MemorySink()
    async with open_runtime(models, settings=settings, sinks=[sink]) as runtime:
        with pytest.raises(RunFailed):
            await runtime.run(desk, message="Hi.")
    assert [call.model for call in sink.of(ModelCall)] == [asked]


async def test_a_script_is_a_model_too(desk: str, tmp_path: Path) -> None:
    """By its file, where a deck names no model."""
    script = tmp_path / "hello.toml"
    script.write_text('[[replies]]\ntext = "Hello."\n')
    async with open_runtime(f"scripted/{script}", settings=read()) as runtime:
        result = await runtime.run(desk, message="Hi.")
    assert result.text == "Hello."


async def test_a_recording_answers_for_all_models(desk: str, tmp_path: Path) -> None:
    """By its file, without a provider and whatever decks name."""
    options = RunOptions(models=("any/model",))
    with (tmp_path / "r.jsonl").open("wb") as file:
        recorder = Recorder(ScriptedProvider(HELLO), file.write)
        async with open_runtime(recorder, options=options) as runtime:
            await runtime.run(desk, message="Hi.")
    async with open_runtime(f"replay:{file.name}", options=options) as runtime:
        assert (await runtime.run(desk, message="Hi.")).text == "Hello."


@pytest.mark.parametrize(
    ("text", "words"),
    [(None, "no.jsonl: No such file"), ("{}\n", "no.jsonl: line 1 of the recording")],
)
async def test_a_recording_that_is_none_is_refused(
    tmp_path: Path, text: str | None, words: str
) -> None:
    """Before anything is opened, with its name and line."""
    if text is not None:
        (tmp_path / "no.jsonl").write_text(text)
    with pytest.raises(RequestError, match=words):
        async with open_runtime(f"replay:{tmp_path / 'no.jsonl'}"):
            pass


async def test_a_server_is_asked_for_models_that_name_none(desk: str) -> None:
    """A name of a provider alone says whose models are meant."""
    sink, options = MemorySink(), RunOptions(models=("gpt-5",))
    async with open_runtime(
        "openai", settings=read(), sinks=[sink], options=options
    ) as runtime:
        with pytest.raises(RunFailed, match="OPENAI_API_KEY"):
            await runtime.run(desk, message="Hi.")
    assert [call.model for call in sink.of(ModelCall)] == ["openai/gpt-5"]


async def test_prices_and_mode_of_settings_hold_for_runs() -> None:
    """A caller's own prices count for more."""
    table = "input = 1\noutput = 2\n"
    text = f'[models.prices."a/b"]\n{table}[models.prices."c/d"]\n{table}'
    settings = read(text, {"GAMBIT_CHAT_FALLBACK": "1"})
    own = Price(input=5, output=5)
    options = RunOptions(prices={"c/d": own})
    async with open_runtime(settings=settings, options=options) as runtime:
        found = runtime.options
    assert found.prices == {"a/b": Price(input=1, output=2), "c/d": own}
    assert found.mode == "chat"


@pytest.mark.parametrize("models", ["opneai", "opneai/gpt-5", "gpt-5"])
async def test_a_name_that_is_none_is_refused(models: str) -> None:
    """Before anything is opened."""
    with pytest.raises(RequestError, match="is no model, alias or provider"):
        async with open_runtime(models, settings=read()):
            pass


async def test_a_slip_in_an_alias_is_told_with_the_alias(desk: str) -> None:
    """Also where the name is in the options, and the fallback would be asked for it."""
    settings = read('[models.aliases.writer]\nmodel = "openai/gpt-5"\n')
    with pytest.raises(RequestError, match=r"provider\. Did you mean writer\?"):
        async with open_runtime("wirter", settings=settings):
            pass
    options = RunOptions(models=("wirter",))
    async with open_runtime(settings=settings, options=options) as runtime:
        with pytest.raises(RunFailed) as failed:
            await runtime.run(desk, message="Hi.")
    assert str(failed.value).startswith(
        "openrouter/wirter cannot be asked: set OPENROUTER_API_KEY to your key; if it"
        " was to be an alias, did you mean 'writer'?"
    )


async def test_settings_and_a_provider_do_not_go_together() -> None:
    """One of them would do nothing."""
    with pytest.raises(RequestError, match="settings say nothing to a provider"):
        async with open_runtime(ScriptedProvider(HELLO), settings=read()):
            pass
