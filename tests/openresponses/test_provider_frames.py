"""Provider frames record all that arrives, in order, timed, with nothing lost."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gambit_actors.errors import EventTooLarge
from gambit_actors.openresponses.events import (
    MalformedEvent,
    OutputTextDelta,
    UnknownEvent,
)
from gambit_actors.openresponses.provider_frames import (
    Arrival,
    FrameRecords,
    ProviderEvent,
    ProviderFrame,
    ProviderFrames,
    TextDeltaFrame,
)
from gambit_actors.openresponses.sse import SSEDecoder

STREAMS = sorted((Path(__file__).parents[1] / "fixtures" / "streams").glob("*.sse"))
STREAM_IDS = [path.stem for path in STREAMS]
REASONING_MISMATCH = (
    "the event line says response.reasoning_text.delta, "
    "the data response.output_text.delta"
)
DELTA = b'{"type":"response.output_text.delta","output_index":0,"delta":"hi"}'


def arrivals_of(stream: bytes, *, time: float = 1.5) -> list[Arrival]:
    """Read a whole stream that came at one time."""
    return ProviderFrames("acme").feed(stream, time)


def frames_of(stream: bytes, *, time: float = 1.5) -> list[ProviderFrame]:
    """Give all frames of a stream."""
    return [f for arrival in arrivals_of(stream, time=time) for f in arrival.frames]


def only_event(stream: bytes) -> ProviderEvent:
    """Give the record of a stream's only event."""
    first, *_ = frames_of(stream)
    assert isinstance(first, ProviderEvent)
    return first


@pytest.mark.spec("PA-3")
@pytest.mark.parametrize("path", STREAMS, ids=STREAM_IDS)
def test_one_record_per_event(path: Path) -> None:
    """Each event of a golden stream is recorded once, in order, byte for byte."""
    stream = path.read_bytes()
    records = [f for f in frames_of(stream) if isinstance(f, ProviderEvent)]
    arrived = SSEDecoder().feed(stream)
    assert [record.event_name for record in records] == [f.event for f in arrived]
    assert [
        (record.raw or "").encode() or bytes(record.data) for record in records
    ] == [frame.data.replace(b"\n", b" ") for frame in arrived]
    assert {record.provider for record in records} == {"acme"}


@pytest.mark.spec("PA-3")
@pytest.mark.parametrize("path", STREAMS, ids=STREAM_IDS)
def test_numbers_have_no_gaps(path: Path) -> None:
    """The frames of a stream are numbered from zero, derived ones included."""
    frames = frames_of(path.read_bytes())
    assert [frame.seq for frame in frames] == list(range(len(frames)))


@pytest.mark.spec("PA-3")
@given(st.sampled_from(STREAMS), st.lists(st.integers(0, 6000), max_size=8).map(sorted))
def test_frames_carry_the_time_their_end_came(path: Path, cuts: list[int]) -> None:
    """A frame has the time of the chunk that finished it, however chunks are cut."""
    stream = path.read_bytes()
    whole, reader, decoder = frames_of(stream), ProviderFrames("acme"), SSEDecoder()
    seen: list[ProviderFrame] = []
    for time, (start, end) in enumerate(
        zip([0, *cuts], [*cuts, len(stream)], strict=True)
    ):
        chunk = stream[start:end]
        arrivals = reader.feed(chunk, float(time))
        assert len(arrivals) == len(decoder.feed(chunk))
        frames = [frame for arrival in arrivals for frame in arrival.frames]
        assert {frame.time for frame in frames} <= {float(time)}
        seen += frames
    assert [msgspec.structs.replace(f, time=1.5) for f in seen if is_plain(f)] == [
        f for f in whole if is_plain(f)
    ]
    assert [payload_of(f) for f in seen] == [payload_of(f) for f in whole]


def is_plain(frame: ProviderFrame) -> bool:
    """Whether frames can be compared: raw JSON compares by identity."""
    return not isinstance(frame, ProviderEvent) or not bytes(frame.data)


def payload_of(frame: ProviderFrame) -> object:
    """Give the document of a record, None for anything else."""
    return frame.payload() if isinstance(frame, ProviderEvent) else None


@pytest.mark.spec("PA-3")
def test_done_is_recorded() -> None:
    """The marker has a record of its own and no event to act on."""
    reader = ProviderFrames("acme")
    before = reader.is_done
    (arrival,) = reader.feed(b"data: [DONE]\n\n", 2.0)
    assert (before, reader.is_done) == (False, True)
    assert arrival == Arrival(
        frames=(
            ProviderEvent(
                seq=0,
                time=2.0,
                provider="acme",
                status="done",
                event_name="message",
                raw="[DONE]",
            ),
        ),
        event=None,
    )


@pytest.mark.spec("PA-2", "PA-3")
def test_after_done_events_are_recorded_and_not_acted_on() -> None:
    """What follows the marker is kept as a record, and ends up nowhere else."""
    stream = b"data: [DONE]\n\ndata: " + DELTA + b"\n\ndata: {\n\ndata: [DONE]\n\n"
    _, late, broken, again = arrivals_of(stream)
    assert [a.event for a in (late, broken, again)] == [None, None, None]
    assert [len(a.frames) for a in (late, broken, again)] == [1, 1, 1]
    statuses = []
    for arrival in (late, broken, again):
        (record,) = arrival.frames
        assert isinstance(record, ProviderEvent)
        assert record.errors[0] == "arrived after [DONE]"
        statuses.append(record.status)
    assert statuses == ["event", "invalid_json", "done"]
    assert payload_of(late.frames[0]) == json.loads(DELTA)


@pytest.mark.spec("PA-3")
@pytest.mark.parametrize("payload", ["{", "", "nope", '{"a": \u2028', "[" * 100_000])
def test_invalid_json_is_recorded(payload: str) -> None:
    """What is not JSON is kept as text, with the reason."""
    (arrival,) = arrivals_of(f"event: x\ndata: {payload}\n\n".encode())
    (record,) = arrival.frames
    assert isinstance(record, ProviderEvent)
    assert (record.status, record.raw) == ("invalid_json", payload)
    assert bytes(record.data) == b""
    assert len(record.errors) == 1
    assert record.payload() is None
    assert isinstance(arrival.event, MalformedEvent)


@pytest.mark.spec("PA-3")
@pytest.mark.parametrize(
    "payload",
    [
        b'{ "type" : "acme:x",  "n": 1.50, "n": 1e2, "u": "\\u00e9" }',
        b'{"type":"acme:x","big":123456789012345678901234567890}',
        b'{"type":"acme:x",\n"lines": [1,\n2]}',
        b"[1, 2]",
        b'"text"',
        b"null",
    ],
)
def test_json_is_recorded_byte_for_byte(payload: bytes) -> None:
    """A JSON document keeps its spelling, but for line breaks between its tokens."""
    stream = b"data: " + payload.replace(b"\n", b"\ndata: ") + b"\n\n"
    record = only_event(stream)
    assert record.status == "event"
    assert bytes(record.data) == payload.replace(b"\n", b" ")
    assert record.payload() == json.loads(payload)


@pytest.mark.spec("PA-3")
def test_half_a_surrogate_pair_has_a_payload() -> None:
    """A record that counts as JSON can be parsed, half a surrogate pair and all."""
    payload = DELTA.replace(b"hi", b"\\ud83d")
    record = only_event(b"data: " + payload + b"\n\n")
    assert record.status == "event"
    assert json.loads(bytes(record.data))["delta"] == "\ufffd"
    assert record.payload() == json.loads(payload.replace(b"\\ud83d", b"\\ufffd"))


@pytest.mark.spec("PA-4")
def test_a_text_delta_is_derived() -> None:
    """A text delta yields a frame of its own, right behind its record."""
    stream = b"data: " + DELTA + b"\n\n"
    first, second = arrivals_of(stream * 2, time=3.0)
    assert [type(f) for f in first.frames] == [ProviderEvent, TextDeltaFrame]
    assert first.frames[1] == TextDeltaFrame(seq=1, time=3.0, delta="hi")
    assert second.frames[1] == TextDeltaFrame(seq=3, time=3.0, delta="hi")
    assert isinstance(first.event, OutputTextDelta)


@pytest.mark.spec("PA-4")
@pytest.mark.parametrize("path", STREAMS, ids=STREAM_IDS)
def test_only_text_deltas_are_derived(path: Path) -> None:
    """Text frames are those of the text deltas before the marker, and no others."""
    expected, is_done = [], False
    for frame in SSEDecoder().feed(path.read_bytes()):
        is_done = is_done or frame.is_done
        if not is_done and b'"response.output_text.delta"' in frame.data:
            try:
                expected.append(json.loads(frame.data)["delta"])
            except ValueError:
                continue
    derived = [f for f in frames_of(path.read_bytes()) if isinstance(f, TextDeltaFrame)]
    assert [frame.delta for frame in derived] == expected


@pytest.mark.parametrize(
    ("name", "kind", "errors"),
    [
        ("acme:x", "acme:x", ()),
        ("message", "acme:x", ()),
        ("acme:y", "acme:x", ("the event line says acme:y, the data acme:x",)),
        (
            "error",
            "response.output_text.delta",
            ("the event line says error, the data response.output_text.delta",),
        ),
        ("response.reasoning_text.delta", "response.reasoning_text.delta", ()),
        ("response.reasoning.delta", "response.reasoning_text.delta", ()),
        ("response.reasoning_text.delta", "response.reasoning.delta", ()),
        (
            "response.reasoning_text.delta",
            "response.output_text.delta",
            (REASONING_MISMATCH,),
        ),
    ],
)
def test_a_name_that_does_not_match_is_recorded(
    name: str, kind: str, errors: tuple[str, ...]
) -> None:
    """An event line that contradicts the data is an error on the record."""
    payload = json.dumps({"type": kind, "output_index": 0, "delta": "d"})
    record = only_event(f"event: {name}\ndata: {payload}\n\n".encode())
    assert record.errors == errors


def test_a_wrong_shape_is_recorded() -> None:
    """JSON that fits no event has its problem on the record."""
    (arrival,) = arrivals_of(b"data: " + DELTA.replace(b'"hi"', b"5") + b"\n\n")
    (record,) = arrival.frames
    assert isinstance(record, ProviderEvent)
    assert record.status == "event"
    assert record.errors == ("delta: expected a string, got 5",)
    assert isinstance(arrival.event, MalformedEvent)


def test_an_unknown_event_is_no_error() -> None:
    """An event of a vendor's own type is recorded without complaint."""
    (arrival,) = arrivals_of(b'event: acme:x\ndata: {"type":"acme:x"}\n\n')
    assert isinstance(arrival.event, UnknownEvent)
    (record,) = arrival.frames
    assert isinstance(record, ProviderEvent)
    assert record.errors == ()


@pytest.mark.spec("PA-3")
@pytest.mark.parametrize("path", STREAMS, ids=STREAM_IDS)
def test_frames_are_written_with_their_payload(path: Path) -> None:
    """A frame as JSON names its type and carries the very document that came."""
    for frame in frames_of(path.read_bytes()):
        fields = json.loads(msgspec.json.encode(frame))
        assert (fields["seq"], fields["time"]) == (frame.seq, frame.time)
        if isinstance(frame, TextDeltaFrame):
            assert fields["type"] == "output_text_delta"
            assert fields["delta"] == frame.delta
        else:
            assert fields["type"] == "provider_event"
            assert fields["event_name"] == frame.event_name
            assert fields.get("data") == frame.payload()
            assert fields.get("raw") == frame.raw


def test_what_was_cut_off_is_given_back() -> None:
    """Closing returns the bytes of an event that never ended."""
    reader = ProviderFrames("acme")
    assert reader.feed(b"data: {", 1.0) == []
    assert reader.close() == b"data: {"


@pytest.mark.spec("PA-2")
def test_the_limit_is_the_decoders() -> None:
    """An event past the limit raises, behind the frames before it."""
    reader = ProviderFrames("acme", max_event_bytes=30)
    (arrival,) = reader.feed(b"data: [DONE]\n\ndata: " + b"x" * 40, 1.0)
    assert arrival.event is None
    with pytest.raises(EventTooLarge):
        reader.close()


@pytest.mark.spec("PA-3")
@pytest.mark.parametrize("path", STREAMS, ids=STREAM_IDS)
def test_frames_can_be_read_back(path: Path) -> None:
    """What is written of a frame is read back as a frame, its document untouched."""
    for frame in frames_of(path.read_bytes()):
        back = msgspec.json.decode(msgspec.json.encode(frame), type=ProviderFrame)

        assert payload_of(back) == payload_of(frame)
        assert is_plain(back) == is_plain(frame)
        assert (back.seq, back.time) == (frame.seq, frame.time)


@pytest.mark.spec("PA-3")
@pytest.mark.parametrize("payload", [b'{"type":"x","a":"\\ud83d"}', b'{"a":\n[\r\n1]}'])
def test_a_record_is_one_line_that_reads_back(payload: bytes) -> None:
    """Whatever a provider sends, its record is one line and no reader chokes on it."""
    stream = b"data: " + payload.replace(b"\r\n", b"\n").replace(b"\n", b"\ndata: ")
    line = msgspec.json.encode(only_event(stream + b"\n\n"))
    assert b"\n" not in line
    assert isinstance(msgspec.json.decode(line, type=ProviderFrame), ProviderEvent)


@pytest.mark.spec("PA-3")
@pytest.mark.parametrize(
    "junk",
    [
        b"thanks for using ACME",
        b"thanks \\u for",
        b'{"a":1e999}',
        b"1" * 5000,
        b"[" * 5000 + b'"\\u0041"' + b"]" * 5000,
        b"[" * 5000 + b"]" * 5000,
        b'{"type":"response.output_text.delta"',
    ],
    ids=lambda junk: junk[:24].decode(),
)
@pytest.mark.parametrize("before", [b"", b"data: [DONE]\n\n"], ids=["first", "late"])
def test_what_is_no_json_is_recorded_as_text(junk: bytes, before: bytes) -> None:
    """Junk is kept word for word, behind the end too, and its record can be read."""
    records = FrameRecords("acme")
    # The reader of the dialect may say nothing of it, and behind the end always does.
    for frame in SSEDecoder().feed(before + b"data: " + junk + b"\n\n"):
        (record,) = records.of(frame, (), 1.5)
    line = msgspec.json.encode(record)
    read = msgspec.json.decode(line, type=ProviderEvent)
    assert (read.status, read.raw) == ("invalid_json", junk.decode())
    assert read.errors


@pytest.mark.spec("PA-3")
@pytest.mark.parametrize(
    "data",
    [
        b"[" * 300 + b"]" * 300,
        b'["\\ud800",' + b"9" * 40 + b"]",
        b'["\\ud83d\\ude00 \\ud83d"]',
    ],
    ids=lambda data: data[:12].decode(),
)
def test_odd_documents_can_be_read_back(data: bytes) -> None:
    """What is recorded as JSON is JSON to whoever reads the record."""
    line = msgspec.json.encode(only_event(b"data: " + data + b"\n\n"))
    read = msgspec.json.decode(line, type=ProviderEvent)
    assert read.status == "event"
    assert read.payload() is not None
    assert json.loads(line)
