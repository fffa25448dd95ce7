"""autogen-core: agents in its single-threaded runtime, tools behind a `ToolAgent`.

The loop is the library's own ``tool_agent_caller_loop``. A run is a message to an agent
of a new key, so that no two runs share a conversation. Nothing is traced.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from autogen_core import (
    AgentId,
    FunctionCall,
    MessageContext,
    RoutedAgent,
    SingleThreadedAgentRuntime,
    message_handler,
)
from autogen_core.models import (
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    RequestUsage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tool_agent import ToolAgent, tool_agent_caller_loop
from autogen_core.tools import FunctionTool
from opentelemetry.trace import NoOpTracerProvider

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


@dataclass
class Ask:
    """What an agent is asked."""

    text: str


@dataclass
class Answer:
    """What it answers."""

    text: str


class FakeModel:
    """As much of a ``ChatCompletionClient`` as the library's loop uses."""

    def __init__(self, calls: tuple[str, ...], seconds: float) -> None:
        self._calls = calls
        self._seconds = seconds

    async def create(
        self, messages: list[LLMMessage], **_options: object
    ) -> CreateResult:
        """Wait as long as the model would take, then answer."""
        await asyncio.sleep(self._seconds)
        is_answered = isinstance(messages[-1], FunctionExecutionResultMessage)
        content: str | list[FunctionCall] = ANSWER
        if self._calls and not is_answered:
            content = [
                FunctionCall(id=f"call_{name}", name=name, arguments=ARGUMENTS_JSON)
                for name in self._calls
            ]
        return CreateResult(
            finish_reason="stop" if isinstance(content, str) else "function_calls",
            content=content,
            usage=RequestUsage(prompt_tokens=50, completion_tokens=10),
            cached=False,
        )


class Talker(RoutedAgent):
    """An agent with a model and tools."""

    def __init__(
        self, model: FakeModel, tools: list[FunctionTool], tool_agent: str
    ) -> None:
        super().__init__("Knows the weather.")
        self._model = model
        self._tools = tools
        self._tool_agent = AgentId(tool_agent, "default")

    @message_handler
    async def handle_ask(self, message: Ask, ctx: MessageContext) -> Answer:
        """Let the library's loop come to an answer."""
        said = await tool_agent_caller_loop(
            self,
            tool_agent_id=self._tool_agent,
            model_client=self._model,
            input_messages=[
                SystemMessage(content="You know the weather."),
                UserMessage(content=message.text, source="user"),
            ],
            tool_schema=self._tools,
            cancellation_token=ctx.cancellation_token,
        )
        return Answer(text=said[-1].content)


async def lookup(city: str) -> dict[str, object]:
    """Look up the weather."""
    await asyncio.sleep(0)
    return RESULT | {"city": city}


@asynccontextmanager
async def open_runs(workload: Workload, _variant: str, /) -> AsyncIterator[RunOnce]:
    """Start the runtime with its agents."""
    runtime = SingleThreadedAgentRuntime(tracer_provider=NoOpTracerProvider())
    keys = map(str, itertools.count())

    async def ask(agent: str, text: str) -> str:
        answer = await runtime.send_message(Ask(text), AgentId(agent, next(keys)))
        found: str = answer.text
        return found

    async def ask_child(city: str) -> str:
        """Ask about the weather."""
        return await ask("child", city)

    tools = [FunctionTool(lookup, "Look up the weather.", name=TOOL)]
    children = [
        FunctionTool(ask_child, "Ask about the weather.", name=name)
        for name in workload.names
    ]
    child_model = FakeModel(workload.child_calls, workload.child_seconds)
    root_model = FakeModel(workload.root_calls, workload.model_seconds)
    await ToolAgent.register(runtime, "tools", _maker(ToolAgent, "Tools.", tools))
    await ToolAgent.register(runtime, "children", _maker(ToolAgent, "Tools.", children))
    await Talker.register(runtime, "child", _maker(Talker, child_model, tools, "tools"))
    own, through = (children, "children") if children else (tools, "tools")
    await Talker.register(runtime, "root", _maker(Talker, root_model, own, through))

    async def run_once() -> None:
        assert await ask("root", MESSAGE) == ANSWER

    runtime.start()
    yield run_once
    await runtime.stop()


def _maker(kind: Callable[..., Any], *arguments: object) -> Callable[[], Any]:
    return lambda: kind(*arguments)
