"""What is run: the same turns for everybody, and what is measured of them.

An agent of a `Workload` calls something in its first turn and says `ANSWER` in its
second. The root calls a tool that gives an object of three keys, or other agents; they
use that tool themselves, or answer at once.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol, TypeAlias

import msgspec

MESSAGE = "How is the weather in Bergen?"
ANSWER = "It rains in Bergen."
TOOL = "lookup"
ARGUMENTS = {"city": "Bergen"}
ARGUMENTS_JSON = '{"city":"Bergen"}'
RESULT = {"city": "Bergen", "sky": "rain", "celsius": 9}
DEADLINE_SECONDS = 0.1


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """One run.

    Attributes:
        children: how many agents the root calls, side by side; with none it calls the
            tool.
        is_child_using_tool: whether those agents call the tool; if not, they answer.
        model_seconds: how long the root's model takes for a turn.
        child_seconds: how long the models of the others take.
        is_hung: the model never answers, and a deadline of 100 ms ends the run.
    """

    children: int = 0
    is_child_using_tool: bool = True
    model_seconds: float = 0.0
    child_seconds: float = 0.0
    is_hung: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The agents below the root."""
        return tuple(f"child_{number}" for number in range(self.children))

    @property
    def root_calls(self) -> tuple[str, ...]:
        """What the root's model calls in its first turn."""
        return self.names or (TOOL,)

    @property
    def child_calls(self) -> tuple[str, ...]:
        """What the models of the others call in their first turn."""
        return (TOOL,) if self.is_child_using_tool else ()

    def without_waiting(self) -> "Workload":
        """The same with models that answer at once, to warm up with."""
        return msgspec.structs.replace(self, model_seconds=0.0, child_seconds=0.0)


RunOnce: TypeAlias = Callable[[], Awaitable[None]]
"""Does one run and makes sure of its answer."""


class Contender(Protocol):
    """Something that can do the runs: one module each."""

    LOOP: Literal["trio", "asyncio"]

    def open_runs(
        self, workload: Workload, variant: str, /
    ) -> AbstractAsyncContextManager[RunOnce]:
        """Set up what outlives a run; gives what does one."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table, for each who takes part.

    Attributes:
        title: for the table.
        how: one after the other for so many ``seconds``, ``count`` of them at once, or
            ``count`` of them timed singly.
        unit: of the times in the table.
        rounds: how often each takes its turn; those far behind take one.
        peers: those who take part besides ours and the floor.
        far_behind: peers so slow that one round tells all there is to tell.
        slow_peers: those who would take minutes; only with ``--full``.
        variants: some of them once more, another way.
        ideal: the time that models and deadlines alone take, in seconds.
    """

    title: str
    workload: Workload
    how: Literal["in a row", "at once", "singly"]
    count: int = 0
    seconds: float = 0.0
    rounds: int = 1
    unit: Literal["us", "ms", "s"] = "us"
    peers: tuple[str, ...] = ()
    far_behind: tuple[str, ...] = ()
    slow_peers: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    ideal: float = 0.0


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is told to do."""

    contender: str
    variant: str
    case: Case


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What a process found.

    Attributes:
        seconds: of one run: the mean of each chunk of runs, or each run; of all of
            them if they were at once.
        cpu_seconds: how much of that the processor worked for it, in all its threads.
        peak_mb: the most memory it had while they ran; None where that is not known.
        kb_per_run: how much of it came with each run that was alive.
    """

    seconds: list[float]
    cpu_seconds: list[float] = []
    peak_mb: float | None = None
    kb_per_run: float | None = None


FLOOR = "bare trio"
OURS = "ours"
AUTOGEN = "autogen-core"
OPENAI_AGENTS = "openai-agents"
PYDANTIC_AI = "pydantic-ai"
PEERS = (AUTOGEN, OPENAI_AGENTS, PYDANTIC_AI)

# Variants: the same contender, another way.
STREAMED = "streamed"
EXECUTE = "execute"
TUNED = "gc tuned"

MODULES = {
    FLOOR: "benchmarks.bare_trio",
    OURS: "benchmarks.our_runs",
    AUTOGEN: "benchmarks.peer_autogen",
    OPENAI_AGENTS: "benchmarks.peer_openai_agents",
    PYDANTIC_AI: "benchmarks.peer_pydantic_ai",
}
"""Which module is which contender; imported only in the process that runs it."""

LIBRARIES = {
    AUTOGEN: "autogen_core",
    OPENAI_AGENTS: "agents",
    PYDANTIC_AI: "pydantic_ai",
}
"""What has to be installed for it, by the name it is imported with."""

_TUNED = tuple(f"{name}, {TUNED}" for name in (FLOOR, OURS, AUTOGEN))

_TOOL_RUN = Workload()
_NESTED = Workload(children=1)
_WAITING = Workload(model_seconds=0.05)
_ACTION = Workload(
    children=1, is_child_using_tool=False, model_seconds=1.0, child_seconds=1.0
)
_TWO_ACTIONS = Workload(children=2, is_child_using_tool=False, child_seconds=0.2)

W1 = Case(
    title="W1: a tool call",
    workload=_TOOL_RUN,
    how="in a row",
    seconds=1.2,
    rounds=3,
    peers=PEERS,
    variants=(f"{OURS}, {STREAMED}", f"{OURS}, {EXECUTE}"),
)
W3 = Case(
    title="W3: a child that calls it",
    workload=_NESTED,
    how="in a row",
    seconds=1.2,
    rounds=3,
    peers=PEERS,
    variants=(f"{OURS}, {STREAMED}",),
)
W2_SMALL = Case(
    title="W2: 1,000 W1 at once",
    workload=_WAITING,
    how="at once",
    count=1_000,
    rounds=3,
    unit="s",
    peers=(AUTOGEN,),
    far_behind=(OPENAI_AGENTS, PYDANTIC_AI),
    ideal=0.1,
)
W2_LARGE = Case(
    title="W2: 10,000 W1 at once",
    workload=_WAITING,
    how="at once",
    count=10_000,
    rounds=2,
    unit="s",
    peers=(AUTOGEN,),
    slow_peers=(OPENAI_AGENTS, PYDANTIC_AI),
    variants=_TUNED,
    ideal=0.1,
)
ACTION_SMALL = Case(
    title="root + action: 1,000 at once",
    workload=_ACTION,
    how="at once",
    count=1_000,
    rounds=2,
    unit="s",
    peers=(AUTOGEN,),
    far_behind=(OPENAI_AGENTS, PYDANTIC_AI),
    ideal=3.0,
)
ACTION_LARGE = Case(
    title="root + action: 10,000 at once",
    workload=_ACTION,
    how="at once",
    count=10_000,
    rounds=2,
    unit="s",
    peers=(AUTOGEN,),
    slow_peers=(OPENAI_AGENTS, PYDANTIC_AI),
    variants=_TUNED,
    ideal=3.0,
)
TWO_ACTIONS = Case(
    title="two actions of 200 ms",
    workload=_TWO_ACTIONS,
    how="singly",
    count=5,
    unit="ms",
    peers=PEERS,
    ideal=0.2,
)
DEADLINE = Case(
    title="deadline of 100 ms",
    workload=Workload(is_hung=True),
    how="singly",
    count=20,
    unit="ms",
    ideal=DEADLINE_SECONDS,
)

CASES = (
    W1,
    W3,
    W2_SMALL,
    W2_LARGE,
    ACTION_SMALL,
    ACTION_LARGE,
    TWO_ACTIONS,
    DEADLINE,
)
