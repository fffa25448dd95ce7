"""What keeping a log costs, and for whom it is measured: the jobs and the findings.

A run is that of `benchmarks.run_cases`; here it is kept by whoever takes part. The
other steps are those that only a log has: adding to it, going on with it, listing many.
"""

from typing import Literal, TypeAlias

import msgspec

from benchmarks.run_cases import FLOOR, OURS, Workload

BY_HAND = "by hand"
LANGGRAPH = "langgraph"
DBOS = "DBOS"

MEMORY = f"{OURS}, memory"
NONE = f"{OURS}, none"
PASS = f"{OURS}, pass"
ITEM = f"{OURS}, item"
TIMED = f"{OURS}, pass, timed"
"""As `PASS`, with a clock."""

OURS_ALL = (MEMORY, NONE, PASS, ITEM)
FILE = f"{BY_HAND}, one file"
"""The floor, with a write and an fdatasync wherever one of ours has an fdatasync."""
FILE_TIMED = f"{BY_HAND}, one file, timed"
CLOCKED = frozenset({TIMED, FILE_TIMED})
"""With a clock around each call of the system; none of them is in the race."""
NORMAL = f"{BY_HAND}, SQLite NORMAL"
FULL = f"{BY_HAND}, SQLite FULL"
LANGGRAPH_SYNC = f"{LANGGRAPH}, sync"
PEERS = (LANGGRAPH_SYNC, LANGGRAPH, DBOS)

MODULES = {
    FLOOR: "benchmarks.bare_trio",
    OURS: "benchmarks.our_logs",
    BY_HAND: "benchmarks.logs_by_hand",
    LANGGRAPH: "benchmarks.peer_langgraph",
    DBOS: "benchmarks.peer_dbos",
}
"""Which module is which contender; imported only in the process that runs it."""

STEPS = "benchmarks.log_steps"

LIBRARIES = {LANGGRAPH: "langgraph.checkpoint.sqlite", DBOS: "dbos"}
"""What has to be installed for it, by the name it is imported with."""

Step: TypeAlias = Literal["runs", "append", "sync", "resume", "list"]

CREATE = "make a file"
WRITE = "write"
SYNC = "fdatasync"
FOLDER_SYNC = "sync the folder"
CALLS = (CREATE, WRITE, SYNC, FOLDER_SYNC)
"""What is asked of the disk, and timed."""

FIRST = "first, no index"
AGAIN = "again"
ONE_MORE = "one run more"
LISTINGS = (FIRST, AGAIN, ONE_MORE)


class LogCase(msgspec.Struct, frozen=True, kw_only=True):
    """Some rows of a table.

    Attributes:
        title: for the table.
        names: who takes part, or in which way it is done.
        workload: of the runs.
        count: how many entries there are, or runs.
        seconds: how long each measures, once a round.
    """

    title: str
    step: Step
    names: tuple[str, ...]
    workload: Workload = Workload()
    count: int = 0
    seconds: float = 1.0
    rounds: int = 3


class LogJob(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is told to do.

    Attributes:
        folder: where it may write; on the disk that is measured.
    """

    name: str
    case: LogCase
    folder: str

    @property
    def contender(self) -> str:
        """Who does it."""
        return self.name.partition(", ")[0]

    @property
    def variant(self) -> str:
        """In which way."""
        return self.name.partition(", ")[2]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """How often the disk was asked for something in a run, and how long that took."""

    times: float
    seconds: float


class LogFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What a process found.

    Attributes:
        seconds: each time that was taken: of a run, an entry, or a step.
        asked: what a run asks of the disk, by what that is, in the best of those times.
    """

    seconds: list[float]
    asked: dict[str, Asked] = {}


_RUNNERS = (FLOOR, *OURS_ALL, TIMED, FILE, FILE_TIMED, NORMAL, FULL, *PEERS)

W1 = LogCase(title="W1: a tool call", step="runs", names=_RUNNERS)
W3 = LogCase(
    title="W3: a child that calls it",
    step="runs",
    names=_RUNNERS,
    workload=Workload(children=1),
)
APPEND = LogCase(
    title="append, 1,000 entries",
    step="append",
    names=(*OURS_ALL, FILE, NORMAL, FULL),
    count=1_000,
    seconds=0.5,
)
BARE = LogCase(
    title="a bare loop on the disk", step="sync", names=CALLS, count=700, seconds=0.3
)
RESUMES = tuple(
    LogCase(
        title=f"resume, {count:,} entries", step="resume", names=(PASS,), count=count
    )
    for count in (100, 1_000, 10_000)
)
LIST = LogCase(
    title="list 10,000 runs", step="list", names=LISTINGS, count=10_000, seconds=0.0
)

CASES = (W1, W3, BARE, APPEND, *RESUMES, LIST)
