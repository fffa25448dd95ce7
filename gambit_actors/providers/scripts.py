"""Scripts for a model that is not there: what it says, when, and how it goes wrong.

A script is a list of replies. Each says when it may be used and what is then answered;
`find_reply` picks one. A script is written in Python, TOML or JSON lines, and all three
are held to the same rules. Plain functions and values: nothing here waits, reads a
file, remembers what was used, or knows how a reply is told.
"""

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NoReturn, TypeAlias

import msgspec
import tomli
from msgspec import Meta

from gambit_actors.deck.tables import did_you_mean
from gambit_actors.deck.toml_places import TomlPlaces
from gambit_actors.errors import BadScript
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.describing import explained
from gambit_actors.openresponses.endings import StopReason
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
)
from gambit_actors.openresponses.parts import Part
from gambit_actors.openresponses.reading import Mismatch, parse_json
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.run.ports import ModelContext
from gambit_actors.run.synthetic import COMPLETE

Fault: TypeAlias = Literal[
    "error", "hang", "cut", "malformed", "flood", "failed", "refuse_model"
]
Whole: TypeAlias = Annotated[int, Meta(ge=0)]
Positive: TypeAlias = Annotated[int, Meta(ge=1)]
Seconds: TypeAlias = Annotated[float, Meta(ge=0)]

# Which faults have a use for a key that only faults have.
_FAULT_KEYS: dict[str, tuple[Fault, ...]] = {
    "message": ("error", "failed", "malformed", "refuse_model"),
    "code": ("error", "failed"),
    "status": ("error",),
    "count": ("flood",),
}


class Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool the model asks for.

    Attributes:
        arguments: an object, or the raw text, which need not be JSON.
        call_id: made from the response's id where none is given.
    """

    name: str
    arguments: dict[str, JSONValue] | str = {}
    call_id: str | None = None

    @property
    def arguments_text(self) -> str:
        """The arguments as they go over the wire."""
        if isinstance(self.arguments, str):
            return self.arguments
        return msgspec.json.encode(self.arguments).decode()


class TokenCount(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tokens that a reply claims to have cost; what is None is counted roughly."""

    input_tokens: Whole | None = None
    output_tokens: Whole | None = None


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer, and when it is given. What is None makes no condition.

    Attributes:
        deck: a glob for the path of the deck; ``*`` also stands for slashes.
        turn: only in this turn.
        pass_number: only in this pass of a turn.
        contains: only if what the model was told last has this text in it.
        after: only if the model was told last what this tool gave.
        times: how often it may be used in a run; 0 is for ever.
        text: what is said.
        calls: tools that are called, after the text.
        reasoning: a summary of the reasoning, before the text.
        refusal: words of a refusal.
        usage: what it cost; counted roughly where it does not say.
        stop_reason: why the model stopped; by default it was done.
        latency_seconds: a wait before the first event.
        per_delta_seconds: a wait before each delta.
        chunk_characters: the size of a delta; by default a delta is a word, and the
            arguments of a call are one.
        fault: what goes wrong; see `gambit_actors.providers.scripted`.
        message: the words of the fault.
        code: the code of an ``error`` or of a response that has ``failed``.
        status: the HTTP status of an ``error``.
        count: how many deltas a ``flood`` has, each of them the whole text.
    """

    deck: str | None = None
    turn: Positive | None = None
    pass_number: Positive | None = None
    contains: str | None = None
    after: str | None = None
    times: Whole = 1
    text: str | None = None
    calls: tuple[Call, ...] = ()
    reasoning: str | None = None
    refusal: str | None = None
    usage: TokenCount | None = None
    stop_reason: StopReason = "end_turn"
    latency_seconds: Seconds = 0.0
    per_delta_seconds: Seconds = 0.0
    chunk_characters: Positive | None = None
    fault: Fault | None = None
    message: str | None = None
    code: str | None = None
    status: int | None = None
    count: Whole | None = None

    @property
    def says_something(self) -> bool:
        """Whether there is any output; an empty text is one."""
        said = (self.text, self.reasoning, self.refusal)
        return bool(self.calls) or any(words is not None for words in said)


class Script(msgspec.Struct, frozen=True):
    """Replies in the order in which they are tried.

    Raises:
        BadScript: a reply is not one.
    """

    replies: tuple[Reply, ...]

    def __post_init__(self) -> None:
        for number, reply in enumerate(self.replies, 1):
            check_reply(reply, number=number)


class Told(msgspec.Struct, frozen=True):
    """What a model was told last: by the user, or by tools of these names."""

    text: str = ""
    tools: frozenset[str] = frozenset()


# Matching


def find_reply(
    replies: Sequence[Reply],
    used: Mapping[int, int],
    *,
    context: ModelContext,
    told: Told,
) -> int | None:
    """Find the place of the first reply that fits and is not used up.

    Args:
        replies: in the order in which they are tried.
        used: how often each was used, by its place; what is not there was not.
        context: who asks.
        told: what they told the model last; see `last_told`.
    """
    for place, reply in enumerate(replies):
        if reply.times and used.get(place, 0) >= reply.times:
            continue
        if _fits(reply, context, told):
            return place
    return None


def _fits(reply: Reply, context: ModelContext, told: Told) -> bool:
    return (
        (reply.turn is None or reply.turn == context.turn)
        and (reply.pass_number is None or reply.pass_number == context.pass_number)
        and (reply.deck is None or _is_deck(context.deck, reply.deck))
        and (reply.contains is None or reply.contains in told.text)
        and (reply.after is None or reply.after in told.tools)
    )


def _is_deck(path: str, pattern: str) -> bool:
    # "*/support/PROMPT.md" is meant for a deck in the working folder too.
    return fnmatch.fnmatchcase(path, pattern) or fnmatch.fnmatchcase(
        f"/{path}", pattern
    )


def last_told(request: CreateResponse) -> Told:
    """What the model was told last: the user's message, or what tools gave it.

    Tools called side by side count together. The call that a runtime adds to mark the
    end of an action is passed over, for the model did not make it.
    """
    items = request.input or ()
    if isinstance(items, str):
        return Told(items)
    outputs: list[FunctionCallOutput] = []
    for place in range(len(items) - 1, -1, -1):
        match items[place]:
            case FunctionCallOutput() as output:
                outputs.append(output)
            case FunctionCall(name=name, call_id=call_id) if name == COMPLETE:
                outputs = [entry for entry in outputs if entry.call_id != call_id]
            case _ if outputs:
                return _told_by_tools(outputs[::-1], items[: place + 1])
            case Message(role="user") as message:
                return Told(message.text)
            case _:
                pass
    return _told_by_tools(outputs[::-1], ())


def _told_by_tools(outputs: list[FunctionCallOutput], before: tuple[Item, ...]) -> Told:
    open_ids = {output.call_id for output in outputs}
    names = set()
    for item in reversed(before):
        if not open_ids:
            break
        if isinstance(item, FunctionCall) and item.call_id in open_ids:
            open_ids.remove(item.call_id)
            names.add(item.name)
    return Told("\n".join(text_of(o.output) for o in outputs), frozenset(names))


def text_of(content: str | tuple[Part, ...]) -> str:
    """All text of a message or an output, parts joined without a separator."""
    if isinstance(content, str):
        return content
    return "".join(getattr(part, "text", "") for part in content)


# Reading

Path: TypeAlias = tuple[str | int, ...]


def script_from_toml(text: str) -> Script:
    """Read a script that is an array of tables, ``[[replies]]``.

    Raises:
        BadScript: it is not one; with the line and the reason.
    """
    text = text.removeprefix("\ufeff")
    document = _document(text)
    places = TomlPlaces(text)

    def refuse(path: Path, problem: str) -> NoReturn:
        place = places.key(path) or places.nearest(path)
        raise BadScript(problem, line=text.count("\n", 0, place.start) + 1)

    for key in document:
        if key != "replies":
            refuse((key,), f"a script has no key {key!r}, only [[replies]]")
    tables = document.get("replies", [])
    if not isinstance(tables, list):
        refuse(("replies",), "replies is an array of tables: write [[replies]]")
    for number, table in enumerate(tables):
        if fault := _fault_in(table):
            refuse(("replies", number, *fault[0]), fault[1])
    return Script(tuple(msgspec.convert(table, Reply) for table in tables))


def _document(text: str) -> dict[str, JSONValue]:
    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as problem:
        raise BadScript(f"not TOML: {problem.msg}", line=problem.lineno) from problem
    except (ValueError, RecursionError) as problem:
        # A number too long for Python, or nesting too deep for the parser.
        raise BadScript(f"not readable: {problem}") from problem


def script_from_jsonl(text: str) -> Script:
    """Read a script that is a JSON object a line, one for each reply.

    Lines with nothing in them are passed over.

    Raises:
        BadScript: it is not one; with the line and the reason.
    """
    replies = []
    # Not splitlines: a JSON string may hold U+2028, which is a line's end to that.
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        try:
            table = parse_json(line.encode(errors="surrogatepass"))
        except Mismatch as problem:
            raise BadScript(problem.problem, line=number) from problem
        if fault := _fault_in(table):
            raise BadScript(fault[1], line=number)
        replies.append(msgspec.convert(table, Reply))
    return Script(tuple(replies))


def check_reply(reply: Reply, *, number: int | None = None) -> None:
    """Hold a reply that was made in Python to the rules of those in files.

    Raises:
        BadScript: it breaks one.
    """
    where = "" if number is None else f"reply {number}: "
    if not isinstance(reply, Reply):
        raise BadScript(f"{where}expected a Reply, got {type(reply).__name__}")
    try:
        table = msgspec.to_builtins(reply)
    except (TypeError, ValueError, RecursionError) as problem:
        raise BadScript(f"{where}not to be written as JSON: {problem}") from problem
    if fault := _fault_in(table):
        raise BadScript(where + fault[1])


_Fault: TypeAlias = tuple[Path, str] | None
"""What is wrong, and the way to it; None if nothing is."""


def _fault_in(table: JSONValue) -> _Fault:
    """Find the first thing that keeps a table from being a reply."""
    if not isinstance(table, dict):
        return (), explained(dict, table, "")[1]
    try:
        reply = msgspec.convert(table, Reply)
    except msgspec.ValidationError as problem:
        # msgspec has found it; this finds it again, and says it in words.
        return _fault_in_fields(Reply, table, ()) or ((), str(problem))
    for place, call in enumerate(reply.calls):
        try:
            _ = call.arguments_text
        except (ValueError, RecursionError) as problem:  # Half a surrogate pair.
            return ("calls", place, "arguments"), f"arguments: not JSON: {problem}"
    for key, faults in _FAULT_KEYS.items():
        if getattr(reply, key) is not None and reply.fault not in faults:
            return (key,), f"{key} needs a fault, one of {', '.join(faults)}"
    if reply.fault is None and not reply.says_something:
        return (), 'the reply says nothing; text = "" is an empty message'
    return None


_PARTS: dict[str, tuple[str, type[Call | TokenCount]]] = {
    "calls": ("a call", Call),
    "usage": ("usage", TokenCount),
}


def _fault_in_fields(
    kind: type[msgspec.Struct], table: dict[str, JSONValue], path: Path
) -> _Fault:
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    name = _PARTS[str(path[0])][0] if path else "a reply"
    for key, value in table.items():
        if key not in fields:
            return (*path, key), _no_such_key(name, key, list(fields))
        if fault := _fault_in_value(fields[key].type, value, (*path, key)):
            return fault
    for key, field in fields.items():
        if field.required and key not in table:
            return path, f"{_words(path)}: the key {key!r} is missing"
    return None


def _fault_in_value(annotation: object, value: JSONValue, path: Path) -> _Fault:
    part = _PARTS.get(str(path[0])) if len(path) == 1 else None
    if part is None or value is None:
        try:
            msgspec.convert(value, type=annotation)
        except msgspec.ValidationError:
            return path, ": ".join(explained(annotation, value, _words(path)))
        return None
    if path == ("calls",) and not isinstance(value, list | tuple):
        return path, ": ".join(explained(tuple, value, "calls"))
    entries = enumerate(value) if path == ("calls",) else [(None, value)]
    for index, entry in entries:
        inner = path if index is None else (*path, index)
        if not isinstance(entry, dict):
            return inner, ": ".join(explained(dict, entry, _words(inner)))
        if fault := _fault_in_fields(part[1], entry, inner):
            return fault
    return None


def _no_such_key(owner: str, key: str, known: list[str]) -> str:
    longer = next((name for name in known if name.startswith(f"{key}_")), None)
    hint = f"Did you mean {longer}?" if longer else did_you_mean(key, known)
    return f"{owner} has no key {key!r}" + (f". {hint}" if hint else "")


def _words(path: Path) -> str:
    """A path as it is shown: ``calls[0].name``."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")
