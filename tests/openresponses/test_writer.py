"""The writer puts events in the only order they may have, and refuses misuse.

The sequences are those of seed 004's mapping, a test or more for each of its lines.
All other orders of calls are tried in test_writer_schema.py.
"""

from collections.abc import Callable

import msgspec
import pytest

from gambit_actors.errors import WriterMisuse
from gambit_actors.openresponses import events as ev
from gambit_actors.openresponses.base import Extra
from gambit_actors.openresponses.builder import ResponseBuilder, build_response
from gambit_actors.openresponses.endings import StopReason
from gambit_actors.openresponses.items import (
    FunctionCall,
    Message,
    Reasoning,
    UnknownItem,
)
from gambit_actors.openresponses.parts import (
    OutputText,
    ReasoningText,
    Refusal,
    SummaryText,
    UrlCitation,
)
from gambit_actors.openresponses.responses import (
    IncompleteDetails,
    Response,
    ResponseError,
    Usage,
)
from gambit_actors.openresponses.writer import Events, ResponseWriter

LIFE = ev.ResponseCreated | ev.ResponseQueued | ev.ResponseInProgress
START = ["created", "in_progress"]
BEGIN = ["output_item.added", "content_part.added"]
TEXT_END = ["output_text.done", "content_part.done"]
ITEM_END = ["output_item.done"]
USAGE = Usage(input_tokens=3, output_tokens=4, total_tokens=7)
CITATION = UrlCitation(url="https://a.test", title="A", start_index=0, end_index=2)
SEARCH = UnknownItem(type_name="acme:search", extra=Extra(id="x", status="completed"))


def new_writer() -> ResponseWriter:
    """Make a writer that has not started."""
    return ResponseWriter(Response(id="resp_1", status="in_progress"))


def statuses(writer: ResponseWriter) -> list[str | None]:
    """List the statuses of what was written."""
    return [getattr(item, "status", None) for item in writer.response.output]


def types(events: Events) -> list[str]:
    """Name the events, without the prefix they share."""
    return [event.type.removeprefix("response.") for event in events]


def checked(writer: ResponseWriter, events: Events) -> list[str]:
    """Name the events of a whole stream, seen to be numbered and to build it."""
    assert [event.sequence_number for event in events] == list(range(len(events)))
    builder = ResponseBuilder()
    for event in events:
        builder.feed(event)
    assert builder.close() == writer.response
    assert builder.problems == []
    assert writer.has_ended
    return types(events)


@pytest.mark.spec("MAP-2")
def test_a_text_block() -> None:
    """A text block is a message with one part: added, deltas, done, in order."""
    w = new_writer()
    events = w.start() + w.start_text(0) + w.add(0, "Hel") + w.add(0, "lo")
    events += w.stop(0) + w.finish("end_turn", usage=USAGE, completed_at=9)
    assert checked(w, events) == [
        *START,
        *BEGIN,
        "output_text.delta",
        "output_text.delta",
        *TEXT_END,
        *ITEM_END,
        "completed",
    ]
    begun = Message(id="msg_1_0", role="assistant", status="in_progress", content=())
    whole = msgspec.structs.replace(
        begun, status="completed", content=(OutputText(text="Hello"),)
    )
    # Clients of the standard's first version insist on log probabilities.
    assert all(getattr(event, "logprobs", ()) == () for event in events)
    assert isinstance(events[2], ev.OutputItemAdded)
    assert events[2].item == begun
    assert w.response.output == (whole,)


@pytest.mark.spec("MAP-2")
def test_annotations_stand_between_a_parts_events() -> None:
    """An annotation goes out while its part is open and ends up in it."""
    w = new_writer()
    events = w.start() + w.start_text(0) + w.add(0, "Hi") + w.annotate(0, CITATION)
    events += w.stop(0) + w.finish("stop_sequence")
    assert checked(w, events)[5] == "output_text.annotation.added"
    part = OutputText(text="Hi", annotations=(CITATION,))
    assert getattr(w.response.output[0], "content", None) == (part,)


@pytest.mark.spec("MAP-3")
def test_tool_use_blocks() -> None:
    """Each tool-use block is a function_call, its id the call_id, its JSON kept."""
    w = new_writer()
    events = w.start()
    for key in ("a", "b"):
        events += w.start_tool_call(key, call_id=f"toolu_{key}", name="look_up")
        events += w.add(key, '{"q" :') + w.add(key, " 1}") + w.stop(key)
    events += w.finish("tool_use")
    arguments = [f"function_call_arguments.{e}" for e in ("delta", "delta", "done")]
    one_call = ["output_item.added", *arguments, "output_item.done"]
    assert checked(w, events) == [*START, *one_call, *one_call, "completed"]
    assert w.response.output == tuple(
        FunctionCall(
            id=f"fc_1_{index}",
            call_id=f"toolu_{key}",
            name="look_up",
            arguments='{"q" : 1}',
            status="completed",
        )
        for index, key in enumerate("ab")
    )


@pytest.mark.spec("MAP-3")
def test_parallel_calls_do_not_mix() -> None:
    """Calls open side by side keep their own deltas, and the output its order."""
    w = new_writer()
    events = w.start()
    events += w.start_tool_call("a", call_id="ca", name="f")
    events += w.start_tool_call("b", call_id="cb", name="g")
    events += w.add("b", "[2") + w.add("a", "[1") + w.add("b", "]") + w.stop("b")
    events += w.add("a", "]") + w.stop("a") + w.finish("tool_use")
    checked(w, events)
    calls = [item for item in w.response.output if isinstance(item, FunctionCall)]
    assert [(c.call_id, c.arguments) for c in calls] == [("ca", "[1]"), ("cb", "[2]")]


@pytest.mark.spec("MAP-5")
def test_a_thinking_block() -> None:
    """A thinking block is a reasoning item, with raw deltas and then summaries."""
    w = new_writer()
    events = w.start() + w.start_reasoning(0) + w.add(0, "Hm") + w.add(0, "m.")
    events += w.add_summary(0, "It") + w.add_summary(0, " thought.") + w.next_part(0)
    events += w.add_summary(0, "Long.") + w.stop(0, encrypted_content="sealed")
    events += w.finish("end_turn")
    summary = ["reasoning_summary_text.done", "reasoning_summary_part.done"]
    assert checked(w, events) == [
        *START,
        *BEGIN,
        "reasoning.delta",
        "reasoning.delta",
        "reasoning.done",
        "content_part.done",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.delta",
        *summary,
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        *summary,
        *ITEM_END,
        "completed",
    ]
    assert w.response.output == (
        Reasoning(
            id="rs_1_0",
            content=(ReasoningText(text="Hmm."),),
            summary=(SummaryText(text="It thought."), SummaryText(text="Long.")),
            encrypted_content="sealed",
        ),
    )


@pytest.mark.spec("MAP-7")
def test_a_refusal() -> None:
    """A refusal is a refusal part with refusal events, and reads back as one."""
    w = new_writer()
    events = w.start() + w.start_refusal(0) + w.add(0, "I ") + w.add(0, "won't.")
    events += w.stop(0) + w.finish("end_turn")
    refusal = ["refusal.delta", "refusal.delta", "refusal.done", "content_part.done"]
    assert checked(w, events)[2:-2] == [*BEGIN, *refusal]
    (item,) = build_response(events).output
    assert getattr(item, "content", None) == (Refusal(refusal="I won't."),)


@pytest.mark.spec("MAP-7")
def test_text_and_refusal_in_one_message() -> None:
    """A message begun as such has several parts and ends by its own key."""
    w = new_writer()
    events = w.start() + w.start_message("m", phase="final_answer")
    events += w.start_text("t", message="m") + w.add("t", "Well. ") + w.stop("t")
    events += w.start_refusal("r", message="m") + w.add("r", "No.") + w.stop("r")
    events += w.stop("m") + w.finish("end_turn")
    text = ["output_text.delta", *TEXT_END]
    refusal = ["content_part.added", "refusal.delta", "refusal.done"]
    assert checked(w, events)[2:-3] == [*BEGIN, *text, *refusal]
    (message,) = w.response.output
    assert isinstance(message, Message)
    assert (message.text, message.refusal) == ("Well. ", "No.")
    assert message.phase == "final_answer"


def test_a_whole_item() -> None:
    """An item of any type, unknown ones too, is added and done at once."""
    w = new_writer()
    events = w.start() + w.add_item(SEARCH) + w.finish("end_turn")
    assert checked(w, events)[2:-1] == ["output_item.added", "output_item.done"]
    assert w.response.output == (SEARCH,)


@pytest.mark.spec("MAP-1")
def test_start() -> None:
    """Started is created, queued when it has to wait, and in_progress."""
    assert types(new_writer().start()) == START
    queued = new_writer().start(is_queued=True)
    assert types(queued) == ["created", "queued", "in_progress"]
    told = [event.response.status for event in queued if isinstance(event, LIFE)]
    assert told == ["queued", "queued", "in_progress"]


@pytest.mark.spec("MAP-1", "MAP-6")
@pytest.mark.parametrize("reason", ["end_turn", "stop_sequence", "tool_use"])
def test_a_model_that_stopped_by_itself_is_completed(reason: StopReason) -> None:
    """These stop reasons complete the response, its open item, and carry usage."""
    w = new_writer()
    events = w.start() + w.start_text(0) + w.add(0, "Hi")
    events += w.finish(reason, usage=USAGE, completed_at=9)
    assert checked(w, events)[-4:] == [*TEXT_END, *ITEM_END, "completed"]
    assert (w.response.usage, w.response.completed_at) == (USAGE, 9)
    assert statuses(w) == ["completed"]


@pytest.mark.spec("MAP-6")
@pytest.mark.parametrize(
    ("reason", "detail"),
    [("max_tokens", "max_output_tokens"), ("content_filter", "content_filter")],
)
def test_a_model_cut_short_is_incomplete(reason: StopReason, detail: str) -> None:
    """These leave the response and its open item incomplete, and say why."""
    w = new_writer()
    events = w.start() + w.start_tool_call(0, call_id="c", name="f") + w.add(0, "{")
    events += w.finish(reason, usage=USAGE)
    assert checked(w, events)[-1] == "incomplete"
    assert w.response.incomplete_details == IncompleteDetails(reason=detail)
    assert (w.response.usage, w.response.completed_at) == (USAGE, None)
    assert statuses(w) == ["incomplete"]


@pytest.mark.spec("MAP-6")
def test_max_tokens_after_the_stop_still_marks_the_item() -> None:
    """A provider that ends the block before it says max_tokens cut that block."""
    w = new_writer()
    w.start()
    w.start_text(0)
    w.stop(0)
    w.start_tool_call(1, call_id="c", name="f")
    assert types(w.stop(1)) == ["function_call_arguments.done"]
    assert types(w.finish("max_tokens")) == ["output_item.done", "incomplete"]
    assert statuses(w) == ["completed", "incomplete"]


@pytest.mark.spec("MAP-6")
def test_an_item_known_to_be_whole_stays_completed() -> None:
    """A flushed item is done, and a later max_tokens does not reach it."""
    w = new_writer()
    w.start()
    w.start_text(0)
    w.stop(0)
    assert types(w.flush()) == ITEM_END
    assert types(w.flush()) == []
    assert types(w.finish("max_tokens")) == ["incomplete"]
    assert statuses(w) == ["completed"]


@pytest.mark.spec("MAP-6")
def test_an_item_stopped_as_incomplete_forces_the_response() -> None:
    """With an incomplete item in it, the response cannot be completed."""
    w = new_writer()
    events = w.start() + w.start_text(0) + w.stop(0, status="incomplete")
    events += w.finish("end_turn")
    assert checked(w, events)[-1] == "incomplete"


@pytest.mark.spec("MAP-1")
def test_cancelled() -> None:
    """Cancelled is incomplete, with that as its reason and what was said in it."""
    w = new_writer()
    events = w.start() + w.start_text(0) + w.add(0, "Hi") + w.cancel(usage=USAGE)
    assert checked(w, events)[-1] == "incomplete"
    assert w.response.incomplete_details == IncompleteDetails(reason="cancelled")
    assert (w.response.output_text, w.response.usage) == ("Hi", USAGE)
    assert statuses(w) == ["incomplete"]


@pytest.mark.spec("MAP-1")
def test_an_error_and_then_the_failure() -> None:
    """An error is an error event; the failure after it closes what was open."""
    w = new_writer()
    events = w.start() + w.start_text(0) + w.add(0, "Hi")
    events += w.error("Busy.", type="too_many_requests", code="slow", param="model")
    events += w.fail("slow", "Busy.", usage=USAGE)
    assert checked(w, events)[-5:] == ["error", *TEXT_END, *ITEM_END, "failed"]
    assert w.response.error == ResponseError(code="slow", message="Busy.")
    assert (w.response.output_text, statuses(w)) == ("Hi", ["incomplete"])


@pytest.mark.spec("MAP-1")
def test_failed() -> None:
    """Failed is response.failed with its error, also without an error event."""
    w = new_writer()
    assert checked(w, w.start() + w.fail("broken", "It broke."))[-1] == "failed"
    assert w.response.error == ResponseError(code="broken", message="It broke.")


MISUSES: dict[str, tuple[Callable[[ResponseWriter], object], str]] = {
    "a delta for no block": (lambda w: w.add("k", "x"), "no block 'k' is open"),
    "a delta after the stop": (
        lambda w: (w.start_text("k"), w.stop("k"), w.add("k", "x")),
        "no block 'k' is open",
    ),
    "a key twice": (
        lambda w: (w.start_text("k"), w.start_reasoning("k")),
        "block 'k' is open already",
    ),
    "a part's key twice": (
        lambda w: (w.start_message("k"), w.start_text("k", message="k")),
        "block 'k' is open already",
    ),
    "text for a message": (
        lambda w: (w.start_message("k"), w.add("k", "x")),
        "block 'k' is a message; start a text or a refusal in it",
    ),
    "two starts": (lambda w: w.start(), "the response was started already"),
    "annotating a refusal": (
        lambda w: (w.start_refusal("k"), w.annotate("k", CITATION)),
        "block 'k' is a refusal; only text has annotations",
    ),
    "a part of reasoning": (
        lambda w: (w.start_reasoning("k"), w.start_text("t", message="k")),
        "block 'k' is not part of a message",
    ),
    "a summary of text": (
        lambda w: (w.start_text("k"), w.add_summary("k", "x")),
        "block 'k' is not reasoning",
    ),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuse(name: str) -> None:
    """What has no legal place is refused in a sentence that names the block."""
    misuse, sentence = MISUSES[name]
    w = new_writer()
    w.start()
    with pytest.raises(WriterMisuse) as caught:
        misuse(w)
    assert str(caught.value) == sentence


CALLS: dict[str, Callable[[ResponseWriter], object]] = {
    "start_message": lambda w: w.start_message("n"),
    "start_text": lambda w: w.start_text("n"),
    "start_part": lambda w: w.start_text("n", message="k"),
    "start_tool_call": lambda w: w.start_tool_call("n", call_id="c", name="f"),
    "add": lambda w: w.add("k", "x"),
    "stop": lambda w: w.stop("k"),
    "flush": lambda w: w.flush(),
    "add_item": lambda w: w.add_item(SEARCH),
    "finish": lambda w: w.finish("end_turn"),
    "cancel": lambda w: w.cancel(),
    "error": lambda w: w.error("x"),
    "fail": lambda w: w.fail("c", "m"),
}


@pytest.mark.spec("MAP-1")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("state", ["not started", "failing", "ended"])
def test_nothing_out_of_turn(name: str, state: str) -> None:
    """Before the start and after the end nothing goes; after an error only fail."""
    w = new_writer()
    if state != "not started":
        w.start()
        w.start_text("k")
        _ = w.error("x") if state == "failing" else w.finish("end_turn")
    if (name, state) == ("fail", "failing"):
        assert types(w.fail("c", "m"))[-1] == "failed"
        return
    with pytest.raises(WriterMisuse, match=f"the response is {state}"):
        CALLS[name](w)
