"""Actions: a deck as a child actor, or an author's code.

A child lives in the nursery of the call that asked for it, talks to it over a channel,
and cannot outlive it. Whatever goes wrong in it is an envelope to its parent.
"""

import hashlib
import traceback
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import msgspec
import trio

from gambit_actors.actors.compute import ComputeContext, Speaker, run_compute
from gambit_actors.actors.confined.confinement import CannotConfine
from gambit_actors.actors.confined.messages import Call
from gambit_actors.actors.mailboxes import Turn, ask_once
from gambit_actors.actors.telling import Teller
from gambit_actors.actors.trees import Bounds, PastRun, RunTree, new_id
from gambit_actors.deck.model import Deck, Module
from gambit_actors.deck.permissions import Permissions, child_permissions
from gambit_actors.errors import ActionFailed, DeckError, RequestError
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.budgets import Account
from gambit_actors.run.calls import ActionCall, problem_words
from gambit_actors.run.doubts import idempotency_key
from gambit_actors.run.entries import (
    ChildStarted,
    Entry,
    Failure,
    RunStarted,
    TurnEnded,
)
from gambit_actors.run.envelopes import Envelope, envelope_from, refusal
from gambit_actors.run.programs import Program
from gambit_actors.run.states import RunState
from gambit_actors.schema.schemas import joined

Append: TypeAlias = Callable[[Sequence[Entry]], Awaitable[None]]
"""Writes entries down, counts them, and shows them."""

Say: TypeAlias = Callable[[Speaker, str], None]
"""Takes what code adds to the conversation: in whose name, and what."""


_FRAMES = 20
_encode = msgspec.json.Encoder().encode


class Asker(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """An actor, or code in one of its actions, as those below know it."""

    tree: RunTree
    program: Program
    bounds: Bounds
    run: RunStarted
    state: RunState
    append: Append
    teller: Teller
    account: Account
    is_code: bool = False

    @property
    def depth_below(self) -> int:
        """How deep what it asks for is. Code is a level of its own."""
        return self.run.depth + 1 + self.is_code


async def run_deck(
    asker: Asker,
    deck: Deck,
    turn: Turn,
    *,
    call_id: str | None = None,
    permissions: Permissions | None = None,
    run_id: str | None = None,
) -> TurnEnded:
    """Run a deck as a child, for one answer.

    What a process that is no more had begun is gone on with, and what it had finished
    is not done again.

    Args:
        asker: whose child it is.
        deck: what to run.
        turn: what it is asked for.
        call_id: the call it answers; None if no model asked for it.
        permissions: what narrows those that the asker leaves it.
        run_id: where its log is, if that is in the asker's log already.
    """
    depth = asker.depth_below
    too_deep = _too_deep(asker)
    if too_deep is not None:
        await trio.lowlevel.checkpoint()
        return TurnEnded(status="failed", failure=too_deep)
    if run_id is None:
        run_id = await _noted(asker, deck, turn, call_id=call_id)
    past = asker.tree.past.pop(run_id, None)
    if past is not None and past.state.ended is not None:
        await trio.lowlevel.checkpoint()
        return past.state.ended
    program = asker.tree.programs.below(asker.program, deck, permissions)
    asker.tree.expect_code(program)
    run = RunStarted(
        run_id=run_id,
        deck=program.name,
        path=deck.path,
        root_run_id=asker.teller.run_id,
        parent_run_id=asker.run.run_id,
        parent_call_id=call_id or asker.teller.span,
        depth=depth,
    )
    return await _ask_child(asker, program, run, turn, past)


def _too_deep(asker: Asker) -> Failure | None:
    if asker.depth_below < asker.bounds.max_depth:
        return None
    words = f"decks may be {asker.bounds.max_depth} deep, and this is one more"
    return Failure(code="max_depth", message=words)


async def _ask_child(
    asker: Asker, program: Program, run: RunStarted, turn: Turn, past: PastRun | None
) -> TurnEnded:
    # Late, because an actor runs its children and a child is an actor.
    from gambit_actors.actors.actor import DeckActor  # noqa: PLC0415

    tree = asker.tree
    reopened = None if past is None else await tree.store.reopen_log(run.run_id)
    actor = DeckActor(
        tree,
        program,
        run if past is None else past.run,
        bounds=asker.bounds,
        account=asker.account,
        reopened=reopened,
    )
    if past is not None and past.is_open:
        actor.spent_before = past.spent_in_turn
        turn = Turn(is_continued=True)
    return await ask_once(actor, turn)


async def _noted(asker: Asker, deck: Deck, turn: Turn, *, call_id: str | None) -> str:
    """Note that a deck is going to be run; gives the run that has its log.

    If a call is made again, its code asks again for what it had asked for: then that
    is the run.
    """
    asked = _digest(turn)
    past = asker.tree.past
    if past and call_id is not None:
        for child in asker.state.children:
            same = (child.call_id, child.path, child.asked)
            found = (
                past.get(child.run_id) if same == (call_id, deck.path, asked) else None
            )
            if found is not None and not found.is_cancelled:
                await trio.lowlevel.checkpoint()
                return child.run_id
    started = ChildStarted(
        run_id=new_id("run"), call_id=call_id, path=deck.path, asked=asked
    )
    await asker.append([started])
    return started.run_id


def _digest(turn: Turn) -> str:
    """What a deck is asked, in short; anything at all may be in there."""
    context = None if turn.context is msgspec.UNSET else turn.context
    try:
        text = _encode([context, turn.message])
    except (TypeError, ValueError, RecursionError):
        text = repr((context, turn.message)).encode(errors="replace")
    return hashlib.sha256(text).hexdigest()[:16]


async def run_child(
    asker: Asker, plan: ActionCall, deck: Deck, *, run_id: str | None
) -> Envelope:
    """Run a deck as an action, and give what it came to."""
    ended = await run_deck(
        asker,
        deck,
        Turn(context=plan.input),
        call_id=plan.call.call_id,
        permissions=plan.action.permissions,
        run_id=run_id,
    )
    if ended.failure is None:
        return Envelope(payload=ended.result, **ended.envelope)
    return _failure_envelope(ended.failure)


def _failure_envelope(failure: Failure) -> Envelope:
    statuses = {"timeout": 504, "max_depth": 508}
    return refusal(statuses.get(failure.code, 500), failure.code, failure.message)


async def run_module(
    asker: Asker, plan: ActionCall, module: Module, say: Say
) -> Envelope:
    """Run an author's code, and give what it returned.

    Args:
        asker: whose action it is.
        plan: the call.
        module: the code.
        say: takes what the code adds to the conversation.
    """
    await trio.lowlevel.checkpoint()
    action = plan.action
    too_deep = _too_deep(asker)
    if too_deep is not None:
        return _failure_envelope(too_deep)
    host = ActorHost(msgspec.structs.replace(asker, is_code=True), plan, module, say)
    try:
        if asker.tree.is_confined(asker.program, action):
            result = await _run_confined(asker, plan, host)
        else:
            deck = await trio.to_thread.run_sync(asker.tree.modules.load, host.file)
            result = await run_compute(
                deck, _context(host, label=deck.label), threads=asker.tree.threads
            )
    except CannotConfine as problem:
        message = (
            f"{action.name} cannot be kept to its permissions: {problem}; it runs "
            "without being kept to them if it is named as unconfined"
        )
        return refusal(501, "cannot_confine", message)
    except ActionFailed as problem:
        _tell_bug(asker, plan, problem)
        return _failed(problem)
    except DeckError as problem:
        return refusal(500, "module_error", str(problem))
    return _checked(module, envelope_from(result))


async def _run_confined(asker: Asker, plan: ActionCall, host: "ActorHost") -> JSONValue:
    permissions = host.confine()
    call = Call(
        input=plan.input,
        run_id=asker.teller.run_id,
        action_call_id=plan.call.call_id,
        depth=asker.run.depth + 1,
        meta=asker.tree.meta.all(),
        attempt=host.attempt,
        idempotency_key=host.idempotency_key,
    )
    return await asker.tree.confinement.run(
        host.file, permissions, call, host, sources=asker.tree.sources
    )


def _tell_bug(asker: Asker, plan: ActionCall, problem: ActionFailed) -> None:
    """Show the author where the code raised; the model has no use for that."""
    cause = problem.__cause__
    if cause is None:
        return
    lines = traceback.format_exception(cause, limit=-_FRAMES)
    fields: dict[str, JSONValue] = {
        "level": "error",
        "message": str(problem),
        "body": "".join(lines),
    }
    asker.teller.log(plan.call.call_id, fields)


def _failed(problem: ActionFailed) -> Envelope:
    code = problem.code
    # That is for us to say: it leads people to let code run without bounds.
    code = "action_failed" if code == "cannot_confine" else code
    status = 403 if code == "permission_denied" else 500
    details = {"details": problem.details} if problem.details is not None else None
    return Envelope(status=status, code=code, message=str(problem), meta=details)


def _checked(module: Module, envelope: Envelope) -> Envelope:
    """Hold what code returned against what it said it would."""
    if envelope.is_error:
        return envelope
    payload = None if envelope.payload is msgspec.UNSET else envelope.payload
    checked = module.response_schema.validator.check(payload)
    if checked.is_valid:
        return msgspec.structs.replace(envelope, payload=checked.value)
    words = problem_words(checked.problems)
    message = f"it returned what its responseSchema does not allow: {words}"
    return refusal(500, "invalid_result", message)


class ActorHost:
    """Does for an author's code what it asks of the actor whose action it is."""

    def __init__(
        self, asker: Asker, plan: ActionCall, module: Module, say: Say
    ) -> None:
        self.asker = asker
        self.plan = plan
        self.attempt = asker.state.started[plan.call.call_id].attempt
        self.idempotency_key = idempotency_key(asker.run.run_id, plan.call.call_id)
        self.file = asker.tree.real_path(module.path)
        self._module = module
        self._say = say
        self._permissions: Permissions | None = None

    def confine(self) -> Permissions:
        """What the code may do; it is held against this from here on."""
        self._permissions = child_permissions(
            self.asker.program.permissions, reference=self.plan.action.permissions
        ).effective
        return self._permissions

    def log(self, fields: dict[str, JSONValue]) -> None:
        """Say something in the trace."""
        self.asker.teller.log(self.plan.call.call_id, fields)

    async def spawn(
        self, path: str, input: JSONValue, *, message: str | None = None
    ) -> JSONValue:
        """Run a deck below the actor, with no more permissions than the code has."""
        asker, near = self.asker, joined(self._module.path, path)
        self._refuse_own_decks(near)
        deck = await asker.tree.load(near)
        given = _spawned_input(deck, input, path)
        ended = await run_deck(
            asker,
            deck,
            Turn(context=given, message=message),
            call_id=self.plan.call.call_id,
            permissions=self.plan.action.permissions,
        )
        if ended.failure is not None:
            words = f"{path} failed: {ended.failure.message}"
            raise ActionFailed(words, code=ended.failure.code)
        return ended.result

    def _refuse_own_decks(self, near: str) -> None:
        """Refuse decks that confined code may have written.

        To load a deck may import a module that it names, in a process that is bounded
        but not confined. Code that writes a deck must not get out by running it.
        """
        if self._permissions is None or self._permissions.write is True:
            return
        real = self.asker.tree.real_path
        above, _, name = near.rpartition("/")
        # Also where the path itself leads through: a link there can be changed.
        for path in (real(near), f"{real(above or '.')}/{name}", _absolute(near, real)):
            if self._permissions.can_write(path):
                words = f"{near} is in a folder that the code may write"
                raise ActionFailed(words, code="permission_denied")

    def get_meta(self, key: str) -> JSONValue:
        """What the session keeps under a key."""
        return self.asker.tree.meta.get(key)

    async def set_meta(self, key: str, value: JSONValue) -> None:
        """Keep something for the session; None or UNSET forgets it."""
        try:
            await self.asker.tree.meta.set(key, value)
        except RequestError as problem:
            raise ActionFailed(str(problem), code="invalid_meta") from problem

    async def append_message(self, role: Speaker, content: str) -> None:
        """Put a message in the conversation, after the output of the call."""
        await trio.lowlevel.checkpoint()
        if content.strip():
            self._say(role, content)


def _spawned_input(deck: Deck, given: JSONValue, path: str) -> JSONValue:
    """What a deck is given by code, checked and filled in like that of a call.

    Raises:
        ActionFailed: the deck does not take it.
    """
    schema = deck.context_schema
    if schema is None:
        return given
    checked = schema.validator.check(given)
    if checked.is_valid:
        return checked.value
    words = f"the input does not fit {path}: {problem_words(checked.problems)}"
    raise ActionFailed(words, code="invalid_input")


def _absolute(near: str, real_path: Callable[[str], str]) -> str:
    return near if near.startswith("/") else f"{real_path('.').rstrip('/')}/{near}"


def _context(host: ActorHost, *, label: str | None) -> ComputeContext:
    return ComputeContext(
        host,
        input=host.plan.input,
        run_id=host.asker.teller.run_id,
        action_call_id=host.plan.call.call_id,
        depth=host.asker.run.depth + 1,
        label=label,
        attempt=host.attempt,
        idempotency_key=host.idempotency_key,
    )
