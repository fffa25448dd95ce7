"""What stands behind the gateway: a model that says the same thing every time.

Prints its address, and serves until its standard input is closed.
"""

import msgspec
import trio

from gambit_actors.openresponses.base import JSONValue
from gambit_actors.testing.fake_server import Answer, Asked, serve

WORDS = ("It ", "was ", "sent.")
ARGUMENTS = ('{"note"', ': "sent"}')
USAGE = {"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15}

_NAMES = {"id": "chatcmpl-1", "created": 1, "model": "m"}


async def answer_chat(request: Asked, answer: Answer) -> None:
    """Answer a chat: with a call if a tool is offered, else in words."""
    if request.method != "POST":
        await answer.head(404, {"content-type": "text/plain"})
        return
    asked = request.json()
    if any("refuse me" in str(message) for message in asked["messages"]):
        await answer.head(429, {"content-type": "application/json"})
        error = {"message": "Too much.", "type": "rate_limit", "code": "slow_down"}
        await answer.send(msgspec.json.encode({"error": error}))
        return
    has_output = any(message["role"] == "tool" for message in asked["messages"])
    deltas = _words() if has_output or not asked.get("tools") else _call(asked)
    if not asked.get("stream"):
        await _send_whole(answer, deltas)
        return
    await answer.head(200, {"content-type": "text/event-stream"})
    for delta in deltas:
        await _send(answer, choices=[{"index": 0, "delta": delta}])
    reason = "tool_calls" if "tool_calls" in deltas[0] else "stop"
    end = {"index": 0, "delta": {}, "finish_reason": reason}
    await _send(answer, choices=[end])
    await _send(answer, choices=[], usage=USAGE)
    await answer.send(b"data: [DONE]\n\n")


def _words() -> list[dict[str, JSONValue]]:
    return [{"role": "assistant", "content": word} for word in WORDS]


def _call(asked: JSONValue) -> list[dict[str, JSONValue]]:
    name = asked["tools"][0]["function"]["name"]
    call = {"index": 0, "id": "call_1", "type": "function"}
    first = call | {"function": {"name": name, "arguments": ""}}
    deltas: list[dict[str, JSONValue]] = [
        {"role": "assistant", "content": None, "tool_calls": [first]}
    ]
    for piece in ARGUMENTS:
        more = {"index": 0, "function": {"arguments": piece}}
        deltas.append({"tool_calls": [more]})
    return deltas


async def _send(answer: Answer, **fields: JSONValue) -> None:
    chunk = _NAMES | {"object": "chat.completion.chunk"} | fields
    await answer.send(b"data: " + msgspec.json.encode(chunk) + b"\n\n")


async def _send_whole(answer: Answer, deltas: list[dict[str, JSONValue]]) -> None:
    message: dict[str, JSONValue] = {"role": "assistant", "content": "".join(WORDS)}
    reason = "stop"
    if "tool_calls" in deltas[0]:
        call = deltas[0]["tool_calls"][0]
        function = call["function"] | {"arguments": "".join(ARGUMENTS)}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [call | {"function": function}],
        }
        reason = "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    whole = _NAMES | {"object": "chat.completion", "usage": USAGE, "choices": [choice]}
    await answer.head(200, {"content-type": "application/json"})
    await answer.send(msgspec.json.encode(whole))


async def main() -> None:
    """Serve until standard input is closed."""
    async with serve(answer_chat) as server:
        print(server.base_url, flush=True)  # noqa: T201  (who started us reads it)
        stdin = trio.lowlevel.FdStream(0)
        while await stdin.receive_some():
            pass


if __name__ == "__main__":
    trio.run(main)
