"""The scripted model streams legally, fails on cue and mixes no two runs up."""

from collections.abc import Callable
from typing import get_args

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, assert_checkpoints

from gambit_actors.errors import (
    BadScript,
    ProviderError,
    ScriptExhausted,
    StreamTruncated,
)
from gambit_actors.openresponses import events as ev
from gambit_actors.openresponses.builder import ResponseBuilder
from gambit_actors.openresponses.endings import StopReason
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
    user_message,
)
from gambit_actors.openresponses.parts import SummaryText
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response, ResponseError, response_for
from gambit_actors.openresponses.tools import FunctionTool
from gambit_actors.openresponses.writer import ResponseWriter
from gambit_actors.providers.scripted import RehearsedError, ScriptedProvider
from gambit_actors.providers.scripts import Call, Reply, TokenCount, script_from_toml
from gambit_actors.providers.telling import PreparedReply, Template, write_reply
from gambit_actors.run.ports import ModelContext, ModelProvider

DECK = "decks/support/PROMPT.md"
REQUEST = CreateResponse(
    model="scripted/one",
    instructions="Help.",
    input=(user_message("Where is my order?"),),
    tools=(FunctionTool(name="order_lookup", parameters={"type": "object"}),),
    temperature=0.5,
)
LOOKUP = Call(name="order_lookup", arguments={"orderNumber": "LL-1001"})
SENT = "It was sent two days ago."


def context(run_id: str = "r1", *, turn: int = 1, pass_number: int = 1) -> ModelContext:
    """Make the context of one call."""
    return ModelContext(run_id=run_id, deck=DECK, turn=turn, pass_number=pass_number)


def ignore(event: ev.Event) -> None:
    """Take an event and do nothing about it."""


async def ask(
    provider: ModelProvider, run_id: str = "r1", **place: int
) -> tuple[Response, list[ev.Event]]:
    """Ask once; the response and the events."""
    seen: list[ev.Event] = []
    response = await provider.responses(REQUEST, context(run_id, **place), seen.append)
    return response, seen


async def ask_in_vain(
    reply: Reply, error: type[ProviderError]
) -> tuple[ProviderError, list[ev.Event]]:
    """Ask for a reply that raises; the error and the events before it."""
    seen: list[ev.Event] = []
    with pytest.raises(error) as caught:
        await ScriptedProvider([reply]).responses(REQUEST, context(), seen.append)
    return caught.value, seen


def rebuilt(events: list[ev.Event]) -> Response:
    """Fold events into a response; they have to be by the book."""
    builder = ResponseBuilder()
    for event in events:
        builder.feed(event)
    assert builder.problems == []
    return builder.close()


def deltas(events: list[ev.Event]) -> list[str]:
    """List the deltas of text."""
    return [e.delta for e in events if isinstance(e, ev.OutputTextDelta)]


async def text_of_next(provider: ModelProvider, run_id: str = "r1") -> str:
    """Ask once; the text of the answer."""
    response, _ = await ask(provider, run_id)
    return response.output_text


# What is said


async def test_a_text_is_streamed_word_by_word() -> None:
    """A text comes in words, and the response repeats what was asked for."""
    response, events = await ask(ScriptedProvider([Reply(text=SENT)]))
    assert deltas(events) == ["It ", "was ", "sent ", "two ", "days ", "ago."]
    assert response.output_text == SENT
    assert (response.status, response.model) == ("completed", "scripted/one")
    assert (response.temperature, response.instructions) == (0.5, "Help.")
    assert [getattr(tool, "name", "") for tool in response.tools] == ["order_lookup"]
    assert rebuilt(events) == response


async def test_ids_are_made_of_run_turn_and_pass() -> None:
    """The same place in a run gives the same ids, another place others."""
    replies = [Reply(text="a", reasoning="b", calls=(LOOKUP, LOOKUP), times=0)]
    response, events = await ask(ScriptedProvider(replies), turn=2, pass_number=3)
    again, _ = await ask(ScriptedProvider(replies), turn=2, pass_number=3)
    assert response == again
    assert response.id == "resp_r1_2_3"
    assert [item.id for item in response.output if isinstance(item, FunctionCall)] == [
        "fc_r1_2_3_2",
        "fc_r1_2_3_3",
    ]
    assert [
        item.call_id for item in response.output if isinstance(item, FunctionCall)
    ] == ["call_r1_2_3_0", "call_r1_2_3_1"]
    assert rebuilt(events) == response


async def test_calls_reach_the_wire_as_written() -> None:
    """An object becomes JSON text; raw text and a given call id are untouched."""
    raw = Call(name="broken", arguments='{"half', call_id="call_@")
    response, events = await ask(ScriptedProvider([Reply(calls=(LOOKUP, raw))]))
    first, second = response.output
    assert isinstance(first, FunctionCall)
    assert isinstance(second, FunctionCall)
    assert first.arguments == '{"orderNumber":"LL-1001"}'
    assert (second.arguments, second.call_id) == ('{"half', "call_@")
    assert rebuilt(events) == response


async def test_reasoning_stands_before_and_a_refusal_is_one() -> None:
    """A summary of reasoning comes first; a refusal is the message's own kind."""
    reply = Reply(reasoning="Hm, no.", refusal="I will not.")
    response, _ = await ask(ScriptedProvider([reply]))
    thought, said = response.output
    assert isinstance(thought, Reasoning)
    assert thought.summary == (SummaryText(text="Hm, no."),)
    assert isinstance(said, Message)
    assert said.refusal == "I will not."


async def test_chunks_may_have_a_size() -> None:
    """Deltas of a given size cut text and arguments alike."""
    reply = Reply(text="abcdefg", calls=(LOOKUP,), chunk_characters=3)
    response, events = await ask(ScriptedProvider([reply]))
    pieces = [e for e in events if isinstance(e, ev.FunctionCallArgumentsDelta)]
    assert deltas(events) == ["abc", "def", "g"]
    assert len(pieces) == 9
    assert rebuilt(events) == response


async def test_usage_is_counted_roughly_or_as_stated() -> None:
    """Four characters are a token, rounded up, unless the reply says otherwise."""
    stated = TokenCount(output_tokens=99)
    provider = ScriptedProvider([Reply(text=SENT), Reply(text=SENT, usage=stated)])
    first, _ = await ask(provider)
    second, _ = await ask(provider)
    assert first.usage is not None
    assert second.usage is not None
    # "Help." and "Where is my order?" are 23 characters, the answer is 25.
    assert (first.usage.input_tokens, first.usage.output_tokens) == (6, 7)
    assert first.usage.total_tokens == 13
    assert (second.usage.input_tokens, second.usage.output_tokens) == (6, 99)


@pytest.mark.parametrize(
    ("items", "tokens"),
    [
        (None, 2),
        ("12345678", 4),
        ((FunctionCall(name="abcd", call_id="1", arguments="1234"),), 4),
        ((FunctionCallOutput(call_id="1", output="1234567"),), 3),
        ((Reasoning(),), 2),
    ],
)
def test_all_text_of_a_request_is_counted(
    items: str | tuple[Item, ...] | None, tokens: int
) -> None:
    """Instructions, messages, calls and outputs cost; what has no text does not."""
    request = CreateResponse(instructions="Help.", input=items)
    assert PreparedReply(Reply(text="")).usage(request).input_tokens == tokens


@pytest.mark.parametrize("reason", get_args(StopReason))
async def test_a_stop_reason_decides_the_status(reason: StopReason) -> None:
    """A reply that was cut short is incomplete, any other is completed."""
    response, events = await ask(
        ScriptedProvider([Reply(text="Well", stop_reason=reason)])
    )
    is_cut = reason in ("max_tokens", "content_filter")
    assert response.status == ("incomplete" if is_cut else "completed")
    assert rebuilt(events) == response


REPLIES = st.builds(
    Reply,
    text=st.none() | st.text(),
    reasoning=st.none() | st.text(),
    refusal=st.none() | st.text(),
    calls=st.lists(
        st.builds(
            Call,
            name=st.text(min_size=1),
            arguments=st.text() | st.dictionaries(st.text(), st.text()),
            call_id=st.none() | st.text(),
        ),
        max_size=3,
    ).map(tuple),
    chunk_characters=st.none() | st.integers(1, 4),
    stop_reason=st.sampled_from(get_args(StopReason)),
    fault=st.sampled_from([None, "failed"]),
)


@pytest.mark.slow
@given(REPLIES, st.text(min_size=1))
def test_a_template_tells_what_the_writer_would(reply: Reply, stem: str) -> None:
    """The quick way gives the very events of the ResponseWriter, numbers and all."""
    prepared = PreparedReply(reply)
    started = response_for(REQUEST, id=f"resp_{stem}", created_at=0)
    usage = prepared.usage(REQUEST)
    writer = ResponseWriter(started)
    written = list(write_reply(reply, writer, usage=usage))

    events, response = Template(reply).fill(started, usage)

    assert events == written
    assert response == writer.response


@pytest.mark.slow
@given(REPLIES)
def test_what_is_streamed_is_what_is_returned(reply: Reply) -> None:
    """Folding the events gives the response, and nothing in them is odd."""
    started = response_for(REQUEST, id="resp_1", created_at=0)
    usage = PreparedReply(reply).usage(REQUEST)
    events, response = Template(reply).fill(started, usage)
    assert rebuilt(list(events)) == response
    assert [getattr(event, "sequence_number", None) for event in events] == list(
        range(len(events))
    )


async def test_a_reply_waits_as_long_as_it_says(autojump_clock: MockClock) -> None:
    """The first event comes after the latency, each delta after its own wait."""
    reply = Reply(text="a b c", latency_seconds=2, per_delta_seconds=0.5)
    times: list[tuple[str, float]] = []
    start = autojump_clock.current_time()

    def note(event: ev.Event) -> None:
        times.append((str(event.type), autojump_clock.current_time() - start))

    response = await ScriptedProvider([reply]).responses(REQUEST, context(), note)

    assert times[0] == ("response.created", 2.0)
    assert [when for name, when in times if name.endswith(".delta")] == [2.5, 3, 3.5]
    assert response.output_text == "a b c"


async def test_a_reply_at_once_is_one_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plain reply gives way to other tasks exactly once."""
    provider = ScriptedProvider([Reply(text=SENT, times=0)])
    with assert_checkpoints():
        await ask(provider)
    count = 0
    checkpoint = trio.lowlevel.checkpoint

    async def counted() -> None:
        nonlocal count
        count += 1
        await checkpoint()

    monkeypatch.setattr(trio.lowlevel, "checkpoint", counted)
    await ask(provider)
    assert count == 1


async def test_a_long_reply_lets_others_run() -> None:
    """A reply of thousands of words is told with pauses, and told in full."""
    response, events = await ask(ScriptedProvider([Reply(text="word " * 3000)]))
    assert len(deltas(events)) == 3000
    assert rebuilt(events) == response


# Which reply


async def test_the_script_of_the_documentation_plays() -> None:
    """A call first, and what is said once the tool has answered."""
    provider = ScriptedProvider(
        script_from_toml(
            '[[replies]]\ndeck = "*/support/PROMPT.md"\n'
            'calls = [{ name = "order_lookup", arguments = {} }]\n'
            '[[replies]]\nafter = "order_lookup"\ntext = "Sent."\n'
        )
    )
    first = await provider.responses(REQUEST, context(), ignore)
    (call,) = first.output
    assert isinstance(call, FunctionCall)
    output = FunctionCallOutput(call_id=call.call_id, output="two days ago")
    asked = msgspec.structs.replace(
        REQUEST, input=(user_message("Where?"), call, output)
    )
    second = await provider.responses(asked, context(pass_number=2), ignore)
    assert second.output_text == "Sent."


async def test_an_exhausted_script_says_who_asked_for_what() -> None:
    """Nothing left to say is a provider's error with deck, turn, pass and message."""
    provider = ScriptedProvider([Reply(text="once")])
    await ask(provider)
    with pytest.raises(ScriptExhausted) as caught:
        await ask(provider, turn=2, pass_number=3)
    error = caught.value
    assert isinstance(error, ProviderError)
    assert (error.deck, error.turn, error.pass_number) == (DECK, 2, 3)
    assert error.last_message == "Where is my order?"
    assert str(error) == (
        f"the script has no reply left for {DECK} in turn 2, pass 3; "
        "the last message was 'Where is my order?'"
    )


async def test_the_last_message_is_cut() -> None:
    """A long message does not fill the screen."""
    request = CreateResponse(input="x" * 10_000)
    with pytest.raises(ScriptExhausted) as caught:
        await ScriptedProvider([]).responses(request, context(), ignore)
    assert len(caught.value.last_message) == 120
    assert caught.value.last_message.endswith("x…")


async def test_runs_do_not_take_each_others_replies() -> None:
    """Each run has the whole script to itself, however they are mixed."""
    provider = ScriptedProvider([Reply(text="1"), Reply(text="2"), Reply(text="3")])
    order = ["a", "b", "a", "c", "b", "a", "c", "b", "c"]
    said = [(run_id, await text_of_next(provider, run_id)) for run_id in order]
    assert [text for run_id, text in said if run_id == "a"] == ["1", "2", "3"]
    assert [text for run_id, text in said if run_id == "b"] == ["1", "2", "3"]
    assert [text for run_id, text in said if run_id == "c"] == ["1", "2", "3"]


async def test_only_so_many_runs_are_remembered() -> None:
    """The run that asked longest ago is forgotten, and begins the script again."""
    provider = ScriptedProvider([Reply(text="1"), Reply(text="2")], max_runs=2)
    await text_of_next(provider, "a")
    await text_of_next(provider, "b")
    assert await text_of_next(provider, "a") == "2"
    await text_of_next(provider, "c")  # "b" is forgotten
    assert await text_of_next(provider, "b") == "1"
    assert await text_of_next(provider, "c") == "2"


async def test_a_call_cancelled_in_time_uses_up_nothing() -> None:
    """Cancelled means it did not happen: the reply is still there."""
    provider = ScriptedProvider([Reply(text="1")])
    with trio.CancelScope() as scope:
        scope.cancel()
        await ask(provider)
    assert scope.cancelled_caught
    assert await text_of_next(provider) == "1"


async def test_a_function_may_answer() -> None:
    """A function is given the request and the context, and gives the reply."""

    def answer(request: CreateResponse, asked: ModelContext) -> Reply:
        return Reply(text=f"{request.model} in turn {asked.turn}")

    response, events = await ask(ScriptedProvider(answer), turn=4)
    assert response.output_text == "scripted/one in turn 4"
    assert rebuilt(events) == response


async def test_an_async_function_may_answer(autojump_clock: MockClock) -> None:
    """A function may take its time before it gives the reply."""

    async def answer(_request: CreateResponse, asked: ModelContext) -> Reply:
        await trio.sleep(3)
        return Reply(text=asked.run_id)

    start = autojump_clock.current_time()
    assert await text_of_next(ScriptedProvider(answer), "r7") == "r7"
    assert autojump_clock.current_time() - start == 3


@pytest.mark.parametrize(
    ("given", "problem"),
    [("hello", "expected a Reply, got str"), (Reply(), "the reply says nothing")],
)
async def test_what_a_function_gives_is_checked(given: Reply, problem: str) -> None:
    """A function that gives no proper reply is the caller's mistake."""
    with pytest.raises(BadScript, match=problem):
        await ask(ScriptedProvider(lambda _request, _context: given))


async def test_replies_of_a_function_do_not_pile_up() -> None:
    """However many replies a function makes, few are kept, and none is mixed up."""
    provider = ScriptedProvider(lambda _request, asked: Reply(text=str(asked.turn)))
    said = [(await ask(provider, turn=turn))[0].output_text for turn in range(1, 600)]
    assert said == [str(turn) for turn in range(1, 600)]
    assert len(provider._prepared) <= 256  # noqa: SLF001  (memory is the point)


# What goes wrong


async def test_an_error_carries_its_facts() -> None:
    """The error has the words, the status and the code of the script."""
    reply = Reply(fault="error", message="overloaded", status=529, code="overloaded")
    error, events = await ask_in_vain(reply, RehearsedError)
    assert isinstance(error, RehearsedError)
    assert (str(error), error.status, error.code) == ("overloaded", 529, "overloaded")
    assert events == []


async def test_a_model_that_does_not_exist() -> None:
    """A refused model is an error that names it, before any event."""
    error, events = await ask_in_vain(Reply(fault="refuse_model"), RehearsedError)
    assert isinstance(error, RehearsedError)
    assert (error.status, error.code) == (404, "model_not_found")
    assert "scripted/one" in str(error)
    assert events == []


async def test_after_an_error_comes_the_next_reply() -> None:
    """A failed call has used its reply up, so a retry finds the next."""
    provider = ScriptedProvider([Reply(fault="error"), Reply(text="now")])
    with pytest.raises(RehearsedError, match="answered with an error"):
        await ask(provider)
    assert await text_of_next(provider) == "now"


@pytest.mark.parametrize("text", [None, "a b c d"])
async def test_a_model_that_hangs(autojump_clock: MockClock, text: str | None) -> None:
    """Nothing comes, or half of it does and then nothing; a deadline ends it."""
    seen: list[ev.Event] = []
    provider = ScriptedProvider([Reply(fault="hang", text=text), Reply(text="now")])
    start = autojump_clock.current_time()
    with trio.move_on_after(1000):
        await provider.responses(REQUEST, context(), seen.append)
    assert autojump_clock.current_time() - start == 1000
    assert deltas(seen) == ([] if text is None else ["a ", "b "])
    assert bool(seen) is (text is not None)
    assert await text_of_next(provider) == "now"


@pytest.mark.parametrize(
    ("text", "said"), [(None, ""), ("", ""), ("a", "a"), ("a b c", "a b ")]
)
async def test_a_stream_that_is_cut(text: str | None, said: str) -> None:
    """The stream ends after half of the text, and counts what had come."""
    error, events = await ask_in_vain(Reply(fault="cut", text=text), StreamTruncated)
    assert isinstance(error, StreamTruncated)
    assert error.events_seen == len(events) >= 2
    assert "".join(deltas(events)) == said
    with pytest.raises(StreamTruncated):
        rebuilt(events)


async def test_an_error_may_come_in_the_middle() -> None:
    """An error in a reply that says something comes after half of it."""
    reply = Reply(fault="error", text="a b c d", per_delta_seconds=0)
    _, events = await ask_in_vain(reply, RehearsedError)
    assert deltas(events) == ["a ", "b "]


async def test_a_malformed_event_in_the_middle_changes_nothing() -> None:
    """Bytes that are no event go out, and the reply goes on around them."""
    reply = Reply(fault="malformed", text="a b c", message="garbage")
    response, events = await ask(ScriptedProvider([reply]))
    (bad,) = [e for e in events if isinstance(e, ev.MalformedEvent)]
    place = events.index(bad)
    assert bad.problem == "garbage"
    assert (deltas(events[:place]), deltas(events[place:])) == (["a ", "b "], ["c"])
    assert response.output_text == "a b c"
    events.remove(bad)
    assert rebuilt(events) == response


async def test_nothing_but_a_malformed_event_is_a_broken_stream() -> None:
    """Where there is nothing else to say, the stream ends after the bad event."""
    error, events = await ask_in_vain(Reply(fault="malformed"), StreamTruncated)
    assert isinstance(error, StreamTruncated)
    assert error.events_seen == len(events) == 3
    assert isinstance(events[-1], ev.MalformedEvent)


@pytest.mark.parametrize(
    ("reply", "count", "delta"),
    [
        (Reply(fault="flood"), 10_000, "flood "),
        (Reply(fault="flood", text="la ", count=2_500), 2_500, "la "),
        (Reply(fault="flood", text="la ", count=0), 0, "la "),
    ],
)
async def test_a_flood(reply: Reply, count: int, delta: str) -> None:
    """Very many deltas come, are all legal, and are paid for."""
    response, events = await ask(ScriptedProvider([reply]))
    assert deltas(events) == [delta] * count
    assert rebuilt(events) == response
    assert response.usage is not None
    assert response.usage.output_tokens == -(-count * len(delta) // 4)


async def test_a_flood_can_be_cancelled() -> None:
    """A flood gives way often enough for a cancellation to be heard."""
    provider = ScriptedProvider([Reply(fault="flood", count=10**9)])
    seen = 0
    with trio.CancelScope() as scope:

        def count(_event: ev.Event) -> None:
            nonlocal seen
            seen += 1
            if seen == 1000:
                scope.cancel()

        await provider.responses(REQUEST, context(), count)
    assert scope.cancelled_caught
    assert 1000 <= seen <= 1200


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (
            Reply(fault="failed"),
            ResponseError(code="server_error", message="the script says so"),
        ),
        (
            Reply(fault="failed", text="Well", code="busy", message="try later"),
            ResponseError(code="busy", message="try later"),
        ),
    ],
)
async def test_a_response_that_failed(reply: Reply, error: ResponseError) -> None:
    """A failed response is returned, not raised, and keeps what was said."""
    response, events = await ask(ScriptedProvider([reply]))
    assert (response.status, response.error) == ("failed", error)
    assert response.output_text == (reply.text or "")
    assert isinstance(events[-1], ev.ResponseFailed)
    assert rebuilt(events) == response


async def test_what_the_listener_raises_comes_out() -> None:
    """An error of the listener's ends the call; it is not the script's to hide."""

    def refuse(_event: ev.Event) -> None:
        raise RuntimeError("full")

    listener: Callable[[ev.Event], None] = refuse
    with pytest.raises(RuntimeError, match="full"):
        await ScriptedProvider([Reply(text="a")]).responses(
            REQUEST, context(), listener
        )
