"""What the code of a confined process asks of the runtime, and the answers to it.

A `CallHost` is the `ComputeHost` of one call. What it sends has the number of that
call, and when the call is over it refuses: code that runs on, in a thread or by a
context it has kept, must not speak for whoever is served next.

Values are held against their types here, where the mistake is the code's to read. The
runtime would take a message of another form for a process that is broken.
"""

import errno
import os
import socket
import sys
import threading
from itertools import count
from typing import Any, Protocol

import msgspec
import trio

from gambit_actors.actors.compute import Speaker
from gambit_actors.actors.confined.messages import (
    FIRST_CALL,
    Call,
    FromWorker,
    Logged,
    NotSpawned,
    Resolve,
    Resolved,
    Say,
    SetMeta,
    Spawn,
    Spawned,
    Unspawn,
)
from gambit_actors.errors import ActionFailed, DeckError
from gambit_actors.openresponses.base import JSONValue


class Sender(Protocol):
    """The way to the runtime."""

    def send(self, message: FromWorker) -> None:
        """Send a message, from any thread."""


class Asking:
    """What this process has asked for and waits for.

    Attributes:
        call: the number of the call that is carried out.
    """

    def __init__(self, sender: Sender, ports: tuple[int, ...] = ()) -> None:
        self.sender = sender
        self.call = FIRST_CALL
        self._ports = ports
        self._host: CallHost | None = None
        self._ids = count(1)
        self._spawned: dict[int, trio.Event] = {}
        self._answers: dict[int, Spawned | NotSpawned] = {}
        self._lookups: dict[int, tuple[threading.Event, list[Resolved]]] = {}
        self._thread = threading.get_ident()

    def begin(self, call: Call) -> "CallHost":
        """Begin a call, and give what its code asks through."""
        self.call = call.number
        self._host = CallHost(self, call)
        return self._host

    def end(self) -> None:
        """End the call: nothing more is asked for it."""
        if self._host is not None:
            self._host.is_over = True
        self._host = None

    def tell(self, line: str, title: str) -> None:
        """Send a line that was printed."""
        self.sender.send(Logged(call=self.call, message=line, title=title))

    async def spawned(self, request: Spawn) -> Spawned | NotSpawned:
        """Ask for a deck to be run, and wait for what it comes to."""
        event = trio.Event()
        self.sender.send(request)
        self._spawned[request.id] = event
        try:
            await event.wait()
        except trio.Cancelled:
            self.sender.send(Unspawn(call=request.call, id=request.id))
            raise
        finally:
            del self._spawned[request.id]
        return self._answers.pop(request.id)

    def new_id(self) -> int:
        """A number that no other request of this process has."""
        return next(self._ids)

    def take(self, answer: Spawned | NotSpawned | Resolved) -> None:
        """Hand an answer to whoever waits for it."""
        if isinstance(answer, Resolved):
            waiting = self._lookups.get(answer.id)
            if waiting is not None:
                waiting[1].append(answer)
                waiting[0].set()
            return
        if self._host is not None:
            self._host.meta = dict(answer.meta)
        if answer.id in self._spawned:
            self._answers[answer.id] = answer
            self._spawned[answer.id].set()

    def look_up(
        self,
        host: str | bytes | None,
        port: str | bytes | int | None,
        family: int = 0,
        *_more: int,
        **_named: int,
    ) -> list[tuple[Any, ...]]:
        """Stand in for ``socket.getaddrinfo``: the runtime asks, as we may not."""
        if threading.get_ident() == self._thread:
            msg = "names are looked up from a thread, or by trio.open_tcp_stream"
            raise socket.gaierror(socket.EAI_FAIL, msg)
        name = host.decode() if isinstance(host, bytes) else str(host or "localhost")
        asked = port.decode() if isinstance(port, bytes) else str(port or 0)
        to = int(asked) if asked.isdigit() else socket.getservbyname(asked)
        sys.audit("socket.getaddrinfo", f"{name}:{to}", port, family, 0, 0)
        if to and to not in self._ports:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        answer = self._resolved(
            Resolve(
                call=self.call,
                id=self.new_id(),
                host=name,
                port=to,
                family=int(family),
            )
        )
        if answer.error:
            raise socket.gaierror(answer.error, answer.words)
        return [
            (socket.AddressFamily(f), socket.SocketKind(k), p, n, tuple(address))
            for f, k, p, n, address in answer.addresses
        ]

    def _resolved(self, request: Resolve) -> Resolved:
        event = threading.Event()
        answers: list[Resolved] = []
        self._lookups[request.id] = (event, answers)
        self.sender.send(request)
        event.wait()
        del self._lookups[request.id]
        return answers[0]


class CallHost:
    """A `ComputeHost` for one call, whose other half is the runtime.

    Attributes:
        meta: what the session keeps, as far as it is known here.
        is_over: whether the call has ended; nothing can be asked then.
    """

    def __init__(self, asking: Asking, call: Call) -> None:
        self._asking = asking
        self._call = call.number
        self.meta: dict[str, JSONValue] = dict(call.meta)
        self.is_over = False

    def log(self, fields: dict[str, JSONValue]) -> None:
        """Say something in the trace."""
        self._check()
        _expect(fields.get("title"), "title", str, or_none=True)
        _expect(fields.get("meta"), "meta", dict, or_none=True)
        self._send(Logged(call=self._call, **fields))

    async def spawn(
        self, path: str, input: JSONValue, *, message: str | None = None
    ) -> JSONValue:
        """Run a deck, and give its result."""
        self._check()
        _expect(path, "path", str)
        _expect(message, "message", str, or_none=True)
        number = self._asking.new_id()
        answer = await self._asking.spawned(
            Spawn(call=self._call, id=number, path=path, input=input, message=message)
        )
        if isinstance(answer, Spawned):
            return answer.result
        if answer.code is None:
            raise DeckError(answer.message)
        raise ActionFailed(answer.message, code=answer.code)

    def get_meta(self, key: str) -> JSONValue:
        """What the session keeps under a key."""
        return self.meta.get(key)

    async def set_meta(self, key: str, value: JSONValue) -> None:
        """Keep something for the session; None or UNSET forgets it."""
        await trio.lowlevel.checkpoint()
        self._check()
        _expect(key, "key", str)
        kept = None if value is msgspec.UNSET else value
        self._send(SetMeta(call=self._call, key=key, value=kept))
        if kept is None:
            self.meta.pop(key, None)
        else:
            self.meta[key] = kept

    async def append_message(self, role: Speaker, content: str) -> None:
        """Put a message in the conversation."""
        await trio.lowlevel.checkpoint()
        self._check()
        _expect(content, "content", str)
        self._send(Say(call=self._call, role=role, content=content))

    def _send(self, message: FromWorker) -> None:
        self._asking.sender.send(message)

    def _check(self) -> None:
        if self.is_over:
            msg = "the call that this context was given to is over"
            raise RuntimeError(msg)


def _expect(value: object, name: str, kind: type, *, or_none: bool = False) -> None:
    if isinstance(value, kind) or (or_none and value is None):
        return
    msg = f"{name} must be a {kind.__name__}, and not {type(value).__name__}"
    raise TypeError(msg)
