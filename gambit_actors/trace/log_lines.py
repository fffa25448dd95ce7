"""A run as log lines: one for each event that matters, and one that sums it up.

Built on structlog's own processors, given explicitly: an application's configuration
of structlog is neither used nor touched. A line has names, numbers and outcomes. What
people and models said is left out unless ``verbose`` asks for it; what a module logs
is shown, because it was said to be shown, and so are error messages.
"""

import json
import logging
import sys
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime
from typing import Any, Literal, TextIO, TypeAlias

import msgspec
import structlog

from gambit_actors.openresponses.events import Event, MalformedEvent
from gambit_actors.openresponses.responses import Usage
from gambit_actors.trace.events import (
    ActionEnd,
    ActionStart,
    CallInDoubt,
    DeckEnd,
    DeckStart,
    HandlerSaid,
    ItemLogged,
    Lagged,
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

Form: TypeAlias = Literal["console", "json"]
_Facts: TypeAlias = dict[str, object]

# The fields of an event that make its line.
_SHOWN: dict[type, tuple[str, ...]] = {
    RunStart: ("deck_path",),
    # The one line to keep if only one is kept: always the same keys in one order.
    RunEnd: (
        *("deck_path", "status", "duration", "passes", "calls", "decks"),
        *("usage", "cost", "models", "error"),
    ),
    DeckEnd: ("deck_path", "status", "usage", "error"),
    ModelResult: ("model", "pass_number", "status", "finish_reason", "usage", "error"),
    ModelFailover: ("model", "next_model", "error"),
    ModelNotice: ("model", "kind", "message", "seconds"),
    ToolResult: ("name", "tool_kind", "status"),
    CallInDoubt: ("name", "attempt", "choice", "log_run_id"),
    HandlerSaid: ("kind", "elapsed_ms"),
    Log: ("message", "title"),
    Lagged: ("missed",),
}
# What happens on the way. Shown on request; the ends above tell how it went.
_DETAILS: dict[type, tuple[str, ...]] = {
    DeckStart: ("deck_path", "label", "depth"),
    ActionStart: ("name", "path"),
    ActionEnd: ("name", "status"),
    ToolCalled: ("name", "tool_kind", "args"),
    ModelCall: ("model", "pass_number", "item_count", "tool_count"),
    StreamEvent: ("model", "event"),
    ItemLogged: ("item", "source"),
    UserMessage: ("message",),
    Monolog: ("content",),
}
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
    "critical": logging.CRITICAL,
}
_LEVEL_OF_STATUS = {
    "completed": logging.INFO,
    "cancelled": logging.WARNING,
    "incomplete": logging.WARNING,
    "failed": logging.ERROR,
}
_ENCODER = msgspec.json.Encoder()


class StructlogSink:
    """Writes log lines: for people (``console``) or for a collector (``json``).

    Args:
        form: how a line looks.
        file: where lines go; stderr as it is now when not given.
        verbose: also show begins, streamed deltas, arguments and what users said.
    """

    def __init__(
        self,
        form: Form = "console",
        *,
        file: TextIO | None = None,
        verbose: bool = False,
    ) -> None:
        file = sys.stderr if file is None else file
        self._verbose = verbose
        self._logger = structlog.wrap_logger(
            structlog.WriteLogger(file),
            processors=[structlog.processors.add_log_level, *_renderers(form, file)],
            wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET),
            context_class=dict,
            cache_logger_on_first_use=True,
        )

    def __call__(self, event: TraceEvent) -> None:
        """Write the line of an event, if it has one."""
        names = _SHOWN.get(type(event))
        if names is None:
            if not self._verbose:
                return
            names = _DETAILS[type(event)]
        self._logger.log(
            _level_of(event),
            event.type,
            timestamp=_clock_time(event.time),
            run_id=event.run_id,
            action_call_id=event.action_call_id,
            **_facts_of(event, names),
        )


def _renderers(form: Form, file: TextIO) -> list[structlog.typing.Processor]:
    if form == "json":
        return [structlog.processors.JSONRenderer(serializer=_as_json)]
    return [
        _without_nothing,
        _on_one_line,
        structlog.dev.ConsoleRenderer(
            colors=file.isatty(), pad_event_to=14, sort_keys=False
        ),
    ]


def _level_of(event: TraceEvent) -> int:
    match event:
        case Log(level=level):
            return _LEVELS.get(level.lower(), logging.INFO)
        case (
            ModelFailover()
            | ModelNotice(kind="retry" | "left_out" | "slowed")
            | Lagged()
        ):
            return logging.WARNING
        case (
            RunEnd(status=status)
            | DeckEnd(status=status)
            | ActionEnd(status=status)
            | ToolResult(status=status)
            | ModelResult(status=status)
        ):
            return _LEVEL_OF_STATUS.get(status, logging.INFO)
        case _:
            return logging.DEBUG if type(event) in _DETAILS else logging.INFO


def _facts_of(event: TraceEvent, names: tuple[str, ...]) -> _Facts:
    facts: _Facts = {}
    for name in names:
        value = getattr(event, name)
        unfold = _UNFOLDED.get(name)
        facts |= {name: value} if unfold is None else unfold(value)
    return facts


def _usage_facts(usage: Usage | None) -> _Facts:
    return {
        "input_tokens": usage and usage.input_tokens,
        "cached_tokens": usage and usage.input_tokens_details.cached_tokens,
        "output_tokens": usage and usage.output_tokens,
        "reasoning_tokens": usage and usage.output_tokens_details.reasoning_tokens,
        "total_tokens": usage and usage.total_tokens,
    }


def _error_facts(error: TraceError | None) -> _Facts:
    return {"error_code": error and error.code, "error": error and error.message}


def _stream_facts(event: Event) -> _Facts:
    if isinstance(event, MalformedEvent):
        return {"stream": "malformed", "problem": event.problem}
    return {"stream": event.type, "delta": getattr(event, "delta", None)}


# A line is flat, so what has parts gives each a key of its own.
_UNFOLDED: dict[str, Callable[[Any], _Facts]] = {
    "usage": _usage_facts,
    "error": _error_facts,
    "event": _stream_facts,
    "item": lambda item: {"item": item.type},
    "duration": lambda seconds: {"duration": round(seconds, 3)},
    "models": lambda models: {"models": ",".join(models)},
}


def _clock_time(time: float) -> str:
    try:
        moment = datetime.fromtimestamp(time, UTC)
    except (OverflowError, ValueError, OSError):
        return str(time)  # No year has it; a strange clock must not cost the line.
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _as_json(value: object, **_options: Any) -> str:  # noqa: ANN401  (structlog's)
    try:
        return _ENCODER.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value)  # Writes half a surrogate pair as its escape.


def _without_nothing(
    _logger: object, _method: str, line: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Leave out what is not known: a person needs no column of None."""
    return {key: value for key, value in line.items() if value is not None}


def _on_one_line(
    _logger: object, _method: str, line: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Show line breaks and terminal codes as what they are instead of obeying them."""
    return {
        key: _printable(value) if isinstance(value, str) else value
        for key, value in line.items()
    }


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
