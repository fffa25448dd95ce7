"""The rules of the deck format that only a run can show, on the decks of the rules."""

import json
from collections.abc import Sequence

import pytest
import trio

from gambit_actors.actors.hook import ExternalCall, OnTool
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.runtime import open_runtime
from gambit_actors.actors.sessions import RunResult
from gambit_actors.deck.references import BUILTIN_TOOLS as BUILTIN_NAMES
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import Message
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.tools import FunctionTool
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Reply
from gambit_actors.run.builtins import BUILTIN_TOOLS
from gambit_actors.run.ports import ModelContext
from gambit_actors.store.deck_files import DiskReader
from tests.actors.playing import calls, outputs_of
from tests.deck.rule_decks import folder

DONE = Reply(text="Done.")
CHILD = "*find_book/PROMPT.md"


async def play(
    rule: int, script: Sequence[Reply], on_tool: OnTool | None = None
) -> RunResult:
    """Run the good deck of a rule on a script."""
    options = RunOptions(on_tool=on_tool, models=("scripted/one",))
    reader = DiskReader(folder(rule, "good"))
    provider = ScriptedProvider(list(script))
    async with open_runtime(provider, reader=reader, options=options) as runtime:
        return await runtime.run("PROMPT.md", message="Hi.")


async def request_of(rule: int) -> CreateResponse:
    """What the model of the good deck of a rule is asked."""
    asked: list[CreateResponse] = []

    def answer(request: CreateResponse, _context: ModelContext) -> Reply:
        asked.append(request)
        return DONE

    options = RunOptions(models=("scripted/one",))
    reader = DiskReader(folder(rule, "good"))
    provider = ScriptedProvider(answer)
    async with open_runtime(provider, reader=reader, options=options) as runtime:
        await runtime.run("PROMPT.md", message="Hi.")
    return asked[0]


def envelopes(result: RunResult, name: str) -> list[dict[str, JSONValue]]:
    """What the calls of a name gave back."""
    return [json.loads(output) for output in outputs_of(result.items)[name]]


class Desk:
    """Carries out tools, and remembers which."""

    def __init__(self) -> None:
        self.asked: list[ExternalCall] = []

    async def __call__(self, call: ExternalCall) -> JSONValue:
        """Carry out a call."""
        await trio.lowlevel.checkpoint()
        self.asked.append(call)
        return {"payload": {"until": "May"}, "status": 201, "message": "Renewed."}


@pytest.mark.spec("DK-8")
async def test_a_tool_is_carried_out_by_the_hook_alone() -> None:
    """The hook is asked for exactly the tools the model called."""
    desk = Desk()
    await play(8, [calls("renew_loan", card="C1"), DONE], desk)
    assert [(call.name, call.args) for call in desk.asked] == [
        ("renew_loan", {"card": "C1"})
    ]


@pytest.mark.spec("DK-9")
async def test_arguments_are_checked_before_the_hook_is_asked() -> None:
    """What does not fit goes back to the model with every problem; the rest goes on."""
    desk = Desk()
    script = [
        calls("renew_loan", weeks=0),
        calls("renew_loan", card="C1", weeks=2, extra=1),
        DONE,
    ]
    result = await play(9, script, desk)
    refused, _ = envelopes(result, "renew_loan")
    assert (refused["status"], refused["code"]) == (400, "invalid_input")
    assert "card" in refused["message"]
    assert "weeks" in refused["message"]
    assert [call.args for call in desk.asked] == [{"card": "C1", "weeks": 2}]


@pytest.mark.spec("DK-10")
async def test_without_tools_only_actions_are_offered() -> None:
    """A model of a deck without [[tools]] sees its actions and nothing else."""
    request = await request_of(10)
    tools = [t.name for t in request.tools or () if isinstance(t, FunctionTool)]
    assert tools == ["find_book"]


@pytest.mark.spec("DK-22")
async def test_the_body_is_sent_with_its_parameters() -> None:
    """The prompt, its snippet in place, comes first; parameters are as declared."""
    request = await request_of(22)
    assert isinstance(request.input, tuple)
    first = request.input[0]
    assert isinstance(first, Message)
    assert first.text == (
        "You are the desk of a lending library.\n\nBooks are lent for four weeks."
        "\n\nAnswer in one sentence."
    )
    assert (request.model, request.temperature, request.max_output_tokens) == (
        "openai/gpt-5-mini",
        0.2,
        400,
    )


@pytest.mark.spec("DK-26")
async def test_an_action_returns_what_its_schema_says() -> None:
    """A response that does not fit is refused until one does."""
    bad = calls("gambit_respond", payload={"shelf": 7})
    fine = calls("gambit_respond", payload={"shelf": "B2"})
    script = [
        calls("find_book", title="Emma"),
        Reply(deck=CHILD, calls=bad.calls),
        Reply(deck=CHILD, calls=fine.calls),
        DONE,
    ]
    (envelope,) = envelopes(await play(26, script), "find_book")
    assert envelope["payload"] == {"shelf": "B2"}


@pytest.mark.spec("DK-27")
async def test_a_parent_gets_the_envelope_of_its_action() -> None:
    """Status, message, code and meta of a response are kept beside its payload."""
    said = {
        "payload": {},
        "status": 404,
        "message": "No such book.",
        "code": "unknown",
        "meta": {"searched": 3},
    }
    respond = calls("gambit_respond", **said)
    script = [calls("find_book"), Reply(deck=CHILD, calls=respond.calls), DONE]
    (envelope,) = envelopes(await play(27, script), "find_book")
    assert {key: envelope[key] for key in said} == said


@pytest.mark.spec("DK-28")
async def test_a_hook_is_told_who_asks_and_may_answer_with_an_envelope() -> None:
    """It knows the run, the call, the span above and the deck; its status is kept."""
    desk = Desk()
    result = await play(28, [calls("renew_loan", card="C1"), DONE], desk)
    (call,) = desk.asked
    (envelope,) = envelopes(result, "renew_loan")
    assert (call.run_id, call.deck_path) == (
        result.run_id,
        envelope["source"]["deckPath"],
    )
    assert call.action_call_id == envelope["actionCallId"]
    assert call.parent_action_call_id == envelope["parentActionCallId"]
    assert (envelope["payload"], envelope["status"]) == ({"until": "May"}, 201)


@pytest.mark.spec("DK-29")
async def test_a_missing_or_raising_hook_is_an_error_and_no_end() -> None:
    """Either is an envelope of 400 or more, with a code of its own."""

    async def fail(_call: ExternalCall) -> JSONValue:
        await trio.lowlevel.checkpoint()
        raise ValueError

    codes = []
    for on_tool in (None, fail):
        result = await play(29, [calls("renew_loan"), DONE], on_tool)
        (envelope,) = envelopes(result, "renew_loan")
        assert envelope["status"] >= 400
        codes.append(envelope["code"])
        assert result.text == "Done."
    assert codes == ["missing_on_tool", "tool_handler_error"]


@pytest.mark.slow
@pytest.mark.spec("DK-30")
async def test_code_runs_sync_and_async_with_its_context() -> None:
    """Either kind gets its input; the one logs, the other asks a deck and waits."""
    script = [
        calls("late_fee", days=3),
        calls("ask_twice", question="Open?"),
        Reply(deck="*clerk/PROMPT.md", text="Until six."),
        DONE,
    ]
    result = await play(30, script)
    assert envelopes(result, "late_fee")[0]["payload"] == pytest.approx(0.3)
    assert envelopes(result, "ask_twice")[0]["payload"] == "Until six."


def test_the_names_that_are_taken_are_those_of_the_tools() -> None:
    """What no action may be called is exactly what decks are offered as built in."""
    assert {tool.name for tool in BUILTIN_TOOLS} == BUILTIN_NAMES
