"""The process that an author's code is confined in. Run as a program, by `process`.

It waits for one `Confine`, does to itself what that says, and only then imports the
author's module and answers calls, one at a time. What it has not given up by then, the
author's code has: so there is nothing in this process but the pipes to the runtime.

What the code prints becomes lines of the trace, up to a bound. What libraries and
other programs write to the standard streams themselves goes nowhere.
"""

import os
import socket
import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NoReturn

import msgspec
import trio

# What is idle of a process's threads is known only to those who keep them so.
from trio._core._thread_cache import THREAD_CACHE

from gambit_actors.actors.compute import ComputeContext, run_compute
from gambit_actors.actors.confined import limiting
from gambit_actors.actors.confined.asking import Asking
from gambit_actors.actors.confined.loading import load_deck_module
from gambit_actors.actors.confined.messages import (
    FIRST_CALL,
    Call,
    Confine,
    Done,
    Failed,
    Frames,
    FromWorker,
    TooLarge,
    ToWorker,
    encode,
    to_worker,
)
from gambit_actors.actors.confined.printing import Printed
from gambit_actors.actors.confined.refusals import Watch
from gambit_actors.deck.compute import ComputeDeck
from gambit_actors.errors import ActionFailed, DeckError

_CHUNK = 65_536
_MAX_WORDS = 4_000


def main(argv: Sequence[str]) -> NoReturn:
    """Serve one runtime until it is gone."""
    requests, replies, lifeline, parent = map(int, argv)
    limiting.die_with(parent, lifeline)
    os.set_inheritable(requests, False)  # noqa: FBT003  (the name says it)
    os.set_inheritable(replies, False)  # noqa: FBT003
    os.environ.pop("PYTHONPATH", None)  # It was for us to start, and names folders.
    pipe = Pipe(requests, replies)
    code = 1
    try:
        _serve(pipe, lifeline)
        code = 0
    finally:
        os._exit(code)  # Threads and exit handlers of the module are not waited for.


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
            UnicodeError: it has text in it that is none.
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


def _serve(pipe: Pipe, lifeline: int) -> None:
    first = pipe.receive_first()
    if first is None:
        return
    os.environ.update(first.env)
    # A folder that is gone, or closed to us, is no reason not to try.
    with suppress(OSError):
        os.chdir(os.path.dirname(first.file))  # noqa: PTH120
    asking = Asking(pipe, first.rules.ports or ())
    sys.stdout = Printed(partial(asking.tell, title="stdout"))
    sys.stderr = Printed(partial(asking.tell, title="stderr"))
    try:
        limiting.confine(first.rules, lifeline)
    except OSError as problem:
        words = f"the system did not confine it: {problem.strerror}"
        _fail_for_good(pipe, "confinement_failed", words)
        return
    watch = Watch(first.rules)
    watch.start()
    deck = _loaded(pipe, first, watch)
    if deck is not None:
        if first.rules.network == "tcp":
            socket.getaddrinfo = asking.look_up
        trio.run(_answer_calls, pipe, deck, watch, asking)


def _loaded(pipe: Pipe, first: Confine, watch: Watch) -> ComputeDeck | None:
    name = os.path.basename(first.file)  # noqa: PTH119
    try:
        return load_deck_module(first.file, first.source, first.modules)
    except DeckError as problem:
        _fail_for_good(pipe, "module_error", _text_of(problem))
    except BaseException as problem:  # noqa: ASYNC103, BLE001  # Trio runs later
        refused = watch.refused(problem)
        code = "module_error" if refused is None else "permission_denied"
        words = f"{name} cannot be imported: {refused or _words(problem)}"
        _fail_for_good(pipe, code, words)
    return None


def _fail_for_good(pipe: Pipe, code: str, words: str) -> None:
    """Say why there will be no answer, to this call or another."""
    message = _plain(words)
    failed = Failed(call=FIRST_CALL, code=code, message=message, is_final=True)
    pipe.send(failed)


async def _answer_calls(
    pipe: Pipe, deck: ComputeDeck, watch: Watch, asking: Asking
) -> None:
    async with pipe.stream() as stream, trio.open_nursery() as nursery:
        while True:
            match await pipe.receive(stream):
                case Call() as call:
                    nursery.start_soon(_answer, pipe, deck, watch, asking, call)
                case Confine():
                    os._exit(1)  # Once is all there is.
                case answer:
                    asking.take(answer)


async def _answer(
    pipe: Pipe, deck: ComputeDeck, watch: Watch, asking: Asking, call: Call
) -> None:
    await trio.lowlevel.checkpoint()
    tasks = _living_tasks()
    context = ComputeContext(
        asking.begin(call),
        input=call.input,
        run_id=call.run_id,
        action_call_id=call.action_call_id,
        depth=call.depth,
        label=deck.label,
        attempt=call.attempt,
        idempotency_key=call.idempotency_key,
    )
    ended = await _outcome(deck, context, watch)
    for printed in (sys.stdout, sys.stderr):
        if isinstance(printed, Printed):
            printed.finish()
    asking.end()
    # What runs on would run into the next call, which may be somebody else's.
    has_left = _living_tasks() > tasks or _busy_threads() > 0
    _send_ended(
        pipe,
        msgspec.structs.replace(ended, call=call.number, is_final=has_left),
    )


async def _outcome(
    deck: ComputeDeck, context: ComputeContext, watch: Watch
) -> Done | Failed:
    await trio.lowlevel.checkpoint()
    try:
        return Done(result=await run_compute(deck, context))
    except ActionFailed as problem:
        return _failed(problem, watch)
    except trio.Cancelled:
        raise
    except BaseException as problem:  # noqa: BLE001  # the author's, and told to him
        return Failed(code="action_error", message=_words(problem))


def _failed(problem: ActionFailed, watch: Watch) -> Failed:
    cause = problem.__cause__
    refused = None if cause is None else watch.refused(cause)
    if refused is not None:
        return Failed(code="permission_denied", message=_plain(refused))
    code, details = _plain(str(problem.code)), problem.details
    return Failed(code=code, message=_text_of(problem), details=details)


def _send_ended(pipe: Pipe, ended: Done | Failed) -> None:
    """Send how a call ended; what cannot be sent is said instead."""
    code = words = ""
    try:
        pipe.send(ended)
    except TooLarge as problem:
        code, words = "result_too_large", f"what it returned is too large: {problem}"
    except Exception as problem:  # noqa: BLE001  # not JSON, in one of many ways
        code, words = "invalid_result", f"what it returned is no JSON: {problem}"
        if isinstance(ended, Failed):
            code, words = ended.code, f"{ended.message} (its details are no JSON)"
    if code:
        pipe.send(
            Failed(
                call=ended.call,
                code=code,
                message=_plain(words),
                is_final=ended.is_final,
            )
        )


def _living_tasks() -> int:
    return trio.lowlevel.current_statistics().tasks_living


def _busy_threads() -> int:
    """How many threads there are besides this one and those that Trio keeps ready."""
    return len(sys._current_frames()) - 1 - len(THREAD_CACHE._idle_workers)  # noqa: SLF001


def _words(problem: BaseException) -> str:
    words = _text_of(problem)
    name = type(problem).__name__
    return f"{name}: {words}"[:_MAX_WORDS] if words else name


def _text_of(problem: BaseException) -> str:
    try:
        return _plain(str(problem))
    except Exception:  # noqa: BLE001  # the author's, too
        return "its message cannot be read"


def _plain(text: str) -> str:
    """Text that can be sent; half a pair is none."""
    return text.encode("utf-8", "backslashreplace").decode()


if __name__ == "__main__":
    main(sys.argv[1:])
