"""Recordings: what is in them, what they answer, and what they do not."""

import contextlib
from collections.abc import Callable, Sequence

import msgspec
import pytest
import trio
from trio.testing import MockClock

from gambit_actors.errors import ProviderError
from gambit_actors.openresponses.events import Event, MalformedEvent
from gambit_actors.openresponses.items import user_message
from gambit_actors.openresponses.provider_frames import FrameRecords
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.openresponses.sse import SSEFrame
from gambit_actors.providers.recording import Recorder, recognised
from gambit_actors.providers.replaying import (
    BadRecording,
    NotRecorded,
    Recording,
    ReplayedError,
    ReplayProvider,
    load_recording,
)
from gambit_actors.providers.router import Alias, Router
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Reply
from gambit_actors.run.ports import Candidate, ModelContext, ModelProvider
from tests.actors.playing import Stage, calls, root, stage

HEAD = b'{"type":"recording","format":"gambit.recording.v1"}\n'
TOOL = '[[tools]]\nname = "crm"\ndescription = "Leave a note."\n'
CONTEXT = ModelContext(run_id="run-1", deck="PROMPT.md", turn=1, pass_number=1)


def asking(text: str, **settings: object) -> CreateResponse:
    """A request."""
    fields = CreateResponse(model="scripted/one", input=(user_message(text),))
    return msgspec.structs.replace(fields, **settings)


async def told(
    provider: ModelProvider, request: CreateResponse
) -> tuple[list[Event], Response]:
    """What a provider passes on, and what it gives."""
    events: list[Event] = []
    response = await provider.responses(request, CONTEXT, events.append)
    return events, response


async def recorded(replies: Sequence[Reply], *requests: CreateResponse) -> bytes:
    """A recording of a script that is asked these things."""
    lines: list[bytes] = []
    recorder = Recorder(ScriptedProvider(replies), lines.append)
    for request in requests:
        with contextlib.suppress(ProviderError):
            await told(recorder, request)
    return b"".join(lines)


async def test_a_recording_gives_the_same_events_and_response() -> None:
    """What is replayed is what was recorded, event by event."""
    script = [Reply(text="Hello there.", reasoning="Hm.", refusal=None)]
    lines: list[bytes] = []
    live = await told(Recorder(ScriptedProvider(script), lines.append), asking("Hi."))

    replay = ReplayProvider(load_recording(b"".join(lines)))

    assert await told(replay, asking("Hi.")) == live


async def test_a_request_is_known_by_what_it_says() -> None:
    """A whole number where one with a fraction may be is the same when it is read."""
    asked = asking("Hi.", temperature=0, top_p=1)
    replay = ReplayProvider(load_recording(await recorded([Reply(text="a")], asked)))

    _, response = await told(replay, asked)

    assert response.output_text == "a"


async def test_what_is_no_event_is_replayed_as_it_was() -> None:
    """Bytes that were no event come again as such."""
    data = await recorded([Reply(text="a b c", fault="malformed")], asking("Hi."))

    events, _ = await told(ReplayProvider(load_recording(data)), asking("Hi."))

    assert [type(e) for e in events].count(MalformedEvent) == 1


async def test_what_failed_fails_again() -> None:
    """An error is part of a recording, with what came before it."""
    data = await recorded([Reply(text="a b c d", fault="error")], asking("Hi."))
    events: list[Event] = []

    with pytest.raises(ReplayedError, match="answered with an error") as caught:
        await ReplayProvider(load_recording(data)).responses(
            asking("Hi."), CONTEXT, events.append
        )

    assert caught.value.kind == "RehearsedError"
    assert events


async def test_answers_to_one_request_come_in_their_order_and_again() -> None:
    """A request that was made twice has both answers, and then the first again."""
    replies = [Reply(text="One."), Reply(text="Two.")]
    data = await recorded(replies, asking("Hi."), asking("Hi."))
    replay = ReplayProvider(load_recording(data))

    texts = [(await told(replay, asking("Hi.")))[1].output_text for _ in range(3)]

    assert texts == ["One.", "Two.", "One."]


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        pytest.param(asking("Hello."), "input[0].content[0].text", id="words"),
        pytest.param(asking("Hi.", temperature=0.5), "temperature", id="a setting"),
        pytest.param(asking("Hi.", model="scripted/two"), "model", id="the model"),
        pytest.param(
            asking("Hi.", input=(user_message("Hi."), user_message("More."))),
            "input[1]",
            id="one item more",
        ),
    ],
)
async def test_a_request_that_differs_says_where(
    request_: CreateResponse, path: str
) -> None:
    """What was not recorded is not answered: the first difference is named."""
    data = await recorded([Reply(text="Hello.", times=0)], asking("Hi."))

    with pytest.raises(NotRecorded, match="was not recorded") as caught:
        await told(ReplayProvider(load_recording(data)), request_)

    assert caught.value.path == path


async def test_a_request_is_compared_with_the_one_most_like_it() -> None:
    """Among many recorded requests the difference is to the nearest."""
    data = await recorded(
        [Reply(text="Hello.", times=0)],
        asking("Other."),
        asking("", input=(user_message("Hi."), user_message("There."))),
    )
    request = asking("", input=(user_message("Hi."), user_message("You.")))

    with pytest.raises(NotRecorded, match="You") as caught:
        await told(ReplayProvider(load_recording(data)), request)

    assert caught.value.path == "input[1].content[0].text"


async def test_a_difference_is_shown_where_it_is() -> None:
    """Of texts that are long and alike, the part in which they are not."""
    long = "a" * 200
    data = await recorded([Reply(text="Yes.")], asking(f"{long}one{long}"))

    with pytest.raises(NotRecorded) as caught:
        await told(ReplayProvider(load_recording(data)), asking(f"{long}two{long}"))

    words = str(caught.value)
    assert f"was …{'a' * 20}one" in words
    assert f"and is …{'a' * 20}two" in words


async def test_an_empty_recording_answers_nothing() -> None:
    """A recording without exchanges says that nothing was recorded."""
    replay = ReplayProvider(load_recording(await recorded([])))

    with pytest.raises(NotRecorded, match="nothing was recorded"):
        await told(replay, asking("Hi."))


async def test_time_is_replayed_where_that_is_wanted(
    autojump_clock: MockClock,
) -> None:
    """With timing each event comes when it came, without it all come at once."""
    del autojump_clock
    slow = Reply(text="a b c", latency_seconds=2.0, per_delta_seconds=1.0)
    recording = load_recording(await recorded([slow], asking("Hi.")))

    spent = []
    for is_timed in (True, False):
        began = trio.current_time()
        await told(ReplayProvider(recording, is_timed=is_timed), asking("Hi."))
        spent.append(round(trio.current_time() - began, 3))

    assert spent == [5.0, 0.0]


@pytest.mark.parametrize("fails", [False, True])
async def test_a_silence_behind_the_last_event_is_replayed(
    autojump_clock: MockClock, *, fails: bool
) -> None:
    """An answer, or its failure, comes when it came, and not with its last event."""
    del autojump_clock

    class Dawdling(ScriptedProvider):
        async def responses(
            self,
            request: CreateResponse,
            context: ModelContext,
            on_event: Callable[[Event], None],
        ) -> Response:
            response = await super().responses(request, context, on_event)
            await trio.sleep(7.0)
            if fails:
                raise ProviderError("gone")
            return response

    lines: list[bytes] = []
    recorder = Recorder(Dawdling([Reply(text="a b")]), lines.append)
    with contextlib.suppress(ProviderError):
        await told(recorder, asking("Hi."))
    replay = ReplayProvider(load_recording(b"".join(lines)), is_timed=True)

    began = trio.current_time()
    with contextlib.suppress(ReplayedError):
        await told(replay, asking("Hi."))

    assert trio.current_time() - began == pytest.approx(7.0)


async def test_what_is_cancelled_is_not_recorded(autojump_clock: MockClock) -> None:
    """An exchange that was not over has no line."""
    del autojump_clock
    lines: list[bytes] = []
    recorder = Recorder(ScriptedProvider([Reply(fault="hang")]), lines.append)

    with trio.move_on_after(1):
        await told(recorder, asking("Hi."))

    assert load_recording(b"".join(lines)) == Recording()


async def test_a_key_is_struck_out_of_a_recording() -> None:
    """Whatever the recorder is told to conceal is in none of its lines."""
    lines: list[bytes] = []
    recorder = Recorder(
        ScriptedProvider([Reply(text="It is sk-planted.")]),
        lines.append,
        conceal=lambda data: data.replace(b"sk-planted", b"[key]"),
    )

    await told(recorder, asking("My key is sk-planted."))

    assert b"sk-planted" not in b"".join(lines)
    assert b"".join(lines).count(b"[key]") >= 2


async def test_frames_are_recorded_word_for_word() -> None:
    """What the server sent is in the recording, and reaches whoever else wants it."""

    class Framed(ScriptedProvider):
        async def responses(
            self,
            request: CreateResponse,
            context: ModelContext,
            on_event: Callable[[Event], None],
        ) -> Response:
            frames = FrameRecords("acme")
            assert context.on_frame is not None
            for frame in frames.of(SSEFrame("message", b'{"a": 1}'), (), 0.0):
                context.on_frame(frame)
            return await super().responses(request, context, on_event)

    lines: list[bytes] = []
    seen: list[object] = []
    context = msgspec.structs.replace(CONTEXT, on_frame=seen.append)
    await Recorder(Framed([Reply(text="Hi.")]), lines.append).responses(
        asking("Hi."), context, lambda _: None
    )

    (exchange,) = load_recording(b"".join(lines)).exchanges

    assert [frame.payload() for frame in exchange.frames] == [{"a": 1}]
    assert len(seen) == 1


def test_a_recorder_knows_the_names_its_provider_knows() -> None:
    """A recording has the model that was asked, and not the alias for it."""
    router = Router({}, aliases={"fast": Alias(models=("a/b", "c/d"))})

    found = Recorder(router, lambda _: None).candidates("fast")

    assert [candidate.model for candidate in found] == ["a/b", "c/d"]


async def test_a_name_stands_for_the_same_models_in_a_replay() -> None:
    """Nobody has to know of an alias there; it is written down once."""
    lines: list[bytes] = []
    warm = Candidate(model="acme/one", params=CreateResponse(temperature=0.5))
    router = Router(
        {"acme": ScriptedProvider([Reply(text="Hello.", times=0)])},
        aliases={"fast": Alias(models=(warm.model,), params=warm.params)},
        fallback="acme",
    )
    recorder = Recorder(router, lines.append)
    deck = {"PROMPT.md": '+++\n[modelParams]\nmodel = ["fast", "two"]\n+++\nHi.\n'}
    for _ in range(2):
        async with stage(deck, recorder) as on:
            await on.runtime.run("PROMPT.md", message="Hi.")

    replay = ReplayProvider(load_recording(b"".join(lines)))

    async with stage(deck, replay) as on:
        assert (await on.runtime.run("PROMPT.md", message="Hi.")).text == "Hello."
    assert list(replay.candidates("fast")) == [warm]
    assert [c.model for c in replay.candidates("two")] == ["acme/two"]
    assert [c.model for c in replay.candidates("three")] == ["three"]
    assert b"".join(lines).count(b'"type":"name"') == 2


def test_ids_of_the_runtime_do_not_make_a_request_another() -> None:
    """A request is known again whatever ids its run has drawn, and only those."""
    first, second, other = (
        asking(f"run-{'0' * 24} and call-{letter * 24} in {words}")
        for letter, words in (("a", "x"), ("b", "x"), ("b", "y"))
    )

    assert recognised(first) == recognised(second)
    assert recognised(first) != recognised(other)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", 1),
        (b"{}\n", 1),
        (b'{"type":"recording","format":"gambit.recording.v9"}\n', 1),
        (HEAD + b"nope\n", 2),
        (HEAD + b"\xff\n", 2),
        (b'{"type":"exchange","deck":"d","turn":1,"passNumber":1}\n', 1),
        (HEAD + b'{"type":"name","name":"fast","models":[]}\n', 2),
        (HEAD + b'{"type":"name","name":"fast","models":[{"model":1}]}\n', 2),
        (
            HEAD + b'{"type":"name","name":"f","models":'
            b'[{"model":"a/b","params":{"temperature":"hot"}}]}\n',
            2,
        ),
    ],
)
def test_what_is_no_recording_is_refused_with_its_line(data: bytes, line: int) -> None:
    """A recording that cannot be read says which line is wrong."""
    with pytest.raises(BadRecording) as caught:
        load_recording(data)
    assert caught.value.line == line


async def test_every_edit_of_a_recording_is_found_or_harmless() -> None:
    """A line that somebody has damaged is refused and never answered from."""
    data = await recorded([Reply(text="Hello.")], asking("Hi."))
    head, exchange = data.splitlines()
    fields = msgspec.json.decode(exchange)
    for key, value in (("times", []), ("response", {"id": 1}), ("events", 7)):
        edited = msgspec.json.encode(fields | {key: value})
        with pytest.raises(BadRecording, match="line 2"):
            load_recording(head + b"\n" + edited + b"\n")


async def test_half_a_line_at_the_end_is_left_out() -> None:
    """A process that was killed leaves a recording of what was over."""
    data = await recorded([Reply(text="Hello.", times=0)], asking("a"), asking("b"))

    assert len(load_recording(data[:-10]).exchanges) == 1


async def test_a_run_with_tools_replays_from_its_recording() -> None:
    """A run with calls is the same from a recording, in a new runtime."""
    lines: list[bytes] = []
    script = ScriptedProvider([calls("crm"), Reply(text="Noted.", times=0)])

    async def play(on: Stage) -> list[object]:
        result = await on.runtime.run("PROMPT.md", message="Note this.")
        return [result.text, result.usage, len(result.items)]

    recorder = Recorder(script, lines.append)
    async with stage({"PROMPT.md": root(TOOL)}, recorder) as on:
        live = await play(on)
    replay = ReplayProvider(load_recording(b"".join(lines)))
    async with stage({"PROMPT.md": root(TOOL)}, replay) as on:
        assert await play(on) == live
