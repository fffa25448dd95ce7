"""``gambit models`` tells what can be asked, and what is missing; never a key."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner, Result
from trio.testing import MockClock

from gambit_actors.cli import pinging
from gambit_actors.cli.main import main
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response, ResponseError
from gambit_actors.run.ports import ModelContext
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
    assert "openai set: OPENAI_API_KEY https://api.openai.com/v1 openai" in lines
    assert (
        "acme no ACME_KEY http://127.0.0.1:9/v1 chat 60 requests/min, at most 4 at once"
    ) in lines
    assert "Models that are named without a provider are acme's." in lines
    assert "small acme/tiny, openai/gpt-5-mini Cheap." in lines
    assert "acme/large unknown unknown set ACME_KEY to your key" in lines
    assert "openai/gpt-5-mini 0.25 2" in lines
    assert "hush" not in result.output


def test_a_provider_is_one_line_of_a_terminal(desk: Path) -> None:
    """Where there is no room for all of it, what is most asked for is shown."""
    result = models(COLUMNS="80")
    assert max(map(len, result.stdout.splitlines())) <= 80
    providers, _, _ = result.stdout.partition("Models that are named")
    assert [line.split() for line in providers.splitlines()] == [
        ["PROVIDER", "KEY", "BASE", "URL"],
        ["openai", "no", "OPENAI_API_KEY", "api.openai.com/v1"],
        ["openrouter", "no", "OPENROUTER_API_KEY", "openrouter.ai/api/v1"],
        ["anthropic", "no", "ANTHROPIC_API_KEY", "api.anthropic.com/v1"],
        ["google", "no", "GOOGLE_API_KEY", "generativelanguage.googleapis.com/v1beta"],
        ["ollama", "none", "needed", "http://localhost:11434/v1"],
        ["openresponses", "none", "needed", "set", "OPENRESPONSES_BASE_URL"],
        ["acme", "no", "ACME_KEY", "http://127.0.0.1:9/v1"],
    ]
    assert result.stderr == "There is no room for all of it here: --json has that.\n"
    wide = models(COLUMNS="200")
    assert "no GOOGLE_API_KEY or GEMINI_API_KEY  https://generative" in wide.stdout
    assert wide.stderr == ""


def test_a_column_of_which_nothing_is_known_is_left_out(desk: Path) -> None:
    """Nobody is held back without a pace, and no price is one for what is cached."""
    assert "  PACE\n" in models().stdout
    (desk / "gambit.toml").write_text(TOML.replace("pace =", "#"))
    shown = models().stdout
    assert ("PACE" in shown, "CACHED" in shown) == (False, False)


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
    head, *lines = result.stdout.splitlines()
    assert head.split() == ["ASKED", "ANSWER"]
    answers = dict(line.split(maxsplit=1) for line in lines)
    assert answers["pong/loud"].endswith(" s")
    assert answers["pong/quiet"] == "overloaded"
    assert answers["openai/x"] == "set OPENAI_API_KEY to your key"
    assert answers["far/away"].startswith("there is no provider 'far'")
    assert models("--ping", "pong/loud", "--json").exit_code == 0


class Answering:
    """A provider whose models answer as they are called, and whose requests are kept.

    Attributes:
        asked: all requests.
    """

    def __init__(self) -> None:
        self.asked: list[CreateResponse] = []

    async def responses(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
    ) -> Response:
        """Answer."""
        del context, on_event
        self.asked.append(request)
        await trio.sleep(float("inf") if request.model == "acme/silent" else 2.0)
        error = ResponseError(code="server_error", message="out of order")
        match request.model:
            case "acme/failed":
                return Response(id="r", status="failed", error=error)
            case "acme/mute":
                return Response(id="r", status="failed")
            case "acme/cut":
                return Response(id="r", status="incomplete")
            case _:
                return Response(id="r", status="completed")


@pytest.mark.parametrize(
    ("model", "seconds", "error"),
    [
        ("acme/whole", 2.0, None),
        ("acme/cut", 2.0, None),
        ("acme/failed", 2.0, "out of order"),
        ("acme/mute", 2.0, "it failed without a reason"),
        ("acme/silent", 60.0, "there was no answer within 60 seconds"),
    ],
)
async def test_a_ping_costs_next_to_nothing_and_ends(
    model: str, seconds: float, error: str | None, autojump_clock: MockClock
) -> None:
    """The shortest answer there is, of which nothing is kept, within a minute."""
    del autojump_clock
    provider, found = Answering(), dict[str, pinging.Pinged]()
    asked = pinging.Pinged(model=model, seconds=0.0)

    with trio.fail_after(1000):
        await pinging._ask(provider, asked, found)  # noqa: SLF001  # its clock is ours

    assert found == {model: pinging.Pinged(model=model, seconds=seconds, error=error)}
    (request,) = provider.asked
    assert (request.max_output_tokens, request.store) == (16, False)


def test_a_ping_of_an_alias_says_what_it_stands_for(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its models is asked."""
    install_plugin(desk, monkeypatch)
    (desk / "gambit.toml").write_text(
        '[models.aliases.writer]\nmodel = ["pong/loud", "pong/quiet"]\n'
    )
    _, first, second = models("--ping", "writer").stdout.splitlines()
    assert first.startswith("writer -> pong/loud   0.")
    assert second == "writer -> pong/quiet  overloaded"
    document = json.loads(models("--ping", "writer", "--json").stdout)
    assert [one["alias"] for one in document["pings"]] == ["writer", "writer"]


def test_a_ping_of_a_mistyped_alias_says_so(desk: Path) -> None:
    """And who would have been asked instead."""
    (desk / "gambit.toml").write_text('[models.aliases.writer]\nmodel = "a/b"\n')
    result = models("--ping", "wirter")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1] == (
        "openrouter/wirter  'wirter' is no alias (did you mean writer?), so it is taken"
        " for a model of openrouter, and OPENROUTER_API_KEY is not set"
    )


def test_a_model_whose_plugin_breaks_off_takes_no_answer_from_others(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told of in its own line, without keys that its words may have in them."""
    install_plugin(desk, monkeypatch)
    asked = ("--ping", "pong/broken", "pong/loud")
    result = models(*asked, "--json", PONG_API_KEY="sk-hush-hush")
    assert result.exit_code == 1
    broken, loud = json.loads(result.stdout)["pings"]
    assert broken["error"] == (
        "the plugin pong gave no answer: it raised RuntimeError: no licence for [key]"
    )
    assert loud["error"] is None


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
