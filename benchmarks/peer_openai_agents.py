"""openai-agents: agents with function tools, on a `Model` that is not there.

All runs share one agent, as its documentation has it, and an agent becomes a tool by
``as_tool``. Tracing is off.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NoReturn

from agents import (
    Agent,
    Model,
    ModelResponse,
    Runner,
    TResponseInputItem,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputItem,
    ResponseOutputMessage,
    ResponseOutputText,
)

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
CHILD_ARGUMENTS_JSON = '{"input":"Bergen"}'


class FakeModel(Model):
    """A model that calls what it has to, then answers."""

    def __init__(
        self, calls: tuple[str, ...], seconds: float, arguments: str = ARGUMENTS_JSON
    ) -> None:
        self._calls = calls
        self._seconds = seconds
        self._arguments = arguments

    async def get_response(
        self, *, input: str | list[TResponseInputItem], **_rest: object
    ) -> ModelResponse:
        """Wait as long as the model would take, then answer."""
        await asyncio.sleep(self._seconds)
        return ModelResponse(
            output=self._output(input),
            usage=Usage(requests=1, input_tokens=50, output_tokens=10, total_tokens=60),
            response_id="resp_1",
        )

    def stream_response(self, **_rest: object) -> NoReturn:
        """Not asked for here."""
        raise NotImplementedError

    def _output(
        self, input: str | list[TResponseInputItem]
    ) -> list[ResponseOutputItem]:
        is_answered = (
            isinstance(input, list) and input[-1].get("type") == "function_call_output"
        )
        if is_answered or not self._calls:
            text = ResponseOutputText(text=ANSWER, type="output_text", annotations=[])
            return [
                ResponseOutputMessage(
                    id="msg_1",
                    type="message",
                    role="assistant",
                    status="completed",
                    content=[text],
                )
            ]
        return [
            ResponseFunctionToolCall(
                type="function_call",
                call_id=f"call_{name}",
                name=name,
                arguments=self._arguments,
            )
            for name in self._calls
        ]


async def lookup(city: str) -> dict[str, object]:
    """Look up the weather."""
    await asyncio.sleep(0)
    return RESULT | {"city": city}


@asynccontextmanager
async def open_runs(workload: Workload, _variant: str, /) -> AsyncIterator[RunOnce]:
    """Make the agents."""
    set_tracing_disabled(disabled=True)
    tool = function_tool(lookup, name_override=TOOL)
    child = Agent(
        name="child",
        instructions="You know the weather.",
        model=FakeModel(workload.child_calls, workload.child_seconds),
        tools=[tool] if workload.is_child_using_tool else [],
    )
    children = [
        child.as_tool(tool_name=name, tool_description="Ask about the weather.")
        for name in workload.names
    ]
    root = Agent(
        name="root",
        instructions="You know the weather.",
        model=FakeModel(
            workload.root_calls,
            workload.model_seconds,
            CHILD_ARGUMENTS_JSON if children else ARGUMENTS_JSON,
        ),
        tools=children or [tool],
    )

    async def run_once() -> None:
        result = await Runner.run(root, MESSAGE)
        assert result.final_output == ANSWER

    await asyncio.sleep(0)
    yield run_once
