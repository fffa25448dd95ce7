"""A tool of your own program: the deck declares it, a function of yours carries it out.

Run it:  .venv/bin/python examples/03_external_tool.py
"""

import tempfile
from pathlib import Path

import trio

from gambit_actors import RunOptions, ScriptedProvider, open_runtime
from gambit_actors.actors.hook import ExternalCall
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.providers.scripts import Call, Reply

DECK = """+++
[modelParams]
model = "scripted/model"

[[tools]]
name = "weather"
description = "How the weather is in a town."
+++

You tell people what to wear.
"""
SCRIPT = [
    Reply(calls=(Call(name="weather", arguments={"town": "Bergen"}),)),
    Reply(after="weather", contains="rain", text="Take a coat."),
]


async def on_tool(call: ExternalCall) -> JSONValue:
    """Carry out a call. A plain function does, too, and gets a thread."""
    print(f"asked for {call.name} {call.args} by {call.deck_path}")
    await trio.sleep(0.01)  # A real one would ask somebody.
    return {"town": call.args["town"], "sky": "rain"}


async def main(folder: str) -> None:
    """Run the deck with the tool at hand."""
    async with open_runtime(
        ScriptedProvider(SCRIPT),
        options=RunOptions(on_tool=on_tool),
    ) as runtime:
        result = await runtime.run(folder, message="I go to Bergen.")
    print(result.text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        Path(temporary, "PROMPT.md").write_text(DECK)
        trio.run(main, temporary)
