"""What any dialect has to do, as checks that its author can run.

They are run over golden streams: bodies of answers, as the server sends them, and what
each has to come to. ``FOLDER/NAME.sse`` is the body, ``FOLDER/NAME.json`` beside it is
what is expected::

    {
      "events":   one line per event; those that carry the response are only named
      "response": status, output, usage, error, incomplete_details; null if it was cut
      "problems": how many oddities the reader found
    }

::

    streams = golden_streams(Path("golden"))
    print(table(run_all(MyDialect(), streams)))

    @pytest.mark.parametrize("check", checks(), ids=lambda check: check.__name__)
    def test_my_dialect(check):
        check(MyDialect(), streams)
"""

import json
import random
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from gambit_actors.errors import BadResponse, StreamTruncated
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.builder import ResponseBuilder
from gambit_actors.openresponses.events import (
    Event,
    MalformedEvent,
    ResponseCompleted,
    ResponseCreated,
    ResponseFailed,
    ResponseIncomplete,
    StandardEvent,
    UnknownEvent,
)
from gambit_actors.openresponses.followup import follow_up
from gambit_actors.openresponses.items import FunctionCall, FunctionCallOutput
from gambit_actors.openresponses.responses import Response
from gambit_actors.openresponses.sse import SSEDecoder, SSEFrame
from gambit_actors.openresponses.writing import to_builtins
from gambit_actors.providers.dialects.dialect import Dialect
from gambit_actors.testing.checks import CheckFailed, Found, require
from gambit_actors.testing.junk import JUNK, unreadable
from gambit_actors.testing.requests import SAMPLES, plain_request

STARTED = Response(id="resp_golden", status="in_progress", model="model-1")

_OUTCOME = ("status", "output", "usage", "error", "incomplete_details")
_KEY = "key-that-no-body-may-carry"
_MUTATIONS = 50
_ITEM = re.compile(r"input\[\d+\]")
_ENDS = (ResponseCompleted, ResponseFailed, ResponseIncomplete)


class Played(msgspec.Struct, frozen=True):
    """What a stream came to; ``response`` is None for one that was cut."""

    events: list[Event]
    response: Response | None
    problems: list[str]


class Golden(msgspec.Struct, frozen=True):
    """A golden stream: what the server sends, and what that has to come to."""

    name: str
    body: bytes
    expected: JSONValue

    @property
    def frames(self) -> list[SSEFrame]:
        """The frames that are whole."""
        return SSEDecoder().feed(self.body)


DialectCheck: TypeAlias = Callable[[Dialect, Sequence[Golden]], None]


def golden_streams(folder: Path) -> list[Golden]:
    """Read the golden streams of a folder."""
    return [
        Golden(
            path.stem,
            path.read_bytes(),
            json.loads(path.with_suffix(".json").read_text("utf-8")),
        )
        for path in sorted(folder.glob("*.sse"))
    ]


def play(dialect: Dialect, chunks: Iterable[bytes]) -> Played:
    """Read a stream that comes in these pieces."""
    decoder = SSEDecoder()
    frames = (frame for chunk in chunks for frame in decoder.feed(chunk))
    return play_frames(dialect, frames)


def play_frames(
    dialect: Dialect, frames: Iterable[SSEFrame], *, is_deaf_to_end: bool = False
) -> Played:
    """Read a stream of these frames.

    Args:
        dialect: what reads it.
        frames: in the order in which they come.
        is_deaf_to_end: whether a reader that has come to its end is fed on, as nobody
            should.
    """
    reader, builder = dialect.reader(STARTED), ResponseBuilder()
    events: list[Event] = []
    for frame in frames:
        if is_deaf_to_end or not reader.is_done:
            events += reader.feed(frame)
    events += reader.close()
    for event in events:
        builder.feed(event)
    try:
        response = builder.close()
    except StreamTruncated:
        response = None
    return Played(events, response, list(reader.problems))


def outcome(played: Played) -> JSONValue:
    """What a stream came to, in the form that expectations have."""
    response = None
    if played.response is not None:
        fields = to_builtins(played.response)
        response = {key: fields[key] for key in _OUTCOME}
    return {
        "events": [_line(event) for event in played.events],
        "response": response,
        "problems": len(played.problems),
    }


def checks() -> tuple[DialectCheck, ...]:
    """All checks there are."""
    return (
        golden_streams_come_to_what_is_expected,
        chunks_change_nothing,
        cut_streams_are_not_completed,
        broken_streams_raise_nothing,
        junk_raises_nothing,
        odd_frames_are_kept,
        events_are_in_legal_order,
        usage_is_possible,
        requests_are_json_without_a_key,
        answers_go_back,
        errors_of_any_form_are_read,
    )


def run_all(dialect: Dialect, streams: Sequence[Golden]) -> list[Found]:
    """Run all checks, and go on after one that fails; `table` shows the result."""
    found = []
    for check in checks():
        try:
            check(dialect, streams)
        except Exception as problem:  # noqa: BLE001  (what it raises is the finding)
            words = str(problem) or type(problem).__name__
            if not isinstance(problem, CheckFailed):
                words = f"raised {type(problem).__name__}: {words}"
            found.append(Found(check.__name__, "failed", words))
        else:
            found.append(Found(check.__name__, "passed"))
    return found


def golden_streams_come_to_what_is_expected(
    dialect: Dialect, streams: Sequence[Golden]
) -> None:
    """Each stream gives the events, the response and the problems it should."""
    require(streams, "there are no golden streams")
    for golden in streams:
        found = outcome(play(dialect, [golden.body]))
        for key, value in golden.expected.items():
            require(found[key] == value, f"{golden.name}: other {key} than expected")


def chunks_change_nothing(dialect: Dialect, streams: Sequence[Golden]) -> None:
    """However the bytes of a stream are cut, it comes to the same."""
    for golden in streams:
        whole = outcome(play(dialect, [golden.body]))
        for size in (1, 2, 3, 7, 61):
            starts = range(0, len(golden.body), size)
            pieces = (golden.body[start : start + size] for start in starts)
            same = outcome(play(dialect, pieces)) == whole
            require(same, f"{golden.name}: differs in pieces of {size} bytes")


def cut_streams_are_not_completed(dialect: Dialect, streams: Sequence[Golden]) -> None:
    """A stream without its last frames is not completed, unless all was said."""
    for golden in streams:
        frames = golden.frames
        whole = play_frames(dialect, frames).response
        for count in range(len(frames)):
            cut = play_frames(dialect, frames[:count]).response
            if cut is not None and cut.status == "completed":
                all_said = whole is not None and whole.output == cut.output
                require(
                    all_said and whole is not None and whole.status == "completed",
                    f"{golden.name}: completed after {count} of {len(frames)} frames",
                )


def broken_streams_raise_nothing(dialect: Dialect, streams: Sequence[Golden]) -> None:
    """Frames that are missing, doubled or in another order raise nothing."""
    luck = random.Random(0)  # noqa: S311  (the same each time)
    for golden in streams:
        for _ in range(_MUTATIONS if golden.frames else 0):
            frames = list(golden.frames)
            for _ in range(luck.randint(1, 3)):
                place, other = luck.randrange(len(frames)), luck.randrange(len(frames))
                match luck.randrange(3):
                    case 0 if len(frames) > 1:
                        del frames[place]
                    case 1:
                        frames.insert(place, frames[other])
                    case _:
                        frames[place], frames[other] = frames[other], frames[place]
            _check_end(golden.name, play_frames(dialect, frames).events)


def junk_raises_nothing(dialect: Dialect, streams: Sequence[Golden]) -> None:
    """Frames of any content raise nothing, and complete nothing by themselves."""
    junk = [_frame(data, event) for data in JUNK for event in ("message", "junk")]
    junk += [_frame(data) for data in unreadable()]
    alone = play_frames(dialect, junk).response
    is_completed = alone is not None and alone.status == "completed"
    require(not is_completed, "frames without sense came to a completed response")
    for golden in streams:
        for count in range(len(golden.frames) + 1):
            frames = [*golden.frames[:count], *junk, *golden.frames[count:]]
            _check_end(golden.name, play_frames(dialect, frames).events)


def odd_frames_are_kept(dialect: Dialect, streams: Sequence[Golden]) -> None:
    """A frame that is no JSON is malformed, one of another kind unknown, and kept."""
    del streams
    reader = dialect.reader(STARTED)
    malformed = reader.feed(_frame(b"{not json"))
    kept = [event for event in malformed if isinstance(event, MalformedEvent)]
    require(
        [event.raw for event in kept] == ["{not json"],
        "a frame that is no JSON did not become a MalformedEvent with its text",
    )
    require(kept[0].reason == "invalid_json", "a frame that is no JSON: other reason")
    data = b'{"type": "check.unheard_of", "check_value": "kept"}'
    unknown = reader.feed(_frame(data, "check.unheard_of"))
    texts = [
        json.dumps(to_builtins(event))
        for event in unknown
        if isinstance(event, UnknownEvent)
    ]
    kept_whole = len(texts) == 1 and "check_value" in texts[0] and "kept" in texts[0]
    require(kept_whole, "a frame of an unknown kind was not kept as an UnknownEvent")


def events_are_in_legal_order(dialect: Dialect, streams: Sequence[Golden]) -> None:
    """Created comes first, one ending last, and the numbers rise."""
    for golden in streams:
        played = play(dialect, [golden.body])
        _check_order(golden.name, played.events)
        has_ended = any(isinstance(event, _ENDS) for event in played.events)
        is_told = has_ended == (played.response is not None)
        require(is_told, f"{golden.name}: a response without an ending, or none")


def usage_is_possible(dialect: Dialect, streams: Sequence[Golden]) -> None:
    """A total is at least its parts, and no detail is more than what it details."""
    for golden in streams:
        response = play(dialect, [golden.body]).response
        if response is None or (usage := response.usage) is None:
            continue
        made, spent = usage.output_tokens, usage.input_tokens
        is_possible = (
            usage.total_tokens >= spent + made >= 0
            and spent >= usage.input_tokens_details.cached_tokens >= 0
            and made >= usage.output_tokens_details.reasoning_tokens >= 0
        )
        require(is_possible, f"{golden.name}: impossible usage {usage}")


def requests_are_json_without_a_key(
    dialect: Dialect, streams: Sequence[Golden]
) -> None:
    """Requests become JSON under a path; keys are in headers that only auth has."""
    del streams
    secrets = dialect.auth_headers(_KEY)
    require(all(name.islower() for name in secrets), "an auth header not in lower case")
    for name, request in SAMPLES.items():
        for stream in (True, False):
            rendered = dialect.render(request, stream=stream)
            require(rendered.path.startswith("/"), f"{name}: a path without a slash")
            require(_KEY not in rendered.path, f"{name}: a key in the path")
            body = msgspec.json.encode(rendered.body)
            again = msgspec.json.decode(body)
            require(again == rendered.body, f"{name}: a body that is not plain JSON")
            headers = rendered.headers
            require(not headers.keys() & secrets.keys(), f"{name}: a header of auth")
            told = all(left.path and left.reason for left in rendered.unsent)
            require(told, f"{name}: something unsent without a path or a reason")


def answers_go_back(dialect: Dialect, streams: Sequence[Golden]) -> None:
    """What a reader makes of an answer, the same dialect can send back."""
    for golden in streams:
        response = play(dialect, [golden.body]).response
        if response is None:
            continue
        outputs = [
            FunctionCallOutput(call_id=item.call_id, output="{}")
            for item in response.output
            if isinstance(item, FunctionCall)
        ]
        request = follow_up(plain_request(), response, outputs)
        rendered = dialect.render(request, stream=True)
        if response.status == "completed":
            # Whole items: that a name had to be changed is told as well.
            paths = [left.path for left in rendered.unsent]
            lost = [path for path in paths if _ITEM.fullmatch(path)]
            require(not lost, f"{golden.name}: sent back without {', '.join(lost)}")


def errors_of_any_form_are_read(dialect: Dialect, streams: Sequence[Golden]) -> None:
    """Bodies of errors raise nothing; what is no answer raises BadResponse alone."""
    del streams
    for body in (b"", b"<html>502</html>", b'{"error": "text"}', *JUNK):
        dialect.read_error(body)
        try:
            response = dialect.read_whole(body, STARTED)
        except BadResponse:
            continue
        is_completed = response.status == "completed"
        require(not is_completed, f"{body!r} was read as a completed answer")


def _check_order(name: str, events: Sequence[Event]) -> None:
    told = _check_end(name, events)
    if not told:
        return
    require(isinstance(told[0], ResponseCreated), f"{name}: created is not first")
    created = sum(isinstance(event, ResponseCreated) for event in told)
    require(created == 1, f"{name}: created {created} times")
    numbers = [to_builtins(event).get("sequence_number") for event in told]
    real = [number for number in numbers if number is not None]
    require(real == sorted(set(real)), f"{name}: numbers that do not rise")


def _check_end(name: str, events: Sequence[Event]) -> list[StandardEvent]:
    """Give the events of the standard, of which the last at most may be an ending."""
    told = [
        event
        for event in events
        if not isinstance(event, UnknownEvent | MalformedEvent)
    ]
    ends = [place for place, event in enumerate(told) if isinstance(event, _ENDS)]
    require(ends in ([], [len(told) - 1]), f"{name}: not one ending, at the end")
    return told


def _frame(data: bytes, event: str = "message") -> SSEFrame:
    return SSEFrame(event, data.decode("utf-8", "replace").encode())


def _line(event: Event) -> JSONValue:
    if isinstance(event, MalformedEvent):
        return {"type": "malformed", "reason": event.reason, "raw": event.raw}
    fields: dict[str, JSONValue] = to_builtins(event)
    fields.pop("sequence_number", None)
    return fields["type"] if "response" in fields else fields
