"""A deck that asks another deck: the child works on its own and answers in JSON.

Run it:  .venv/bin/python examples/02_action_deck.py
"""

import tempfile
from pathlib import Path

from gambit_actors import ScriptedProvider, run_sync
from gambit_actors.providers.scripts import Call, Reply

DESK = """+++
[modelParams]
model = "scripted/desk"
[[actions]]
name = "decide"
description = "Decide about a refund."
path = "./decide/PROMPT.md"
+++
You pass on what `decide` says, and never decide yourself.
"""
DECIDE = """+++
respond = true
contextSchema = "./any.json"
responseSchema = "./any.json"
[modelParams]
model = "scripted/clerk"
+++
What is damaged is refunded.
"""
ASK = Call(name="decide", arguments={"problem": "damaged"})
ANSWER = Call(name="gambit_respond", arguments={"payload": {"refund": True}})
# A child runs with no reply used yet, the first included: so that says whose it is.
SCRIPT = [
    Reply(deck="*/desk/PROMPT.md", calls=(ASK,)),
    Reply(deck="*/decide/PROMPT.md", calls=(ANSWER,)),
    Reply(after="decide", text="You get your money back."),
]


def write_decks(desk: Path) -> None:
    """Write the two decks, the second into a folder of the first."""
    (desk / "decide").mkdir(parents=True)
    (desk / "PROMPT.md").write_text(DESK)
    (desk / "decide" / "PROMPT.md").write_text(DECIDE)
    (desk / "decide" / "any.json").write_text('{"type": "object"}')


def main() -> None:
    """Run the first deck, which asks the second."""
    with tempfile.TemporaryDirectory() as folder:
        write_decks(Path(folder, "desk"))
        model = ScriptedProvider(SCRIPT)
        result = run_sync(f"{folder}/desk", message="My lamp broke.", models=model)
    print(result.text, [item.type for item in result.items], sep="\n")


if __name__ == "__main__":
    main()
