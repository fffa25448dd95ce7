"""Actions that are an author's code: run, confined or not, and helped by an actor."""

import traceback
from collections.abc import Callable
from typing import TypeAlias

import msgspec
import trio

from gambit_actors.actors.children import (
    Asker,
    failure_envelope,
    run_deck,
    too_deep_for,
)
from gambit_actors.actors.compute import ComputeContext, Speaker, run_compute
from gambit_actors.actors.confined.confinement import CannotConfine
from gambit_actors.actors.confined.messages import Call
from gambit_actors.actors.mailboxes import Turn
from gambit_actors.actors.program_cache import without_folders
from gambit_actors.deck.model import Deck, Module
from gambit_actors.deck.permissions import Permissions, child_permissions
from gambit_actors.errors import (
    ActionFailed,
    DeckError,
    InvalidDeck,
    RequestError,
)
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.calls import ActionCall, problem_words
from gambit_actors.run.doubts import idempotency_key
from gambit_actors.run.envelopes import Envelope, envelope_from, refusal
from gambit_actors.schema.schemas import joined

Say: TypeAlias = Callable[[Speaker, str], None]
"""Takes what code adds to the conversation: in whose name, and what."""

_FRAMES = 20


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
    too_deep = too_deep_for(asker)
    if too_deep is not None:
        return failure_envelope(too_deep)
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
        words = without_folders(str(problem), root=asker.program.root)
        return refusal(500, "module_error", words)
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
        _check_spawn(path, message)
        asker, near = self.asker, joined(self._module.path, path)
        self._refuse_own_decks(near)
        try:
            deck = await asker.tree.load(near)
        except InvalidDeck as problem:
            # A model may come to read this.
            words = str(problem).replace(near, path)
            words = without_folders(words, root=asker.program.root)
            raise ActionFailed(words, code="invalid_deck") from None
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
        if not _is_text(content):
            words = "a message has to be text that can be sent"
            raise ActionFailed(words, code="invalid_message")
        if content.strip():
            self._say(role, content)


def _check_spawn(path: object, message: object) -> None:
    """What code asks for has to be something that can be asked, and written down."""
    if not isinstance(path, str):
        words = f"the path of a deck is a text, not {type(path).__name__}"
        raise ActionFailed(words, code="invalid_input")
    if message is not None and not _is_text(message):
        words = "the message to a deck has to be text that can be sent"
        raise ActionFailed(words, code="invalid_input")


def _is_text(value: object) -> bool:
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


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
