"""The process that an author's code is confined in. Run as a program, by `process`.

It waits for one `Confine`, does to itself what that says, and only then imports the
author's module and answers calls, one at a time. What it has not given up by then, the
author's code has: so there is nothing in this process but the pipes to the runtime.

What the code prints becomes lines of the trace, up to a bound. What libraries and
other programs write to the standard streams themselves goes nowhere.
"""

import errno
import io
import os
import socket
import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Any, NoReturn

import msgspec
import trio

from gambit_actors.actors.compute import (
    ComputeContext,
    Speaker,
    run_compute,
)
from gambit_actors.actors.confined import limiting
from gambit_actors.actors.confined.loading import load_deck_module
from gambit_actors.actors.confined.messages import (
    Call,
    Confine,
    Done,
    Failed,
    Frames,
    FromWorker,
    Logged,
    NotSpawned,
    Resolve,
    Resolved,
    Say,
    SetMeta,
    Spawn,
    Spawned,
    TooLarge,
    ToWorker,
    Unspawn,
    encode,
    to_worker,
)
from gambit_actors.actors.confined.refusals import Watch
from gambit_actors.deck.compute import ComputeDeck
from gambit_actors.errors import ActionFailed, DeckError
from gambit_actors.openresponses.base import JSONValue

_CHUNK = 65_536
_MAX_PRINTED = 65_536
_MAX_WORDS = 4_000


def main(argv: Sequence[str]) -> NoReturn:
    """Serve one runtime until it is gone."""
    requests, replies, lifeline, parent = map(int, argv)
    limiting.die_with(parent, lifeline)
    os.set_inheritable(requests, False)  # noqa: FBT003  (the name says it)
    os.set_inheritable(replies, False)  # noqa: FBT003
    os.environ.pop("PYTHONPATH", None)  # It was for us to start, and names folders.
    pipe = Pipe(requests, replies)
    try:
        _serve(pipe)
    finally:
        os._exit(0)  # Threads and exit handlers of the module are not waited for.


class Pipe:
    """Both ways to the runtime. Sends from any thread."""

    def __init__(self, requests: int, replies: int) -> None:
        self._requests = requests
        self._replies = replies
        self._lock = threading.Lock()
        self._frames = Frames()
        self._waiting: deque[bytes] = deque()

    def send(self, message: FromWorker) -> None:
        """Send a message, and wait until it is on its way.

        Raises:
            TooLarge: it is, and was not sent.
            TypeError: it has something in it that is not JSON.
        """
        data = memoryview(encode(message))
        with self._lock:
            while data:
                data = data[os.write(self._replies, data) :]

    def receive_first(self) -> Confine | None:
        """Wait, without Trio, for what this process is for; None if for nothing."""
        while not self._waiting:
            chunk = os.read(self._requests, _CHUNK)
            if not chunk:
                return None
            self._waiting.extend(self._frames.feed(chunk))
        first = to_worker.decode(self._waiting.popleft())
        return first if isinstance(first, Confine) else None

    async def receive(self, stream: trio.lowlevel.FdStream) -> ToWorker:
        """Wait for the next message, or end with the runtime."""
        await trio.lowlevel.checkpoint()
        while not self._waiting:
            chunk = await stream.receive_some(_CHUNK)
            if not chunk:
                os._exit(0)
            self._waiting.extend(self._frames.feed(chunk))
        message: ToWorker = to_worker.decode(self._waiting.popleft())
        return message

    def stream(self) -> trio.lowlevel.FdStream:
        """What is received, for Trio."""
        return trio.lowlevel.FdStream(self._requests)


def _serve(pipe: Pipe) -> None:
    first = pipe.receive_first()
    if first is None:
        return
    os.environ.update(first.env)
    # A folder that is gone, or closed to us, is no reason not to try.
    with suppress(OSError):
        os.chdir(os.path.dirname(first.file))  # noqa: PTH120
    sys.stdout = _Printed(pipe, "stdout")
    sys.stderr = _Printed(pipe, "stderr")
    try:
        limiting.confine(first.rules)
    except OSError as problem:
        words = f"the system did not confine it: {problem.strerror}"
        pipe.send(Failed(code="confinement_failed", message=words, is_final=True))
        return
    watch = Watch(first.rules)
    watch.start()
    deck = _loaded(pipe, first, watch)
    if deck is not None:
        trio.run(_answer_calls, pipe, deck, watch, first)


def _loaded(pipe: Pipe, first: Confine, watch: Watch) -> ComputeDeck | None:
    name = os.path.basename(first.file)  # noqa: PTH119
    try:
        return load_deck_module(first.file, first.source, first.modules)
    except DeckError as problem:
        words = str(problem)
        pipe.send(Failed(code="module_error", message=words, is_final=True))
    except Exception as problem:  # noqa: BLE001  # the author's, and told to him
        refused = watch.refused(problem)
        words = f"{name} cannot be imported: {_words(problem)}"
        if refused is not None:
            words = f"{name} cannot be imported: {refused}"
        code = "module_error" if refused is None else "permission_denied"
        pipe.send(Failed(code=code, message=words, is_final=True))
    return None


async def _answer_calls(
    pipe: Pipe, deck: ComputeDeck, watch: Watch, first: Confine
) -> None:
    host = _Host(pipe)
    host.ports = first.rules.ports or ()
    if first.rules.network == "tcp":
        socket.getaddrinfo = host.look_up
    async with pipe.stream() as stream, trio.open_nursery() as nursery:
        while True:
            match await pipe.receive(stream):
                case Call() as call:
                    host.meta = dict(call.meta)
                    nursery.start_soon(_answer, pipe, deck, watch, host, call)
                case Confine():
                    os._exit(1)  # Once is all there is.
                case answer:
                    host.take(answer)


async def _answer(
    pipe: Pipe, deck: ComputeDeck, watch: Watch, host: "_Host", call: Call
) -> None:
    await trio.lowlevel.checkpoint()
    context = ComputeContext(
        host,
        input=call.input,
        run_id=call.run_id,
        action_call_id=call.action_call_id,
        depth=call.depth,
        label=deck.label,
    )
    ended: Done | Failed
    try:
        ended = Done(result=await run_compute(deck, context))
    except ActionFailed as problem:
        ended = _failed(problem, watch)
    for printed in (sys.stdout, sys.stderr):
        if isinstance(printed, _Printed):
            printed.finish()
    try:
        pipe.send(ended)
    except TooLarge as problem:
        words = f"what it returned is too large: {problem}"
        pipe.send(Failed(code="result_too_large", message=words))
    except TypeError as problem:
        words = f"what it gave cannot be sent: {problem}"
        pipe.send(Failed(code="action_error", message=words))


def _failed(problem: ActionFailed, watch: Watch) -> Failed:
    cause = problem.__cause__
    refused = None if cause is None else watch.refused(cause)
    if refused is not None:
        return Failed(code="permission_denied", message=refused)
    details: JSONValue = problem.details
    return Failed(code=problem.code, message=str(problem), details=details)


def _words(problem: BaseException) -> str:
    words = ""
    with suppress(Exception):  # Which may be the author's, too.
        words = str(problem)
    return f"{type(problem).__name__}: {words}"[:_MAX_WORDS]


class _Host:
    """A `ComputeHost` whose other half is the runtime."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._ids = count(1)
        self._spawned: dict[int, trio.Event] = {}
        self._answers: dict[int, Spawned | NotSpawned] = {}
        self._lookups: dict[int, tuple[threading.Event, list[Resolved]]] = {}
        self._thread = threading.get_ident()
        self.meta: dict[str, JSONValue] = {}
        self.ports: tuple[int, ...] = ()

    def log(self, fields: dict[str, JSONValue]) -> None:
        self._pipe.send(Logged(**fields))

    async def spawn(
        self, path: str, input: JSONValue, *, message: str | None = None
    ) -> JSONValue:
        number, event = next(self._ids), trio.Event()
        self._pipe.send(Spawn(id=number, path=path, input=input, message=message))
        self._spawned[number] = event
        try:
            await event.wait()
        except trio.Cancelled:
            self._pipe.send(Unspawn(id=number))
            raise
        finally:
            del self._spawned[number]
        answer = self._answers.pop(number)
        if isinstance(answer, Spawned):
            return answer.result
        if answer.code is None:
            raise DeckError(answer.message)
        raise ActionFailed(answer.message, code=answer.code)

    def get_meta(self, key: str) -> JSONValue:
        return self.meta.get(key)

    async def set_meta(self, key: str, value: JSONValue) -> None:
        await trio.lowlevel.checkpoint()
        kept = None if value is msgspec.UNSET else value
        self._pipe.send(SetMeta(key=key, value=kept))
        if kept is None:
            self.meta.pop(key, None)
        else:
            self.meta[key] = kept

    async def append_message(self, role: Speaker, content: str) -> None:
        await trio.lowlevel.checkpoint()
        self._pipe.send(Say(role=role, content=content))

    def take(self, answer: Spawned | NotSpawned | Resolved) -> None:
        """Hand an answer to whoever waits for it."""
        if isinstance(answer, Resolved):
            waiting = self._lookups.get(answer.id)
            if waiting is not None:
                waiting[1].append(answer)
                waiting[0].set()
            return
        self.meta = dict(answer.meta)
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
        if to and to not in self.ports:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        number, event = next(self._ids), threading.Event()
        answers: list[Resolved] = []
        self._lookups[number] = (event, answers)
        self._pipe.send(Resolve(id=number, host=name, port=to, family=int(family)))
        event.wait()
        del self._lookups[number]
        if answers[0].error:
            raise socket.gaierror(answers[0].error, answers[0].words)
        return [
            (socket.AddressFamily(f), socket.SocketKind(k), p, n, tuple(address))
            for f, k, p, n, address in answers[0].addresses
        ]


class _Printed(io.TextIOBase):
    """A standard stream whose lines are lines of the trace."""

    def __init__(self, pipe: Pipe, title: str) -> None:
        self._pipe = pipe
        self._title = title
        self._rest = ""
        self._left = _MAX_PRINTED

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        kept = text[: self._left]
        self._left -= len(kept)
        *lines, self._rest = (self._rest + kept).split("\n")
        for line in lines:
            self._send(line)
        return len(text)

    def finish(self) -> None:
        """Send what has no end of line, and begin to count anew."""
        rest, self._rest = self._rest, ""
        if rest:
            self._send(rest)
        self._left = _MAX_PRINTED

    def _send(self, line: str) -> None:
        self._pipe.send(Logged(message=line, title=self._title))


if __name__ == "__main__":
    main(sys.argv[1:])
