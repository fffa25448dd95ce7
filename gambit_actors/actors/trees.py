"""What all actors of one run share: where to ask, where to write, what is left.

A `RunTree` is made for a root and handed down. It has the ports, the trace, the account
of the whole run, and the list of who is alive.
"""

import os
from collections.abc import Awaitable, Callable, Mapping

import msgspec
import trio

from gambit_actors.actors.candidates import Candidates
from gambit_actors.actors.compute import Modules
from gambit_actors.actors.confined.confinement import Confinement
from gambit_actors.actors.confined.own_files import Sources
from gambit_actors.actors.hook import ToolHook
from gambit_actors.actors.program_cache import ProgramCache
from gambit_actors.actors.session_meta import SessionMeta
from gambit_actors.deck.model import Action, Deck, Guardrails, Module
from gambit_actors.run.budgets import Account, Price, Spent
from gambit_actors.run.doubts import Answer
from gambit_actors.run.entries import RunStarted
from gambit_actors.run.ports import LogStore, ModelProvider
from gambit_actors.run.programs import Program
from gambit_actors.run.states import RunState
from gambit_actors.run.steps import MAX_PASSES
from gambit_actors.trace.events import Mode
from gambit_actors.trace.tracer import Tracer

MAX_DEPTH = 3
TIMEOUT_SECONDS = 120.0


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Beyond these no deck of a run can go, whatever its guardrails say.

    Attributes:
        max_depth: how many decks may be inside each other.
        max_passes: how often the model may be called in one invocation.
        timeout_seconds: how long one invocation may take.
        max_tokens: in and out, for the whole run with all its turns.
        max_cost: the same in the currency of the prices.
    """

    max_depth: int | None = None
    max_passes: int | None = None
    timeout_seconds: float | None = None
    max_tokens: int | None = None
    max_cost: float | None = None


class Bounds(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one invocation may use: its deck's word, or else what it was handed.

    Attributes:
        is_depth_stated: whether a deck has said how deep it may get. Those below it
            cannot make it more.
        deadline: in Trio's time; never later than that of the invocation above.
    """

    max_depth: int = MAX_DEPTH
    is_depth_stated: bool = False
    max_passes: int = MAX_PASSES
    timeout_seconds: float = TIMEOUT_SECONDS
    deadline: float = float("inf")


def narrowed(bounds: Bounds, guardrails: Guardrails, limits: Limits) -> Bounds:
    """The bounds of a deck that is invoked now."""
    seconds = guardrails.timeout_seconds
    if seconds is None:
        seconds = bounds.timeout_seconds
    seconds = seconds or float("inf")  # 0 sets no limit.
    if limits.timeout_seconds is not None:
        seconds = min(seconds, limits.timeout_seconds)
    depth = guardrails.max_depth or bounds.max_depth
    if bounds.is_depth_stated:
        depth = min(depth, bounds.max_depth)
    return Bounds(
        max_depth=_least(depth, limits.max_depth),
        is_depth_stated=bounds.is_depth_stated or guardrails.max_depth is not None,
        max_passes=_least(
            guardrails.max_passes or bounds.max_passes, limits.max_passes
        ),
        timeout_seconds=seconds,
        deadline=min(bounds.deadline, trio.current_time() + seconds),
    )


def _least(value: int, limit: int | None) -> int:
    return value if limit is None else min(value, limit)


class Live(msgspec.Struct, kw_only=True, eq=False):
    """An actor that is alive, as the list of them has it."""

    run_id: str
    deck: str
    depth: int
    parent_run_id: str | None
    began: float
    doing: str = "starting"


class LiveActor(msgspec.Struct, frozen=True, kw_only=True):
    """An actor that was alive when somebody looked, with those below it.

    Attributes:
        doing: the model it asks, the calls it waits for, or ``waiting``.
        seconds: how long it has been there.
    """

    run_id: str
    deck: str
    depth: int
    doing: str
    seconds: float
    children: tuple["LiveActor", ...] = ()


def actor_tree(alive: Mapping[str, Live]) -> tuple[LiveActor, ...]:
    """Those that are alive as trees, the oldest first."""
    now = trio.current_time()
    below: dict[str | None, list[Live]] = {}
    for live in alive.values():
        # One whose parent is gone is shown all the same.
        parent = live.parent_run_id if live.parent_run_id in alive else None
        below.setdefault(parent, []).append(live)

    def seen(live: Live) -> LiveActor:
        return LiveActor(
            run_id=live.run_id,
            deck=live.deck,
            depth=live.depth,
            doing=live.doing,
            seconds=now - live.began,
            children=tuple(map(seen, below.get(live.run_id, ()))),
        )

    return tuple(map(seen, below.get(None, ())))


class PastRun(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A run that another process had begun, as its log has it.

    Attributes:
        count: how many entries that has.
        deck_path: where its deck is now.
        spent: what it has used, with all below it.
        spent_in_turn: the same since its last turn began.
    """

    count: int
    deck_path: str
    run: RunStarted
    state: RunState
    spent: Spent
    spent_in_turn: Spent

    @property
    def is_open(self) -> bool:
        """Whether a turn has begun and not ended."""
        return self.state.turns > 0 and self.state.ended is None

    @property
    def is_cancelled(self) -> bool:
        """Whether its last turn was called off."""
        ended = self.state.ended
        return ended is not None and ended.status == "cancelled"


class RunTree(msgspec.Struct, kw_only=True, eq=False):
    """What the actors of one run share.

    Attributes:
        candidates: which models are asked for the names that decks give.
        default_models: asked where a deck names none.
        forced_models: asked whatever a deck names.
        mode: what traces say of model calls.
        account: what the whole run has spent and may spend.
        settled: where those wait who can spend again when others have been served;
            None until somebody has to.
        programs: what decks come to, kept for all runs.
        live: the actors that are alive, in all runs of the runtime.
        load: loads a deck that code asks for by its path.
        real_path: gives the absolute path of a deck's file.
        confinement: runs code that is to be kept to its permissions.
        unconfined: the actions whose code may run without the confinement that their
            permissions ask for, by name.
        meta: what code keeps for the session.
        threads: those that plain functions of actions run in. As many as there are
            calls: one that waits for a deck with code of its own must not keep it from
            having a thread.
        sources: finds the files that decks are made from.
        secrets: texts that no log of the run may keep.
        past: the runs below that were begun by another process, by their ids, until
            somebody goes on with them.
        abandoned: those of them that nobody goes on with, and that have no end yet.
        answers: what is to be done about calls in doubt, where somebody said.
    """

    provider: ModelProvider
    candidates: Candidates
    store: LogStore
    tracer: Tracer
    hook: ToolHook
    account: Account
    limits: Limits
    prices: Mapping[str, Price]
    programs: ProgramCache
    live: dict[str, Live]
    modules: Modules
    confinement: Confinement
    meta: SessionMeta
    threads: trio.CapacityLimiter
    load: Callable[[str], Awaitable[Deck]]
    real_path: Callable[[str], str]
    settled: trio.lowlevel.ParkingLot | None = None
    default_models: tuple[str, ...] = ()
    forced_models: tuple[str, ...] = ()
    mode: Mode = "responses"
    unconfined: frozenset[str] = frozenset()
    secrets: set[str] = set()
    sources: Sources = frozenset
    past: dict[str, PastRun] = {}
    abandoned: tuple[PastRun, ...] = ()
    answers: Mapping[str, Answer] = {}

    async def wait_for_room(self) -> None:
        """Wait until somebody has given back what was set aside for them."""
        if self.settled is None:
            self.settled = trio.lowlevel.ParkingLot()
        await self.settled.park()

    def tell_of_room(self) -> None:
        """Wake those who wait for it, so that they look again."""
        if self.settled is not None:
            self.settled.unpark_all()

    def is_confined(self, program: Program, action: Action) -> bool:
        """Whether an action of a deck is code that is to be kept to permissions."""
        is_code = isinstance(action.target, Module)
        is_declared = program.is_declared or action.permissions is not None
        return is_code and is_declared and action.name not in self.unconfined

    def expect_code(self, program: Program) -> None:
        """See that a process is ready if the deck may need one."""
        if any(self.is_confined(program, action) for action in program.deck.actions):
            self.confinement.expect_calls()


def new_id(prefix: str) -> str:
    """An id that nobody else has."""
    return f"{prefix}-{os.urandom(12).hex()}"
