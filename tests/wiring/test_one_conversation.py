"""The same conversation in every dialect is the same run."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from gambit_actors import RunOptions, open_runtime
from gambit_actors.actors.memory_log import MemoryStore
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.openresponses.items import FunctionCall, assistant_message
from gambit_actors.openresponses.responses import Response
from gambit_actors.openresponses.writing import to_builtins
from gambit_actors.run.entries import ItemAdded
from gambit_actors.testing.fake_server import Answer, Asked, serve
from tests.settings.reading import read

Frames = list[dict[str, JSONValue]]

KEY = "sk-1234567890"
DECK = """\
+++
[modelParams]
model = "{}"

[[tools]]
name = "crm"
description = "Leave a note."
+++

Be kind.
"""
ARGUMENTS = '{"text":"lamp broken"}'
SAID = "Noted, thank you."
PROMPT = {"role": "system", "content": [{"type": "input_text", "text": "Be kind."}]}
USER = {"role": "user", "content": [{"type": "input_text", "text": "My lamp broke."}]}
SHOWN = {"type": "output_text", "text": SAID, "annotations": []}
ITEMS = [
    {"type": "message", **PROMPT},
    {"type": "message", **USER},
    {"type": "function_call", "name": "crm", "arguments": ARGUMENTS},
    {"type": "function_call_output", "output": "kept"},
    {"type": "message", "role": "assistant", "content": [SHOWN]},
]


def response_frames(calls: bool) -> Frames:
    """What a server of Open Responses sends: here all at once, at the end."""
    call = FunctionCall(
        id="fc_1", call_id="c1", name="crm", arguments=ARGUMENTS, status="completed"
    )
    output = call if calls else assistant_message(SAID)
    begun = Response(id="resp_1", model="m", status="in_progress")
    done = msgspec.structs.replace(begun, status="completed", output=(output,))
    return [
        {"type": "response.created", "sequence_number": 0, "response": build(begun)},
        {
            "type": "response.output_item.added",
            "sequence_number": 1,
            "output_index": 0,
            "item": to_builtins(output),
        },
        {
            "type": "response.output_item.done",
            "sequence_number": 2,
            "output_index": 0,
            "item": to_builtins(output),
        },
        {"type": "response.completed", "sequence_number": 3, "response": build(done)},
    ]


def build(response: Response) -> JSONValue:
    """A response, as JSON."""
    return to_builtins(response)


def chat_frames(calls: bool) -> Frames:
    """What a server of Chat Completions sends."""
    function = {"name": "crm", "arguments": ARGUMENTS}
    call = {"index": 0, "id": "c1", "type": "function", "function": function}
    delta = {"tool_calls": [call]} if calls else {"content": SAID}
    reason = "tool_calls" if calls else "stop"
    choices = (
        {"index": 0, "delta": {"role": "assistant", **delta}},
        {"index": 0, "delta": {}, "finish_reason": reason},
    )
    head = {"id": "x", "object": "chat.completion.chunk", "model": "m"}
    return [head | {"choices": [choice]} for choice in choices]


def anthropic_frames(calls: bool) -> Frames:
    """What Anthropic sends."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"type": "message", "role": "assistant", "id": "m1", "model": "m"}
    if calls:
        block = {"type": "tool_use", "id": "c1", "name": "crm", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": ARGUMENTS}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta"}
        delta["text"] = SAID
    reason = "tool_use" if calls else "end_turn"
    return [
        {"type": "message_start", "message": {**head, "content": [], "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage},
        {"type": "message_stop"},
    ]


def gemini_frames(calls: bool) -> Frames:
    """What Gemini sends."""
    call = {"functionCall": {"name": "crm", "args": json.loads(ARGUMENTS)}}
    part = call if calls else {"text": SAID}
    content = {"role": "model", "parts": [part]}
    return [{"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}]}]


WIRES: Mapping[str, Callable[[bool], Frames]] = {
    "anthropic": anthropic_frames,
    "gemini": gemini_frames,
    "ollama": chat_frames,
    "openai": response_frames,
    "openresponses": response_frames,
}


def bare(item: JSONValue) -> JSONValue:
    """An item without what is drawn anew for each."""
    drawn = ("id", "call_id", "status")
    item = {name: value for name, value in item.items() if name not in drawn}
    if "output" in item:
        item["output"] = json.loads(item["output"])["payload"]
    return item


@pytest.mark.spec("PA-1")
@pytest.mark.parametrize("provider", WIRES)
async def test_a_run_is_the_same_whatever_its_server_speaks(
    tmp_path: Path, provider: str
) -> None:
    """Its log has the same items; ids alone are the server's."""
    (tmp_path / "PROMPT.md").write_text(DECK.format(f"{provider}/m"))
    passes = 0

    async def answer_it(_request: Asked, answer: Answer) -> None:
        nonlocal passes
        passes += 1
        await answer.head(200, {"content-type": "text/event-stream"})
        for frame in WIRES[provider](passes == 1):
            name = f"event: {frame['type']}\n" if "type" in frame else ""
            await answer.send(f"{name}data: {json.dumps(frame)}\n\n".encode())

    name, store = provider.upper(), MemoryStore(keep=True)
    options = RunOptions(on_tool=lambda *_: "kept")
    async with serve(answer_it) as server:
        env = {f"{name}_BASE_URL": server.base_url, f"{name}_API_KEY": KEY}
        async with open_runtime(
            settings=read(environment=env), store=store, options=options
        ) as runtime:
            result = await runtime.run(str(tmp_path), message="My lamp broke.")
    assert result.text == SAID
    (log,) = store.logs.values()
    items = [entry.item for entry in log.entries if isinstance(entry, ItemAdded)]
    assert [bare(to_builtins(item)) for item in items] == ITEMS
