"""pydantic-ai: agents with function tools, on the library's own `FunctionModel`.

An agent calls another in a tool, as its documentation on delegation shows. Nothing is
instrumented, which is the default.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic_ai import Agent, Tool
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from benchmarks.run_cases import (
    ANSWER,
    ARGUMENTS_JSON,
    MESSAGE,
    RESULT,
    TOOL,
    RunOnce,
    Workload,
)

LOOP = "asyncio"


def fake_model(calls: tuple[str, ...], seconds: float) -> FunctionModel:
    """A model that calls what it has to, then answers."""

    async def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        await asyncio.sleep(seconds)
        if not calls or isinstance(messages[-1].parts[-1], ToolReturnPart):
            return ModelResponse(parts=[TextPart(ANSWER)])
        return ModelResponse(
            parts=[ToolCallPart(name, ARGUMENTS_JSON, f"call_{name}") for name in calls]
        )

    return FunctionModel(answer)


async def lookup(city: str) -> dict[str, object]:
    """Look up the weather."""
    await asyncio.sleep(0)
    return RESULT | {"city": city}


@asynccontextmanager
async def open_runs(workload: Workload, _variant: str, /) -> AsyncIterator[RunOnce]:
    """Make the agents."""
    tool = Tool(lookup, name=TOOL)
    child = Agent(
        fake_model(workload.child_calls, workload.child_seconds),
        instructions="You know the weather.",
        tools=[tool] if workload.is_child_using_tool else [],
    )

    async def ask_child(city: str) -> str:
        """Ask about the weather."""
        result = await child.run(city)
        text: str = result.output
        return text

    tools = [Tool(ask_child, name=name) for name in workload.names] or [tool]
    root = Agent(
        fake_model(workload.root_calls, workload.model_seconds),
        instructions="You know the weather.",
        tools=tools,
    )

    async def run_once() -> None:
        result = await root.run(MESSAGE)
        assert result.output == ANSWER

    await asyncio.sleep(0)
    yield run_once
