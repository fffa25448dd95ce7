"""Conversations of real processes that are killed, again and again, and lose nothing.

The short version is part of all tests, the long one of ``make soak``. A process is
killed by ``SIGKILL`` after a while, after it has written so much, or by itself in the
middle of a write. Then the next one goes on, and may be killed as well. What they did
is held against what they wrote down elsewhere: see `tests.store.crash_play`.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal, TypeAlias, TypeVar

import msgspec
import pytest
import trio

from gambit_actors.openresponses.items import FunctionCall, FunctionCallOutput
from gambit_actors.run.doubts import idempotency_key
from gambit_actors.run.entries import (
    CallEnded,
    CallStarted,
    ChildStarted,
    Entry,
    ItemAdded,
    RunResumed,
    RunStarted,
)
from gambit_actors.run.entry_codec import encode_entry
from gambit_actors.run.states import RunState, state_from_entries
from gambit_actors.store.disk_store import DiskStore
from gambit_actors.store.log_reading import read_file
from gambit_actors.store.syncing import Durability
from tests.store.crash_play import Done, Job, Shown
from tests.store.crash_script import Choice, write_decks

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "SIGKILL"), reason="there is no such signal"
)

ROOT = Path(__file__).resolve().parents[2]
CHOICES: tuple[Choice, ...] = ("ask", "retry", "fail")
ACTION_CHOICES: tuple[Choice, ...] = ("retry", "retry", "ask", "fail")
DURABILITIES: tuple[Durability, ...] = ("pass", "none")
MOST_KILLS = 4
LONGEST_SECONDS = 0.35
MOST_BYTES = 500_000
MOST_WRITES = 100
PATIENCE_SECONDS = 60.0
SEED = "CRASH_SEED"
"""Set in the environment, it makes the same choices again."""

_T = TypeVar("_T")
CallKey: TypeAlias = tuple[str, str]
"""A run and one of its calls."""

Logs: TypeAlias = dict[str, list[Entry]]


class Counts(msgspec.Struct, kw_only=True):
    """What a sweep came to."""

    conversations: int = 0
    kills: int = 0
    kills_in_writes: int = 0
    kills_of_resumed: int = 0
    resumes: int = 0
    torn: int = 0
    calls: int = 0
    in_doubt: int = 0
    decks_gone_on_with: int = 0
    items: int = 0
    lost: int = 0

    def tell(self) -> str:
        """All of it, in words."""
        return (
            f"{self.conversations} conversations: {self.kills} kills"
            f" ({self.kills_in_writes} in the middle of a write,"
            f" {self.kills_of_resumed} of a process that had resumed),"
            f" {self.resumes} resumes, {self.torn} torn ends,"
            f" {self.calls} calls, {self.in_doubt} in doubt,"
            f" {self.decks_gone_on_with} decks gone on with,"
            f" {self.items} items shown, {self.lost} lost"
        )


class Doubtful(msgspec.Struct, frozen=True, kw_only=True):
    """A call that had begun and had no output when a process was killed.

    Attributes:
        child: if it is a deck, the log of that, which may not have come to be.
        is_child_over: whether that had its end already, or was not begun.
    """

    key: CallKey
    attempt: int
    child: str | None
    is_child_over: bool


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """What there was right after a kill."""

    logs: Logs
    begun: int
    recorded: set[CallKey]
    doubtful: list[Doubtful]


class Conversation:
    """One conversation, from its first process to the one that ends it."""

    def __init__(self, folder: Path, durability: Durability, counts: Counts) -> None:
        self._folder = folder
        self._job = Job(folder=str(folder), durability=durability)
        self._counts = counts
        self._scenes: list[Scene] = []
        self._torn = 0

    def play(self, chance: random.Random | None = None) -> Done | None:
        """Play on; gives what it came to, or None if it was killed on the way."""
        had_begun = bool(self._logs()[0])
        how: Literal["time", "bytes", "write", "not"] = "not"
        job = self._job
        if chance is not None:
            how = chance.choice(("time", "bytes", "write"))
            if how == "write":
                job = msgspec.structs.replace(
                    job,
                    dies_at=chance.randint(1, round(MOST_WRITES * self._left)),
                    part=chance.random(),
                )
        with started(job) as process:
            if chance is not None and how != "write":
                self._kill(process, how, chance)
            heard, problems = process_end(process)
        self._counts.resumes += had_begun
        if process.returncode == -signal.SIGKILL:
            self._counts.kills += 1
            self._counts.kills_in_writes += how == "write"
            self._counts.kills_of_resumed += had_begun
            self._look()
            return None
        assert process.returncode == 0, problems
        return msgspec.json.decode(heard, type=Done)

    @property
    def _left(self) -> float:
        """About how much of the conversation there is still to come."""
        return 1 / (1 + len(self._scenes))

    def _kill(
        self, process: "subprocess.Popen[bytes]", how: str, chance: random.Random
    ) -> None:
        if how == "time":
            time.sleep(chance.uniform(0, LONGEST_SECONDS * self._left))
        else:
            enough = self._bytes() + chance.randint(1, round(MOST_BYTES * self._left))
            while process.poll() is None and self._bytes() < enough:
                pass
        process.kill()

    def _bytes(self) -> int:
        """How much is written in all logs, and in the ledger."""
        total = 0
        for path in (*self._folder.glob("logs/*.jsonl"), self._folder / "ledger"):
            if path.exists():
                total += path.stat().st_size
        return total

    def _logs(self) -> tuple[Logs, int]:
        """All logs that have something in them, and how many have a torn end."""
        found: Logs = {}
        torn = 0
        for path in self._folder.glob("logs/*.jsonl"):
            contents, _ = read_file(path)
            torn += contents.torn is not None
            if contents.entries:
                found[path.stem] = contents.entries
        return found, torn

    def _look(self) -> None:
        logs, torn = self._logs()
        # What was torn before and left so, because nobody goes on with it, is not new.
        self._counts.torn += max(0, torn - self._torn)
        self._torn = torn
        recorded: set[CallKey] = set()
        doubtful: list[Doubtful] = []
        for run_id, entries in logs.items():
            recorded |= {(run_id, call_id) for call_id in answered(entries)}
            doubtful += doubtful_in(run_id, entries, logs)
        self._scenes.append(
            Scene(
                logs=logs,
                begun=len(self._ledger()),
                recorded=recorded,
                doubtful=doubtful,
            )
        )

    def _ledger(self) -> list[tuple[str, int, str]]:
        """What tools have noted: keys, attempts, and what happened."""
        path = self._folder / "ledger"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(key, int(n), what) for key, n, what in map(str.split, lines)]

    def _shown(self) -> list[Shown]:
        path = self._folder / "shown"
        lines = path.read_bytes().splitlines() if path.exists() else []
        # A line that was cut was not shown; there is one for each kill, at the most.
        shown = [entry for line in lines if (entry := shown_in(line)) is not None]
        assert len(lines) - len(shown) <= len(self._scenes)
        return shown

    def forget(self) -> None:
        """Remove what it has written."""
        shutil.rmtree(self._folder)

    # What has to hold in the end

    def check(self) -> None:
        """Hold the logs against what was seen and done meanwhile."""
        logs, shown = self._logs()[0], self._shown()
        given_up = set(given_up_in(logs))
        self._check_logs(logs, given_up)
        self._check_ledger()
        self._check_items(logs, shown)
        self._check_doubts(logs, shown, given_up)
        trio.run(reopen_all, self._folder / "logs", list(logs))

    def _check_logs(self, logs: Logs, given_up: set[str]) -> None:
        for scene in self._scenes:
            for run_id, entries in scene.logs.items():
                assert logs[run_id][: len(entries)] == entries, run_id
        for run_id, entries in logs.items():
            calls = [i.call_id for i in items_of(entries, FunctionCall)]
            outputs = [i.call_id for i in items_of(entries, FunctionCallOutput)]
            self._counts.calls += len(calls)
            assert len(set(outputs)) == len(outputs), run_id
            attempts = attempts_of(entries)
            for call_id, numbers in attempts.items():
                expected = list(range(1, len(numbers) + 1))
                assert numbers == expected, (run_id, call_id)
            if run_id not in given_up:
                assert sorted(calls) == sorted(outputs), (entries[0], entries[-3:])
                assert not state_from_entries(entries).pending, run_id

    def _check_ledger(self) -> None:
        ledger = self._ledger()
        begun: dict[str, list[int]] = {}
        for key, attempt, what in ledger:
            if what == "begin":
                assert attempt > max(begun.get(key, [0])), key
                begun.setdefault(key, []).append(attempt)
            else:
                assert attempt in begun[key], key
        for scene in self._scenes:
            later = {key for key, _, what in ledger[scene.begun :] if what == "begin"}
            recorded = {idempotency_key(*key) for key in scene.recorded}
            assert not later & recorded

    def _check_items(self, logs: Logs, shown: list[Shown]) -> None:
        kept = Counter(
            (run_id, encode_entry(entry).decode())
            for run_id, entries in logs.items()
            for entry in entries
            if isinstance(entry, ItemAdded)
        )
        seen = Counter((s.run_id, s.item) for s in shown if s.item)
        lost = seen - kept
        self._counts.items += seen.total()
        self._counts.lost += lost.total()
        assert not lost, next(iter(lost))

    def _check_doubts(self, logs: Logs, shown: list[Shown], given_up: set[str]) -> None:
        told = {((s.run_id, s.call_id), s.attempt) for s in shown if s.call_id}
        doubtful = {d for scene in self._scenes for d in scene.doubtful}
        for doubt in doubtful:
            if (doubt.key, doubt.attempt) in told:
                self._counts.in_doubt += 1
            elif doubt.child is not None:
                self._counts.decks_gone_on_with += 1
                child = logs.get(doubt.child, [])
                is_resumed = any(isinstance(e, RunResumed) for e in child)
                is_let_be = doubt.is_child_over or doubt.key[0] in given_up
                assert is_resumed or is_let_be, doubt
            else:
                # What it was part of is in doubt itself, and was given up.
                assert doubt.key[0] in given_up, doubt


def started(job: Job) -> "subprocess.Popen[bytes]":
    """Start a process, and wait until it has loaded what it needs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.store.crash_play", msgspec.json.encode(job)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n", errors_of(process)
    return process


def errors_of(process: "subprocess.Popen[bytes]") -> str:
    """What a process complains of."""
    stream: IO[bytes] | None = process.stderr
    return "" if stream is None else stream.read().decode()


def process_end(process: "subprocess.Popen[bytes]") -> tuple[bytes, str]:
    """Wait until a process is gone; gives what it said."""
    try:
        heard, problems = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
    return heard, problems.decode()


def shown_in(line: bytes) -> Shown | None:
    """What was shown; None if that was cut."""
    try:
        return msgspec.json.decode(line, type=Shown)
    except msgspec.DecodeError:
        return None


def items_of(entries: list[Entry], kind: type[_T]) -> Iterator[_T]:
    """The items of a kind."""
    for entry in entries:
        if isinstance(entry, ItemAdded) and isinstance(entry.item, kind):
            yield entry.item


def answered(entries: list[Entry]) -> set[str]:
    """The calls that have an output."""
    ended = {e.call_id for e in entries if isinstance(e, CallEnded)}
    return ended | {i.call_id for i in items_of(entries, FunctionCallOutput)}


def attempts_of(entries: list[Entry]) -> dict[str, list[int]]:
    """How often each call has begun."""
    found: dict[str, list[int]] = {}
    for entry in entries:
        if isinstance(entry, CallStarted):
            found.setdefault(entry.call_id, []).append(entry.attempt)
    return found


def is_open(state: RunState) -> bool:
    """Whether a turn has begun and not ended."""
    return state.turns > 0 and state.ended is None


def doubtful_in(run_id: str, entries: list[Entry], logs: Logs) -> Iterator[Doubtful]:
    """The calls of a run of which nobody knows whether they have happened."""
    state = state_from_entries(entries)
    if not is_open(state):
        return
    for call_id, began in state.started.items():
        if call_id in state.pending and call_id not in state.finished:
            child = logs.get(began.run_id or "", [])
            yield Doubtful(
                key=(run_id, call_id),
                attempt=began.attempt,
                child=began.run_id,
                is_child_over=not is_open(state_from_entries(child)),
            )


def given_up_in(logs: Logs) -> Iterator[str]:
    """The runs that nobody goes on with: what they are part of was given up."""
    refused = {
        (run_id, item.call_id)
        for run_id, entries in logs.items()
        for item in items_of(entries, FunctionCallOutput)
        if '"code":"in_doubt"' in str(item.output)
    }
    # Handlers that were cut off: what they are for is done anew, and they as well.
    for run_id in handlers_in(logs):
        if is_open(state_from_entries(logs.get(run_id, []))):
            yield run_id
    for run_id in logs:
        above: str | None = run_id
        while above is not None and (run := start_of(logs[above])).parent_run_id:
            if (run.parent_run_id, run.parent_call_id) in refused:
                yield run_id
            above = run.parent_run_id


def handlers_in(logs: Logs) -> Iterator[str]:
    """The runs that no call is waiting for, and those for a call that had failed."""
    for entries in logs.values():
        for entry in entries:
            if not isinstance(entry, ChildStarted):
                continue
            # An error handler is gone on with if its call fails again, in the same way.
            if entry.call_id is None or entry.path.endswith("error/PROMPT.md"):
                yield entry.run_id


def start_of(entries: list[Entry]) -> RunStarted:
    """How a log begins."""
    first = entries[0]
    assert isinstance(first, RunStarted)
    return first


async def reopen_all(folder: Path, run_ids: list[str]) -> None:
    """Make sure that each log can be gone on with."""
    async with DiskStore(folder, durability="none") as store:
        for run_id in run_ids:
            found = await store.reopen_log(run_id)
            await found.log.aclose()


def sweep(folder: Path, *, kills: int, seed: int) -> Counts:
    """Have conversations until there were so many kills."""
    chance, counts = random.Random(seed), Counts()  # noqa: S311  # nothing is secret
    undisturbed = finished(conversation(folder, -1, chance, Counts()).play())
    while counts.kills < kills:
        talk = conversation(folder, counts.conversations, chance, counts)
        counts.conversations += 1
        done = None
        for _ in range(chance.randint(1, MOST_KILLS)):
            done = done or talk.play(chance)
        done = finished(done or talk.play())
        assert msgspec.structs.replace(done, run_id=undisturbed.run_id) == undisturbed
        talk.check()
        talk.forget()
    return counts


def conversation(
    folder: Path, number: int, chance: random.Random, counts: Counts
) -> Conversation:
    """A new one, with other decks than the last."""
    own = folder / str(number)
    write_decks(own, CHOICES[number % 3], chance.choice(ACTION_CHOICES))
    return Conversation(own, DURABILITIES[number % 2], counts)


def finished(done: Done | None) -> Done:
    """What it came to."""
    assert done is not None
    return done


def tell(capsys: pytest.CaptureFixture[str], words: str) -> None:
    """Print past what pytest keeps to itself."""
    with capsys.disabled():
        print(f"\n{words}")  # noqa: T201


def told_sweep(
    folder: Path, capsys: pytest.CaptureFixture[str], *, kills: int
) -> Counts:
    """Sweep, and tell what came of it."""
    seed = int(os.environ.get(SEED, "") or random.SystemRandom().getrandbits(32))
    began = time.monotonic()
    try:
        counts = sweep(folder, kills=kills, seed=seed)
    except BaseException:
        tell(capsys, f"{SEED}={seed}")
        raise
    seconds = time.monotonic() - began
    tell(capsys, f"{SEED}={seed}: {counts.tell()}, in {seconds:.0f} s")
    return counts


@pytest.mark.slow
@pytest.mark.spec("CARD-7")
def test_a_killed_run_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a dozen kills: the same answers, nothing done twice, nothing lost."""
    counts = told_sweep(tmp_path, capsys, kills=12)
    assert counts.kills >= 12
    assert counts.items > 0


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.spec("CARD-7")
def test_300_kills_lose_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same, with kills enough to hit everything there is."""
    counts = told_sweep(tmp_path, capsys, kills=300)
    assert counts.kills >= 300
    # A sweep that hits nothing of interest would prove nothing.
    assert min(counts.torn, counts.in_doubt, counts.decks_gone_on_with) > 0
    assert counts.kills_of_resumed > 50
