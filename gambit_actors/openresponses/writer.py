"""The dual of the builder: what a model does becomes the legal sequence of events.

Every adapter and the gateway speak through `ResponseWriter`, so the order of events
is decided here and nowhere else. A caller says what happens in blocks (text begins,
more text, text ends) under keys of its own choosing, and gets back the events to
send. Blocks may be open side by side, as parallel tool calls are.

::

    response      NEW --start--> OPEN --finish | cancel | fail--> ENDED
                                 OPEN --error--> FAILING --fail--> ENDED
    block         open --stop--> held --any later call--> done

A stopped item is *held*: its ``output_item.done`` carries a status, and only the call
after the stop tells whether the model was cut off in the middle of it. Some providers
end a block first and say ``max_tokens`` afterwards; a half-written tool call must not
go out as completed.

No clock, no randomness: times are arguments, item ids are made from the response's.
"""

import enum
import typing
from collections.abc import Hashable
from typing import TypeAlias

import msgspec

from gambit_actors.errors import WriterMisuse
from gambit_actors.openresponses import events
from gambit_actors.openresponses.blocks import (
    Block,
    CallBlock,
    MessageBlock,
    ReasoningBlock,
    Steps,
    checked_text,
)
from gambit_actors.openresponses.building import (
    as_begun,
    in_output_form,
    is_incomplete,
)
from gambit_actors.openresponses.endings import (
    CUT_SHORT,
    INCOMPLETE_ITEM,
    UNEXPLAINED,
    StopReason,
    Terminal,
    ending_of,
)
from gambit_actors.openresponses.items import Item, ItemStatus
from gambit_actors.openresponses.parts import Annotation, OutputText, Refusal
from gambit_actors.openresponses.responses import (
    IncompleteDetails,
    Response,
    ResponseError,
    Usage,
)

Events: TypeAlias = list[events.StandardEvent]
"""Events in the order in which they have to be sent."""


class _State(enum.Enum):
    NEW = "not started"
    OPEN = "open"
    FAILING = "failing"
    ENDED = "ended"


class ResponseWriter:
    """Turns what a model does into events.

    Args:
        response: what the response starts as; see `response_for`. Its ``status`` and
            ``output`` are the writer's business.
    """

    def __init__(self, response: Response) -> None:
        self._response = msgspec.structs.replace(
            response, status="in_progress", output=()
        )
        self._state = _State.NEW
        self._next_number = 0
        self._open: dict[Hashable, Block] = {}
        self._held: Block | None = None
        self._items: dict[int, Item] = {}
        self._next_index = 0

    @property
    def response(self) -> Response:
        """The response as far as it is settled; final once the writer has ended."""
        output = tuple(self._items[index] for index in sorted(self._items))
        return msgspec.structs.replace(self._response, output=output)

    @property
    def has_ended(self) -> bool:
        """Whether the terminal event has been written."""
        return self._state is _State.ENDED

    # The response's life

    def start(self, *, is_queued: bool = False) -> Events:
        """Begin: created, queued if it has to wait, in_progress."""
        if self._state is not _State.NEW:
            msg = "the response was started already"
            raise WriterMisuse(msg)
        self._state = _State.OPEN
        steps: Events = [events.ResponseCreated(response=self._response)]
        if is_queued:
            queued = msgspec.structs.replace(self._response, status="queued")
            steps = [
                events.ResponseCreated(response=queued),
                events.ResponseQueued(response=queued),
            ]
        steps.append(events.ResponseInProgress(response=self._response))
        return self._numbered(steps)

    def finish(
        self,
        reason: StopReason,
        *,
        usage: Usage | None = None,
        completed_at: int | None = None,
    ) -> Events:
        """End because the model stopped, for the reason it gave.

        Blocks still open are stopped. When the model was cut short, they and the
        last item are incomplete, and so is the response.
        """
        if reason not in typing.get_args(StopReason):
            msg = f"{reason!r} is not a stop reason"
            raise WriterMisuse(msg)
        cut = CUT_SHORT.get(reason)
        steps = self._stop_all("incomplete" if cut else "completed")
        if cut is None and self._has_incomplete_item():
            cut = INCOMPLETE_ITEM
        if cut is not None:
            return steps + self._incomplete(cut, usage)
        return steps + self._end(
            events.ResponseCompleted, usage=usage, completed_at=completed_at
        )

    def cancel(
        self, *, reason: str = "cancelled", usage: Usage | None = None
    ) -> Events:
        """End because somebody no longer wants the answer."""
        return self._stop_all("incomplete") + self._incomplete(reason, usage)

    def error(
        self,
        message: str,
        *,
        type: str = "server_error",
        code: str | None = None,
        param: str | None = None,
    ) -> Events:
        """Report an error. Only `fail` may follow."""
        self._expect(_State.OPEN)
        self._state = _State.FAILING
        payload = events.ErrorPayload(
            message=message, type=type, code=code, param=param
        )
        return self._numbered([events.ErrorEvent(error=payload)])

    def fail(self, code: str, message: str, *, usage: Usage | None = None) -> Events:
        """End because something broke; what was said so far stays in the output."""
        if self._state is _State.FAILING:
            self._state = _State.OPEN
        steps = self._stop_all("incomplete")
        error = ResponseError(code=code, message=message)
        return steps + self._end(events.ResponseFailed, usage=usage, error=error)

    def end_like(self, ended: Response) -> Events:
        """End as another response has ended, with its usage, error and details."""
        if ended.status not in ("completed", "failed", "incomplete"):
            msg = f"a response that is {ended.status} has not ended"
            raise WriterMisuse(msg)
        is_whole = ended.status == "completed" and ended.error is None
        steps = self._stop_all("completed" if is_whole else "incomplete")
        event, details = ending_of(
            ended, has_incomplete_item=self._has_incomplete_item()
        )
        is_failed = event is events.ResponseFailed
        return steps + self._end(
            event,
            usage=ended.usage,
            error=ended.error or (UNEXPLAINED if is_failed else None),
            incomplete_details=details,
            completed_at=ended.completed_at,
        )

    # Blocks

    def start_message(
        self, key: Hashable, *, id: str | None = None, phase: str | None = None
    ) -> Events:
        """Begin a message that will have its parts started one by one."""
        return self._open_block(key, MessageBlock(phase=phase), id)

    def start_text(
        self, key: Hashable, *, message: Hashable = None, id: str | None = None
    ) -> Events:
        """Begin text, in a message of its own or in one begun by `start_message`."""
        return self._open_part(key, OutputText, message, id)

    def start_refusal(
        self, key: Hashable, *, message: Hashable = None, id: str | None = None
    ) -> Events:
        """Begin a refusal, in a message of its own or in one already begun."""
        return self._open_part(key, Refusal, message, id)

    def start_tool_call(
        self, key: Hashable, *, call_id: str, name: str, id: str | None = None
    ) -> Events:
        """Begin a tool call; the provider's id for it is the ``call_id``."""
        return self._open_block(key, CallBlock(call_id=call_id, name=name), id)

    def start_reasoning(self, key: Hashable, *, id: str | None = None) -> Events:
        """Begin reasoning. Deltas go to it by `add` (raw) or `add_summary`."""
        return self._open_block(key, ReasoningBlock(), id)

    def add(self, key: Hashable, delta: str) -> Events:
        """More of the block: text, refusal, raw reasoning or arguments."""
        return self._step(self._block(key).add(key, checked_text(delta)))

    def add_summary(self, key: Hashable, delta: str) -> Events:
        """More of the summary of a reasoning block."""
        return self._step(self._reasoning(key).add_summary(checked_text(delta)))

    def next_part(self, key: Hashable) -> Events:
        """Close the open part of a reasoning block; the next delta begins another."""
        return self._step(self._reasoning(key).close())

    def annotate(self, key: Hashable, annotation: Annotation) -> Events:
        """Give a text block an annotation."""
        return self._step(self._message(key).annotate(key, annotation))

    def stop(
        self,
        key: Hashable,
        *,
        status: ItemStatus = "completed",
        encrypted_content: str | None = None,
    ) -> Events:
        """End a block, and its item unless that is a message of several parts.

        Args:
            key: of the block.
            status: ``incomplete`` for an item that is known to have been cut.
            encrypted_content: for reasoning that the provider sealed.
        """
        block = self._block(key)
        steps = self._step([])
        if isinstance(block, MessageBlock) and not block.ends_with(key):
            steps += self._numbered(block.close_part(key))
            del self._open[key]
            del block.keys[key]
            return steps
        if isinstance(block, ReasoningBlock):
            block.encrypted_content = encrypted_content
        return steps + self._close_block(block, status)

    def flush(self) -> Events:
        """Let go of a stopped item that is known to be whole."""
        return self._step([])

    def add_item(self, item: Item) -> Events:
        """Write a whole item of any type: begun and done at once."""
        steps = self._step([])
        index = self._claim_index()
        item = in_output_form(item, index=index, is_finished=True)
        self._items[index] = item
        return steps + self._numbered(
            [
                events.OutputItemAdded(output_index=index, item=as_begun(item)),
                events.OutputItemDone(output_index=index, item=item),
            ]
        )

    # What the above is made of

    def _expect(self, state: _State) -> None:
        if self._state is not state:
            msg = f"the response is {self._state.value}"
            raise WriterMisuse(msg)

    def _block(self, key: Hashable) -> Block:
        self._expect(_State.OPEN)
        block = self._open.get(key)
        if block is None:
            msg = f"no block {key!r} is open"
            raise WriterMisuse(msg)
        return block

    def _message(self, key: Hashable) -> MessageBlock:
        block = self._block(key)
        if not isinstance(block, MessageBlock):
            msg = f"block {key!r} is not part of a message"
            raise WriterMisuse(msg)
        return block

    def _reasoning(self, key: Hashable) -> ReasoningBlock:
        block = self._block(key)
        if not isinstance(block, ReasoningBlock):
            msg = f"block {key!r} is not reasoning"
            raise WriterMisuse(msg)
        return block

    def _take_key(self, key: Hashable, block: Block) -> None:
        self._expect(_State.OPEN)
        if key in self._open:
            msg = f"block {key!r} is open already"
            raise WriterMisuse(msg)
        self._open[key] = block
        block.keys[key] = None

    def _claim_index(self) -> int:
        self._next_index += 1
        return self._next_index - 1

    def _open_block(self, key: Hashable, block: Block, id: str | None) -> Events:
        self._take_key(key, block)
        steps = self._step([])
        index = self._claim_index()
        stem = self._response.id.removeprefix("resp_")
        block.open(index, id or f"{block.id_prefix}_{stem}_{index}")
        added = events.OutputItemAdded(
            output_index=index, item=block.item("in_progress")
        )
        return steps + self._numbered([added])

    def _open_part(
        self,
        key: Hashable,
        kind: type[OutputText | Refusal],
        message: Hashable,
        id: str | None,
    ) -> Events:
        if message is None:
            block = MessageBlock(own_part=key)
            steps = self._open_block(key, block, id)
        else:
            block = self._message(message)
            self._take_key(key, block)
            steps = self._step([])
        return steps + self._numbered(block.open_part(key, kind))

    def _close_block(self, block: Block, status: ItemStatus) -> Events:
        """Close a block's parts at once, and hold its item back."""
        steps = self._numbered(block.close())
        for key in block.keys:
            self._open.pop(key, None)
        block.status = status
        self._held = block
        return steps

    def _step(self, steps: Steps) -> Events:
        """Let go of a held item first: something came after it, so it was whole."""
        self._expect(_State.OPEN)
        return self._release() + self._numbered(steps)

    def _release(self, status: ItemStatus | None = None) -> Events:
        if self._held is None:
            return []
        block, self._held = self._held, None
        item = block.item(status or block.status)
        self._items[block.index] = item
        return self._numbered(
            [events.OutputItemDone(output_index=block.index, item=item)]
        )

    def _stop_all(self, status: ItemStatus) -> Events:
        self._expect(_State.OPEN)
        steps: Events = []
        is_cut = status == "incomplete"
        if self._held is not None:
            steps += self._release(status if is_cut else None)
        for block in dict.fromkeys(self._open.values()):
            steps += self._close_block(block, status)
            steps += self._release()
        return steps

    def _has_incomplete_item(self) -> bool:
        return any(is_incomplete(item) for item in self._items.values())

    def _incomplete(self, reason: str, usage: Usage | None) -> Events:
        details = IncompleteDetails(reason=reason)
        return self._end(
            events.ResponseIncomplete, usage=usage, incomplete_details=details
        )

    def _end(self, event: type[Terminal], **changes: object) -> Events:
        """Settle the response as the terminal event has it, and write that event."""
        self._state = _State.ENDED
        status = str(event.__struct_config__.tag).removeprefix("response.")
        self._response = msgspec.structs.replace(
            self._response, status=status, **changes
        )
        return self._numbered([event(response=self.response)])

    def _numbered(self, steps: Steps) -> Events:
        first = self._next_number
        self._next_number += len(steps)
        return [
            msgspec.structs.replace(step, sequence_number=number)
            for number, step in enumerate(steps, first)
        ]
