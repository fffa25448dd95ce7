"""A model server as a provider: what is sent, what is passed on, what is told."""

from collections.abc import Sequence

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from gambit_actors.errors import ProviderError, StreamTruncated
from gambit_actors.openresponses import DONE_FRAME, Event, encode, events_from_response
from gambit_actors.openresponses.events import (
    OutputItemAdded,
    OutputTextDelta,
    ResponseCompleted,
    StandardEvent,
)
from gambit_actors.openresponses.items import (
    FunctionCall,
    FunctionCallOutput,
    Reasoning,
    user_message,
)
from gambit_actors.openresponses.provider_frames import (
    ProviderEvent,
    ProviderFrame,
    TextDeltaFrame,
)
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response, ResponseError
from gambit_actors.providers.dialects.anthropic import AnthropicDialect
from gambit_actors.providers.dialects.open_responses import OpenResponsesDialect
from gambit_actors.providers.dialects.open_responses_profiles import OPENAI, OPENROUTER
from gambit_actors.providers.dialects.sealing import seal
from gambit_actors.providers.endpoints import Endpoint, Pace, Retries, Secret, Timeouts
from gambit_actors.providers.errors import (
    ConnectionLost,
    NotAnAnswer,
    ProviderNotReady,
    ProviderStatusError,
    ProviderTimeout,
    ProviderUnreachable,
    RequestNotSent,
    StreamedTooMuch,
)
from gambit_actors.providers.gate import Gate
from gambit_actors.providers.http_provider import HttpProvider
from gambit_actors.run.ports import ModelContext, Notice
from tests.providers.wires import (
    JSON,
    USAGE,
    Exchange,
    WrittenTransport,
    answer,
    frames_of,
    refused,
    streamed,
)

KEY = "sk-planted-0123456789"
ENDPOINT = Endpoint(
    name="acme",
    dialect=OpenResponsesDialect(profile=OPENAI),
    base_url="https://llm.acme.example/v1/",
    key=Secret(KEY, source="ACME_API_KEY"),
    key_hint="set ACME_API_KEY",
)
ASKED = CreateResponse(model="m-1", input=(user_message("Hi."),), store=False)
CALL = FunctionCall(id="fc_1", call_id="c1", name="crm", arguments="{}")
OUTPUT = FunctionCallOutput(call_id="c1", output="ok")


class Asking:
    """A provider, the exchanges it has, and what it tells.

    Attributes:
        events: passed on as they came.
        notices: told beside them.
    """

    def __init__(self, *exchanges: Exchange, endpoint: Endpoint = ENDPOINT) -> None:
        self.wire = WrittenTransport(exchanges)
        self.events: list[Event] = []
        self.notices: list[Notice] = []
        self.frames: list[ProviderFrame] = []
        self.provider = HttpProvider(
            endpoint,
            self.wire,
            Gate(endpoint.pace),
            now=lambda: 1_700_000_000.0,
            jitter=lambda: 1.0,
        )

    async def ask(
        self, request: CreateResponse = ASKED, *, run_id: str = "run-1"
    ) -> Response:
        """Ask."""
        context = ModelContext(
            run_id=run_id,
            deck="PROMPT.md",
            turn=1,
            pass_number=1,
            note=self.notices.append,
            on_frame=self.frames.append,
        )
        return await self.provider.responses(request, context, self.events.append)

    def kinds(self) -> list[str]:
        """What kinds of notices there were."""
        return [notice.kind for notice in self.notices]


async def test_a_stream_is_passed_on_as_it_comes() -> None:
    """Every event reaches whoever asked, in order, and folds into the response."""
    asking = Asking(streamed("Hello there."))

    response = await asking.ask()

    assert response == answer("Hello there.")
    assert asking.events == list(events_from_response(response))
    assert asking.notices == []
    assert asking.wire.posted[0].is_read


async def test_the_request_goes_where_the_endpoint_says() -> None:
    """URL, key and body are those of the endpoint and its dialect."""
    asking = Asking(streamed("Hi."))

    await asking.ask()

    (posted,) = asking.wire.posted
    assert posted.url == "https://llm.acme.example/v1/responses"
    assert posted.headers["authorization"] == f"Bearer {KEY}"
    assert posted.headers["content-type"] == "application/json"
    assert posted.headers["user-agent"].startswith("gambit_actors/")
    assert (posted.body["model"], posted.body["stream"]) == ("m-1", True)
    assert posted.timeouts == Timeouts()


@pytest.mark.spec("OR-4")
async def test_an_answer_in_one_piece_has_no_events() -> None:
    """A server that does not stream gives the whole response, and no event of it."""
    whole = Exchange(headers=JSON, pieces=(encode(answer("Hello.")),))
    asking = Asking(whole, endpoint=msgspec.structs.replace(ENDPOINT, streams=False))

    response = await asking.ask()

    assert (response.output_text, response.usage) == ("Hello.", USAGE)
    assert asking.events == []
    assert asking.wire.posted[0].body["stream"] is False


@pytest.mark.spec("OR-4")
async def test_a_server_that_ignores_the_wish_for_a_stream_is_read() -> None:
    """JSON where a stream was asked for is an answer all the same."""
    asking = Asking(Exchange(headers=JSON, pieces=(encode(answer("Hello.")),)))

    assert (await asking.ask()).output_text == "Hello."


async def test_without_a_key_nothing_is_sent() -> None:
    """A key that is missing is told with what to set, before anything goes out."""
    asking = Asking(endpoint=msgspec.structs.replace(ENDPOINT, key=None))

    with pytest.raises(ProviderNotReady, match=r"acme/m-1.*set ACME_API_KEY"):
        await asking.ask()
    assert asking.wire.posted == []


async def test_a_server_that_needs_no_key_is_asked_without() -> None:
    """A local server is asked without an authorization header."""
    endpoint = msgspec.structs.replace(ENDPOINT, key=None, key_hint=None)
    asking = Asking(streamed("Hi."), endpoint=endpoint)

    await asking.ask()

    assert "authorization" not in asking.wire.posted[0].headers


@pytest.mark.spec("PA-8")
@pytest.mark.parametrize(
    "failure",
    [
        refused(500),
        refused(503),
        refused(429),
        refused(529),
        Exchange(refusal=ProviderUnreachable("acme", "refused")),
        Exchange(refusal=ProviderTimeout("acme", "first_byte", 1.0)),
        Exchange(pieces=(ConnectionLost("acme", "reset"),)),
    ],
)
async def test_what_may_pass_is_asked_again(
    failure: Exchange, autojump_clock: MockClock
) -> None:
    """An overloaded or broken server is asked again, after a wait that is told."""
    del autojump_clock
    asking = Asking(failure, streamed("Hello."))
    began = trio.current_time()

    response = await asking.ask()

    assert response.output_text == "Hello."
    assert trio.current_time() - began >= 0.5
    assert "retry" in asking.kinds()
    assert len(asking.wire.posted) == 2
    assert all(posted.is_closed for posted in asking.wire.posted[1:])


@pytest.mark.spec("PA-8")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_what_will_not_pass_is_not_asked_again(status: int) -> None:
    """A request that the server refuses for good is refused at once, in its words."""
    asking = Asking(refused(status, "Not like this.", "bad"))

    with pytest.raises(ProviderStatusError, match=r"Not like this\.") as caught:
        await asking.ask()
    assert (caught.value.status, caught.value.code) == (status, "bad")
    assert len(asking.wire.posted) == 1


@pytest.mark.spec("PA-8")
async def test_retries_have_an_end(autojump_clock: MockClock) -> None:
    """After the last try the server's last word is the error."""
    del autojump_clock
    endpoint = msgspec.structs.replace(ENDPOINT, retries=Retries(most=2))
    asking = Asking(*[refused(500, f"No {n}.") for n in range(4)], endpoint=endpoint)

    with pytest.raises(ProviderStatusError, match=r"No 2\."):
        await asking.ask()
    assert len(asking.wire.posted) == 3


@pytest.mark.spec("PA-8")
async def test_the_server_says_how_long_to_wait(autojump_clock: MockClock) -> None:
    """Retry-After is honoured up to the cap, and no further."""
    del autojump_clock
    endpoint = msgspec.structs.replace(ENDPOINT, retries=Retries(cap_seconds=20.0))
    waits = []
    for asked_for in ("7", "1000000000"):
        asking = Asking(
            refused(500, retry_after=asked_for), streamed("Hi."), endpoint=endpoint
        )
        await asking.ask()
        waits += [one.seconds for one in asking.notices if one.kind == "retry"]

    # A little later than asked, so that not all come back at once.
    assert 7.0 <= (waits[0] or 0.0) <= 7.5
    assert waits[1] == 20.0


@pytest.mark.spec("PA-8", "PA-9")
async def test_nothing_is_asked_again_once_an_event_was_passed_on() -> None:
    """A stream that breaks after its first event is not begun anew."""
    first, *_ = frames_of(answer("Hello."))
    lost = ConnectionLost("acme", "reset by peer")
    asking = Asking(Exchange(pieces=(first, lost)), streamed("Again."))

    with pytest.raises(ConnectionLost):
        await asking.ask()
    assert len(asking.wire.posted) == 1
    assert len(asking.events) == 1


@pytest.mark.spec("PA-9")
async def test_a_stream_that_ends_early_is_no_answer() -> None:
    """Without a terminal event there is no response, whatever else had come."""
    *frames, _ = frames_of(answer("Hello."))
    asking = Asking(Exchange(pieces=(*frames,)))

    with pytest.raises(StreamTruncated):
        await asking.ask()
    assert any(isinstance(event, OutputTextDelta) for event in asking.events)


@pytest.mark.parametrize(
    ("exchange", "words"),
    [
        (
            Exchange(headers={"content-type": "text/html"}, pieces=(b"<html>Hi",)),
            "text/html, which begins '<html>Hi'",
        ),
        (Exchange(status=204, headers={}), "HTTP 204"),
        (
            Exchange(headers={"content-type": "text/event-stream; charset=utf-16"}),
            "charset=utf-16",
        ),
    ],
)
async def test_what_is_no_answer_is_called_so(exchange: Exchange, words: str) -> None:
    """Success without a readable answer is an error with a sample of what came."""
    with pytest.raises(NotAnAnswer, match=words):
        await Asking(exchange).ask()


@pytest.mark.parametrize(
    "stated",
    [
        "text/event-stream; charset=utf-8; profile=x",
        "text/event-stream;profile=x ;charset = UTF8",
        'Text/Event-Stream; charset="UTF-8"; profile="a, b; c"',
        "text/event-stream, text/event-stream; charset=utf-8",
        "",
    ],
)
async def test_harmless_content_types_are_answers(stated: str) -> None:
    """What a type says besides, and how often, does not make a stream unreadable."""
    said = msgspec.structs.replace(streamed("Hi."), headers={"content-type": stated})

    response = await Asking(said).ask()

    assert response.status == "completed"


@pytest.mark.parametrize(
    "stated",
    [
        "text/event-stream; profile=x; charset=latin-1",
        "text/html, text/event-stream",
        "text/event-stream, application/json",
    ],
)
async def test_content_types_that_say_two_things_are_refused(stated: str) -> None:
    """Bytes that may be something else are not read as an answer."""
    said = msgspec.structs.replace(streamed("Hi."), headers={"content-type": stated})

    with pytest.raises(NotAnAnswer, match="which begins"):
        await Asking(said).ask()


@pytest.mark.parametrize(
    ("exchange", "words"),
    [
        (Exchange(headers=JSON, pieces=(b'{"a": 1}',)), "acme sent an answer that"),
        (Exchange(headers=JSON, pieces=(b"{",)), "acme sent an answer that cannot"),
        (Exchange(pieces=(b"data: {}\n\n",)), "acme ended its stream after 1 events"),
        (Exchange(pieces=(b"data: " + b"x" * 200,)), "acme sent an event of more than"),
    ],
)
async def test_an_answer_that_is_none_says_whose_it_is_and_what_to_do(
    exchange: Exchange, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message of a run that failed for it names the server and a way on."""
    monkeypatch.setattr("gambit_actors.providers.answering.MOST_EVENT_BYTES", 100)

    with pytest.raises(ProviderError, match=words) as caught:
        await Asking(exchange).ask()

    assert "; " in str(caught.value)


async def test_json_that_is_no_response_is_an_error() -> None:
    """A body of JSON that is something else is not taken for an answer."""
    with pytest.raises(ProviderError):
        await Asking(Exchange(headers=JSON, pieces=(b'{"hello": 1}',))).ask()


async def test_a_redirect_is_an_error_and_the_key_stays_here() -> None:
    """A server that points elsewhere is not followed."""
    moved = Exchange(status=307, headers={"location": "https://evil.example/"})
    asking = Asking(moved)

    with pytest.raises(ProviderStatusError, match="HTTP 307"):
        await asking.ask()
    assert len(asking.wire.posted) == 1


async def test_a_server_that_does_not_hang_up_is_not_waited_for(
    autojump_clock: MockClock,
) -> None:
    """An answer that is there is given, though the stream stays open."""
    del autojump_clock
    frames = frames_of(answer("Hello."))
    asking = Asking(Exchange(pieces=(*frames, 3600.0)))
    began = trio.current_time()

    response = await asking.ask()

    assert response.output_text == "Hello."
    assert trio.current_time() - began <= 1.0
    assert asking.wire.posted[0].is_closed


async def test_what_breaks_behind_the_end_breaks_nothing() -> None:
    """A connection that is lost after the last event does not lose the answer."""
    frames = frames_of(answer("Hello."))
    asking = Asking(Exchange(pieces=(*frames, ConnectionLost("acme", "reset"))))

    assert (await asking.ask()).output_text == "Hello."


async def test_the_first_terminal_event_is_the_last_word() -> None:
    """What comes behind the end is shown to nobody, and noted as odd."""
    frames = frames_of(answer("Hello."))
    asking = Asking(Exchange(pieces=(*frames, frames[-2], frames[-1], DONE_FRAME)))

    response = await asking.ask()

    ends = [e for e in asking.events if isinstance(e, ResponseCompleted)]
    assert response.output_text == "Hello."
    assert len(ends) == 1
    assert asking.events[-1] is ends[0]
    assert set(asking.kinds()) == {"odd"}


@pytest.mark.parametrize("status", [401, 500])
async def test_a_key_that_the_server_repeats_is_struck_out(
    status: int, autojump_clock: MockClock
) -> None:
    """An error body with our key in it does not bring the key into an error."""
    del autojump_clock
    endpoint = msgspec.structs.replace(ENDPOINT, retries=Retries(most=1))
    exchanges = [refused(status, f"The key {KEY} is wrong.", KEY)] * 2
    asking = Asking(*exchanges, endpoint=endpoint)

    with pytest.raises(ProviderStatusError) as caught:
        await asking.ask()
    told = f"{caught.value!r} {caught.value} {asking.notices} {vars(caught.value)}"
    assert KEY not in told
    assert "[key] is wrong" in told


async def test_a_key_in_an_answer_is_struck_out() -> None:
    """A model that says our key says it to nobody."""
    asking = Asking(streamed(f"Your key is {KEY}."))

    response = await asking.ask()

    assert response.output_text == "Your key is [key]."
    seen = [msgspec.json.encode(f) for f in asking.frames]
    assert KEY.encode() not in b"".join([*seen, *(_written(asking.events))])


def _written(events: Sequence[Event]) -> list[bytes]:
    return [encode(event) for event in events if isinstance(event, StandardEvent)]


@pytest.mark.spec("PA-3", "PA-4")
async def test_every_frame_can_be_had_word_for_word() -> None:
    """One record per frame with the marker, and the text in it besides."""
    asking = Asking(streamed("Hello."))

    await asking.ask()

    records = [f for f in asking.frames if isinstance(f, ProviderEvent)]
    texts = [f.delta for f in asking.frames if isinstance(f, TextDeltaFrame)]
    assert len(records) == len(asking.events) + 1
    assert records[-1].status == "done"
    assert texts == ["Hello."]
    assert {record.provider for record in records} == {"acme"}


async def test_what_finds_no_place_in_a_request_is_told() -> None:
    """Something the dialect cannot say is a notice, with where it stood and why."""
    foreign = Reasoning(encrypted_content=seal("gemini", {"a": 1}))
    items = (user_message("Hi."), foreign, CALL, OUTPUT)
    asking = Asking(streamed("Hi."))

    await asking.ask(msgspec.structs.replace(ASKED, input=items))

    assert asking.kinds() == ["left_out"]
    assert "input[1]" in asking.notices[0].message


async def test_a_request_that_cannot_be_said_is_not_sent() -> None:
    """What the dialect refuses is an error of this provider, so that others may try."""
    endpoint = msgspec.structs.replace(
        ENDPOINT, dialect=OpenResponsesDialect(profile=OPENROUTER)
    )
    asking = Asking(endpoint=endpoint)

    with pytest.raises(RequestNotSent, match="previous_response_id"):
        await asking.ask(msgspec.structs.replace(ASKED, previous_response_id="resp_0"))
    assert asking.wire.posted == []


def failing(code: str) -> Exchange:
    """An exchange whose stream says that the server failed, and ends in order."""
    error = ResponseError(code=code, message="No.")
    failed = Response(id="resp_f", status="failed", model="m-1", error=error)
    return Exchange(pieces=(*frames_of(failed), DONE_FRAME))


def kept(*exchanges: Exchange) -> Asking:
    """A provider whose server keeps the conversation."""
    return Asking(
        *exchanges, endpoint=msgspec.structs.replace(ENDPOINT, history="kept")
    )


FOLLOWING = msgspec.structs.replace(
    ASKED,
    input=(
        user_message("Hi."),
        msgspec.structs.replace(CALL, status="completed"),
        OUTPUT,
    ),
)


@pytest.mark.spec("PA-7")
async def test_a_server_that_keeps_the_conversation_is_told_what_is_new() -> None:
    """Inside a run only what is new goes out, with the id of the last response."""
    asking = kept(streamed(CALL), streamed("Done.", id="resp_2"))

    await asking.ask()
    await asking.ask(FOLLOWING)

    first, second = (posted.body for posted in asking.wire.posted)
    assert "previous_response_id" not in first
    assert first["store"] is True
    assert second["previous_response_id"] == "resp_1"
    assert [item["type"] for item in second["input"]] == ["function_call_output"]  # type: ignore[attr-defined]  # a list


@pytest.mark.spec("PA-7")
async def test_a_fresh_run_tells_everything() -> None:
    """Another run knows no response of this one."""
    asking = kept(streamed(CALL), streamed("Done.", id="resp_2"))

    await asking.ask()
    await asking.ask(FOLLOWING, run_id="run-2")

    second = asking.wire.posted[1].body
    assert "previous_response_id" not in second
    assert len(second["input"]) == 3  # type: ignore[arg-type]  # a list


@pytest.mark.spec("PA-7")
@pytest.mark.parametrize("status", [400, 404])
async def test_a_lost_cursor_does_not_lose_the_run(status: int) -> None:
    """A server that has forgotten is told everything, and that is traced."""
    lost = refused(status, "Not found.", "previous_response_not_found")
    asking = kept(streamed(CALL), lost, streamed("Done.", id="resp_2"))

    await asking.ask()
    response = await asking.ask(FOLLOWING)

    assert response.output_text == "Done."
    assert asking.kinds() == ["whole_history"]
    again = asking.wire.posted[2].body
    assert "previous_response_id" not in again
    assert len(again["input"]) == 3  # type: ignore[arg-type]  # a list


@pytest.mark.spec("PA-7")
async def test_a_cursor_lost_in_a_stream_is_shown_to_nobody() -> None:
    """A server that says so in its events is asked again, and one answer is seen."""
    asking = kept(
        streamed(CALL),
        failing("previous_response_not_found"),
        streamed("Done.", id="resp_2"),
    )
    await asking.ask()
    asking.events.clear()

    response = await asking.ask(FOLLOWING)

    assert response.output_text == "Done."
    assert asking.kinds() == ["whole_history"]
    assert asking.events == list(events_from_response(response))


async def test_another_failure_from_a_cursor_is_shown() -> None:
    """What is wrong but the cursor is passed on, from its first event to its last."""
    asking = kept(streamed(CALL), failing("server_error"))
    await asking.ask()
    asking.events.clear()

    response = await asking.ask(FOLLOWING)

    assert response.status == "failed"
    assert asking.events == list(events_from_response(response))
    assert asking.kinds() == []


async def test_an_answer_from_a_cursor_that_breaks_off_is_seen_to_have_begun() -> None:
    """What had come when the connection broke was passed on."""
    first, *_ = frames_of(answer("Hi."))
    gone = ConnectionLost("acme", "reset")
    asking = kept(streamed(CALL), Exchange(pieces=(first, gone)))
    await asking.ask()
    asking.events.clear()

    with pytest.raises(ConnectionLost):
        await asking.ask(FOLLOWING)

    assert len(asking.events) == 1


async def test_an_answer_that_was_begun_is_not_asked_for_again_for_a_cursor() -> None:
    """Who was shown a part of an answer is shown how that one ends, and no other."""
    said = list(events_from_response(answer("Half.")))
    until = next(at for at, e in enumerate(said) if isinstance(e, OutputTextDelta)) + 1
    lost = failing("previous_response_not_found").pieces[-2]
    begun = tuple(frames_of(answer("Half."))[:until])
    asking = kept(streamed(CALL), Exchange(pieces=(*begun, lost, DONE_FRAME)))
    await asking.ask()
    asking.events.clear()

    response = await asking.ask(FOLLOWING)

    assert response.status == "failed"
    assert len(asking.wire.posted) == 2
    assert any(isinstance(event, OutputTextDelta) for event in asking.events)
    assert "whole_history" not in asking.kinds()


@pytest.mark.spec("PA-7")
async def test_a_cursor_that_was_lost_is_not_tried_again() -> None:
    """Also if nobody answers what is sent instead of it."""
    lost = refused(404, "Not found.", "previous_response_not_found")
    asking = kept(streamed(CALL), lost, refused(400), streamed("Done.", id="resp_2"))
    await asking.ask()
    with pytest.raises(ProviderStatusError):
        await asking.ask(FOLLOWING)

    await asking.ask(FOLLOWING)

    assert "previous_response_id" not in asking.wire.posted[3].body


@pytest.mark.spec("PA-7")
async def test_a_history_that_is_sent_keeps_nothing_there() -> None:
    """By default nothing is stored on the server, and nothing is referred to."""
    asking = Asking(streamed(CALL), streamed("Done."))

    await asking.ask()
    await asking.ask(FOLLOWING)

    for posted in asking.wire.posted:
        assert posted.body["store"] is False
        assert "previous_response_id" not in posted.body


async def test_a_refusal_slows_everybody_down(autojump_clock: MockClock) -> None:
    """After a 429 fewer requests may be open at once, for all who ask this server."""
    del autojump_clock
    endpoint = msgspec.structs.replace(ENDPOINT, pace=Pace(start_at_once=8))
    asking = Asking(refused(429), streamed("Hi."), endpoint=endpoint)
    before = asking.provider.gate.snapshot().limit

    await asking.ask()

    assert asking.provider.gate.snapshot().limit < before


@pytest.mark.spec("PA-8")
@pytest.mark.parametrize(
    "exchange",
    [
        pytest.param(refused(529), id="overloaded"),
        pytest.param(refused(503, retry_after="1"), id="asked to wait"),
    ],
)
async def test_all_words_for_too_much_slow_everybody_down(
    exchange: Exchange, autojump_clock: MockClock
) -> None:
    """Overload, and any wish to be left alone, count like a 429."""
    del autojump_clock
    endpoint = msgspec.structs.replace(ENDPOINT, pace=Pace(start_at_once=8))
    asking = Asking(exchange, streamed("Hi."), endpoint=endpoint)

    await asking.ask()

    assert asking.provider.gate.snapshot().limit < 8


@pytest.mark.spec("PA-8")
@pytest.mark.parametrize("code", ["overloaded_error", "rate_limit_exceeded", "429"])
async def test_too_much_in_a_stream_slows_everybody_down(code: str) -> None:
    """A server that accepts a request and then has too much to do is left in peace."""
    endpoint = msgspec.structs.replace(ENDPOINT, pace=Pace(start_at_once=8))
    asking = Asking(failing(code), endpoint=endpoint)

    response = await asking.ask()

    assert response.status == "failed"
    assert asking.provider.gate.snapshot().limit == 4


@pytest.mark.spec("PA-8")
async def test_how_fast_a_server_is_asked_can_be_seen(
    autojump_clock: MockClock,
) -> None:
    """The pace of a server can be looked at, and a lower limit is told in the trace."""
    del autojump_clock
    endpoint = msgspec.structs.replace(
        ENDPOINT, pace=Pace(start_at_once=8), retries=Retries(most=0)
    )
    asking = Asking(refused(429, retry_after="9"), endpoint=endpoint)

    with pytest.raises(ProviderStatusError):
        await asking.ask()

    (pace,) = asking.provider.paces().values()
    assert (pace.open, pace.waiting, pace.limit, pace.paused_seconds) == (0, 0, 4, 9.0)
    (notice,) = asking.notices
    assert notice == Notice(
        kind="slowed",
        message="the server has too much to do; asked 4 at once from now on",
    )


@pytest.mark.spec("PA-8")
async def test_no_pause_is_longer_than_the_longest_wait(
    autojump_clock: MockClock,
) -> None:
    """However long a server wants to be left alone, settings have the last word."""
    del autojump_clock
    endpoint = msgspec.structs.replace(ENDPOINT, retries=Retries(cap_seconds=2.0))
    asking = Asking(refused(429, retry_after="50"), streamed("Hi."), endpoint=endpoint)
    began = trio.current_time()

    await asking.ask()

    assert trio.current_time() - began == pytest.approx(2.0, abs=0.01)


@pytest.mark.spec("PA-5")
async def test_what_a_server_did_wrong_is_told_though_it_failed() -> None:
    """Oddities of a stream that breaks off are as good to know as others."""
    first, *_ = frames_of(answer("Hi."))
    broken = Exchange(pieces=(first, b"data: {nonsense\n\n"))
    asking = Asking(broken)

    with pytest.raises(StreamTruncated):
        await asking.ask()

    assert asking.kinds() == ["odd"]


async def test_an_answer_asks_for_more() -> None:
    """What a server answers while others wait, it stands; more may be open then."""
    endpoint = msgspec.structs.replace(ENDPOINT, pace=Pace(start_at_once=1))
    asking = Asking(streamed("Hi."), endpoint=endpoint)

    await asking.ask()

    assert asking.provider.gate.snapshot().limit == 2


async def test_a_failed_answer_asks_for_no_more(autojump_clock: MockClock) -> None:
    """It says nothing of how much the server stands."""
    del autojump_clock
    endpoint = msgspec.structs.replace(ENDPOINT, pace=Pace(start_at_once=1))
    asking = Asking(failing("server_error"), endpoint=endpoint)

    await asking.ask()

    assert asking.provider.gate.snapshot().limit == 1


@pytest.mark.spec("PA-8")
async def test_what_may_be_answered_counts_before_it_is(
    autojump_clock: MockClock,
) -> None:
    """Tokens that an answer may take are set aside, so that a crowd keeps the rate."""
    del autojump_clock
    pace = Pace(tokens_per_minute=1_000)
    first, *rest = frames_of(answer("Hi."))
    slow = Exchange(pieces=(first, 5.0, *rest, DONE_FRAME))
    asking = Asking(
        slow, streamed("Hi."), endpoint=msgspec.structs.replace(ENDPOINT, pace=pace)
    )
    request = msgspec.structs.replace(ASKED, max_output_tokens=800)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(asking.ask, request)
        await wait_all_tasks_blocked()
        await asking.ask(request)

    assert asking.kinds() == ["waited"]


async def test_who_is_held_back_is_told(autojump_clock: MockClock) -> None:
    """A request that has to wait its turn says how long it has."""
    del autojump_clock
    endpoint = msgspec.structs.replace(ENDPOINT, pace=Pace(requests_per_minute=1))
    asking = Asking(streamed("Hi."), streamed("Hi."), endpoint=endpoint)

    await asking.ask()
    await asking.ask()

    (notice,) = asking.notices
    assert notice.kind == "waited"
    assert notice.seconds is not None
    assert notice.seconds >= 1.0


async def test_a_cancel_hangs_up(autojump_clock: MockClock) -> None:
    """Who no longer wants the answer lets go of the connection at once."""
    del autojump_clock
    first, *_ = frames_of(answer("Hello."))
    asking = Asking(Exchange(pieces=(first, 3600.0)))

    with trio.move_on_after(1) as scope:
        await asking.ask()

    assert scope.cancelled_caught
    assert asking.wire.posted[0].is_closed
    assert asking.provider.gate.snapshot().open == 0


async def test_headers_of_the_endpoint_are_sent() -> None:
    """Headers from the settings go out, and cannot take the place of the key."""
    headers = {"X-Title": "desk", "Authorization": "Bearer other"}
    asking = Asking(
        streamed("Hi."), endpoint=msgspec.structs.replace(ENDPOINT, headers=headers)
    )

    await asking.ask()

    sent = asking.wire.posted[0].headers
    assert (sent["x-title"], sent["authorization"]) == ("desk", f"Bearer {KEY}")


@pytest.mark.parametrize(
    ("streams", "accepted"), [(True, "text/event-stream"), (False, "application/json")]
)
async def test_what_is_wanted_is_said(*, streams: bool, accepted: str) -> None:
    """A stream or an answer in one piece, as the endpoint has it."""
    asking = Asking(
        streamed("Hi."), endpoint=msgspec.structs.replace(ENDPOINT, streams=streams)
    )

    await asking.ask()

    posted = asking.wire.posted[0]
    assert posted.headers["accept"] == accepted
    assert posted.body["stream"] is streams


async def test_headers_of_the_dialect_are_sent() -> None:
    """What a dialect says in headers goes out with the key in its own place."""
    endpoint = msgspec.structs.replace(ENDPOINT, dialect=AnthropicDialect())
    asking = Asking(refused(400), endpoint=endpoint)

    with pytest.raises(ProviderStatusError):
        await asking.ask()

    sent = asking.wire.posted[0].headers
    assert (sent["x-api-key"], sent["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in sent


async def test_an_answer_in_one_piece_has_a_limit() -> None:
    """A server that never stops is not read for ever."""
    piece = b" " * 1024 * 1024
    asking = Asking(Exchange(headers=JSON, pieces=(piece,) * 65))

    with pytest.raises(NotAnAnswer, match="more than 67108864 bytes"):
        await asking.ask()


async def test_a_stream_without_a_content_type_is_read() -> None:
    """A server that does not say what it sends is taken at its frames."""
    exchange = streamed("Hello.")
    exchange.headers = {}

    assert (await Asking(exchange).ask()).output_text == "Hello."


async def test_a_silence_before_the_first_event_is_asked_again(
    autojump_clock: MockClock,
) -> None:
    """A server that begins its answer and then hangs has said nothing yet."""
    del autojump_clock
    hung = Exchange(pieces=(ProviderTimeout("acme", "idle", 120.0),))
    asking = Asking(hung, streamed("Hello."))

    assert (await asking.ask()).output_text == "Hello."
    assert asking.kinds() == ["retry"]


@pytest.mark.parametrize("is_sent", [True, False])
async def test_whether_a_key_may_go_in_the_clear_is_said(is_sent: bool) -> None:
    """The transport is told what the endpoint says, and by default that it may not."""
    endpoint = msgspec.structs.replace(ENDPOINT, sends_plain_key=is_sent)
    asking = Asking(streamed("Hi."), endpoint=endpoint)

    await asking.ask()

    assert asking.wire.posted[0].allow_plain_keys is is_sent
    assert ENDPOINT.sends_plain_key is False


async def test_what_explains_an_error_is_read_in_part() -> None:
    """A server that explains at length is hung up on, with the status that it said."""
    piece = b"No. " * 4096
    asking = Asking(Exchange(status=400, headers=JSON, pieces=(piece,) * 100))

    with pytest.raises(ProviderStatusError) as caught:
        await asking.ask()

    assert caught.value.status == 400
    (posted,) = asking.wire.posted
    assert (posted.is_read, posted.is_closed) == (False, True)


async def test_one_event_of_a_stream_has_a_limit() -> None:
    """A line that never ends is not kept for ever, and what it was is told."""
    piece = b"x" * 1024 * 1024
    asking = Asking(Exchange(pieces=(b"data: ", *(piece,) * 17, b"\n\n")))

    with pytest.raises(StreamedTooMuch) as caught:
        await asking.ask()

    assert caught.value.limit_bytes == 16 * 1024 * 1024
    assert not asking.wire.posted[0].is_read


async def test_what_does_not_add_up_is_told() -> None:
    """Events that are each in order, and make no whole, are odd: the answer stays."""
    frames = [
        frame
        for event, frame in zip(
            events_from_response(answer("Hi.")), frames_of(answer("Hi.")), strict=True
        )
        if not isinstance(event, OutputItemAdded)
    ]
    asking = Asking(Exchange(pieces=(*frames, DONE_FRAME)))

    response = await asking.ask()

    assert response.output_text == "Hi."
    assert [(n.kind, n.message) for n in asking.notices] == [
        ("odd", "output 0 was never announced")
    ]
