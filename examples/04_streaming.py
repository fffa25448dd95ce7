"""An answer as it comes, a second turn, and one that is not waited for.

Run it:  .venv/bin/python examples/04_streaming.py
"""

from pathlib import Path

import trio

from gambit_actors import ScriptedProvider, open_runtime
from gambit_actors.providers.scripts import Reply
from gambit_actors.trace.events import ItemLogged

HELLO = Path(__file__).parent.parent / "decks" / "hello"
SCRIPT = [
    Reply(text="Hello. What would you like to understand?", per_delta_seconds=0.01),
    Reply(text="A channel is a pipe between two tasks.", per_delta_seconds=0.01),
    Reply(text="This will never be heard to its end.", fault="hang"),
]


async def main() -> None:
    """Hold a conversation of three turns."""
    async with (
        open_runtime(ScriptedProvider(SCRIPT)) as runtime,
        runtime.open_session(str(HELLO)) as session,
    ):
        # Words, as the model sends them.
        async with session.stream("Hi.") as stream:
            async for piece in stream.text():
                print(piece, end="", flush=True)
        print(f"\n[{stream.result.status}]")

        # Everything that happens. An item is told when it is in the log, not before.
        async with session.stream("What is a channel?") as stream:
            async for event in stream:
                if isinstance(event, ItemLogged):
                    print(f"logged: {event.item.type} from {event.source}")
        print(stream.result.text)

        # Leaving the block cancels the turn, and waits until it has stopped.
        async with session.stream("And now?") as stream:
            async for piece in stream.text():
                print(f"{piece.strip()}... enough.")
                break
        (actor,) = runtime.snapshot()
        print(f"[{actor.deck} is {actor.doing}]")


if __name__ == "__main__":
    trio.run(main)
