"""A saved state as the log of a run, and a run as a saved state.

A run that goes on from a file has that conversation behind it as one turn that is done,
word by word: neither the prompt of the deck nor a context is added to it. What the file
says besides (feedback, notes, scores, traces) is no part of the run; it is in the file
that was read, and goes from there into the one that is written.
"""

from collections.abc import Iterator, Sequence

import msgspec

from gambit_actors.errors import GambitBug
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
)
from gambit_actors.run.context_bundles import answers
from gambit_actors.run.doubts import in_doubt
from gambit_actors.run.entries import (
    Entry,
    ItemAdded,
    ItemSource,
    MetaSet,
    RunStarted,
    TurnEnded,
    TurnStarted,
)
from gambit_actors.run.envelopes import CallSource, Envelope, output_text, refusal
from gambit_actors.run.saved_states import (
    JSONObject,
    Mode,
    NewId,
    SavedState,
    conversation,
    with_items,
)
from gambit_actors.run.states import RunState
from gambit_actors.run.synthetic import COMPLETE, CONTEXT_NAMES

NOT_CARRIED_OUT = "it was not carried out before the conversation was saved"


def entries_from_saved_state(state: SavedState, *, run: RunStarted) -> list[Entry]:
    """Make the log that a run goes on with from a saved state.

    Calls that the file has no output for get one that says so. A state in which nothing
    was said gives a run that has not begun.

    Raises:
        BadRequest: an item or a message is none; never for a state that was read.
    """
    entries: list[Entry] = [run]
    entries += [MetaSet(key=k, value=v) for k, v in (state.meta or {}).items()]
    items = conversation(state)
    if not items:
        return entries
    return [
        *entries,
        TurnStarted(),
        *_with_all_outputs(items, run),
        TurnEnded(status="completed"),
    ]


def saved_state_from(
    state: RunState,
    previous: SavedState | None,
    new_id: NewId,
    *,
    format: Mode | None = None,
) -> SavedState:
    """Make the saved state of a run.

    Args:
        state: the run.
        previous: what the file had: what a run knows nothing of is kept from it, and
            so are the messages and refs that the run began with.
        new_id: mints the ids of new refs.
        format: ``responses`` to have a chat become items, ``chat`` to have what is new
            become a chat. Otherwise a chat stays one and all else is saved as items.
            Nothing is left out of a chat: what has no place in it is in items beside.
    """
    if state.run is None:
        msg = "a run that has not started has no id to be saved under"
        raise GambitBug(msg)
    run = state.run
    if previous is None:
        previous = SavedState(run_id=run.run_id, format=format or "responses")
    is_chat = previous.mode == "chat" and format != "responses"
    mode: Mode = "chat" if is_chat else "responses"
    kept = msgspec.structs.replace(
        previous, run_id=run.run_id, meta=_meta(state, previous.meta)
    )
    items = [*state.items, *_under_way(state, run)]
    return with_items(kept, items, new_id, mode=mode)


def _under_way(state: RunState, run: RunStarted) -> list[Item]:
    """What is to be said of calls of a turn that is not over.

    What was carried out, or may have been, must not look as if it was not: it would be
    done again.
    """
    found: list[Item] = []
    for call_id, call in state.pending.items():
        if ended := state.finished.get(call_id):
            found.append(FunctionCallOutput(call_id=call_id, output=ended.output))
            found += [entry.item for entry in ended.after]
        elif started := state.started.get(call_id):
            unknown = in_doubt(call.name, started.attempt)
            found.append(_answer_to(call, unknown, run))
            found += [added.item for added in state.noted.get(call_id, ())]
    return found


def _meta(state: RunState, previous: JSONObject | None) -> JSONObject | None:
    """What the run keeps; a null says nothing to a run, and stays."""
    nulls = {key: None for key, value in (previous or {}).items() if value is None}
    meta = nulls | state.meta
    return previous if not meta and not previous else meta


def _with_all_outputs(items: Sequence[Item], run: RunStarted) -> Iterator[ItemAdded]:
    """The items as entries; a call without an output gets one, after its group."""
    answered = answers(items)
    unmet: list[FunctionCall] = []
    for index, item in enumerate(items):
        if not isinstance(item, FunctionCall | FunctionCallOutput):
            yield from (_not_carried_out(call, run) for call in unmet)
            unmet = []
        yield ItemAdded(item=item, source=_source(item))
        if isinstance(item, FunctionCall) and index not in answered:
            unmet.append(item)
    yield from (_not_carried_out(call, run) for call in unmet)


def _not_carried_out(call: FunctionCall, run: RunStarted) -> ItemAdded:
    unmet = refusal(499, "not_carried_out", NOT_CARRIED_OUT)
    return ItemAdded(item=_answer_to(call, unmet, run), source="runtime")


def _answer_to(
    call: FunctionCall, envelope: Envelope, run: RunStarted
) -> FunctionCallOutput:
    source = CallSource(
        run_id=run.run_id,
        call_id=call.call_id,
        parent_call_id=run.parent_call_id,
        deck_path=run.deck,
        name=call.name,
    )
    text = output_text(envelope, source)
    return FunctionCallOutput(call_id=call.call_id, output=text)


def _source(item: Item) -> ItemSource:
    """Who an item is from, as far as a file tells."""
    match item:
        case Message(role="user"):
            return "user"
        case Message(role="system" | "developer"):
            return "deck"
        case FunctionCall(name=name) if name in CONTEXT_NAMES:
            return "deck"
        case FunctionCall(name=name) if name == COMPLETE:
            return "tool"
        case FunctionCallOutput():
            return "tool"
        case _:
            return "model"
