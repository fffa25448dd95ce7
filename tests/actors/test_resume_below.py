"""What is below a run when it goes on: budgets, cancelled children, and ended ones."""

import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import trio

from gambit_actors.actors.below import BelowFinder
from gambit_actors.actors.hook import ExternalCall, OnTool
from gambit_actors.actors.memory_log import MemoryLog, MemoryStore
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.program_cache import ProgramCache
from gambit_actors.actors.runtime import Runtime, open_runtime
from gambit_actors.deck.loader import load_deck
from gambit_actors.deck.model import Deck
from gambit_actors.deck.reader import DescribedModule
from gambit_actors.errors import InDoubt
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.providers.scripted import ReplyFunction, ScriptedProvider
from gambit_actors.providers.scripts import Call, Reply, TokenCount
from gambit_actors.run.doubts import choice_for
from gambit_actors.run.entries import CallStarted, ChildStarted, RunEnded, TurnEnded
from gambit_actors.run.ports import ModelContext
from gambit_actors.run.states import state_from_entries
from gambit_actors.trace.events import RunStart
from tests.actors.playing import (
    ANYTHING,
    TOOL,
    action,
    calls,
    child,
    coded,
    execute,
    outputs_of,
    root,
)
from tests.actors.test_resume import (
    Counting,
    Recorder,
    cut_in_a_payment,
    files,
    kept_until,
    resumed,
)
from tests.deck.reading import Texts

RETRIED = TOOL + 'onDoubt = "retry"\n'
ALLOWED = "[permissions]\nread = true\nwrite = true\n"
BUDGET = "[guardrails]\nmaxTokens = 5000\n"
MOST = TokenCount(input_tokens=1000, output_tokens=3000)
RESPOND = (Call(name="gambit_respond", arguments={"payload": {"n": 1}}),)


def opened(
    decks: Texts,
    replies: list[Reply] | ReplyFunction,
    store: MemoryStore,
    on_tool: OnTool | None = None,
) -> AbstractAsyncContextManager[Runtime]:
    """A runtime that knows nothing of what others have done on the store."""
    return open_runtime(
        ScriptedProvider(replies),
        reader=decks,
        store=store,
        options=RunOptions(on_tool=on_tool or Counting()),
    )


async def test_a_child_s_budget_goes_on_where_it_was() -> None:
    """What a child had used before a crash is gone for the rest of its turn."""
    decks = Texts(
        {
            "PROMPT.md": root(action("a")),
            "a/PROMPT.md": child(BUDGET + RETRIED),
            "any.json": ANYTHING,
        }
    )
    said: list[int] = []

    def model(request: CreateResponse, context: ModelContext) -> Reply:
        if context.deck == "PROMPT.md":
            is_first = context.pass_number == 1
            return calls("a") if is_first else Reply(text="Done.")
        said.append(request.max_output_tokens or 0)
        names = "crm" if context.pass_number == 1 else "gambit_respond"
        return Reply(calls=calls(names, payload={}).calls, usage=MOST)

    store = Recorder()
    async with opened(decks, model, store) as runtime:
        run_id = (await runtime.run("PROMPT.md", message="Hi.")).run_id
    first, second = said
    assert second < 1000 < first
    cut_after_the_first = 0
    for count in range(1, store.batches[-1]):
        said.clear()
        kept = kept_until(store.logs, count)
        below = [log for key, log in kept.logs.items() if key != run_id]
        begun = [state_from_entries(log.entries).passes for log in below]
        async with opened(decks, model, kept) as runtime:
            assert (await runtime.resume(run_id)).text == "Done."
        expected = [False, True][begun[0] if begun else 0 :]
        assert [most < 1000 for most in said] == expected, count
        cut_after_the_first += begun == [1]
    assert cut_after_the_first > 1


async def test_a_later_turn_s_budget_goes_on_without_the_turns_before() -> None:
    """What was used in a turn that had ended is no part of the next one's budget."""
    decks = Texts({"PROMPT.md": root(BUDGET + RETRIED)})
    said: list[int] = []

    def model(request: CreateResponse, context: ModelContext) -> Reply:
        said.append(request.max_output_tokens or 0)
        is_first = context.pass_number == 1
        used = TokenCount(input_tokens=500, output_tokens=1500)
        return Reply(
            calls=calls("crm").calls if is_first else (), text="Done.", usage=used
        )

    store = Recorder()
    async with (
        opened(decks, model, store) as runtime,
        runtime.open_session("PROMPT.md") as session,
    ):
        await session.send("Hi.")
        await session.send("And now?")
    run_id = session.run_id
    assert [3000 > most > 2000 for most in said] == [False, True, False, True]
    cut_in_the_second = 0
    for count in range(1, store.batches[-1]):
        said.clear()
        kept = kept_until(store.logs, count)
        state = state_from_entries(kept.logs[run_id].entries)
        if state.ended is not None or (state.turns, state.passes) != (2, 1):
            continue
        cut_in_the_second += 1
        async with opened(decks, model, kept) as runtime:
            assert (await runtime.resume(run_id)).text == "Done."
        assert [3000 > most > 2000 for most in said] == [True], count
    assert cut_in_the_second > 1


SPAWNS = """
from gambit_actors import define_deck

async def run(ctx):
    return {"of": await ctx.spawn_and_wait("a/PROMPT.md", {"n": 1})}

deck = define_deck(run=run)
"""
SPAWNS_ONCE = """
from gambit_actors import define_deck

async def run(ctx):
    if ctx.attempt > 1:
        return {"of": "nothing"}
    return {"of": await ctx.spawn_and_wait("a/PROMPT.md", {"n": 1})}

deck = define_deck(run=run)
"""


def code_and_child(folder: Path, code: str) -> Texts:
    """A root whose action is code that runs a deck, which has a tool."""
    decks = {
        "PROMPT.md": root(execute("code")),
        "a/PROMPT.md": child(RETRIED),
        "any.json": ANYTHING,
    }
    return coded(folder, decks, code=code)


def code_script() -> list[Reply]:
    """The root runs the code; the child leaves a note and responds."""
    return [
        Reply(deck="*/a/PROMPT.md", pass_number=1, calls=(Call(name="crm"),), times=0),
        Reply(deck="*/a/PROMPT.md", calls=RESPOND, times=0),
        Reply(pass_number=1, calls=(Call(name="code"),), times=0),
        Reply(text="Done.", times=0),
    ]


def has_ended(log: MemoryLog, status: str) -> bool:
    """Whether the last turn in a log has come to such an end."""
    ended = state_from_entries(log.entries).ended
    return ended is not None and ended.status == status


async def test_a_child_that_was_cancelled_is_begun_anew(tmp_path: Path) -> None:
    """Code that asks for it again gets its answer, and not the cancel of before."""
    decks = code_and_child(tmp_path, SPAWNS)
    store, scope = Recorder(), trio.CancelScope()

    async def stop(_call: ExternalCall) -> JSONValue:
        scope.cancel()
        await trio.sleep_forever()

    async with opened(decks, code_script(), store, stop) as runtime:
        deck = await runtime.load("PROMPT.md")
        with scope:
            await runtime.run(deck, message="Hi.")
    run_id, child_id = store.logs
    tried = 0
    for count in range(1, store.batches[-1] + 1):
        kept = kept_until(store.logs, count)
        below = kept.logs.get(child_id)
        if below is None or not has_ended(below, "cancelled"):
            continue
        if state_from_entries(kept.logs[run_id].entries).ended is not None:
            continue
        tried += 1
        before = list(below.entries)
        async with opened(decks, code_script(), kept) as runtime:
            result = await runtime.resume(run_id, deck=deck)
        assert result.text == "Done."
        (output,) = outputs_of(result.items)["code"]
        assert json.loads(output)["payload"] == {"of": {"n": 1}}
        assert len(kept.logs) == 3
        cancelled = [e for e in below.entries if isinstance(e, TurnEnded)]
        assert [e.status for e in cancelled] == ["cancelled"]
        assert below.entries[: len(before)] == before
    assert tried


async def test_a_log_that_is_over_is_not_closed_once_more(tmp_path: Path) -> None:
    """Code that does not ask for a deck again leaves what that had written as it is."""
    decks = code_and_child(tmp_path, SPAWNS_ONCE)
    store = Recorder()
    async with opened(decks, code_script(), store) as runtime:
        deck = await runtime.load("PROMPT.md")
        run_id = (await runtime.run(deck, message="Hi.")).run_id
    _, child_id = store.logs
    tried = 0
    for count in range(1, store.batches[-1]):
        kept = kept_until(store.logs, count)
        below = kept.logs.get(child_id)
        if below is None or not isinstance(below.entries[-1], RunEnded):
            continue
        code_is_over = state_from_entries(kept.logs[run_id].entries).finished
        async with opened(decks, code_script(), kept) as runtime:
            result = await runtime.resume(run_id, deck=deck)
        assert result.text == "Done."
        assert below.entries == store.logs[child_id].entries, count
        tried += not code_is_over
    assert tried


async def test_one_answer_is_not_enough_for_two_calls_in_doubt() -> None:
    """Who was not told about is asked about, alone, and nothing is done before."""
    decks = Texts({"PROMPT.md": root(TOOL)})
    replies = [
        Reply(pass_number=1, calls=(Call(name="crm"), Call(name="crm")), times=0),
        Reply(text="Done.", times=0),
    ]
    store = Recorder()
    async with opened(decks, replies, store) as runtime:
        run_id = (await runtime.run("PROMPT.md", message="Hi.")).run_id
    count = next(
        count
        for count in range(1, store.batches[-1])
        if any(
            isinstance(e, CallStarted)
            for e in kept_until(store.logs, count).logs[run_id].entries
        )
    )
    kept, sent = kept_until(store.logs, count), Counting()
    before = list(kept.logs[run_id].entries)
    async with opened(decks, replies, kept, sent) as runtime:
        with pytest.raises(InDoubt) as caught:
            await runtime.resume(run_id)
        first, second = (doubt.key for doubt in caught.value.doubts)
        with pytest.raises(InDoubt) as caught:
            await runtime.resume(run_id, answers={first: "retry"})
        assert [doubt.key for doubt in caught.value.doubts] == [second]
        assert kept.logs[run_id].entries == before
        assert sent.asked == []
        answers = {first: "retry", second: "fail"}
        result = await runtime.resume(run_id, answers=answers)  # type: ignore[arg-type]  # two of the answers
    assert result.text == "Done."
    assert [call.idempotency_key for call in sent.asked] == [first]


async def test_a_run_that_goes_on_says_so_in_its_trace() -> None:
    """Its start is told as one of a run that is resumed."""
    kept, run_id = await cut_in_a_payment(files("retry"))
    _, sink = await resumed(kept, run_id, files("retry"), Counting())
    (told,) = sink.of(RunStart)
    assert (told.run_id, told.is_resumed) == (run_id, True)


@pytest.mark.parametrize("is_narrowed", [True, False])
async def test_a_deck_below_code_is_found_with_what_its_action_leaves_it(
    *, is_narrowed: bool
) -> None:
    """What it may not do any more is not offered to it, so a call of that is asked."""
    narrow = "[actions.permissions]\nread = true\n" if is_narrowed else ""
    decks = Texts(
        {
            "PROMPT.md": root(execute("code") + narrow + ALLOWED),
            "a/PROMPT.md": child(ALLOWED),
            "any.json": ANYTHING,
            "code.py": "",
        },
        modules={"code.py": DescribedModule()},
    )
    programs = ProgramCache()
    above = programs.root(
        load_deck(decks, "PROMPT.md").usable(), permissions=None, runtime_tools=()
    )

    async def load(path: str) -> Deck:
        await trio.lowlevel.checkpoint()
        return load_deck(decks, path).usable()

    finder = BelowFinder(programs, load, was_at="PROMPT.md", is_at="PROMPT.md")
    asked = FunctionCall(call_id="c1", name="code", arguments="{}")
    entry = ChildStarted(run_id="run-2", call_id="c1", path="a/PROMPT.md")
    found = await finder.find(above, [asked], entry)
    assert found is not None
    assert "read_file" in found.offers
    patching = CallStarted(call_id="c2", name="apply_patch", kind="builtin")
    assert choice_for(found, patching) == ("ask" if is_narrowed else "fail")
