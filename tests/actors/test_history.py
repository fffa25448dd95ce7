"""Runs that are over: replayed without a model, and branched."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec
import pytest
import trio

from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.memory_log import MemoryStore
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.runtime import Runtime, open_runtime
from gambit_actors.actors.trees import Limits
from gambit_actors.errors import NoSuchRun, RequestError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Message,
    system_message,
)
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Call, Reply
from gambit_actors.run.branching import begin_branch, branch_entries
from gambit_actors.run.entries import (
    CallEnded,
    CallNoted,
    CallStarted,
    ChildStarted,
    Entry,
    Failure,
    ItemAdded,
    ModelAnswered,
    RunResumed,
    RunStarted,
    TurnEnded,
    TurnStarted,
)
from gambit_actors.run.entry_codec import encode_entry
from gambit_actors.run.programs import RuntimeTool
from gambit_actors.run.replaying import Difference, replay
from gambit_actors.run.saved_state_entries import entries_from_saved_state
from gambit_actors.run.saved_states import SavedState
from tests.actors.playing import ANYTHING, MODEL, TOOL, items_in, root
from tests.deck.reading import Texts
from tests.run.playing import (
    accepted,
    answered,
    asked,
    called,
    complaint,
    output,
    program,
    said,
)

CHILD = 'contextSchema = "../s.json"\nresponseSchema = "../s.json"\nrespond = true\n'
ASK_CHILD = '[[actions]]\nname = "a"\ndescription = "Do."\npath = "a/PROMPT.md"\n'
ANSWER = 'responseSchema = "answer.json"\n'
NUMBER = (
    '{"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}'
)


def files(**changed: str) -> dict[str, str]:
    """A root with a tool, a child and a schema for its answer."""
    decks = {
        "PROMPT.md": root(ANSWER + ASK_CHILD + TOOL),
        "a/PROMPT.md": root(CHILD + TOOL),
        "s.json": ANYTHING,
        "answer.json": NUMBER,
    }
    return decks | {name.replace("__", "/"): text for name, text in changed.items()}


def script() -> list[Reply]:
    """Bad calls, good calls, a bad answer that is put right; then a second turn."""
    respond = (Call(name="gambit_respond", arguments={"payload": {}}),)
    crm = Call(name="crm")
    return [
        Reply(deck="*/a/PROMPT.md", pass_number=1, calls=(crm,), times=0),
        Reply(deck="*/a/PROMPT.md", calls=respond, times=0),
        Reply(turn=2, text='{"n": 2}', times=0),
        Reply(pass_number=1, calls=(crm, Call(name="nobody")), times=0),
        Reply(pass_number=2, calls=(Call(name="a"), Call(name="crm")), times=0),
        Reply(pass_number=3, text="no number", times=0),
        Reply(text='{"n": 1}', times=0),
    ]


async def note(_call: ExternalCall) -> JSONValue:
    """The tool."""
    await trio.lowlevel.checkpoint()
    return "noted"


@asynccontextmanager
async def opened(
    store: MemoryStore, decks: dict[str, str], replies: list[Reply] | None = None
) -> AsyncIterator[Runtime]:
    """A runtime on a store; without replies it has no model."""
    async with open_runtime(
        ScriptedProvider(replies or []),
        reader=Texts(decks),
        store=store,
        options=RunOptions(on_tool=note),
    ) as runtime:
        yield runtime


async def played() -> tuple[MemoryStore, str]:
    """A store with a session of two turns."""
    store = MemoryStore(keep=True)
    async with (
        opened(store, files(), script()) as runtime,
        runtime.open_session("PROMPT.md") as session,
    ):
        assert (await session.send("Hi.")).value == {"n": 1}
        assert (await session.send("And now?")).value == {"n": 2}
    return store, session.run_id


@pytest.mark.spec("CARD-7")
async def test_a_run_replays_without_a_model() -> None:
    """All that the decks decided comes out byte for byte, in the run and below it."""
    store, run_id = await played()
    async with opened(store, files()) as runtime:
        root_run, child = await runtime.history.replay(run_id)
    assert (root_run.run_id, child.depth) == (run_id, 1)
    for run in (root_run, child):
        assert run.replayed.difference is None
        assert run.replayed.decided >= 4
        log = store.logs[run.run_id]
        assert run.replayed.decided + run.replayed.taken == len(log.entries)
    ended = root_run.replayed.ended
    assert ended is not None
    assert ended.result == {"n": 2}


WARM = MODEL + "temperature = 0.5\n"
STRICT = NUMBER.replace('"number"', '"string"')


@pytest.mark.parametrize(
    ("changed", "words", "depth"),
    [
        ({"PROMPT.md": root(ANSWER + ASK_CHILD + TOOL, "Be rude.")}, "prompt", 0),
        ({"answer.json": STRICT}, "put right|put its answer right|something else", 0),
        ({"PROMPT.md": root(ANSWER + ASK_CHILD)}, "crm was carried out", 0),
        ({"a__PROMPT.md": root(CHILD + TOOL, "Be rude.")}, "prompt", 1),
        ({"PROMPT.md": root(ASK_CHILD + TOOL)}, "asked to put its answer right", 0),
    ],
)
async def test_a_changed_deck_shows_where_it_parts(
    changed: dict[str, str], words: str, depth: int
) -> None:
    """The first difference has its place, what is recorded, and what would be now."""
    store, run_id = await played()
    for log in store.logs.values():
        # As before it was noted how a model is asked: what it asks for tells then.
        log.entries[:] = [without_asked(entry) for entry in log.entries]
    await check_parts(store, run_id, changed, words, depth)


@pytest.mark.parametrize(
    ("changed", "words", "depth"),
    [
        ({"answer.json": STRICT}, "other answer schema", 0),
        ({"PROMPT.md": root(ANSWER + ASK_CHILD)}, "other tools", 0),
        ({"PROMPT.md": root(ASK_CHILD + TOOL)}, "other answer schema", 0),
        (
            {
                "PROMPT.md": root(ANSWER + ASK_CHILD + TOOL).replace(
                    "scripted/one", "scripted/two"
                )
            },
            "other models",
            0,
        ),
        (
            {"a__PROMPT.md": root(CHILD + TOOL).replace(MODEL, WARM)},
            "other parameters",
            1,
        ),
        (
            {"a__PROMPT.md": root(CHILD + TOOL.replace("Leave", "Take"))},
            "other tools",
            1,
        ),
    ],
)
async def test_a_model_that_would_be_asked_in_another_way_shows(
    changed: dict[str, str], words: str, depth: int
) -> None:
    """Models, settings, tools and the schema of answers are compared at each pass."""
    store, run_id = await played()
    await check_parts(store, run_id, changed, words, depth)


def without_asked(entry: Entry) -> Entry:
    """An entry of a log that says no more than older ones did."""
    if isinstance(entry, ModelAnswered):
        return msgspec.structs.replace(entry, asked="")
    return entry


async def check_parts(
    store: MemoryStore, run_id: str, changed: dict[str, str], words: str, depth: int
) -> None:
    """See that a run replayed with other decks parts at one place, in these words."""
    async with opened(store, files(**changed)) as runtime:
        runs = await runtime.history.replay(run_id)
    (parted,) = [run for run in runs if run.replayed.difference is not None]
    difference = parted.replayed.difference
    assert difference is not None
    assert parted.depth == depth
    assert any(word in difference.words for word in words.split("|"))
    entry = store.logs[parted.run_id].entries[difference.index]
    assert difference.recorded == encode_entry(entry).decode()
    assert difference.now != difference.recorded


async def test_a_log_below_that_is_gone_is_a_difference() -> None:
    """What a deck did whose log was removed is not compared, and that is said."""
    store, run_id = await played()
    log = store.logs[run_id].entries
    index = next(
        n for n, e in enumerate(log) if isinstance(e, CallStarted) and e.run_id
    )
    (child_id,) = [key for key in store.logs if key != run_id]
    child_log = store.logs.pop(child_id)
    async with opened(store, files()) as runtime:
        (replayed,) = await runtime.history.replay(run_id)
        assert replayed.replayed.difference == Difference(
            index=index,
            recorded=encode_entry(log[index]).decode(),
            now="",
            words=f"there is no log of run {child_id}, so a was not compared",
        )
        other = files(**{"PROMPT.md": root(ANSWER + ASK_CHILD + TOOL, "Be rude.")})
    async with opened(store, other) as runtime:
        assert await first_words(runtime, run_id) == "the prompt is another"
    child_log.entries.clear()  # As it is when a crash left half a batch.
    store.logs[child_id] = child_log
    async with opened(store, files()) as runtime:
        words = await first_words(runtime, run_id)
        assert words == f"there is no log of run {child_id}, so a was not compared"


BEGUN = CallStarted(call_id="c1", name="a", kind="action", run_id="run-b")
SPAWNED = ChildStarted(run_id="run-b", call_id="c1", path="b/PROMPT.md")
HANDLER = ChildStarted(run_id="run-b", path="b/PROMPT.md")
ENDED = CallEnded(call_id="c1", output="{}")
TOO_DEEP = '{"status": 508, "code": "max_depth"}'
CUT = ItemAdded(item=output().item, source="runtime")


@pytest.mark.parametrize(
    ("entries", "is_said"),
    [
        ([BEGUN], False),
        ([BEGUN, CUT, TurnEnded(status="cancelled")], False),
        ([BEGUN, output(call_id="c1")], True),
        ([BEGUN, CallEnded(call_id="c2", output="{}")], False),
        ([BEGUN, ENDED], True),
        # It never had a log, because it was one deck too many.
        ([BEGUN, CallEnded(call_id="c1", output=TOO_DEEP)], False),
        ([BEGUN, output(TOO_DEEP, call_id="c1")], False),
        # It was begun anew under another name, or under the same.
        ([BEGUN, RunResumed(), ENDED], False),
        ([BEGUN, RunResumed(), BEGUN, ENDED], True),
        ([SPAWNED], False),
        ([SPAWNED, ENDED], True),
        ([HANDLER], False),
        ([HANDLER, ENDED], False),
        ([HANDLER, TurnEnded(status="failed")], True),
    ],
)
async def test_a_run_below_that_had_not_begun_is_passed_over(
    entries: list[Entry], *, is_said: bool
) -> None:
    """Only where the run above went on with what it gave, a log is missing."""
    store = MemoryStore(keep=True)
    log = await store.open_log(RunStarted(run_id="run-a", deck="d", path="PROMPT.md"))
    asked_for = called("a", "{}", call_id="c1")
    await log.append([*opening()[1:], answered(), asked_for, *entries])
    async with opened(store, files()) as runtime:
        (replayed,) = await runtime.history.replay("run-a")
    difference = replayed.replayed.difference
    words = "" if difference is None else difference.words
    assert ("there is no log of run run-b" in words) == is_said


async def test_a_deck_below_that_is_gone_is_a_difference() -> None:
    """What a deck did that cannot be loaded any more is not compared, and that is said.

    A deck that is there is compared as ever.
    """
    store = MemoryStore(keep=True)
    start = RunStarted(run_id="run-a", deck="d", path="PROMPT.md")
    await (await store.open_log(start)).append([TurnStarted(), SPAWNED])
    below = RunStarted(run_id="run-b", deck="b", path="b/PROMPT.md", depth=1)
    await (await store.open_log(below)).append([TurnStarted()])
    async with opened(store, files()) as runtime:
        assert await first_words(runtime, "run-a") == (
            "b/PROMPT.md is no deck any more, so run run-b was not compared"
        )
    async with opened(store, files() | {"b/PROMPT.md": root()}) as on:
        first, second = await on.history.replay("run-a")
    assert first.replayed.difference is second.replayed.difference is None


async def test_every_item_can_be_branched_at() -> None:
    """The branch has the same beginning, an id of its own, and goes on to an end."""
    store, run_id = await played()
    items = items_in(store.logs[run_id].entries)
    for count in range(1, len(items) + 1):
        async with opened(store, files(), script()) as runtime:
            branch_id = await runtime.history.branch(run_id, items=count)
            result = await runtime.resume(branch_id)
            (replayed, *_) = await runtime.history.replay(branch_id)
        first = store.logs[branch_id].entries[0]
        assert isinstance(first, RunStarted)
        assert first.branched_from == f"{run_id}@{count}"
        assert result.items[:count] == tuple(items[:count])
        assert result.status == "completed"
        assert replayed.replayed.difference is None
        made = [i for i in result.items if isinstance(i, FunctionCall)]
        given = [i for i in result.items if isinstance(i, FunctionCallOutput)]
        assert {i.call_id for i in made} == {i.call_id for i in given}


async def test_a_conversation_can_take_another_turn() -> None:
    """Behind its first answer something else is said; the first run is as it was."""
    store, run_id = await played()
    before = list(store.logs[run_id].entries)
    items = items_in(before)
    answer = next(
        n
        for n, i in enumerate(items, 1)
        if isinstance(i, Message) and i.text == '{"n": 1}'
    )
    async with opened(store, files(), script()) as runtime:
        branch_id = await runtime.history.branch(run_id, items=answer)
        async with runtime.reopen_session(branch_id) as session:
            assert not session.is_unfinished
            await session.send("Something else.")
    said = [
        i.text
        for i in items_in(store.logs[branch_id].entries)
        if isinstance(i, Message)
    ]
    assert "And now?" not in said
    assert "Something else." in said
    assert store.logs[run_id].entries == before
    ends = [e for e in store.logs[branch_id].entries if isinstance(e, TurnEnded)]
    assert len(ends) == 2


async def test_what_cannot_be_branched_is_said_in_words() -> None:
    """There is no such run, or its conversation is shorter."""
    store, run_id = await played()
    length = len(items_in(store.logs[run_id].entries))
    async with opened(store, files()) as runtime:
        for count in (0, -1, length + 1):
            words = f"has {length} items: branch at 1 to {length}, not {count}$"
            with pytest.raises(RequestError, match=words):
                await runtime.history.branch(run_id, items=count)
        with pytest.raises(NoSuchRun):
            await runtime.history.branch("run-none", items=1)
        for given in ("3", 2.5, True, None):
            with pytest.raises(RequestError, match="items has to be a whole number"):
                await runtime.history.branch(run_id, items=given)  # type: ignore[arg-type]  # that is the mistake
        empty = await store.open_log(RunStarted(run_id="run-e", deck="PROMPT.md"))
        await empty.aclose()
        with pytest.raises(RequestError, match="has no items yet"):
            await runtime.history.branch("run-e", items=1)


@pytest.mark.parametrize("run_id", [5, None, ["run"]])
async def test_what_is_no_text_is_the_id_of_no_run(run_id: str) -> None:
    """What is asked of a run that is not named by a text is refused in words."""
    async with opened(MemoryStore(keep=True), files()) as runtime:
        history = runtime.history
        for ask in (
            history.replay(run_id),
            history.result(run_id),
            history.branch(run_id, items=1),
            runtime.resume(run_id),
            runtime.resume(run_id, message="Hi."),
            runtime.reopen_session(run_id).__aenter__(),
        ):
            with pytest.raises(RequestError, match="the id of a run is a"):
                await ask


COUNTED = 'responseSchema = "/count.json"\n'
PUT_RIGHT = [answered(), said('{"n": "x"}')]


def difference_in(
    entries: Sequence[Entry], frontmatter: str = "", **more: int
) -> Difference | None:
    """Where a log parts from a deck with these offers."""
    offers = '[[actions]]\nname = "a"\ndescription = "Do."\npath = "/child/PROMPT.md"\n'
    made = program(f"{frontmatter}{TOOL}{offers}")
    return replay(made, entries, **more).difference


def opening(**more: int) -> list[Entry]:
    """What the log of a deck begins with."""
    prompt = ItemAdded(item=system_message("Be kind."), source="deck")
    run = RunStarted(run_id="r", deck="PROMPT.md")
    return [run, TurnStarted(**more), prompt, asked("Hi.")]


def begun(name: str = "crm", **more: str) -> CallStarted:
    """The start of a call of the model's."""
    given = {"kind": "tool"} | more
    return CallStarted(call_id="c1", name=name, **given)  # type: ignore[arg-type]  # whatever is to be tried


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        # The model was asked where there was something else to do.
        ([answered(), called("crm"), begun(), answered()], "crm would be called"),
        ([answered(), said("Hello."), answered()], "the turn would end"),
        ([*PUT_RIGHT, answered()], "now the model would be asked to put its answer"),
        # A call was carried out that nobody had made, or where none was wanted.
        ([begun()], "crm was called, and now the model would be asked"),
        ([answered(), called("crm", call_id="c2"), begun()], "crm was called"),
        # It was carried out as something else, or was none that is carried out.
        ([answered(), called("nobody"), begun("nobody")], "answered on the spot"),
        ([answered(), called("crm"), begun(kind="builtin")], "of the kind tool"),
        (
            [answered(), called("a", '{"n": 1}'), begun("a", kind="action")],
            "run as a deck",
        ),
        # It was answered on the spot, and is not.
        ([answered(), called("crm"), output()], "now would be carried out"),
        ([answered(), called("nobody"), output()], "refused in other words"),
        ([answered(), called("nobody"), output("no JSON")], "in other words"),
        ([answered(), called("nobody"), output('["x"]')], "in other words"),
        # The model was told to put something right, or something else.
        ([*PUT_RIGHT, complaint("Nonsense.")], "would be told something else"),
        ([answered(), said("Hello."), complaint()], "now the turn would end"),
        ([complaint()], "now the model would be asked"),
        # The turn ended where it would not, or in another way.
        ([TurnEnded(status="completed")], ""),
        ([answered(), TurnEnded(status="completed", text="x")], "in another way"),
        ([answered(), said("x"), TurnEnded(status="completed")], "in another way"),
    ],
)
def test_each_thing_that_a_deck_decides_is_compared(
    entries: list[Entry], words: str
) -> None:
    """Whatever could have been decided in another way is a difference, at its place."""
    log = [*opening(), *entries]
    found = difference_in(
        log, COUNTED if entries[: len(PUT_RIGHT)] == PUT_RIGHT else ""
    )
    if not words:  # It is the end of a turn that was not played here.
        assert found is None
        return
    assert found is not None
    assert words in found.words
    assert found.index == len(log) - 1


def test_an_empty_result_that_was_accepted_is_compared() -> None:
    """A deck that would refuse it now parts there, and says so."""
    entries = [*opening(), answered(), *accepted("gambit_respond", "")]
    responding = "respond = true\n"
    assert difference_in(entries, responding) is None
    found = difference_in(entries, responding + 'responseSchema = "/count.json"\n')
    assert found is not None
    assert "was accepted, and now would be refused" in found.words
    refused = [*entries[:-1], output(call_id="c1")]
    found = difference_in(refused, responding)
    assert found is not None
    assert "was refused, and now would be accepted" in found.words


@pytest.mark.parametrize("is_resumed", [False, True])
def test_what_is_not_the_deck_s_at_the_end_is_taken(is_resumed: bool) -> None:
    """The words of a handler; and how many passes, if somebody else went on."""
    handler = '[handlers.onError]\npath = "/child/PROMPT.md"\n'
    made = program(f"{TOOL}{handler}")
    passes = 1 + is_resumed
    words = "1 pass" if passes == 1 else f"{passes} passes"
    end = TurnEnded(
        status="failed",
        text="Sorry.",
        failure=Failure(
            code="max_passes", message=f"the deck did not come to an answer in {words}"
        ),
    )
    answer = msgspec.structs.replace(answered(), asked=made.asked)
    entries = [*opening(max_passes=1), answer, called("crm"), begun(), output()]
    if is_resumed:
        entries += [RunResumed(), answer, called("crm", call_id="c2")]
        entries += [CallStarted(call_id="c2", name="crm", kind="tool")]
        entries += [output(call_id="c2")]
    assert replay(made, [*entries, end]).difference is None


async def test_passes_are_counted_anew() -> None:
    """A run that ended for want of passes parts where there would be more, or fewer."""
    store = MemoryStore(keep=True)
    decks = {"PROMPT.md": root("[guardrails]\nmaxPasses = 2\n" + TOOL)}
    endless = [Reply(calls=(Call(name="crm"),), times=0)]
    async with opened(store, decks, endless) as runtime:
        bounded = (await runtime.try_run("PROMPT.md", message="Hi.")).run_id
        once = msgspec.structs.replace(runtime.options, limits=Limits(max_passes=1))
        limited = await runtime.try_run("PROMPT.md", message="Hi.", options=once)
        # Whoever ran it had limited it: the log says so, and it is not for the deck.
        assert await first_words(runtime, limited.run_id) is None
        assert await first_words(runtime, bounded) is None
    for passes, words in (
        (1, "the model was asked, and now the turn would end"),
        (3, "the turn ended, and now the model would be asked"),
    ):
        other = {"PROMPT.md": decks["PROMPT.md"].replace("= 2", f"= {passes}")}
        async with opened(store, other) as runtime:
            assert await first_words(runtime, bounded) == words
            assert await first_words(runtime, limited.run_id) is None


async def first_words(runtime: Runtime, run_id: str) -> str | None:
    """What a replay says of the first difference; None where there is none."""
    (first, *_) = await runtime.history.replay(run_id)
    difference = first.replayed.difference
    return None if difference is None else difference.words


async def test_a_run_that_comes_from_a_saved_state_replays() -> None:
    """What was said before it is taken as it is; what it decided itself is compared."""
    items: tuple[dict[str, JSONValue], ...] = (
        {"type": "message", "role": "user", "content": "Hello?"},
        {"type": "message", "role": "assistant", "content": "Yes?"},
    )
    state = SavedState(run_id="run-1", items=items, format="responses")
    run = RunStarted(run_id="run-1", deck="PROMPT.md", path="PROMPT.md")
    store = MemoryStore(keep=True)
    log = await store.open_log(run)
    await log.append(entries_from_saved_state(state, run=run)[1:])
    await log.aclose()
    decks = {"PROMPT.md": root()}
    async with opened(store, decks, [Reply(text="Again.")]) as runtime:
        assert (await runtime.resume("run-1", message="And now?")).text == "Again."
        (replayed,) = await runtime.history.replay("run-1")
    assert replayed.replayed.difference is None
    assert replayed.replayed.decided == 2
    async with opened(store, {"PROMPT.md": root(ANSWER), **files()}) as runtime:
        assert await first_words(runtime, "run-1") is not None


async def test_a_run_replays_with_the_options_it_had() -> None:
    """Tools that whoever ran it had added are no difference if they are there again."""
    store = MemoryStore(keep=True)
    tools = RunOptions(on_tool=note, runtime_tools=(RuntimeTool(name="more"),))
    script = [Reply(pass_number=1, calls=(Call(name="more"),)), Reply(text="Done.")]
    async with opened(store, {"PROMPT.md": root()}, script) as runtime:
        run_id = (await runtime.run("PROMPT.md", message="Hi.", options=tools)).run_id
        assert await first_words(runtime, run_id) is not None
        (replayed,) = await runtime.history.replay(run_id, options=tools)
    assert replayed.replayed.difference is None


async def test_a_run_that_is_part_of_another_is_not_branched() -> None:
    """It has no life of its own: the error names the run that does."""
    store, run_id = await played()
    (child_id,) = [key for key in store.logs if key != run_id]
    before = list(store.logs)
    async with opened(store, files()) as runtime:
        with pytest.raises(RequestError, match=f"part of run {run_id}: branch that"):
            await runtime.history.branch(child_id, items=1)
    assert list(store.logs) == before


def test_a_branch_has_no_call_under_way() -> None:
    """What had begun for a call whose output is not shared is no part of the branch."""
    other = RunStarted(run_id="other", deck="PROMPT.md")
    second: list[Entry] = [
        CallStarted(call_id="c2", name="crm", kind="tool"),
        ChildStarted(run_id="r1", call_id="c2"),
        CallNoted(call_id="c2", item=said("Wait.").item, source="handler"),
    ]
    handler = ChildStarted(run_id="r2")
    asking: list[Entry] = [answered(), called("crm"), called("crm", call_id="c2")]
    log: list[Entry] = [*opening(), *asking, begun(), *second, handler, output()]
    later: list[Entry] = [output(call_id="c2"), answered(), said("Done.")]
    run = begin_branch(other, "new", items=5)
    shared = branch_entries([*log, *later], run, items=5)
    assert shared == [run, *log[1:7], begun(), handler, output()]
    assert branch_entries([*log, *later], run, items=6) == [run, *log[1:], later[0]]
    # Where an output is known already, the call has been made.
    known: list[Entry] = [
        *log[:-1],
        CallEnded(call_id="c2", output="{}"),
        output(),
        *later,
    ]
    assert branch_entries(known, run, items=5) == [run, *known[1:-3]]


async def test_a_branch_makes_its_calls_for_the_first_time() -> None:
    """Nobody is asked about a call of the other run, and its attempts do not count."""
    store, run_id = await played()
    items = items_in(store.logs[run_id].entries)
    count = 1 + next(n for n, i in enumerate(items) if isinstance(i, FunctionCall))
    seen: list[ExternalCall] = []

    async def on_tool(call: ExternalCall) -> JSONValue:
        seen.append(call)
        return await note(call)

    async with opened(store, files(), script()) as runtime:
        branch_id = await runtime.history.branch(run_id, items=count)
        options = msgspec.structs.replace(runtime.options, on_tool=on_tool)
        await runtime.resume(branch_id, options=options)
    assert {call.attempt for call in seen} == {1}
    assert {call.idempotency_key.partition(":")[0] for call in seen} >= {branch_id}
