"""``gambit models`` tells what can be asked, and what is missing; never a key."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gambit_actors.cli.main import main
from tests.cli.providing import install_plugin, variables

TOML = """\
[providers]
fallback = "acme"
[providers.acme]
dialect = "chat"
base_url = "http://127.0.0.1:9/v1"
key_env = "ACME_KEY"
model = "large"
pace = { requests_per_minute = 60, most_at_once = 4, adaptive = false }
retries = { most = 0 }
[models.aliases.small]
model = ["tiny", "openai/gpt-5-mini"]
description = "Cheap."
[models.prices."openai/gpt-5-mini"]
input = 0.25
output = 2
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with settings; it is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gambit.toml").write_text(TOML)
    return tmp_path


def models(*arguments: str, **given: str) -> Result:
    """Run the command with these variables."""
    return CliRunner(env=variables(given)).invoke(main, ["models", *arguments])


def test_the_table_has_providers_aliases_and_prices(desk: Path) -> None:
    """In the words of settings, without a key."""
    result = models(OPENAI_API_KEY="sk-hush-hush")
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "openai openai set: OPENAI_API_KEY https://api.openai.com/v1" in lines
    assert (
        "acme chat no ACME_KEY http://127.0.0.1:9/v1 60 requests/min, at most 4 at once"
    ) in lines
    assert "Models that are named without a provider are acme's." in lines
    assert "small acme/tiny, openai/gpt-5-mini Cheap." in lines
    assert "acme/large unknown unknown set ACME_KEY to your key" in lines
    assert "openai/gpt-5-mini 0.25 2" in lines
    assert "hush" not in result.output


@pytest.mark.parametrize("columns", ["80", "200"])
def test_the_table_fits_a_terminal(desk: Path, columns: str) -> None:
    """What has no room beside the first columns is below them, and whole."""
    result = models(COLUMNS=columns)
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= int(columns)
    place = lines.index(next(line for line in lines if line.startswith("google")))
    url = "https://generativelanguage.googleapis.com/v1beta"
    assert "no GOOGLE_API_KEY or GEMINI_API_KEY" in lines[place]
    if columns == "80":
        assert lines[place + 1] == f"    {url}"
    else:
        assert lines[place].endswith(url)


def test_the_document_has_the_same(desk: Path) -> None:
    """For programs."""
    result = models("--json", GEMINI_API_KEY="sk-hush-hush")
    document = json.loads(result.stdout)
    assert document["version"] == 1
    assert (document["file"], document["fallback"]) == ("gambit.toml", "acme")
    providers = {one["name"]: one for one in document["providers"]}
    google = providers["google"]
    assert (google["key"], google["key_variable"]) == ("set", "GEMINI_API_KEY")
    assert providers["acme"]["lack"] == "set ACME_KEY to your key"
    (alias,) = document["aliases"]
    assert alias["models"] == ["acme/tiny", "openai/gpt-5-mini"]
    assert document["pings"] is None
    assert "hush" not in result.stdout


def test_a_ping_asks_each_model_for_a_word(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who answers is told with the time, who does not with the reason."""
    install_plugin(desk, monkeypatch)
    result = models("--ping", "pong/loud", "pong/quiet", "openai/x", "far/away")
    assert result.exit_code == 1
    answers = dict(
        line.split(maxsplit=1)
        for line in result.stdout.partition("ASKED")[2].splitlines()[1:]
    )
    assert answers["pong/loud"].endswith(" s")
    assert answers["pong/quiet"] == "overloaded"
    assert answers["openai/x"] == "set OPENAI_API_KEY to your key"
    assert answers["far/away"].startswith("there is no provider 'far'")
    assert models("--ping", "pong/loud", "--json").exit_code == 0


def test_a_ping_without_a_model_to_ask_says_so(desk: Path) -> None:
    """Nothing is made up."""
    result = models("--ping")
    assert result.exit_code == 0
    assert "No model to ask: name one" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("openai/x",), "add --ping"),
        (("--settings", "bad.toml"), "bad.toml:1:1: The file is not valid TOML"),
        (("--env-file", "bad.toml"), "bad.toml:1: this line is not NAME=value"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    desk: Path, arguments: tuple[str, ...], words: str
) -> None:
    """With exit code 2."""
    (desk / "bad.toml").write_text("?\n")
    result = models(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_variables_may_be_in_a_file(desk: Path) -> None:
    """Only where it is asked for."""
    (desk / ".env").write_text("ACME_KEY=sk-hush-hush\n")
    assert "no ACME_KEY" in models().stdout
    result = models("--env-file", ".env")
    assert "set: ACME_KEY" in " ".join(result.stdout.split())


@pytest.mark.slow
def test_help_takes_no_event_loop_and_no_http_client() -> None:
    """What is not wanted is not imported."""
    code = (
        "import sys\nfrom gambit_actors.cli.main import main\n"
        "try:\n    main(['models', '--help'])\nexcept SystemExit:\n    pass\n"
        "print(*({'trio', 'httpx', 'rich', 'msgspec'} & set(sys.modules)))"
    )
    shown = subprocess.check_output([sys.executable, "-c", code], encoding="utf-8")
    assert "--ping" in shown
    assert shown.splitlines()[-1] == ""
