"""A gambit.toml becomes settings, or every mistake in it with its place."""

from pathlib import Path

import pytest

from gambit_actors.errors import InvalidSettings
from gambit_actors.providers.endpoints import Pace, Retries, Timeouts
from gambit_actors.run.budgets import Price
from gambit_actors.settings.finding import (
    environment_from_file,
    find_settings,
    prices_from_file,
)
from tests.settings.reading import read, refusal

ACME = """\
[providers]
fallback = "acme"

[providers.acme]
dialect = "chat"
flavour = "openai"
base_url = "https://models.acme.test/v1/"
key_env = "ACME_KEY"
headers = { X-Team = "desk" }
history = "kept"
stream = false
model = "large"
timeouts = { connect = 2, idle = 30 }
retries = { most = 5 }
pace = { requests_per_minute = 60, most_at_once = 4, adaptive = false }
"""


def test_a_server_is_what_its_table_says() -> None:
    """Every key has its effect, and what is not said is as it is without."""
    settings = read(ACME, {"ACME_KEY": "k-1"})
    acme = settings.servers["acme"]
    assert settings.fallback == "acme"
    assert (acme.dialect, acme.flavour) == ("chat", "openai")
    assert acme.base_url == "https://models.acme.test/v1"
    assert acme.key is not None
    assert (acme.key.reveal(), acme.key.source) == ("k-1", "ACME_KEY")
    assert acme.headers == {"x-team": "desk"}
    assert (acme.history, acme.streams, acme.model) == ("kept", False, "large")
    assert acme.timeouts == Timeouts(connect=2, idle=30)
    assert acme.retries == Retries(most=5)
    assert acme.pace == Pace(requests_per_minute=60, most_at_once=4, is_adaptive=False)
    assert acme.lack is None
    assert read(ACME).servers["acme"].lack == "set ACME_KEY to your key"


def test_a_known_server_keeps_what_its_table_does_not_say() -> None:
    """A table may be about one thing."""
    text = '[providers.openai]\nretries = { most = 0 }\nkey_env = "OTHER"\n'
    openai = read(text, {"OTHER": "k-2", "OPENAI_API_KEY": "k-1"}).servers["openai"]
    assert openai.base_url == "https://api.openai.com/v1"
    assert openai.retries.most == 0
    assert openai.key is not None
    assert openai.key.source == "OTHER"


@pytest.mark.parametrize("name", ["ollama", "openrouter"])
def test_a_flavour_is_of_one_dialect(name: str) -> None:
    """A known server that is to speak another dialect keeps none of the first."""
    text = f'[providers.{name}]\ndialect = "openresponses"\n'
    assert read().servers[name].flavour == name
    assert read(text).servers[name].flavour is None
    told = read('[providers.openrouter]\ndialect = "chat"\nflavour = "vllm"\n')
    assert told.servers["openrouter"].flavour == "vllm"


def test_a_server_with_a_model_has_a_name_for_it() -> None:
    """``openresponses/NAME`` is the model of the server of that name."""
    text = (
        '[providers.desk]\ndialect = "openresponses"\n'
        'base_url = "http://localhost:8000"\nmodel = "m-1"\n'
    )
    assert read(text).aliases["openresponses/desk"].models == ("desk/m-1",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[providers\n", "gambit.toml:1:11: The file is not valid TOML"),
        (
            '[provider]\nfallback = "x"\n',
            "gambit.toml:1:2: provider is not a known key. Did you mean providers?",
        ),
        (
            '[providers]\nfallback = "opanai"\n',
            (
                'gambit.toml:2:12: providers.fallback is "opanai", and there is no such'
                ' provider; "none" is for none. Did you mean openai?'
            ),
        ),
        ('[providers.a]\ndialect = "chat"\n', ":1:1: [providers.a] needs a base_url."),
        (
            '[providers.a]\nbase_url = "http://x"\n',
            ":1:1: [providers.a] needs a dialect.",
        ),
        (
            '[providers.openai]\nbase_ulr = "http://x"\n',
            ":2:1: providers.openai.base_ulr is not a known key. Did you mean base_ur",
        ),
        (
            '[providers.openai]\ndialect = "responses"\n',
            ':2:11: providers.openai.dialect is "responses"; it can be "openresponses"',
        ),
        (
            '[providers.openai]\nbase_url = "http://me:pw@x"\n',
            ":2:12: providers.openai.base_url is no base URL",
        ),
        (
            '[providers.openai]\nbase_url = "http://a:99999/v1"\n',
            ":2:12: providers.openai.base_url is no base URL",
        ),
        (
            "[providers.openai]\ntimeouts = { idle = 0 }\n",
            "providers.openai.timeouts.idle is 0; it must be at least 0.001",
        ),
        (
            "[providers.openai]\nretries = { mst = 1 }\n",
            "2:13: providers.openai.retries.mst is not a known key. Did you mean most?",
        ),
        (
            "[providers.openai]\npace = { is_adaptive = true }\n",
            (
                "providers.openai.pace.is_adaptive is not a known key."
                " Did you mean adaptive?"
            ),
        ),
        (
            '[providers.anthropic]\nflavour = "openai"\n',
            (
                "providers.anthropic.flavour is none of the dialect anthropic, which"
                " has none."
            ),
        ),
        (
            '[providers.openai]\nthinking = "adaptive"\n',
            (
                ":2:12: providers.openai.thinking is for the dialect anthropic, and"
                " this server speaks openai."
            ),
        ),
        (
            '[providers.anthropic]\nthinking = "deep"\n',
            (
                ':2:12: providers.anthropic.thinking is "deep"; it can be "budget",'
                ' "adaptive".'
            ),
        ),
        (
            '[providers.anthropic]\nbetas = ["a,b"]\n',
            'providers.anthropic.betas: "a,b" is no name that a header can carry.',
        ),
        (
            "[providers.anthropic]\nmax_tokens = 0\n",
            "providers.anthropic.max_tokens is 0; it must be at least 1.",
        ),
        (
            '[providers.openai]\nheaders = { "a b" = "c" }\n',
            "providers.openai.headers.a b is no header that can be sent",
        ),
        ("[providers.gemini]\n", 'providers."gemini" is called providers.google here.'),
        ("[providers.scripted]\n", "is the scripted model, which has no settings."),
        (
            "[models.aliases.big]\n",
            "gambit.toml:1:1: [models.aliases.big] needs a model",
        ),
        (
            '[models.aliases.a]\nmodel = "b"\n[models.aliases.b]\nmodel = ["x", "a"]',
            "models.aliases.a leads back to itself.",
        ),
        (
            '[models.aliases."a/b"]\nmodel = "c/d"\n',
            'models.aliases."a/b" is no alias: a name with a slash is that of a model.',
        ),
        (
            '[models.aliases.a]\nmodel = "b/c"\ntemprature = 1\n',
            (
                ":3:1: models.aliases.a.temprature is not a known key. Did you mean"
                " temperature?"
            ),
        ),
        (
            '[models.prices."a/b"]\ninput = 1\n',
            "The price of a/b needs output, for a million tokens.",
        ),
        (
            '[models.prices."a/b"]\ninput = -1\noutput = 1\n',
            "it must be at least 0.",
        ),
        (
            '[models]\nprices = "p.toml"\n',
            ":2:10: models.prices: p.toml cannot be read",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, words: str) -> None:
    """File, line, column, what is wrong, and what was meant if that can be guessed."""
    assert words in refusal(text)


@pytest.mark.parametrize(
    "line",
    [
        'api_key = "sk-hush"',
        'key = "sk-hush"',
        'token = "sk-hush"',
        'key_env = "sk-hush"',
        'headers = { Authorization = "sk-hush" }',
        'headers = { x-api-key = "sk-hush" }',
    ],
)
def test_a_key_in_a_file_is_refused_and_not_repeated(line: str) -> None:
    """The sentence says where a key belongs."""
    words = refusal(f"[providers.openai]\n{line}\n")
    assert words.startswith("gambit.toml:2:")
    assert "put it into a variable, and name that one with key_env" in words
    assert "hush" not in words


def test_all_mistakes_are_told_at_once() -> None:
    """Each is a diagnostic, too."""
    text = '[providers.openai]\nstream = 1\n[models]\nprice = "x"\n'
    with pytest.raises(InvalidSettings) as raised:
        read(text)
    assert [d.line for d in raised.value.diagnostics] == [2, 4]


def test_tables_of_other_programs_are_left_alone() -> None:
    """Gambit has sections of its own in this file."""
    text = '[workspace]\ndecks = "d"\n[execution]\nworker_sandbox = true\n'
    assert read(text).file == "gambit.toml"


def test_an_alias_stands_for_models_with_settings() -> None:
    """The keys of [modelParams] may stand beside the model or under params."""
    text = """\
[models.aliases.small]
model = ["openai/gpt-5-mini", "ollama/llama3"]
description = "Cheap."
temperature = 0.5
[models.aliases.small.params]
temperature = 0.1
max_tokens = 99
[models.aliases.small.additionalParams]
seed = 7
"""
    small = read(text).aliases["small"]
    assert small.models == ("openai/gpt-5-mini", "ollama/llama3")
    assert small.description == "Cheap."
    assert small.params.temperature == 0.5
    assert small.params.max_output_tokens == 99
    assert small.params.extra == {"seed": 7}


def test_prices_are_tables_or_a_file_of_them() -> None:
    """Both say the same."""
    table = "input = 1.25\noutput = 10\ncached_input = 0.125\n"
    want = {"openai/gpt-5": Price(input=1.25, output=10, cached_input=0.125)}
    assert read(f'[models.prices."openai/gpt-5"]\n{table}').prices == want
    beside = {"p.toml": f'["openai/gpt-5"]\n{table}'}
    assert read('[models]\nprices = "p.toml"\n', beside=beside).prices == want


@pytest.mark.parametrize(
    "text", [ACME, '[models.prices."a/b"]\ninput = 0\noutput = 0\n']
)
def test_a_file_of_somebody_else_says_not_who_gets_keys(text: str) -> None:
    """Neither where models are asked, nor what a budget is reckoned with."""
    with pytest.raises(InvalidSettings, match="name the file with --settings"):
        read(text, is_own=False)
    alias = '[models.aliases.small]\nmodel = "openai/gpt-5"\n'
    assert read(alias, is_own=False).aliases["small"].models == ("openai/gpt-5",)


def test_a_plugin_may_be_the_fallback() -> None:
    """Its name is enough; its code is not asked."""
    text = '[providers]\nfallback = "acme"\n'
    assert read(text, plugins=("acme",)).fallback == "acme"
    assert read('[providers]\nfallback = "none"\n').fallback is None


def test_the_nearest_file_above_a_deck_is_read(tmp_path: Path) -> None:
    """One in the current folder or above it is the user's own, another is not."""
    (tmp_path / "gambit.toml").write_text(ACME)
    (tmp_path / "decks" / "a").mkdir(parents=True)
    (tmp_path / "decks" / "a" / "PROMPT.md").write_text("Hi.")
    deck = "decks/a/PROMPT.md"
    found = find_settings({}, deck=deck, folder=tmp_path)
    assert found.file == "gambit.toml"
    assert "acme" in found.servers
    assert "acme" in find_settings({}, folder=tmp_path / "decks").servers

    (tmp_path / "decks" / "gambit.toml").write_text(ACME)
    with pytest.raises(InvalidSettings, match=r"decks/gambit\.toml:4:1"):
        find_settings({}, deck=deck, folder=tmp_path)
    named = find_settings(
        {}, deck=deck, folder=tmp_path, file=tmp_path / "decks" / "gambit.toml"
    )
    assert "acme" in named.servers


def test_a_link_does_not_make_a_file_ones_own(tmp_path: Path) -> None:
    """What counts is where the file is."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "gambit.toml").write_text(ACME)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "gambit.toml").symlink_to("../theirs/gambit.toml")
    with pytest.raises(InvalidSettings, match="is not taken from a file"):
        find_settings({}, folder=tmp_path / "mine")


def test_files_that_cannot_be_read_are_one_sentence(tmp_path: Path) -> None:
    """Whether they are not there or no text."""
    none = tmp_path / "none"
    for read_it in (
        lambda: find_settings({}, file=none),
        lambda: prices_from_file(none),
        lambda: environment_from_file(none, {}),
    ):
        with pytest.raises(InvalidSettings, match="none cannot be read: No such file"):
            read_it()
    (tmp_path / "gambit.toml").write_bytes(b"\xff")
    with pytest.raises(InvalidSettings, match="is not UTF-8 text"):
        find_settings({}, folder=tmp_path)


def test_variables_that_are_set_count_for_more_than_a_file(tmp_path: Path) -> None:
    """A file fills in what is missing."""
    (tmp_path / ".env").write_text("A=file\nB=file\n")
    found = environment_from_file(tmp_path / ".env", {"A": "set"})
    assert found == {"A": "set", "B": "file"}


def test_an_alias_for_nothing_is_named_as_it_is_written() -> None:
    """A key of gambit.toml is not called by the name that it would have in a deck."""
    assert refusal("[models.aliases.writer]\nmodel = []\n") == (
        "gambit.toml:2:9: models.aliases.writer.model is an empty list; name a model."
    )


def test_an_alias_that_comes_to_too_many_names_is_refused_with_its_line() -> None:
    """The first one, as those that lead to it are no better."""
    chain = "".join(f'a{i} = {{ model = "a{i + 1}" }}\n' for i in range(3000))
    ways = ""
    for i in range(30):
        ways += f'a{i} = {{ model = ["b{i}", "c{i}"] }}\n'
        for name, key in ((f"b{i}", "x"), (f"c{i}", "y")):
            ways += (
                f'{name} = {{ model = "a{i + 1}", additionalParams.{key}{i} = 1 }}\n'
            )
    for text in (chain, ways):
        words = refusal("[models.aliases]\n" + text)
        assert words.startswith("gambit.toml:2:6: models.aliases.a0 comes to more than")
        assert "\n" not in words


def test_a_file_may_begin_with_a_mark_and_end_its_lines_in_any_way(
    tmp_path: Path,
) -> None:
    """As editors on Windows write it; places are told as they are shown there."""
    file = tmp_path / "gambit.toml"
    text = b'\xef\xbb\xbf[models.aliases.a]\r\nmodel = "openai/x"\r\n'
    file.write_bytes(text)
    assert find_settings({}, folder=tmp_path).aliases["a"].models == ("openai/x",)
    file.write_bytes(text + b"oops = 1\r\n")
    with pytest.raises(InvalidSettings, match=r"^gambit\.toml:3:1: models\.aliases\.a"):
        find_settings({}, folder=tmp_path)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (None, "is a folder, and settings are a file"),
        ("gambit.toml", "is a link that leads to no file"),
        ("gone.toml", "is a link that leads to no file"),
    ],
)
def test_what_has_the_name_of_settings_and_is_no_file_is_told(
    tmp_path: Path, target: str | None, words: str
) -> None:
    """It is meant for settings, and so not passed over."""
    path = tmp_path / "gambit.toml"
    if target is None:
        path.mkdir()
    else:
        path.symlink_to(target)
    (tmp_path / "deck").mkdir()
    with pytest.raises(InvalidSettings, match=words) as raised:
        find_settings({}, folder=tmp_path, deck="deck")
    assert str(raised.value).startswith(str(path))
