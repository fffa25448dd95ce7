"""Runs whose logs are on disk: what is in the files, and what is not."""

import errno
import itertools
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.runtime import open_runtime
from gambit_actors.actors.sessions import RunResult
from gambit_actors.errors import NoSuchRun, RequestError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Call, Reply
from gambit_actors.run.entries import CallStarted, Entry, RunEnded
from gambit_actors.run.states import state_from_entries
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.store.log_files import FileCalls
from gambit_actors.trace.events import ItemLogged, ModelResult, TraceEvent
from gambit_actors.trace.trees import unbalanced
from tests.actors.playing import TOOL, calls, root
from tests.deck.reading import Texts

ASK = 'contextSchema = "s.json"\n'
PERSON = '{"type": "object", "properties": {"pin": {"x-secret": true}}}'
PIN, TOKEN = "pin-12345", 'tok"en-678'


@pytest.mark.spec("CARD-7")
async def test_what_is_secret_is_not_in_the_log(tmp_path: Path) -> None:
    """Not as context, not as a result, and not where a model repeats it."""

    async def on_tool(call: ExternalCall) -> JSONValue:
        await trio.lowlevel.checkpoint()
        assert call.args == {"pin": PIN}
        payload = {"token": TOKEN, "open": "everybody"}
        return {"payload": payload, "meta": {"secret": ["token"]}}

    script = [calls("crm", pin=PIN), Reply(text=f"It is {PIN}, and {TOKEN}.")]
    decks = Texts({"PROMPT.md": root(ASK + TOOL), "s.json": PERSON})
    async with (
        DiskStore(tmp_path) as store,
        open_runtime(
            ScriptedProvider(script),
            reader=decks,
            store=store,
            options=RunOptions(on_tool=on_tool),
        ) as runtime,
    ):
        result = await runtime.run("PROMPT.md", message="Hi.", context={"pin": PIN})
        # The run itself has it: it could not do its work without.
        assert result.text == f"It is {PIN}, and {TOKEN}."
        text = store.path_of(result.run_id).read_text()
        again = await runtime.resume(result.run_id)
    assert PIN not in text
    assert "en-678" not in text
    assert "everybody" in text
    assert again.text == "It is [redacted], and [redacted]."


CHILD_ENTRY = '[[actions]]\nname = "a"\ndescription = "Do."\npath = "a/PROMPT.md"\n'
BOTH_MARKED = (
    'contextSchema = "../in.json"\nresponseSchema = "../out.json"\nrespond = true\n'
)


async def test_what_decks_take_and_give_is_not_in_their_logs(tmp_path: Path) -> None:
    """Arguments, context, result and answer, in the log of the parent and the child."""
    marked = '{"type": "object", "properties": {"code": {"x-secret": true}}}'
    decks = {
        "PROMPT.md": root('responseSchema = "out.json"\n' + CHILD_ENTRY),
        "a/PROMPT.md": root(BOTH_MARKED),
        "in.json": marked,
        "out.json": marked,
    }
    respond = Call(name="gambit_respond", arguments={"payload": {"code": "OUT-4711"}})
    script = [
        Reply(deck="*/a/PROMPT.md", calls=(respond,)),
        calls("a", code="IN-4711"),
        Reply(text='{"code": "END-4711"}'),
    ]
    async with (
        DiskStore(tmp_path) as store,
        open_runtime(ScriptedProvider(script), reader=Texts(decks), store=store) as on,
    ):
        result = await on.run("PROMPT.md", message="Hi.")
        assert result.value == {"code": "END-4711"}
    texts = [path.read_text() for path in logs_in(tmp_path)]
    assert len(texts) == 2
    assert not [text for text in texts if "4711" in text]


def logs_in(folder: Path) -> list[Path]:
    """The files of all logs."""
    return list(folder.glob("*.jsonl"))


class WearingOut:
    """A disk on which only so many calls of a kind work.

    Args:
        kind: the call, ``write`` or ``fdatasync``.
        count: how many work.
        number: the error of those that do not.
    """

    def __init__(self, kind: str, count: int, number: int) -> None:
        self._kind = kind
        self._left = count
        self._number = number

    @property
    def calls(self) -> FileCalls:
        """The way to this disk."""
        return FileCalls(write=self._write, fdatasync=self._fdatasync)

    def _write(self, file: int, data: memoryview) -> int:
        self._wear("write")
        return os.write(file, data)

    def _fdatasync(self, file: int) -> None:
        self._wear("fdatasync")
        os.fsync(file)

    def _wear(self, kind: str) -> None:
        if kind == self._kind:
            self._left -= 1
            if self._left < 0:
                raise OSError(self._number, os.strerror(self._number))


@pytest.mark.parametrize("writes", [0, 1])
async def test_a_session_whose_log_broke_says_so(tmp_path: Path, writes: int) -> None:
    """Whatever is said next is refused for the same reason, with what can be done."""
    disk = WearingOut("write", writes, errno.ENOSPC)
    async with (
        DiskStore(tmp_path, calls=disk.calls) as store,
        open_runtime(
            ScriptedProvider([Reply(text="Hi.", times=0)]),
            reader=Texts({"PROMPT.md": root()}),
            store=store,
        ) as runtime,
        runtime.open_session("PROMPT.md") as session,
    ):
        failure = (await session.send("Hi.")).failure
        assert failure is not None
        assert failure.code == "store_failed"
        advice = "resume the run" if writes else "try again"
        assert failure.message.endswith(f"free some space, then {advice}")
        for ask in (session.send("And now?"), session.go_on()):
            with pytest.raises(RequestError) as caught:
                await ask
            assert str(caught.value) == (
                f"the log of run {session.run_id} takes nothing more: {failure.message}"
            )
        assert len(await store.run_ids()) == writes


async def test_a_session_in_which_nothing_is_said_leaves_no_run(tmp_path: Path) -> None:
    """Neither one that is only opened, nor one whose first request is refused."""
    async with (
        DiskStore(tmp_path) as store,
        open_runtime(
            ScriptedProvider([]), reader=Texts({"PROMPT.md": root()}), store=store
        ) as runtime,
    ):
        async with runtime.open_session("PROMPT.md"):
            pass
        async with runtime.open_session("PROMPT.md") as session:
            with pytest.raises(RequestError, match="not text that can be sent"):
                await session.send("\ud800")
        assert await store.run_ids() == []


WORDS = {errno.ENOSPC: "No space left", errno.EIO: "Input/output error"}


async def play(
    folder: Path, disk: WearingOut, shown: list[TraceEvent], asked: list[str]
) -> tuple[RunResult, Sequence[Entry]]:
    """Run a deck with two calls at once; gives the log as a new store finds it."""

    async def on_tool(call: ExternalCall) -> JSONValue:
        await trio.lowlevel.checkpoint()
        asked.append(call.action_call_id)
        return "noted"

    script = [calls("crm", "crm"), Reply(text="Done.")]
    async with (
        DiskStore(folder, calls=disk.calls) as store,
        open_runtime(
            ScriptedProvider(script),
            reader=Texts({"PROMPT.md": root(TOOL)}),
            store=store,
            sinks=[shown.append],
            options=RunOptions(on_tool=on_tool),
        ) as runtime,
    ):
        result = await runtime.try_run("PROMPT.md", message="Hi.")
        assert runtime.snapshot() == ()
    try:
        read = await DiskStore(folder).read_log(result.run_id)
    except NoSuchRun:
        return result, []
    return result, read.entries


@pytest.mark.slow
@pytest.mark.spec("CARD-7")
@pytest.mark.parametrize("kind", ["write", "fdatasync"])
@pytest.mark.parametrize("number", WORDS)
async def test_nothing_is_shown_that_was_not_stored(
    kind: str, number: int, tmp_path: Path
) -> None:
    """Whichever call of the disk fails first: what is told of is kept."""
    for count in itertools.count():
        shown: list[TraceEvent] = []
        asked: list[str] = []
        disk = WearingOut(kind, count, number)
        result, entries = await play(tmp_path / f"{count}", disk, shown, asked)
        kept = state_from_entries(list(entries))
        told = [event.item for event in shown if isinstance(event, ItemLogged)]
        assert told == kept.items[: len(told)]
        for event in shown:
            if isinstance(event, ModelResult):
                assert all(item in kept.items for item in event.response_items)
        assert set(asked) <= {e.call_id for e in entries if isinstance(e, CallStarted)}
        assert unbalanced(shown) == []
        if result.failure is None:
            break
        assert result.failure.code == "store_failed"
        assert WORDS[number] in result.failure.message
    assert result.text == "Done."
    assert isinstance(entries[-1], RunEnded)
    assert count >= (2 if kind == "fdatasync" else 5)
