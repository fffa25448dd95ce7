"""What settings say of a server is how it is asked."""

import socket

import pytest
import trio

from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.providers.dialects.open_responses import OpenResponsesDialect
from gambit_actors.providers.dialects.open_responses_profiles import (
    OPEN_RESPONSES,
    OPENAI,
    OPENROUTER,
    OpenResponsesProfile,
)
from gambit_actors.run.ports import ModelContext
from gambit_actors.testing.fake_server import one_answer, serve
from gambit_actors.wiring.dialects import dialect_of
from gambit_actors.wiring.models import open_models
from tests.providers.spoken import SPOKEN
from tests.settings.reading import read

CONTEXT = ModelContext(run_id="r", deck="d", turn=1, pass_number=1)


class Nowhere(trio.abc.HostnameResolver):
    """Knows no host, so that nobody is asked for one."""

    async def getaddrinfo(self, *_asked: object, **_how: object) -> list[object]:  # type: ignore[override]  # it never gives any
        """Refuse."""
        await trio.lowlevel.checkpoint()
        raise socket.gaierror(socket.EAI_NONAME, "no such host")

    async def getnameinfo(self, *_asked: object) -> tuple[str, str]:
        """Refuse."""
        await trio.lowlevel.checkpoint()
        raise socket.gaierror(socket.EAI_NONAME, "no such host")


async def test_a_proxy_of_the_environment_is_asked_for_a_server() -> None:
    """What a server far away is asked goes to the proxy; what one here is does not."""
    trio.socket.set_custom_hostname_resolver(Nowhere())
    handler = one_answer(b"".join(SPOKEN["chat"].text(["Hello."])))
    async with serve(handler) as proxy, serve(handler) as here:
        settings = read(
            '[providers.far]\ndialect = "chat"\nbase_url = "http://models.invalid/v1"\n'
            f'[providers.near]\ndialect = "chat"\nbase_url = "{here.base_url}"\n',
            {"HTTP_PROXY": proxy.base_url},
        )
        async with open_models(settings) as models:
            for name in ("far/m", "near/m"):
                request = CreateResponse(model=name, input="Hi.")
                answer = await models.responses(request, CONTEXT, lambda _: None)
                assert answer.output_text == "Hello."
    assert [asked.target for asked in proxy.requests] == [
        "http://models.invalid/v1/chat/completions"
    ]
    assert [asked.target for asked in here.requests] == ["/chat/completions"]


@pytest.mark.parametrize(
    ("said", "profile"),
    [
        ('dialect = "openresponses"', OPEN_RESPONSES),
        ('dialect = "openresponses"\nflavour = "openrouter"', OPENROUTER),
        ('dialect = "openai"', OPENAI),
    ],
)
def test_a_flavour_says_how_a_server_is_spoken_to(
    said: str, profile: OpenResponsesProfile
) -> None:
    """Each way of speaking Open Responses is chosen by its name."""
    text = f'[providers.acme]\nbase_url = "https://models.acme.test/v1"\n{said}\n'

    dialect = dialect_of(read(text).servers["acme"])

    assert isinstance(dialect, OpenResponsesDialect)
    assert dialect.profile == profile
