"""``gambit check`` holds the models of decks against settings, where there are some."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gambit_actors.cli.main import main

SETTINGS = """\
[providers.acme]
dialect = "chat"
base_url = "https://models.acme.example/v1"
key_env = "ACME_KEY"

[models.aliases.small]
model = "acme/mini"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder is an empty one, and nobody has set a key."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "ACME_KEY", "GAMBIT_CHAT_FALLBACK"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def deck(folder: Path, model: str) -> Path:
    """Write a deck that names a model, in TOML."""
    folder.mkdir(parents=True, exist_ok=True)
    text = f"+++\n[modelParams]\nmodel = {model}\n+++\n\nBe kind.\n"
    (folder / "PROMPT.md").write_text(text)
    (folder / "INTENT.md").touch()
    return folder


def check(*args: str) -> Result:
    """Run the command."""
    return CliRunner(env={"NO_COLOR": "1"}).invoke(main, ["check", *args])


@pytest.mark.parametrize(
    ("model", "words", "hint"),
    [
        ("acem/mini", "there is no provider 'acem'", "Did you mean acme?"),
        ("smal", "'smal' is no alias", "Did you mean small?"),
        ("far/away", "there is no provider 'far'", "There are acme, anthropic"),
    ],
)
def test_a_model_that_no_settings_know_is_warned_of(
    here: Path, model: str, words: str, hint: str
) -> None:
    """With its place, and what was meant or there is; it is a warning, no error."""
    (here / "gambit.toml").write_text(SETTINGS)
    deck(here / "desk", f'"{model}"')
    result = check(".")
    assert result.exit_code == 0
    assert "warning[GD017]" in result.stdout
    assert f"modelParams.model: {words}" in result.stdout
    assert hint in result.stdout
    assert "desk/PROMPT.md:3:9" in result.stdout
    assert check("--strict", ".").exit_code == 1


@pytest.mark.parametrize(
    "model",
    [
        '"acme/mini"',
        '"small"',
        '"openai/gpt-5"',
        '"gemini/gemini-2.5-flash"',
        '"scripted/one"',
        '"gpt-5"',
        '["small", "ollama/llama3.2"]',
        "[1]",
    ],
)
def test_what_can_be_asked_is_not_warned_of(here: Path, model: str) -> None:
    """Also without a key, which is not the deck's to have."""
    (here / "gambit.toml").write_text(SETTINGS)
    deck(here / "desk", model)
    assert "GD017" not in check(".").stdout


def test_each_model_of_a_list_has_its_place(here: Path) -> None:
    """The one that is wrong is pointed at."""
    (here / "gambit.toml").write_text(SETTINGS)
    deck(here / "desk", '["small", "acem/mini"]')
    result = check(".")
    assert result.stdout.count("GD017") == 1
    assert "desk/PROMPT.md:3:19" in result.stdout


def test_without_a_fallback_a_name_has_to_be_an_alias(here: Path) -> None:
    """Nobody else could be asked for it."""
    (here / "gambit.toml").write_text('[providers]\nfallback = "none"\n')
    deck(here / "desk", '"gpt-5"')
    assert "Write PROVIDER/gpt-5, such as openai/gpt-5." in check(".").stdout


def test_without_settings_models_are_not_looked_at(here: Path) -> None:
    """Nobody knows what there is to be."""
    deck(here / "desk", '"acem/mini"')
    result = check("--strict", ".")
    assert (result.exit_code, result.stdout.split(":")[0]) == (0, "All good")


def test_settings_can_be_given_from_elsewhere(here: Path) -> None:
    """Then they hold for all decks, whatever lies above them."""
    (here / "gambit.toml").write_text("")
    (here / "other").mkdir()
    (here / "other" / "mine.toml").write_text(SETTINGS)
    deck(here / "desk", '"acme/mini"')
    assert "GD017" in check("desk").stdout
    assert "GD017" not in check("--settings", "other/mine.toml", "desk").stdout


def test_each_deck_has_the_settings_above_it(here: Path) -> None:
    """Also decks that are found together, and those that others refer to."""
    (here / "a").mkdir()
    (here / "a" / "gambit.toml").write_text(SETTINGS)
    deck(here / "a" / "desk", '"acem/mini"')
    deck(here / "b", '"acem/mini"')
    (here / "top").mkdir()
    (here / "top" / "PROMPT.md").write_text(
        '+++\n[[graders]]\npath = "../a/desk/PROMPT.md"\n+++\n\nBe kind.\n'
    )
    (here / "top" / "INTENT.md").touch()
    result = check(".")
    assert result.stdout.count("GD017") == 1
    assert "a/desk/PROMPT.md:3:9" in result.stdout
    assert check("top/PROMPT.md").stdout.count("GD017") == 1


def test_mistakes_in_settings_are_found_too(here: Path) -> None:
    """Each once, with its place, however many decks there are."""
    (here / "gambit.toml").write_text('[providers]\nfallback = "acem"\n')
    deck(here / "a", '"openai/gpt-5"')
    deck(here / "b", '"openai/gpt-5"')
    result = check(".")
    assert result.exit_code == 1
    assert result.stdout.count("GD012") == 1
    assert "gambit.toml:2:12" in result.stdout


def test_settings_that_cannot_be_read_are_one_sentence(here: Path) -> None:
    """And not a traceback."""
    (here / "gambit.toml").write_bytes(b"\xff")
    deck(here / "a", '"openai/gpt-5"')
    result = check(".")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "gambit.toml is not UTF-8 text" in result.stderr
