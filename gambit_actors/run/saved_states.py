"""SavedState files: a conversation as Gambit keeps it, read and written back.

Items and messages stay the JSON objects they are in the file, with every key and null
in it; `conversation` gives them as items. So what nobody changed goes back as it came.
The one thing that is respelled is an item in the standard's form: it goes back in the
v1 form, as `seed_v1` writes it.

Which of the two lists counts is a matter of the mode. In responses mode the items do,
and the messages are what can be said of them in chat. In chat mode the messages do.
A file that does not name its mode and has messages is a chat.

No I/O here, and no ids of its own: whoever derives messages hands in what mints them.
"""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, TypeVar, cast

import msgspec

from gambit_actors.errors import BadRequest, WireError
from gambit_actors.openresponses.base import Extra, JSONValue, Open
from gambit_actors.openresponses.chat import (
    ChatMessage,
    chat_from_items,
    chat_from_json,
    items_from_chat,
)
from gambit_actors.openresponses.codec import items_from_json
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
)
from gambit_actors.openresponses.parts import InputText, OutputText, Refusal
from gambit_actors.openresponses.reading import Mismatch, compile_reader, parse_json
from gambit_actors.openresponses.seed_v1 import v1_from_item
from gambit_actors.openresponses.writing import encode, to_builtins

JSONObject: TypeAlias = dict[str, JSONValue]
Mode: TypeAlias = Literal["chat", "responses"]
NewId: TypeAlias = Callable[[str], str]
"""Makes an id that nobody else has: of ``msg`` it makes ``msg-`` and 24 hex digits."""

_Key: TypeAlias = tuple[object, ...]
_OpenT = TypeVar("_OpenT", bound=Open)

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class MessageRef(Open, frozen=True, kw_only=True):
    """The name by which feedback and graders call a message.

    Attributes:
        source: who it is from: scenario, manual or artifact.
    """

    id: str
    role: str
    source: str | None = None


class FeedbackEntry(Open, frozen=True, kw_only=True, rename="camel"):
    """What a person thinks of a message."""

    id: str
    run_id: str
    message_ref_id: str
    score: int | float
    created_at: str
    reason: str | None = None


class SessionNotes(Open, frozen=True, kw_only=True, rename="camel"):
    """What a person wrote about the conversation."""

    text: str | None = None
    updated_at: str | None = None


class SessionRating(Open, frozen=True, kw_only=True, rename="camel"):
    """What a person thinks of the conversation as a whole."""

    score: int | float
    updated_at: str | None = None


class SavedState(Open, frozen=True, kw_only=True, rename="camel"):
    """A conversation and what was said about it.

    Attributes:
        messages: the conversation as a chat, as the file has it.
        items: the conversation as items, in v1 form.
        message_refs: one for each message, in the same order.
        extra: keys that are not known, and known ones that the file has as null.
    """

    run_id: str
    format: Mode | None = None
    messages: tuple[JSONObject, ...] | None = None
    items: tuple[JSONObject, ...] | None = None
    message_refs: tuple[MessageRef, ...] | None = None
    traces: tuple[JSONValue, ...] | None = None
    meta: JSONObject | None = None
    feedback: tuple[FeedbackEntry, ...] | None = None
    notes: SessionNotes | None = None
    conversation_score: SessionRating | None = None

    @property
    def mode(self) -> Mode:
        """Which list counts: what is said, else chat if there are messages."""
        if self.format is not None:
            return self.format
        return "chat" if self.messages or self.items is None else "responses"


_read = compile_reader(SavedState)


def saved_state_from_json(
    value: JSONValue | bytes, *, new_id: NewId | None = None
) -> SavedState:
    """Read a saved state from the bytes of a file, or from JSON parsed already.

    Args:
        value: the document.
        new_id: if given, what items tell of messages is derived; see `derived`.

    Raises:
        BadRequest: it is not a saved state; with the path and what is wrong there.
    """
    try:
        if isinstance(value, bytes):
            value = parse_json(value.removeprefix(_BYTE_ORDER_MARK))
        state = _with_nulls(cast(SavedState, _read(value, "")), value)
    except Mismatch as problem:
        raise BadRequest(problem.path, problem.problem) from problem
    if state.messages is None and state.items is None:
        raise BadRequest("", "it has neither messages nor items")
    _items_from_messages(state.messages or ())
    if state.items is None:
        return state
    pairs = zip(state.items, _read_items(state.items), strict=True)
    in_v1_form = tuple(_in_v1_form(raw, item) for raw, item in pairs)
    state = msgspec.structs.replace(state, items=in_v1_form)
    return state if new_id is None else derived(state, new_id)


def json_from_saved_state(state: SavedState) -> bytes:
    """Write a saved state for a file: two spaces of indent and a line end at the end.

    Raises:
        WireError: something in it is nested deeper than can be written, or is text
            that no encoding has.
    """
    return msgspec.json.format(encode(state), indent=2) + b"\n"


def conversation(state: SavedState) -> tuple[Item, ...]:
    """The conversation as items.

    In chat mode that is what the messages say. Where the file has items that say the
    same, it is those, with what chat has no place for.

    Raises:
        BadRequest: an item or a message is none; never for a state that was read.
    """
    messages = state.messages or ()
    if state.items is None:
        return _items_from_messages(messages)
    items = _read_items(state.items)
    if state.mode == "chat" and messages:
        kept, rest = _agreement(messages, items)
        if kept < len(messages) or rest:
            return _items_from_messages(messages)
    return items


def derived(state: SavedState, new_id: NewId) -> SavedState:
    """Give a state the messages that its items tell, and a ref for each message.

    Messages from the first on that say what the items say stay as they are; those after
    them are made anew. A ref stays if the message in its place has its role. So what
    was derived once is derived the same again.
    """
    messages, mode = state.messages or (), state.format
    if state.items is not None and (state.mode == "responses" or not messages):
        messages = _messages_of(_read_items(state.items), messages)
        mode = state.mode  # With messages beside the items, it has to be said.
    refs = _refs(state.message_refs or (), messages, new_id)
    return msgspec.structs.replace(
        state, format=mode, messages=messages, message_refs=refs
    )


def with_items(
    state: SavedState, items: Sequence[Item], new_id: NewId, *, mode: Mode
) -> SavedState:
    """Give a state another conversation; what it shares with its own stays as it is.

    In chat mode there are items only if there were some before, or if a chat has no
    place for all of them.
    """
    raw = _raw_items(state.items or (), items)
    if mode == "responses":
        return derived(msgspec.structs.replace(state, format=mode, items=raw), new_id)
    messages = _messages_of(items, state.messages or ())
    refs = _refs(state.message_refs or (), messages, new_id)
    changed = msgspec.structs.replace(state, messages=messages, message_refs=refs)
    if state.items is None and _tell_all(messages, items):
        return changed
    return msgspec.structs.replace(changed, format=mode, items=raw)


# --- reading -------------------------------------------------------------------


def _with_nulls(struct: _OpenT, raw: JSONObject) -> _OpenT:
    """Keep the nulls of a document, which say no more than a key that is not there."""
    nulls: JSONObject = {}
    changed: JSONObject = {}
    for field in msgspec.structs.fields(type(struct)):
        key, value = field.encode_name, getattr(struct, field.name)
        if field.name == "extra" or key not in raw:
            continue
        if value is None:
            nulls[key] = None
        elif isinstance(value, Open):
            changed[field.name] = _with_nulls(value, raw[key])
        elif isinstance(value, tuple):
            changed[field.name] = tuple(
                _with_nulls(entry, of) if isinstance(entry, Open) else entry
                for entry, of in zip(value, raw[key], strict=True)
            )
    if nulls:
        changed["extra"] = Extra(struct.extra | nulls)
    return msgspec.structs.replace(struct, **changed)


def _read_items(items: Sequence[JSONObject]) -> tuple[Item, ...]:
    try:
        return items_from_json(list(items))
    except WireError as problem:
        raise BadRequest(f"items{problem.path}", problem.problem) from problem


def _items_from_messages(messages: Sequence[JSONObject]) -> tuple[Item, ...]:
    try:
        return items_from_chat(chat_from_json(list(messages)))
    except BadRequest as problem:
        raise BadRequest(f"messages{problem.path}", problem.problem) from problem


def _in_v1_form(raw: JSONObject, item: Item) -> JSONObject:
    """An item in the form of `v1_from_item`, with the nulls that it came with."""
    if not isinstance(item, Message | FunctionCall | FunctionCallOutput):
        return raw
    fields = {"type": item.type} | {k: v for k, v in raw.items() if k != "status"}
    if not isinstance(item, Message):
        return fields
    if isinstance(item.content, str):
        return fields | {"content": cast(JSONObject, v1_from_item(item))["content"]}
    return fields | {"content": [_in_v1_part(part) for part in raw["content"]]}


def _in_v1_part(part: JSONObject) -> JSONObject:
    if part.get("annotations") != []:
        return part
    return {key: entry for key, entry in part.items() if key != "annotations"}


# --- deriving ------------------------------------------------------------------


def _raw_items(
    old: Sequence[JSONObject], items: Sequence[Item]
) -> tuple[JSONObject, ...]:
    """Items in v1 form; those that the file has already, as the file has them."""
    same = 0
    for before, now in zip(_read_items(old), items, strict=False):
        if before != now:
            break
        same += 1
    return (*old[:same], *(v1_from_item(item) for item in items[same:]))


def _messages_of(
    items: Sequence[Item], old: Sequence[JSONObject]
) -> tuple[JSONObject, ...]:
    """Items as chat messages; those there were already, as they were."""
    kept, rest = _agreement(old, items)
    made: tuple[ChatMessage, ...] = chat_from_items(rest).messages
    return (*old[:kept], *(to_builtins(message) for message in made))


def _agreement(
    messages: Sequence[JSONObject], items: Sequence[Item]
) -> tuple[int, Sequence[Item]]:
    """How many messages say what the items say, and the items after those."""
    spoken = [item for item in items if not _is_silent(item)]
    keys = [_key(item) for item in spoken]
    at = 0
    for index, message in enumerate(messages):
        told = [
            _key(item)
            for item in _items_from_messages([message])
            if not _is_silent(item)
        ]
        if keys[at : at + len(told)] == told:
            at += len(told)
        elif not _may_be_skipped(message, keys[at : at + 1]):
            return index, spoken[at:]
    return len(messages), spoken[at:]


def _tell_all(messages: Sequence[JSONObject], items: Sequence[Item]) -> bool:
    """Whether items can be made of messages again, but for their ids."""
    made = _items_from_messages(messages)
    return [_nameless(item) for item in made] == [_nameless(item) for item in items]


def _nameless(item: Item) -> JSONObject:
    return {key: value for key, value in v1_from_item(item).items() if key != "id"}


def _is_silent(item: Item) -> bool:
    """Whether chat has nothing to say for an item."""
    if isinstance(item, Message):
        return item.content in ("", ()) or _key(item)[2:] == ("", "")
    return not isinstance(item, FunctionCall | FunctionCallOutput)


def _may_be_skipped(message: JSONObject, following: list[_Key]) -> bool:
    # Gambit has no item for the output of a call that gave nothing.
    if message.get("role") != "tool" or message.get("content") is not None:
        return False
    return [key[:2] for key in following] != [("output", message["tool_call_id"])]


def _key(item: Item) -> _Key:
    """What an item says, by which it can be found in a chat."""
    match item:
        case Message(role=role, content=content):
            parts = () if isinstance(content, str) else content
            others = [p for p in parts if not isinstance(p, _WORDS)]
            return ("message", role, item.text, item.refusal, *map(encode, others))
        case FunctionCall(call_id=call_id, name=name, arguments=arguments):
            return ("call", call_id, name, arguments)
        case FunctionCallOutput(call_id=call_id, output=output):
            return (
                "output",
                call_id,
                output if isinstance(output, str) else encode(output),
            )
        case _:
            return (item,)


_WORDS = (InputText, OutputText, Refusal)


def _refs(
    old: Sequence[MessageRef], messages: Sequence[JSONObject], new_id: NewId
) -> tuple[MessageRef, ...]:
    refs = []
    for index, message in enumerate(messages):
        role = message["role"]
        if index < len(old) and old[index].role == role:
            refs.append(old[index])
        else:
            refs.append(MessageRef(id=new_id("msg"), role=role))
    return tuple(refs)
