"""What all actors of one run share: where to ask, where to write, what is left.

A `RunTree` is made for a root and handed down. It has the ports, the trace, the count
of what was spent, and the list of who is alive.
"""

import secrets
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec
import trio

from gambit_actors.actors.compute import Modules
from gambit_actors.actors.confined.confinement import Confinement
from gambit_actors.actors.hook import ToolHook
from gambit_actors.deck.model import Action, Deck, Guardrails, Module
from gambit_actors.deck.permissions import Permissions, child_permissions
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.budgets import Spent
from gambit_actors.run.ports import LogStore, ModelProvider
from gambit_actors.run.programs import Program, RuntimeTool, program_from_deck
from gambit_actors.run.steps import MAX_PASSES
from gambit_actors.trace.tracer import Tracer

ProgramKey: TypeAlias = tuple[int, Permissions, bool]
"""A deck by its identity, what it may do, and whether anybody has said so."""

MAX_DEPTH = 3
TIMEOUT_SECONDS = 120.0


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What an invocation may use: its deck's word, or else what it was handed.

    Attributes:
        deadline: in Trio's time; never later than that of the invocation above.
    """

    max_depth: int = MAX_DEPTH
    max_passes: int = MAX_PASSES
    timeout_seconds: float = TIMEOUT_SECONDS
    deadline: float = float("inf")


def narrowed(limits: Limits, guardrails: Guardrails) -> Limits:
    """The limits of a deck that is invoked now."""
    seconds = guardrails.timeout_seconds
    if seconds is None:
        seconds = limits.timeout_seconds
    own = trio.current_time() + seconds if seconds else float("inf")
    return Limits(
        max_depth=guardrails.max_depth or limits.max_depth,
        max_passes=guardrails.max_passes or limits.max_passes,
        timeout_seconds=seconds,
        deadline=min(limits.deadline, own),
    )


class Live(msgspec.Struct, kw_only=True):
    """An actor that is alive, for whoever looks."""

    run_id: str
    deck: str
    depth: int
    parent_run_id: str | None
    doing: str = "starting"


class RunTree(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What the actors of one run share.

    Attributes:
        programs: what decks come to, kept by deck and permissions for all runs.
        names: gives the path of a deck as it may be shown.
        live: the actors that are alive, in all runs of the runtime.
        load: loads a deck that code asks for by its path.
        real_path: gives the absolute path of a deck's file.
        confinement: runs code that is to be kept to its permissions.
        unconfined: the actions whose code may run without the confinement that their
            permissions ask for, by name.
        meta: what code keeps for the session.
    """

    provider: ModelProvider
    store: LogStore
    tracer: Tracer
    hook: ToolHook
    spent: Spent
    programs: dict[ProgramKey, Program]
    names: Callable[[str], str]
    live: dict[str, Live]
    modules: Modules
    confinement: Confinement
    load: Callable[[str], Awaitable[Deck]]
    real_path: Callable[[str], str]
    default_models: tuple[str, ...] = ()
    runtime_tools: tuple[RuntimeTool, ...] = ()
    unconfined: frozenset[str] = frozenset()
    meta: dict[str, JSONValue] = {}

    def program(
        self, deck: Deck, permissions: Permissions, *, is_declared: bool
    ) -> Program:
        """What a deck with these permissions comes to."""
        key = (id(deck), permissions, is_declared)
        known = self.programs.get(key)
        if known is None or known.deck is not deck:
            known = program_from_deck(
                deck,
                name=self.names(deck.path),
                permissions=permissions,
                runtime_tools=self.runtime_tools,
                is_declared=is_declared,
            )
            self.programs[key] = known
        if any(self.is_confined(known, action) for action in deck.actions):
            self.confinement.expect_calls()
        return known

    def is_confined(self, program: Program, action: Action) -> bool:
        """Whether an action of a deck is code that is to be kept to permissions."""
        is_code = isinstance(action.target, Module)
        is_declared = program.is_declared or action.permissions is not None
        return is_code and is_declared and action.name not in self.unconfined

    def child_program(
        self, parent: Program, deck: Deck, reference: Permissions | None
    ) -> Program:
        """What a deck comes to below another: never more than that may do."""
        resolution = child_permissions(
            parent.permissions, declaration=deck.permissions, reference=reference
        )
        layers = (deck.permissions, reference)
        is_declared = parent.is_declared or any(one is not None for one in layers)
        return self.program(deck, resolution.effective, is_declared=is_declared)


def new_id(prefix: str) -> str:
    """An id that nobody else has."""
    return f"{prefix}-{secrets.token_hex(12)}"
