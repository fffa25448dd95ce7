"""What another process had begun: read from its logs, before anything goes on.

A run has a log, and so has each deck below it. All of those that are still of interest
are read first. Then it is known what had been spent, and which calls are in doubt; who
has to be asked about one is asked before anything is done.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gambit_actors.actors.below import BelowFinder
from gambit_actors.actors.trees import PastRun
from gambit_actors.errors import (
    InDoubt,
    LogGrown,
    NoSuchRun,
    RequestError,
    StoreError,
)
from gambit_actors.run.budgets import Price, Spent
from gambit_actors.run.doubts import (
    Answer,
    Doubt,
    Happened,
    choice_for,
    doubts_of,
)
from gambit_actors.run.entries import (
    CallStarted,
    ChildStarted,
    Entry,
    ModelAnswered,
    ModelLost,
    RunStarted,
    TurnStarted,
)
from gambit_actors.run.ports import LogReopened, LogStore
from gambit_actors.run.programs import Program
from gambit_actors.run.states import RunState, state_from_entries


class Past(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A run with all that is below it, as the logs have it.

    Attributes:
        below: the runs below, by their ids.
        doubts: the calls that are in doubt, in any of them.
        abandoned: the runs below that have no end and that nobody goes on with; what
            is below one of them comes before it.
        missing: what is to be said of runs below whose logs are not there.
    """

    root: PastRun
    below: dict[str, PastRun]
    doubts: tuple[Doubt, ...]
    abandoned: tuple[PastRun, ...] = ()
    missing: tuple[str, ...] = ()


class FoundRun(msgspec.Struct, frozen=True, eq=False):
    """A run to be gone on with, and all that has to be known to do so."""

    past: Past
    program: Program
    answers: dict[str, Answer]


class PastReader:
    """Reads what is left of runs.

    Args:
        store: where the logs are.
        below: finds what the runs below are runs of.
        prices: what models cost.
    """

    def __init__(
        self,
        store: LogStore,
        *,
        below: BelowFinder,
        prices: Mapping[str, Price],
    ) -> None:
        self._store = store
        self._finder = below
        self._prices = prices
        self._below: dict[str, PastRun] = {}
        self._seen: set[str] = set()
        self._doubts: list[Doubt] = []
        self._abandoned: list[PastRun] = []
        self._missing: list[str] = []

    async def read(self, program: Program, entries: Sequence[Entry]) -> Past:
        """Read what is below a run.

        Args:
            program: the deck of the run.
            entries: the run's log.

        Raises:
            StoreError: a log cannot be read.
        """
        root = await self._read_run(program, entries, is_wanted=True)
        return Past(
            root=root,
            below=self._below,
            doubts=tuple(self._doubts),
            abandoned=tuple(self._abandoned),
            missing=tuple(self._missing),
        )

    async def _read_run(
        self, program: Program, entries: Sequence[Entry], *, is_wanted: bool
    ) -> PastRun:
        """Read a run with all below it.

        Args:
            program: its deck.
            entries: its log.
            is_wanted: whether it will be gone on with. The others only cost something.
        """
        state = state_from_entries(list(entries))
        run = run_of(entries)
        is_open = is_wanted and state.turns > 0 and state.ended is None
        if is_open:
            self._doubts += doubts_of(program, state, run_id=run.run_id)
        spent, in_turn = Spent(decks=1), Spent(decks=1)
        for entry in entries:
            if isinstance(entry, TurnStarted):
                in_turn = Spent(decks=1)
            for part in (spent, in_turn):
                self._count(part, entry)
            child = await self._read_below(program, state, entry, is_open=is_open)
            if child is not None:
                spent.add(child)
                in_turn.add(child)
        return PastRun(  # noqa: ASYNC910
            count=len(entries),
            deck_path=program.deck.path,
            run=run,
            state=state,
            spent=spent,
            spent_in_turn=in_turn,
        )

    def _count(self, spent: Spent, entry: Entry) -> None:
        if isinstance(entry, ModelAnswered):
            price = self._prices.get(entry.model)
            spent.add_answer(entry.model, entry.usage, price)
        elif isinstance(entry, ModelLost):
            spent.add_lost(entry.tokens, entry.cost)
        elif isinstance(entry, CallStarted):
            spent.calls += 1

    async def _read_below(
        self, program: Program, state: RunState, entry: Entry, *, is_open: bool
    ) -> Spent | None:
        """Read the log that an entry speaks of; gives what that run has used.

        None if the entry speaks of no log, or not for the first time.
        """
        if not isinstance(entry, CallStarted | ChildStarted):
            return None  # noqa: ASYNC910  # logs are read elsewhere
        run_id = entry.run_id
        if run_id is None or run_id in self._seen:
            return None  # noqa: ASYNC910
        self._seen.add(run_id)
        is_wanted = is_open and _is_gone_on_with(program, state, entry)
        entries = await self._entries_of(run_id, is_wanted=is_wanted)
        if not entries:
            return self._spent_by_missing(state, entry, is_wanted=is_wanted)
        below = None
        if is_wanted:
            below = await self._finder.find(program, state.items, entry)
        found = await self._read_run(
            below or program, entries, is_wanted=below is not None
        )
        if is_wanted:
            self._below[run_id] = found
        elif not found.state.is_over:
            self._abandoned.append(found)
        return found.spent

    def _spent_by_missing(
        self, state: RunState, entry: CallStarted | ChildStarted, *, is_wanted: bool
    ) -> Spent:
        """What a run has used whose log is not there: nothing, or nobody knows."""
        if is_wanted:
            self._missing.append(
                f"there is no log of run {entry.run_id}: if it had begun, what it did "
                "is lost; it is begun anew"
            )
            return Spent()
        # What a call waits for no more has been there, and what it cost is lost.
        had_begun = entry.call_id is not None and entry.call_id not in state.pending
        return Spent(has_unknown_cost=had_begun)

    async def _entries_of(self, run_id: str, *, is_wanted: bool) -> Sequence[Entry]:
        """The log of a run below; none if there is none that could be used."""
        try:
            return (await self._store.read_log(run_id)).entries
        except NoSuchRun:
            return ()  # noqa: ASYNC910  # it has looked
        except StoreError:
            if is_wanted:
                raise
            return ()  # noqa: ASYNC910  # Its cost is not known, and that is all.


def _is_gone_on_with(
    program: Program, state: RunState, entry: CallStarted | ChildStarted
) -> bool:
    """Whether what is below a run may be taken up again when the run is."""
    call = state.pending.get(entry.call_id or "")
    if call is None or call.call_id in state.finished:
        return False
    started = state.started.get(call.call_id)
    # Who is to be asked may say that it is to be.
    return started is not None and choice_for(program, started) != "fail"


async def taken_over(store: LogStore, past: PastRun) -> LogReopened:
    """Go on with the log of a run, which is still as it was read.

    Raises:
        StoreError: it is not, or it cannot be had.
    """
    reopened = await store.reopen_log(past.run.run_id)
    if len(reopened.entries) != past.count + 1:
        await reopened.log.aclose()
        raise LogGrown(past.run.run_id)
    return reopened


def run_of(entries: Sequence[Entry]) -> RunStarted:
    """How a log begins.

    Raises:
        RequestError: it does not begin like a run.
    """
    first = entries[0] if entries else None
    if not isinstance(first, RunStarted):
        msg = "the log does not begin with the start of a run"
        raise RequestError(msg)
    return first


def answers_to(
    doubts: Sequence[Doubt], given: Mapping[str, Answer]
) -> dict[str, Answer]:
    """What is to be done about calls in doubt, by their keys.

    Args:
        doubts: the calls.
        given: by key, or by the model's id of the call where that is enough.

    Raises:
        InDoubt: somebody has to be asked about one, and was not.
        RequestError: an answer is to no call in doubt, to several, or is none.
    """
    found: dict[str, Answer] = {}
    for name, answer in given.items():
        if not isinstance(answer, Happened) and answer not in ("retry", "fail"):
            msg = f"{answer!r} is no answer: say retry, fail, or what it gave"
            raise RequestError(msg)
        keys = {doubt.key for doubt in doubts if name in (doubt.key, doubt.call_id)}
        if len(keys) != 1:
            problem = "no call is in doubt by that name" if not keys else "several are"
            known = ", ".join(_names(doubts)) or "there is none"
            msg = f"an answer is given for {name}, and {problem}; in doubt: {known}"
            raise RequestError(msg)
        key = keys.pop()
        if answer == "retry" and any(d.key == key and d.lacks_secrets for d in doubts):
            msg = (
                f"{name} cannot be made again: its arguments had secrets, which the "
                "log does not keep; say fail, or what it gave"
            )
            raise RequestError(msg)
        found[key] = answer
    unanswered = [d for d in doubts if d.choice == "ask" and d.key not in found]
    if unanswered:
        raise InDoubt(unanswered)
    return found


def _names(doubts: Sequence[Doubt]) -> Iterator[str]:
    return (f"{doubt.name} ({doubt.key})" for doubt in doubts)
