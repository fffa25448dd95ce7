"""Events reach a list or a file, whatever the disk thinks of it."""

import errno
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from gambit_actors.trace import sinks
from gambit_actors.trace.codec import decode_event
from gambit_actors.trace.events import (
    DeckEnd,
    DeckStart,
    Lagged,
    Log,
    Monolog,
    RunEnd,
    RunStart,
    TraceEvent,
)
from gambit_actors.trace.sinks import JsonlSink, MemorySink
from gambit_actors.trace.tracer import Tracer

START = RunStart(run_id="r", time=1, deck_path="d")
END = RunEnd(run_id="r", time=2, deck_path="d", status="completed")


def said(content: str) -> Monolog:
    """An event with some words in it."""
    return Monolog(run_id="r", time=1, deck_path="d", content=content)


def events_in(path: Path) -> list[TraceEvent]:
    """Read a trace file."""
    return [decode_event(line) for line in path.read_bytes().splitlines()]


class FullDisk:
    """The file of a sink, on a disk that takes no more until it is freed."""

    def __init__(self, file: Any, room: int = 0) -> None:  # noqa: ANN401
        self._file = file
        self.room = room
        self.closed = False

    def write(self, data: bytes) -> int:
        """Take as much as there is room for."""
        if self.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = bytes(data[: self.room])
        self.room -= len(taken)
        return int(self._file.write(taken))

    def close(self) -> None:
        """Close the real file."""
        self.closed = True
        self._file.close()


def fill_disk_of(sink: JsonlSink) -> FullDisk:
    """Put a sink's file on a full disk."""
    disk = FullDisk(sink._file)  # noqa: SLF001  (no disk of ours to fill)
    sink._file = disk  # type: ignore[assignment]  # noqa: SLF001  (a stand-in)
    return disk


def test_memory_sink_finds_events_of_a_kind() -> None:
    """All events are there in order, and one kind of them is easily had."""
    sink = MemorySink()
    for event in (START, said("a"), said("b"), END):
        sink(event)

    assert sink.events == [START, said("a"), said("b"), END]
    assert [event.content for event in sink.of(Monolog)] == ["a", "b"]
    assert sink.of(DeckStart) == []


def test_a_trace_file_has_one_line_per_event(tmp_path: Path) -> None:
    """What a sink was told, a reader of the file gets back in order."""
    path = tmp_path / "trace.jsonl"

    with JsonlSink(path) as sink:
        for event in (START, said("a\nb\u2028c"), END):
            sink(event)

    assert path.read_bytes().count(b"\n") == 3
    assert [decode_event(line) for line in path.read_bytes().split(b"\n")[:3]] == [
        START,
        said("a\nb\u2028c"),
        END,
    ]


def test_lines_are_gathered_until_a_run_ends(tmp_path: Path) -> None:
    """Nothing is written event by event; the end of a run writes all of it."""
    path = tmp_path / "trace.jsonl"
    with JsonlSink(path) as sink:
        sink(START)
        before = path.stat().st_size
        sink(END)

        assert before == 0
        assert events_in(path) == [START, END]


def test_many_lines_are_written_without_waiting_for_the_end(tmp_path: Path) -> None:
    """A run that never ends does not keep its trace in memory."""
    path = tmp_path / "trace.jsonl"
    with JsonlSink(path) as sink:
        for _ in range(100):
            sink(said("x" * 1000))

        assert path.stat().st_size > 50_000


def test_an_old_trace_is_added_to_and_never_replaced(tmp_path: Path) -> None:
    """A second run in the same file stands after the first."""
    path = tmp_path / "trace.jsonl"
    for event in (START, END):
        with JsonlSink(path) as sink:
            sink(event)

    assert events_in(path) == [START, END]


def test_a_line_cut_off_by_a_crash_costs_no_other_line(tmp_path: Path) -> None:
    """After half a line, the next event begins a line of its own."""
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b'{"type":"run.st')

    with JsonlSink(path) as sink:
        sink(END)

    _, line = path.read_bytes().splitlines()
    assert decode_event(line) == END


def test_a_trace_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Others on the machine cannot read the conversations in it."""
    path = tmp_path / "trace.jsonl"
    JsonlSink(path).close()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_full_disk_is_told_once_and_holds_nobody_up(tmp_path: Path) -> None:
    """Events of a while without disk are written when there is room again."""
    path = tmp_path / "trace.jsonl"
    with capture_logs() as warnings, JsonlSink(path) as sink:
        tracer = Tracer(sink)
        disk = fill_disk_of(sink)
        for _ in range(3):
            tracer.emit(START)
            tracer.emit(END)
        disk.room = 10**9
        tracer.emit(END)

    assert events_in(path) == [START, END] * 3 + [END]
    (warning,) = warnings
    assert warning["path"] == str(path)
    assert "No space left" in warning["error"]


def test_a_write_that_is_cut_short_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """A disk that takes half a line gets the other half, and not the first again."""
    path = tmp_path / "trace.jsonl"
    with capture_logs(), JsonlSink(path) as sink:
        disk = fill_disk_of(sink)
        disk.room = 30
        sink(END)
        disk.room = 10**9

    assert events_in(path) == [END]


def test_what_a_full_disk_cost_is_counted_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory stays bounded without a disk, and the file says how much is missing."""
    monkeypatch.setattr(sinks, "_HELD_BYTES", 1000)
    path = tmp_path / "trace.jsonl"
    with capture_logs(), JsonlSink(path) as sink:
        disk = fill_disk_of(sink)
        for number in range(100):
            sink(said(str(number)))
        disk.room = 10**9
        sink(END)

    *kept, lagged, last = events_in(path)
    assert kept == [said(str(number)) for number in range(len(kept))]
    assert lagged == Lagged(run_id="r", time=2, missed=100 - len(kept))
    assert last == END


def test_an_event_that_cannot_be_written_leaves_a_mark(tmp_path: Path) -> None:
    """Text that no encoding has costs that event alone, and is told once."""
    path = tmp_path / "trace.jsonl"
    with capture_logs() as warnings, JsonlSink(path) as sink:
        for event in (START, said("\ud800"), said("\ud800"), END):
            sink(event)

    first, mark, _, last = events_in(path)
    assert (first, last) == (START, END)
    assert isinstance(mark, Log)
    assert mark.message == "a monolog event cannot be written"
    assert len(warnings) == 1


def test_a_closed_file_is_dropped_by_the_tracer(tmp_path: Path) -> None:
    """Events after the end of a sink are not gathered for nobody."""
    sink = JsonlSink(tmp_path / "trace.jsonl")
    sink.close()
    sink.close()
    tracer = Tracer(sink)

    with capture_logs() as warnings:
        tracer.emit(START)

    assert not tracer.is_on
    assert "is closed" in warnings[0]["error"]


def test_a_file_that_cannot_be_opened_is_an_error_at_once(tmp_path: Path) -> None:
    """Who asks for a trace in an impossible place learns it before the run."""
    with pytest.raises(FileNotFoundError):
        JsonlSink(tmp_path / "nowhere" / "trace.jsonl")


def test_lines_are_json_for_any_reader(tmp_path: Path) -> None:
    """A reader that knows nothing of us gets plain JSON objects."""
    path = tmp_path / "trace.jsonl"
    with JsonlSink(path) as sink:
        sink(DeckEnd(run_id="r", time=1, deck_path="d", status="cancelled"))

    (line,) = path.read_bytes().splitlines()
    assert msgspec.json.decode(line)["status"] == "cancelled"
