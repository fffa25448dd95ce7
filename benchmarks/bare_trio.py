"""The floor: the least that a naive actor in Trio costs.

A deadline, a nursery, one task, two channels, dicts for items and JSON for the
arguments of tools. It has no log, no trace, no limits, checks nothing, and an error in
a tool is the end of it.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import trio

from benchmarks.run_cases import (
    ANSWER,
    ARGUMENTS_JSON,
    DEADLINE_SECONDS,
    MESSAGE,
    RESULT,
    RunOnce,
    Workload,
)

LOOP = "trio"
PATIENCE_SECONDS = 120.0

Item: TypeAlias = dict[str, Any]


class Agent:
    """An actor with a model that is not there and what it may call."""

    def __init__(
        self, calls: tuple[str, ...], model_seconds: float, child: "Agent | None" = None
    ) -> None:
        self._calls = calls
        self._model_seconds = model_seconds
        self._child = child

    async def run(self, message: str, patience_seconds: float) -> str:
        """Start an actor, ask it, wait for its answer."""
        with trio.fail_after(patience_seconds):
            async with trio.open_nursery() as nursery:
                mailbox, inbox = trio.open_memory_channel[Item](0)
                outbox, answers = trio.open_memory_channel[str](0)
                nursery.start_soon(self._live, inbox, outbox)
                async with mailbox, answers:
                    await mailbox.send({"type": "message", "text": message})
                    answer = await answers.receive()
        return answer

    async def _live(
        self,
        inbox: trio.MemoryReceiveChannel[Item],
        outbox: trio.MemorySendChannel[str],
    ) -> None:
        async with inbox, outbox:
            async for message in inbox:
                await outbox.send(await self._work([message]))

    async def _work(self, items: list[Item]) -> str:
        while True:
            output = await self._ask_model(items)
            items += output
            calls = [item for item in output if item["type"] == "function_call"]
            if not calls:
                text: str = output[-1]["text"]
                return text
            items += await self._carry_out(calls)

    async def _ask_model(self, items: list[Item]) -> list[Item]:
        await trio.sleep(self._model_seconds)
        if not self._calls or items[-1]["type"] == "function_call_output":
            return [{"type": "message", "text": ANSWER}]
        return [
            {
                "type": "function_call",
                "call_id": f"call_{name}",
                "name": name,
                "arguments": ARGUMENTS_JSON,
            }
            for name in self._calls
        ]

    async def _carry_out(self, calls: list[Item]) -> list[Item]:
        outputs: list[Item] = [{} for _ in calls]
        if len(calls) == 1:
            await self._call(calls[0], outputs[0])
            return outputs
        async with trio.open_nursery() as nursery:
            for call, output in zip(calls, outputs, strict=True):
                nursery.start_soon(self._call, call, output)
        return outputs

    async def _call(self, call: Item, output: Item) -> None:
        arguments = json.loads(call["arguments"])
        if self._child is None:
            result = await lookup(**arguments)
        else:
            result = await self._child.run(arguments["city"], PATIENCE_SECONDS)
        output["type"] = "function_call_output"
        output["call_id"] = call["call_id"]
        output["output"] = json.dumps(result)


async def lookup(city: str) -> object:
    """The tool."""
    await trio.lowlevel.checkpoint()
    return RESULT | {"city": city}


@asynccontextmanager
async def open_runs(workload: Workload, _variant: str, /) -> AsyncIterator[RunOnce]:
    """Make the agents; nothing else outlives a run."""
    child = Agent(workload.child_calls, workload.child_seconds)
    seconds = float("inf") if workload.is_hung else workload.model_seconds
    root = Agent(
        workload.root_calls, seconds, child=child if workload.children else None
    )

    async def run_once() -> None:
        assert await root.run(MESSAGE, PATIENCE_SECONDS) == ANSWER

    async def run_into_deadline() -> None:
        try:
            await root.run(MESSAGE, DEADLINE_SECONDS)
        except trio.TooSlowError:
            return  # noqa: ASYNC910  # it has waited for as long as it may
        raise AssertionError("a model that hangs has answered")

    await trio.lowlevel.checkpoint()
    yield run_into_deadline if workload.is_hung else run_once
