"""What goes through the pipes between a runtime and a confined process.

A message is JSON after its length in four bytes. What comes from the process is held
against these types and a size, and is still only what the author's code wants us to
believe: it can ask, and it can say how its own call went.
"""

from typing import TypeAlias

import msgspec

from gambit_actors.actors.compute import Speaker
from gambit_actors.actors.confined.rules import Rules
from gambit_actors.openresponses.base import JSONValue

MAX_MESSAGE_BYTES = 16 * 2**20
"""The largest message that is sent or taken, in either direction."""

_LENGTH_BYTES = 4


class _Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What all messages have in common."""


class Confine(_Message, tag="confine", frozen=True, kw_only=True):
    """The first one a process is sent: what it is for, for the rest of its life.

    Attributes:
        file: the module, as an absolute path with links followed.
        source: its text, which is what is run, whatever the file is by then.
        modules: what stands beside it and can be imported, as files by name.
        stamps: how those files were; a process for others is another one.
        env: variables it may see, with their values.
    """

    file: str
    source: bytes
    modules: dict[str, str]
    stamps: tuple[tuple[int, int], ...]
    env: dict[str, str]
    rules: Rules


class Call(_Message, tag="call", frozen=True, kw_only=True):
    """Run the deck of the module, once.

    Attributes:
        number: which call of the process it is, from 1; for whoever sends it to say.
    """

    number: int = 0
    input: JSONValue
    run_id: str
    action_call_id: str
    depth: int
    meta: dict[str, JSONValue]
    attempt: int = 1
    idempotency_key: str = ""


class Spawned(_Message, tag="spawned", frozen=True, kw_only=True):
    """A deck that was asked for has a result; the session's meta as it is now."""

    id: int
    result: JSONValue
    meta: dict[str, JSONValue]


class NotSpawned(_Message, tag="not_spawned", frozen=True, kw_only=True):
    """A deck that was asked for has no result.

    Attributes:
        code: why it failed; None if it could not be run at all.
    """

    id: int
    message: str
    code: str | None
    meta: dict[str, JSONValue]


class Resolved(_Message, tag="resolved", frozen=True, kw_only=True):
    """The addresses of a host, as ``getaddrinfo`` has them; none if it has none."""

    id: int
    addresses: list[tuple[int, int, int, str, tuple[str | int, ...]]] = []
    error: int = 0
    words: str = ""


ToWorker: TypeAlias = Confine | Call | Spawned | NotSpawned | Resolved

FIRST_CALL = 1
"""The number of a process's first call. What importing says is said in that one."""


class _Said(_Message, frozen=True, kw_only=True):
    """What a process says, and in which of its calls: what is late is not heeded."""

    call: int = 0


class Logged(_Said, tag="log", frozen=True, kw_only=True):
    """The code said something for the trace."""

    message: str
    title: str | None = None
    body: JSONValue = None
    level: str = "info"
    meta: dict[str, JSONValue] | None = None


class Spawn(_Said, tag="spawn", frozen=True, kw_only=True):
    """The code wants a deck to be run."""

    id: int
    path: str
    input: JSONValue
    message: str | None = None


class Unspawn(_Said, tag="unspawn", frozen=True, kw_only=True):
    """The code does not wait any more for a deck that it asked for."""

    id: int


class Resolve(_Said, tag="resolve", frozen=True, kw_only=True):
    """The code wants to know the addresses of a host, to reach one of its ports."""

    id: int
    host: str
    port: int
    family: int = 0


class SetMeta(_Said, tag="set_meta", frozen=True, kw_only=True):
    """The code keeps something for the session; None forgets it."""

    key: str
    value: JSONValue = None


class Say(_Said, tag="say", frozen=True, kw_only=True):
    """The code adds to the conversation."""

    role: Speaker
    content: str


class Done(_Said, tag="done", frozen=True, kw_only=True):
    """The code returned.

    Attributes:
        is_final: whether the process can take no further call.
    """

    result: JSONValue
    is_final: bool = False


class Failed(_Said, tag="failed", frozen=True, kw_only=True):
    """The code said that it failed, raised something, or could not be imported.

    Attributes:
        is_final: whether the process can take no further call.
    """

    code: str
    message: str
    details: JSONValue = None
    is_final: bool = False


FromWorker: TypeAlias = (
    Logged | Spawn | Unspawn | Resolve | SetMeta | Say | Done | Failed
)

_encoder = msgspec.json.Encoder()
to_worker = msgspec.json.Decoder(ToWorker)
from_worker = msgspec.json.Decoder(FromWorker)


class TooLarge(ValueError):
    """A message is larger than anybody agreed to hold."""


def encode(message: ToWorker | FromWorker) -> bytes:
    """Write a message with its length.

    Raises:
        TooLarge: nobody would take it.
        TypeError: it has something in it that is not JSON.
        UnicodeError: it has text in it that is none, such as half a pair.
    """
    data = _encoder.encode(message)
    if len(data) > MAX_MESSAGE_BYTES:
        msg = f"{len(data):,} bytes are more than the {MAX_MESSAGE_BYTES:,} allowed"
        raise TooLarge(msg)
    return len(data).to_bytes(_LENGTH_BYTES) + data


class Frames:
    """Cuts what comes through a pipe into messages, however it was chunked."""

    def __init__(self, most: int = MAX_MESSAGE_BYTES) -> None:
        self._buffer = bytearray()
        self._most = most

    def feed(self, chunk: bytes | bytearray) -> list[bytes]:
        """Take the next bytes, and give the messages that are whole.

        Raises:
            TooLarge: one says that it is larger than the limit.
        """
        self._buffer += chunk
        found, start = [], 0
        while len(self._buffer) - start >= _LENGTH_BYTES:
            body = start + _LENGTH_BYTES
            length = int.from_bytes(self._buffer[start:body])
            if length > self._most:
                msg = f"a message of {length:,} bytes is more than is taken"
                raise TooLarge(msg)
            if len(self._buffer) < body + length:
                break
            found.append(bytes(self._buffer[body : body + length]))
            start = body + length
        del self._buffer[:start]
        return found
