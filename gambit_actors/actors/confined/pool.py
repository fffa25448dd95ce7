"""Confined processes, kept warm: one call at a time in each, none left behind.

A process is for one `Confine`: one module as it is, with its permissions. After a call
that came to an end it waits for the next one with the same. Otherwise, and when the
call is cancelled or out of time, it is killed with all that it has started, and gone
before the caller goes on. One process that is for nothing yet is kept ready, so that
the first call need not wait for Python to start.

What a process says is checked, bounded, and passed on to a `ComputeHost`, which decides
what is done about it: the code can have nothing here that it could not have there.
"""

import socket
from collections import OrderedDict
from contextlib import suppress
from typing import TypeAlias

import msgspec
import trio

from gambit_actors.actors.compute import ComputeHost
from gambit_actors.actors.confined.messages import (
    Call,
    Confine,
    Done,
    Failed,
    Logged,
    NotSpawned,
    Resolve,
    Resolved,
    Say,
    SetMeta,
    Spawn,
    Spawned,
    TooLarge,
    Unspawn,
    encode,
)
from gambit_actors.actors.confined.process import Gone, WorkerProcess
from gambit_actors.errors import ActionFailed, DeckError
from gambit_actors.openresponses.base import JSONValue

MAX_BUSY = 32
MAX_IDLE = 8
MAX_CALL_BYTES = 64 * 2**20
"""What a process may say in one call, its answer included."""

MAX_REQUESTS = 1000
"""How many decks and addresses code may be waiting for at once."""

_END_SECONDS = 10
_LEVELS = ("debug", "info", "warning", "error")


class Crashed(msgspec.Struct, frozen=True, kw_only=True):
    """The process ended, or said what cannot be taken, before it had an answer."""

    code: str
    message: str


Outcome: TypeAlias = Done | Failed | Crashed


class WorkerPool:
    """The confined processes of one runtime."""

    def __init__(self, *, max_busy: int = MAX_BUSY, max_idle: int = MAX_IDLE) -> None:
        self._limiter = trio.CapacityLimiter(max_busy)
        self._max_idle = max_idle
        self._blank: WorkerProcess | None = None
        self._busy: set[WorkerProcess] = set()
        # By what they are for; the one that has waited longest first.
        self._idle: OrderedDict[WorkerProcess, Confine] = OrderedDict()
        self._is_closed = False

    @property
    def pids(self) -> frozenset[int]:
        """The processes that there are."""
        blank = () if self._blank is None else (self._blank,)
        return frozenset(w.pid for w in (*blank, *self._busy, *self._idle))

    def expect_calls(self) -> None:
        """Start a process for the next call. Blocks for a moment, not for its start."""
        if self._blank is None and not self._is_closed:
            self._blank = WorkerProcess()

    async def run(self, confine: Confine, call: Call, host: ComputeHost) -> Outcome:
        """Run code once, in a process that is for it.

        Args:
            confine: what the process is for.
            call: what the code is given.
            host: does what the code asks for.

        Raises:
            OSError: no process can be started.
            TooLarge: what the code is given is.
            UnicodeError: it has text in it that is none.
        """
        slot = _Slot(self._limiter)
        await slot.take()
        try:
            return await self._run(confine, call, host, slot)
        finally:
            slot.give_back()

    async def close(self) -> None:
        """End all processes, whatever they are doing."""
        self._is_closed = True
        for worker in self._busy:
            worker.kill_and_wait()
        blank = () if self._blank is None else (self._blank,)
        for worker in (*blank, *self._idle):
            worker.kill()
        for worker in (*blank, *self._idle):
            await worker.end()
        self._blank = None
        self._idle.clear()
        await trio.lowlevel.cancel_shielded_checkpoint()

    async def _run(
        self, confine: Confine, call: Call, host: ComputeHost, slot: "_Slot"
    ) -> Outcome:
        worker, is_new = self._taken(confine)
        self._busy.add(worker)
        outcome: Outcome | None = None
        try:
            worker.calls += 1
            asked = encode(msgspec.structs.replace(call, number=worker.calls))
            first = encode(confine) + asked if is_new else asked
            talk = _Conversation(worker, host, slot)
            talk.meta, talk.ports = call.meta, confine.rules.ports or ()
            outcome = await talk.hold(first)
        finally:
            if _is_whole(outcome) and self._can_keep(worker, confine):
                self._busy.discard(worker)
                self._idle[worker] = confine
            else:
                # Whoever cancels goes on when it is gone, and not before.
                with trio.move_on_after(_END_SECONDS, shield=True):
                    await worker.end()
                self._busy.discard(worker)
        await self._drop_oldest()
        if outcome == _GONE:
            message = f"the process of the action {worker.how_it_ended}"
            return Crashed(code="action_crashed", message=message)
        return outcome

    def _taken(self, confine: Confine) -> tuple[WorkerProcess, bool]:
        # The one that was used last is the warmest.
        for worker, known in reversed(self._idle.items()):
            if known == confine and worker.is_alive:
                del self._idle[worker]
                return worker, False
        blank, self._blank = self._blank, None
        if blank is None or not blank.is_alive:
            blank = WorkerProcess()
        with suppress(OSError):  # That is for the next call to hear, and not for this.
            self.expect_calls()
        return blank, True

    def _can_keep(self, worker: WorkerProcess, confine: Confine) -> bool:
        # What a program has left running would run on between calls.
        has_left = confine.rules.can_start_programs and worker.has_left
        is_fit = worker.is_alive and not worker.is_torn
        return is_fit and not has_left and not self._is_closed

    async def _drop_oldest(self) -> None:
        await trio.lowlevel.checkpoint()
        while len(self._idle) > self._max_idle:
            oldest, _ = self._idle.popitem(last=False)
            await oldest.end()


def _is_whole(outcome: Outcome | None) -> bool:
    match outcome:
        case Done(is_final=is_final) | Failed(is_final=is_final):
            return not is_final
        case _:
            return False


_GONE = Crashed(code="action_crashed", message="the process of the action is gone")


class _Slot:
    """A place among those that may be busy. Given back while the code only waits.

    Code may wait for a deck that has code of its own. If it kept its place meanwhile,
    all places could be kept by those who wait for one.
    """

    def __init__(self, limiter: trio.CapacityLimiter) -> None:
        self._limiter = limiter
        self._waits = 0
        self._is_held = False

    async def take(self) -> None:
        await self._limiter.acquire_on_behalf_of(self)
        self._is_held = True

    def give_back(self) -> None:
        if self._is_held:
            self._limiter.release_on_behalf_of(self)
            self._is_held = False

    def begin_wait(self) -> None:
        self._waits += 1
        self.give_back()

    async def end_wait(self) -> None:
        self._waits -= 1
        if self._waits == 0 and not self._is_held:
            await self.take()
        else:
            await trio.lowlevel.checkpoint()


class _Conversation:
    """One call: what is sent to a process, and what is done about its requests."""

    def __init__(self, worker: WorkerProcess, host: ComputeHost, slot: _Slot) -> None:
        self._worker = worker
        self._host = host
        self._slot = slot
        self._asked: dict[int, trio.CancelScope] = {}
        self.meta: dict[str, JSONValue] = {}
        self.ports: tuple[int, ...] = ()

    async def hold(self, first: bytes) -> Outcome:
        """Send what begins it, and go on until there is an outcome."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._worker.send, first)
                nursery.start_soon(self._worker.kill_when_ended)
                outcome = await self._listen(nursery)
                nursery.cancel_scope.cancel()
        finally:
            self._worker.received_bytes = 0
        return outcome

    async def _listen(self, nursery: trio.Nursery) -> Outcome:
        while True:
            await trio.lowlevel.checkpoint()
            try:
                message = await self._worker.receive()
            except Gone:
                return _GONE
            except TooLarge as problem:
                return Crashed(code="action_flooded", message=str(problem))
            except (ValueError, RecursionError):
                words = "the process of the action wrote what is no message"
                return Crashed(code="action_crashed", message=words)
            is_current = message.call == self._worker.calls
            if is_current and isinstance(message, Done | Failed):
                return message
            flooded = self._flooded()
            if flooded is not None:
                return flooded
            # What is of a call that is over is of nobody's any more.
            if is_current and not isinstance(message, Done | Failed):
                await self._heed(message, nursery)

    def _flooded(self) -> Crashed | None:
        words = None
        if self._worker.received_bytes > MAX_CALL_BYTES:
            words = f"the action said more than {MAX_CALL_BYTES:,} bytes"
        elif len(self._asked) >= MAX_REQUESTS:
            words = f"the action asked for more than {MAX_REQUESTS} things at once"
        if words is None:
            return None
        return Crashed(code="action_flooded", message=words)

    async def _heed(
        self,
        message: Logged | Spawn | Unspawn | Resolve | SetMeta | Say,
        nursery: trio.Nursery,
    ) -> None:
        # Others have a turn in between, however much this one says.
        await trio.lowlevel.checkpoint()
        match message:
            case Logged():
                if message.level in _LEVELS:
                    self._host.log(_fields(message))
            case Spawn() | Resolve():
                self._begin(message, nursery)
            case Unspawn(id=number) if number in self._asked:
                self._asked[number].cancel()
            case SetMeta(key=key, value=value):
                await self._host.set_meta(key, value)
            case Say(role=role, content=content):
                await self._host.append_message(role, content)

    def _begin(self, request: Spawn | Resolve, nursery: trio.Nursery) -> None:
        if request.id not in self._asked:
            self._asked[request.id] = trio.CancelScope()
            self._slot.begin_wait()
            nursery.start_soon(self._give, request)

    async def _give(self, request: Spawn | Resolve) -> None:
        """Do what was asked for, and answer."""
        answer: Spawned | NotSpawned | Resolved | None = None
        with self._asked[request.id]:
            if isinstance(request, Spawn):
                answer = await self._spawned(request)
            else:
                answer = await _resolved(request, self.ports)
        del self._asked[request.id]
        await self._slot.end_wait()
        if answer is not None:
            await self._worker.send(_encoded(answer))

    async def _spawned(self, request: Spawn) -> Spawned | NotSpawned:
        await trio.lowlevel.checkpoint()
        number, meta = request.id, self.meta
        try:
            result = await self._host.spawn(
                request.path, request.input, message=request.message
            )
            return Spawned(id=number, result=result, meta=meta)
        except ActionFailed as problem:
            words, code = str(problem), problem.code
            return NotSpawned(id=number, message=words, code=code, meta=meta)
        except DeckError as problem:
            return NotSpawned(id=number, message=str(problem), code=None, meta=meta)


def _fields(message: Logged) -> dict[str, JSONValue]:
    """What was said, without the call that it was said in."""
    fields = msgspec.structs.asdict(message)
    del fields["call"]
    return fields


def _encoded(answer: Spawned | NotSpawned | Resolved) -> bytes:
    try:
        return encode(answer)
    except TooLarge as problem:
        words, code = f"its result is too large: {problem}", "result_too_large"
    except UnicodeError:
        words, code = "its result has text in it that is none", "invalid_result"
    return encode(NotSpawned(id=answer.id, message=words, code=code, meta={}))


async def _resolved(request: Resolve, ports: tuple[int, ...]) -> Resolved:
    await trio.lowlevel.checkpoint()
    if request.port and request.port not in ports:
        words = f"port {request.port} is not granted"
        return Resolved(id=request.id, error=socket.EAI_FAIL, words=words)
    try:
        found = await trio.socket.getaddrinfo(
            request.host, request.port, request.family, socket.SOCK_STREAM
        )
    except (socket.gaierror, UnicodeError) as problem:
        number = problem.errno if isinstance(problem, socket.gaierror) else None
        error, words = number or socket.EAI_NONAME, str(problem)
        return Resolved(id=request.id, error=error, words=words)
    addresses = [
        (int(family), int(kind), protocol, name, address)
        for family, kind, protocol, name, address in found
    ]
    return msgspec.convert({"id": request.id, "addresses": addresses}, Resolved)
