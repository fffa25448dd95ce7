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
ANY_OBJECT = '{"type": "object"}'
SCRIPT = [
    Reply(calls=(Call(name="decide", arguments={"problem": "damaged"}),)),
    Reply(
        deck="*/decide/PROMPT.md",
        calls=(Call(name="gambit_respond", arguments={"payload": {"refund": True}}),),
    ),
    Reply(after="decide", text="You get your money back."),
]


def main() -> None:
    """Write the two decks, then run the first."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Path(folder, "desk")
        (desk / "decide").mkdir(parents=True)
        (desk / "PROMPT.md").write_text(DESK)
        (desk / "decide" / "PROMPT.md").write_text(DECIDE)
        (desk / "decide" / "any.json").write_text(ANY_OBJECT)
        model = ScriptedProvider(SCRIPT)
        result = run_sync(str(desk), message="My lamp is broken.", provider=model)
    print(result.text)
    print([item.type for item in result.items])


if __name__ == "__main__":
    main()
