"""From a variable to an answer: the server is asked with the key that was set."""

from pathlib import Path

import msgspec
import pytest

from gambit_actors import open_runtime
from gambit_actors.errors import RunFailed
from gambit_actors.openresponses.items import assistant_message
from gambit_actors.openresponses.responses import Response
from gambit_actors.openresponses.writing import encode
from gambit_actors.providers.dialects import chat_flavours
from gambit_actors.settings.provider_tables import FLAVOURS
from gambit_actors.testing.fake_server import Answer, Asked, serve
from tests.settings.reading import read

DECK = '+++\n[modelParams]\nmodel = "{}"\n+++\n\nBe kind.\n'
SAID = Response(
    id="resp_1",
    model="m",
    status="completed",
    output=(assistant_message("Hello there."),),
)


@pytest.mark.parametrize(
    ("variables", "model"),
    [
        ({"OPENAI_BASE_URL": "{}", "OPENAI_API_KEY": "sk-1234567890"}, "openai/m"),
        (
            {"OPENROUTER_BASE_URL": "{}", "OPENROUTER_API_KEY": "sk-1234567890"},
            "openrouter/acme/m",
        ),
        (
            {"OPENRESPONSES_BASE_URL": "{}", "OPENRESPONSES_API_KEY": "sk-1234567890"},
            "openresponses/m",
        ),
    ],
)
async def test_a_model_server_is_asked_as_settings_say(
    tmp_path: Path, variables: dict[str, str], model: str
) -> None:
    """Where it is, with which key, and by its own name for the model."""
    (tmp_path / "PROMPT.md").write_text(DECK.format(model))
    asked: list[Asked] = []

    async def answer_it(request: Asked, answer: Answer) -> None:
        asked.append(request)
        await answer.whole(200, encode(SAID), {"content-type": "application/json"})

    async with serve(answer_it) as server:
        env = {name: value.format(server.base_url) for name, value in variables.items()}
        async with open_runtime(settings=read(environment=env)) as runtime:
            result = await runtime.run(str(tmp_path), message="Hi.")
    assert result.text == "Hello there."
    (request,) = asked
    assert request.target == "/responses"
    assert request.headers["authorization"] == "Bearer sk-1234567890"
    assert msgspec.json.decode(request.body)["model"] == model.partition("/")[2]


async def test_what_a_server_says_of_a_key_is_told_without_it(tmp_path: Path) -> None:
    """Servers like to repeat it."""
    (tmp_path / "PROMPT.md").write_text(DECK.format("openai/m"))

    async def refuse_it(_request: Asked, answer: Answer) -> None:
        body = {"error": {"message": "bad key sk-1234567890", "code": "bad_key"}}
        await answer.json(401, body)

    async with serve(refuse_it) as server:
        env = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-1234567890"}
        async with open_runtime(settings=read(environment=env)) as runtime:
            with pytest.raises(RunFailed, match=r"HTTP 401 \(bad_key\)") as raised:
                await runtime.run(str(tmp_path), message="Hi.")
    assert "1234567890" not in str(raised.value)


@pytest.mark.spec("OR-12")
@pytest.mark.parametrize(
    ("variables", "model"),
    [
        ({"OLLAMA_BASE_URL": "{}"}, "ollama/m"),
        (
            {
                "OPENROUTER_BASE_URL": "{}",
                "OPENROUTER_API_KEY": "sk-1234567890",
                "GAMBIT_OPENROUTER_RESPONSES": "0",
            },
            "openrouter/m",
        ),
        (
            {
                "OPENAI_BASE_URL": "{}",
                "OPENAI_API_KEY": "sk-1234567890",
                "GAMBIT_CHAT_FALLBACK": "1",
            },
            "openai/m",
        ),
    ],
)
async def test_a_chat_is_what_flags_ask_for(
    tmp_path: Path, variables: dict[str, str], model: str
) -> None:
    """And what a server speaks that speaks nothing else."""
    (tmp_path / "PROMPT.md").write_text(DECK.format(model))
    message = {"role": "assistant", "content": "Hello there."}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    body = {"id": "c1", "object": "chat.completion", "model": "m", "choices": [choice]}
    targets: list[str] = []

    async def answer_it(request: Asked, answer: Answer) -> None:
        targets.append(request.target)
        await answer.json(200, body)

    async with serve(answer_it) as server:
        env = {name: text.format(server.base_url) for name, text in variables.items()}
        async with open_runtime(settings=read(environment=env)) as runtime:
            result = await runtime.run(str(tmp_path), message="Hi.")
    assert result.text == "Hello there."
    assert targets == ["/chat/completions"]


async def test_anthropic_is_asked_as_its_table_says(tmp_path: Path) -> None:
    """How it thinks, what it may try, and how much it says if nobody says."""
    text = (
        '[providers.anthropic]\nthinking = "adaptive"\nmax_tokens = 123\n'
        'betas = ["one-2026-01-01", "two-2026-01-01"]\n'
    )
    deck = DECK.format("anthropic/m")
    wants = '\nreasoning = { effort = "low" }\n+++\n\n'
    (tmp_path / "PROMPT.md").write_text(deck.replace("\n+++\n\n", wants))
    asked: list[Asked] = []

    async def answer_it(request: Asked, answer: Answer) -> None:
        asked.append(request)
        content = [{"type": "text", "text": "Hello there."}]
        body = {"type": "message", "role": "assistant", "id": "m1", "model": "m"}
        await answer.json(200, {**body, "content": content, "stop_reason": "end_turn"})

    async with serve(answer_it) as server:
        env = {
            "ANTHROPIC_BASE_URL": server.base_url,
            "ANTHROPIC_API_KEY": "sk-1234567890",
        }
        async with open_runtime(settings=read(text, env)) as runtime:
            result = await runtime.run(str(tmp_path), message="Hi.")
    assert result.text == "Hello there."
    (request,) = asked
    assert request.target == "/v1/messages"
    assert request.headers["x-api-key"] == "sk-1234567890"
    assert request.headers["anthropic-beta"] == "one-2026-01-01,two-2026-01-01"
    body = msgspec.json.decode(request.body)
    assert (body["model"], body["max_tokens"]) == ("m", 123)
    assert body["thinking"]["type"] == "adaptive"


async def test_gemini_is_asked_as_settings_say(tmp_path: Path) -> None:
    """By either name, with its key in a header and not in the address."""
    (tmp_path / "PROMPT.md").write_text(DECK.format("gemini/gemini-2.5-flash"))
    asked: list[Asked] = []

    async def answer_it(request: Asked, answer: Answer) -> None:
        asked.append(request)
        content = {"role": "model", "parts": [{"text": "Hello there."}]}
        body = {"candidates": [{"content": content, "finishReason": "STOP"}]}
        await answer.json(200, body)

    async with serve(answer_it) as server:
        env = {
            "GEMINI_BASE_URL": server.base_url,
            "GEMINI_API_KEY": "sk-1234567890",
        }
        async with open_runtime(settings=read(environment=env)) as runtime:
            result = await runtime.run(str(tmp_path), message="Hi.")
    assert result.text == "Hello there."
    (request,) = asked
    assert request.target.startswith("/models/gemini-2.5-flash:")
    assert "1234567890" not in request.target
    assert request.headers["x-goog-api-key"] == "sk-1234567890"


def test_settings_name_the_flavours_there_are() -> None:
    """No more and no less."""
    assert set(FLAVOURS["chat"]) == set(chat_flavours.FLAVOURS)


async def test_how_fast_servers_are_asked_is_shown(tmp_path: Path) -> None:
    """A runtime knows the pace of each server that it has asked, and of no other."""
    (tmp_path / "PROMPT.md").write_text(DECK.format("openai/m"))

    async def answer_it(_request: Asked, answer: Answer) -> None:
        (pace,) = runtime.paces().values()
        assert (pace.open, pace.waiting) == (1, 0)
        await answer.whole(200, encode(SAID), {"content-type": "application/json"})

    async with serve(answer_it) as server:
        env = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-1234567890"}
        async with open_runtime(settings=read(environment=env)) as runtime:
            assert runtime.paces() == {}
            await runtime.run(str(tmp_path), message="Hi.")
            assert runtime.paces()["openai"].open == 0
    assert list(runtime.paces()) == ["openai"]
