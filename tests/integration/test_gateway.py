"""A gateway that others have written understands us, and we understand it.

LiteLLM's proxy speaks three of our dialects to its clients. It is not in our
environment: ``make integration`` installs it into one of its own and runs these tests.
Behind it stands ``upstream.py``, so that nothing needs a model, a key or a network.
"""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from gambit_actors.openresponses import Event, Response
from gambit_actors.openresponses.followup import follow_up
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    system_message,
    user_message,
)
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.tools import FunctionTool
from gambit_actors.providers.dialects.anthropic import AnthropicDialect
from gambit_actors.providers.dialects.chat import ChatDialect
from gambit_actors.providers.dialects.dialect import Dialect
from gambit_actors.providers.dialects.open_responses import OpenResponsesDialect
from gambit_actors.providers.dialects.open_responses_profiles import OPENROUTER
from gambit_actors.providers.endpoints import Endpoint, Retries, Secret
from gambit_actors.providers.errors import ProviderStatusError
from gambit_actors.providers.gate import Gate
from gambit_actors.providers.http import HttpTransport
from gambit_actors.providers.http_provider import HttpProvider
from gambit_actors.run.ports import ModelContext
from tests.integration.upstream import ARGUMENTS, WORDS

GATEWAY = os.environ.get("GAMBIT_TEST_GATEWAY", "")
KEY = "sk-of-the-gateway-0123456789"
START_SECONDS = 120
CONFIG = """
model_list:
  - model_name: m
    litellm_params: {{model: lm_studio/m, api_base: {upstream}/v1, api_key: none}}
litellm_settings: {{telemetry: false, num_retries: 0}}
"""
DIALECTS: dict[str, Dialect] = {
    "chat": ChatDialect(),
    "responses": OpenResponsesDialect(profile=OPENROUTER),
    "messages": AnthropicDialect(),
}
TOOL = FunctionTool(
    name="crm",
    description="Leave a note.",
    parameters={"type": "object", "properties": {"note": {"type": "string"}}},
)
ASKED = CreateResponse(
    model="m",
    input=(system_message("Be kind."), user_message("Where is LL-1001?")),
    max_output_tokens=100,
    store=False,
)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not GATEWAY, reason="run by 'make integration'"),
]


@pytest.fixture(scope="module")
def upstream() -> Iterator[str]:
    """The address of what stands behind the gateway."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.integration.upstream"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


@pytest.fixture(scope="module")
def gateway(upstream: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the gateway, once it answers."""
    folder = tmp_path_factory.mktemp("gateway")
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(upstream=upstream), encoding="utf-8")
    port = str(_free_port())
    environment = os.environ | {
        "LITELLM_MASTER_KEY": KEY,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    command = [GATEWAY, "--config", str(config), "--host", "127.0.0.1", "--port", port]
    log = folder / "log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, env=environment, stdout=output, stderr=output, cwd=folder
        ) as process,
    ):
        try:
            _wait_until_ready(f"http://127.0.0.1:{port}/health/liveliness", log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310  (our own)
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.25)
    pytest.fail(f"the gateway did not start:\n{log.read_text()[-2000:]}")


@asynccontextmanager
async def asking(
    gateway: str, dialect: Dialect, *, streams: bool = True
) -> AsyncIterator[HttpProvider]:
    """The gateway as a provider."""
    endpoint = Endpoint(
        name="gateway",
        dialect=dialect,
        base_url=gateway,
        key=Secret(KEY),
        retries=Retries(most=0),
        streams=streams,
    )
    async with HttpTransport() as transport:
        yield HttpProvider(endpoint, transport, Gate(endpoint.pace))


async def told(
    provider: HttpProvider, request: CreateResponse
) -> tuple[Response, list[Event], list[str]]:
    """What comes of a request: the response, its events, what was noted."""
    events: list[Event] = []
    notes: list[str] = []
    context = ModelContext(
        run_id="run-1",
        deck="PROMPT.md",
        turn=1,
        pass_number=1,
        note=lambda notice: notes.append(notice.message),
    )
    response = await provider.responses(request, context, events.append)
    return response, events, notes


@pytest.mark.spec("MAP-8")
@pytest.mark.parametrize("streams", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("name", DIALECTS)
async def test_words_come_through(gateway: str, name: str, *, streams: bool) -> None:
    """An answer in words arrives whole, with what it cost."""
    async with asking(gateway, DIALECTS[name], streams=streams) as provider:
        response, events, _ = await told(provider, ASKED)

    assert (response.status, response.output_text) == ("completed", "".join(WORDS))
    assert response.usage is not None
    assert response.usage.output_tokens > 0
    deltas = [e for e in events if e.type == "response.output_text.delta"]
    assert bool(deltas) is streams


@pytest.mark.spec("MAP-8")
@pytest.mark.parametrize("streams", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("name", DIALECTS)
async def test_a_tool_is_called_and_answered(
    gateway: str, name: str, *, streams: bool
) -> None:
    """A call arrives with its arguments to the letter, and its output goes back."""
    request = msgspec.structs.replace(ASKED, tools=(TOOL,))
    async with asking(gateway, DIALECTS[name], streams=streams) as provider:
        response, _, _ = await told(provider, request)
        (call,) = [i for i in response.output if isinstance(i, FunctionCall)]
        output = FunctionCallOutput(call_id=call.call_id, output='{"ok": true}')
        again, _, _ = await told(provider, follow_up(request, response, [output]))

    assert call.name == "crm"
    assert msgspec.json.decode(call.arguments) == msgspec.json.decode(
        "".join(ARGUMENTS)
    )
    assert again.output_text == "".join(WORDS)


@pytest.mark.parametrize("name", DIALECTS)
async def test_a_refusal_is_told(gateway: str, name: str) -> None:
    """An error of the model behind comes through with its status and its words."""
    request = msgspec.structs.replace(ASKED, input="refuse me")
    async with asking(gateway, DIALECTS[name]) as provider:
        with pytest.raises(ProviderStatusError, match=r"Too much\.") as caught:
            await told(provider, request)

    assert caught.value.status == 429


async def test_a_wrong_key_is_told(gateway: str) -> None:
    """A key that the gateway does not know is an error that does not repeat it."""
    wrong = Secret("sk-wrong-0123456789")
    async with asking(gateway, DIALECTS["chat"]) as provider:
        endpoint = msgspec.structs.replace(provider.endpoint, key=wrong)
        async with HttpTransport() as transport:
            other = HttpProvider(endpoint, transport, Gate(endpoint.pace))
            with pytest.raises(ProviderStatusError) as caught:
                await told(other, ASKED)

    assert caught.value.status in (400, 401, 403)
    assert wrong.reveal() not in str(caught.value)
