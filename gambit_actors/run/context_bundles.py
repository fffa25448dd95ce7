"""Context bundles: a conversation up to a point, for whoever goes on with it.

The shape is ``rip.context_bundle.v1``: a document that says what made it, of which log
and up to where, and then the items. It knows nothing of providers, so it is what one
run can be given of another, on whatever model.

Where that shape leaves room, this is how it is filled:

* ``source.thread_id`` is the run whose log it is and ``from_seq`` the number of the
  last entry that counts, from 0; ``from_message_id`` is the id of the last message.
* ``provenance`` names the root of the tree as the session and the deck as the actor.
* An item says in ``origin`` who it is from and in ``thread_seq`` which entry it was.
* Calls and their outputs are carried beside the messages, which are all that the shape
  had at first. What only its own provider can read is not: reasoning, compactions,
  references and items of unknown types.
* Words are a plain string. Content that is more than words stays in parts.
* A message without content is left out.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from gambit_actors.errors import BadRequest, RequestError
from gambit_actors.openresponses.base import UNKNOWN_TAG, Open, Tagged, Unknown
from gambit_actors.openresponses.codec import Codec
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Role,
    system_message,
)
from gambit_actors.openresponses.parts import InputText, OutputText, Part
from gambit_actors.openresponses.writing import encode
from gambit_actors.run.context_budgets import ContextBudget, within_budget
from gambit_actors.run.entries import Entry, ItemAdded, RunStarted

SCHEMA: Literal["rip.context_bundle.v1"] = "rip.context_bundle.v1"
COMPILER_ID = "gambit.context_compiler.v1"
STRATEGY = "whole_conversation_v1"
RECENT_STRATEGY = "recent_exchanges_v1"
ORIGIN = "gambit_actors"
SUMMARY_HEADING = "Summary of the conversation so far:"


class Compiler(Open, frozen=True, kw_only=True):
    """What made a bundle, and by which rules."""

    id: str
    strategy: str


class Source(Open, frozen=True, kw_only=True):
    """Which log a bundle was made of, and up to where, that entry included."""

    thread_id: str
    from_seq: int
    from_message_id: str | None = None


class Provenance(Open, frozen=True, kw_only=True):
    """For whom a bundle was made."""

    run_session_id: str
    actor_id: str
    origin: str


class BundleMessage(Tagged, tag="message", frozen=True, kw_only=True):
    """Something that was said."""

    role: Role
    content: str | tuple[Part, ...]
    actor_id: str | None = None
    origin: str | None = None
    thread_seq: int | None = None
    thread_event_id: str | None = None


class BundleCall(Tagged, tag="function_call", frozen=True, kw_only=True):
    """A call that was made; ``arguments`` is its JSON text, untouched."""

    call_id: str
    name: str
    arguments: str
    origin: str | None = None
    thread_seq: int | None = None


class BundleOutput(Tagged, tag="function_call_output", frozen=True, kw_only=True):
    """What a call gave."""

    call_id: str
    output: str | tuple[Part, ...]
    origin: str | None = None
    thread_seq: int | None = None


class SummaryRef(Tagged, tag="summary_ref", frozen=True, kw_only=True):
    """Stands for an earlier stretch, summed up in a text that is kept elsewhere."""

    artifact_id: str
    note: str | None = None


class UnknownBundleItem(Unknown, tag=UNKNOWN_TAG, frozen=True, kw_only=True):
    """An item of a type we do not know."""


BundleItem: TypeAlias = (
    BundleMessage | BundleCall | BundleOutput | SummaryRef | UnknownBundleItem
)


class ContextBundle(Open, frozen=True, kw_only=True):
    """A conversation up to a point."""

    schema: Literal["rip.context_bundle.v1"]
    compiler: Compiler
    source: Source
    provenance: Provenance
    items: tuple[BundleItem, ...]


_CODEC = Codec[ContextBundle](ContextBundle, BadRequest)


def compile_context(
    entries: Sequence[Entry],
    *,
    cut: int | None = None,
    budget: ContextBudget | None = None,
) -> ContextBundle:
    """Make the bundle of a log, as a function of its entries up to a point.

    Args:
        entries: the log; it begins with its `RunStarted`.
        cut: the number of the last entry that counts, from 0; None for the last.
        budget: how much of the conversation there may be; None for all of it.

    Raises:
        RequestError: there is no such entry, the log does not say whose it is, or the
            budget is less than the last exchange.
    """
    budget = budget or ContextBudget()
    if not entries or not isinstance(run := entries[0], RunStarted):
        msg = "a context is made of a log, and that begins with run.started"
        raise RequestError(msg)
    last = len(entries) - 1 if cut is None else cut
    if not 0 <= last < len(entries):
        msg = f"the log has no entry {last}; its last is {len(entries) - 1}"
        raise RequestError(msg)
    added = [
        (seq, entry)
        for seq, entry in enumerate(entries[: last + 1])
        if isinstance(entry, ItemAdded)
    ]
    found = [_bundled(entry, seq) for seq, entry in added]
    items = within_budget([item for item in found if item is not None], budget)
    said = [e.item.id for _, e in added if isinstance(e.item, Message) and e.item.id]
    return ContextBundle(
        schema=SCHEMA,
        compiler=Compiler(
            id=COMPILER_ID,
            strategy=RECENT_STRATEGY if budget.is_limited else STRATEGY,
        ),
        source=Source(
            thread_id=run.run_id,
            from_seq=last,
            from_message_id=said[-1] if said else None,
        ),
        provenance=Provenance(
            run_session_id=run.root_run_id or run.run_id,
            actor_id=run.deck,
            origin=ORIGIN,
        ),
        items=items,
    )


def input_items(
    bundle: ContextBundle, *, artifacts: Mapping[str, str] | None = None
) -> tuple[Item, ...]:
    """Give the items of a bundle as the input of a request.

    A provider takes no call without its output and no output without its call, so what
    the cut has parted is left out. So are items of types that are not known.

    Args:
        bundle: what to give.
        artifacts: texts of summaries by their id. One that is not here is its note.
    """
    texts = artifacts or {}
    items = [
        item for entry in bundle.items if (item := _rendered(entry, texts)) is not None
    ]
    pairs = answers(items)
    paired = {*pairs, *pairs.values()}
    return tuple(
        item
        for index, item in enumerate(items)
        if index in paired or not isinstance(item, FunctionCall | FunctionCallOutput)
    )


def answers(items: Sequence[Item]) -> dict[int, int]:
    """Which output answers which call, by their places.

    An output answers the last call before it that has its id and no output yet. Some
    models number their calls from the start in every answer.
    """
    found: dict[int, int] = {}
    is_open: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        match item:
            case FunctionCall(call_id=call_id):
                is_open.setdefault(call_id, []).append(index)
            case FunctionCallOutput(call_id=call_id) if is_open.get(call_id):
                found[is_open[call_id].pop()] = index
            case _:
                pass
    return found


def decode_bundle(data: bytes) -> ContextBundle:
    """Decode a bundle; keys and types of items that are not known are kept.

    Raises:
        BadRequest: with the path and what is wrong there.
    """
    return _CODEC.decode(data)


def encode_bundle(bundle: ContextBundle) -> bytes:
    """Encode a bundle as compact JSON: equal bundles are equal bytes.

    Raises:
        WireError: something in it is nested deeper than can be written, or is text
            that no encoding has.
    """
    return encode(bundle)


def _bundled(entry: ItemAdded, seq: int) -> BundleItem | None:
    match entry.item:
        case Message(content="" | ()):
            return None
        case Message(role=role) as message:
            content = _content(message)
            return BundleMessage(
                role=role, content=content, origin=entry.source, thread_seq=seq
            )
        case FunctionCall(call_id=call_id, name=name, arguments=arguments):
            return BundleCall(
                call_id=call_id,
                name=name,
                arguments=arguments,
                origin=entry.source,
                thread_seq=seq,
            )
        case FunctionCallOutput(call_id=call_id, output=output):
            return BundleOutput(
                call_id=call_id, output=output, origin=entry.source, thread_seq=seq
            )
        case _:
            return None


def _content(message: Message) -> str | tuple[Part, ...]:
    content = message.content
    if isinstance(content, str):
        return content
    is_text = all(isinstance(part, InputText | OutputText) for part in content)
    return message.text if is_text else content


def _rendered(entry: BundleItem, artifacts: Mapping[str, str]) -> Item | None:
    match entry:
        case BundleMessage(role=role, content=content):
            return Message(role=role, content=content)
        case BundleCall(call_id=call_id, name=name, arguments=arguments):
            return FunctionCall(call_id=call_id, name=name, arguments=arguments)
        case BundleOutput(call_id=call_id, output=output):
            return FunctionCallOutput(call_id=call_id, output=output)
        case SummaryRef(artifact_id=artifact_id, note=note):
            said = [text for text in (note, artifacts.get(artifact_id)) if text]
            if not said:
                return None
            return system_message("\n\n".join([SUMMARY_HEADING, *said]))
        case UnknownBundleItem():
            return None
