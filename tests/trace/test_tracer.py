"""A tracer tells every sink, and no sink can hurt what is traced."""

import sys

import pytest
import structlog
from structlog.testing import capture_logs

from gambit_actors.trace.events import Monolog, TraceEvent
from gambit_actors.trace.sinks import MemorySink
from gambit_actors.trace.tracer import Tracer, complain


def said(content: str = "hm") -> Monolog:
    """An event, whichever."""
    return Monolog(run_id="r", time=1, deck_path="d", content=content)


def broken(_event: TraceEvent) -> None:
    """A sink that cannot."""
    raise OSError("no space left")


def test_every_sink_gets_every_event_in_order() -> None:
    """Two sinks see the same events in the order they were emitted."""
    first, second = MemorySink(), MemorySink()
    tracer = Tracer(first, second)

    tracer.emit(said("a"))
    tracer.emit(said("b"))

    assert first.events == second.events == [said("a"), said("b")]


def test_without_sinks_a_tracer_is_off() -> None:
    """Whether anybody listens follows sinks as they come and go."""
    tracer, sink = Tracer(), MemorySink()
    seen = [tracer.is_on]
    tracer.emit(said())

    tracer.add(sink)
    seen.append(tracer.is_on)
    tracer.remove(sink)
    tracer.remove(sink)
    seen.append(tracer.is_on)
    tracer.emit(said())

    assert seen == [False, True, False]
    assert sink.events == []


def test_a_sink_that_raises_is_dropped_with_one_warning() -> None:
    """The run goes on, the other sinks too, and the warning names who and why."""
    before, after = MemorySink(), MemorySink()
    tracer = Tracer(before, broken, after)

    with capture_logs() as warnings:
        for _ in range(3):
            tracer.emit(said())

    assert len(before.events) == len(after.events) == 3
    (warning,) = warnings
    assert warning["log_level"] == "warning"
    assert warning["sink"] == "broken"
    assert warning["error"] == "OSError: no space left"


def test_the_last_sink_to_break_turns_the_tracer_off() -> None:
    """A tracer whose only sink was dropped costs what one without sinks costs."""
    tracer = Tracer(broken)

    with capture_logs():
        tracer.emit(said())

    assert not tracer.is_on


def test_only_the_sink_that_raised_is_dropped() -> None:
    """A sink that compares equal to a broken one is still told."""

    class Twin:
        def __init__(self, *, works: bool) -> None:
            self.works, self.told = works, 0

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Twin)

        def __hash__(self) -> int:
            return 1

        def __call__(self, _event: TraceEvent) -> None:
            self.told += 1
            if not self.works:
                raise RuntimeError

    good = Twin(works=True)
    tracer = Tracer(Twin(works=False), good)

    with capture_logs():
        tracer.emit(said())
        tracer.emit(said())

    assert good.told == 2


def test_an_interrupt_in_a_sink_is_not_swallowed() -> None:
    """Ctrl-C while a sink works still stops the program."""

    def interrupted(_event: TraceEvent) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Tracer(interrupted).emit(said())


def test_stamps_come_from_the_clock_that_was_given() -> None:
    """The time of an event is the clock's word and nothing else."""
    times = iter([10.5, 11.0])
    tracer = Tracer(clock=lambda: next(times))

    assert [tracer.stamp(), tracer.stamp()] == [10.5, 11.0]


def test_a_complaint_of_an_unconfigured_program_goes_to_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where nobody chose a place for logs, standard output stays clean."""
    structlog.reset_defaults()

    complain("lost", path="x")

    out, err = capsys.readouterr()
    assert out == ""
    assert "lost" in err
    assert not structlog.is_configured()


def test_a_complaint_never_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning that cannot be written is not a reason to stop either."""
    structlog.reset_defaults()
    monkeypatch.setattr(sys, "stderr", None)

    complain("lost")
