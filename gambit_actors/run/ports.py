"""What a run needs from outside: a model, and a place to keep its log.

These are the shapes that actors ask for. Who fills them is decided where a runtime is
put together.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.provider_frames import ProviderFrame
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.run.entries import Entry, RunStarted

NoticeKind: TypeAlias = Literal[
    "left_out", "retry", "waited", "slowed", "whole_history", "odd"
]
"""What a provider has to tell beside its answer:

left_out        something of the request that the provider has no words for
retry           the request is sent again
waited          the request was held back, so that the provider is not asked too much
slowed          the provider had too much to do, and is asked less at once from now on
whole_history   the server has forgotten the response it was to go on from
odd             the server did something that its own protocol does not have
"""


class Notice(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something that happened on the way to an answer, for whoever reads traces.

    Attributes:
        message: a sentence.
        seconds: how long that took or will take, where that is of interest.
    """

    kind: NoticeKind
    message: str
    seconds: float | None = None


def ignore_notice(_notice: Notice) -> None:
    """Tell nobody."""


def conceal_nothing(_text: str) -> None:
    """Let it be."""


class ModelContext(msgspec.Struct, frozen=True, kw_only=True):
    """For whom a model is asked.

    Attributes:
        deck: the path of the deck, as it is shown.
        turn: which turn of the run it is, counted from 1.
        pass_number: which model call of that turn, counted from 1.
        run_id: the run; a provider may keep a cursor by it.
        note: takes what the provider has to tell beside its answer.
        on_frame: takes what a server sends, word for word, if somebody wants that.
        conceal: takes a text that the events have spelled out and that nobody may
            keep, such as a key.
    """

    run_id: str
    deck: str
    turn: int
    pass_number: int
    note: Callable[[Notice], None] = ignore_notice
    on_frame: Callable[[ProviderFrame], None] | None = None
    conceal: Callable[[str], None] = conceal_nothing


NO_SETTINGS = CreateResponse()
"""What a name stands for that asks for no settings: by identity, it is most of them."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A model to be asked, behind a name that a deck may use for it.

    Attributes:
        model: its own name, with which a provider is asked.
        params: what is asked of it where the deck asks for nothing else; a request
            that holds these settings alone.
    """

    model: str
    params: CreateResponse = NO_SETTINGS


@runtime_checkable
class ModelDirectory(Protocol):
    """A provider that knows models by other names, too."""

    def candidates(self, model: str, /) -> Sequence[Candidate]:
        """The models that a name stands for, in the order in which to ask them.

        At least one; a name that stands for nothing else stands for itself.
        """


class ServerPace(msgspec.Struct, frozen=True, kw_only=True):
    """How fast a model server is being asked.

    Attributes:
        open: requests that are on their way.
        waiting: those that wait for their turn.
        limit: how many may be open at present.
        paused_seconds: how long no request goes, because the server asked for that.
    """

    open: int
    waiting: int
    limit: int
    paused_seconds: float


@runtime_checkable
class PacedProvider(Protocol):
    """A provider that holds requests back, and shows how."""

    def paces(self) -> Mapping[str, ServerPace]:
        """The servers that were asked so far, by name, and how fast they are now."""


@runtime_checkable
class DefaultModel(Protocol):
    """A provider that knows which model is meant where nobody names one."""

    @property
    def default_model(self) -> str | None:
        """That model; None if it does not know after all."""


class ModelProvider(Protocol):
    """Something that answers requests."""

    async def responses(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
        /,
    ) -> Response:
        """Answer a request.

        Every event of the stream is handed to ``on_event`` as it comes, which returns
        at once. One that cannot stream hands over none. The response is whole either
        way; it may have failed or be incomplete, and says so in its status.

        Raises:
            ProviderError: there is no answer that could be told from a failure.
        """


class ItemLog(Protocol):
    """Where the entries of one run are kept."""

    async def append(self, entries: Sequence[Entry], /) -> None:
        """Add entries; when this returns they will not be lost.

        Calls that overlap return in the order in which they were made.
        """

    def hide(self, secrets: Collection[str], /) -> None:
        """Write none of these texts from now on, nor what is put among them later."""

    async def aclose(self) -> None:
        """Let go of it."""


class LogRead(Protocol):
    """A log as it was found."""

    @property
    def entries(self) -> Sequence[Entry]:
        """What is in it, from the start."""


class LogReopened(LogRead, Protocol):
    """A log that somebody goes on with."""

    @property
    def log(self) -> ItemLog:
        """Takes what comes next."""


class LogStore(Protocol):
    """Where logs are made, and found again."""

    async def open_log(self, run: RunStarted, /) -> ItemLog:
        """Make the log of a new run, whose first entry is the one given."""

    async def read_log(self, run_id: str, /) -> LogRead:
        """Read the log of a run, whoever writes it.

        Raises:
            StoreError: there is none, or it cannot be read.
        """

    async def reopen_log(self, run_id: str, /) -> LogReopened:
        """Go on with the log of a run, which says so in a last entry.

        Raises:
            StoreError: there is none, it cannot be used, or somebody else writes it.
        """
