"""One deck, one answer.

Run it:  .venv/bin/python examples/01_hello.py

The model is a script, so there is no key and no network. Everything else is as it
would be with a real one.
"""

from pathlib import Path

from gambit_actors import ScriptedProvider, run_sync
from gambit_actors.providers.scripts import Reply

HELLO = Path(__file__).parent.parent / "decks" / "hello"


def main() -> None:
    """Ask the deck that comes with the project, and print what it says."""
    model = ScriptedProvider(
        [Reply(text="An actor is somebody with a mailbox. Who would you write to?")]
    )

    result = run_sync(str(HELLO), message="What is an actor?", models=model)

    print(result.text)
    print(f"({result.status}, {result.usage.total_tokens} tokens)")


if __name__ == "__main__":
    main()
