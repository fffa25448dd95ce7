"""A deck as data: what a prompt folder says, with everything looked up.

A `Deck` is frozen: load it once and share it between any number of actors. The tables
in it (schemas, additional parameters) are plain dicts for speed and must not be
changed. Decks refer to each other through a `Link`, because a deck may, in the end,
refer to itself.
"""

from typing import Literal, TypeAlias

import msgspec

from gambit_actors.deck.permissions import Permissions
from gambit_actors.errors import DeckError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.schema.schemas import LoadedSchema

Role: TypeAlias = Literal["root", "action", "scenario", "grader", "handler"]
"""How a deck is invoked. It is the reference that has the role, not the deck."""

StartMode: TypeAlias = Literal["assistant", "user"]
OnDoubt: TypeAlias = Literal["retry", "fail", "ask"]
ON_DOUBT: tuple[OnDoubt, ...] = ("retry", "fail", "ask")


class Link:
    """A reference to a deck, by its path and, when the tree is loaded, to itself."""

    __slots__ = ("_deck", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._deck: Deck | None = None

    @property
    def deck(self) -> "Deck":
        """The deck referred to.

        Raises:
            DeckError: it has mistakes; they are among the diagnostics of the loading.
        """
        if self._deck is None:
            msg = f"the deck {self.path} has errors and cannot be used"
            raise DeckError(msg)
        return self._deck

    @property
    def is_usable(self) -> bool:
        """Whether the deck has no errors."""
        return self._deck is not None

    def connect(self, deck: "Deck") -> None:
        """Say which deck it is. Only the loader does that, once."""
        self._deck = deck

    # By path, so that comparing or printing a deck does not go round in circles.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Link) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    def __repr__(self) -> str:
        return f"Link({self.path!r})"


class Reasoning(msgspec.Struct, frozen=True, kw_only=True):
    """How much a model should think, and how much of it it should tell."""

    effort: str | None = None
    summary: str | None = None


class ModelParams(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a model.

    Attributes:
        models: the model, or several in the order in which to fall back.
        additional: what is passed on to the provider as it is. A key that is also
            one of the above has been left out: the one above counts.
    """

    models: tuple[str, ...] = ()
    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    max_tokens: int | None = None
    reasoning: Reasoning | None = None
    additional: dict[str, JSONValue] = {}


class Guardrails(msgspec.Struct, frozen=True, kw_only=True):
    """The limits a deck sets; None leaves one to the caller.

    Attributes:
        max_depth: how many decks may be inside each other.
        max_passes: how often the model may be called in one invocation.
        timeout_seconds: for one invocation; 0 sets no limit of its own.
        max_tokens: in and out, for one invocation with all that is below it.
        max_cost: in the currency of the prices, for the same.
    """

    max_depth: int | None = None
    max_passes: int | None = None
    timeout_seconds: float | None = None
    max_tokens: int | None = None
    max_cost: float | None = None


class Handler(msgspec.Struct, frozen=True, kw_only=True):
    """A deck that is run when something happens.

    Attributes:
        delay_seconds: how long to wait; None for the usual time. Not for errors.
        repeat_seconds: how often to run it again; None for never. Not for errors.
    """

    link: Link
    label: str | None = None
    delay_seconds: float | None = None
    repeat_seconds: float | None = None


class Handlers(msgspec.Struct, frozen=True, kw_only=True):
    """What is run while an action is busy, when a deck is idle, or after an error."""

    on_busy: Handler | None = None
    on_idle: Handler | None = None
    on_error: Handler | None = None


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """Code that an action executes, and what it takes and gives."""

    path: str
    context_schema: LoadedSchema
    response_schema: LoadedSchema


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """Something the model can call: another deck, or code.

    Attributes:
        target: what is run.
        permissions: what the reference narrows it to; None if it does not.
        on_doubt: what is done when nobody knows whether a call has happened.
    """

    name: str
    description: str
    target: Link | Module
    permissions: Permissions | None = None
    on_doubt: OnDoubt = "retry"
    label: str | None = None
    id: str | None = None

    @property
    def context_schema(self) -> LoadedSchema:
        """What the model has to give."""
        return _declared(self._contract.context_schema)

    @property
    def response_schema(self) -> LoadedSchema:
        """What the action returns."""
        return _declared(self._contract.response_schema)

    @property
    def _contract(self) -> "Deck | Module":
        target = self.target
        return target.deck if isinstance(target, Link) else target


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """Something the model can call that the program around the deck carries out.

    Attributes:
        on_doubt: what is done when nobody knows whether a call has happened.
    """

    name: str
    description: str | None = None
    input_schema: LoadedSchema | None = None
    on_doubt: OnDoubt = "ask"
    label: str | None = None
    id: str | None = None


class DeckReference(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario that tries a deck out, or a grader that judges it.

    Attributes:
        max_turns: how many exchanges a scenario may have; None for the usual number.
    """

    link: Link
    label: str | None = None
    description: str | None = None
    id: str | None = None
    permissions: Permissions | None = None
    max_turns: int | None = None


class Deck(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt folder.

    Attributes:
        path: its PROMPT.md, or a ``gambit://`` URI.
        prompt: what the model is told: the body, with snippets in their places.
        respond: whether the model answers by calling ``gambit_respond``.
        allow_end: whether the model may call ``gambit_end``.
        permissions: what the deck declares; None if it declares nothing.
        tools: those that the model is offered; one shadowed by an action is not here.
        sources: all files this deck was made from, its own first.
    """

    path: str
    prompt: str
    label: str | None = None
    start_mode: StartMode | None = None
    context_schema: LoadedSchema | None = None
    response_schema: LoadedSchema | None = None
    respond: bool = False
    allow_end: bool = False
    model_params: ModelParams = ModelParams()
    guardrails: Guardrails = Guardrails()
    permissions: Permissions | None = None
    handlers: Handlers = Handlers()
    actions: tuple[Action, ...] = ()
    tools: tuple[Tool, ...] = ()
    scenarios: tuple[DeckReference, ...] = ()
    graders: tuple[DeckReference, ...] = ()
    sources: tuple[str, ...] = ()

    def action(self, name: str) -> Action | None:
        """The action of a name."""
        return next((a for a in self.actions if a.name == name), None)

    def tool(self, name: str) -> Tool | None:
        """The external tool of a name."""
        return next((t for t in self.tools if t.name == name), None)


def _declared(schema: LoadedSchema | None) -> LoadedSchema:
    # The loader refuses a tree in which an action has none.
    assert schema is not None  # noqa: S101
    return schema
