"""Ours: decks on disk, loaded once, run in one runtime with its log and its trace.

The model is the twin of the peers' fakes: it gives a whole response and streams no
events. The variant that streams has the `ScriptedProvider` instead, whose answers come
as some ten events each, all of them traced.
"""

import tempfile
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from benchmarks.run_cases import (
    ANSWER,
    ARGUMENTS,
    ARGUMENTS_JSON,
    DEADLINE_SECONDS,
    EXECUTE,
    MESSAGE,
    RESULT,
    STREAMED,
    TOOL,
    RunOnce,
    Workload,
)
from gambit_actors import DiskReader, RunOptions, ScriptedProvider, open_runtime
from gambit_actors.actors.hook import ExternalCall
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.items import FunctionCall, Item, assistant_message
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response, Usage
from gambit_actors.providers.scripts import Call, Reply
from gambit_actors.run.ports import ModelContext, ModelProvider
from gambit_actors.trace.events import TraceEvent

LOOP = "trio"
ROOT_MODEL = "fake/root"
CHILD_MODEL = "fake/child"
KEPT_EVENTS = 1000

_CITY = '{"type": "object", "properties": {"city": {"type": "string"}}}'
_TOOL_ENTRY = f"""
[[tools]]
name = "{TOOL}"
description = "Look up the weather."
inputSchema = "./city.json"
"""
_EXECUTE_ENTRY = f"""
[[actions]]
name = "{TOOL}"
description = "Look up the weather."
execute = "./lookup.py"
contextSchema = "./city.json"
responseSchema = "./object.json"
"""
_MODULE = f"""\
from gambit_actors import define_deck

async def run(ctx):
    return {RESULT!r} | {{"city": ctx.input["city"]}}

deck = define_deck(run=run)
"""


class FakeModel:
    """Calls in its first pass what the agent has to call, and answers in the next."""

    def __init__(self, workload: Workload) -> None:
        root_seconds = float("inf") if workload.is_hung else workload.model_seconds
        self._agents = {
            ROOT_MODEL: (workload.root_calls, root_seconds),
            CHILD_MODEL: (workload.child_calls, workload.child_seconds),
        }

    async def responses(
        self,
        request: CreateResponse,
        context: ModelContext,
        _on_event: Callable[[Event], None],
        /,
    ) -> Response:
        """Wait as long as the model would take, then answer in one piece."""
        calls, seconds = self._agents[request.model or ""]
        await trio.sleep(seconds)
        output: tuple[Item, ...]
        if calls and context.pass_number == 1:
            output = tuple(
                FunctionCall(call_id=f"call_{n}", name=n, arguments=ARGUMENTS_JSON)
                for n in calls
            )
        else:
            output = (assistant_message(ANSWER),)
        return Response(
            id=f"resp_{context.run_id}_{context.pass_number}",
            status="completed",
            model=request.model or "",
            output=output,
            usage=Usage(input_tokens=50, output_tokens=10, total_tokens=60),
        )


def scripted_model(workload: Workload) -> ScriptedProvider:
    """The same answers as a stream of events."""
    replies = []
    for pattern, names in (
        ("*child_*", workload.child_calls),
        ("*", workload.root_calls),
    ):
        calls = tuple(Call(name=name, arguments=ARGUMENTS) for name in names)
        if calls:
            replies.append(Reply(deck=pattern, pass_number=1, calls=calls, times=0))
        replies.append(Reply(deck=pattern, text=ANSWER, times=0))
    return ScriptedProvider(replies)


def write_decks(folder: Path, workload: Workload, *, is_execute: bool) -> None:
    """Write the root, and a folder for each deck below it."""
    tool = _EXECUTE_ENTRY if is_execute else _TOOL_ENTRY
    actions = "".join(
        f'[[actions]]\nname = "{name}"\ndescription = "Ask about the weather."\n'
        f'path = "./{name}/PROMPT.md"\n'
        for name in workload.names
    )
    guardrails = ""
    if workload.is_hung:
        guardrails = f"[guardrails]\ntimeoutMs = {DEADLINE_SECONDS * 1000:g}\n"
    _write_deck(folder, ROOT_MODEL, guardrails + (actions or tool))
    for name in workload.names:
        schemas = 'contextSchema = "./city.json"\nresponseSchema = "./text.json"'
        own = tool if workload.is_child_using_tool else ""
        _write_deck(folder / name, CHILD_MODEL, own, schemas)


def _write_deck(folder: Path, model: str, tables: str, keys: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "PROMPT.md": f'+++\n{keys}\n[modelParams]\nmodel = "{model}"\n{tables}\n+++\n\n'
        "You know the weather.\n",
        "city.json": _CITY,
        "object.json": '{"type": "object"}',
        "text.json": '{"type": "string"}',
        "lookup.py": _MODULE,
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


async def on_tool(call: ExternalCall) -> JSONValue:
    """The tool, as a program around the runtime would bring it."""
    await trio.lowlevel.checkpoint()
    return RESULT | {"city": call.args["city"]}


@asynccontextmanager
async def open_runs(workload: Workload, variant: str, /) -> AsyncIterator[RunOnce]:
    """Write and load the decks and open the runtime: none of it is on the clock."""
    is_streamed = variant == STREAMED
    model: ModelProvider = (
        scripted_model(workload) if is_streamed else FakeModel(workload)
    )
    # Traces are on, and go to somebody who keeps the last of them.
    trace = deque[TraceEvent](maxlen=KEPT_EVENTS)
    with tempfile.TemporaryDirectory() as folder:
        write_decks(Path(folder), workload, is_execute=variant == EXECUTE)
        async with open_runtime(
            model,
            reader=DiskReader(folder),
            sinks=[trace.append],
            options=RunOptions(on_tool=on_tool),
        ) as runtime:
            deck = await runtime.load("PROMPT.md")

            async def run_once() -> None:
                result = await runtime.run(deck, message=MESSAGE)
                assert result.text == ANSWER

            async def run_into_deadline() -> None:
                result = await runtime.try_run(deck, message=MESSAGE)
                assert result.failure is not None
                assert result.failure.code == "timeout"

            yield run_into_deadline if workload.is_hung else run_once
        assert trace, "nothing was traced"
