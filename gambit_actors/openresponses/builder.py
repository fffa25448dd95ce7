"""The reducer: a stream of events becomes one response.

`ResponseBuilder` believes the standard and lives with the servers there are. Some
never announce an item, some finish one twice, some send nothing but the final
response, some leave the final response empty. All of those give the same response
as a stream by the book, and what was odd is listed in ``problems``.

One thing it never does is take a response for completed that is not: a stream that
ends early raises, an error outranks a later completed, and the first terminal event
is the last word.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import assert_never

import msgspec

from gambit_actors.errors import StreamTruncated
from gambit_actors.openresponses.building import (
    ItemInProgress,
    in_output_form,
    is_incomplete,
)
from gambit_actors.openresponses.endings import INCOMPLETE_ITEM, UNEXPLAINED
from gambit_actors.openresponses.events import (
    ContentPartAdded,
    ContentPartDone,
    ErrorEvent,
    ErrorPayload,
    Event,
    FunctionCallArgumentsDelta,
    FunctionCallArgumentsDone,
    MalformedEvent,
    OutputItemAdded,
    OutputItemDone,
    OutputTextAnnotationAdded,
    OutputTextDelta,
    OutputTextDone,
    ReasoningDelta,
    ReasoningDone,
    ReasoningSummaryPartAdded,
    ReasoningSummaryPartDone,
    ReasoningSummaryTextDelta,
    ReasoningSummaryTextDone,
    RefusalDelta,
    RefusalDone,
    ResponseCompleted,
    ResponseCreated,
    ResponseFailed,
    ResponseIncomplete,
    ResponseInProgress,
    ResponseQueued,
    UnknownEvent,
)
from gambit_actors.openresponses.items import Item
from gambit_actors.openresponses.parts import (
    OutputText,
    Part,
    ReasoningText,
    Refusal,
)
from gambit_actors.openresponses.responses import (
    IncompleteDetails,
    Response,
    ResponseError,
)

_MOST_PROBLEMS = 100
_PROBLEM_CHARACTERS = 300
_PART_KINDS = (OutputText, Refusal, ReasoningText)


class ResponseBuilder:
    """Folds events into a response.

    Attributes:
        problems: what the stream did against the standard, one sentence each, the
            first hundred.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._latest = Response(id="", status="in_progress")
        self._items: dict[int, ItemInProgress] = {}
        self._error: ErrorPayload | None = None
        self._result: Response | None = None
        self._events_seen = 0

    @property
    def is_finished(self) -> bool:
        """Whether a terminal event has been seen."""
        return self._result is not None

    def feed(self, event: Event) -> None:  # noqa: C901  (a case per kind of event)
        """Take the next event."""
        self._events_seen += 1
        if self._result is not None:
            self._note(f"{event.type} after the response had ended: ignored")
            return
        match event:
            case OutputTextDelta(output_index=index, content_index=part, delta=text):
                item = self._item(index, event.item_id)
                item.content(part, OutputText).text.add(text)
            case FunctionCallArgumentsDelta(output_index=index, delta=text):
                self._item(index, event.item_id).arguments.add(text)
            case (
                ResponseCreated(response=response)
                | ResponseQueued(response=response)
                | ResponseInProgress(response=response)
            ):
                self._latest = response
            case ResponseCompleted() | ResponseFailed() | ResponseIncomplete():
                self._result = self._ended(event)
            case ErrorEvent(error=error):
                self._error = self._error or error
            case MalformedEvent(problem=problem):
                self._note(f"an event that is none: {problem}")
            case UnknownEvent():
                pass
            case _:
                self._feed_item(event)

    def partial(self) -> Response:
        """The response as far as it has come, for a stream that is going on or broke.

        Its status says that it is not completed, whatever had arrived. It is put
        together anew for each call, which takes as long as the response is.
        """
        if self._result is not None:
            return self._result
        output = self._output(is_finished=False) or tuple(
            in_output_form(item, index=index, is_finished=False)
            for index, item in enumerate(self._latest.output)
        )
        return msgspec.structs.replace(
            self._latest, status="in_progress", output=output
        )

    def close(self) -> Response:
        """End the stream and give the response.

        Raises:
            StreamTruncated: there was no terminal event. `partial` has what arrived.
        """
        if self._result is None and self._error is not None:
            # Some servers report an error and hang up; that is an end, if a rude one.
            self._note("the stream ended after an error event")
            self._result = self._failed(self.partial())
        if self._result is None:
            raise StreamTruncated(self._events_seen)
        return self._result

    def _feed_item(  # noqa: C901, PLR0912  (a case per event)
        self,
        event: OutputItemAdded
        | OutputItemDone
        | ContentPartAdded
        | ContentPartDone
        | OutputTextDone
        | OutputTextAnnotationAdded
        | RefusalDelta
        | RefusalDone
        | FunctionCallArgumentsDone
        | ReasoningDelta
        | ReasoningDone
        | ReasoningSummaryPartAdded
        | ReasoningSummaryPartDone
        | ReasoningSummaryTextDelta
        | ReasoningSummaryTextDone,
    ) -> None:
        if isinstance(event, OutputItemAdded | OutputItemDone):
            self._announce(event)
            return
        item = self._item(event.output_index, event.item_id)
        match event:
            case ContentPartAdded(content_index=index, part=part):
                item.content(index, _kind_of(part)).announce(part, is_finished=False)
            case ContentPartDone(content_index=index, part=part):
                item.content(index, _kind_of(part)).announce(part, is_finished=True)
            case OutputTextDone(content_index=index, text=text):
                item.content(index, OutputText).text.settle(text)
            case OutputTextAnnotationAdded(content_index=index, annotation=note):
                if note is not None:
                    text_part = item.content(index, OutputText)
                    text_part.annotations[event.annotation_index] = note
            case RefusalDelta(content_index=index, delta=text):
                item.content(index, Refusal).text.add(text)
            case RefusalDone(content_index=index, refusal=text):
                item.content(index, Refusal).text.settle(text)
            case FunctionCallArgumentsDone(arguments=text):
                item.arguments.settle(text)
            case ReasoningDelta(content_index=index, delta=text):
                item.content(index, ReasoningText).text.add(text)
            case ReasoningDone(content_index=index, text=text):
                item.content(index, ReasoningText).text.settle(text)
            case ReasoningSummaryPartAdded(summary_index=index, part=part):
                item.summary(index).announce(part, is_finished=False)
            case ReasoningSummaryPartDone(summary_index=index, part=part):
                item.summary(index).announce(part, is_finished=True)
            case ReasoningSummaryTextDelta(summary_index=index, delta=text):
                item.summary(index).text.add(text)
            case ReasoningSummaryTextDone(summary_index=index, text=text):
                item.summary(index).text.settle(text)
            case _:
                assert_never(event)

    def _note(self, problem: str) -> None:
        # A peer can make as many problems as it has bytes; we keep what helps.
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(problem[:_PROBLEM_CHARACTERS])

    def _item(self, index: int, item_id: str | None) -> ItemInProgress:
        item = self._items.get(index)
        if item is None:
            self._note(f"output {index} was never announced")
            item = self._items[index] = ItemInProgress()
        if item.item_id is None:
            item.item_id = item_id
        return item

    def _announce(self, event: OutputItemAdded | OutputItemDone) -> None:
        if event.item is None:
            self._note(f"{event.type} without an item")
            return
        item = self._items.setdefault(event.output_index, ItemInProgress())
        is_done = isinstance(event, OutputItemDone)
        if item.is_finished:
            self._note(f"output {event.output_index}: {event.type} again")
            if not is_done:
                return
        item.announce(event.item, is_finished=is_done)

    def _output(self, *, is_finished: bool) -> tuple[Item, ...]:
        """The items put together from what was streamed."""
        built = []
        for index in sorted(self._items):
            progress = self._items[index]
            item = progress.build()
            if item is None:
                continue  # Arguments of a call that was never named: see `_completed`.
            done = is_finished or progress.is_finished
            built.append(in_output_form(item, index=index, is_finished=done))
        return tuple(built)

    def _ended(
        self, event: ResponseCompleted | ResponseFailed | ResponseIncomplete
    ) -> Response:
        response = event.response
        is_completed = isinstance(event, ResponseCompleted)
        if len(response.output) < len(self._items):
            if response.output:
                self._note(
                    f"{event.type} lists {len(response.output)} of the "
                    f"{len(self._items)} items that were streamed"
                )
            output = self._output(is_finished=is_completed)
        else:
            output = tuple(
                in_output_form(item, index=index, is_finished=is_completed)
                for index, item in enumerate(self._filled(response.output))
            )
        response = msgspec.structs.replace(response, output=output)
        match event:
            case ResponseFailed():
                return self._failed(response)
            case ResponseIncomplete():
                return _incomplete(response, "unknown")
            case ResponseCompleted():
                return self._completed(response)
            case _:
                assert_never(event)

    def _filled(self, items: tuple[Item, ...]) -> Iterator[Item]:
        """Items of the final response, with what they had and now lack.

        An item is known by its id. Where ids are missing it is known by its place
        among the others, because servers count from 1 and leave gaps.
        """
        in_order = [self._items[place] for place in sorted(self._items)]
        by_id = {progress.id: progress for progress in in_order if progress.id}
        for index, item in enumerate(items):
            item_id = getattr(item, "id", None)
            progress = by_id.get(item_id) if item_id else None
            if progress is None and index < len(in_order):
                other = in_order[index]
                progress = other if item_id is None or other.id is None else None
            if progress is None or type(progress.build()) is not type(item):
                yield item
                continue
            progress.announce(item, is_finished=True)
            yield progress.build() or item

    def _completed(self, response: Response) -> Response:
        """A completed response, if nothing speaks against it."""
        if self._error or response.error or response.status == "failed":
            self._note("response.completed for a response that failed")
            return self._failed(response)
        if response.status in ("incomplete", "cancelled"):
            self._note(f"response.completed with status {response.status}")
            return _incomplete(response, response.status)
        if response.incomplete_details is not None:
            self._note("response.completed with a reason to be incomplete")
            return _incomplete(response, "unknown")
        if len(response.output) < len(self._items):
            # Arguments came, and nobody ever said for which function.
            self._note("response.completed without a call that was streamed")
            return _incomplete(response, "unnamed_call")
        # "An incomplete item forces the response to incomplete."
        if any(is_incomplete(item) for item in response.output):
            self._note("response.completed with an incomplete item")
            return _incomplete(response, INCOMPLETE_ITEM)
        return msgspec.structs.replace(response, status="completed")

    def _failed(self, response: Response) -> Response:
        error = response.error
        if error is None and self._error is not None:
            error = ResponseError(
                code=self._error.code or self._error.type, message=self._error.message
            )
        return msgspec.structs.replace(
            response,
            status="failed",
            error=error or UNEXPLAINED,
        )


def build_response(
    events: Iterable[Event], *, on_event: Callable[[Event], None] | None = None
) -> Response:
    """Fold a finished stream of events into its response.

    Args:
        events: all of them.
        on_event: is shown each event as it is folded.

    Raises:
        StreamTruncated: there was no terminal event.
    """
    builder = ResponseBuilder()
    for event in events:
        builder.feed(event)
        if on_event is not None:
            on_event(event)
    return builder.close()


def _incomplete(response: Response, reason: str) -> Response:
    details = response.incomplete_details or IncompleteDetails(reason=reason)
    return msgspec.structs.replace(
        response, status="incomplete", incomplete_details=details
    )


def _kind_of(part: Part) -> type[OutputText | Refusal | ReasoningText]:
    """The kind of part that deltas of it would make."""
    return next((kind for kind in _PART_KINDS if isinstance(part, kind)), OutputText)
