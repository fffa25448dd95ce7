"""Log lines say what matters on one line each, and keep conversations to themselves."""

import io
import json
import typing

import pytest
import structlog

from gambit_actors.openresponses.events import MalformedEvent, OutputTextDelta
from gambit_actors.openresponses.items import user_message
from gambit_actors.openresponses.responses import Usage
from gambit_actors.trace import log_lines
from gambit_actors.trace.events import (
    DeckStart,
    HandlerSaid,
    ItemLogged,
    Log,
    ModelCall,
    ModelFailover,
    ModelNotice,
    ModelResult,
    Monolog,
    RunEnd,
    RunStart,
    StreamEvent,
    ToolCalled,
    ToolResult,
    TraceError,
    TraceEvent,
    UserMessage,
)
from gambit_actors.trace.sinks import StructlogSink

IDS: dict[str, typing.Any] = {"run_id": "r1", "time": 1700000000.25}
USAGE = Usage(input_tokens=12, output_tokens=30, total_tokens=42)
END = RunEnd(
    **IDS,
    deck_path="desk/PROMPT.md",
    status="completed",
    duration=1.23456,
    passes=2,
    calls=1,
    decks=1,
    usage=USAGE,
    cost=0.0125,
    models=("a/b",),
)
PRIVATE = "the cake is a lie"
WORDS: list[TraceEvent] = [
    UserMessage(**IDS, deck_path="d", message=PRIVATE),
    Monolog(**IDS, deck_path="d", content=PRIVATE),
    ItemLogged(**IDS, deck_path="d", item=user_message(PRIVATE), source="user"),
    ToolCalled(**IDS, name="t", args={"a": PRIVATE}, tool_kind="action"),
    ToolResult(**IDS, name="t", result=PRIVATE, tool_kind="action"),
    HandlerSaid(**IDS, deck_path="d", kind="busy", message=PRIVATE),
    RunStart(**IDS, deck_path="d", input=PRIVATE, initial_user_message=PRIVATE),
    StreamEvent(
        **IDS,
        deck_path="d",
        model="m",
        event=OutputTextDelta(output_index=0, delta=PRIVATE),
    ),
    ModelCall(
        **IDS,
        deck_path="d",
        model="m",
        pass_number=1,
        response_items=(user_message(PRIVATE),),
    ),
    ModelResult(
        **IDS,
        deck_path="d",
        model="m",
        pass_number=1,
        status="completed",
        finish_reason="stop",
        message=PRIVATE,
        response_items=(user_message(PRIVATE),),
    ),
]


def text_of(
    *events: TraceEvent, form: log_lines.Form = "console", verbose: bool = False
) -> str:
    """What a sink writes for some events."""
    file = io.StringIO()
    sink = StructlogSink(form, file=file, verbose=verbose)
    for event in events:
        sink(event)
    return file.getvalue()


def test_the_end_of_a_run_is_one_line_with_everything() -> None:
    """A collector that keeps one line per run can count, sum and alert on it."""
    assert json.loads(text_of(END, form="json")) == {
        "event": "run.end",
        "level": "info",
        "timestamp": "2023-11-14T22:13:20.250Z",
        "run_id": "r1",
        "action_call_id": None,
        "deck_path": "desk/PROMPT.md",
        "status": "completed",
        "duration": 1.235,
        "passes": 2,
        "calls": 1,
        "decks": 1,
        "input_tokens": 12,
        "cached_tokens": 0,
        "output_tokens": 30,
        "reasoning_tokens": 0,
        "total_tokens": 42,
        "cost": 0.0125,
        "models": "a/b",
        "error_code": None,
        "error": None,
    }


def test_the_summary_has_the_same_keys_however_a_run_ends() -> None:
    """A failed run without usage or price has the keys of one that went well."""
    error = TraceError(code="timeout", message="too late")
    failed = RunEnd(**IDS, deck_path="d", status="failed", error=error)

    line = json.loads(text_of(failed, form="json"))

    assert line.keys() == json.loads(text_of(END, form="json")).keys()
    assert (line["level"], line["error_code"]) == ("error", "timeout")
    assert line["cost"] is line["total_tokens"] is None


def test_console_line_is_plain_text_without_what_is_not_known() -> None:
    """A person sees the summary, tokens included, and no column of None."""
    line = text_of(END)

    assert line.count("\n") == 1
    assert line.startswith("2023-11-14T22:13:20.250Z [info     ] run.end")
    for part in ("status=completed", "duration=1.235", "passes=2", "total_tokens=42"):
        assert part in line
    assert "None" not in line
    assert "\x1b" not in line


def test_streamed_events_and_begins_are_shown_on_request_only() -> None:
    """A line for every delta is for who asks for it."""
    delta = OutputTextDelta(output_index=0, delta="hel")
    broken = MalformedEvent(reason="invalid_json", problem="not JSON", raw="{")
    events: list[TraceEvent] = [
        DeckStart(**IDS, deck_path="d"),
        StreamEvent(**IDS, deck_path="d", model="m", event=delta),
        StreamEvent(**IDS, deck_path="d", model="m", event=broken),
    ]

    assert text_of(*events) == ""
    lines = text_of(*events, verbose=True).splitlines()
    assert len(lines) == 3
    assert "delta=hel" in lines[1]
    assert "problem='not JSON'" in lines[2]


@pytest.mark.parametrize("event", WORDS, ids=lambda event: event.type)
@pytest.mark.parametrize("form", ["console", "json"])
def test_conversations_stay_out_of_the_log(
    event: TraceEvent, form: log_lines.Form
) -> None:
    """No words of a user, a model, a tool or a handler stand in a usual log line."""
    assert PRIVATE not in text_of(event, form=form)


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (Log(**IDS, deck_path="d", message="m", level="WARN"), "warning"),
        (Log(**IDS, deck_path="d", message="m", level="loud"), "info"),
        (RunEnd(**IDS, deck_path="d", status="cancelled"), "warning"),
        (
            ModelFailover(
                **IDS,
                deck_path="d",
                model="a",
                next_model="b",
                error=TraceError(code="x", message="y"),
            ),
            "warning",
        ),
        (
            ModelNotice(**IDS, deck_path="d", model="a", kind="retry", message="m"),
            "warning",
        ),
        (
            ModelNotice(**IDS, deck_path="d", model="a", kind="waited", message="m"),
            "info",
        ),
        (
            ToolResult(**IDS, name="t", result="", tool_kind="action", status="failed"),
            "error",
        ),
    ],
)
def test_level_says_how_bad_it_is(event: TraceEvent, level: str) -> None:
    """An end is as loud as its status, a module as loud as it says."""
    assert json.loads(text_of(event, form="json"))["level"] == level


@pytest.mark.parametrize("form", ["console", "json"])
def test_text_cannot_forge_a_line(form: log_lines.Form) -> None:
    """Line breaks, terminal codes and half surrogates in a message are shown."""
    nasty = Log(**IDS, deck_path="d", message="a\n2023 run.end\x1b[2J\ud800\u2028")

    text = text_of(nasty, form=form)

    assert len(text.splitlines()) == 1
    assert "\x1b" not in text
    text.encode()


def test_a_strange_clock_does_not_cost_the_line() -> None:
    """A time that no calendar has is shown as the number it is."""
    line = text_of(RunStart(run_id="r", time=1e300, deck_path="d"))

    assert "1e+300" in line


def test_every_kind_of_event_has_its_line() -> None:
    """A kind added to the vocabulary must be given a place among the lines."""
    shown = log_lines._SHOWN.keys()  # noqa: SLF001
    details = log_lines._DETAILS.keys()  # noqa: SLF001

    assert shown | details == set(typing.get_args(TraceEvent))
    assert not shown & details


def test_the_configuration_of_structlog_is_left_alone() -> None:
    """An application's own logging neither changes nor is changed."""
    structlog.reset_defaults()

    text = text_of(END)

    assert not structlog.is_configured()
    structlog.configure(processors=[structlog.processors.JSONRenderer()])
    try:
        assert text_of(END) == text
    finally:
        structlog.reset_defaults()


def test_lines_go_to_stderr_unless_told_otherwise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Standard output is left to results."""
    StructlogSink()(END)

    out, err = capsys.readouterr()
    assert out == ""
    assert "run.end" in err
