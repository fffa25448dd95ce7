"""langgraph: a graph of a model and a `ToolNode`, kept by its `SqliteSaver`.

An agent calls another in a tool, with a thread of its own, as a graph does that is to
be gone on with by itself. The variant ``sync`` keeps each step before the next begins;
without it, it is as it comes: that is done while the next step runs.
"""

import asyncio
import itertools
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from benchmarks.run_cases import (
    ANSWER,
    ARGUMENTS,
    MESSAGE,
    RESULT,
    RunOnce,
    Workload,
)

LOOP = "asyncio"


def fake_model(calls: tuple[str, ...]) -> Callable[[MessagesState], Any]:
    """A node that calls what it has to, then answers."""

    def model(state: MessagesState) -> dict[str, list[AIMessage]]:
        if not calls or isinstance(state["messages"][-1], ToolMessage):
            return {"messages": [AIMessage(ANSWER)]}
        asked = [
            {"name": name, "args": ARGUMENTS, "id": f"call_{name}"} for name in calls
        ]
        return {"messages": [AIMessage("", tool_calls=asked)]}

    return model


@tool
def lookup(city: str) -> dict[str, object]:
    """Look up the weather."""
    return RESULT | {"city": city}


def agent(calls: tuple[str, ...], tools: list[BaseTool], saver: SqliteSaver) -> Any:  # noqa: ANN401  # it is not typed either
    """A graph that goes from the model to its tools and back."""
    graph = StateGraph(MessagesState)
    graph.add_node("model", fake_model(calls))
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


@asynccontextmanager
async def open_runs(workload: Workload, variant: str, /) -> AsyncIterator[RunOnce]:
    """Make the database and the graphs."""
    await asyncio.sleep(0)
    threads = map(str, itertools.count())
    how = {"durability": variant} if variant else {}

    def ask(graph: Any, text: str) -> str:  # noqa: ANN401  # as above
        config = {"configurable": {"thread_id": next(threads)}}
        state = graph.invoke({"messages": [HumanMessage(text)]}, config, **how)
        answer: str = state["messages"][-1].content
        return answer

    database = Path(tempfile.mkdtemp()) / "checkpoints.sqlite"
    with SqliteSaver.from_conn_string(str(database)) as saver:
        child = agent(workload.child_calls, [lookup], saver)

        def ask_child(city: str) -> str:
            """Ask about the weather."""
            return ask(child, city)

        children = [tool(name)(ask_child) for name in workload.names]
        root = agent(workload.root_calls, children or [lookup], saver)

        async def run_once() -> None:
            await asyncio.sleep(0)
            assert ask(root, MESSAGE) == ANSWER

        yield run_once
