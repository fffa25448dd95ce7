"""What gambit.toml says of a server holds when it is asked."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from gambit_actors import RunOptions, open_runtime
from gambit_actors.actors.runtime import Runtime
from gambit_actors.errors import RunFailed
from gambit_actors.openresponses.items import FunctionCall, assistant_message
from gambit_actors.openresponses.responses import Response
from gambit_actors.openresponses.writing import encode
from gambit_actors.testing.fake_server import Answer, Asked, serve
from gambit_actors.trace.events import ModelFailover, ModelNotice
from gambit_actors.trace.sinks import MemorySink
from gambit_actors.wiring.models import endpoint_of
from tests.settings.reading import read

DECK = '+++\n[modelParams]\nmodel = "acme/m"\n{}\n+++\n\nBe kind.\n'
TOOL = '[[tools]]\nname = "crm"\ndescription = "Leave a note."'
KEY = "sk-1234567890"
JSON = {"content-type": "application/json"}
SAID = Response(
    id="resp_1",
    model="m",
    status="completed",
    output=(assistant_message("Hello there."),),
)
CALLS = Response(
    id="resp_0",
    model="m",
    status="completed",
    output=(FunctionCall(call_id="c1", name="crm", arguments="{}"),),
)


class Server:
    """A server that answers after a while, and keeps what it was asked.

    Attributes:
        most_at_once: how many requests it had at a time, at the most.
    """

    def __init__(self, answers: Sequence[Response] = (SAID,)) -> None:
        self.asked: list[Asked] = []
        self.most_at_once = 0
        self._answers = answers
        self._open = 0

    async def __call__(self, request: Asked, answer: Answer) -> None:
        """Answer in one piece, the last answer again and again."""
        place = min(len(self.asked), len(self._answers) - 1)
        self.asked.append(request)
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        await trio.sleep(0.01)  # So that others can come; nothing hangs on how many.
        self._open -= 1
        await answer.whole(200, encode(self._answers[place]), JSON)


@asynccontextmanager
async def asking(
    folder: Path,
    handler: Server,
    text: str = "",
    *,
    deck: str = "",
    sink: MemorySink | None = None,
) -> AsyncIterator[Runtime]:
    """A runtime whose decks are on a server with these settings."""
    (folder / "PROMPT.md").write_text(DECK.format(deck))

    def on_tool(_call: object) -> str:
        return "noted"

    async with serve(handler) as server:
        settings = read(
            f'[providers.acme]\ndialect = "openai"\nbase_url = "{server.base_url}"\n'
            f'key_env = "ACME_API_KEY"\n{text}',
            {"ACME_API_KEY": KEY},
        )
        async with open_runtime(
            settings=settings,
            options=RunOptions(on_tool=on_tool),
            sinks=[] if sink is None else [sink],
        ) as runtime:
            yield runtime


async def run_many(runtime: Runtime, folder: Path, count: int) -> None:
    """Run the deck so many times, side by side."""
    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(lambda: runtime.run(folder, message="Hi."))


@pytest.mark.spec("PA-8")
async def test_all_runs_share_the_pace_of_a_server(tmp_path: Path) -> None:
    """However many there are: no more are asked at once than its table says."""
    server = Server()
    async with asking(tmp_path, server, "pace = { most_at_once = 2 }") as runtime:
        await run_many(runtime, tmp_path, 12)
    assert (len(server.asked), server.most_at_once) == (12, 2)


@pytest.mark.spec("PA-8")
async def test_a_server_that_stands_more_is_asked_more(tmp_path: Path) -> None:
    """The number at once begins low, and grows with every answer."""
    server = Server()
    text = "pace = { start_at_once = 1, most_at_once = 50 }"
    async with asking(tmp_path, server, text) as runtime:
        await run_many(runtime, tmp_path, 40)
        (pace,) = runtime.paces().values()
    assert 1 < pace.limit <= 50
    assert server.most_at_once > 1


async def test_headers_and_streams_are_as_the_table_says(tmp_path: Path) -> None:
    """A header of one's own goes along; without streams none is asked for."""
    server = Server()
    text = 'headers = { X-Team = "desk" }\nstream = false'
    async with asking(tmp_path, server, text) as runtime:
        await runtime.run(tmp_path, message="Hi.")
    (asked,) = server.asked
    assert asked.headers["x-team"] == "desk"
    body = asked.json()
    assert isinstance(body, dict)
    assert not body.get("stream")


@pytest.mark.spec("PA-7")
@pytest.mark.parametrize("history", ["kept", "sent"])
async def test_who_keeps_the_conversation_is_for_the_table_to_say(
    tmp_path: Path, history: str
) -> None:
    """The server, and then only what is new is sent; or we, and then all of it is."""
    server = Server([CALLS, SAID])
    text = f'history = "{history}"'
    async with asking(tmp_path, server, text, deck=TOOL) as runtime:
        result = await runtime.run(tmp_path, message="Hi.")
    assert result.text == "Hello there."
    first, second = (asked.json() for asked in server.asked)
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert "previous_response_id" not in first
    assert second.get("previous_response_id") == (
        "resp_0" if history == "kept" else None
    )
    inputs = second["input"]
    assert isinstance(inputs, list)
    assert (len(inputs) == 1) == (history == "kept")


class Silent(Server):
    """A server that never answers."""

    async def __call__(self, request: Asked, answer: Answer) -> None:
        """Take the request, and be silent."""
        self.asked.append(request)
        await answer.hang()


async def test_a_silent_server_is_given_up_when_its_table_says(tmp_path: Path) -> None:
    """After its own time, and after as many tries."""
    server = Silent()
    text = "timeouts = { first_byte = 0.1 }\nretries = { most = 1, base_seconds = 0 }"
    async with asking(tmp_path, server, text) as runtime:
        with pytest.raises(RunFailed, match=r"0\.1 seconds"):
            await runtime.run(tmp_path, message="Hi.")
    assert len(server.asked) == 2


class Refusing(Server):
    """A server that has too much to do."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self._status = status

    async def __call__(self, request: Asked, answer: Answer) -> None:
        """Refuse."""
        self.asked.append(request)
        await answer.json(self._status, {"error": {"message": "not now"}})


@pytest.mark.spec("DK-32", "PA-8")
@pytest.mark.parametrize("status", [429, 500, 404])
async def test_the_next_server_is_asked_when_one_refuses(
    tmp_path: Path, status: int
) -> None:
    """With its tries used up where more may help, and with a hop in the trace."""
    first, second, sink = Refusing(status), Server(), MemorySink()
    (tmp_path / "PROMPT.md").write_text(DECK.format("").replace("acme/m", "writer"))
    async with serve(first) as refusing, serve(second) as answering:
        settings = read(
            '[models.aliases.writer]\nmodel = ["first/a", "second/b"]\n'
            f'[providers.first]\ndialect = "openai"\nbase_url = "{refusing.base_url}"\n'
            "retries = { most = 1, base_seconds = 0 }\n"
            f'[providers.second]\ndialect = "openai"\n'
            f'base_url = "{answering.base_url}"\n'
        )
        async with open_runtime(settings=settings, sinks=[sink]) as runtime:
            result = await runtime.run(tmp_path, message="Hi.")
    assert result.text == "Hello there."
    assert (len(first.asked), len(second.asked)) == (1 if status == 404 else 2, 1)
    (hop,) = sink.of(ModelFailover)
    assert (hop.model, hop.next_model) == ("first/a", "second/b")
    assert str(status) in hop.error.message
    kinds = [notice.kind for notice in sink.of(ModelNotice)]
    assert ("retry" in kinds) == (status != 404)
    assert ("slowed" in kinds) == (status == 429)


async def test_a_key_does_not_leave_this_machine_unless_the_table_says(
    tmp_path: Path,
) -> None:
    """Over plain http another machine is not asked with a key: nobody is called."""
    (tmp_path / "PROMPT.md").write_text(DECK.format(""))
    text = (
        '[providers.acme]\ndialect = "openai"\nbase_url = "http://models.acme.example"\n'
        'key_env = "ACME_API_KEY"\n'
    )
    settings = read(text, {"ACME_API_KEY": KEY})
    async with open_runtime(settings=settings) as runtime:
        with pytest.raises(RunFailed, match="in the clear"):
            await runtime.run(tmp_path, message="Hi.")

    told = read(text + "plain_key = true\n", {"ACME_API_KEY": KEY})
    assert endpoint_of(told.servers["acme"]).sends_plain_key
