"""DBOS on SQLite: an agent is a workflow; its model turns and its tools are steps.

An agent that calls another begins a workflow in its own. All is as it comes: DBOS
chooses how its database keeps what is committed.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from dbos import DBOS

from benchmarks.run_cases import (
    ANSWER,
    ARGUMENTS,
    MESSAGE,
    RESULT,
    RunOnce,
    Workload,
)

LOOP = "asyncio"


@DBOS.step()
async def ask_model(
    calls: tuple[str, ...], items: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """A model that calls what it has to, then answers."""
    await asyncio.sleep(0)
    if not calls or items[-1]["type"] == "function_call_output":
        return [{"type": "message", "text": ANSWER}]
    return [
        {"type": "function_call", "name": name, "arguments": ARGUMENTS}
        for name in calls
    ]


@DBOS.step()
async def lookup(city: str) -> dict[str, object]:
    """Look up the weather."""
    await asyncio.sleep(0)
    return RESULT | {"city": city}


@DBOS.workflow()
async def work(message: str, calls: tuple[str, ...], below: tuple[str, ...]) -> str:
    """An agent: ask the model, do what it calls, ask it again."""
    items: list[dict[str, Any]] = [{"type": "message", "text": message}]
    while True:
        output = await ask_model(calls, items)
        items += output
        asked = [item for item in output if item["type"] == "function_call"]
        if not asked:
            text: str = output[-1]["text"]
            return text
        for item in asked:
            city = item["arguments"]["city"]
            result = await (work(city, below, ()) if below else lookup(city))
            items.append({"type": "function_call_output", "output": result})


@asynccontextmanager
async def open_runs(workload: Workload, _variant: str, /) -> AsyncIterator[RunOnce]:
    """Make the database, and start what DBOS has besides."""
    below = workload.child_calls if workload.children else ()
    folder = tempfile.mkdtemp()
    DBOS(
        config={
            "name": "benchmark",
            "system_database_url": f"sqlite:///{folder}/dbos.sqlite",
            "run_admin_server": False,
            "log_level": "ERROR",
        }
    )
    DBOS.launch()

    async def run_once() -> None:
        assert await work(MESSAGE, workload.root_calls, below) == ANSWER

    await asyncio.sleep(0)
    yield run_once
    DBOS.destroy()
