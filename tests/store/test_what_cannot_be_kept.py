"""Values that no log can keep: said where they come in, and no run is lost for them."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gambit_actors import DiskStore, Reply, RunOptions, ScriptedProvider
from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.outputs import MOST_CHARACTERS
from gambit_actors.actors.runtime import Runtime, open_runtime
from gambit_actors.errors import RequestError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCallOutput
from gambit_actors.providers.scripts import Call
from gambit_actors.store import log_lines
from tests.actors.playing import root
from tests.deck.reading import Texts

PAY = '[[tools]]\nname = "pay"\ndescription = "Pay."\nonDoubt = "retry"\n'
ANYTHING = 'respond = true\nresponseSchema = "s.json"\n'
SMALL = 64 * 1024


def deep(levels: int = 450) -> list[object]:
    """A value that is nested deeper than a log can be read."""
    value: list[object] = []
    for _ in range(levels):
        value = [value]
    return value


def respond(payload: object) -> Call:
    """A call that gives the result of the deck."""
    return Call(name="gambit_respond", arguments=json.dumps({"payload": payload}))


@asynccontextmanager
async def on_disk(
    folder: Path, deck: str, replies: list[Reply], on_tool: object = None
) -> AsyncIterator[Runtime]:
    """A runtime with its logs on disk."""
    files: Mapping[str, str] = {"PROMPT.md": deck, "s.json": "{}"}
    async with (
        DiskStore(folder) as store,
        open_runtime(
            ScriptedProvider(replies),
            reader=Texts(files),
            store=store,
            options=RunOptions(on_tool=on_tool),  # type: ignore[arg-type]  # tests choose
        ) as runtime,
    ):
        yield runtime


@pytest.mark.spec("CARD-7")
async def test_a_result_that_is_nested_too_deep_is_asked_for_again(
    tmp_path: Path,
) -> None:
    """The model is told, and the run has the result that it gives then."""
    replies = [Reply(calls=(respond(deep()),)), Reply(calls=(respond(7),))]
    async with on_disk(tmp_path, root(ANYTHING), replies) as runtime:
        result = await runtime.run("PROMPT.md", message="Hi.")
        assert result.value == 7
        outputs = [i for i in result.items if isinstance(i, FunctionCallOutput)]
        assert "nested deeper than 200 levels" in str(outputs[0].output)
        assert (await runtime.resume(result.run_id)).value == 7


async def test_an_answer_in_words_that_is_nested_too_deep_is_asked_for_again(
    tmp_path: Path,
) -> None:
    """The same where the answer is text that has to be JSON."""
    files = root('responseSchema = "s.json"')
    replies = [Reply(text=json.dumps(deep())), Reply(text="7")]
    async with on_disk(tmp_path, files, replies) as runtime:
        assert (await runtime.run("PROMPT.md", message="Hi.")).value == 7


class Circle(dict[str, JSONValue]):
    """A value whose methods raise what nobody expects."""

    def get(self, *_args: object) -> JSONValue:
        """Raise."""
        raise LookupError("gone")


def in_a_circle() -> JSONValue:
    """A list that is in itself."""
    value: list[JSONValue] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(deep, id="deep"),
        pytest.param(lambda: deep(3000), id="deeper"),
        pytest.param(in_a_circle, id="circle"),
        pytest.param(
            lambda: {"payload": in_a_circle(), "meta": {"secret": True}}, id="secret"
        ),
        pytest.param(lambda: Circle(payload=1), id="odd"),
        pytest.param(lambda: "x" * (MOST_CHARACTERS + 1), id="long"),
    ],
)
async def test_whatever_a_tool_gives_it_is_called_once(
    tmp_path: Path, given: object
) -> None:
    """It has happened: the model reads that it is of no use, and nobody tries again."""
    paid = 0

    async def on_tool(_call: ExternalCall) -> JSONValue:  # noqa: ASYNC124
        nonlocal paid
        paid += 1
        return given()  # type: ignore[operator]  # a parameter

    replies = [Reply(pass_number=1, calls=(Call(name="pay"),)), Reply(text="Paid.")]
    async with on_disk(tmp_path, root(PAY), replies, on_tool) as runtime:
        result = await runtime.run("PROMPT.md", message="Hi.")
        again = await runtime.resume(result.run_id)
    (output,) = [i for i in result.items if isinstance(i, FunctionCallOutput)]
    assert json.loads(str(output.output))["status"] == 500
    assert (result.text, again.text, paid) == ("Paid.", "Paid.", 1)


async def test_an_output_that_the_log_refuses_is_on_record_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the reason: a call that was carried out is not carried out again."""
    monkeypatch.setattr(log_lines, "MAX_LINE_BYTES", SMALL)

    async def on_tool(_call: ExternalCall) -> JSONValue:  # noqa: ASYNC124
        return "x" * SMALL

    replies = [Reply(pass_number=1, calls=(Call(name="pay"),)), Reply(text="Paid.")]
    async with on_disk(tmp_path, root(PAY), replies, on_tool) as runtime:
        result = await runtime.run("PROMPT.md", message="Hi.")
    (output,) = [i for i in result.items if isinstance(i, FunctionCallOutput)]
    assert json.loads(str(output.output))["code"] == "invalid_result"


async def test_an_answer_that_cannot_be_kept_fails_its_turn_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log gets its ending, and the conversation goes on."""
    monkeypatch.setattr(log_lines, "MAX_LINE_BYTES", SMALL)
    call = Call(name="pay", arguments=json.dumps({"a": "x" * SMALL}))
    replies = [Reply(turn=1, calls=(call,)), Reply(turn=2, text="Here I am.")]
    async with (
        on_disk(tmp_path, root(PAY), replies) as runtime,
        runtime.open_session("PROMPT.md") as session,
    ):
        broken = await session.send("Hi.")
        assert broken.failure is not None
        assert broken.failure.code == "cannot_be_kept"
        assert (await session.send("And now?")).text == "Here I am."


async def test_a_message_that_is_too_long_is_refused(tmp_path: Path) -> None:
    """By its length, before anything is written."""
    async with on_disk(tmp_path, root(), [Reply(text="Hello.")]) as runtime:
        with pytest.raises(RequestError, match="the message has 8388609 characters"):
            await runtime.run("PROMPT.md", message="x" * (8 * 2**20 + 1))
