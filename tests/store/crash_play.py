"""A process that plays a conversation on disk, or goes on with one: made to be killed.

``python -m tests.store.crash_play JOB``. It writes down, at once and behind the back of
what it tests, what outlives it: in ``ledger`` each begin and each end of a call, in
``shown`` each item and each doubt that somebody was told of. What is said is in
`tests.store.crash_script`.
"""

import json
import os
import signal
import sys
import traceback
from pathlib import Path

import msgspec
import trio

from gambit_actors.actors.hook import ExternalCall
from gambit_actors.actors.options import RunOptions
from gambit_actors.actors.runtime import Runtime, open_runtime
from gambit_actors.actors.sessions import Session
from gambit_actors.errors import InDoubt
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import Message
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.run.doubts import Answer, Doubt, Happened
from gambit_actors.run.entries import ItemAdded, RunStarted, TurnEnded
from gambit_actors.run.entry_codec import encode_entry
from gambit_actors.store.deck_files import DiskReader
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.store.log_files import FileCalls
from gambit_actors.store.log_reading import read_file
from gambit_actors.store.syncing import Durability
from gambit_actors.trace.events import CallInDoubt, DeckStart, ItemLogged, TraceEvent
from tests.store.crash_script import reply, value_of

MESSAGES = ("What is there?", "And now?")
TOOL_SECONDS = 0.004


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is to do.

    Attributes:
        folder: where the decks, the logs and everything else are.
        dies_at: the write, counted from 1, in the middle of which it kills itself.
        part: how much of that write it still does.
    """

    folder: str
    durability: Durability
    dies_at: int = 0
    part: float = 0.5


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What a conversation came to."""

    run_id: str
    status: str
    text: str
    value: JSONValue
    said: list[str]


class Shown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody was told: an item of a run, or a doubt about one of its calls."""

    run_id: str
    item: str = ""
    call_id: str = ""
    attempt: int = 0


class Player:
    """Plays a conversation of two turns to its end, wherever it is."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._folder = Path(job.folder)
        self._ledger = appending(self._folder / "ledger")
        self._shown = appending(self._folder / "shown")
        self._runs: dict[str | None, str] = {}

    async def play(self) -> Done:
        """Begin it, or go on with what is there."""
        store = DiskStore(
            self._folder / "logs",
            durability=self._job.durability,
            calls=file_calls(self._job),
        )
        async with (
            store,
            open_runtime(
                ScriptedProvider(reply),
                reader=DiskReader(self._folder / "decks"),
                store=store,
                sinks=[self.show],
                options=RunOptions(on_tool=self.on_tool),
            ) as runtime,
        ):
            return await self._converse(runtime)

    async def _converse(self, runtime: Runtime) -> Done:
        run_id = root_in(self._folder / "logs")
        if run_id is None:
            async with runtime.open_session("PROMPT.md") as session:
                await self._say_all(session, 0)
                run_id = session.run_id
        else:
            await self._go_on(runtime, run_id)
        result = await runtime.resume(run_id)
        return Done(
            run_id=run_id,
            status=result.status,
            text=result.text,
            value=result.value,
            said=[
                i.text for i in result.items if isinstance(i, Message) and is_said(i)
            ],
        )

    async def _go_on(self, runtime: Runtime, run_id: str) -> None:
        ended = turns_ended(self._folder / "logs", run_id)
        answers: dict[str, Answer] = {}
        try:
            async with runtime.reopen_session(run_id) as session:
                await self._say_all(session, ended)
        except InDoubt as problem:
            for doubt in problem.doubts:
                assert isinstance(doubt, Doubt)
                self._tell(
                    Shown(
                        run_id=doubt.run_id,
                        call_id=doubt.call_id,
                        attempt=doubt.attempt,
                    )
                )
                answers[doubt.key] = self._looked_up(doubt)
            async with runtime.reopen_session(run_id, answers=answers) as session:
                await self._say_all(session, ended)

    async def _say_all(self, session: Session, ended: int) -> None:
        if session.is_unfinished:
            await session.go_on()
            ended += 1
        for message in MESSAGES[ended:]:
            await session.send(message)

    def _looked_up(self, doubt: Doubt) -> Answer:
        """Look whether a call has happened, as a person would."""
        lines = (self._folder / "ledger").read_text().splitlines()
        if not any(f"{doubt.key} {n} end" in lines for n in range(doubt.attempt + 1)):
            return "retry"
        value = value_of(doubt.name, json.loads(doubt.arguments)["n"])
        return Happened(value={"payload": value, "status": 200})

    async def on_tool(self, call: ExternalCall) -> JSONValue:
        """Write down that a call begins; do it; write down that it was done."""
        note = f"{call.idempotency_key} {call.attempt}"
        os.write(self._ledger, f"{note} begin\n".encode())
        await trio.sleep(TOOL_SECONDS)
        os.write(self._ledger, f"{note} end\n".encode())
        if call.name == "broken":
            raise RuntimeError(call.name)
        n = call.args["n"]
        assert isinstance(n, int)
        return value_of(call.name, n)

    def show(self, event: TraceEvent) -> None:
        """Keep what somebody who watches has seen; nobody may go on unwatched."""
        try:
            self._show(event)
        except Exception:  # noqa: BLE001  # it ends the process
            traceback.print_exc()
            os._exit(1)

    def _show(self, event: TraceEvent) -> None:
        match event:
            case DeckStart(action_call_id=span, log_run_id=run_id):
                self._runs[span] = run_id or ""
            case ItemLogged(action_call_id=span):
                entry = ItemAdded(item=event.item, source=event.source)  # type: ignore[arg-type]  # it is one
                item = encode_entry(entry).decode()
                self._tell(Shown(run_id=self._runs[span], item=item))
            case CallInDoubt(action_call_id=str(call_id), log_run_id=run_id):
                shown = Shown(run_id=run_id, call_id=call_id, attempt=event.attempt)
                self._tell(shown)
            case _:
                pass

    def _tell(self, shown: Shown) -> None:
        os.write(self._shown, msgspec.json.encode(shown) + b"\n")


def is_said(message: Message) -> bool:
    """Whether somebody has said it; handlers say something else each time."""
    return not message.text.startswith(("busy.", "idle."))


def appending(path: Path) -> int:
    """A file to which lines are added, the first of them as a line of its own."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    size = os.fstat(descriptor).st_size
    # Whoever was here before was killed, and maybe in the middle of a line.
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        os.write(descriptor, b"\n")
    return descriptor


def file_calls(job: Job) -> FileCalls:
    """The way to the disk, on which the process may die in the middle of a write."""
    calls, writes = FileCalls(), 0

    def write(descriptor: int, data: memoryview) -> int:
        nonlocal writes
        writes += 1
        if writes == job.dies_at:
            os.write(descriptor, data[: round(len(data) * job.part)])
            os.kill(os.getpid(), signal.SIGKILL)
        return os.write(descriptor, data)

    return msgspec.structs.replace(calls, write=write) if job.dies_at else calls


def root_in(folder: Path) -> str | None:
    """The run that the others are below, if it has come to be."""
    for path in sorted(folder.glob("*.jsonl")):
        match read_file(path)[0].entries:
            case [RunStarted(root_run_id=None, run_id=run_id), *_]:
                return run_id
            case _:
                pass
    return None


def turns_ended(folder: Path, run_id: str) -> int:
    """How many turns have come to their ends."""
    entries = read_file(folder / f"{run_id}.jsonl")[0].entries
    return sum(isinstance(entry, TurnEnded) for entry in entries)


def main() -> None:
    """Say that it begins now, and what it came to."""
    job = msgspec.json.decode(sys.argv[1], type=Job)
    os.write(1, b"ready\n")
    done = trio.run(Player(job).play)
    os.write(1, msgspec.json.encode(done) + b"\n")


if __name__ == "__main__":
    main()
